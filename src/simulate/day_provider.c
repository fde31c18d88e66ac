/* SPDX-License-Identifier: MIT */
/*
 * The providers of a simulated day, and the way there and back.
 *
 * A call travels, is judged when it arrives, takes its time, is answered with what `sync` reads, and travels back.
 * What is slow is the provider, not the way: a way takes 5 to 15 ms, so calls overtake each other but never by more
 * than that. A limiter can answer for its spacing of calls only as far as the network keeps it.
 *
 * A call outlives the gateway that made it. The bytes are on their way and will be counted; when the connection is
 * found broken, one way later, the provider lets go of its slot.
 *
 * The other client spends its calls evenly, each as if it were one that the provider has seen from us.
 *
 * Invariant: in_flight = wires that were let in and are not let go of.
 */
#include "simulate/day_parts.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "simulate/random.h"

#define WAY_MIN_US 5000
#define WAY_MAX_US 15000
#define EXTERNAL_PART 10 /* of each quota, where no rate was told */
#define STORM                                                                                                          \
    (ration_ratio)                                                                                                     \
    {                                                                                                                  \
        1, 2                                                                                                           \
    }
#define QUOTAS_MAX 16

static const int transient_default[] = {500, 502, 503, 504};

static int64_t way(const rn_day *day, rn_stream stream, uint64_t number)
{
    return rn_random_between(day->options->behaviour.seed, stream, number, WAY_MIN_US, WAY_MAX_US);
}

/* ---- a call */

static void wire_free(rn_day *day, rn_day_wire *wire)
{
    rn_day_not(day, &wire->event);
    LIST_REMOVE(wire, link);
    rn_mem_free(rn_mem_default(), wire);
}

/* The provider is done with it. */
static void wire_let_go(rn_day *day, rn_day_wire *wire)
{
    if (!wire->judged || !wire->judgement.granted)
        return;
    rn_enforcer_release(wire->provider->enforcer, day->now, wire->judgement.lease);
    wire->judgement.granted = false;
    wire->provider->in_flight--;
}

static int on_back(rn_day *day, rn_day_event *event)
{
    rn_day_wire *wire = (rn_day_wire *)(void *)event;
    rn_day_caller *caller = wire->caller;
    const int status = wire->status;
    int err = 0;

    rn_day_mix(day, wire->number);
    rn_day_mix(day, (uint64_t)status);
    if (caller != NULL) {
        err = rn_day_gateway_answer(day, caller, wire);
        caller->wire = NULL;
    }
    wire_free(day, wire);
    return err == 0 && caller != NULL ? caller->ops->answered(day, caller, status) : err;
}

static int wire_answer(rn_day *day, rn_day_wire *wire)
{
    rn_quota_state quotas[QUOTAS_MAX];
    const bool refused = wire->judged && !wire->judgement.granted;

    wire_let_go(day, wire);
    rn_answer_init(&wire->answer);
    const size_t count = rn_enforcer_quotas(wire->provider->enforcer, day->now, &wire->arrival, quotas, QUOTAS_MAX);
    rn_answer_quotas(&wire->answer, quotas, count, day->now);
    if (refused)
        rn_answer_retry(&wire->answer, wire->judgement.retry_us);
    wire->event.fire = on_back;
    return rn_day_at(day, &wire->event, rn_time_add(day->now, way(day, RN_STREAM_BACK, wire->number)));
}

static int on_done(rn_day *day, rn_day_event *event)
{
    return wire_answer(day, (rn_day_wire *)(void *)event);
}

static int on_broken(rn_day *day, rn_day_event *event)
{
    rn_day_wire *wire = (rn_day_wire *)(void *)event;

    wire_let_go(day, wire);
    wire_free(day, wire);
    return 0;
}

static rn_day_cause cause_of(const rn_day_wire *wire)
{
    static const struct {
        ration_reason reason;
        rn_day_cause cause;
    } causes[] = {
        {RATION_REASON_QUOTA_EXHAUSTED, RN_DAY_BY_QUOTA},
        {RATION_REASON_RATE_LIMITED, RN_DAY_BY_RATE},
        {RATION_REASON_CONCURRENCY_FULL, RN_DAY_BY_CONCURRENCY},
        {RATION_REASON_NONE, RN_DAY_BY_CONCURRENCY}, /* the hidden ceiling */
    };

    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        if (wire->judgement.reason == causes[i].reason)
            return causes[i].cause;
    }
    return RN_DAY_BY_OTHER;
}

/* Let in: it takes its time, and may fail. */
static int wire_accept(rn_day *day, rn_day_wire *wire)
{
    const ration_error_rule *errors = &wire->provider->rule->errors;
    const int *transient = errors->transient_count > 0 ? errors->transient : transient_default;
    const size_t count =
        errors->transient_count > 0 ? errors->transient_count : sizeof transient_default / sizeof *transient_default;
    rn_behaviour behaviour = wire->provider->behaviour;
    uint64_t index;

    if (day->error_storms > 0)
        behaviour.errors = STORM;
    wire->status = rn_behaviour_fails(&behaviour, wire->number, count, &index) ? transient[index] : 200;
    wire->provider->in_flight++;
    wire->event.fire = on_done;
    const int64_t takes_us = rn_mul(rn_behaviour_latency(&behaviour, wire->number), day->latency_times);
    return rn_day_at(day, &wire->event, rn_time_add(day->now, takes_us));
}

static int provider_see(rn_day_provider *provider, const rn_arrival *arrival)
{
    if (provider->has_seen)
        return 0;
    provider->seen_path = rn_mem_textdup(rn_mem_default(), arrival->path);
    if (provider->seen_path == NULL)
        return RATION_ERR_NOMEM;
    provider->seen = *arrival;
    provider->seen.path = ration_text_of(provider->seen_path);
    provider->has_seen = true;
    return 0;
}

static int on_arrive(rn_day *day, rn_day_event *event)
{
    rn_day_wire *wire = (rn_day_wire *)(void *)event;
    rn_day_provider *provider = wire->provider;
    const rn_behaviour *behaviour = &provider->behaviour;
    int err = provider_see(provider, &wire->arrival);

    wire->judgement = (rn_judgement){.retry_us = behaviour->retry_us > 0 ? behaviour->retry_us : RATION_UNSET};
    if (err == 0 && (int64_t)provider->in_flight < rn_capacity_at(&behaviour->ceiling, rn_day_since(day)))
        err = rn_enforcer_ask(provider->enforcer, day->now, &wire->arrival, &wire->judgement);
    if (err != 0)
        return err;

    wire->judged = true;
    err = rn_day_audit_call(day, provider, &wire->arrival, &wire->judgement);
    if (err != 0)
        return err;
    if (wire->judgement.granted) {
        err = wire_accept(day, wire);
        if (err == 0 && wire->caller == NULL)
            return on_broken(day, &wire->event);
        return err;
    }
    wire->status = provider->rule->errors.rate_limited_count > 0 ? provider->rule->errors.rate_limited[0] : 429;
    day->result.classes[wire->priority].limited[cause_of(wire)]++;
    return wire_answer(day, wire);
}

int rn_day_send(rn_day *day, rn_day_caller *caller, rn_day_provider *provider, const rn_arrival *arrival,
                ration_priority priority)
{
    rn_day_wire *wire = rn_mem_zalloc(rn_mem_default(), 1, sizeof *wire + arrival->path.size);

    if (wire == NULL)
        return RATION_ERR_NOMEM;
    rn_heap_node_init(&wire->event.node);
    wire->event.fire = on_arrive;
    wire->provider = provider;
    wire->caller = caller;
    wire->priority = priority;
    wire->number = day->calls++;
    wire->arrival = *arrival;
    memcpy(wire->path, arrival->path.data, arrival->path.size);
    wire->arrival.path = (ration_text){wire->path, arrival->path.size};
    LIST_INSERT_HEAD(&day->wires, wire, link);
    caller->wire = wire;
    return rn_day_at(day, &wire->event, rn_time_add(day->now, way(day, RN_STREAM_OUT, wire->number)));
}

int rn_day_hang_up(rn_day *day, rn_day_caller *caller)
{
    rn_day_wire *wire = caller->wire;

    if (wire == NULL)
        return 0;
    caller->wire = NULL;
    wire->caller = NULL;
    if (wire->event.fire != on_done)
        return 0; /* it will arrive, and be counted; an answer finds nobody */
    wire->event.fire = on_broken;
    return rn_day_at(day, &wire->event, rn_time_add(day->now, way(day, RN_STREAM_OUT, wire->number)));
}

/* ---- the other client */

static int on_external(rn_day *day, rn_day_event *event)
{
    rn_day_provider *provider = (rn_day_provider *)(void *)((char *)event - offsetof(rn_day_provider, external));

    if (provider->has_seen)
        (void)rn_enforcer_spend(provider->enforcer, day->now, &provider->seen);
    const int64_t at = rn_behaviour_external_at(&provider->behaviour, ++provider->external_next);
    return at == RATION_NEVER_US ? 0 : rn_day_at(day, event, rn_time_add(day->start, at));
}

/* A tenth of the quota that gives the least in its time. */
static ration_rate external_rate(const ration_provider_rule *rule)
{
    static const int64_t periods_us[] = {[RATION_PERIOD_NONE] = 0,
                                         [RATION_PERIOD_MINUTE] = INT64_C(60000000),
                                         [RATION_PERIOD_HOUR] = INT64_C(3600000000),
                                         [RATION_PERIOD_DAY] = INT64_C(86400000000),
                                         [RATION_PERIOD_WEEK] = INT64_C(604800000000),
                                         [RATION_PERIOD_MONTH] = INT64_C(2678400000000)};
    ration_rate least = {0, 0};

    for (size_t i = 0; i < rule->limit_count; i++) {
        const ration_limit_rule *limit = &rule->limits[i];
        const int64_t per_us =
            limit->window.period != RATION_PERIOD_NONE ? periods_us[limit->window.period] : limit->window.rolling_us;
        const int64_t units = limit->max / EXTERNAL_PART;

        if (limit->kind != RATION_KIND_QUOTA || units == 0 || per_us == 0)
            continue;
        if (least.units == 0 || rn_div_ceil(per_us, units) > rn_div_ceil(least.per_us, least.units))
            least = (ration_rate){units, per_us};
    }
    return least;
}

static int provider_init(rn_day *day, size_t index)
{
    rn_day_provider *provider = &day->providers[index];
    ration_fault fault = {.path = ""};

    provider->behaviour = day->options->behaviour;
    rn_heap_node_init(&provider->external.node);
    provider->external.fire = on_external;
    if ((day->options->faults & RN_DAY_EXTERNAL) != 0 && provider->behaviour.external.units == 0)
        provider->behaviour.external = external_rate(provider->rule);
    int err = rn_enforcer_new(day->rules, index, day->now, &provider->enforcer, &fault);
    if (err == RATION_ERR_CONFIG)
        return rn_day_fail(day, err, "%s: %s", fault.path, fault.text);
    const int64_t at = rn_behaviour_external_at(&provider->behaviour, 1);
    provider->external_next = 1;
    if (err == 0 && at != RATION_NEVER_US)
        err = rn_day_at(day, &provider->external, rn_time_add(day->start, at));
    return err;
}

int rn_day_providers_init(rn_day *day)
{
    int err = 0;

    day->providers = rn_arena_zalloc(&day->arena, day->rules->provider_count, sizeof *day->providers);
    if (day->providers == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < day->rules->provider_count; i++)
        day->providers[i].rule = &day->rules->providers[i];
    for (size_t i = 0; i < day->runner_count && err == 0; i++) {
        const rn_account *account = rn_config_account(day->config, day->runners[i].job->account);

        if (day->providers[account->provider].enforcer == NULL)
            err = provider_init(day, account->provider);
    }
    return err;
}

void rn_day_providers_fini(rn_day *day)
{
    rn_day_wire *wire;

    while ((wire = LIST_FIRST(&day->wires)) != NULL) {
        LIST_REMOVE(wire, link);
        rn_mem_free(rn_mem_default(), wire);
    }
    for (size_t i = 0; day->providers != NULL && i < day->rules->provider_count; i++) {
        rn_enforcer_free(day->providers[i].enforcer);
        rn_mem_free(rn_mem_default(), day->providers[i].seen_path);
    }
}
