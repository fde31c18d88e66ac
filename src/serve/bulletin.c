/* SPDX-License-Identifier: MIT */
/*
 * One line of JSON an event, written once and sent to everybody.
 *
 * Ids are one count for all listeners, from the start of the process: a gap in them is what was dropped. There is no
 * memory of past events: who comes back reads the status and listens on.
 *
 * Invariant: a listener in the list has an inbound that lives; it leaves the list before the inbound dies.
 */
#include "serve/bulletin.h"

#include <assert.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/reply.h"

#define EVENT_MAX ((size_t)64 << 10)

typedef struct listener {
    TAILQ_ENTRY(listener) link;
    rn_inbound *in;
    uint32_t types;  /* that it wants, a bit for each */
    uint64_t missed; /* events, since the last one it got */
} listener;

struct rn_bulletin {
    rn_loop *loop;
    TAILQ_HEAD(listener_list, listener) listeners;
    rn_bulletin_counts counts;
    rn_timer pulse;
    rn_output event;
    uint32_t type; /* of the event that is written */
    bool closed;
};

/* ---- types: each has the bit of its place here */

static const char *const types[] = {"call",     "refused", "penalty",  "limit", "breaker",
                                    "interval", "plan",    "operator", "fleet"};

static uint32_t type_bit(ration_text name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (rn_text_is(name, types[i]))
            return UINT32_C(1) << i;
    }
    return 0;
}

bool rn_bulletin_types(ration_text query, uint32_t *out)
{
    static const ration_text prefix = {"?types=", 7};
    uint32_t wanted = 0;

    *out = UINT32_MAX;
    if (query.size <= 1)
        return true;
    if (!rn_text_eq(rn_text_slice(query, 0, prefix.size), prefix))
        return false;
    for (size_t from = prefix.size, end; from <= query.size; from = end + 1) {
        const ration_text rest = rn_text_slice(query, from, query.size);
        size_t size = rest.size;

        (void)rn_text_find(rest, (ration_text){",", 1}, &size);
        end = from + size;
        const uint32_t bit = type_bit(rn_text_slice(rest, 0, size));
        if (bit == 0)
            return false;
        wanted |= bit;
    }
    *out = wanted;
    return true;
}

/* ---- those who listen */

static listener *listener_find(const rn_bulletin *bulletin, const rn_inbound *in)
{
    listener *one;

    if (bulletin == NULL)
        return NULL;
    TAILQ_FOREACH (one, &bulletin->listeners, link) {
        if (one->in == in)
            return one;
    }
    return NULL;
}

static void listener_free(rn_bulletin *bulletin, listener *one)
{
    TAILQ_REMOVE(&bulletin->listeners, one, link);
    bulletin->counts.listeners--;
    rn_mem_free(rn_mem_default(), one);
    if (bulletin->counts.listeners == 0)
        rn_timer_stop(&bulletin->pulse);
}

static bool listener_takes(const listener *one, size_t size)
{
    return rn_inbound_queued(one->in) + size <= RN_BULLETIN_QUEUE;
}

/* Bytes that are whole events or comments; false: they were not taken. */
static bool listener_write(const listener *one, ration_text bytes)
{
    return listener_takes(one, bytes.size) && rn_inbound_write(one->in, bytes) >= 0;
}

/* How many it has missed; false: it does not take that either. */
static bool listener_catch_up(listener *one)
{
    char line[96];
    rn_builder b;

    if (one->missed == 0)
        return true;
    rn_builder_init(&b, line, sizeof line);
    rn_builder_str(&b, "event: dropped\ndata: {\"type\":\"dropped\",\"count\":");
    rn_builder_int(&b, one->missed > INT64_MAX ? INT64_MAX : (int64_t)one->missed);
    rn_builder_str(&b, "}\n\n");
    if (!listener_write(one, (ration_text){b.data, b.used}))
        return false;
    one->missed = 0;
    return true;
}

/* ---- events */

static bool is_wanted(const rn_bulletin *bulletin, uint32_t type)
{
    const listener *one;

    if (bulletin == NULL)
        return false;
    TAILQ_FOREACH (one, &bulletin->listeners, link) {
        if ((one->types & type) != 0)
            return true;
    }
    return false;
}

bool rn_bulletin_heard(const rn_bulletin *bulletin, const char *type)
{
    return is_wanted(bulletin, type_bit(ration_text_of(type)));
}

rn_output *rn_bulletin_begin(rn_bulletin *bulletin, const char *type, ration_time at)
{
    const uint32_t bit = type_bit(ration_text_of(type));

    assert(bit != 0); /* a type that nobody could ask for */
    if (!is_wanted(bulletin, bit))
        return NULL;

    rn_output *out = &bulletin->event;
    char id[24];
    rn_builder b;

    bulletin->type = bit;
    bulletin->counts.told++;
    rn_builder_init(&b, id, sizeof id);
    rn_builder_int(&b, (int64_t)bulletin->counts.told);
    rn_output_clear(out);
    rn_output_raw(out, ration_text_of("id: "));
    rn_output_raw(out, (ration_text){b.data, b.used});
    rn_output_raw(out, ration_text_of("\nevent: "));
    rn_output_raw(out, ration_text_of(type));
    rn_output_raw(out, ration_text_of("\ndata: "));
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "type", type);
    rn_output_ms(out, "at", at.us);
    return out;
}

void rn_bulletin_tell(rn_bulletin *bulletin)
{
    rn_output *out = &bulletin->event;
    listener *one;

    rn_output_close(out, '}');
    rn_output_raw(out, ration_text_of("\n\n"));
    TAILQ_FOREACH (one, &bulletin->listeners, link) {
        if ((one->types & bulletin->type) == 0)
            continue;
        if (out->err == RATION_OK && listener_catch_up(one) && listener_write(one, (ration_text){out->data, out->size}))
            continue;
        one->missed++;
        bulletin->counts.dropped++;
    }
    (void)rn_timer_set(&bulletin->pulse, rn_time_add(rn_loop_now(bulletin->loop), RN_BULLETIN_PULSE_US));
}

static void on_pulse(void *user, ration_time now)
{
    rn_bulletin *bulletin = user;
    listener *one;

    TAILQ_FOREACH (one, &bulletin->listeners, link)
        (void)listener_write(one, ration_text_of(":\n\n"));
    if (!TAILQ_EMPTY(&bulletin->listeners))
        (void)rn_timer_set(&bulletin->pulse, rn_time_add(now, RN_BULLETIN_PULSE_US));
}

/* ---- coming and going */

static void turn_away(rn_bulletin *bulletin, rn_inbound *in)
{
    const rn_problem problem = {
        .status = 503,
        .name = "too_many_listeners",
        .title = "Nobody else can listen",
        .detail = ration_text_of(bulletin->closed ? "the process is shutting down" : "as many listen already as may"),
        .waited_us = RATION_UNSET};

    bulletin->counts.turned_away++;
    rn_reply_problem(in, &problem, NULL);
}

void rn_bulletin_join(rn_bulletin *bulletin, rn_inbound *in, uint32_t wanted)
{
    const rn_http_field fields[] = {
        {ration_text_of("Content-Type"), ration_text_of("text/event-stream; charset=utf-8")},
        {ration_text_of("Cache-Control"), ration_text_of("no-store")},
    };
    const rn_response response = {
        .status = 200, .fields = {fields, sizeof fields / sizeof fields[0]}, .body_bytes = RN_LENGTH_UNKNOWN};
    listener *one = NULL;

    if (!bulletin->closed && bulletin->counts.listeners < RN_BULLETIN_LISTENERS_MAX)
        one = rn_mem_zalloc(rn_mem_default(), 1, sizeof *one);
    if (one == NULL) {
        turn_away(bulletin, in);
        return;
    }
    if (rn_inbound_start(in, &response) != RATION_OK) {
        rn_inbound_abort(in);
        rn_mem_free(rn_mem_default(), one);
        return;
    }
    one->in = in;
    one->types = wanted;
    TAILQ_INSERT_TAIL(&bulletin->listeners, one, link);
    bulletin->counts.listeners++;
    /* A first byte, so that the client's library says that it is connected. */
    (void)listener_write(one, ration_text_of(":\n\n"));
    (void)rn_timer_set(&bulletin->pulse, rn_time_add(rn_loop_now(bulletin->loop), RN_BULLETIN_PULSE_US));
}

bool rn_bulletin_gone(rn_bulletin *bulletin, const rn_inbound *in)
{
    listener *one = listener_find(bulletin, in);

    if (one != NULL)
        listener_free(bulletin, one);
    return one != NULL;
}

bool rn_bulletin_drained(rn_bulletin *bulletin, const rn_inbound *in)
{
    listener *one = listener_find(bulletin, in);

    if (one != NULL)
        (void)listener_catch_up(one);
    return one != NULL;
}

/* ---- the whole */

int rn_bulletin_new(rn_loop *loop, rn_bulletin **out)
{
    rn_bulletin *bulletin = rn_mem_zalloc(rn_mem_default(), 1, sizeof *bulletin);

    if (bulletin == NULL)
        return RATION_ERR_NOMEM;
    bulletin->loop = loop;
    TAILQ_INIT(&bulletin->listeners);
    rn_output_init(&bulletin->event, rn_mem_default(), EVENT_MAX);
    rn_timer_init(&bulletin->pulse, loop, on_pulse, bulletin);
    *out = bulletin;
    return RATION_OK;
}

void rn_bulletin_close(rn_bulletin *bulletin)
{
    bulletin->closed = true;
    while (!TAILQ_EMPTY(&bulletin->listeners)) {
        listener *one = TAILQ_FIRST(&bulletin->listeners);

        rn_inbound_finish(one->in, (rn_http_fields){NULL, 0});
        listener_free(bulletin, one);
    }
}

void rn_bulletin_free(rn_bulletin *bulletin)
{
    if (bulletin == NULL)
        return;
    while (!TAILQ_EMPTY(&bulletin->listeners)) {
        listener *one = TAILQ_FIRST(&bulletin->listeners);

        rn_inbound_abort(one->in);
        listener_free(bulletin, one);
    }
    rn_timer_stop(&bulletin->pulse);
    rn_output_fini(&bulletin->event);
    rn_mem_free(rn_mem_default(), bulletin);
}

rn_bulletin_counts rn_bulletin_look(const rn_bulletin *bulletin)
{
    return bulletin != NULL ? bulletin->counts : (rn_bulletin_counts){0};
}
