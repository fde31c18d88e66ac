/* SPDX-License-Identifier: MIT */
/*
 * What the providers of a simulated day have counted, by quota and key.
 *
 * Our own calls are counted here, apart from the enforcer, as they arrive; its windows say to which one each belongs.
 * What the enforcer has counted beyond that was the other client's. A window is overspent if more of ours arrived in
 * it than our part of the maximum, whether or not the provider let it in: what it had to refuse was an attempt.
 *
 * Of a rolling window only the enforcer's count is known, so it has no windows to be judged by; what it had to refuse
 * is counted all the same.
 */
#include "simulate/day_parts.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/quota_budget.h"

#define QUOTAS_MAX 16

/* ---- a quota */

/* Our part: the account's, or the smallest of those that reach the key. */
static ration_ratio share_of(const rn_day *day, const ration_limit_rule *rule, const rn_arrival *arrival)
{
    ration_ratio least = {0};
    bool by_account = false;

    for (size_t i = 0; i < rule->scope_count; i++) {
        const ration_text name = ration_text_of(rule->scope[i]);

        by_account =
            by_account || rn_text_is(name, "account") || rn_text_is(name, "credential") || rn_text_is(name, "target");
    }
    for (size_t i = 0; i < day->runner_count; i++) {
        const ration_account_rule *account = &day->rules->accounts[day->runners[i].job->account];

        if (!by_account || rn_text_is(arrival->account, account->name))
            least = rn_ratio_min(least, account->share);
    }
    return least;
}

/* The original rule, with what the provider's view of it has changed undone. */
static const ration_limit_rule *rule_of(const rn_day_provider *provider, const ration_limit_rule *seen)
{
    for (size_t i = 0; i < provider->rule->limit_count; i++) {
        if (rn_text_is(ration_text_of(seen->name), provider->rule->limits[i].name))
            return &provider->rule->limits[i];
    }
    return seen;
}

/* The provider's keys begin with the account twice, as account and as credential. */
static char *key_copy(const rn_quota_state *state)
{
    const char *slash = strchr(state->key, '/');
    const size_t first = slash != NULL ? (size_t)(slash - state->key) : strlen(state->key);
    const char *second = slash != NULL ? slash + 1 : "";

    if (strncmp(state->key, second, first) == 0 && (second[first] == '\0' || second[first] == '/'))
        return rn_mem_strdup(rn_mem_default(), second);
    return rn_mem_strdup(rn_mem_default(), state->key);
}

static void window_begin(rn_day_audit *audit, const rn_quota_state *state)
{
    audit->start = state->start;
    audit->end = state->end;
    audit->own = 0;
    audit->tried = 0;
    audit->external = 0;
}

static int audit_new(rn_day *day, rn_day_provider *provider, const rn_arrival *arrival, const rn_quota_state *state)
{
    rn_day_audit *audit = rn_arena_zalloc(&day->arena, 1, sizeof *audit);

    if (audit == NULL)
        return RATION_ERR_NOMEM;
    audit->path = rn_arena_textdup(&day->arena, arrival->path);
    audit->result.key = key_copy(state);
    day->audits[day->audit_count++] = audit;
    if (audit->path == NULL || audit->result.key == NULL)
        return RATION_ERR_NOMEM;

    rn_day_quota *result = &audit->result;
    const ration_limit_rule *rule = rule_of(provider, state->rule);
    audit->id = state->id;
    audit->provider = provider;
    audit->rule = state->rule;
    audit->arrival = *arrival;
    audit->arrival.path = ration_text_of(audit->path);
    result->provider = provider->rule->name;
    result->limit = rule->name;
    result->strict = rule->durability == RATION_DURABILITY_STRICT;
    result->rolling = !rn_time_known(state->end);
    result->max = state->max;
    const rn_quota_budget budget = rn_quota_budget_of(rule, state->max, false, share_of(day, rule, arrival),
                                                      rn_quota_reserve(day->rules->retry_reserve));
    result->usable = budget.usable;
    result->reserve = budget.reserve;
    result->least = INT64_MAX;
    window_begin(audit, state);
    return 0;
}

/* ---- windows */

static void window_end(const rn_day *day, rn_day_audit *audit)
{
    rn_day_quota *result = &audit->result;

    result->external = rn_add(result->external, audit->external);
    if (result->rolling)
        return;
    result->overspent += audit->tried > result->usable ? 1 : 0;
    if (rn_time_before(audit->start, day->start) || rn_time_before(day->end, audit->end))
        return;
    result->windows++;
    result->spent = rn_add(result->spent, audit->own);
    result->least = rn_min(result->least, audit->own);
}

static void audit_look(const rn_day *day, rn_day_audit *audit, const rn_quota_state *state)
{
    if (!audit->result.rolling && state->start.us != audit->start.us) {
        window_end(day, audit);
        window_begin(audit, state);
    }
    const int64_t used = rn_sub(state->max, state->remaining);

    if (audit->result.rolling) {
        audit->own = used;
    } else {
        audit->external = rn_max(rn_sub(used, audit->own), 0);
    }
    audit->result.left = state->remaining;
}

static rn_day_audit *audit_find(const rn_day *day, const rn_day_provider *provider, uint64_t id)
{
    for (size_t i = 0; i < day->audit_count; i++) {
        if (day->audits[i]->id == id && day->audits[i]->provider == provider)
            return day->audits[i];
    }
    return NULL;
}

static void audit_count(rn_day_audit *audit, const rn_judgement *judgement)
{
    const int64_t charge = audit->rule->counts == RATION_COUNTS_COST ? judgement->cost : RATION_UNIT;
    const bool refused = !judgement->granted && judgement->reason == RATION_REASON_QUOTA_EXHAUSTED &&
                         judgement->limit != NULL && rn_text_is(ration_text_of(judgement->limit), audit->rule->name);

    if (judgement->granted && !audit->result.rolling)
        audit->own = rn_add(audit->own, charge);
    if (judgement->granted || refused)
        audit->tried = rn_add(audit->tried, charge);
    audit->result.refused += refused ? 1 : 0;
}

int rn_day_audit_call(rn_day *day, rn_day_provider *provider, const rn_arrival *arrival, const rn_judgement *judgement)
{
    rn_quota_state states[QUOTAS_MAX];
    const size_t count = rn_enforcer_quotas(provider->enforcer, day->now, arrival, states, QUOTAS_MAX);

    for (size_t i = 0; i < count; i++) {
        rn_day_audit *audit = audit_find(day, provider, states[i].id);

        if (audit == NULL && day->audit_count == RN_DAY_QUOTAS_MAX) {
            day->result.unwatched++;
            continue;
        }
        if (audit == NULL) {
            const int err = audit_new(day, provider, arrival, &states[i]);

            if (err != 0)
                return err;
            audit = day->audits[day->audit_count - 1];
        } else if (!audit->result.rolling && states[i].start.us != audit->start.us) {
            window_end(day, audit);
            window_begin(audit, &states[i]);
        }
        audit_count(audit, judgement);
        audit_look(day, audit, &states[i]);
    }
    return 0;
}

/* ---- looks */

static int point_add(const rn_day *day, rn_day_audit *audit)
{
    rn_day_quota *result = &audit->result;
    rn_day_point *points = rn_day_grow(result->points, result->point_count, &audit->point_capacity, sizeof *points);

    if (points == NULL)
        return RATION_ERR_NOMEM;
    result->points = points;
    points[result->point_count++] = (rn_day_point){rn_day_since(day), audit->own, audit->external};
    return 0;
}

int rn_day_audit_sample(rn_day *day)
{
    rn_quota_state states[QUOTAS_MAX];
    int err = 0;

    for (size_t i = 0; i < day->audit_count && err == 0; i++) {
        rn_day_audit *audit = day->audits[i];
        const size_t count =
            rn_enforcer_quotas(audit->provider->enforcer, day->now, &audit->arrival, states, QUOTAS_MAX);

        for (size_t k = 0; k < count; k++) {
            if (states[k].id == audit->id)
                audit_look(day, audit, &states[k]);
        }
        err = point_add(day, audit);
    }
    return err;
}

int rn_day_audit_finish(rn_day *day)
{
    rn_day_result *result = &day->result;
    int err = 0;

    /* The window that ends with the day has ended, but is still there to be looked at. */
    day->now = rn_time_add(day->end, -1);
    err = rn_day_audit_sample(day);
    if (err != 0)
        return err;
    result->quotas = rn_mem_zalloc(rn_mem_default(), day->audit_count, sizeof *result->quotas);
    if (result->quotas == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < day->audit_count; i++) {
        rn_day_audit *audit = day->audits[i];

        window_end(day, audit);
        if (audit->result.windows == 0)
            audit->result.least = 0;
        result->quotas[result->quota_count++] = audit->result;
        audit->result = (rn_day_quota){.key = NULL};
    }
    return 0;
}

void rn_day_audit_fini(rn_day *day)
{
    for (size_t i = 0; i < day->audit_count; i++) {
        rn_mem_free(rn_mem_default(), day->audits[i]->result.key);
        rn_mem_free(rn_mem_default(), day->audits[i]->result.points);
    }
}
