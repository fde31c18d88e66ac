/* SPDX-License-Identifier: MIT */
/*
 * The gateway: what all calls share.
 *
 * One listener, one pool of connections per provider, one timer for the decider's next deadline. Whoever calls the
 * decider says `rn_gateway_touch`; at the end of the turn its events are taken, once, from the bottom of the stack, so
 * that an event which starts or ends a call never runs inside another one's.
 *
 * A window that ends, or a circuit that opens, may have an event for each of thousands of waiters: a turn takes a
 * bounded number of them, and others get a turn in between.
 *
 * Invariant: between turns the decider has no event left, or the next turn is due at once; and the timer stands at its
 * next deadline.
 */
#include "serve/gateway.h"

#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/exchange.h"
#include "serve/history.h"

#define BREAKER_LINES 20 /* a second */
#define EVENTS_A_TURN 500
#define TARGET_MAX_BYTES ((size_t)256 << 10)

/* ---- the decider's events */

static void penalty_log(rn_gateway *gw, const ration_event *event)
{
    const ration_decision *d = &event->decision;
    char key[256], until[48];
    rn_builder b;

    rn_builder_init(&b, key, sizeof key);
    rn_builder_text(&b, d->key);
    rn_builder_init(&b, until, sizeof until);
    rn_builder_instant(&b, d->retry_at);
    rn_log_gated(gw->log, &gw->penalty_gate, event->at, "warn", "a long penalty", "limit", d->limit, "key", key,
                 "until", until, NULL);
}

/* A decrease, which is what an operator wants to know of; increases are many and small. */
static void limit_log(rn_gateway *gw, const ration_event *event)
{
    const ration_decision *d = &event->decision;
    char key[256], limit[24];
    rn_builder b;

    if (event->value >= event->before)
        return;
    rn_builder_init(&b, key, sizeof key);
    rn_builder_text(&b, d->key);
    rn_builder_init(&b, limit, sizeof limit);
    rn_builder_micro(&b, event->value);
    rn_log_gated(gw->log, &gw->limit_gate, event->at, "warn", "an adaptive limit went down", "limit", d->limit, "key",
                 key, "to", limit, "cause", event->cause, NULL);
}

/* Each change, unless there are very many. */
static void breaker_log(rn_gateway *gw, const ration_event *event)
{
    static const char *const messages[] = {
        [RATION_BREAKER_CLOSED] = "circuit closed",
        [RATION_BREAKER_OPEN] = "circuit open",
        [RATION_BREAKER_HALF_OPEN] = "circuit half-open",
    };
    const ration_decision *d = &event->decision;
    const bool timed = rn_time_known(d->retry_at);
    char key[256], until[48];
    rn_builder b;

    rn_builder_init(&b, key, sizeof key);
    rn_builder_text(&b, d->key);
    rn_builder_init(&b, until, sizeof until);
    if (timed)
        rn_builder_instant(&b, d->retry_at);
    rn_log_gated(gw->log, &gw->breaker_gate, event->at, event->breaker == RATION_BREAKER_OPEN ? "warn" : "info",
                 messages[event->breaker], "key", key, "cause", event->cause, "retry_at", timed ? until : NULL, NULL);
}

/* The same for those who listen. */
static void event_tell(rn_gateway *gw, const ration_event *event)
{
    const ration_decision *d = &event->decision;
    const char *type = event->type == RATION_EVENT_PENALTY ? "penalty"
                       : event->type == RATION_EVENT_LIMIT ? "limit"
                                                           : "breaker";
    rn_output *out = rn_bulletin_begin(gw->bulletin, type, event->at);

    if (out == NULL)
        return;
    if (d->limit != NULL)
        rn_output_str(out, "limit", d->limit);
    rn_output_text(out, "key", d->key);
    if (event->type == RATION_EVENT_LIMIT) {
        rn_output_micro(out, "current", event->value);
        rn_output_micro(out, "before", event->before);
    } else if (event->type == RATION_EVENT_BREAKER) {
        rn_output_str(out, "state", ration_circuit_state_name(event->breaker));
    }
    if (rn_time_known(d->retry_at) && event->type != RATION_EVENT_LIMIT)
        rn_output_ms(out, event->type == RATION_EVENT_PENALTY ? "until" : "retryAt", d->retry_at.us);
    if (event->cause != NULL)
        rn_output_str(out, "cause", event->cause);
    rn_bulletin_tell(gw->bulletin);
}

void rn_gateway_turned_away(rn_gateway *gw, ration_reason reason)
{
    gw->counts.refusals[reason]++;
}

void rn_gateway_token_refused(rn_gateway *gw)
{
    gw->counts.tokens_refused++;
    rn_log_gated(gw->log, &gw->token_gate, rn_loop_now(gw->loop), "warn", "a token is missing or nobody's", NULL);
}

void rn_gateway_operated(rn_gateway *gw, const char *did, const ration_counter_name *counter, int64_t units)
{
    char limit[128], key[256], amount[32];
    rn_builder b;

    rn_builder_init(&b, limit, sizeof limit);
    rn_builder_text(&b, counter != NULL ? counter->limit : (ration_text){NULL, 0});
    rn_builder_init(&b, key, sizeof key);
    rn_builder_text(&b, counter != NULL ? counter->key : (ration_text){NULL, 0});
    rn_builder_init(&b, amount, sizeof amount);
    rn_builder_micro(&b, units);
    rn_log_line(gw->log, rn_loop_now(gw->loop), "warn", "an operator acted", "did", did, "limit",
                counter != NULL ? limit : NULL, "key", counter != NULL ? key : NULL, "units", units > 0 ? amount : NULL,
                NULL);
}

void rn_gateway_refused(rn_gateway *gw, const rn_refused *refused)
{
    const ration_decision *d = refused->decision;
    const ration_time now = rn_loop_now(gw->loop);
    char account[128];
    rn_builder b;

    rn_builder_init(&b, account, sizeof account);
    rn_builder_text(&b, refused->account);
    rn_log_gated(gw->log, &gw->refusal_gates[d->reason], now, "warn", "refused", "reason",
                 ration_reason_name(d->reason), "account", b.used > 0 ? account : NULL, "limit", d->limit, NULL);
    rn_refusals_add(gw->refusals, now, refused);

    rn_output *out = rn_bulletin_begin(gw->bulletin, "refused", now);
    if (out == NULL)
        return;
    rn_refused_write(refused, out);
    rn_bulletin_tell(gw->bulletin);
}

static void check_due(rn_gateway *gw, const ration_event *event)
{
    rn_destination *to = rn_destinations_find(gw->destinations, event->account);

    if (to != NULL)
        rn_check_start(&to->check, event);
}

static void gateway_hear(rn_gateway *gw, const ration_event *event)
{
    rn_party *party = event->user;

    switch (event->type) {
    case RATION_EVENT_GRANTED:
    case RATION_EVENT_REFUSED:
    case RATION_EVENT_LOST:
        if (party != NULL)
            party->event(party, event);
        return;
    case RATION_EVENT_PENALTY:
        penalty_log(gw, event);
        event_tell(gw, event);
        return;
    case RATION_EVENT_LIMIT:
        limit_log(gw, event);
        rn_history_hear(gw->history, event);
        event_tell(gw, event);
        return;
    case RATION_EVENT_BREAKER:
        gw->counts.circuits[event->breaker]++;
        breaker_log(gw, event);
        event_tell(gw, event);
        return;
    case RATION_EVENT_HEALTH:
        check_due(gw, event);
        return;
    }
}

static void steps_log(rn_gateway *gw, uint64_t count, struct rn_steps_told *told, const char *direction)
{
    if (count == told->count)
        return;
    told->count = count;
    rn_log_gated(gw->log, &told->gate, rn_loop_now(gw->loop), "warn", "the wall clock was set", "direction", direction,
                 NULL);
}

/* Take at most so many events. True: that may not have been all. */
static bool events_take(rn_gateway *gw, size_t most)
{
    const rn_clock *clock = rn_loop_clock(gw->loop);
    rn_decider *d = gw->decider;
    ration_event event;
    size_t taken = 0;

    (void)rn_loop_now(gw->loop); /* a step is told to the engine now, and not amid an event */
    steps_log(gw, clock->steps_forward, &gw->forward, "forward");
    steps_log(gw, clock->steps_backward, &gw->backward, "backward");
    for (; taken < most && d->ops->next_event(d, &event); taken++)
        gateway_hear(gw, &event);
    if (rn_timer_set(&gw->timer, d->ops->next_deadline(d)) != RATION_OK)
        gw->counts.errors++;
    if (gw->settled != NULL)
        gw->settled(gw->settled_user);
    return taken == most;
}

void rn_gateway_settle(rn_gateway *gw)
{
    (void)events_take(gw, SIZE_MAX);
}

static void on_settle(rn_deferred *work)
{
    rn_gateway *gw = (rn_gateway *)(void *)((char *)work - offsetof(rn_gateway, settle));

    if (!events_take(gw, EVENTS_A_TURN))
        return;
    rn_loop_forget(gw->loop, work); /* from this turn, where what was heard may have put it */
    rn_loop_defer_next(gw->loop, work);
}

static void on_deadline(void *user, ration_time now)
{
    rn_gateway *gw = user;

    if (gw->decider->ops->advance(gw->decider, now) != RATION_OK)
        gw->counts.errors++;
    rn_gateway_touch(gw);
}

void rn_gateway_touch(rn_gateway *gw)
{
    rn_loop_defer(gw->loop, &gw->settle);
}

/* ---- what the calls borrow */

int rn_gateway_reserve(rn_gateway *gw, size_t count)
{
    if (count <= gw->fields_capacity)
        return RATION_OK;

    const size_t capacity = count + count / 2 + 32;
    rn_http_field *fields = rn_mem_resize(rn_mem_default(), gw->fields, capacity, sizeof *fields);
    if (fields == NULL)
        return RATION_ERR_NOMEM;
    gw->fields = fields;
    ration_header *headers = rn_mem_resize(rn_mem_default(), gw->headers, capacity, sizeof *headers);
    if (headers == NULL)
        return RATION_ERR_NOMEM;
    gw->headers = headers;
    gw->fields_capacity = capacity;
    return RATION_OK;
}

const rn_destination *rn_gateway_find(rn_gateway *gw, ration_text name)
{
    char buffer[RN_ACCOUNT_MAX_BYTES];
    ration_text plain;

    if (rn_route_decode(name, buffer, sizeof buffer, &plain) != RATION_OK)
        return NULL;
    return rn_destinations_find(gw->destinations, plain);
}

void rn_gateway_observe(rn_gateway *gw, ration_lease lease, const rn_http_head *head, ration_text body)
{
    rn_decider *d = gw->decider;

    for (size_t i = 0; i < head->fields.count; i++)
        gw->headers[i] = (ration_header){head->fields.items[i].name, head->fields.items[i].value};
    const ration_response response = {
        .status = head->status, .headers = gw->headers, .header_count = head->fields.count, .body = body};
    if (d->ops->observe(d, rn_loop_now(gw->loop), lease, &response) != RATION_OK)
        gw->counts.errors++;
    rn_gateway_touch(gw);
}

size_t rn_gateway_credential(const rn_destination *to, rn_http_field *fields)
{
    const rn_credential *credential = &to->account->credential;

    if (credential->header == NULL)
        return 0;
    fields[0] = (rn_http_field){ration_text_of(credential->header), ration_text_of(credential->value)};
    return 1;
}

/* ---- making one */

static void run_id_make(char *out)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char random[4] = {0};

    /* Ids need not be secret, only different from the last run's; without randomness they are still in order. */
    if (getrandom(random, sizeof random, GRND_NONBLOCK) < 0)
        random[0] = 1;
    for (size_t i = 0; i < sizeof random; i++) {
        *out++ = hex[random[i] >> 4];
        *out++ = hex[random[i] & 15];
    }
    *out = '\0';
}

void rn_gateway_patience(const ration_config *config, rn_server_options *out)
{
    const rn_patience *patience = &rn_config_settings(config)->patience;

    out->head_timeout_us = patience->head_us;
    out->idle_timeout_us = patience->idle_us;
    out->body_timeout_us = patience->body_us;
    out->write_timeout_us = patience->write_us;
}

static int gateway_listen(rn_gateway *gw, int descriptor, rn_net_error *error)
{
    const rn_address *address = &rn_config_settings(gw->config)->gateway;
    rn_server_options options = {
        .host = address->host, .port = address->port, .path = address->path, .descriptor = descriptor};

    rn_gateway_patience(gw->config, &options);
    return rn_server_new(gw->loop, &options, &rn_exchange_handlers, gw, &gw->server, error);
}

int rn_gateway_new(const rn_gateway_options *options, rn_gateway **out, rn_net_error *error)
{
    rn_gateway *gw = rn_mem_zalloc(rn_mem_default(), 1, sizeof *gw);

    if (gw == NULL)
        return RATION_ERR_NOMEM;
    gw->loop = options->loop;
    gw->decider = options->decider;
    gw->config = options->config;
    gw->log = options->log;
    gw->planning = options->planning;
    gw->bulletin = options->bulletin;
    gw->refusals = options->refusals;
    gw->settle.fn = on_settle;
    gw->settled = options->settled;
    gw->settled_user = options->user;
    gw->breaker_gate.more = BREAKER_LINES - 1;
    rn_timer_init(&gw->timer, gw->loop, on_deadline, gw);
    TAILQ_INIT(&gw->all_destinations);
    TAILQ_INIT(&gw->pools);
    TAILQ_INIT(&gw->spendings);
    rn_output_init(&gw->target, rn_mem_default(), TARGET_MAX_BYTES);
    for (size_t i = 0; i < RN_EXCHANGE_STATES; i++)
        TAILQ_INIT(&gw->states[i]);
    run_id_make(gw->run_id);

    int err = rn_history_new(RN_HISTORY_MAX, RN_HISTORY_MOVES, &gw->history);
    if (err == RATION_OK)
        err = rn_destinations_new(gw, gw->config, &gw->destinations, error);
    if (err == RATION_OK)
        err = gateway_listen(gw, options->descriptor, error);
    if (err != RATION_OK) {
        rn_gateway_free(gw);
        return err;
    }
    rn_gateway_touch(gw);
    *out = gw;
    return RATION_OK;
}

/* ---- other rules */

const ration_config *rn_gateway_config(const rn_gateway *gw)
{
    return gw->config;
}

void rn_gateway_adopt(rn_gateway *gw, rn_destinations *next, const size_t *jobs, ration_config *was)
{
    rn_destinations *past = gw->destinations;
    rn_server_options patience = {.host = NULL};
    rn_exchange *x;

    rn_destinations_adopt(next, past);
    gw->config = next->config;
    rn_gateway_patience(gw->config, &patience);
    rn_server_retime(gw->server, &patience);
    gw->destinations = next;
    for (size_t i = 0; i < RN_EXCHANGE_STATES; i++) {
        TAILQ_FOREACH (x, &gw->states[i], link)
            rn_exchange_reloaded(x, jobs);
    }
    rn_destinations_stop_checks(past);
    past->owned = was;
    rn_destinations_release(past);
    rn_gateway_touch(gw);
}

/* ---- ending one */

static void on_server_closed(void *user)
{
    rn_gateway *gw = user;

    if (gw->on_closed != NULL)
        gw->on_closed(gw->closed_user);
}

static void checks_stop(rn_gateway *gw)
{
    rn_destinations *all;

    TAILQ_FOREACH (all, &gw->all_destinations, link)
        rn_destinations_stop_checks(all);
}

/* Whose body is still read for an estimate has not been decided on: nothing of it has to end. */
static void undecided_refuse(rn_gateway *gw)
{
    rn_exchange *x, *next;

    for (x = TAILQ_FIRST(&gw->states[RN_EXCHANGE_ESTIMATING]); x != NULL; x = next) {
        next = TAILQ_NEXT(x, link);
        rn_exchange_drain(x);
    }
}

void rn_gateway_close(rn_gateway *gw, void (*on_closed)(void *user), void *user)
{
    if (gw->draining)
        return;
    gw->draining = true;
    gw->on_closed = on_closed;
    gw->closed_user = user;
    checks_stop(gw);
    undecided_refuse(gw);
    rn_attempts_stop(gw);
    rn_server_close(gw->server, on_server_closed);
}

void rn_gateway_quiesce(rn_gateway *gw)
{
    gw->quiet = true;
    checks_stop(gw);
    undecided_refuse(gw);
    rn_attempts_stop(gw);
}

bool rn_gateway_draining(const rn_gateway *gw)
{
    return gw->draining || gw->quiet;
}

void rn_gateway_abort(rn_gateway *gw)
{
    rn_server_abort(gw->server);
}

/* Every call ends as if its client had gone; whose grant is on its way goes with the event. */
static void exchanges_end(rn_gateway *gw)
{
    for (size_t i = 0; i < RN_EXCHANGE_LEAVING; i++) {
        while (!TAILQ_EMPTY(&gw->states[i]))
            rn_exchange_end(TAILQ_FIRST(&gw->states[i]), RATION_OUTCOME_CANCELLED);
    }
    checks_stop(gw);
    rn_gateway_settle(gw);
}

void rn_gateway_free(rn_gateway *gw)
{
    if (gw == NULL)
        return;
    gw->draining = true;
    exchanges_end(gw);
    rn_timer_stop(&gw->timer);
    rn_loop_forget(gw->loop, &gw->settle);
    rn_server_free(gw->server);
    while (!TAILQ_EMPTY(&gw->all_destinations))
        rn_destinations_free(TAILQ_FIRST(&gw->all_destinations));
    rn_spendings_free(&gw->spendings);
    rn_output_fini(&gw->target);
    rn_history_free(gw->history);
    rn_mem_free(rn_mem_default(), gw->fields);
    rn_mem_free(rn_mem_default(), gw->headers);
    rn_mem_free(rn_mem_default(), gw);
}

/* ---- figures */

uint16_t rn_gateway_port(const rn_gateway *gw)
{
    return rn_server_port(gw->server);
}

rn_history *rn_gateway_history(const rn_gateway *gw)
{
    return gw->history;
}

rn_bulletin *rn_gateway_bulletin(const rn_gateway *gw)
{
    return gw->bulletin;
}

const rn_refusals *rn_gateway_refusals(const rn_gateway *gw)
{
    return gw->refusals;
}

const rn_gateway_counters *rn_gateway_counts(const rn_gateway *gw)
{
    return &gw->counts;
}

const char *rn_check_result_name(rn_check_result result)
{
    static const char *const names[RN_CHECK_RESULTS] = {"healthy", "unhealthy", "none"};

    return names[result];
}

size_t rn_gateway_in_state(const rn_gateway *gw, rn_exchange_state state)
{
    return gw->state_sizes[state];
}

size_t rn_gateway_kept(const rn_gateway *gw)
{
    return gw->kept_bytes;
}

size_t rn_gateway_connections(const rn_gateway *gw, uint64_t *turned_away)
{
    *turned_away = rn_server_refused(gw->server);
    return rn_server_connections(gw->server);
}

const rn_holds *rn_gateway_holds(const rn_gateway *gw, size_t provider)
{
    return provider < gw->destinations->hold_count ? &gw->destinations->holds[provider] : NULL;
}

const rn_costs *rn_gateway_costs(const rn_gateway *gw, size_t provider)
{
    return provider < gw->destinations->cost_count ? &gw->destinations->costs[provider] : NULL;
}

void rn_gateway_cost_counts(const rn_gateway *gw, rn_cost_counts *out)
{
    rn_spendings_sum(&gw->spendings, out);
}

void rn_gateway_upstream_stats(const rn_gateway *gw, rn_upstream_stats *out)
{
    const rn_shared_pool *shared;

    *out = gw->past_upstream;
    TAILQ_FOREACH (shared, &gw->pools, link) {
        rn_upstream_stats one;

        rn_upstream_pool_stats(shared->pool, &one);
        out->open += one.open;
        out->idle += one.idle;
        out->connects += one.connects;
        out->reuses += one.reuses;
        out->retries += one.retries;
    }
}
