/* SPDX-License-Identifier: MIT */

/*
 * A quota's two ends: a client that learns from headers, and the provider, an engine that enforces the whole quota.
 *
 * Between them is a way on which calls take their time: each reaches the provider in less than `arrival`, answers come
 * back in any order or never, calls settle another cost afterwards, and another client may spend of the same quota. The
 * headers are true for the instant at which the provider judged the call.
 *
 * What must hold for every call that the provider refuses: it was over by no more than
 *
 *     what the other client has spent since the provider judged the last call whose answer the client used before it
 *     granted this one (in this window), and
 *     what calls turned out to cost more than they asked for, as far as that was not settled at the client yet, or was
 *     settled when the window of their grant was over.
 *
 * Without another client and such calls, the provider refuses nothing. And nothing is wasted: in a window in which the
 * client refused somebody, the provider has counted all of U - R but for at most twice what was in flight at once
 * (granted less than `arrival` ago and not answered) and less than one more charge.
 *
 * What `arrival` has to cover is the way of a call and how much later than it is the client may believe a window's end:
 * up to a second where the provider rounds it up, the way back where it is told from now, a second more where that
 * second may have been cut off. Else a call granted that much before `arrival` could be counted in the next window
 * unnoticed.
 */
#include "support/check.h"
#include "support/property.h"
#include "support/quota_fields.h"
#include "support/sole.h"

#include <stdlib.h>

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define START (INT64_C(28333333) * MINUTE)
#define CALLS 800
#define WINDOWS 4
#define NEVER RATION_NEVER_US

/* What happens to a call at the provider and after it, in this order. */
typedef enum step { ARRIVES, SETTLES, ANSWERS, ENDS, STEPS } step;

typedef struct call {
    ration_lease lease;
    ration_lease judged;
    int64_t at[STEPS]; /* NEVER: not to come, or over */
    int64_t granted_at, judged_at, settled_at, ended_at;
    int64_t asked, actual;
    int64_t max, left, reset_us; /* told, whole units */
    int64_t known_at;            /* when the last call was judged whose answer was used before the grant; 0: none */
    bool answered;               /* it will be */
    bool refused;
    bool counted; /* what it cost more was charged to a window that was not over */
} call;

/* What the reset of a rolling window tells. */
typedef enum rolling_reset { FIRST_BACK, UNTOLD, FULL_AGAIN } rolling_reset;

typedef struct setup {
    bool cost, rolling, other_client, settles;
    bool answers_lost, calls_lost;
    int64_t max, window_us, shift_us; /* the provider's windows begin so much earlier */
    ration_ratio reserve;
    quota_form form;
    rolling_reset reset;
    int64_t arrival_us;
    int64_t travel_us, back_us; /* at most */
    int64_t pace_us;            /* between demands, at most twice */
    int burst_max;
    int64_t asks_max;
} setup;

typedef struct world {
    setup s;
    ration_engine *client, *provider;
    call calls[CALLS];
    int count, oldest;
    struct {
        int64_t at, amount;
    } others[CALLS];
    int other_count;
    int64_t now, demand_at, other_at;
    int newest_used;        /* call of the last observation used; -1: none */
    int64_t used_until;     /* how long it holds */
    int64_t flight_max;     /* at once */
    int64_t window_refused; /* refusals by the client in the provider's window */
    int64_t window_end;     /* of the provider's present window */
    int64_t window_flight;  /* at most in flight while the window and the one before it lasted */
    int64_t flight_before;
    int64_t longest_ask;
} world;

/* Over all runs. */
static struct {
    uint64_t judged, refused, windows;
    int64_t offered, taken;
    int64_t worst_percent;
} seen;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How much later than it is the client may believe a window's end. */
static int64_t lateness(const setup *s)
{
    switch (s->form) {
    case FORM_EPOCH:
        return s->shift_us % SECOND == 0 ? 0 : SECOND;
    case FORM_EPOCH_MS:
        return 1000;
    case FORM_DELTA:
        return s->back_us + SECOND;
    case FORM_STANDARD:
        return s->back_us + 2 * SECOND;
    case FORM_DELTA_EXACT:
        return s->back_us;
    case FORM_EPOCH_EXACT:
    case FORM_ISO8601:
    case FORM_COUNT:
        break;
    }
    return 0;
}

/* A rolling window allows for one of its buckets. */
static int64_t travel_max(const setup *s)
{
    return s->rolling ? s->window_us / 60 : s->arrival_us - lateness(s);
}

static setup setup_draw(choices *c, bool strict)
{
    setup s = {
        .max = choose_from(c, 4, 40),
        .window_us = MINUTE,
        .form = (quota_form)choose(c, FORM_COUNT - 1),
        .burst_max = (int)choose_from(c, 1, 12),
        .answers_lost = choose(c, 1) == 1,
        .cost = choose(c, 1) == 1,
        .rolling = choose(c, 3) == 3,
    };

    s.arrival_us = s.form == FORM_STANDARD ? 4 * SECOND : 2 * SECOND;
    s.back_us = 1 + (int64_t)choose(c, s.form >= FORM_DELTA ? SECOND - 1000 : 5 * SECOND);
    s.reserve = (ration_ratio){(int32_t)choose(c, 3), 10};
    s.asks_max = s.cost ? choose_from(c, 1, most(1, s.max / 4)) : 1;
    s.pace_us = SECOND / 8 + (int64_t)choose(c, (uint64_t)(MINUTE / s.max));
    if (s.rolling) {
        s.window_us = choose_from(c, 1, 2) * MINUTE;
        s.reset = (rolling_reset)choose(c, strict ? UNTOLD : FULL_AGAIN);
    } else if (choose(c, 1) == 1) {
        s.shift_us = (int64_t)choose(c, (uint64_t)MINUTE - 1);
        s.shift_us -= s.shift_us % (choose(c, 1) == 1 ? SECOND : 1);
    }
    s.travel_us = 1 + (int64_t)choose(c, (uint64_t)travel_max(&s) - 2);
    if (!strict) {
        s.other_client = choose(c, 1) == 1;
        s.settles = s.cost && choose(c, 1) == 1;
        s.calls_lost = s.answers_lost;
    }
    return s;
}

static ration_limit_rule rule_of(const setup *s)
{
    const ration_limit_rule rule = {
        .name = "quota",
        .kind = RATION_KIND_QUOTA,
        .counts = s->cost ? RATION_COUNTS_COST : RATION_COUNTS_REQUESTS,
        .max = s->max * UNIT,
        .margin = RATION_UNSET,
        .arrival_us = s->arrival_us,
        .window = {.period = s->rolling ? RATION_PERIOD_NONE : RATION_PERIOD_MINUTE,
                   .rolling_us = s->rolling ? s->window_us : 0},
        .sync = quota_fields_sync(s->form),
    };

    return rule;
}

static void world_start(choices *c, world *w, setup s)
{
    const ration_limit_rule rule = rule_of(&s);

    w->s = s;
    w->now = START + (int64_t)choose(c, MINUTE - 1);
    w->client = sole_engine(&rule, false, s.reserve, w->now);
    w->provider = sole_engine(&rule, true, s.reserve, w->now + s.shift_us);
    w->demand_at = w->now;
    w->other_at = s.other_client ? w->now : NEVER;
    w->newest_used = -1;
    w->longest_ask = UNIT;
    NOTE(c, "max %d%s, %s %ds, shift %d us, reserve %d/10, form %d, travel %d, back %d", (int)s.max,
         s.cost ? " cost" : "", s.rolling ? "rolling" : "calendar", (int)(s.window_us / SECOND), (int)s.shift_us,
         s.reserve.num, (int)s.form, (int)s.travel_us, (int)s.back_us);
}

static void world_end(world *w)
{
    ration_engine_free(w->client);
    ration_engine_free(w->provider);
    free(w);
}

static ration_counter_report provider_report(const world *w)
{
    return sole_report(w->provider, w->now + w->s.shift_us);
}

/* Notes are in microseconds since the start. */
static long long since_start(int64_t at)
{
    return (long long)(at - START);
}

/* ---- the client ---- */

/* What has been granted less than `arrival` ago and not been answered. */
static int64_t flight_of(const world *w)
{
    int64_t sum = 0;

    for (int i = w->count; i-- > 0 && w->calls[i].granted_at + w->s.arrival_us > w->now;)
        sum += w->calls[i].ended_at != 0 && w->calls[i].answered ? 0 : w->calls[i].asked;
    return sum;
}

/* What becomes of a call; those after the first are without an answer. */
typedef enum fate { IS_ANSWERED, IS_ABANDONED, NEVER_ARRIVES, HOLDER_DIES } fate;

static fate fate_draw(choices *c, const world *w)
{
    static const fate fates[] = {IS_ABANDONED, HOLDER_DIES, NEVER_ARRIVES};
    const uint64_t which = w->s.answers_lost ? choose(c, 9) : 0;

    return which < 7                                               ? IS_ANSWERED
           : fates[which - 7] == NEVER_ARRIVES && !w->s.calls_lost ? IS_ABANDONED
                                                                   : fates[which - 7];
}

static void granted(choices *c, world *w, call *k, fate what)
{
    k->granted_at = w->now;
    k->known_at = w->now < w->used_until ? w->calls[w->newest_used].judged_at : 0;
    k->at[ARRIVES] = w->now + (int64_t)choose(c, (uint64_t)w->s.travel_us - 1);
    k->answered = what == IS_ANSWERED;
    if (what == IS_ABANDONED || what == NEVER_ARRIVES)
        k->at[ENDS] = w->now + (int64_t)choose(c, 4 * SECOND);
    if (what == NEVER_ARRIVES)
        k->at[ARRIVES] = NEVER;
    if (w->s.settles && k->answered && choose(c, 1) == 1)
        k->actual = choose_from(c, 0, 2 * k->asked / UNIT) * UNIT;
    w->count++;
    w->window_flight = most(w->window_flight, flight_of(w));
}

/* When the provider's present minute ends. */
static int64_t minute_end(const world *w)
{
    return ((w->now + w->s.shift_us) / MINUTE + 1) * MINUTE - w->s.shift_us;
}

/* The client may believe that a window ends a second or two later than it does, and refuse until then. */
static bool end_is_known(const world *w)
{
    return w->s.rolling || minute_end(w) - w->now <= MINUTE - w->s.arrival_us;
}

static bool demand(choices *c, world *w)
{
    call *k = &w->calls[w->count];
    ration_request how = RATION_REQUEST_INIT;

    *k = (call){.asked = choose_from(c, 1, w->s.asks_max) * UNIT, .at = {NEVER, NEVER, NEVER, NEVER}};
    k->actual = k->asked;
    how.priority = choose(c, 15) == 15 ? RATION_PRIORITY_CRITICAL : RATION_PRIORITY_NORMAL;
    how.retry = choose(c, 7) == 7;

    const fate what = fate_draw(c, w);

    if (what == HOLDER_DIES)
        how.ttl_us = 1 + (int64_t)choose(c, 4 * SECOND);

    const ration_decision d = sole_ask(w->client, w->now, k->asked, &how);

    w->longest_ask = most(w->longest_ask, k->asked);
    if (d.result != RATION_GRANTED) {
        NOTE(c, "%lld refuse %d", since_start(w->now), (int)(k->asked / UNIT));
        w->window_refused += how.priority == RATION_PRIORITY_NORMAL && !how.retry && end_is_known(w) ? 1 : 0;
        return false;
    }
    k->lease = d.lease;
    granted(c, w, k, what);
    NOTE(c, "%lld grant %d for %d, arrives %lld", since_start(w->now), w->count - 1, (int)(k->asked / UNIT),
         k->at[ARRIVES] == NEVER ? -1 : since_start(k->at[ARRIVES]));
    return true;
}

/* The first call goes alone until it is answered, for until then a client knows nothing of where windows begin. */
static bool may_ask(const world *w)
{
    return w->count == 0 || w->newest_used >= 0 || (w->s.shift_us == 0 && !w->s.rolling);
}

/* Often just before or after a minute's end, where calls of one window are counted in the next. */
static int64_t demand_next(choices *c, const world *w, int burst)
{
    const int64_t next = w->now + w->s.pace_us / 8 + (int64_t)choose(c, (uint64_t)(2 * w->s.pace_us * burst));
    const int64_t near = minute_end(w) - w->s.arrival_us + (int64_t)choose(c, (uint64_t)(2 * w->s.arrival_us));

    return choose(c, 3) == 3 && near > w->now ? near : next;
}

static void demands(choices *c, world *w)
{
    const int burst = (int)choose_from(c, 1, w->s.burst_max);

    for (int i = 0; i < burst && w->count < CALLS && may_ask(w); i++)
        (void)demand(c, w);
    w->demand_at = demand_next(c, w, burst);
}

/* ---- the provider ---- */

/* What the client could not know when it granted `k`. */
static int64_t slack_of(const world *w, const call *k, int64_t window_start)
{
    int64_t known = k->known_at;
    int64_t slack = 0;

    /* A later call may know less, where what was learned is forgotten in between, and arrive earlier. */
    for (const call *later = k; later < w->calls + w->count; later++)
        known = least(known, later->known_at);
    known = most(known, window_start);

    for (int i = 0; i < w->other_count; i++)
        slack += w->others[i].at >= known ? w->others[i].amount : 0;
    for (int i = 0; i < w->count; i++) {
        const call *other = &w->calls[i];
        const bool here = other->settled_at != 0 && other->judged_at >= window_start && other->actual > other->asked;
        const bool told = other->counted && other->ended_at <= k->granted_at;

        slack += here && !told ? other->actual - other->asked : 0;
    }
    return slack;
}

/* Until when the provider counts what it granted at `at`. */
static int64_t counts_until(const world *w, int64_t at)
{
    const int64_t width = w->s.window_us / 60;

    return (at / width + 1) * width + w->s.window_us;
}

/* When the first of what is counted leaves the rolling window. */
static int64_t first_back(const world *w)
{
    int64_t first = w->now + w->s.window_us;

    for (int i = 0; i < w->count; i++) {
        const int64_t until = counts_until(w, w->calls[i].judged_at);

        if (w->calls[i].judged_at != 0 && !w->calls[i].refused && until > w->now)
            first = least(first, until);
    }
    for (int i = 0; i < w->other_count; i++) {
        if (counts_until(w, w->others[i].at) > w->now)
            first = least(first, counts_until(w, w->others[i].at));
    }
    return first;
}

static int64_t reset_of(const world *w, const ration_counter_report *r)
{
    if (!w->s.rolling)
        return r->window_end.us - w->s.shift_us;
    return w->s.reset == FIRST_BACK ? first_back(w) : w->now + w->s.window_us;
}

static void tell(world *w, call *k)
{
    const ration_counter_report r = provider_report(w);

    k->judged_at = w->now;
    k->max = r.max / UNIT;
    k->left = r.remaining / UNIT;
    k->reset_us = reset_of(w, &r);
}

static void arrives(choices *c, world *w, call *k)
{
    const ration_counter_report before = provider_report(w);
    const ration_decision d = sole_ask(w->provider, w->now + w->s.shift_us, k->asked, NULL);
    const int64_t window_start =
        w->s.rolling ? w->now - w->s.window_us * 62 / 60 : before.window_start.us - w->s.shift_us;

    seen.judged++;
    k->refused = d.result != RATION_GRANTED;
    k->judged = d.lease;
    tell(w, k);
    NOTE(c, "%lld %s %d, %d left", since_start(w->now), k->refused ? "provider refuses" : "judged", (int)(k - w->calls),
         (int)k->left);
    if (k->refused) {
        seen.refused++;
        k->actual = k->asked;
        HOLDS(c, before.used + k->asked - before.max <= slack_of(w, k, window_start));
    }
    if (k->answered)
        k->at[ANSWERS] = w->now + (int64_t)choose(c, (uint64_t)w->s.back_us);
    if (!k->refused)
        k->at[SETTLES] = k->actual == k->asked ? w->now : choose_from(c, w->now, k->at[ANSWERS]);
}

static void settles(choices *c, world *w, call *k)
{
    const ration_completion how = {.outcome = RATION_OUTCOME_SUCCESS, .cost = k->actual};

    k->settled_at = w->now;
    if (k->actual != k->asked)
        NOTE(c, "%lld %d has cost %d", since_start(w->now), (int)(k - w->calls), (int)(k->actual / UNIT));
    (void)ration_engine_release(w->provider, ration_time_of(w->now + w->s.shift_us), k->judged, &how);
}

static void answers(choices *c, world *w, call *k)
{
    quota_fields fields;
    const int index = (int)(k - w->calls);

    quota_fields_write(&fields, w->s.form, k->max, k->left,
                       !w->s.rolling || w->s.reset != UNTOLD ? k->reset_us : RATION_NEVER_US, k->judged_at);

    const ration_response response = {.status = 200, .headers = fields.items, .header_count = fields.count};

    NOTE(c, "%lld answer to %d", since_start(w->now), index);
    HOLDS(c, ration_engine_observe(w->client, ration_time_of(w->now), k->lease, &response) == RATION_OK);
    if (index > w->newest_used) {
        w->newest_used = index;
        w->used_until = !w->s.rolling ? NEVER : w->s.reset == UNTOLD ? w->now + w->s.window_us / 24 : k->reset_us;
    }
    k->at[ENDS] = w->now + (int64_t)choose(c, 1) * (int64_t)choose(c, 3 * SECOND);
}

static void ends(choices *c, world *w, call *k)
{
    static const ration_outcome lost[] = {RATION_OUTCOME_FAILURE, RATION_OUTCOME_CANCELLED};
    const ration_completion how = {
        .outcome = k->answered ? RATION_OUTCOME_SUCCESS : lost[k->asked / UNIT % 2],
        .cost = k->actual != k->asked ? k->actual : RATION_UNSET,
    };

    const int64_t used = sole_report(w->client, w->now).used;

    k->ended_at = w->now;
    NOTE(c, "%lld end of %d", since_start(w->now), (int)(k - w->calls));
    (void)ration_engine_release(w->client, ration_time_of(w->now), k->lease, &how);
    k->counted = sole_report(w->client, w->now).used - used == k->actual - k->asked;
}

static void other_client(choices *c, world *w)
{
    const int64_t amount = w->s.cost ? choose_from(c, 1, w->s.asks_max) * UNIT : UNIT;
    const ration_decision d = sole_ask(w->provider, w->now + w->s.shift_us, amount, NULL);

    if (d.result == RATION_GRANTED && w->other_count < CALLS) {
        w->others[w->other_count].at = w->now;
        w->others[w->other_count++].amount = amount;
        NOTE(c, "%lld another client takes %d", since_start(w->now), (int)(amount / UNIT));
    }
    w->other_at = w->now + SECOND / 8 + (int64_t)choose(c, (uint64_t)(2 * MINUTE / w->s.max));
}

/* ---- time ---- */

static void step_do(choices *c, world *w, call *k, step s)
{
    k->at[s] = NEVER;
    switch (s) {
    case ARRIVES:
        arrives(c, w, k);
        break;
    case SETTLES:
        settles(c, w, k);
        break;
    case ANSWERS:
        answers(c, w, k);
        break;
    case ENDS:
        ends(c, w, k);
        break;
    case STEPS:
        break;
    }
}

static bool is_over(const call *k)
{
    return k->at[ARRIVES] == NEVER && k->at[SETTLES] == NEVER && k->at[ANSWERS] == NEVER && k->at[ENDS] == NEVER;
}

/* The next thing that happens; false: not before `until`. */
static bool happens(choices *c, world *w, int64_t until)
{
    int64_t first = least(least(w->demand_at, w->other_at), until);
    call *which = NULL;
    step what = STEPS;

    while (w->oldest < w->count && is_over(&w->calls[w->oldest]))
        w->oldest++;
    for (int i = w->oldest; i < w->count; i++) {
        for (step s = ARRIVES; s < STEPS; s++) {
            if (w->calls[i].at[s] < first) {
                first = w->calls[i].at[s];
                which = &w->calls[i];
                what = s;
            }
        }
    }
    w->now = first;
    if (which != NULL) {
        step_do(c, w, which, what);
    } else if (first == w->demand_at) {
        demands(c, w);
    } else if (first == w->other_at) {
        other_client(c, w);
    } else {
        return false;
    }
    return true;
}

static void refuses_only_what_could_not_be_known(choices *c, void *context)
{
    world *w = calloc(1, sizeof *w);

    (void)context;
    if (w == NULL)
        abort();
    world_start(c, w, setup_draw(c, false));
    while (happens(c, w, START + WINDOWS * w->s.window_us) && w->count < CALLS) {
    }
    world_end(w);
}

/* ---- nothing is wasted ---- */

/* The charges that the client granted in the last window, two buckets, and as long as it trusts one without a reset. */
static int64_t granted_lately(const world *w)
{
    const int64_t since = w->now - w->s.window_us * 65 / 60;
    int64_t sum = 0;

    for (int i = 0; i < w->count; i++)
        sum += w->calls[i].granted_at >= since ? w->calls[i].asked : 0;
    return sum;
}

/* Has the client used what it may by now, but for what the rules of this file let it hold back? */
static void is_used(choices *c, world *w, int64_t used)
{
    const int64_t unit = w->s.cost ? 1 : UNIT;
    const int64_t reserve = w->s.max * UNIT * w->s.reserve.num / w->s.reserve.den / unit * unit;
    const int64_t supply = w->s.max * UNIT - reserve;
    const int64_t flight = most(w->window_flight, w->flight_before);

    if (w->window_refused == 0)
        return;
    if (!w->s.rolling) {
        seen.windows++;
        seen.offered += supply;
        seen.taken += least(used, supply);
        seen.worst_percent = least(seen.worst_percent, 100 * least(used, supply) / supply);
    }
    NOTE(c, "%lld used %d of %d, in flight %d", since_start(w->now), (int)(used / UNIT), (int)(supply / UNIT),
         (int)(flight / UNIT));
    HOLDS(c, used > supply - 2 * flight - w->longest_ask);
}

/* A calendar window, to its end. */
static void window_pass(choices *c, world *w)
{
    const int64_t end = minute_end(w);
    const bool whole = w->newest_used >= 0;

    w->flight_before = w->window_flight;
    w->window_flight = flight_of(w);
    w->window_refused = 0;
    while (happens(c, w, end)) {
    }
    if (whole)
        is_used(c, w, sole_report(w->provider, end + w->s.shift_us - 1).used);
}

/* A rolling window has no end: it must be used whenever it refuses. */
static void stretch_pass(choices *c, world *w)
{
    const int64_t end = w->now + w->s.window_us;

    for (w->window_refused = 0; happens(c, w, end); w->window_refused = 0)
        is_used(c, w, granted_lately(w));
}

static void what_may_be_used_is_used(choices *c, void *context)
{
    world *w = calloc(1, sizeof *w);

    (void)context;
    if (w == NULL)
        abort();
    world_start(c, w, setup_draw(c, true));
    for (int i = 0; i < WINDOWS && w->count < CALLS; i++) {
        if (w->s.rolling) {
            stretch_pass(c, w);
        } else {
            window_pass(c, w);
        }
    }
    world_end(w);
}

static void sync_overspends_nothing(void **state)
{
    (void)state;
    property_check("sync: no call too many", refuses_only_what_could_not_be_known, NULL, 6000);
    print_message("# %" PRIu64 " calls judged, %" PRIu64 " refused for what the client could not know\n", seen.judged,
                  seen.refused);
}

static void sync_wastes_nothing(void **state)
{
    (void)state;
    seen.worst_percent = 100;
    property_check("sync: nothing wasted", what_may_be_used_is_used, NULL, 4000);
    print_message("# %" PRIu64 " windows short of supply: %d %% of U - R used, %d %% in the worst\n", seen.windows,
                  (int)(100 * seen.taken / most(seen.offered, 1)), (int)seen.worst_percent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sync_overspends_nothing),
                                       cmocka_unit_test(sync_wastes_nothing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
