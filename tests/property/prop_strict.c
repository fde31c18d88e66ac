/* SPDX-License-Identifier: MIT */
/*
 * Strict quotas under deaths: whenever the process is killed, and whatever of what it gave out was written by then, the
 * next one counts no less than was granted, and at most a block more for each death. Chapter 3, "Ledger".
 *
 * Beside the engine stand a ledger, which writes when it likes, and a slow model of marks in a calendar window: nothing
 * may be granted that any record that may be found would not cover, and everything else is.
 */
#include "support/check.h"
#include "support/property.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ration/state.h>

#include "base/text.h"
#include "base/units.h"

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define KEYS 2
#define ASKED 256
#define PARTS 512
#define FOUND 16 /* records of a key that may be found */
#define MAX (200 * UNIT)
#define BLOCK (2 * UNIT)
#define WIDTH (1500 * MS) /* of a bucket of a rolling window of 90 s */
#define COUNTS (91500 * MS)

static const char *const by_x[] = {"var:x"};
static const char *const keys[KEYS] = {"x=0", "x=1"};

typedef enum stage { OVER = 0, WAITS, HOLDS_IT } stage;

/* Everything that was asked for, by whichever process, and granted or not. */
typedef struct asked {
    stage state;
    bool granted;
    ration_lease lease;
    int x;
    int64_t at_us;
    int64_t charge; /* now */
    int64_t told;   /* of that, what somebody has been told of */
} asked;

typedef struct entry {
    bool any;
    ration_record record;
    ration_part parts[PARTS];
} entry;

/* What may be found of a key after a death: the mark of a window. */
typedef struct finding {
    int64_t window_us;
    int64_t mark;
} finding;

typedef struct life {
    choices *c;
    bool rolling;
    bool gives_back; /* settlements may go down */
    ration_engine *engine;
    int64_t now;
    int64_t lost_at; /* when the last process began that found an unclean stop; 0: none */
    asked of[ASKED];
    size_t count, waiting, begun; /* `begun`: of this process, the first */
    entry written[KEYS], given[KEYS];
    bool pending; /* something was given out since the last that was kept */
    int64_t deaths, largest;
    struct {
        finding found[FOUND];
        size_t count;
        int64_t base_window, base; /* as it was when the process began */
    } model[KEYS];
} life;

static void engine_new(life *l)
{
    const ration_limit_rule limit = {.name = "q",
                                     .kind = RATION_KIND_QUOTA,
                                     .counts = RATION_COUNTS_COST,
                                     .scope = by_x,
                                     .scope_count = 1,
                                     .max = MAX,
                                     .window = {.period = l->rolling ? RATION_PERIOD_NONE : RATION_PERIOD_MINUTE,
                                                .rolling_us = l->rolling ? 90 * SECOND : 0},
                                     .durability = RATION_DURABILITY_STRICT};
    const ration_provider_rule provider = {.name = "p", .limits = &limit, .limit_count = 1};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {
        .retry_reserve = {0, 1}, .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};

    if (ration_engine_new(&options, ration_time_of(l->now), &l->engine, NULL) != RATION_OK)
        abort();
}

static int64_t window_of(int64_t at_us)
{
    return rn_div_floor(at_us, MINUTE) * MINUTE;
}

static bool counts(const life *l, int64_t at_us)
{
    if (!l->rolling)
        return at_us >= window_of(l->now);
    return rn_div_floor(at_us, WIDTH) >= rn_div_floor(l->now - COUNTS, WIDTH);
}

/* What has been granted and counts now. */
static int64_t truth(const life *l, int x, size_t from, bool told)
{
    int64_t sum = 0;

    for (size_t i = from; i < l->count; i++) {
        if (l->of[i].granted && l->of[i].x == x && counts(l, l->of[i].at_us))
            sum += told ? l->of[i].told : l->of[i].charge;
    }
    return sum;
}

/* ---- the model of a calendar window ---- */

static int64_t model_used(const life *l, int x)
{
    const int64_t base = l->model[x].base_window == window_of(l->now) ? l->model[x].base : 0;

    return base + truth(l, x, l->begun, false);
}

/* What would be counted, were the process to die now and this be found. */
static int64_t found_count(const finding *f, int64_t window_us)
{
    return f->window_us == window_us ? rn_max(f->mark, BLOCK) : BLOCK;
}

static int64_t model_left(const life *l, int x)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < l->model[x].count; i++)
        least = rn_min(least, found_count(&l->model[x].found[i], window_of(l->now)));
    return least - model_used(l, x);
}

static void model_given(life *l, int x, const ration_quota_record *record)
{
    if (l->model[x].count == FOUND)
        abort();
    l->model[x].found[l->model[x].count++] = (finding){record->window_start.us, record->mark};
}

static void model_kept(life *l)
{
    for (int x = 0; x < KEYS; x++) {
        l->model[x].found[0] = l->model[x].found[l->model[x].count - 1];
        l->model[x].count = 1;
    }
}

/* All that may be found is what is written, or nothing. */
static void model_found(life *l, int x, const entry *e)
{
    l->model[x].count = 1;
    l->model[x].found[0] = (finding){INT64_MIN, 0};
    if (e->any)
        l->model[x].found[0] = (finding){e->record.u.quota.window_start.us, e->record.u.quota.mark};
}

/* A process begins with what is written. */
static void model_begins(life *l)
{
    const int64_t window = window_of(l->now);

    for (int x = 0; x < KEYS; x++) {
        const entry *e = &l->written[x];
        const bool same = e->any && e->record.u.quota.window_start.us == window;

        const bool lost = e->any && l->lost_at != 0 && e->record.at.us <= l->lost_at;
        const int64_t ahead = lost ? e->record.u.quota.mark - e->record.u.quota.used : 0;

        model_found(l, x, e);
        l->model[x].base_window = window;
        if (same) {
            l->model[x].base = lost ? rn_max(e->record.u.quota.mark, BLOCK) : e->record.u.quota.used;
        } else {
            /* Of a window before, what a larger charge had been promised may be on its way. */
            l->model[x].base = window < l->lost_at ? rn_max(BLOCK, ahead) : 0;
        }
    }
}

/* ---- the ledger ---- */

static void give(void *ctx, const ration_record *record)
{
    life *l = ctx;
    const int x = record->key.data[2] - '0';
    entry *e = &l->given[x];

    e->any = true;
    e->record = *record;
    if (record->u.quota.part_count > PARTS)
        abort();
    memcpy(e->parts, record->u.quota.parts, record->u.quota.part_count * sizeof e->parts[0]);
    model_given(l, x, &record->u.quota);
}

static void save(life *l)
{
    for (int x = 0; x < KEYS; x++) {
        if (l->model[x].count >= FOUND - 1)
            return;
    }
    l->pending = true;
    NOTE(l->c, "%" PRId64 " save", l->now);
    HOLDS(l->c, ration_engine_save(l->engine, ration_time_of(l->now), false, l, give) == RATION_OK);
}

static void write_all(life *l)
{
    for (int x = 0; x < KEYS; x++) {
        if (l->given[x].any)
            l->written[x] = l->given[x];
        l->given[x].any = false;
    }
}

static void tell_settled(life *l)
{
    for (size_t i = l->begun; i < l->count && ration_engine_need(l->engine) != RATION_NEED_SAVE_NOW; i++)
        l->of[i].told = l->of[i].charge;
}

static void events(life *l)
{
    ration_event event;

    while (ration_engine_next_event(l->engine, &event)) {
        asked *a = event.user;

        HOLDS(l->c, a->state == WAITS);
        l->waiting--;
        a->state = event.type == RATION_EVENT_GRANTED ? HOLDS_IT : OVER;
        a->granted = event.type == RATION_EVENT_GRANTED;
        a->at_us = event.at.us;
        a->told = a->charge;
        NOTE(l->c, "  %s x=%d %" PRId64, a->granted ? "granted" : "refused", a->x, a->charge / UNIT);
    }
}

static void kept(life *l)
{
    write_all(l);
    NOTE(l->c, "%" PRId64 " kept", l->now);
    HOLDS(l->c, ration_engine_kept(l->engine, ration_time_of(l->now)) == RATION_OK);
    l->pending = false;
    events(l);
    model_kept(l);
    tell_settled(l);
}

/* ---- deaths ---- */

static int64_t reported;

static void found(void *ctx, const ration_counter_report *report)
{
    if (rn_text_is(report->key, keys[*(const int *)ctx]))
        reported = report->used;
}

static ration_request request_for(int x, int64_t cost)
{
    static const char *const values[KEYS] = {"0", "1"};
    static ration_var var;
    ration_request r = RATION_REQUEST_INIT;

    var = (ration_var){ration_text_of("x"), ration_text_of(values[x])};
    r.account = ration_text_of("acc");
    r.vars = &var;
    r.var_count = 1;
    r.cost = cost;
    return r;
}

/* What the engine counts; its counter is made if need be. */
static int64_t count_of(life *l, int x)
{
    const ration_request r = request_for(x, 0);
    const ration_reporter reporter = {.ctx = &x, .counter = found};
    ration_decision d;

    if (ration_engine_check(l->engine, ration_time_of(l->now), &r, RATION_CHECK_ACQUIRE, &d) != RATION_OK ||
        ration_engine_report(l->engine, ration_time_of(l->now), RATION_REPORT_LIMITS, &reporter) != RATION_OK)
        abort();
    return reported;
}

static void begin_again(life *l, bool unclean)
{
    ration_record records[KEYS];
    ration_state state = {.records = records, .unclean = unclean, .unclean_at = {unclean ? 0 : l->lost_at}};

    for (int x = 0; x < KEYS; x++) {
        entry *e = &l->written[x];

        if (!e->any)
            continue;
        e->record.provider = ration_text_of("p");
        e->record.limit = ration_text_of("q");
        e->record.key = ration_text_of(keys[x]);
        e->record.u.quota.parts = e->parts;
        e->record.u.quota.timeline_count = 0;
        records[state.count++] = e->record;
    }
    ration_engine_free(l->engine);
    engine_new(l);
    HOLDS(l->c, ration_engine_load(l->engine, ration_time_of(l->now), &state, NULL) == RATION_OK);
    for (size_t i = 0; i < l->count; i++)
        l->of[i].state = OVER;
    l->waiting = 0;
    l->pending = false;
    l->begun = l->count;
    model_begins(l);
    for (int x = 0; x < KEYS; x++) {
        const int64_t most = truth(l, x, 0, false) + l->deaths * rn_max(BLOCK, l->largest);
        const int64_t count = count_of(l, x);

        NOTE(l->c, "  x=%d counts %g, told %g", x, (double)count / 1e6, (double)truth(l, x, 0, true) / 1e6);
        HOLDS(l->c, count >= truth(l, x, 0, true));
        HOLDS(l->c, l->gives_back || count <= most);
        HOLDS(l->c, l->rolling || count == model_used(l, x));
    }
    l->now++; /* what is saved in the very microsecond of a begin counts as if it had been saved before */
}

static void die(life *l)
{
    /* What was given out may have been written, or not, or of one key alone. */
    for (int x = 0; x < KEYS; x++) {
        if (l->given[x].any && choose(l->c, 1) != 0)
            l->written[x] = l->given[x];
        l->given[x].any = false;
    }
    l->now += choose_from(l->c, 0, 3) * 700 * MS;
    l->deaths++;
    l->lost_at = l->now;
    NOTE(l->c, "%" PRId64 " dies", l->now);
    begin_again(l, true);
}

static void stop(life *l)
{
    /* Nobody is granted after the last save. */
    save(l);
    write_all(l);
    l->now += choose_from(l->c, 0, 3) * 700 * MS;
    NOTE(l->c, "%" PRId64 " stops", l->now);
    begin_again(l, false);
}

/* ---- requests ---- */

static void ask(life *l)
{
    const int x = (int)choose(l->c, KEYS - 1);
    const int64_t cost = choose_from(l->c, 1, 4) * UNIT / 2;
    const int64_t wait_us = (int64_t)choose(l->c, 3) * 5 * SECOND;
    const int64_t left = model_left(l, x);
    const int64_t used = model_used(l, x);
    const bool alone = l->waiting == 0 && !l->rolling;
    ration_request r = request_for(x, cost);
    ration_decision d;

    if (l->count == ASKED)
        return;

    asked *a = &l->of[l->count++];

    *a = (asked){.x = x, .charge = cost, .told = cost, .at_us = l->now};
    r.user = a;
    r.wait_us = wait_us;
    if (ration_engine_submit(l->engine, ration_time_of(l->now), &r, &d) != RATION_OK)
        abort();
    NOTE(l->c, "%" PRId64 " x=%d asks for %g: %d %s (left %g)", l->now, x, (double)cost / 1e6, (int)d.result,
         ration_reason_name(d.reason), (double)left / 1e6);
    l->largest = rn_max(l->largest, cost);
    a->lease = d.lease;
    a->granted = d.result == RATION_GRANTED;
    a->state = a->granted ? HOLDS_IT : d.result == RATION_QUEUED ? WAITS : OVER;
    l->waiting += d.result == RATION_QUEUED;
    HOLDS(l->c, l->rolling || !a->granted || cost <= left);
    HOLDS(l->c, !alone || a->granted == (used + cost <= MAX && cost <= left));
    HOLDS(l->c, !alone || (d.reason == RATION_REASON_QUOTA_EXHAUSTED) == (used + cost > MAX));
    HOLDS(l->c, !alone || d.result != RATION_REFUSED || used + cost > MAX || wait_us == 0);
    events(l);
}

static void settle(life *l, asked *a)
{
    ration_completion how = RATION_COMPLETION_INIT;

    how.cost = choose_from(l->c, l->gives_back ? 0 : a->charge * 2 / UNIT, 12) * UNIT / 2;
    how.cost = l->gives_back ? how.cost : rn_max(how.cost, a->charge);
    NOTE(l->c, "%" PRId64 " x=%d settles %g to %g", l->now, a->x, (double)a->charge / 1e6, (double)how.cost / 1e6);
    HOLDS(l->c, ration_engine_release(l->engine, ration_time_of(l->now), a->lease, &how) == RATION_OK);
    a->state = OVER;
    l->largest = rn_max(l->largest, how.cost);
    if (counts(l, a->at_us)) {
        a->charge = how.cost;
        a->told = rn_min(a->told, how.cost);
    }
    events(l);
    tell_settled(l);
}

static void end_one(life *l)
{
    asked *a = l->count == 0 ? NULL : &l->of[choose(l->c, l->count - 1)];

    if (a != NULL && a->state == HOLDS_IT)
        settle(l, a);
}

static void act(life *l)
{
    static const int64_t spans[] = {0, 1, 100 * MS, SECOND, 7 * SECOND, 40 * SECOND, 100 * SECOND};

    l->now += spans[choose(l->c, 6)];
    HOLDS(l->c, ration_engine_advance(l->engine, ration_time_of(l->now)) == RATION_OK);
    events(l);
    switch (choose(l->c, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
        ask(l);
        break;
    case 4:
        end_one(l);
        break;
    case 5:
        save(l);
        break;
    case 6:
        write_all(l);
        break;
    case 7:
        kept(l);
        break;
    case 8:
        die(l);
        break;
    default:
        stop(l);
        break;
    }
    HOLDS(l->c, l->waiting == 0 || l->pending || ration_engine_need(l->engine) == RATION_NEED_SAVE_NOW);
}

static void never_too_few(choices *c, void *context)
{
    static life l;

    memset(&l, 0, sizeof l);
    l.c = c;
    l.rolling = *(const bool *)context;
    l.gives_back = choose(c, 1) != 0;
    l.now = SECOND; /* 0 is no instant */
    model_begins(&l);
    engine_new(&l);
    while (choose(c, 60) != 0)
        act(&l);
    /* Whoever still waits has it as soon as enough has been kept. */
    for (size_t i = 0; i < (size_t)2 * ASKED && l.waiting > 0; i++) {
        save(&l);
        kept(&l);
    }
    HOLDS(c, l.waiting == 0);
    for (int x = 0; x < KEYS; x++)
        HOLDS(c, l.rolling || count_of(&l, x) == model_used(&l, x));
    ration_engine_free(l.engine);
}

static void of_a_minute(void **state)
{
    bool rolling = false;

    (void)state;
    property_check("never too few, of a minute", never_too_few, &rolling, 8000);
}

static void rolling(void **state)
{
    bool is_rolling = true;

    (void)state;
    property_check("never too few, rolling", never_too_few, &is_rolling, 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_minute),
        cmocka_unit_test(rolling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
