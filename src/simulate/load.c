/* SPDX-License-Identifier: MIT */
/*
 * The load: an open loop of calls. Their instants come from the schedule and never from the answers, as with real
 * traffic: a slow or refusing server does not make its clients ask for less.
 *
 * One timer walks through the schedule. Each call that is on its way is one `load_call`, in place in an array as long
 * as the schedule, so that a result has its call's index and nothing is allocated while it plays. A call that is to be
 * made again has a timer of its own.
 *
 * Invariants: a call has an `up` exactly as long as its upstream may still call a handler; its timer is set only when
 * it has none.
 */
#include "simulate/load.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define TARGET_MAX 256
#define FIELDS_MAX 5
#define REPEATS_MAX 600

typedef struct load_call {
    rn_load *load;
    rn_upstream *up;
    rn_load_result *result;
    const rn_scheduled_call *scheduled;
    int64_t lost_us; /* before it was made again */
    rn_timer again;
} load_call;

struct rn_load {
    rn_load_options options;
    const ration_allocator *mem;
    rn_origin *origin;
    rn_timer timer;
    rn_deferred done;
    ration_time start;
    size_t next; /* the first call of the schedule that has not left */
    size_t finished;
    load_call *calls;
    rn_load_result *results;
};

static void load_done(rn_deferred *work)
{
    rn_load *load = (rn_load *)(void *)((char *)work - offsetof(rn_load, done));

    load->options.on_done(load->options.user, load);
}

static void call_finish(load_call *call, int status)
{
    rn_load *load = call->load;

    call->up = NULL;
    call->result->status = status;
    call->result->done_us = rn_loop_now(load->options.loop).us - load->start.us;
    load->finished++;
    if (load->finished == load->options.schedule->count)
        rn_loop_defer(load->options.loop, &load->done);
}

static void on_head(void *user, rn_upstream *up, const rn_http_head *head)
{
    load_call *call = user;
    const ration_text waited = rn_http_find(head->fields, "Ration-Waited");

    (void)up;
    call->result->status = head->status;
    int64_t waited_us = 0;
    if (waited.data != NULL && rn_parse_ms(waited, &waited_us) == 0)
        call->result->waited_us = rn_add(call->lost_us, waited_us);
}

static void on_body(void *user, rn_upstream *up, ration_text bytes)
{
    (void)user;
    (void)up;
    (void)bytes;
}

static void on_end(void *user, rn_upstream *up, rn_http_fields trailers)
{
    load_call *call = user;

    (void)up;
    (void)trailers;
    call_finish(call, call->result->status);
}

static void on_error(void *user, rn_upstream *up, rn_upstream_fault fault, const char *text)
{
    load_call *call = user;
    const rn_load_options *options = &call->load->options;
    const ration_time again = rn_time_add(rn_loop_now(options->loop), options->again_us);

    (void)up;
    (void)fault;
    (void)text;
    call->up = NULL;
    if (options->again_us == 0 || call->result->repeats == REPEATS_MAX || rn_timer_set(&call->again, again) != 0)
        call_finish(call, 0);
}

static const rn_upstream_handlers handlers = {
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
    .on_error = on_error,
};

/* Send the call; one that cannot even be started has failed. */
static void call_start(load_call *call)
{
    const rn_load_options *options = &call->load->options;
    const rn_stream_spec *stream = call->scheduled->stream;
    rn_http_field fields[FIELDS_MAX];
    size_t count = 0;
    char target[TARGET_MAX], wait[32];
    rn_builder b;

    if (options->authorization != NULL)
        fields[count++] = (rn_http_field){ration_text_of("Authorization"), ration_text_of(options->authorization)};
    if (options->ration_fields) {
        rn_builder_init(&b, wait, sizeof wait);
        rn_builder_int(&b, options->wait_us / 1000);
        rn_builder_str(&b, "ms");
        fields[count++] = (rn_http_field){ration_text_of("Ration-Timeout"), ration_text_of(wait)};
        fields[count++] = (rn_http_field){ration_text_of("Ration-Tenant"), ration_text_of(stream->tenant)};
        fields[count++] =
            (rn_http_field){ration_text_of("Ration-Priority"), ration_text_of(ration_priority_name(stream->priority))};
    }
    rn_builder_init(&b, target, sizeof target);
    rn_builder_str(&b, options->prefix);
    rn_builder_str(&b, stream->path);

    const rn_upstream_request request = {
        .origin = call->load->origin,
        .method = ration_text_of("GET"),
        .target = ration_text_of(target),
        .fields = {fields, count},
        .repeatable = true,
    };
    if (b.full || rn_upstream_start(options->pool, &request, &handlers, call, &call->up) != 0)
        call_finish(call, 0);
}

static void call_repeat(void *user, ration_time now)
{
    load_call *call = user;

    call->result->repeats++;
    call->result->status = 0;
    call->lost_us = rn_sub(now.us, rn_add(call->load->start.us, call->result->sent_us));
    call_start(call);
}

static void load_turn(void *user, ration_time now)
{
    rn_load *load = user;
    const rn_schedule *schedule = load->options.schedule;

    while (load->next < schedule->count && load->start.us + schedule->calls[load->next].at_us <= now.us) {
        const size_t index = load->next++;
        load_call *call = &load->calls[index];

        *call = (load_call){.load = load, .result = &load->results[index], .scheduled = &schedule->calls[index]};
        rn_timer_init(&call->again, load->options.loop, call_repeat, call);
        call->result->sent_us = now.us - load->start.us;
        call_start(call);
    }
    if (load->next < schedule->count)
        (void)rn_timer_set(&load->timer, rn_time_add(load->start, schedule->calls[load->next].at_us));
}

int rn_load_new(const rn_load_options *options, rn_load **out)
{
    const ration_allocator *mem = rn_mem_default();
    const rn_origin_options origin = {.host = options->host, .port = options->port};
    const size_t count = options->schedule->count;

    if (count == 0)
        return RATION_ERR_INVALID;

    rn_load *load = rn_mem_zalloc(mem, 1, sizeof *load);
    if (load == NULL)
        return RATION_ERR_NOMEM;
    load->options = *options;
    load->mem = mem;
    load->start = rn_loop_now(options->loop);
    load->done.fn = load_done;
    load->calls = rn_mem_zalloc(mem, count, sizeof *load->calls);
    load->results = rn_mem_zalloc(mem, count, sizeof *load->results);
    rn_timer_init(&load->timer, options->loop, load_turn, load);

    int err = load->calls == NULL || load->results == NULL ? RATION_ERR_NOMEM : 0;
    if (err == 0)
        err = rn_origin_acquire(options->pool, &origin, &load->origin);
    if (err == 0)
        err = rn_timer_set(&load->timer, rn_time_add(load->start, options->schedule->calls[0].at_us));
    if (err != 0) {
        rn_load_free(load);
        return err;
    }
    *out = load;
    return 0;
}

void rn_load_free(rn_load *load)
{
    if (load == NULL)
        return;
    rn_timer_stop(&load->timer);
    rn_loop_forget(load->options.loop, &load->done);
    for (size_t i = 0; load->calls != NULL && i < load->next; i++) {
        rn_timer_stop(&load->calls[i].again);
        if (load->calls[i].up != NULL)
            rn_upstream_abort(load->calls[i].up);
    }
    rn_origin_release(load->origin);
    rn_mem_free(load->mem, load->calls);
    rn_mem_free(load->mem, load->results);
    rn_mem_free(load->mem, load);
}

const rn_load_result *rn_load_results(const rn_load *load)
{
    return load->results;
}

size_t rn_load_finished(const rn_load *load)
{
    return load->finished;
}
