/* SPDX-License-Identifier: MIT */
/*
 * Where the limits of a call stand.
 *
 * Each kind describes its counter, as for a report; here that becomes what a client can use: how much fits, how much is
 * left, and when there will be more. Nothing is decided, so times round up and amounts are left for the writer to round
 * down.
 *
 * Invariant: `out` is in order of calls that still fit, and of declaration among equals.
 */
#include "core/standing.h"

#include "base/units.h"
#include "core/engine.h"

static void rate_standing(const rn_bucket_spec *spec, int64_t credit, int64_t charge, rn_standing *out)
{
    const int64_t free = rn_sub(rn_div_floor(credit, spec->price), spec->margin);
    const int64_t want = free < charge ? rn_mul(rn_add(charge, spec->margin), spec->price) : spec->cap;

    out->quota = rn_sub(spec->burst, spec->margin);
    out->window_us = rn_div_ceil(spec->cap, spec->earn);
    out->remaining = rn_max(free, 0);
    out->reset_us = rn_div_ceil(rn_max(rn_sub(want, credit), 0), spec->earn);
}

static void quota_standing(const ration_counter_report *report, ration_time now, rn_standing *out)
{
    out->quota = rn_max(rn_sub(report->usable, report->reserve), 0);
    out->window_us = report->has_window ? rn_sub(report->window_end.us, report->window_start.us) : report->rolling_us;
    out->remaining = rn_max(rn_sub(report->remaining, report->reserve), 0);
    out->reset_us = report->has_window ? rn_max(rn_sub(report->window_end.us, now.us), 0) : RATION_UNSET;
}

bool rn_standing_is_of(const rn_limit *limit)
{
    return limit->rule->enforce == RATION_ENFORCE_ON &&
           (limit->rule->kind == RATION_KIND_RATE || limit->rule->kind == RATION_KIND_QUOTA);
}

bool rn_standing_of(const rn_limit *limit, const ration_counter_report *report, int64_t credit, ration_time now,
                    int64_t charge, rn_standing *out)
{
    if (!rn_standing_is_of(limit))
        return false;
    *out = (rn_standing){.limit = limit->rule->name, .cost = limit->rule->counts == RATION_COUNTS_COST};
    if (limit->rule->kind == RATION_KIND_RATE) {
        rate_standing(&limit->spec.bucket, credit, charge, out);
    } else {
        quota_standing(report, now, out);
    }
    return true;
}

void rn_standings_add(rn_standings *all, const rn_standing *one, int64_t charge)
{
    const int64_t calls = one->remaining / charge;
    size_t at = all->count;

    while (at > 0 && all->fits[at - 1] > calls)
        at--;
    if (at == all->max)
        return;
    all->count = all->count < all->max ? all->count + 1 : all->max;
    for (size_t k = all->count - 1; k > at; k--) {
        all->items[k] = all->items[k - 1];
        all->fits[k] = all->fits[k - 1];
    }
    all->items[at] = *one;
    all->fits[at] = calls;
}

static bool counter_standing(const ration_engine *engine, rn_counter *counter, int64_t charge, rn_standing *out)
{
    const rn_limit *limit = counter->limit;
    ration_counter_report report = {.limit = limit->rule->name};

    if (!rn_standing_is_of(limit))
        return false;
    limit->kind->describe(counter, engine->now, &report); /* brings it up to now */
    return rn_standing_of(limit, &report, counter->u.bucket.credit, engine->now, charge, out);
}

size_t rn_engine_standing(ration_engine *engine, ration_lease lease, rn_standing *out, size_t max)
{
    const rn_lease *found = rn_leases_find(&engine->leases, lease);
    rn_standings all = {.items = out, .max = max < RN_STANDINGS_MAX ? max : RN_STANDINGS_MAX};

    for (size_t i = 0; found != NULL && i < found->place_count; i++) {
        const rn_place *place = &found->places[i];
        const int64_t charge = rn_max(place->charge, 1);
        rn_standing one;

        if (counter_standing(engine, place->counter, charge, &one))
            rn_standings_add(&all, &one, charge);
    }
    return all.count;
}

/* The limit whose name that is, by its place in memory. */
static const rn_limit *limit_find(const rn_book *book, const char *name)
{
    for (size_t i = 0; i < book->provider_count; i++) {
        for (size_t k = 0; k < book->providers[i].limit_count; k++) {
            if (book->providers[i].limits[k]->rule->name == name)
                return book->providers[i].limits[k];
        }
    }
    for (size_t i = 0; i < book->account_count; i++) {
        for (size_t k = 0; k < book->accounts[i].provider->limit_count; k++) {
            if (book->accounts[i].limits[k]->rule->name == name)
                return book->accounts[i].limits[k];
        }
    }
    return NULL;
}

size_t rn_engine_standing_of(ration_engine *engine, const ration_decision *refused, rn_standing *out)
{
    const rn_limit *limit =
        refused->limit != NULL && refused->key.data != NULL ? limit_find(&engine->world->book, refused->limit) : NULL;
    rn_counter *counter = limit != NULL ? rn_routes_counter(&engine->world->routes, limit, refused->key) : NULL;

    return counter != NULL && counter_standing(engine, counter, rn_max(refused->facts.charge, 1), out) ? 1 : 0;
}
