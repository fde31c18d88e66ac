/* SPDX-License-Identifier: MIT */

/*
 * What providers say: quotas learn from headers, a 429 penalizes, a success ends the doubling. Chapter 3, "429".
 *
 * A call's status reaches the engine once: the first one observed stands, later responses of the same lease teach only
 * by their headers, and the outcome of a release counts where no status had been observed.
 */

#include "core/engine.h"

#include "core/fields.h"

#define LONG_PENALTY_US (INT64_C(3600) * 1000000)

static bool status_in(int status, const int *list, size_t count, const int *usual, size_t usual_count)
{
    const int *statuses = count > 0 ? list : usual;
    const size_t n = count > 0 ? count : usual_count;

    for (size_t i = 0; i < n; i++) {
        if (statuses[i] == status)
            return true;
    }
    return false;
}

static bool is_rate_limited(const ration_error_rule *rule, const ration_response *response)
{
    static const int usual[] = {429};
    size_t at;

    return status_in(response->status, rule->rate_limited, rule->rate_limited_count, usual, 1) &&
           (rule->body_contains == NULL || rn_text_find(response->body, ration_text_of(rule->body_contains), &at));
}

static bool is_transient(const ration_error_rule *rule, int status)
{
    static const int usual[] = {500, 502, 503, 504};

    return status_in(status, rule->transient, rule->transient_count, usual, sizeof usual / sizeof usual[0]);
}

/* Would any applicable counter or penalty have refused or delayed the request, had it come now? */
static bool was_predicted(const ration_engine *engine, const rn_lease *lease)
{
    if (rn_is_penalized(engine, lease))
        return true;
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];
        rn_ask ask = rn_ask_of(lease, place);
        rn_verdict verdict;

        ask.deadline = engine->now;
        ask.may_wait = false;

        place->counter->limit->kind->check(place->counter, engine->now, &ask, &verdict);
        /* That a mark is not written yet says nothing of the provider. */
        if (rn_place_binds(place) && verdict.fit != RN_FIT_NOW && verdict.reason != RATION_REASON_STORE_UNAVAILABLE)
            return true;
    }
    return false;
}

static void penalty_report(ration_engine *engine, const rn_lease *lease, const rn_penalty *penalty, rn_counter *counter)
{
    ration_event event = {
        .type = RATION_EVENT_PENALTY,
        .at = engine->now,
        .serial = lease->serial,
        .lease = rn_lease_handle(lease),
        .user = lease->user,
        .decision = {.retry_at = penalty->until, .at = engine->now},
    };

    if (counter != NULL) {
        event.decision.limit = counter->limit->rule->name;
        event.decision.key = counter->key;
    }
    if (penalty->until.us - engine->now.us > LONG_PENALTY_US)
        rn_event_offer(engine, &event, counter != NULL ? &counter->pins : NULL);
}

static void penalize_counter(ration_engine *engine, const rn_lease *lease, rn_counter *counter, ration_time granted_at,
                             ration_time retry_at)
{
    const ration_error_rule *rule = &lease->route->provider->rule.errors;

    if (!rn_penalty_hit(&counter->penalty, engine->now, granted_at, retry_at, rule))
        return;
    if (counter->watcher_count > 0)
        rn_alarm_arm(&engine->timers, &counter->penalty_timer, counter->penalty.until);
    rn_keep(engine, counter);
    rn_mark(engine, counter, true);
    penalty_report(engine, lease, &counter->penalty, counter);
}

static void penalize_account(ration_engine *engine, const rn_lease *lease, ration_time granted_at, ration_time retry_at)
{
    rn_account *account = lease->route->account;

    if (!rn_penalty_hit(&account->penalty, engine->now, granted_at, retry_at, &account->provider->rule.errors))
        return;
    account->changed = true;
    rn_account_penalized(engine, account);
    penalty_report(engine, lease, &account->penalty, NULL);
}

/* The scope with the most dimensions; of equals, the one declared first. NULL: no limit that binds applies. */
static rn_counter *narrowest(const rn_lease *lease)
{
    rn_counter *best = NULL;

    for (size_t i = 0; i < lease->place_count; i++) {
        rn_counter *counter = lease->places[i].counter;

        if (rn_place_binds(&lease->places[i]) && (best == NULL || counter->limit->depth > best->limit->depth))
            best = counter;
    }
    return best;
}

static void penalize(ration_engine *engine, const rn_lease *lease, ration_time retry_at)
{
    rn_provider *provider = lease->route->account->provider;
    const bool all = provider->rule.errors.penalize == RATION_PENALIZE_ALL;
    rn_counter *only = narrowest(lease);

    provider->throttled[only != NULL ? only->limit->index : provider->limit_count]++;
    if (only == NULL) {
        penalize_account(engine, lease, lease->since, retry_at);
        return;
    }
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (rn_place_binds(place) && (all || place->counter == only))
            penalize_counter(engine, lease, place->counter, lease->since, retry_at);
    }
}

static void succeed(rn_lease *lease)
{
    rn_penalty_success(&lease->route->account->penalty, lease->since);
    for (size_t i = 0; i < lease->place_count; i++)
        rn_penalty_success(&lease->places[i].counter->penalty, lease->since);
}

/* Every counter of the lease looks at what came back. */
static void teach(ration_engine *engine, rn_lease *lease, const rn_reply *reply)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];
        rn_counter *counter = place->counter;
        const rn_kind *kind = counter->limit->kind;
        const int64_t level = kind->level != NULL ? kind->level(counter) : 0;

        kind->observe(counter, engine->now, &place->hold, reply);
        place->hold.seen = true;
        rn_keep(engine, counter);
        if (kind->level != NULL)
            rn_level_moved(engine, counter, level, "the provider throttled");
        rn_mark(engine, counter, true);
    }
}

/* When the provider said that one may come back; RATION_NEVER_US: it did not, or not so that it can be read. */
static ration_time retry_after(ration_engine *engine, const rn_reply *reply)
{
    ration_time retry_at = {RATION_NEVER_US};

    if (reply->response == NULL)
        return retry_at;

    const rn_field field = rn_field_retry_after(reply->response, engine->now, &retry_at);

    if (field == RN_FIELD_BAD)
        engine->totals.sync_rejected[RATION_TOLD_RETRY_AFTER]++;
    return field == RN_FIELD_OK ? retry_at : ration_time_of(RATION_NEVER_US);
}

/* Adaptive limits that pause until the provider's own time. */
static void pause(ration_engine *engine, const rn_lease *lease, ration_time retry_at)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_counter *counter = lease->places[i].counter;

        if (rn_time_before(engine->now, retry_at) && rn_time_known(retry_at) && rn_place_binds(&lease->places[i]) &&
            counter->limit->rule->kind == RATION_KIND_ADAPTIVE && counter->limit->rule->adaptive.pause_on_retry_after &&
            (!counter->penalty.any || rn_time_before(counter->penalty.until, retry_at)))
            penalize_counter(engine, lease, counter, lease->since, retry_at);
    }
}

static void rate_limited(ration_engine *engine, rn_lease *lease, const rn_reply *reply)
{
    engine->totals.rate_limited++;
    if (!was_predicted(engine, lease))
        engine->totals.unexpected_429++;

    const ration_time retry_at = retry_after(engine, reply);

    teach(engine, lease, reply);
    penalize(engine, lease, retry_at);
    if (reply->throttled)
        pause(engine, lease, retry_at);
}

/* What a status means to adaptive limits and breakers. */
static ration_outcome outcome_of(const ration_error_rule *rule, int status, bool is_rate_limited)
{
    if (rule->throttled_count > 0 ? status_in(status, rule->throttled, rule->throttled_count, NULL, 0)
                                  : is_rate_limited)
        return RATION_OUTCOME_THROTTLED;
    if (rule->failure_count > 0 ? status_in(status, rule->failure, rule->failure_count, NULL, 0)
                                : is_transient(rule, status))
        return RATION_OUTCOME_FAILURE;
    return RATION_OUTCOME_SUCCESS;
}

rn_reading rn_response_read(const ration_error_rule *rule, const ration_response *response)
{
    const bool limited = is_rate_limited(rule, response);
    const ration_outcome outcome = outcome_of(rule, response->status, limited);

    return (rn_reading){
        .rate_limited = limited,
        .success = !limited && outcome != RATION_OUTCOME_THROTTLED && !is_transient(rule, response->status),
        .outcome = outcome,
    };
}

/* Throttled and cancelled are no result for a breaker. */
static void feed_breaker(ration_engine *engine, rn_lease *lease, ration_outcome outcome)
{
    switch (outcome) {
    case RATION_OUTCOME_SUCCESS:
        rn_circuit_result(engine, lease, true);
        break;
    case RATION_OUTCOME_FAILURE:
        rn_circuit_result(engine, lease, false);
        break;
    case RATION_OUTCOME_THROTTLED:
    case RATION_OUTCOME_CANCELLED:
        rn_circuit_leave(engine, lease);
        break;
    }
}

void rn_feed_response(ration_engine *engine, rn_lease *lease, const ration_response *response)
{
    const rn_reading reading = rn_response_read(&lease->route->provider->rule.errors, response);
    const bool first = response->status != 0 && !lease->status_seen;
    const rn_reply reply = {
        .response = response,
        .rate_limited = first && reading.rate_limited,
        .throttled = first && reading.outcome == RATION_OUTCOME_THROTTLED,
        .rejected = engine->totals.sync_rejected,
        .maxima = &engine->totals.maxima,
        .disagreements = &engine->totals.disagreements,
    };

    lease->status_seen = lease->status_seen || first;
    if (reply.rate_limited) {
        rate_limited(engine, lease, &reply);
    } else {
        teach(engine, lease, &reply);
        if (reply.throttled) {
            pause(engine, lease, retry_after(engine, &reply));
        } else if (first && reading.success) {
            succeed(lease);
        }
    }
    if (first)
        feed_breaker(engine, lease, reading.outcome);
}

void rn_feed_outcome(ration_engine *engine, rn_lease *lease, ration_outcome outcome)
{
    const rn_reply reply = {
        .rate_limited = outcome == RATION_OUTCOME_THROTTLED,
        .throttled = outcome == RATION_OUTCOME_THROTTLED,
        .rejected = engine->totals.sync_rejected,
        .maxima = &engine->totals.maxima,
        .disagreements = &engine->totals.disagreements,
    };

    switch (outcome) {
    case RATION_OUTCOME_THROTTLED:
        rate_limited(engine, lease, &reply);
        break;
    case RATION_OUTCOME_SUCCESS:
        teach(engine, lease, &reply);
        succeed(lease);
        break;
    case RATION_OUTCOME_FAILURE:
    case RATION_OUTCOME_CANCELLED:
        break;
    }
    feed_breaker(engine, lease, outcome);
}
