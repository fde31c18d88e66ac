/* SPDX-License-Identifier: MIT */
/*
 * A trace run through a fresh engine.
 *
 * Bytes are cut into lines, a line is read into an operation, and an operation goes three steps: what falls due by
 * its time happens and is told; the operation is carried out and its answer told; what it caused is told. So the
 * answer of a call stands before the events that it causes and behind those that were due without it. Nothing happens
 * after the last line.
 *
 * The engine is made when the first operation comes: its start is the config line's `startedAt`, else that
 * operation's time.
 *
 * Invariants: an id is in `ids` exactly while the engine holds its lease or its waiter; `err` is the first error, after
 * which nothing is done any more.
 */
#include "trace/replay.h"

#include <string.h>

#include <ration/operate.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/decider.h"
#include "trace/ids.h"
#include "trace/output.h"
#include "trace/writer.h"

struct rn_replay {
    rn_replay_options options;
    const ration_allocator *mem;
    rn_trace_reader reader;
    ration_time last; /* of the last operation */
    rn_output line;   /* the beginning of a line whose end has not come yet */
    rn_trace_fault fault;
    int err;

    ration_config *config; /* the trace's own */
    ration_config_faults faults;
    const ration_rules *rules;
    bool has_started_at;
    ration_time started_at;
    size_t config_line;

    ration_engine *engine;
    rn_engine_decider engine_decider;
    rn_decider *decider; /* NULL: no operation has come yet */
    rn_ids ids;
    rn_trace_names names;
    rn_output out;
    rn_verify verify;
};

static ration_text name_lease(void *ctx, ration_lease lease)
{
    const rn_replay *const replay = ctx;
    const rn_trace_id *const id = rn_ids_find_lease(&replay->ids, lease);

    return id != NULL ? rn_trace_id_text(id) : (ration_text){NULL, 0};
}

static ration_text name_serial(void *ctx, uint64_t serial)
{
    const rn_replay *const replay = ctx;
    const rn_trace_id *const id = rn_ids_find_serial(&replay->ids, serial);

    return id != NULL ? rn_trace_id_text(id) : (ration_text){NULL, 0};
}

int rn_replay_new(const rn_replay_options *options, rn_replay **out)
{
    const ration_allocator *const mem = options->allocator != NULL ? options->allocator : rn_mem_default();
    rn_replay *const replay = rn_mem_zalloc(mem, 1, sizeof *replay);

    if (replay == NULL)
        return RATION_ERR_NOMEM;
    replay->options = *options;
    replay->mem = mem;
    replay->rules = options->rules;
    replay->names = (rn_trace_names){.ctx = replay, .name = name_lease, .serial = name_serial};
    rn_trace_reader_init(&replay->reader, mem);
    rn_output_init(&replay->line, mem, RN_TRACE_LINE_MAX + 1);
    rn_output_init(&replay->out, mem, SIZE_MAX / 2);
    rn_ids_init(&replay->ids, mem);
    rn_verify_init(&replay->verify, mem);
    *out = replay;
    return RATION_OK;
}

void rn_replay_free(rn_replay *replay)
{
    if (replay == NULL)
        return;
    rn_verify_fini(&replay->verify);
    rn_ids_fini(&replay->ids);
    rn_output_fini(&replay->out);
    rn_output_fini(&replay->line);
    rn_trace_reader_fini(&replay->reader);
    ration_engine_free(replay->engine);
    ration_config_free(replay->config);
    ration_config_faults_fini(&replay->faults);
    rn_mem_free(replay->mem, replay);
}

const rn_trace_fault *rn_replay_fault(const rn_replay *replay)
{
    return &replay->fault;
}

const ration_config_faults *rn_replay_config_faults(const rn_replay *replay)
{
    return &replay->faults;
}

const rn_verify_difference *rn_replay_difference(const rn_replay *replay)
{
    return replay->verify.differs ? &replay->verify.difference : NULL;
}

size_t rn_replay_matched(const rn_replay *replay)
{
    return replay->verify.matched;
}

size_t rn_replay_line(const rn_replay *replay)
{
    return replay->reader.number;
}

/* Hands on the line in `out`, if there is one. */
static int replay_emit(rn_replay *replay)
{
    rn_output *const out = &replay->out;
    int err = out->err;

    if (err == RATION_OK && out->size > 0) {
        if (replay->options.verify) {
            err = rn_verify_produced(&replay->verify, replay->reader.number, (ration_text){out->data, out->size - 1});
        } else if (replay->options.write != NULL &&
                   replay->options.write(replay->options.ctx, out->data, out->size) != 0) {
            err = RATION_ERR_IO;
        }
    }
    rn_output_clear(out);
    return err;
}

/* Tells every event that is there; an id whose request has come to an end is free again. */
static int replay_events(rn_replay *replay)
{
    ration_event event;

    while (replay->decider->ops->next_event(replay->decider, &event)) {
        rn_trace_id *const id = event.user;

        if (event.type >= RATION_EVENT_PENALTY)
            continue;
        rn_trace_write_event(&replay->out, rn_trace_id_text(id), &event, &replay->names);
        if (event.type == RATION_EVENT_REFUSED || event.type == RATION_EVENT_LOST)
            rn_ids_remove(&replay->ids, id);

        const int err = replay_emit(replay);

        if (err != RATION_OK)
            return err;
    }
    return RATION_OK;
}

/* Parse the config that a line is. */
static int config_parse(rn_replay *replay, const rn_trace_line *line, ration_config **out)
{
    const ration_config_options options = {
        .allocator = replay->mem,
        .recording = true,
        .first_line = (uint32_t)line->number,
    };
    const char *const name = replay->options.name != NULL ? replay->options.name : "trace";

    return ration_config_parse(line->text, name, &options, out, &replay->faults);
}

static int replay_config(rn_replay *replay, const rn_trace_line *line)
{
    replay->config_line = line->number;
    replay->has_started_at = line->has_started_at;
    replay->started_at = line->started_at;
    if (replay->options.rules != NULL)
        return RATION_OK;

    const int err = config_parse(replay, line, &replay->config);

    if (err == RATION_OK)
        replay->rules = ration_config_rules(replay->config);
    return err;
}

/* The engine, at the time of the first operation. */
static int replay_start(rn_replay *replay, const rn_trace_line *line)
{
    ration_fault fault;

    if (replay->rules == NULL) {
        rn_trace_fault_set(&replay->fault, line->number, line->text, 0,
                           "no config: the trace does not begin with a config line, and none was given beside it");
        return RATION_ERR_SYNTAX;
    }

    const ration_engine_options options = {
        .rules = replay->rules, .allocator = replay->mem, .sink = replay->options.sink};
    const ration_time start = replay->has_started_at ? replay->started_at : line->at;
    const int err = ration_engine_new(&options, start, &replay->engine, &fault);

    if (err == RATION_ERR_CONFIG) {
        rn_trace_fault_set(&replay->fault, replay->config_line > 0 ? replay->config_line : line->number, line->text, 0,
                           "the config's %s: %s", fault.path, fault.text);
        return RATION_ERR_SYNTAX;
    }
    if (err != RATION_OK)
        return err;

    rn_decider *const decider = rn_engine_decider_init(&replay->engine_decider, replay->engine);

    if (replay->options.decide != NULL)
        return replay->options.decide(replay->options.decide_ctx, decider, replay->rules, start, &replay->decider);
    replay->decider = decider;
    return RATION_OK;
}

/* What goes past the decider, to the engine. */
static bool is_for_the_engine(rn_trace_op op)
{
    return op == RN_TRACE_STATE || op == RN_TRACE_STEP || op == RN_TRACE_RELOAD;
}

static int replay_acquire(rn_replay *replay, const rn_trace_line *line)
{
    ration_request request = line->request;
    ration_decision decision;

    if (rn_ids_find(&replay->ids, line->id) != NULL) {
        rn_trace_fault_set(&replay->fault, line->number, line->text, line->id_at,
                           "this id is in use: its request still waits or its lease is still held");
        return RATION_ERR_SYNTAX;
    }

    rn_trace_id *const id = rn_ids_new(&replay->ids, line->id);

    if (id == NULL)
        return RATION_ERR_NOMEM;
    request.user = id;

    const int err = replay->decider->ops->submit(replay->decider, line->at, &request, &decision);

    if (err != RATION_OK) {
        rn_ids_drop(&replay->ids, id);
        if (err == RATION_ERR_NOMEM)
            return err;
        rn_trace_fault_set(&replay->fault, line->number, line->text, 0, "the engine does not take this request: %s",
                           ration_err_text(err));
        return RATION_ERR_SYNTAX;
    }
    rn_trace_write_decision(&replay->out, line->at, rn_trace_op_name(line->op), line->id, &decision, &replay->names);
    if (decision.result != RATION_REFUSED)
        return rn_ids_add(&replay->ids, id, decision.lease, decision.serial);
    rn_ids_drop(&replay->ids, id);
    return RATION_OK;
}

static int replay_check(rn_replay *replay, const rn_trace_line *line)
{
    ration_decision decision;
    const int err = replay->decider->ops->check(replay->decider, line->at, &line->request, line->check, &decision);

    if (err == RATION_ERR_NOMEM)
        return err;
    if (err != RATION_OK) {
        rn_trace_fault_set(&replay->fault, line->number, line->text, 0, "the engine does not take this request: %s",
                           ration_err_text(err));
        return RATION_ERR_SYNTAX;
    }
    rn_trace_write_decision(&replay->out, line->at, rn_trace_op_name(line->op), line->id, &decision, &replay->names);
    return RATION_OK;
}

/* The operations on a lease: what they do, what they answer, whether the lease ends by it. */
static int replay_lease(rn_replay *replay, const rn_trace_line *line)
{
    static const char *const done[RN_TRACE_OP_COUNT] = {
        [RN_TRACE_OBSERVE] = "observed",
        [RN_TRACE_RELEASE] = "released",
        [RN_TRACE_RENEW] = "renewed",
        [RN_TRACE_CANCEL] = "cancelled",
    };
    rn_decider *const decider = replay->decider;
    rn_trace_id *const id = rn_ids_find(&replay->ids, line->id);
    int err = RATION_ERR_UNKNOWN;

    if (id != NULL && line->op == RN_TRACE_OBSERVE) {
        err = decider->ops->observe(decider, line->at, id->lease, &line->response);
    } else if (id != NULL && line->op == RN_TRACE_RELEASE) {
        err = decider->ops->release(decider, line->at, id->lease, &line->completion);
    } else if (id != NULL && line->op == RN_TRACE_RENEW) {
        err = decider->ops->renew(decider, line->at, id->lease);
    } else if (id != NULL) {
        err = decider->ops->cancel(decider, line->at, id->lease);
    }

    if (err != RATION_OK && err != RATION_ERR_UNKNOWN)
        return err;
    rn_trace_write_answer(&replay->out, line->at, rn_trace_op_name(line->op), line->id,
                          err == RATION_OK ? done[line->op] : "unknown");
    if (err == RATION_OK && (line->op == RN_TRACE_RELEASE || line->op == RN_TRACE_CANCEL))
        rn_ids_remove(&replay->ids, id);
    return RATION_OK;
}

static int replay_report(rn_replay *replay, const rn_trace_line *line)
{
    static const ration_report_kind kinds[RN_TRACE_OP_COUNT] = {
        [RN_TRACE_STATS] = RATION_REPORT_STATS,           [RN_TRACE_LIMITS] = RATION_REPORT_LIMITS,
        [RN_TRACE_LEASES] = RATION_REPORT_LEASES,         [RN_TRACE_FAIRNESS] = RATION_REPORT_FAIRNESS,
        [RN_TRACE_ALLOCATION] = RATION_REPORT_ALLOCATION,
    };
    const ration_report_kind kind = kinds[line->op];
    rn_trace_report report;

    rn_trace_report_begin(&report, &replay->out, line->at, kind, &replay->names);

    const int err = replay->decider->ops->report(replay->decider, line->at, kind, &report.reporter);

    rn_trace_report_end(&report);
    return err;
}

static int replay_health(rn_replay *replay, const rn_trace_line *line)
{
    const int err = replay->decider->ops->health(replay->decider, line->at, line->account, line->ok);

    if (err != RATION_OK && err != RATION_ERR_UNKNOWN)
        return err;
    rn_trace_write_health_answer(&replay->out, line->at, line->account, line->ok,
                                 err == RATION_OK ? "noted" : "unknown");
    return RATION_OK;
}

static int replay_state(rn_replay *replay, const rn_trace_line *line)
{
    const int err = ration_engine_load(replay->engine, line->at, &line->state, NULL);

    if (err == RATION_ERR_INVALID) {
        rn_trace_fault_set(&replay->fault, line->number, line->text, 0,
                           "the engine does not take this state: it comes before the first request, and its records "
                           "are of the past and in their ranges");
        return RATION_ERR_SYNTAX;
    }
    if (err == RATION_OK)
        rn_trace_write_state_answer(&replay->out, line->at);
    return err;
}

static void forget(void *ctx, const ration_record *record)
{
    (void)ctx;
    (void)record;
}

static int replay_save(rn_replay *replay, const rn_trace_line *line)
{
    const int err = ration_engine_save(replay->engine, line->at, line->all, NULL, forget);

    /* With rules in which nothing is strict the engine keeps nothing, and no decision would rest on it. */
    return err == RATION_ERR_INVALID ? RATION_OK : err;
}

static int replay_reload(rn_replay *replay, const rn_trace_line *line)
{
    const ration_call call = {.op = RATION_OP_RELOAD, .at = line->at};
    ration_config *config = NULL;
    ration_fault fault;
    int err = RATION_OK;

    /* Rules that count instead of the trace's own count to its end. */
    if (replay->options.rules == NULL) {
        err = config_parse(replay, line, &config);
        if (err != RATION_OK)
            return err;
        err = ration_engine_reload(replay->engine, line->at, ration_config_rules(config), &fault);
    }
    if (err == RATION_ERR_CONFIG) {
        rn_trace_fault_set(&replay->fault, line->number, line->text, 0, "the config's %s: %s", fault.path, fault.text);
        err = RATION_ERR_SYNTAX;
    }
    if (err == RATION_OK)
        rn_trace_write_operate_answer(&replay->out, &call, RATION_OK);
    ration_config_free(config);
    return err;
}

/* What operators do. */
static int replay_operate(rn_replay *replay, const rn_trace_line *line)
{
    static const ration_op ops[RN_TRACE_OP_COUNT] = {
        [RN_TRACE_PAUSE] = RATION_OP_PAUSE, [RN_TRACE_RESUME] = RATION_OP_RESUME, [RN_TRACE_RESET] = RATION_OP_RESET,
        [RN_TRACE_GRANT] = RATION_OP_GRANT, [RN_TRACE_DRAIN] = RATION_OP_DRAIN,
    };
    const ration_call call = {
        .op = ops[line->op],
        .at = line->at,
        .counter = line->op == RN_TRACE_DRAIN ? NULL : &line->counter,
        .units = line->units,
    };
    const int err = replay->decider->ops->operate(replay->decider, line->at, call.op, call.counter, call.units);

    if (err == RATION_ERR_INVALID || err == RATION_ERR_RANGE) {
        rn_trace_fault_set(&replay->fault, line->number, line->text, 0, "the engine does not do this: %s",
                           ration_err_text(err));
        return RATION_ERR_SYNTAX;
    }
    if (err != RATION_OK && err != RATION_ERR_UNKNOWN)
        return err;
    rn_trace_write_operate_answer(&replay->out, &call, err);
    return RATION_OK;
}

static int replay_call(rn_replay *replay, const rn_trace_line *line)
{
    if (replay->options.decide != NULL && is_for_the_engine(line->op)) {
        rn_trace_fault_set(&replay->fault, line->number, line->text, 0, "%s is for an engine alone",
                           rn_trace_op_name(line->op));
        return RATION_ERR_SYNTAX;
    }
    switch (line->op) {
    case RN_TRACE_ACQUIRE:
        return replay_acquire(replay, line);
    case RN_TRACE_CHECK:
        return replay_check(replay, line);
    case RN_TRACE_OBSERVE:
    case RN_TRACE_RELEASE:
    case RN_TRACE_RENEW:
    case RN_TRACE_CANCEL:
        return replay_lease(replay, line);
    case RN_TRACE_STATS:
    case RN_TRACE_LIMITS:
    case RN_TRACE_LEASES:
    case RN_TRACE_FAIRNESS:
    case RN_TRACE_ALLOCATION:
        return replay_report(replay, line);
    case RN_TRACE_HEALTH:
        return replay_health(replay, line);
    case RN_TRACE_STATE:
        return replay_state(replay, line);
    case RN_TRACE_SAVE:
        return replay_save(replay, line);
    case RN_TRACE_KEPT:
        return ration_engine_kept(replay->engine, line->at);
    case RN_TRACE_STEP:
        return ration_engine_step(replay->engine, line->at, line->by_us);
    case RN_TRACE_PAUSE:
    case RN_TRACE_RESUME:
    case RN_TRACE_RESET:
    case RN_TRACE_GRANT:
    case RN_TRACE_DRAIN:
        return replay_operate(replay, line);
    case RN_TRACE_RELOAD:
        return replay_reload(replay, line);
    case RN_TRACE_ADVANCE:
    case RN_TRACE_BLANK:
    case RN_TRACE_OUTPUT:
    case RN_TRACE_CONFIG:
    case RN_TRACE_OP_COUNT:
        break;
    }
    return RATION_OK;
}

static int replay_operation(rn_replay *replay, const rn_trace_line *line)
{
    /* The time that a step has left out is not to be passed through. */
    const ration_time until = line->op == RN_TRACE_STEP ? ration_time_of(rn_sub(line->at.us, line->by_us)) : line->at;
    int err = replay->decider != NULL ? RATION_OK : replay_start(replay, line);

    if (err == RATION_OK && (line->op != RN_TRACE_STEP || rn_time_before(replay->last, until)))
        err = replay->decider->ops->advance(replay->decider, until);
    if (err == RATION_OK)
        err = replay_events(replay);
    if (err == RATION_OK)
        err = replay_call(replay, line);
    if (err == RATION_OK)
        err = replay_emit(replay);
    if (err == RATION_OK)
        err = replay_events(replay);
    replay->last = line->at;
    return err;
}

static int replay_line(rn_replay *replay, ration_text text)
{
    rn_trace_line line;
    const int err = rn_trace_read(&replay->reader, text, &line, &replay->fault);

    if (err != RATION_OK || line.op == RN_TRACE_BLANK)
        return err;
    if (line.op == RN_TRACE_OUTPUT)
        return replay->options.verify ? rn_verify_recorded(&replay->verify, line.number, line.text) : RATION_OK;
    if (line.op == RN_TRACE_CONFIG)
        return replay_config(replay, &line);
    return replay_operation(replay, &line);
}

/* A part of a line, or a whole one. Whole lines that come in one piece are not copied. */
static int replay_piece(rn_replay *replay, ration_text piece, bool whole)
{
    rn_output *const line = &replay->line;

    if (whole && line->size == 0)
        return replay_line(replay, piece);
    rn_output_raw(line, piece);
    if (line->err == RATION_ERR_FULL) {
        const ration_text none = {NULL, 0};

        rn_trace_fault_set(&replay->fault, replay->reader.number + 1, none, 0, "a line of more than %zu bytes",
                           RN_TRACE_LINE_MAX);
        return RATION_ERR_SYNTAX;
    }
    if (line->err != RATION_OK || !whole)
        return line->err;

    const int err = replay_line(replay, (ration_text){line->data, line->size});

    rn_output_clear(line);
    return err;
}

int rn_replay_feed(rn_replay *replay, const char *data, size_t size)
{
    while (size > 0 && replay->err == RATION_OK && !replay->verify.differs) {
        const char *const end = memchr(data, '\n', size);
        const size_t used = end != NULL ? (size_t)(end - data) : size;

        replay->err = replay_piece(replay, (ration_text){data, used}, end != NULL);
        data += end != NULL ? used + 1 : used;
        size -= end != NULL ? used + 1 : used;
    }
    return replay->err;
}

int rn_replay_finish(rn_replay *replay)
{
    if (replay->err == RATION_OK && !replay->verify.differs && replay->line.size > 0)
        replay->err = replay_piece(replay, (ration_text){NULL, 0}, true);
    if (replay->err == RATION_OK)
        rn_verify_end(&replay->verify);
    return replay->err;
}
