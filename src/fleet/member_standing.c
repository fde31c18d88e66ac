/* SPDX-License-Identifier: MIT */
/*
 * Where the limits of a call stand, for its client.
 *
 * No answer of an admission carries that, for it would cost every call. It is made of what the store has told last of
 * the counters, which is asked for each second while somebody is told, less what this member has been granted since,
 * plus what a bucket has earned since. What others have taken since is not in it, nor what was given back: the next
 * figures have both. A counter of which nothing is known yet, whose window has ended since, or whose figures are old,
 * is left out, as is all while the store is away. Decision 0030.
 *
 * Invariant: `spent` of a figure is what was granted by answers that came after the one that told it. Answers of a
 * provider come in the order in which Redis decided, so nothing is in both, or in neither.
 */
#include "base/text.h"
#include "base/units.h"
#include "core/engine.h"
#include "fleet/member_parts.h"

static int64_t charge_of(const rn_limit *limit, int64_t cost)
{
    return limit->rule->counts == RATION_COUNTS_COST ? cost : RATION_UNIT;
}

/* Of one that the lease's call counts in. The rules may have changed since it was asked for. */
static rn_member_figure *figure_for(const rn_member *m, const rn_member_lease *lease, size_t index)
{
    const rn_counter *const counter = lease->route->links[index].counter;

    return lease->world == m->world ? rn_member_figure_of(m, counter) : rn_member_figure_like(m, counter);
}

void rn_member_spent(rn_member *m, const rn_member_lease *lease, int64_t units)
{
    for (size_t i = 0; i < lease->route->count; i++) {
        rn_member_figure *const figure = figure_for(m, lease, i);

        if (figure != NULL)
            figure->spent = rn_add(figure->spent, rn_mul(units, charge_of(figure->limit, lease->ask.cost)));
    }
}

/* Figures stay fresh while somebody is told of them. */
static void looked(rn_member *m, const rn_member_figure *figure)
{
    if (rn_standing_is_of(figure->limit))
        m->looked_at = rn_member_now(m);
}

static bool figure_standing(const rn_member *m, const rn_member_figure *figure, int64_t charge, rn_standing *out)
{
    const rn_figures_since since = {figure->told_at, rn_time_add(rn_member_now(m), m->ahead_us), figure->spent};

    return figure->told && rn_figures_standing(&figure->figures, figure->limit, &since, charge, out);
}

/* What has refused this charge has less, whatever was told before. */
static void refusal_apply(const rn_member *m, const ration_decision *refused, const rn_limit *limit, int64_t charge,
                          rn_standing *one)
{
    if (refused->reason != RATION_REASON_RATE_LIMITED && refused->reason != RATION_REASON_QUOTA_EXHAUSTED)
        return;
    one->remaining = rn_min(one->remaining, charge - 1);
    if (limit->rule->kind == RATION_KIND_RATE && rn_time_known(refused->retry_at))
        one->reset_us = rn_max(rn_sub(refused->retry_at.us, rn_member_now(m).us), 0);
}

static size_t refusal_standing(rn_member *m, const ration_decision *refused, rn_standing *out)
{
    const int64_t charge = rn_max(refused->facts.charge, 1);
    const rn_member_figure *const figure = refused->limit != NULL && refused->key.data != NULL
                                               ? rn_member_figure_named(m, refused->limit, refused->key)
                                               : NULL;

    if (figure == NULL)
        return 0;
    looked(m, figure);
    if (!figure_standing(m, figure, charge, out))
        return 0;
    refusal_apply(m, refused, figure->limit, charge, out);
    return 1;
}

size_t rn_member_standing(rn_decider *d, ration_lease handle, const ration_decision *refused, rn_standing *out,
                          size_t max)
{
    rn_member *const m = (rn_member *)(void *)d;
    const rn_member_lease *const lease = refused == NULL ? rn_member_lease_find(m, handle) : NULL;
    rn_standings all = {.items = out, .max = max < RN_STANDINGS_MAX ? max : RN_STANDINGS_MAX};

    if (rn_member_is_away(m) || all.max == 0)
        return 0;
    if (refused != NULL)
        return refusal_standing(m, refused, out);
    for (size_t i = 0; lease != NULL && i < lease->route->count; i++) {
        const rn_member_figure *const figure = figure_for(m, lease, i);
        rn_standing one;

        if (figure == NULL)
            continue;
        looked(m, figure);

        const int64_t charge = rn_max(charge_of(figure->limit, lease->ask.cost), 1);

        if (figure_standing(m, figure, charge, &one))
            rn_standings_add(&all, &one, charge);
    }
    return all.count;
}
