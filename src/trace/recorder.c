/* SPDX-License-Identifier: MIT */
/*
 * An engine's calls as a trace.
 *
 * Lines gather in a buffer that goes out when it is full enough and a call has ended. The line of a call is written
 * before it is carried out, and taken back in favour of an `advance` if the engine then says that it could not carry
 * it out: a replay must not depend on how much memory there was, yet what fell due until then did happen.
 *
 * Decisions name blocking leases by handle, a trace by id: a table from a handle's index to the serial of its latest
 * request tells which.
 *
 * Invariants: the buffer begins at the beginning of a call or of the file; bytes up to `settled` are whole calls; once
 * `stopped`, nothing is written any more.
 */
#include "trace/recorder.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/text.h"
#include "trace/output.h"
#include "trace/writer.h"

#define FLUSH_BYTES ((size_t)64 << 10)
#define BUFFER_MAX ((size_t)64 << 20)

typedef struct handle {
    uint32_t generation;
    uint64_t serial;
} handle;

struct rn_recorder {
    const ration_allocator *mem;
    ration_sink sink;
    int (*write)(void *ctx, const char *data, size_t size);
    void (*failed)(void *ctx, int err);
    void *ctx;

    rn_output out;
    size_t settled;  /* whole calls */
    size_t call_end; /* where the line of the call at hand ends */
    bool stopped;

    rn_trace_filter filter;
    rn_arena arena; /* of the names in `headers` */
    const char **headers;
    size_t header_count;

    ration_text config; /* of the reload to come; absent: none is */

    handle *handles;
    size_t handle_count;
    rn_trace_names names;
    char name[24]; /* the latest id that was made */
};

static ration_text id_of(rn_recorder *recorder, uint64_t serial)
{
    rn_builder b;

    rn_builder_init(&b, recorder->name, sizeof recorder->name);
    rn_builder_char(&b, 'r');
    rn_builder_int(&b, (int64_t)serial);
    return (ration_text){recorder->name, b.used};
}

static ration_text name_lease(void *ctx, ration_lease lease)
{
    rn_recorder *const recorder = ctx;

    if (lease.index >= recorder->handle_count || recorder->handles[lease.index].generation != lease.generation)
        return (ration_text){NULL, 0};
    return id_of(recorder, recorder->handles[lease.index].serial);
}

static int remember_lease(rn_recorder *recorder, const ration_decision *decision)
{
    const size_t index = decision->lease.index;

    if (index >= recorder->handle_count) {
        const size_t count = index < 32 ? 64 : index * 2;
        handle *const handles = rn_mem_resize(recorder->mem, recorder->handles, count, sizeof *handles);

        if (handles == NULL)
            return RATION_ERR_NOMEM;
        memset(handles + recorder->handle_count, 0, (count - recorder->handle_count) * sizeof *handles);
        recorder->handles = handles;
        recorder->handle_count = count;
    }
    recorder->handles[index] = (handle){decision->lease.generation, decision->serial};
    return RATION_OK;
}

static bool has_prefix(ration_text text, const char *prefix)
{
    return rn_text_is_nocase(rn_text_slice(text, 0, strlen(prefix)), prefix);
}

/* Whether a decision can rest on a header; a secret never passes, whatever the config calls it. */
static bool header_matters(void *ctx, ration_text name)
{
    static const char *const secrets[] = {"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie"};
    const rn_recorder *const recorder = ctx;

    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        if (rn_text_is_nocase(name, secrets[i]))
            return false;
    }
    for (size_t i = 0; i < recorder->header_count; i++) {
        if (rn_text_is_nocase(name, recorder->headers[i]))
            return true;
    }
    return rn_text_is_nocase(name, "Retry-After") || rn_text_is_nocase(name, "Retry-After-Ms") ||
           has_prefix(name, "RateLimit") || has_prefix(name, "X-RateLimit");
}

static size_t limit_count(const ration_rules *rules)
{
    size_t count = 0;

    for (size_t i = 0; i < rules->provider_count; i++)
        count += rules->providers[i].limit_count;
    for (size_t i = 0; i < rules->account_count; i++)
        count += rules->accounts[i].limit_count;
    return count;
}

/* The sync headers of these limits. There is room for them. */
static int headers_add(rn_recorder *recorder, const ration_limit_rule *limits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const ration_sync *const sync = &limits[i].sync;
        const char *const names[] = {sync->limit_header, sync->remaining_header, sync->reset_header};

        for (size_t j = 0; j < 3; j++) {
            if (names[j] == NULL)
                continue;

            const char *const copy = rn_arena_strdup(&recorder->arena, names[j]);

            if (copy == NULL)
                return RATION_ERR_NOMEM;
            recorder->headers[recorder->header_count++] = copy;
        }
    }
    return RATION_OK;
}

static int filter_init(rn_recorder *recorder, const ration_rules *rules)
{
    int err = RATION_OK;

    /* A response may belong to a call of before a reload, so what mattered once goes on to matter. */
    const char **headers =
        rn_arena_zalloc(&recorder->arena, recorder->header_count + limit_count(rules) * 3, sizeof *headers);

    if (headers == NULL)
        return RATION_ERR_NOMEM;
    if (recorder->header_count > 0)
        memcpy(headers, recorder->headers, recorder->header_count * sizeof *headers);
    recorder->headers = headers;
    recorder->filter = (rn_trace_filter){recorder, header_matters, recorder->filter.body};
    for (size_t i = 0; i < rules->provider_count && err == RATION_OK; i++) {
        err = headers_add(recorder, rules->providers[i].limits, rules->providers[i].limit_count);
        recorder->filter.body = recorder->filter.body || rules->providers[i].errors.body_contains != NULL;
    }
    for (size_t i = 0; i < rules->account_count && err == RATION_OK; i++)
        err = headers_add(recorder, rules->accounts[i].limits, rules->accounts[i].limit_count);
    return err;
}

static void recorder_stop(rn_recorder *recorder, int err)
{
    if (recorder->stopped)
        return;
    recorder->stopped = true;
    if (recorder->failed != NULL)
        recorder->failed(recorder->ctx, err);
}

/* Whole calls go out; the rest moves to the front. */
static void recorder_write(rn_recorder *recorder)
{
    rn_output *const out = &recorder->out;

    if (recorder->settled == 0)
        return;
    if (recorder->write(recorder->ctx, out->data, recorder->settled) != 0) {
        recorder_stop(recorder, RATION_ERR_IO);
        return;
    }
    out->size -= recorder->settled;
    memmove(out->data, out->data + recorder->settled, out->size);
    recorder->settled = 0;
}

/* A call, or the file's head, has been written down to its end. */
static void recorder_settle(rn_recorder *recorder)
{
    const int err = recorder->out.err;

    if (err == RATION_OK)
        recorder->settled = recorder->out.size;
    if (err != RATION_OK || recorder->settled >= FLUSH_BYTES)
        recorder_write(recorder);
    if (err != RATION_OK)
        recorder_stop(recorder, err);
}

static void config_forget(rn_recorder *recorder)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the address is the same, only the const goes. */
    rn_mem_free(recorder->mem, (void *)(uintptr_t)recorder->config.data);
    recorder->config = (ration_text){NULL, 0};
}

static void sink_call(void *ctx, const ration_call *call)
{
    rn_recorder *const recorder = ctx;
    rn_output *const out = &recorder->out;
    const ration_text none = {NULL, 0};

    if (recorder->stopped)
        return;
    recorder_settle(recorder); /* with the events that the call before this one caused */
    switch (call->op) {
    case RATION_OP_SUBMIT:
        rn_trace_write_acquire(out, call->at, id_of(recorder, call->serial), call->request);
        break;
    case RATION_OP_CHECK:
        rn_trace_write_check(out, call->at, id_of(recorder, call->serial), call->request, call->check);
        break;
    case RATION_OP_RELEASE:
        rn_trace_write_release(out, call->at, id_of(recorder, call->serial), call->completion);
        break;
    case RATION_OP_OBSERVE:
        rn_trace_write_observe(out, call->at, id_of(recorder, call->serial), call->response, &recorder->filter);
        break;
    case RATION_OP_RENEW:
        rn_trace_write_op(out, call->at, "renew", id_of(recorder, call->serial));
        break;
    case RATION_OP_CANCEL:
        rn_trace_write_op(out, call->at, "cancel", id_of(recorder, call->serial));
        break;
    case RATION_OP_LOAD:
        rn_trace_write_state(out, call->at, call->state);
        break;
    case RATION_OP_HEALTH:
        rn_trace_write_health(out, call->at, call->account, call->ok);
        break;
    case RATION_OP_SAVE:
        rn_trace_write_save(out, call->at, call->all);
        break;
    case RATION_OP_KEPT:
        rn_trace_write_op(out, call->at, "kept", none);
        break;
    case RATION_OP_STEP:
        rn_trace_write_step(out, call->at, call->by_us);
        break;
    case RATION_OP_PAUSE:
    case RATION_OP_RESUME:
    case RATION_OP_RESET:
    case RATION_OP_GRANT:
    case RATION_OP_DRAIN:
        rn_trace_write_operate(out, call);
        break;
    case RATION_OP_RELOAD:
        if (recorder->config.data == NULL) {
            recorder_stop(recorder, RATION_ERR_CONFIG);
        } else {
            rn_trace_write_reload(out, call->at, recorder->config);
        }
        config_forget(recorder);
        break;
    case RATION_OP_ADVANCE:
    case RATION_OP_REPORT:
        rn_trace_write_op(out, call->at, "advance", none);
        break;
    }
    recorder->call_end = out->size;
}

/* The call at hand was not carried out: an `advance` instead of its line, before what fell due. */
static void call_take_back(rn_recorder *recorder, ration_time at)
{
    const ration_text none = {NULL, 0};
    rn_output *const out = &recorder->out;
    rn_output line;

    rn_output_init(&line, recorder->mem, BUFFER_MAX);
    rn_trace_write_op(&line, at, "advance", none);
    if (line.err != RATION_OK) {
        out->err = out->err != RATION_OK ? out->err : line.err;
    } else if (out->err == RATION_OK) {
        /* An advance is shorter than any other call. */
        memcpy(out->data + recorder->settled, line.data, line.size);
        memmove(out->data + recorder->settled + line.size, out->data + recorder->call_end,
                out->size - recorder->call_end);
        out->size -= recorder->call_end - recorder->settled - line.size;
    }
    rn_output_fini(&line);
}

static void answer_write(rn_recorder *recorder, const ration_call *call, int err)
{
    static const struct {
        const char *op;
        const char *done;
    } words[] = {
        [RATION_OP_RELEASE] = {"release", "released"},
        [RATION_OP_OBSERVE] = {"observe", "observed"},
        [RATION_OP_RENEW] = {"renew", "renewed"},
        [RATION_OP_CANCEL] = {"cancel", "cancelled"},
    };

    if (call->op == RATION_OP_HEALTH) {
        rn_trace_write_health_answer(&recorder->out, call->at, call->account, call->ok,
                                     err == RATION_OK ? "noted" : "unknown");
        return;
    }
    if (call->op >= RATION_OP_PAUSE && call->op <= RATION_OP_RELOAD) {
        rn_trace_write_operate_answer(&recorder->out, call, err);
        return;
    }
    if (call->op == RATION_OP_LOAD) {
        rn_trace_write_state_answer(&recorder->out, call->at);
        return;
    }
    rn_trace_write_answer(&recorder->out, call->at, words[call->op].op, id_of(recorder, call->serial),
                          err == RATION_OK ? words[call->op].done : "unknown");
}

/* Does the operation have no line of its own among those that come out? */
static bool is_silent(ration_op op)
{
    return op == RATION_OP_ADVANCE || op == RATION_OP_REPORT || op == RATION_OP_SAVE || op == RATION_OP_KEPT ||
           op == RATION_OP_STEP;
}

/* Is the operation answered by a decision? */
static bool decision_of(ration_op op)
{
    return op == RATION_OP_SUBMIT || op == RATION_OP_CHECK;
}

static void sink_answer(void *ctx, const ration_call *call, int err, const ration_decision *decision)
{
    rn_recorder *const recorder = ctx;
    rn_output *const out = &recorder->out;

    if (recorder->stopped || (err == RATION_OK && is_silent(call->op)))
        return;
    if (err != RATION_OK && (err != RATION_ERR_UNKNOWN || decision_of(call->op))) {
        call_take_back(recorder, call->at);
        return;
    }
    if (!decision_of(call->op)) {
        answer_write(recorder, call, err);
        return;
    }
    /* Two ids in one line: the one at hand must not be the one that `name_lease` makes. */
    char name[sizeof recorder->name];
    const ration_text id = id_of(recorder, decision->serial);

    memcpy(name, id.data, id.size);
    rn_trace_write_decision(out, call->at, call->op == RATION_OP_CHECK ? "check" : "acquire",
                            (ration_text){name, id.size}, decision, &recorder->names);
    if (call->op == RATION_OP_SUBMIT && decision->result != RATION_REFUSED &&
        remember_lease(recorder, decision) != RATION_OK && out->err == RATION_OK)
        out->err = RATION_ERR_NOMEM;
}

static void sink_event(void *ctx, const ration_event *event)
{
    rn_recorder *const recorder = ctx;
    char name[sizeof recorder->name];
    const ration_text id = id_of(recorder, event->serial);

    if (recorder->stopped)
        return;
    memcpy(name, id.data, id.size);
    rn_trace_write_event(&recorder->out, (ration_text){name, id.size}, event, &recorder->names);
}

int rn_recorder_new(const rn_recorder_options *options, rn_recorder **out)
{
    const ration_allocator *const mem = options->allocator != NULL ? options->allocator : rn_mem_default();
    rn_recorder *const recorder = rn_mem_zalloc(mem, 1, sizeof *recorder);

    if (recorder == NULL)
        return RATION_ERR_NOMEM;
    recorder->mem = mem;
    recorder->sink = (ration_sink){recorder, sink_call, sink_answer, sink_event};
    recorder->names = (rn_trace_names){.ctx = recorder, .name = name_lease};
    recorder->write = options->write;
    recorder->failed = options->failed;
    recorder->ctx = options->ctx;
    rn_arena_init(&recorder->arena, mem);
    rn_output_init(&recorder->out, mem, BUFFER_MAX);

    int err = filter_init(recorder, options->rules);

    if (err == RATION_OK) {
        rn_trace_write_config(&recorder->out, options->started_at, options->config);
        err = recorder->out.err;
    }
    if (err != RATION_OK) {
        recorder->stopped = true;
        rn_recorder_free(recorder);
        return err;
    }
    recorder->settled = recorder->out.size;
    *out = recorder;
    return RATION_OK;
}

int rn_recorder_reload(rn_recorder *recorder, ration_text config, const ration_rules *rules)
{
    char *copy = rn_mem_textdup(recorder->mem, config);

    if (copy == NULL)
        return RATION_ERR_NOMEM;

    const int err = filter_init(recorder, rules);

    if (err != RATION_OK) {
        rn_mem_free(recorder->mem, copy);
        return err;
    }
    config_forget(recorder);
    recorder->config = (ration_text){copy, config.size};
    return RATION_OK;
}

const ration_sink *rn_recorder_sink(const rn_recorder *recorder)
{
    return &recorder->sink;
}

void rn_recorder_flush(rn_recorder *recorder)
{
    if (recorder->stopped)
        return;
    recorder_settle(recorder);
    if (!recorder->stopped)
        recorder_write(recorder);
}

void rn_recorder_free(rn_recorder *recorder)
{
    if (recorder == NULL)
        return;
    rn_recorder_flush(recorder);
    config_forget(recorder);
    rn_output_fini(&recorder->out);
    rn_arena_fini(&recorder->arena);
    rn_mem_free(recorder->mem, recorder->handles);
    rn_mem_free(recorder->mem, recorder);
}
