/* SPDX-License-Identifier: MIT */
/*
 * The engine with a share limit, an adaptive limit and slots against chapters 1, 2 and 5 as slowly as they can be
 * written: at every microsecond every waiter is looked at, in order, over and over, until nothing changes.
 *
 * Decisions with reasons and times, the events of every instant, and what the ceiling reports of each tenant must be the
 * same. The ceiling itself is `ceiling_model`; here are the lanes, the classes, the growth and the waiting.
 */
#include "support/ceiling_model.h"
#include "support/check.h"
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

/* Has its tenant's guarantee shrunk below what it needs, and is its hold too long to borrow? */
static bool must_refuse(const fair *f, const request *r)
{
    const rn_ceiling_ask ask = ask_of(f, r);
    bool hopeless = false;

    if (r->present[FAIR])
        (void)model_check(&f->m, &ask, &hopeless);
    return hopeless;
}

/*
 * Is the first of a tenant on loan? An engine finds that when it looks: not the moment at which a lender comes back from
 * whom a waiter could have borrowed what it was not short of. What depends on that is not compared any more.
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

/* Among waiters one change at a time: L grows, else who must be is refused, else the first that may go is granted. */
static void settle(fair *f)
{
    request *order[REQUESTS];
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
        for (int i = 0; i < n && !changed; i++)
            find(f, order[i]);
    }
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
    ration_reason reason;
    int64_t named_at, retry_at;
} named;

static void name(named *n, bool refuses, ration_reason reason, int64_t at)
{
    bool beats = !n->bound;

    if (n->bound && refuses != n->refuses)
        beats = refuses;
    else if (n->bound && refuses && ration_reason_retryable(reason) != ration_reason_retryable(n->reason))
        beats = !ration_reason_retryable(reason);
    else if (n->bound)
        beats = at > n->named_at;
    if (beats) {
        n->reason = reason;
        n->named_at = at;
    }
    n->retry_at = !n->bound || at > n->retry_at ? at : n->retry_at;
    n->bound = true;
    n->refuses = n->refuses || refuses;
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

        const int64_t ahead = i == FAIR && r->tenant == RN_TENANT_NONE ? 0 : charges_ahead(f, r, i, &any);

        if (i == FAIR)
            name_fair(f, r, ahead, any, &out);
        else if (any || reason_of(f, r, i) != RATION_REASON_NONE)
            name(&out, false, i == SLOT ? RATION_REASON_CONCURRENCY_FULL : RATION_REASON_ADAPTIVE_FULL,
                 i == SLOT ? slots_when(f, r, ahead) : RATION_NEVER_US);
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

static bool is_barred(const named *n)
{
    return n->refuses && ration_reason_category(n->reason) != RATION_CATEGORY_FAIRNESS;
}

static const char *arrive(fair *f, request *r, named *out)
{
    tag_give(f, r);
    *out = examine(f, r);
    if (!is_barred(out) && r->present[LEARN]) {
        if (!f->started)
            f->grown_at = f->now;
        f->started = true;
        if (!learn_fits(f, r) && limit_grows(f))
            *out = examine(f, r);
    }
    if (out->refuses || (out->bound && r->deadline == f->now)) {
        r->state = OVER;
        if (!is_barred(out))
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

/* ---- the engine beside it ---- */

static void engine_new(fair *f)
{
    static const int throttled[] = {529};
    const ration_provider_rule provider = {.name = "p",
                                           .limits = f->limits,
                                           .limit_count = LIMITS,
                                           .errors = {.throttled = throttled, .throttled_count = 1}};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};

    HOLDS(f->c, ration_engine_new(&options, ration_time_of(0), &f->engine, NULL) == RATION_OK);
}

static void engine_events(fair *f, char *out, size_t size)
{
    static const char *const names[] = {"granted", "refused", "lost", "penalty", "limit"};
    ration_event event;
    size_t used_now = 0;

    out[0] = '\0';
    while (ration_engine_next_event(f->engine, &event)) {
        const int64_t number =
            event.type == RATION_EVENT_LIMIT ? event.value / UNIT : (int64_t)(intptr_t)event.user - 1;

        HOLDS(f->c, event.at.us <= f->now);
        used_now += (size_t)snprintf(out + used_now, size - used_now, "%s %lld;", names[event.type], (long long)number);
    }
}

static ration_decision engine_ask(fair *f, const request *r)
{
    static const char *const keys[KEYS] = {"0", "1"};
    ration_var vars[LIMITS];
    ration_request ask = RATION_REQUEST_INIT;
    ration_decision d;

    ask.account = ration_text_of("acc");
    ask.tenant = ration_text_of(r->tenant == RN_TENANT_NONE ? "nobody" : tenant_names[r->tenant]);
    ask.class_name = ration_text_of(class_names[r->lane]);
    ask.vars = vars;
    if (r->present[FAIR])
        vars[ask.var_count++] = (ration_var){ration_text_of("f"), ration_text_of("1")};
    if (r->present[SLOT])
        vars[ask.var_count++] = (ration_var){ration_text_of("x"), ration_text_of(keys[r->x])};
    if (r->present[LEARN])
        vars[ask.var_count++] = (ration_var){ration_text_of("l"), ration_text_of("1")};
    ask.cost = r->cost;
    ask.hold_us = r->hold_us;
    ask.priority = r->priority;
    ask.wait_us = r->deadline - f->now;
    ask.ttl_us = r->ttl > 0 ? r->ttl : RATION_UNSET;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, not a place; 0 is nobody. */
    ask.user = (void *)(intptr_t)(r - f->requests + 1);
    HOLDS(f->c, ration_engine_submit(f->engine, ration_time_of(f->now), &ask, &d) == RATION_OK);
    return d;
}

/* ---- what is reported ---- */

static void counter_is(void *ctx, const ration_counter_report *report)
{
    const fair *f = ctx;
    choices *const c = f->c;

    if (report->kind == RATION_KIND_ADAPTIVE) {
        HOLDS(c, report->current == f->limit * UNIT);
        for (int i = 1; i < LANES; i++)
            HOLDS(c, report->classes[i - 1].held == class_held(f, i) * UNIT);
    }
    for (uint32_t i = 0; i < report->tenant_count; i++) {
        const ration_tenant_report *const row = &report->tenants[i];
        const model_tenant *const t = &f->m.tenants[i];

        HOLDS(c, row->guarantee == t->guarantee);
        HOLDS(c, row->own == model_own(&f->m, i));
        HOLDS(c, row->lent == model_lent(&f->m, i));
        HOLDS(c, row->held == model_held(&f->m, i));
        HOLDS(c, f->follows || row->own + row->lent <= row->guarantee);
        HOLDS(c, row->want == t->want);
        HOLDS(c, row->idle == model_is_idle(&f->m, i, f->now));
        HOLDS(c, row->waiting == (uint64_t)t->waiting);
        HOLDS(c, row->deficit_unit_ms == t->deficit / 1000000000 && row->deficit_rest == t->deficit % 1000000000);
        HOLDS(c, f->vague || (row->reclaims == t->reclaims && row->worst_reclaim_us == t->worst_us));
        HOLDS(c, row->granted == t->granted);
    }
}

static void reports_are(fair *f)
{
    const ration_reporter reporter = {.ctx = f, .counter = counter_is};

    HOLDS(f->c, ration_engine_report(f->engine, ration_time_of(f->now), RATION_REPORT_STATS, &reporter) == RATION_OK);
}

/* ---- what happens ---- */

static void rules_draw(fair *f)
{
    choices *const c = f->c;
    const size_t count = (size_t)choose_from(c, 2, 4);

    for (size_t i = 0; i < count; i++)
        f->tenants[i] = (ration_tenant_share){tenant_names[i], choose_from(c, 1, 3), {0, 0}};
    f->limits[FAIR] = (ration_limit_rule){
        .name = "fair",
        .kind = RATION_KIND_SHARE,
        .counts = RATION_COUNTS_COST,
        .scope = by_account,
        .scope_count = 1,
        .requests_with_var = "f",
        .share = {.ceiling = choose_from(c, 1, 30),
                  .tenants = f->tenants,
                  .tenant_count = count,
                  .reclaim_horizon_us = choose_from(c, 1, 8),
                  .freeze_wanted = choose(c, 3) == 3,
                  .cooldown_us = choose(c, 3) == 3 ? choose_from(c, 1, 20) : 0,
                  .lend = choose(c, 3) == 3 ? (ration_ratio){1, 2} : (ration_ratio){0, 0}},
    };
    f->limits[FAIR].share.idle_after_us = f->limits[FAIR].share.reclaim_horizon_us + choose_from(c, 1, 8);
    f->limits[SLOT] = (ration_limit_rule){.name = "slot",
                                          .kind = RATION_KIND_CONCURRENCY,
                                          .scope = by_x,
                                          .scope_count = 1,
                                          .max = choose_from(c, 1, 2) * UNIT};
    f->limits[LEARN] = (ration_limit_rule){
        .name = "learns",
        .kind = RATION_KIND_ADAPTIVE,
        .scope = by_account,
        .scope_count = 1,
        .requests_with_var = "l",
        .adaptive = {.initial_limit = choose_from(c, 1, 4),
                     .max_limit = 8,
                     .window_us = choose_from(c, 1, 9),
                     .cooldown_us = choose_from(c, 1, 20),
                     .classes = classes,
                     .class_count = 2,
                     .lend_horizon_us = choose(c, 1) != 0 ? choose_from(c, 1, 6) : 0},
    };
    if (learns(f)->lend_horizon_us > 0)
        f->limits[LEARN].adaptive.lend_idle_us = learns(f)->lend_horizon_us + choose_from(c, 1, 6);
    f->limit = learns(f)->initial_limit;
    f->follows = choose(c, 3) == 3;
    if (f->follows) {
        f->limits[FAIR].counts = RATION_COUNTS_REQUESTS;
        f->limits[FAIR].share.ceiling = 0;
        f->limits[FAIR].share.follows = "learns";
        f->limits[LEARN].requests_with_var = NULL;
    }
    NOTE(c, "ceiling %lld, %zu tenants, horizon %lld, idle after %lld%s, cooldown %lld",
         (long long)f->limits[FAIR].share.ceiling, count, (long long)f->limits[FAIR].share.reclaim_horizon_us,
         (long long)f->limits[FAIR].share.idle_after_us, f->limits[FAIR].share.freeze_wanted ? ", freeze wanted" : "",
         (long long)f->limits[FAIR].share.cooldown_us);
    NOTE(c, "slots %lld; limit %lld, window %lld, lend %lld idle %lld", (long long)(f->limits[SLOT].max / UNIT),
         (long long)f->limit, (long long)learns(f)->window_us, (long long)learns(f)->lend_horizon_us,
         (long long)learns(f)->lend_idle_us);
}

static void request_draw(fair *f, request *r)
{
    choices *const c = f->c;
    const uint64_t mix = choose(c, 5);
    static const bool mixes[6][LIMITS] = {{true, false, false}, {true, true, false},  {true, true, true},
                                          {true, false, true},  {false, false, true}, {false, true, false}};

    *r = (request){.tenant = (uint32_t)choose(c, f->m.rule->tenant_count - 1), .x = (int)choose(c, KEYS - 1)};
    memcpy(r->present, mixes[mix], sizeof r->present);
    r->present[LEARN] = r->present[LEARN] || f->follows;
    if (choose(c, 30) == 30)
        r->tenant = RN_TENANT_NONE;
    r->lane = (int)choose(c, LANES - 1);
    r->priority = (ration_priority)choose_from(c, RATION_PRIORITY_CRITICAL, RATION_PRIORITY_LOW);
    r->cost = choose_from(c, 0, f->follows ? 3 : f->m.size / 2 + 2);
    r->hold_us = choose(c, 3) == 3 ? RATION_UNSET : choose_from(c, 0, 12);
    r->deadline = f->now + (choose(c, 2) == 2 ? 0 : choose_from(c, 0, 40));
    r->ttl = choose(c, 3) == 3 ? choose_from(c, 1, 30) : 0;
}

static int live_leases(const fair *f)
{
    int live = 0;

    for (int i = 0; i < f->count; i++)
        live += f->requests[i].state == HOLDS_IT || f->requests[i].state == WAITS;
    return live;
}

static void ask(fair *f)
{
    request *r = &f->requests[f->count];
    named want;

    if (f->count == REQUESTS || live_leases(f) == MODEL_LEASES)
        return;
    request_draw(f, r);
    f->count++;

    const char *result = arrive(f, r, &want);
    const ration_decision d = engine_ask(f, r);
    const char *got = d.result == RATION_GRANTED ? "granted" : d.result == RATION_QUEUED ? "queued" : "refused";

    r->lease = d.lease;
    NOTE(f->c,
         "%lld ask %d of %u class %d priority %d cost %lld hold %lld wait %lld ttl %lld, fair %d slot %d learn %d: %s "
         "%s",
         (long long)f->now, f->count - 1, r->tenant, r->lane, (int)r->priority, (long long)r->cost,
         (long long)r->hold_us, (long long)(r->deadline - f->now), (long long)r->ttl, r->present[FAIR],
         r->present[SLOT] ? r->x : -1, r->present[LEARN], got, ration_reason_name(d.reason));
    NOTE(f->c, "  want %s %s at %lld, got %lld", result, ration_reason_name(want.reason), (long long)want.retry_at,
         (long long)d.retry_at.us);
    HOLDS(f->c, strcmp(result, got) == 0);
    if (d.result != RATION_REFUSED)
        return;
    HOLDS(f->c, d.reason == want.reason);
    HOLDS(f->c, d.retry_at.us == (ration_reason_retryable(want.reason) ? want.retry_at : RATION_NEVER_US));
}

static request *pick(fair *f, stage wanted)
{
    const int start = f->count == 0 ? 0 : (int)choose(f->c, (uint64_t)f->count - 1);

    for (int i = 0; i < f->count; i++) {
        request *r = &f->requests[(start + i) % f->count];

        if (r->state == wanted)
            return r;
    }
    return NULL;
}

static void release(fair *f)
{
    request *r = pick(f, HOLDS_IT);
    ration_completion how = RATION_COMPLETION_INIT;

    if (r == NULL)
        return;
    NOTE(f->c, "%lld release %d", (long long)f->now, (int)(r - f->requests));
    how.outcome = RATION_OUTCOME_FAILURE;
    if (choose(f->c, 3) == 3)
        how.cost = choose_from(f->c, 0, 20);
    give_back(f, r);
    HOLDS(f->c, ration_engine_release(f->engine, ration_time_of(f->now), r->lease, &how) == RATION_OK);
}

static void cancel(fair *f)
{
    request *r = pick(f, WAITS);

    if (r == NULL)
        return;
    NOTE(f->c, "%lld cancel %d", (long long)f->now, (int)(r - f->requests));
    leaves(f, r, false);
    forget_if_empty(f, r->priority);
    HOLDS(f->c, ration_engine_cancel(f->engine, ration_time_of(f->now), r->lease) == RATION_OK);
}

static void throttle(fair *f)
{
    const ration_response response = {.status = 529};
    request *r = pick(f, HOLDS_IT);

    if (r == NULL || r->ttl < 0)
        return;
    NOTE(f->c, "%lld throttled %d", (long long)f->now, (int)(r - f->requests));
    r->ttl = -1; /* its status has been seen */
    if (r->present[LEARN])
        limit_throttled(f);
    HOLDS(f->c, ration_engine_observe(f->engine, ration_time_of(f->now), r->lease, &response) == RATION_OK);
}

static void one_step(fair *f)
{
    switch (choose(f->c, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        ask(f);
        break;
    case 5:
    case 6:
        release(f);
        break;
    case 7:
        cancel(f);
        break;
    case 8:
        throttle(f);
        break;
    default:
        return;
    }
    settle(f);
}

static void pass(fair *f)
{
    static const int64_t longest[] = {0, 0, 3, 12, 40};
    int64_t pause = (int64_t)choose(f->c, (uint64_t)longest[choose(f->c, 4)]);
    const bool often = choose(f->c, 1) == 1; /* how often time is looked at changes nothing */

    for (; pause > 0; pause--) {
        pass_instant(f);
        if (often)
            HOLDS(f->c, ration_engine_advance(f->engine, ration_time_of(f->now)) == RATION_OK);
    }
    HOLDS(f->c, ration_engine_advance(f->engine, ration_time_of(f->now)) == RATION_OK);
}

static void the_engine_is_fair_as_the_slow_one_is(choices *c, void *context)
{
    char got[4096];
    fair *f = calloc(1, sizeof *f);

    (void)context;
    if (f == NULL)
        abort();
    f->c = c;
    rules_draw(f);
    model_init(&f->m, &f->limits[FAIR].share, 0);
    if (f->follows)
        model_resize(&f->m, f->m.rule, f->limit * UNIT);
    engine_new(f);
    while (choose(c, 120) != 0 && f->now < 1000 && !(f->vague && f->m.rule->cooldown_us > 0)) {
        f->events_used = 0;
        f->events[0] = '\0';
        pass(f);
        one_step(f);
        engine_events(f, got, sizeof got);
        NOTE(c, "%lld events %s| want %s", (long long)f->now, got, f->events);
        HOLDS(c, strcmp(got, f->events) == 0);
        reports_are(f);
    }
    ration_engine_free(f->engine);
    free(f);
}

static void fairness(void **state)
{
    (void)state;
    property_check("fair", the_engine_is_fair_as_the_slow_one_is, NULL, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fairness)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
