/* SPDX-License-Identifier: MIT */
/*
 * What the quick paths of the scripts need of a call (scripts/quick_admit.lua, quick_news.lua), worked out as far as
 * that can be done without the state: a short row of values in a second argument. Where there is none, the whole
 * script decides.
 *
 * The end of a lease's record is written here, in the very bytes that the whole script would pack.
 */
#include "fleet/call_brief.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "base/units.h"
#include "core/quota_budget.h"

#define US_PER_S INT64_C(1000000)
#define TWO_DAYS_S INT64_C(172800)

/* A quota whose state is no more than a few sums. */
static bool is_plain_quota(const rn_limit *limit)
{
    return limit->rule->kind == RATION_KIND_QUOTA && !rn_quota_learns(limit->rule) &&
           limit->spec.quota.calendar.period != RATION_PERIOD_NONE;
}

static int64_t charge_of(const rn_limit *limit, const rn_call_ask *ask)
{
    return limit->rule->counts == RATION_COUNTS_COST ? ask->cost : RATION_UNIT;
}

/* 1, what a microsecond earns, the cap, what must be there, what is paid. False: it never fits. */
static bool brief_rate(rn_pack *out, const rn_bucket_spec *spec, int64_t charge)
{
    if (charge > spec->burst - spec->margin)
        return false;
    rn_pack_int(out, 1);
    rn_pack_int(out, spec->earn);
    rn_pack_int(out, spec->cap);
    rn_pack_int(out, (charge + spec->margin) * spec->price);
    rn_pack_int(out, charge * spec->price);
    return true;
}

/* 2, the charge, the most that may be held beside it. */
static bool brief_slots(rn_pack *out, int64_t max, int64_t charge)
{
    if (charge > max)
        return false;
    rn_pack_int(out, 2);
    rn_pack_int(out, charge);
    rn_pack_int(out, max - charge);
    return true;
}

/* 3, the charge, how long a call may be on its way, the most that may have been spent. Who is critical may go into the
 * reserve, but that is noted, so it is not for here. */
static bool brief_quota(rn_pack *out, const rn_counter *counter, const rn_call_ask *ask, int64_t charge)
{
    const rn_limit *const limit = counter->limit;
    const rn_quota_budget budget = rn_quota_budget_fresh(limit->rule, counter->share, limit->reserve);
    const bool all = ask->retry && ask->priority != RATION_PRIORITY_CRITICAL;
    const int64_t most = budget.usable - (all ? 0 : budget.reserve) - charge;

    if (most < 0)
        return false;
    rn_pack_int(out, 3);
    rn_pack_int(out, charge);
    rn_pack_int(out, limit->spec.quota.arrival_us);
    rn_pack_int(out, most);
    return true;
}

static bool brief_counter(rn_pack *out, const rn_counter *counter, const rn_call_ask *ask)
{
    const rn_limit *const limit = counter->limit;
    const int64_t charge = charge_of(limit, ask);

    if (limit->rule->enforce != RATION_ENFORCE_ON || charge <= 0)
        return false;
    switch (limit->rule->kind) {
    case RATION_KIND_RATE:
        return brief_rate(out, &limit->spec.bucket, charge);
    case RATION_KIND_CONCURRENCY:
        return brief_slots(out, limit->rule->max, charge);
    case RATION_KIND_QUOTA:
        return is_plain_quota(limit) && brief_quota(out, counter, ask, charge);
    case RATION_KIND_NONE:
    case RATION_KIND_SHARE:
    case RATION_KIND_ADAPTIVE:
    case RATION_KIND_COUNT:
        break;
    }
    return false;
}

/* How long the lease is to be held, its time to live; no status, no response, no circuit; of each counter the key, the
 * kind's number, the charge and what the kind remembers: a record as lease.lua packs it, behind its instants. */
static void write_record(rn_call *call, rn_pack *out, const rn_route *route, const rn_call_ask *ask)
{
    const size_t prefix = call->ends[0] - (sizeof "head" - 1);

    rn_pack_given(out, ask->hold_us, RATION_UNSET);
    rn_pack_int(out, ask->ttl_us);
    for (int i = 0; i < 3; i++)
        rn_pack_bool(out, false);
    for (size_t i = 0; i < route->count; i++) {
        const rn_limit *const limit = route->links[i].counter->limit;
        const size_t begin = call->ends[2 + i] + prefix;
        const ration_kind kind = limit->rule->kind;

        rn_pack_text(out, (ration_text){call->bytes.data + begin, call->ends[3 + i] - begin});
        rn_pack_int(out, kind == RATION_KIND_RATE ? 1 : kind == RATION_KIND_CONCURRENCY ? 2 : 3);
        rn_pack_int(out, charge_of(limit, ask));
        rn_pack_given(out, kind == RATION_KIND_QUOTA ? limit->spec.quota.arrival_us : RATION_UNSET, RATION_UNSET);
    }
}

/* Of a record, in seconds: lease_life of lease.lua. */
static void write_life(rn_pack *out, int64_t ttl_us)
{
    char seconds[24];

    (void)snprintf(seconds, sizeof seconds, "%" PRId64, ttl_us / US_PER_S + (ttl_us % US_PER_S > 0) + TWO_DAYS_S);
    rn_pack_text(out, ration_text_of(seconds));
}

static void brief_begin(rn_call *call)
{
    rn_pack *const out = &call->brief;

    rn_pack_bool(out, call->path == RN_CALL_ONLY);
    rn_pack_given(out, call->tells_time ? call->now.us : RATION_NEVER_US, RATION_NEVER_US);
    rn_pack_bool(out, call->tells_time && !call->keys_end);
}

static bool may_be_brief(const rn_call *call)
{
    return call->path != RN_CALL_WHOLE && call->window_count == 0 && call->bytes.err == RATION_OK;
}

void rn_call_brief_admit(rn_call *call, const rn_route *route, const rn_call_ask *ask)
{
    rn_pack *const out = &call->brief;
    rn_pack record;
    bool fits = true;

    if (!may_be_brief(call) || ask->dry || ask->enforcer || ask->enter || ask->ttl_us == RATION_UNSET ||
        (route->circuit != NULL && !ask->health))
        return;
    rn_pack_init(&record, out->mem);
    write_record(call, &record, route, ask);
    brief_begin(call);
    rn_pack_given(out, ask->hold_us, RATION_UNSET);
    rn_pack_int(out, ask->ttl_us);
    write_life(out, ask->ttl_us);
    rn_pack_text(out, (ration_text){record.data, record.size});
    for (size_t i = 0; fits && i < route->count; i++)
        fits = brief_counter(out, route->links[i].counter, ask);
    if (!fits || record.err != RATION_OK || out->err != RATION_OK)
        rn_pack_clear(out); /* it can be done without */
    rn_pack_fini(&record);
}

static bool is_news_brief(const rn_route *route)
{
    for (size_t i = 0; i < route->count; i++) {
        const rn_limit *const limit = route->links[i].counter->limit;

        if (limit->rule->kind != RATION_KIND_RATE && limit->rule->kind != RATION_KIND_CONCURRENCY &&
            !is_plain_quota(limit))
            return false;
    }
    return true;
}

void rn_call_brief_news(rn_call *call, const rn_route *route, bool success)
{
    if (!may_be_brief(call) || route->circuit != NULL || !is_news_brief(route))
        return;
    brief_begin(call);
    rn_pack_bool(&call->brief, success);
    if (call->brief.err != RATION_OK)
        rn_pack_clear(&call->brief);
}
