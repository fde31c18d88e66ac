/* SPDX-License-Identifier: MIT */
/*
 * What a call will cost, and what it has cost.
 *
 * A request's body has to be whole before a number in it can be trusted, for a later key takes the place of an earlier
 * one; so it is held back until then, by who asks. Here nothing is kept: bytes are looked at as they go by, by the
 * pickers of base, which need a few hundred bytes whatever the length.
 *
 * An estimate that is too large to be counted is taken as the largest, which refuses the call; a usage that is too
 * large is not believed, because it would use up a quota for what may be an error of the provider.
 *
 * Invariants: what is settled is a number from 0 to RATION_UNITS_MAX, or RATION_UNSET.
 */
#include "serve/cost.h"

#include "base/mem.h"
#include "base/text.h"

/* ---- whose rule holds */

bool rn_cost_is_estimated(const rn_cost_rule *rule)
{
    return rule->estimate_header != NULL || rule->estimate_pointer != NULL || rule->estimate_default != RATION_UNSET;
}

bool rn_cost_is_told(const rn_cost_rule *rule)
{
    return rule->actual_header != NULL || rule->actual_pointer != NULL;
}

int rn_costs_init(rn_costs *costs, const ration_provider_rule *rule, const rn_provider *provider)
{
    const size_t count = rule->endpoint_count;
    int err = RATION_OK;

    *costs = (rn_costs){.rule = rule, .provider = provider};
    rn_arena_init(&costs->arena, rn_mem_default());
    costs->any = rn_cost_is_estimated(&provider->cost) || rn_cost_is_told(&provider->cost);
    costs->templates = rn_arena_zalloc(&costs->arena, count + 1, sizeof *costs->templates);
    if (costs->templates == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < count && err == RATION_OK; i++) {
        const rn_cost_rule *own = &provider->endpoint_costs[i];

        costs->any = costs->any || rn_cost_is_estimated(own) || rn_cost_is_told(own);
        costs->any_retries = costs->any_retries || provider->endpoint_retries[i] != RATION_UNSET;
        err = rn_template_init(&costs->templates[i], &costs->arena, ration_text_of(rule->endpoints[i].path));
    }
    return err;
}

void rn_costs_fini(rn_costs *costs)
{
    rn_arena_fini(&costs->arena);
    *costs = (rn_costs){.rule = NULL};
}

static bool has_cost(const ration_defaults *defaults)
{
    return defaults->cost > 0 || (defaults->has_cost && defaults->cost == 0);
}

/* As the engine has it for a request that does not say. */
static int64_t usual_cost(const ration_defaults *endpoint, const ration_defaults *general)
{
    if (endpoint != NULL && has_cost(endpoint))
        return endpoint->cost;
    return has_cost(general) ? general->cost : RATION_UNIT;
}

static ration_priority usual_priority(const ration_defaults *endpoint, const ration_defaults *general)
{
    if (endpoint != NULL && endpoint->priority != RATION_PRIORITY_UNSET)
        return endpoint->priority;
    return general->priority != RATION_PRIORITY_UNSET ? general->priority : RATION_PRIORITY_NORMAL;
}

ration_priority rn_costs_priority(const rn_costs *costs, ration_text endpoint)
{
    const ration_provider_rule *rule = costs->rule;
    size_t i = 0;

    while (i < rule->endpoint_count && !rn_text_is(endpoint, rule->endpoints[i].path))
        i++;
    return usual_priority(i < rule->endpoint_count ? &rule->endpoints[i].defaults : NULL, &rule->defaults);
}

size_t rn_costs_endpoint(const rn_costs *costs, ration_text path)
{
    const size_t count = costs->rule->endpoint_count;
    rn_path split;
    const size_t best =
        count > 0 && rn_path_split(path, &split) ? rn_template_find(costs->templates, count, &split) : count;

    return best < count ? best : SIZE_MAX;
}

rn_cost_found rn_costs_find(const rn_costs *costs, ration_text path)
{
    const size_t best = rn_costs_endpoint(costs, path);
    const ration_defaults *endpoint = best != SIZE_MAX ? &costs->rule->endpoints[best].defaults : NULL;
    return (rn_cost_found){
        .rule = best != SIZE_MAX ? &costs->provider->endpoint_costs[best] : &costs->provider->cost,
        .usual = usual_cost(endpoint, &costs->rule->defaults),
        .priority = usual_priority(endpoint, &costs->rule->defaults),
    };
}

/* The number that a field of that name holds, as JSON writes numbers. */
static rn_picked field_number(rn_http_fields fields, const char *name, int64_t *micro)
{
    const ration_text text = rn_text_trim(rn_http_find(fields, name));
    rn_decimal number = {0};

    if (rn_http_count(fields, name) == 0)
        return RN_PICKED_NONE;
    for (size_t i = 0; i < text.size; i++) {
        if (!rn_decimal_take(&number, text.data[i]))
            return RN_PICKED_OTHER;
    }
    if (!rn_decimal_complete(&number))
        return RN_PICKED_OTHER;
    switch (rn_decimal_micro(&number, micro)) {
    case RN_DECIMAL_IS_FINE:
        return RN_PICKED_NUMBER;
    case RN_DECIMAL_IS_LARGE:
        return RN_PICKED_LARGE;
    case RN_DECIMAL_IS_BELOW:
        return RN_PICKED_OTHER;
    }
    return RN_PICKED_OTHER;
}

/* ---- before the call */

const char *rn_estimate_source_name(rn_estimate_source source)
{
    static const char *const names[RN_ESTIMATE_SOURCES] = {"header", "pointer", "default"};

    return names[source];
}

static bool estimate_of(rn_picked picked, int64_t found, int64_t *micro)
{
    if (picked != RN_PICKED_NUMBER && picked != RN_PICKED_LARGE)
        return false;
    *micro = picked == RN_PICKED_LARGE ? RATION_UNITS_MAX : found;
    return true;
}

bool rn_cost_in_fields(const rn_cost_rule *rule, rn_http_fields fields, int64_t *micro)
{
    int64_t found = 0;

    if (rule->estimate_header == NULL)
        return false;
    const rn_picked picked = field_number(fields, rule->estimate_header, &found);
    return estimate_of(picked, found, micro);
}

rn_estimate *rn_estimate_new(const rn_cost_rule *rule)
{
    rn_estimate *estimate = rn_mem_zalloc(rn_mem_default(), 1, sizeof *estimate);

    if (estimate != NULL)
        rn_pick_init(&estimate->pick, rule->estimate_pointer);
    return estimate;
}

void rn_estimate_free(rn_estimate *estimate)
{
    rn_mem_free(rn_mem_default(), estimate);
}

void rn_estimate_feed(rn_estimate *estimate, ration_text bytes)
{
    rn_pick_feed(&estimate->pick, bytes);
}

bool rn_cost_in_body(rn_estimate *estimate, int64_t *micro)
{
    int64_t found = 0;

    const rn_picked picked = rn_pick_end(&estimate->pick, &found);
    return estimate_of(picked, found, micro);
}

/* ---- after it */

const char *rn_cost_source_name(rn_cost_source source)
{
    static const char *const names[RN_COST_SOURCES] = {"header", "pointer", "estimate"};

    return names[source];
}

const char *rn_usage_fault_name(rn_usage_fault fault)
{
    static const char *const names[RN_USAGE_FAULTS] = {"absent", "encoded", "unusable"};

    return names[fault];
}

/* `text/event-stream; charset=utf-8` and the like. */
static bool is_event_stream(rn_http_fields fields)
{
    const ration_text type = rn_http_find(fields, "Content-Type");
    size_t end = 0;

    while (end < type.size && type.data[end] != ';')
        end++;
    return rn_text_is_nocase(rn_text_trim(rn_text_slice(type, 0, end)), "text/event-stream");
}

static bool is_encoded(rn_http_fields fields)
{
    const ration_text coding = rn_text_trim(rn_http_find(fields, "Content-Encoding"));

    return coding.size > 0 && !rn_text_is_nocase(coding, "identity");
}

void rn_usage_begin(rn_usage *usage, const rn_cost_rule *rule, rn_http_fields fields)
{
    *usage = (rn_usage){.fault = RN_USAGE_ABSENT, .micro = RATION_UNSET};
    if (rule->actual_header != NULL) {
        const rn_picked picked = field_number(fields, rule->actual_header, &usage->micro);

        usage->in_field = picked == RN_PICKED_NUMBER;
        if (picked == RN_PICKED_LARGE || picked == RN_PICKED_OTHER)
            usage->fault = RN_USAGE_UNUSABLE;
    }
    if (usage->in_field || rule->actual_pointer == NULL)
        return;
    if (is_encoded(fields)) {
        usage->fault = RN_USAGE_ENCODED;
    } else if (is_event_stream(fields)) {
        usage->form = RN_USAGE_EVENTS;
        rn_event_pick_init(&usage->in.events, rule->actual_pointer);
    } else {
        usage->form = RN_USAGE_JSON;
        rn_pick_init(&usage->in.json, rule->actual_pointer);
    }
}

void rn_usage_feed(rn_usage *usage, ration_text bytes)
{
    switch (usage->form) {
    case RN_USAGE_NO_BODY:
        return;
    case RN_USAGE_JSON:
        rn_pick_feed(&usage->in.json, bytes);
        return;
    case RN_USAGE_EVENTS:
        rn_event_pick_feed(&usage->in.events, bytes);
        return;
    }
}

static rn_picked usage_picked(rn_usage *usage, bool whole, int64_t *micro)
{
    switch (usage->form) {
    case RN_USAGE_NO_BODY:
        return RN_PICKED_NONE;
    case RN_USAGE_JSON:
        return whole ? rn_pick_end(&usage->in.json, micro) : rn_pick_seen(&usage->in.json, micro);
    case RN_USAGE_EVENTS:
        return whole ? rn_event_pick_end(&usage->in.events, micro) : rn_event_pick_seen(&usage->in.events, micro);
    }
    return RN_PICKED_NONE;
}

rn_usage_told rn_usage_end(rn_usage *usage, bool whole)
{
    int64_t micro = RATION_UNSET;

    if (usage->in_field)
        return (rn_usage_told){RN_COST_HEADER, RN_USAGE_FINE, usage->micro};

    const rn_picked picked = usage_picked(usage, whole, &micro);
    if (picked == RN_PICKED_NUMBER)
        return (rn_usage_told){RN_COST_POINTER, RN_USAGE_FINE, micro};

    rn_usage_fault fault = usage->fault;
    if (picked == RN_PICKED_LARGE || picked == RN_PICKED_OTHER)
        fault = RN_USAGE_UNUSABLE;
    if (fault == RN_USAGE_ABSENT && !whole)
        fault = RN_USAGE_FINE;
    return (rn_usage_told){RN_COST_ESTIMATE, fault, RATION_UNSET};
}
