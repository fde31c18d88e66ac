/* SPDX-License-Identifier: MIT */
/*
 * A restart is no amnesty and no punishment: an engine that was given what another one had kept goes on as that one
 * does, to the microsecond, as long as nobody held a lease when it was kept. Where leases were held, it grants nothing
 * that the other one would not grant. Chapter 3, "Ledger".
 *
 * Both engines are made of the same calls up to the restart; then one goes on, and the other's records go through a
 * third. What comes after is asked of both.
 */
#include "support/check.h"
#include "support/property.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ration/state.h>

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define RECORDS 64
#define PARTS 4096
#define HELD 16

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};

static const ration_limit_rule limits[] = {
    {.name = "slow",
     .kind = RATION_KIND_RATE,
     .scope = by_x,
     .scope_count = 1,
     .rate = {UNIT, 3 * SECOND},
     .burst = 6 * UNIT,
     .margin = RATION_UNSET},
    {.name = "minute",
     .kind = RATION_KIND_QUOTA,
     .scope = by_account,
     .scope_count = 1,
     .max = 30 * UNIT,
     .window = {.period = RATION_PERIOD_MINUTE},
     .arrival_us = RATION_UNSET,
     .sync = {.limit_header = "x-limit", .remaining_header = "x-left", .reset_header = "x-reset"}},
    {.name = "strict",
     .kind = RATION_KIND_QUOTA,
     .counts = RATION_COUNTS_COST,
     .scope = by_account,
     .scope_count = 1,
     .max = 300 * UNIT,
     .window = {.period = RATION_PERIOD_MINUTE},
     .durability = RATION_DURABILITY_STRICT,
     .arrival_us = RATION_UNSET,
     .sync = {.remaining_header = "x-strict", .reset_header = "x-reset"}},
    {.name = "strict rolling",
     .kind = RATION_KIND_QUOTA,
     .scope = by_x,
     .scope_count = 1,
     .max = 400 * UNIT,
     .window = {.rolling_us = 3 * MINUTE},
     .durability = RATION_DURABILITY_STRICT,
     .arrival_us = RATION_UNSET},
    {.name = "rolling",
     .kind = RATION_KIND_QUOTA,
     .counts = RATION_COUNTS_COST,
     .scope = by_x,
     .scope_count = 1,
     .max = 40 * UNIT,
     .window = {.rolling_us = 2 * MINUTE},
     .arrival_us = RATION_UNSET,
     .sync = {.remaining_header = "x-rolling"}},
    {.name = "adaptive",
     .kind = RATION_KIND_ADAPTIVE,
     .scope = by_account,
     .scope_count = 1,
     .adaptive = {.initial_limit = 6, .recovery_fast = true}},
};

/* What was kept, copied. */
typedef struct kept {
    ration_record records[RECORDS];
    size_t count;
    ration_part parts[PARTS];
    size_t part_count;
    char texts[8192];
    size_t used;
} kept;

/* One engine and who holds something of it. */
typedef struct side {
    ration_engine *engine;
    struct {
        ration_lease lease;
        bool held;
    } of[HELD];
} side;

static ration_engine *engine_new(int64_t at_us)
{
    static const ration_provider_rule provider = {
        .name = "p",
        .limits = limits,
        .limit_count = sizeof limits / sizeof limits[0],
        .breaker = {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 1, .backoff_initial_us = 7 * SECOND}};
    static const ration_account_rule account = {.name = "acc", .provider = "p"};
    static const ration_rules rules = {
        .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules, .keeps = true};
    ration_engine *engine = NULL;

    if (ration_engine_new(&options, ration_time_of(at_us), &engine, NULL) != RATION_OK)
        abort();
    return engine;
}

static ration_text keep_text(kept *k, ration_text text)
{
    char *copy = k->texts + k->used;

    if (text.data == NULL)
        return text;
    if (k->used + text.size > sizeof k->texts)
        abort();
    memcpy(copy, text.data, text.size);
    k->used += text.size;
    return (ration_text){copy, text.size};
}

static const ration_part *keep_parts(kept *k, const ration_part *parts, size_t count)
{
    ration_part *copy = k->parts + k->part_count;

    if (k->part_count + count > PARTS)
        abort();
    if (count > 0)
        memcpy(copy, parts, count * sizeof *copy);
    k->part_count += count;
    return copy;
}

/* A later record of the same thing takes the place of an earlier one. */
static void keep(void *ctx, const ration_record *record)
{
    kept *k = ctx;
    size_t i = 0;

    for (; i < k->count; i++) {
        const ration_record *other = &k->records[i];

        if (other->type == record->type && other->key.size == record->key.size &&
            memcmp(other->key.data, record->key.data, record->key.size) == 0 &&
            other->limit.size == record->limit.size &&
            (record->limit.size == 0 || memcmp(other->limit.data, record->limit.data, record->limit.size) == 0))
            break;
    }
    if (i == RECORDS)
        abort();
    k->records[i] = *record;
    k->records[i].provider = keep_text(k, record->provider);
    k->records[i].limit = keep_text(k, record->limit);
    k->records[i].key = keep_text(k, record->key);
    if (i == k->count)
        k->count++;
    if (record->type == RATION_RECORD_QUOTA) {
        k->records[i].u.quota.parts = keep_parts(k, record->u.quota.parts, record->u.quota.part_count);
        k->records[i].u.quota.timeline = keep_parts(k, record->u.quota.timeline, record->u.quota.timeline_count);
    }
}

enum kind { ASK, END, ANSWER };

typedef struct act {
    enum kind what;
    size_t who;
    int x;
    int64_t cost;
    int status;
    int header;
    int64_t value;
} act;

static act act_draw(choices *c)
{
    static const int statuses[] = {200, 200, 200, 429, 500};

    return (act){
        .what = (enum kind)choose(c, 2),
        .who = (size_t)choose(c, HELD - 1),
        .x = (int)choose(c, 2),
        .cost = choose_from(c, 1, 5) * UNIT,
        .status = statuses[choose(c, 4)],
        .header = (int)choose(c, 6),
        .value = choose_from(c, 0, 40),
    };
}

/* What the engine says to it, as text. */
static const char *act_do(side *s, const act *a, int64_t at_us, char *text, size_t size)
{
    static const char *const xs[] = {"0", "1", "2"};
    static const char *const names[] = {NULL, "x-limit", "x-left", "x-reset", "x-rolling", "retry-after", "x-strict"};
    const ration_time at = {at_us};
    char value[24];

    text[0] = '\0';
    if (a->what == ASK && !s->of[a->who].held) {
        const ration_var var = {ration_text_of("x"), ration_text_of(xs[a->x])};
        ration_request r = RATION_REQUEST_INIT;
        ration_decision d;

        r.account = ration_text_of("acc");
        r.vars = &var;
        r.var_count = 1;
        r.cost = a->cost;
        if (ration_engine_submit(s->engine, at, &r, &d) != RATION_OK)
            abort();
        snprintf(text, size, "%d %s %s %" PRId64, (int)d.result, ration_reason_name(d.reason),
                 d.limit != NULL ? d.limit : "-", d.retry_at.us);
        s->of[a->who].lease = d.lease;
        s->of[a->who].held = d.result == RATION_GRANTED;
    } else if (a->what == END && s->of[a->who].held) {
        (void)ration_engine_release(s->engine, at, s->of[a->who].lease, NULL);
        s->of[a->who].held = false;
    } else if (a->what == ANSWER && s->of[a->who].held) {
        snprintf(value, sizeof value, "%" PRId64, a->value);

        const ration_header header = {ration_text_of(names[a->header]), ration_text_of(value)};
        const ration_response response = {.status = a->status, .headers = &header, .header_count = a->header > 0};

        (void)ration_engine_observe(s->engine, at, s->of[a->who].lease, &response);
    }
    return text;
}

static void let_go(side *s, int64_t at_us)
{
    for (size_t i = 0; i < HELD; i++) {
        if (s->of[i].held)
            (void)ration_engine_release(s->engine, ration_time_of(at_us), s->of[i].lease, NULL);
        s->of[i].held = false;
    }
}

/* Another engine that goes on where this one is, `off_us` later. */
static ration_engine *reborn(choices *c, const kept *k, int64_t at_us)
{
    const ration_state state = {.records = k->records, .count = k->count};
    ration_engine *engine = engine_new(at_us);
    size_t unknown = 9;

    HOLDS(c, ration_engine_load(engine, ration_time_of(at_us), &state, &unknown) == RATION_OK);
    HOLDS(c, unknown == 0);
    return engine;
}

#define LINES 32
#define TICKS 64

/* What the counters have spent by time, in order of the limits and keys. */
typedef struct spent {
    struct {
        char name[32];
        int64_t start_us, width_us, units[TICKS];
        size_t count;
    } of[LINES];
    size_t count;
} spent;

static void see(void *ctx, const ration_counter_report *r)
{
    spent *all = ctx;

    if (r->kind != RATION_KIND_QUOTA)
        return;
    if (all->count == LINES || r->timeline.count > TICKS)
        abort();
    snprintf(all->of[all->count].name, sizeof all->of[0].name, "%s %.*s", r->limit, (int)r->key.size, r->key.data);
    all->of[all->count].start_us = r->timeline.start.us;
    all->of[all->count].width_us = r->timeline.width_us;
    all->of[all->count].count = r->timeline.count;
    memcpy(all->of[all->count].units, r->timeline.units, r->timeline.count * sizeof all->of[0].units[0]);
    all->count++;
}

/* What is known after the restart is what was known before it. */
static void the_same_was_spent(choices *c, const side *before, const side *after, int64_t now_us)
{
    static spent one;
    static spent two;
    ration_reporter reporter = {.ctx = &one, .timelines = true, .counter = see};

    one.count = two.count = 0;
    HOLDS(c, ration_engine_report(before->engine, ration_time_of(now_us), RATION_REPORT_LIMITS, &reporter) == 0);
    reporter.ctx = &two;
    HOLDS(c, ration_engine_report(after->engine, ration_time_of(now_us), RATION_REPORT_LIMITS, &reporter) == 0);
    for (size_t i = 0, k = 0; i < two.count; i++, k++) {
        while (k < one.count && strcmp(one.of[k].name, two.of[i].name) != 0)
            k++;
        HOLDS(c, k < one.count && one.of[k].start_us <= two.of[i].start_us);

        const size_t later = (size_t)((two.of[i].start_us - one.of[k].start_us) / two.of[i].width_us);

        HOLDS(c, one.of[k].count == later + two.of[i].count);
        HOLDS(c, memcmp(one.of[k].units + later, two.of[i].units, two.of[i].count * sizeof two.of[0].units[0]) == 0);
    }
}

static int64_t step(choices *c)
{
    static const int64_t spans[] = {0, 1, 10 * MS, 300 * MS, SECOND, 5 * SECOND, 40 * SECOND, 3 * MINUTE};

    return spans[choose(c, 7)];
}

static void the_same_goes_on(choices *c, void *context)
{
    static kept k;
    const bool *whole = context;
    char one[160];
    char two[160];
    side before = {.engine = engine_new(0)};
    side after = {0};
    int64_t now = 0;

    memset(&k, 0, sizeof k);
    while (choose(c, 40) != 0) {
        const act a = act_draw(c);

        now += step(c);
        NOTE(c, "%" PRId64 " what %d who %zu x %d cost %" PRId64 " status %d header %d value %" PRId64, now,
             (int)a.what, a.who, a.x, a.cost / UNIT, a.status, a.header, a.value);
        (void)act_do(&before, &a, now, one, sizeof one);
        /* Kept piece by piece, as a flush does it. */
        if (!*whole && choose(c, 3) == 0)
            HOLDS(c, ration_engine_save(before.engine, ration_time_of(now), false, &k, keep) == RATION_OK);
        if (!*whole && choose(c, 3) == 0)
            HOLDS(c, ration_engine_kept(before.engine, ration_time_of(now)) == RATION_OK);
    }
    /* All answered and given back, and on its way for long enough that the provider has it. */
    let_go(&before, now);
    now += 2 * SECOND;
    HOLDS(c, ration_engine_save(before.engine, ration_time_of(now), *whole, &k, keep) == RATION_OK);
    HOLDS(c, ration_engine_kept(before.engine, ration_time_of(now)) == RATION_OK);
    NOTE(c, "%" PRId64 " restart with %zu records", now, k.count);
    now += step(c);
    after.engine = reborn(c, &k, now);
    while (choose(c, 30) != 0) {
        const act a = act_draw(c);

        now += step(c);
        (void)act_do(&before, &a, now, one, sizeof one);
        (void)act_do(&after, &a, now, two, sizeof two);
        NOTE(c, "%" PRId64 " what %d who %zu x %d cost %" PRId64 " status %d header %d value %" PRId64 ": %s | %s", now,
             (int)a.what, a.who, a.x, a.cost / UNIT, a.status, a.header, a.value, one, two);
        HOLDS(c, strcmp(one, two) == 0);
    }
    the_same_was_spent(c, &before, &after, now);
    ration_engine_free(before.engine);
    ration_engine_free(after.engine);
}

static void saved_whole(void **state)
{
    bool whole = true;

    (void)state;
    property_check("saved whole", the_same_goes_on, &whole, 10000);
}

static void saved_piece_by_piece(void **state)
{
    bool whole = false;

    (void)state;
    property_check("saved piece by piece", the_same_goes_on, &whole, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_whole),
        cmocka_unit_test(saved_piece_by_piece),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
