/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_FAIR_MODEL_H
#define TESTS_SUPPORT_FAIR_MODEL_H

/*
 * A share limit, an adaptive limit and slots as slowly as chapters 1, 2 and 5 can be written. For `prop_fair` alone,
 * which has the engine beside it; so all of it is static.
 */

#include "support/ceiling_model.h"
#include "support/property.h"

#include <stdio.h>
#include <stdlib.h>

#include <ration/engine.h>

#define UNIT RATION_UNIT
#define REQUESTS 80
#define KEYS 2
#define LANES 3 /* no class, fast, bulk */

enum { FAIR, SLOT, LEARN, LIMITS };

typedef enum stage { NEW, WAITS, HOLDS_IT, OVER } stage;

typedef struct request {
    stage state;
    ration_lease lease;
    bool present[LIMITS];
    bool kept[LIMITS]; /* its short set */
    int x;
    uint32_t tenant; /* RN_TENANT_NONE: one that nobody knows */
    int lane;        /* class */
    ration_priority priority;
    int64_t cost;
    int64_t hold_us;
    int64_t deadline, ttl, lost_at, ends_at;
    uint64_t tag;
    bool could; /* take from the ceiling when it was last looked at */
    int grant;
    size_t at; /* of its lease in the ceiling */
} request;

typedef struct fair {
    choices *c;
    ration_engine *engine;
    bool follows; /* the ceiling is what the adaptive limit stands at */
    ration_tenant_share tenants[MODEL_TENANTS];
    ration_limit_rule limits[LIMITS];
    model m;
    request requests[REQUESTS];
    int count;
    int grants;
    int64_t now;
    uint64_t virtual_time[5];
    uint64_t granted_tag[5][MODEL_TENANTS + 1];
    int64_t limit; /* of the adaptive one, and when it may move */
    bool started, throttled, decreased;
    int64_t grown_at, throttled_at, decreased_at;
    int64_t class_used[LANES];
    int64_t paused_until[LIMITS][KEYS];
    char events[4096];
    size_t events_used;
    bool vague; /* a reclaim may have begun later than here */
} fair;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const ration_class_rule classes[] = {{"fast", {2, 5}}, {"bulk", {1, 9}}};
static const char *const class_names[LANES] = {NULL, "fast", "bulk"};
static const char *const tenant_names[MODEL_TENANTS] = {"a", "b", "c", "d", "e"};

static const ration_adaptive_rule *learns(const fair *f)
{
    return &f->limits[LEARN].adaptive;
}

static void note_event(fair *f, const char *what, int64_t number)
{
    f->events_used += (size_t)snprintf(f->events + f->events_used, sizeof f->events - f->events_used, "%s %lld;", what,
                                       (long long)number);
}

static int64_t charge_of(const fair *f, const request *r)
{
    return f->follows ? UNIT : r->cost;
}

static rn_ceiling_ask ask_of(const fair *f, const request *r)
{
    return (rn_ceiling_ask){.tenant = r->tenant, .charge = charge_of(f, r), .cost = r->cost, .hold_us = r->hold_us};
}

/* ---- the adaptive limit ---- */

static int64_t class_held(const fair *f, int lane)
{
    int64_t held = 0;

    for (int i = 0; i < f->count; i++)
        held += f->requests[i].state == HOLDS_IT && f->requests[i].present[LEARN] && f->requests[i].lane == lane;
    return held;
}

static bool class_is_idle(const fair *f, int lane)
{
    for (int i = 0; i < f->count; i++) {
        const request *r = &f->requests[i];

        if (r->present[LEARN] && r->lane == lane && (r->state == HOLDS_IT || r->state == WAITS))
            return false;
    }
    return f->now - f->class_used[lane] >= learns(f)->lend_idle_us;
}

/* Does what is held, what is kept for other classes, and one more fit under the limit? */
static bool learn_fits(const fair *f, const request *r)
{
    int64_t sum = 1;

    for (int lane = 0; lane < LANES; lane++) {
        const int64_t held = class_held(f, lane);
        const ration_ratio part = lane == 0 ? (ration_ratio){0, 1} : classes[lane - 1].reserved;
        const int64_t reserve = (f->limit * part.num + part.den - 1) / part.den;
        const bool lends = learns(f)->lend_horizon_us > 0 && r->hold_us != RATION_UNSET &&
                           r->hold_us <= learns(f)->lend_horizon_us && class_is_idle(f, lane);

        sum += held;
        if (lane != r->lane && !lends && reserve > held)
            sum += reserve - held;
    }
    return sum <= f->limit;
}

static bool limit_may_grow(const fair *f)
{
    return f->started && f->limit < learns(f)->max_limit && f->now - f->grown_at >= learns(f)->window_us &&
           (!f->throttled || f->now - f->throttled_at >= learns(f)->window_us);
}

static void limit_moves(fair *f, int64_t limit)
{
    if (limit == f->limit)
        return;
    f->limit = limit;
    if (f->follows)
        model_resize(&f->m, f->m.rule, limit * UNIT);
    note_event(f, "limit", limit);
}

static bool limit_grows(fair *f)
{
    if (!limit_may_grow(f))
        return false;
    limit_moves(f, f->limit + 1);
    f->grown_at = f->now;
    return true;
}

static void limit_throttled(fair *f)
{
    if (!f->started)
        f->grown_at = f->now;
    f->started = true;
    f->throttled = true;
    f->throttled_at = f->now;
    if (f->decreased && f->now - f->decreased_at < learns(f)->cooldown_us)
        return;
    f->decreased = true;
    f->decreased_at = f->now;
    limit_moves(f, f->limit / 2 > 1 ? f->limit / 2 : 1);
}

/* ---- waiting ---- */

static bool before(const request *a, const request *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->tag != b->tag ? a->tag < b->tag : a < b;
}

/* Do they stand in each other's way at the limit? */
static bool same_lane(const request *a, const request *b, int limit)
{
    if (!a->present[limit] || !b->present[limit])
        return false;
    return limit == FAIR ? a->tenant == b->tenant : limit == SLOT ? a->x == b->x : a->lane == b->lane;
}

static bool is_ahead(const fair *f, const request *other, const request *r, int limit)
{
    (void)f;
    return other != r && other->state == WAITS && other->kept[limit] && same_lane(other, r, limit) && before(other, r);
}

static int64_t charges_ahead(const fair *f, const request *r, int limit, bool *any)
{
    int64_t sum = 0;

    *any = false;
    for (int i = 0; i < f->count; i++) {
        if (!is_ahead(f, &f->requests[i], r, limit))
            continue;
        *any = true;
        sum += limit == FAIR ? charge_of(f, &f->requests[i]) : UNIT;
    }
    return sum;
}

static int64_t slots_held(const fair *f, int x)
{
    int64_t held = 0;

    for (int i = 0; i < f->count; i++)
        held += f->requests[i].state == HOLDS_IT && f->requests[i].present[SLOT] && f->requests[i].x == x ? UNIT : 0;
    return held;
}

static ration_reason reason_of(const fair *f, const request *r, int limit)
{
    const rn_ceiling_ask ask = ask_of(f, r);
    bool hopeless = false;

    if (limit == FAIR)
        return model_check(&f->m, &ask, &hopeless);
    if (limit == SLOT)
        return slots_held(f, r->x) + UNIT > f->limits[SLOT].max ? RATION_REASON_CONCURRENCY_FULL : RATION_REASON_NONE;
    return learn_fits(f, r) ? RATION_REASON_NONE : RATION_REASON_ADAPTIVE_FULL;
}

/* Does a penalty run after `at` where the request goes? */
static bool is_penalized(const fair *f, const request *r, int64_t at)
{
    for (int i = 0; i < LIMITS; i++) {
        if (r->present[i] && f->paused_until[i][i == SLOT ? r->x : 0] > at)
            return true;
    }
    return false;
}

static bool can_take(const fair *f, const request *r, int limit)
{
    bool any = false;

    (void)charges_ahead(f, r, limit, &any);
    return !any && reason_of(f, r, limit) == RATION_REASON_NONE;
}

static int waiters(fair *f, request **out)
{
    int n = 0;

    for (int i = 0; i < f->count; i++) {
        if (f->requests[i].state != WAITS)
            continue;

        int at = n++;

        while (at > 0 && before(&f->requests[i], out[at - 1])) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = &f->requests[i];
    }
    return n;
}

static bool is_first(const fair *f, const request *r, int limit)
{
    bool any = false;

    (void)charges_ahead(f, r, limit, &any);
    return r->kept[limit] && !any;
}

static void forget_if_empty(fair *f, ration_priority priority)
{
    for (int i = 0; i < f->count; i++) {
        if (f->requests[i].state == WAITS && f->requests[i].priority == priority)
            return;
    }
    f->virtual_time[priority] = 0;
    memset(f->granted_tag[priority], 0, sizeof f->granted_tag[priority]);
}

static void used(fair *f, const request *r)
{
    if (r->present[LEARN])
        f->class_used[r->lane] = f->now;
}

static void leaves(fair *f, request *r, bool granted)
{
    r->state = OVER;
    if (r->present[FAIR])
        model_leave(&f->m, r->kept[FAIR], granted, r->tenant);
    used(f, r);
}

/* The largest charge of its tenant that still waits short of the ceiling. */
static int64_t left_by(const fair *f, const request *r)
{
    int64_t left = 0;

    for (int i = 0; i < f->count; i++) {
        const request *other = &f->requests[i];

        if (other->state == WAITS && other->kept[FAIR] && same_lane(other, r, FAIR) && charge_of(f, other) > left)
            left = charge_of(f, other);
    }
    return left;
}

static size_t lease_spare(const fair *f)
{
    for (size_t i = 0; i < MODEL_LEASES; i++) {
        if (!f->m.leases[i].live)
            return i;
    }
    abort();
}

static void take(fair *f, request *r)
{
    const rn_ceiling_ask ask = ask_of(f, r);

    r->state = HOLDS_IT;
    r->grant = f->grants++;
    r->lost_at = r->ttl > 0 ? f->now + r->ttl : INT64_MAX;
    r->ends_at = r->hold_us == RATION_UNSET ? RATION_NEVER_US : f->now + r->hold_us;
    used(f, r);
    if (r->present[LEARN] && !f->started) {
        f->started = true;
        f->grown_at = f->now;
    }
    if (!r->present[FAIR])
        return;
    r->at = lease_spare(f);
    model_take(&f->m, &ask, r->ends_at, (uint64_t)(r - f->requests), left_by(f, r), r->at);
}

static void give_back(fair *f, request *r)
{
    r->state = OVER;
    used(f, r);
    if (r->present[FAIR])
        model_give_back(&f->m, r->at);
}

static void keep(fair *f, request *r, int limit)
{
    const rn_ceiling_ask ask = ask_of(f, r);

    r->kept[limit] = true;
    if (limit == FAIR)
        model_short(&f->m, &ask);
}

static size_t tag_tenant(const request *r)
{
    return r->tenant == RN_TENANT_NONE ? MODEL_TENANTS : r->tenant;
}

/* Does anything change by looking at it: its short set grows, or it goes? */
static bool look(fair *f, request *r)
{
    bool all = true;

    for (int i = 0; i < LIMITS; i++) {
        if (r->kept[i] && !can_take(f, r, i))
            return false;
    }
    for (int i = 0; i < LIMITS; i++) {
        if (!r->present[i] || r->kept[i] || can_take(f, r, i))
            continue;
        keep(f, r, i);
        all = false;
    }
    if (!all)
        return true;
    if (is_penalized(f, r, f->now))
        return false;

    leaves(f, r, true);
    if (r->tag > f->virtual_time[r->priority])
        f->virtual_time[r->priority] = r->tag;
    if (r->tag > f->granted_tag[r->priority][tag_tenant(r)])
        f->granted_tag[r->priority][tag_tenant(r)] = r->tag;
    note_event(f, "granted", r - f->requests);
    forget_if_empty(f, r->priority);
    take(f, r);
    return true;
}

static void refuse(fair *f, request *r)
{
    leaves(f, r, false);
    note_event(f, "refused", r - f->requests);
    forget_if_empty(f, r->priority);
}

/* Is it paused for too long, or has its tenant's guarantee shrunk below what it needs, and its hold is too long to
 * borrow? */
static bool must_refuse(const fair *f, const request *r)
{
    const rn_ceiling_ask ask = ask_of(f, r);
    bool hopeless = false;

    if (r->present[FAIR])
        (void)model_check(&f->m, &ask, &hopeless);
    return hopeless || is_penalized(f, r, r->deadline);
}

/*
 * Is the first of a tenant on loan? An engine finds that when it looks: not the moment at which a lender comes back
 * from whom a waiter could have borrowed what it was not short of; and perhaps between two changes of one instant, for
 * no time at all. What depends on that is not compared any more.
 */
static void find(fair *f, request *r)
{
    if (!is_first(f, r, FAIR))
        return;

    const ration_reason reason = reason_of(f, r, FAIR);

    if (r->could && reason == RATION_REASON_GUARANTEE_ON_LOAN)
        f->vague = true;
    r->could = reason == RATION_REASON_NONE;
    model_found(&f->m, r->tenant, reason);
}

/* Between two changes: is a tenant on loan of whom that has not been found? */
static uint32_t on_loan(const fair *f)
{
    uint32_t tenants = 0;

    for (int i = 0; i < f->count; i++) {
        const request *r = &f->requests[i];

        if (r->state == WAITS && is_first(f, r, FAIR) && !f->m.tenants[r->tenant].reclaiming &&
            reason_of(f, r, FAIR) == RATION_REASON_GUARANTEE_ON_LOAN)
            tenants |= UINT32_C(1) << r->tenant;
    }
    return tenants;
}

/* Among waiters one change at a time: L grows, else who must be is refused, else the first that may go is granted. */
static void settle(fair *f)
{
    request *order[REQUESTS];
    uint32_t passing = 0;
    bool changed = true;

    while (changed) {
        const int n = waiters(f, order);

        changed = false;
        for (int i = 0; i < n && !changed; i++) {
            if (is_first(f, order[i], LEARN) && !learn_fits(f, order[i]))
                changed = limit_grows(f);
        }
        for (int i = 0; i < n && !changed; i++) {
            changed = must_refuse(f, order[i]);
            if (changed)
                refuse(f, order[i]);
        }
        for (int i = 0; i < n && !changed; i++)
            changed = look(f, order[i]);
        if (changed)
            passing |= on_loan(f);
        for (int i = 0; i < n && !changed; i++)
            find(f, order[i]);
    }
    for (uint32_t i = 0; i < f->m.rule->tenant_count; i++)
        f->vague = f->vague || ((passing >> i & 1) != 0 && !f->m.tenants[i].reclaiming);
}

static request *next_lost(fair *f)
{
    request *first = NULL;

    for (int i = 0; i < f->count; i++) {
        request *r = &f->requests[i];

        if (r->state == HOLDS_IT && r->lost_at == f->now && (first == NULL || r->grant < first->grant))
            first = r;
    }
    return first;
}

static void pass_instant(fair *f)
{
    request *lost;

    f->now++;
    model_tick(&f->m, f->now);
    while ((lost = next_lost(f)) != NULL) {
        give_back(f, lost);
        note_event(f, "lost", lost - f->requests);
    }
    settle(f);
    for (int i = 0; i < f->count; i++) {
        request *r = &f->requests[i];

        if (r->state != WAITS || r->deadline != f->now)
            continue;
        refuse(f, r);
    }
    settle(f);
}

/* ---- arriving ---- */

static void tag_give(fair *f, request *r)
{
    const int64_t weight = r->tenant == RN_TENANT_NONE ? 1 : f->tenants[r->tenant].weight;
    uint64_t last = f->virtual_time[r->priority];

    if (f->granted_tag[r->priority][tag_tenant(r)] > last)
        last = f->granted_tag[r->priority][tag_tenant(r)];
    for (int i = 0; i < f->count; i++) {
        const request *other = &f->requests[i];

        if (other->state == WAITS && other->tenant == r->tenant && other->priority == r->priority && other->tag > last)
            last = other->tag;
    }
    r->tag = last + (uint64_t)((r->cost + weight - 1) / weight);
}

static void pass_waiters(fair *f, const request *r)
{
    for (int i = 0; i < f->count; i++) {
        const request *other = &f->requests[i];

        for (int j = 0; j < LIMITS && other->state == WAITS && other->priority == r->priority; j++) {
            if (other->kept[j] && same_lane(other, r, j) && r->tag > f->virtual_time[r->priority])
                f->virtual_time[r->priority] = r->tag;
        }
    }
}

/* When enough slots will have been freed by declared ends. */
static int64_t slots_when(const fair *f, const request *r, int64_t ahead)
{
    const int64_t needed = UNIT + ahead - (f->limits[SLOT].max - slots_held(f, r->x));
    int64_t at = f->now;

    if (needed <= 0)
        return RATION_NEVER_US;
    for (;;) {
        int64_t freed = 0;
        int64_t next = RATION_NEVER_US;

        for (int i = 0; i < f->count; i++) {
            const request *o = &f->requests[i];

            if (o->state != HOLDS_IT || !same_lane(o, r, SLOT))
                continue;
            if (o->ends_at < f->now)
                return RATION_NEVER_US; /* the earliest of all: it is among those needed */
            freed += o->ends_at <= at ? UNIT : 0;
            next = o->ends_at > at && o->ends_at < next ? o->ends_at : next;
        }
        if (freed >= needed || next == RATION_NEVER_US)
            return freed >= needed ? at : RATION_NEVER_US;
        at = next;
    }
}

typedef struct named {
    bool bound, refuses;
    bool barred; /* something that no wait cures does, other than fairness */
    ration_reason reason;
    int64_t named_at, retry_at;
} named;

static void name(named *n, bool refuses, ration_reason reason, int64_t at)
{
    bool beats = !n->bound;

    if (n->bound && refuses != n->refuses) {
        beats = refuses;
    } else if (n->bound && refuses && ration_reason_retryable(reason) != ration_reason_retryable(n->reason)) {
        beats = !ration_reason_retryable(reason);
    } else if (n->bound) {
        beats = at > n->named_at;
    }
    if (beats) {
        n->reason = reason;
        n->named_at = at;
    }
    n->retry_at = !n->bound || at > n->retry_at ? at : n->retry_at;
    n->bound = true;
    n->refuses = n->refuses || refuses;
    n->barred = n->barred || (refuses && ration_reason_category(reason) != RATION_CATEGORY_FAIRNESS);
}

static void name_fair(const fair *f, const request *r, int64_t ahead, bool any, named *out)
{
    const rn_ceiling_ask ask = ask_of(f, r);
    bool hopeless = false;
    uint64_t blocking[MODEL_LEASES];
    size_t count = 0;

    if (r->tenant == RN_TENANT_NONE) {
        name(out, true, RATION_REASON_UNKNOWN_TENANT, RATION_NEVER_US);
        return;
    }

    const ration_reason reason = model_check(&f->m, &ask, &hopeless);

    (void)ahead;
    if (reason != RATION_REASON_NONE) {
        name(out, hopeless, reason, model_when(&f->m, &ask, reason, blocking, &count));
    } else if (any) {
        name(out, false, RATION_REASON_NOTHING_TO_BORROW, RATION_NEVER_US);
    }
}

/* All that binds, and which of it is named. */
static named examine(const fair *f, const request *r)
{
    named out = {.retry_at = f->now};

    for (int i = 0; i < LIMITS; i++) {
        bool any = false;

        if (!r->present[i])
            continue;

        const int64_t until = f->paused_until[i][i == SLOT ? r->x : 0];

        if (until > f->now)
            name(&out, until > r->deadline, RATION_REASON_PENALIZED, until);

        const int64_t ahead = i == FAIR && r->tenant == RN_TENANT_NONE ? 0 : charges_ahead(f, r, i, &any);

        if (i == FAIR) {
            name_fair(f, r, ahead, any, &out);
        } else if (any || reason_of(f, r, i) != RATION_REASON_NONE) {
            name(&out, false, i == SLOT ? RATION_REASON_CONCURRENCY_FULL : RATION_REASON_ADAPTIVE_FULL,
                 i == SLOT ? slots_when(f, r, ahead) : RATION_NEVER_US);
        }
    }
    return out;
}

static void asks(fair *f, request *r)
{
    const rn_ceiling_ask ask = ask_of(f, r);

    if (r->present[FAIR])
        model_asked(&f->m, &ask, reason_of(f, r, FAIR), !can_take(f, r, FAIR));
    used(f, r);
}

static void begins_to_wait(fair *f, request *r)
{
    const rn_ceiling_ask ask = ask_of(f, r);

    r->state = WAITS;
    used(f, r);
    if (r->present[FAIR])
        model_wait(&f->m, &ask);
    for (int i = 0; i < LIMITS; i++) {
        if (r->present[i] && !can_take(f, r, i))
            keep(f, r, i);
    }
}

static const char *arrive(fair *f, request *r, named *out)
{
    tag_give(f, r);
    *out = examine(f, r);
    if (!out->barred && r->present[LEARN]) {
        if (!f->started)
            f->grown_at = f->now;
        f->started = true;
        if (!learn_fits(f, r) && limit_grows(f))
            *out = examine(f, r);
    }
    if (out->refuses || (out->bound && r->deadline == f->now)) {
        r->state = OVER;
        if (!out->barred)
            asks(f, r);
        return "refused";
    }
    if (out->bound) {
        begins_to_wait(f, r);
        return "queued";
    }
    pass_waiters(f, r);
    take(f, r);
    return "granted";
}

#endif
