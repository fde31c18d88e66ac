/* SPDX-License-Identifier: MIT */
/*
 * From a route and a request to the keys and the argument of a script.
 *
 * Every key begins `ration:1:{FLEET/PROVIDER}:`, so that all of a call lie in one slot. Names are percent-encoded in
 * it, but for a scope key, which comes last as it is. A limit that an account has of its own is another one than the
 * provider's of that name.
 *
 * Which calendar window a charge counts in depends on the server's time and on what headers have taught, so the caller
 * sends those around its own idea of now, and what a script has asked for: by the limit's name, since it may be one
 * that only somebody who waits needs. A limit that the caller does not know is sent as none.
 */
#include "fleet/call.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "core/quota_budget.h"
#include "core/sync.h"
#include "fleet/call_brief.h"
#include "fleet/call_parts.h"

#define WINDOWS_EACH 8 /* that are sent for one asked for: the one before it, and those after it */
#define PENALTY_US (2 * INT64_C(1000000))
#define PENALTY_MAX_US (24 * INT64_C(3600) * 1000000)

void rn_call_init(rn_call *call, const ration_allocator *mem, const rn_book *book, const char *fleet, bool tells_time)
{
    *call = (rn_call){.book = book, .fleet = fleet, .tells_time = tells_time, .path = RN_CALL_QUICK};
    rn_pack_init(&call->argument, mem);
    rn_pack_init(&call->brief, mem);
    rn_pack_init(&call->bytes, mem);
}

void rn_call_fini(rn_call *call)
{
    rn_pack_fini(&call->argument);
    rn_pack_fini(&call->brief);
    rn_pack_fini(&call->bytes);
}

/* ---- keys ---- */

static void bytes_str(rn_pack *bytes, const char *s)
{
    rn_pack_raw(bytes, (ration_text){s, strlen(s)});
}

static void key_begin(rn_call *call, ration_text provider)
{
    char layout[32];

    (void)snprintf(layout, sizeof layout, "ration:%d:{", RN_FLEET_LAYOUT);
    bytes_str(&call->bytes, layout);
    bytes_str(&call->bytes, call->fleet);
    bytes_str(&call->bytes, "/");
    rn_call_name(&call->bytes, provider);
    bytes_str(&call->bytes, "}:");
}

static void key_end(rn_call *call)
{
    call->ends[call->key_count++] = call->bytes.size;
}

void rn_call_keys(const rn_call *call, ration_text *keys)
{
    size_t begin = 0;

    for (size_t i = 0; i < call->key_count; i++) {
        keys[i] = (ration_text){call->bytes.data + begin, call->ends[i] - begin};
        begin = call->ends[i];
    }
}

static bool is_of_provider(const rn_provider *provider, const rn_limit *limit)
{
    for (size_t i = 0; i < provider->limit_count; i++) {
        if (provider->limits[i] == limit)
            return true;
    }
    return false;
}

/* `account`: whose own limit it is; absent: the provider's. */
static void write_name(rn_pack *out, ration_text limit, ration_text account)
{
    rn_call_name(out, limit);
    if (account.data != NULL) {
        bytes_str(out, "@");
        rn_call_name(out, account);
    }
}

static ration_text owner_of(const rn_account *account, const rn_limit *limit)
{
    return is_of_provider(account->provider, limit) ? (ration_text){NULL, 0} : account->name;
}

void rn_call_limit_name(rn_pack *out, const rn_account *account, const rn_limit *limit)
{
    write_name(out, ration_text_of(limit->rule->name), owner_of(account, limit));
}

void rn_call_limit_key(rn_call *call, ration_text provider, ration_text limit, ration_text account, ration_text key)
{
    key_begin(call, provider);
    bytes_str(&call->bytes, "limit:");
    write_name(&call->bytes, limit, account);
    bytes_str(&call->bytes, ":");
    rn_pack_raw(&call->bytes, key);
    key_end(call);
}

static void key_counter(rn_call *call, const rn_route *route, const rn_counter *counter)
{
    rn_call_limit_key(call, route->provider->name, ration_text_of(counter->limit->rule->name),
                      owner_of(route->account, counter->limit), counter->key);
}

static void call_clear(rn_call *call)
{
    rn_pack_clear(&call->argument);
    rn_pack_clear(&call->brief);
    rn_pack_clear(&call->bytes);
    call->key_count = 0;
}

void rn_call_head(rn_call *call, ration_text provider)
{
    call_clear(call);
    call->provider = provider;
    key_begin(call, provider);
    bytes_str(&call->bytes, "head");
    key_end(call);
}

void rn_call_lease_key(rn_call *call, ration_text provider, ration_text id)
{
    key_begin(call, provider);
    bytes_str(&call->bytes, "lease:");
    rn_pack_raw(&call->bytes, id);
    key_end(call);
}

void rn_call_circuit_key(rn_call *call, ration_text provider, ration_text key)
{
    key_begin(call, provider);
    bytes_str(&call->bytes, "circuit:");
    rn_pack_raw(&call->bytes, key);
    key_end(call);
}

int rn_call_route_keys(rn_call *call, const rn_route *route, ration_text id)
{
    if (route->count + 4 > RN_CALL_KEYS_MAX)
        return RATION_ERR_FULL;
    rn_call_head(call, route->provider->name);
    rn_call_lease_key(call, route->provider->name, id);
    key_begin(call, route->provider->name);
    bytes_str(&call->bytes, "account:");
    rn_call_name(&call->bytes, route->account->name);
    key_end(call);
    for (size_t i = 0; i < route->count; i++)
        key_counter(call, route, route->links[i].counter);
    if (route->circuit != NULL)
        rn_call_circuit_key(call, route->provider->name, route->circuit->key);
    return RATION_OK;
}

/* ---- the argument ---- */

/* What a script may see: an instant or amount beyond 2^53 is as good as that. */
static int64_t bounded(int64_t value)
{
    return rn_max(-RATION_TIME_MAX_US, rn_min(value, RATION_TIME_MAX_US));
}

static void write_ratio(rn_pack *out, ration_ratio ratio)
{
    rn_pack_int(out, ratio.den == 0 ? 1 : ratio.num);
    rn_pack_int(out, ratio.den == 0 ? 1 : ratio.den);
}

static void write_window(rn_pack *out, ration_time start, ration_time end)
{
    rn_pack_array(out, 2);
    rn_pack_int(out, bounded(start.us));
    rn_pack_int(out, bounded(end.us));
}

/* The window before that of an instant, and those from it on. */
static void write_windows(rn_pack *out, const rn_calendar *calendar, ration_time at, size_t count)
{
    ration_time start;
    ration_time end;
    ration_time before;

    rn_calendar_window(calendar, at, &start, &end);
    rn_calendar_window(calendar, rn_time_add(start, -1), &before, &start);
    write_window(out, before, start);
    for (size_t i = 1; i < count; i++) {
        rn_calendar_window(calendar, start, &start, &end);
        write_window(out, start, end);
        start = end;
    }
}

/* The limit named as in keys; NULL: there is none of that name. */
static const rn_limit *limit_of(const rn_call *call, const char *name)
{
    rn_pack own;
    const rn_limit *found = NULL;

    rn_pack_init(&own, call->argument.mem);
    for (size_t i = 0; i < call->book->account_count && found == NULL; i++) {
        const rn_account *const account = &call->book->accounts[i];
        const size_t count = rn_text_eq(account->provider->name, call->provider) ? account->provider->limit_count : 0;

        for (size_t k = 0; k < count && found == NULL; k++) {
            rn_pack_clear(&own);
            rn_call_limit_name(&own, account, account->limits[k]);
            rn_pack_raw(&own, (ration_text){"", 1});
            if (own.err == RATION_OK && strcmp(own.data, name) == 0)
                found = account->limits[k];
        }
    }
    rn_pack_fini(&own);
    return found;
}

/* Has this limit been asked for before? */
static bool is_asked_before(const rn_call *call, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(call->windows[i].limit, call->windows[at].limit) == 0)
            return true;
    }
    return false;
}

static void write_asked(rn_pack *out, const rn_call *call, size_t first)
{
    const char *const name = call->windows[first].limit;
    const rn_limit *const limit = limit_of(call, name);
    size_t count = 0;

    rn_pack_key(out, name);
    if (limit != NULL && limit->rule->kind == RATION_KIND_SHARE) {
        rn_call_share_rule(out, limit);
        return;
    }
    if (limit == NULL || limit->rule->kind != RATION_KIND_QUOTA ||
        limit->spec.quota.calendar.period == RATION_PERIOD_NONE) {
        rn_pack_bool(out, false);
        return;
    }
    for (size_t i = first; i < call->window_count; i++)
        count += strcmp(call->windows[i].limit, name) == 0 ? 1 : 0;
    rn_pack_array(out, WINDOWS_EACH * count);
    for (size_t i = first; i < call->window_count; i++) {
        if (strcmp(call->windows[i].limit, name) == 0)
            write_windows(out, &limit->spec.quota.calendar, call->windows[i].at, WINDOWS_EACH);
    }
}

/* What has been asked for, by limit; false: nothing. */
static void write_all_asked(rn_call *call)
{
    rn_pack *const out = &call->argument;
    size_t limits = 0;

    for (size_t i = 0; i < call->window_count; i++)
        limits += is_asked_before(call, i) ? 0 : 1;
    if (limits == 0) {
        rn_pack_bool(out, false);
        return;
    }
    rn_pack_map(out, limits);
    for (size_t i = 0; i < call->window_count; i++) {
        if (!is_asked_before(call, i))
            write_asked(out, call, i);
    }
}

/* What a response tells of a quota. */
static void write_told(rn_pack *out, const rn_call *call, const rn_limit *limit, const ration_response *response)
{
    rn_told told;

    rn_sync_read(limit->rule, limit->spec.quota.length_us, response, call->now, &told);
    rn_pack_array(out, 3);
    if (told.max_is == RN_FIELD_OK) {
        rn_pack_int(out, bounded(told.max));
    } else {
        rn_pack_bool(out, false);
    }
    if (told.left_is == RN_FIELD_OK) {
        rn_pack_int(out, bounded(told.left));
    } else {
        rn_pack_bool(out, false);
    }
    if (told.reset_is == RN_FIELD_OK) {
        rn_pack_int(out, bounded(told.reset.us));
    } else {
        rn_pack_bool(out, false);
    }
}

/* The bounds of the windows around the caller's now: the one before it, its own, the next one. */
static void write_bounds(rn_pack *out, const rn_calendar *calendar, ration_time at)
{
    ration_time start;
    ration_time end;
    ration_time before;
    ration_time after;

    rn_calendar_window(calendar, at, &start, &end);
    rn_calendar_window(calendar, rn_time_add(start, -1), &before, &start);
    rn_calendar_window(calendar, end, &end, &after);
    rn_pack_int(out, bounded(before.us));
    rn_pack_int(out, bounded(start.us));
    rn_pack_int(out, bounded(end.us));
    rn_pack_int(out, bounded(after.us));
}

static void write_quota_rule(rn_pack *out, const rn_call *call, const rn_counter *counter)
{
    const rn_limit *const limit = counter->limit;
    const rn_quota_spec *const spec = &limit->spec.quota;
    const bool rolling = spec->calendar.period == RATION_PERIOD_NONE;

    rn_pack_int(out, limit->rule->max);
    rn_pack_bool(out, limit->rule->max_auto);
    write_ratio(out, counter->share);
    write_ratio(out, limit->reserve);
    rn_pack_int(out, spec->arrival_us);
    rn_pack_int(out, spec->length_us);
    rn_pack_bool(out, rn_quota_learns(limit->rule));
    rn_pack_bool(out, !rolling && spec->parts > 0);
    rn_pack_bool(out, rolling);
    rn_pack_bool(out, limit->rule->when_exhausted == RATION_EXHAUSTED_WAIT);
    if (rolling) {
        rn_pack_int(out, spec->width_us);
        rn_pack_int(out, spec->counts_us);
        rn_pack_bool(out, false);
        rn_pack_bool(out, false);
    } else {
        write_bounds(out, &spec->calendar, call->now);
    }
}

static void write_classes(rn_pack *out, const ration_adaptive_rule *rule)
{
    size_t count = 0;

    for (size_t i = 0; i < rule->class_count; i++)
        count += rule->classes[i].reserved.num > 0;
    rn_pack_array(out, count);
    for (size_t i = 0; i < rule->class_count; i++) {
        const ration_class_rule *const class = &rule->classes[i];

        if (class->reserved.num == 0)
            continue;
        rn_pack_array(out, 3);
        rn_pack_text(out, ration_text_of(class->name));
        rn_pack_int(out, class->reserved.num);
        rn_pack_int(out, class->reserved.den);
    }
}

static void write_aimd(rn_pack *out, const rn_aimd_spec *aimd)
{
    const int64_t numbers[] = {aimd->initial,    aimd->min,        aimd->max,       aimd->step,
                               aimd->factor.num, aimd->factor.den, aimd->window_us, aimd->cooldown_us};

    rn_pack_array(out, sizeof numbers / sizeof numbers[0] + 1);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        rn_pack_int(out, numbers[i]);
    rn_pack_bool(out, aimd->fast);
}

/* What a call says of one limit, beside its rules. */
typedef struct counter_call {
    const rn_call *call;
    const rn_route_link *link;
    int64_t cost;
    int64_t hold_us;
    const ration_response *response;
} counter_call;

static void write_rate(rn_pack *out, const counter_call *what)
{
    const rn_bucket_spec *const spec = &what->link->counter->limit->spec.bucket;

    rn_pack_int(out, spec->earn);
    rn_pack_int(out, spec->price);
    rn_pack_int(out, spec->cap);
    rn_pack_int(out, spec->burst);
    rn_pack_int(out, spec->margin);
}

static void write_concurrency(rn_pack *out, const counter_call *what)
{
    rn_pack_int(out, what->link->counter->limit->rule->max);
}

static void write_quota(rn_pack *out, const counter_call *what)
{
    write_quota_rule(out, what->call, what->link->counter);
    if (what->response != NULL) {
        write_told(out, what->call, what->link->counter->limit, what->response);
    } else {
        rn_pack_bool(out, false);
    }
}

/* The limit as it is, and what the request is to it. */
static void write_adaptive(rn_pack *out, const counter_call *what)
{
    const rn_route_link *const link = what->link;
    const int64_t hold_us = what->hold_us;
    const rn_counter *const counter = link->counter;
    const ration_adaptive_rule *const rule = &counter->limit->rule->adaptive;
    const rn_adaptive_spec *const spec = counter->limit->spec.adaptive;
    const bool unknown = link->lane == RN_LANE_UNKNOWN;
    const bool borrows = rule->lend_horizon_us > 0 && hold_us != RATION_UNSET && hold_us <= rule->lend_horizon_us;
    const int64_t most = borrows ? spec->aimd.max * RATION_UNIT : unknown ? 0 : spec->most[link->lane];

    write_aimd(out, &spec->aimd);
    write_classes(out, rule);
    if (unknown || link->lane == RN_CLASS_NONE) {
        rn_pack_bool(out, false);
    } else {
        rn_pack_text(out, ration_text_of(rule->classes[link->lane - 1].name));
    }
    rn_pack_bool(out, unknown);
    rn_pack_int(out, most);
    rn_pack_bool(out, borrows);
    rn_pack_given(out, rule->lend_horizon_us > 0 ? rule->lend_idle_us : RATION_UNSET, RATION_UNSET);
    rn_pack_bool(out, rule->pause_on_retry_after);
    rn_call_followers(out, link);
    rn_pack_given(out, what->call->tells_time ? bounded(counter->started_at.us) : RATION_NEVER_US, RATION_NEVER_US);
}

static void write_share(rn_pack *out, const counter_call *what)
{
    rn_call_share(out, what->call, what->link, what->cost);
}

/* The kinds as the scripts number them. What each writes of its rules call.lua has names for, in the same order. */
static const struct kind_row {
    int64_t number;
    void (*write)(rn_pack *out, const counter_call *what);
} kind_rows[RATION_KIND_COUNT] = {
    [RATION_KIND_RATE] = {1, write_rate},         [RATION_KIND_CONCURRENCY] = {2, write_concurrency},
    [RATION_KIND_QUOTA] = {3, write_quota},       [RATION_KIND_SHARE] = {4, write_share},
    [RATION_KIND_ADAPTIVE] = {5, write_adaptive},
};

static void write_counter(rn_pack *out, const counter_call *what)
{
    const rn_limit *const limit = what->link->counter->limit;
    const struct kind_row *const row = &kind_rows[limit->rule->kind];
    const bool by_cost = limit->rule->counts == RATION_COUNTS_COST;

    rn_pack_int(out, row->number);
    rn_pack_int(out, by_cost ? what->cost : RATION_UNIT);
    rn_pack_bool(out, by_cost);
    rn_pack_bool(out, limit->rule->enforce == RATION_ENFORCE_ON);
    row->write(out, what);
}

void rn_call_rules(rn_call *call, rn_call_counter *at)
{
    rn_route route = {.account = at->account};
    const rn_route_link link = {.route = &route, .counter = &at->counter, .lane = RN_LANE_UNKNOWN};

    write_counter(&call->argument, &(counter_call){.call = call, .link = &link, .hold_us = RATION_UNSET});
}

/* `what` but for the counter. */
static void write_counters(rn_call *call, const rn_route *route, counter_call what)
{
    what.call = call;
    for (size_t i = 0; i < route->count; i++) {
        what.link = &route->links[i];
        write_counter(&call->argument, &what);
    }
}

void rn_call_counters(rn_call *call, const rn_route *route, int64_t cost)
{
    write_counters(call, route, (counter_call){.cost = cost, .hold_us = RATION_UNSET});
}

void rn_call_owner(rn_pack *out, const rn_account *account)
{
    rn_pack_array(out, 3);
    rn_pack_text(out, account->name);
    rn_pack_text(out, account->target);
    rn_pack_text(out, account->credential);
}

static void write_breaker(rn_pack *out, const rn_breaker_spec *spec)
{
    const ration_breaker_rule *const rule = &spec->rule;
    const int64_t strategy = rule->strategy == RATION_BREAKER_CONSECUTIVE ? 1
                             : rule->strategy == RATION_BREAKER_COUNT     ? 2
                                                                          : 3;
    const int64_t before[] = {strategy,   rule->threshold,   rule->ratio.num,    rule->ratio.den,
                              rule->size, rule->duration_us, rule->minimum_calls};
    const int64_t after[] = {
        rule->probes,         rule->backoff_initial_us, rule->backoff_multiplier.num, rule->backoff_multiplier.den,
        rule->backoff_max_us, rule->idle_interval_us,   rule->idle_failures,          rule->quorum};
    const size_t before_count = sizeof before / sizeof before[0];
    const size_t after_count = sizeof after / sizeof after[0];

    rn_pack_array(out, before_count + 1 + after_count + 3);
    for (size_t i = 0; i < before_count; i++)
        rn_pack_int(out, before[i]);
    rn_pack_bool(out, rule->recovery == RATION_RECOVERY_PROBE);
    for (size_t i = 0; i < after_count; i++)
        rn_pack_int(out, after[i]);
    rn_pack_text(out, ration_text_of(spec->tripped));
    rn_pack_text(out, ration_text_of(spec->recovered));
    rn_pack_text(out, ration_text_of(spec->unwell));
}

/* The breaker that the request goes through, by its rules (circuit.lua); false: none. */
static void write_circuit(rn_pack *out, const rn_route *route, bool through)
{
    if (!through || route->circuit == NULL) {
        rn_pack_bool(out, false);
        return;
    }
    rn_pack_map(out, 2);
    rn_pack_key(out, "rule");
    write_breaker(out, &route->provider->circuit->breaker);
    rn_pack_key(out, "owner");
    rn_call_owner(out, route->account);
}

void rn_call_common(rn_call *call)
{
    rn_pack *const out = &call->argument;

    rn_pack_given(out, call->tells_time ? call->now.us : RATION_NEVER_US, RATION_NEVER_US);
    rn_pack_bool(out, call->tells_time && !call->keys_end);
    if (call->member.size > 0) {
        rn_pack_text(out, call->member);
    } else {
        rn_pack_bool(out, false);
    }
    write_all_asked(call);
}

/* What orders those who wait: see admit.lua. */
static void write_queue(rn_call *call, const rn_call_ask *ask)
{
    rn_pack *const out = &call->argument;

    rn_pack_int(out, ask->priority);
    rn_pack_text(out, ask->tenant);
    rn_pack_int(out, ask->cost);
    rn_pack_int(out, ask->weight);
    rn_pack_bool(out, call->book->fifo);
    rn_pack_int(out, call->book->max_waiters);
    rn_pack_int(out, call->book->max_waiters_per_tenant);
    rn_pack_int(out, bounded(call->waiter_ttl_us));
}

/* Which limits a 429 penalizes: 0 none, but the account; -1 all that bind; else one by its place. */
static int64_t penalized_of(const rn_route *route)
{
    size_t narrowest = route->count;

    for (size_t i = 0; i < route->count; i++) {
        const rn_limit *const limit = route->links[i].counter->limit;

        if (limit->rule->enforce != RATION_ENFORCE_ON)
            continue;
        if (narrowest == route->count || limit->depth > route->links[narrowest].counter->limit->depth)
            narrowest = i;
    }
    if (narrowest == route->count)
        return 0;
    return route->provider->rule.errors.penalize == RATION_PENALIZE_ALL ? -1 : (int64_t)narrowest + 1;
}

/* What has come of a lease's call, as feedback.lua has it. */
typedef struct lease_news {
    const char *outcome;
    int64_t cost; /* RATION_UNSET: as it was charged */
    ration_time retry_at;
    bool status, limited, success;
} lease_news;

static void write_news(rn_call *call, const rn_route *route, const lease_news *news)
{
    const ration_error_rule *const rule = &route->provider->rule.errors;
    rn_pack *const out = &call->argument;

    rn_call_common(call);
    write_circuit(out, route, true);
    rn_pack_text(out, ration_text_of(news->outcome));
    rn_pack_given(out, news->cost, RATION_UNSET);
    rn_pack_bool(out, news->status);
    rn_pack_bool(out, news->limited);
    rn_pack_bool(out, news->success);
    rn_pack_given(out, rn_time_known(news->retry_at) ? bounded(news->retry_at.us) : RATION_NEVER_US, RATION_NEVER_US);
    rn_pack_int(out, bounded(rule->default_penalty_us > 0 ? rule->default_penalty_us : PENALTY_US));
    rn_pack_int(out, bounded(rule->max_penalty_us > 0 ? rule->max_penalty_us : PENALTY_MAX_US));
    rn_pack_int(out, penalized_of(route));
}

int rn_call_written(const rn_call *call)
{
    return call->argument.err != RATION_OK ? call->argument.err : call->bytes.err;
}

int rn_call_admit(rn_call *call, const rn_route *route, const rn_call_ask *ask)
{
    rn_pack *const out = &call->argument;
    const int err = rn_call_route_keys(call, route, ask->id);

    if (err != RATION_OK)
        return err;
    rn_call_common(call);
    write_circuit(out, route, !ask->health);
    rn_pack_given(out, ask->hold_us, RATION_UNSET);
    rn_pack_given(out, ask->ttl_us, RATION_UNSET);
    rn_pack_bool(out, ask->retry);
    rn_pack_bool(out, ask->priority == RATION_PRIORITY_CRITICAL);
    rn_pack_int(out, bounded(ask->wait_us));
    rn_pack_bool(out, ask->dry);
    rn_pack_bool(out, ask->enforcer);
    rn_pack_bool(out, ask->enter);
    rn_pack_bool(out, ask->again);
    write_queue(call, ask);
    write_counters(call, route, (counter_call){.cost = ask->cost, .hold_us = ask->hold_us});
    rn_call_brief_admit(call, route, ask);
    return rn_call_written(call);
}

int rn_call_observe(rn_call *call, const rn_route *route, ration_text id, const ration_response *response,
                    const ration_outcome *said)
{
    const rn_reading reading = rn_call_reading(route, response, said);
    const int err = rn_call_route_keys(call, route, id);
    lease_news news = {
        .outcome = ration_outcome_name(reading.outcome),
        .cost = RATION_UNSET,
        .retry_at = {RATION_NEVER_US},
        .status = response->status != 0 || said != NULL,
        .limited = reading.rate_limited,
        .success = reading.success,
    };

    if (err != RATION_OK)
        return err;
    if (rn_field_retry_after(response, call->now, &news.retry_at) != RN_FIELD_OK)
        news.retry_at.us = RATION_NEVER_US;
    write_news(call, route, &news);
    write_counters(call, route, (counter_call){.hold_us = RATION_UNSET, .response = response});
    if (news.status && !news.limited && reading.outcome != RATION_OUTCOME_THROTTLED)
        rn_call_brief_news(call, route, news.success);
    return rn_call_written(call);
}

int rn_call_release(rn_call *call, const rn_route *route, ration_text id, const rn_call_end *end)
{
    const int err = rn_call_route_keys(call, route, id);
    const lease_news news = {
        .outcome = ration_outcome_name(end->outcome),
        .cost = end->cost,
        .retry_at = {RATION_NEVER_US},
    };

    if (err != RATION_OK)
        return err;
    write_news(call, route, &news);
    write_counters(call, route, (counter_call){.hold_us = RATION_UNSET});
    if (end->cost == RATION_UNSET && end->outcome != RATION_OUTCOME_THROTTLED)
        rn_call_brief_news(call, route, end->outcome == RATION_OUTCOME_SUCCESS);
    return rn_call_written(call);
}

int rn_call_channel(rn_call *call, ration_text provider, const char *what, ration_text whose, ration_text *out)
{
    call_clear(call);
    key_begin(call, provider);
    bytes_str(&call->bytes, what);
    rn_pack_raw(&call->bytes, whose);
    *out = (ration_text){call->bytes.data, call->bytes.size};
    return rn_call_written(call);
}

int rn_call_write(rn_call *call, const rn_call_what *what)
{
    switch (what->script) {
    case RN_SCRIPT_ADMIT:
        return rn_call_admit(call, what->route, what->ask);
    case RN_SCRIPT_OBSERVE:
        return rn_call_observe(call, what->route, what->id, what->response, what->said);
    case RN_SCRIPT_PREFETCH:
    case RN_SCRIPT_SETTLE:
        return rn_call_block(call, what);
    case RN_SCRIPT_RELEASE:
        return rn_call_release(call, what->route, what->id, what->end);
    case RN_SCRIPT_CANCEL:
        return rn_call_cancel(call, what->route, what->id);
    case RN_SCRIPT_RENEW:
    case RN_SCRIPT_COLLECT:
        return rn_call_leases(call, what->id, what->ids, what->id_count);
    case RN_SCRIPT_HEALTH:
        return rn_call_health_write(call, what->health);
    case RN_SCRIPT_ADVANCE:
        return rn_call_advance(call, what->id, what->circuit);
    case RN_SCRIPT_BEAT:
        return rn_call_beat(call, what->beat);
    case RN_SCRIPT_TENANTS:
        return rn_call_tenants(call, what->counter, what->id);
    case RN_SCRIPT_OPERATE:
        return rn_call_operate(call, what->operation);
    case RN_SCRIPT_INSPECT:
        return rn_call_inspect(call, what->inspection);
    case RN_SCRIPT_COUNT:
        break;
    }
    return RATION_ERR_INVALID;
}
