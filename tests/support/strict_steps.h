/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_STRICT_STEPS_H
#define TESTS_SUPPORT_STRICT_STEPS_H

/*
 * An engine with strict quotas, the ledger that it is saved to, and what happens to both, in order, as a table. Times
 * in microseconds, but for waits and events, which are in milliseconds.
 */

#include "support/check.h"
#include "support/world.h"

#include <inttypes.h>
#include <stdio.h>

#include <ration/state.h>

#include "base/text.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define KEPT_MAX 16

/* The other account's share is a fifth, and both reach every key: of what limits here have, a fifth is usable. */
static world w;

/* The last record of each key that was given out: a ledger. */
typedef struct strict_ledger {
    ration_record records[KEPT_MAX];
    char keys[KEPT_MAX][32];
    ration_part parts[KEPT_MAX][64];
    size_t count;
} strict_ledger;

static strict_ledger ledger;
static strict_ledger before; /* the last save */

static const char *const by_x[] = {"var:x"};

static inline ration_limit_rule strict(int64_t max)
{
    return (ration_limit_rule){.name = "daily",
                               .kind = RATION_KIND_QUOTA,
                               .scope = by_x,
                               .scope_count = 1,
                               .max = max,
                               .window = {.period = RATION_PERIOD_DAY},
                               .durability = RATION_DURABILITY_STRICT,
                               .arrival_us = 0};
}

static inline void begin_rules(int64_t at_us, const ration_limit_rule *limits, size_t count, bool enforcer)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    const ration_engine_options options = {.rules = &rules};

    world_rules(&rules, &provider, accounts, limits, count);
    rules.enforcer = enforcer;
    memset(&w, 0, sizeof w);
    CHECK_EQ(ration_engine_new(&options, ration_time_of(at_us), &w.engine, NULL), RATION_OK);
}

static inline void keep(void *ctx, const ration_record *record)
{
    size_t i = 0;
    size_t *used = ctx;

    if (record->type != RATION_RECORD_QUOTA)
        return;
    while (i < ledger.count && strncmp(ledger.keys[i], record->key.data, record->key.size) != 0)
        i++;
    CHECK(i < KEPT_MAX && record->key.size < sizeof ledger.keys[0] && record->u.quota.part_count <= 64);
    ledger.count = i == ledger.count ? i + 1 : ledger.count;
    ledger.records[i] = *record;
    snprintf(ledger.keys[i], sizeof ledger.keys[i], "%.*s", (int)record->key.size, record->key.data);
    memcpy(ledger.parts[i], record->u.quota.parts, record->u.quota.part_count * sizeof ledger.parts[0][0]);
    ledger.records[i].u.quota.timeline_count = 0;
    *used += (size_t)snprintf(w.text + *used, sizeof w.text - *used, "%s %.6g of %.6g;", ledger.keys[i],
                              (double)record->u.quota.used / (double)UNIT, (double)record->u.quota.mark / (double)UNIT);
}

static inline const char *save(int64_t at_us, bool all)
{
    size_t used = 0;

    before = ledger;
    w.text[0] = '\0';
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(at_us), all, &used, keep), RATION_OK);
    return w.text;
}

static inline const char *kept(int64_t at_us)
{
    CHECK_EQ(ration_engine_kept(w.engine, ration_time_of(at_us)), RATION_OK);
    return world_events(&w);
}

static inline void found(void *ctx, const ration_counter_report *report)
{
    ration_counter_report *out = ctx;

    if (report->kind == RATION_KIND_QUOTA && rn_text_is(report->key, "x=1"))
        *out = *report;
}

static inline ration_counter_report report(int64_t at_us)
{
    ration_counter_report out = {0};
    const ration_reporter reporter = {.ctx = &out, .counter = found};

    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_LIMITS, &reporter), RATION_OK);
    return out;
}

/* The process dies and another one begins with what the ledger has. */
static inline void die(int64_t at_us, const ration_limit_rule *limits, size_t count, bool unclean)
{
    const ration_state state = {.records = ledger.records, .count = ledger.count, .unclean = unclean};
    size_t unknown = 9;

    for (size_t i = 0; i < ledger.count; i++) {
        ledger.records[i].provider = ration_text_of("p");
        ledger.records[i].limit = ration_text_of("daily");
        ledger.records[i].key = ration_text_of(ledger.keys[i]);
        ledger.records[i].u.quota.parts = ledger.parts[i];
    }
    world_fini(&w);
    begin_rules(at_us, limits, count, false);
    CHECK_EQ(ration_engine_load(w.engine, ration_time_of(at_us), &state, &unknown), RATION_OK);
    CHECK_EQ(unknown, 0);
}

static inline void begin(int64_t at_us, const ration_limit_rule *limit)
{
    memset(&ledger, 0, sizeof ledger);
    begin_rules(at_us, limit, 1, false);
}

/* ---- steps ---- */

typedef enum op {
    ASK = 0,
    CHECKS,          /* what an acquire of x would be answered */
    CHECKS_ENFORCER, /* what the provider would */
    KEEP,            /* a save of what has changed; what is given out is written at once */
    KEEP_ALL,        /* of everything */
    UNWRITTEN,       /* the last save was not written */
    MADE,            /* all that was given out is durable: the events */
    END,             /* of a lease, perhaps settled */
    TELL,            /* "ID HEADER VALUE": the answer to its call */
    LEAVE,           /* a waiter */
    HEAR,            /* time passes: the events */
    USED,            /* the count and the mark of key x=1 */
    DIE,             /* and begin again with what is written */
    STOP,            /* the same, in order */
} op;

/* A request, the id of a lease, or nothing; `units` is what END settles. */
typedef struct step {
    const char *why;
    int64_t at_us;
    op op;
    const char *what;
    int64_t units;
    const char *want;   /* the answer, the events, or what is given out: "KEY used of mark;" */
    ration_need need;   /* after it */
    int64_t used, mark; /* of USED */
} step;

static inline const char *checked(int64_t at_us, const char *x, ration_check_mode mode)
{
    const ration_var var = {ration_text_of("x"), ration_text_of(x)};
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d;

    r.account = ration_text_of("acc");
    r.vars = &var;
    r.var_count = 1;
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(at_us), &r, mode, &d), RATION_OK);
    return d.result == RATION_GRANTED ? "granted" : ration_reason_name(d.reason);
}

static inline const char *tell(int64_t at_us, const char *what)
{
    char id[16];
    char header[32];
    char value[32];

    CHECK_EQ(sscanf(what, "%15s %31s %31s", id, header, value), 3);
    return world_observe(&w, at_us, id, 200, header, value);
}

static inline const char *step_do(const step *s, const ration_limit_rule *limits, size_t count)
{
    switch (s->op) {
    case ASK:
        return world_ask(&w, s->at_us, s->what);
    case CHECKS:
        return checked(s->at_us, s->what, RATION_CHECK_ACQUIRE);
    case CHECKS_ENFORCER:
        return checked(s->at_us, s->what, RATION_CHECK_ENFORCER);
    case KEEP:
        return save(s->at_us, false);
    case KEEP_ALL:
        return save(s->at_us, true);
    case UNWRITTEN:
        ledger = before;
        return s->want;
    case MADE:
        return kept(s->at_us);
    case END:
        return world_release(&w, s->at_us, s->what, RATION_OUTCOME_SUCCESS, s->units);
    case TELL:
        return tell(s->at_us, s->what);
    case LEAVE:
        return world_cancel(&w, s->at_us, s->what);
    case HEAR:
        world_advance(&w, s->at_us);
        return world_events(&w);
    case USED:
        CHECK_EQ(report(s->at_us).used, s->used);
        CHECK_EQ(report(s->at_us).mark, s->mark);
        return s->want;
    case DIE:
        die(s->at_us, limits, count, true);
        return s->want;
    case STOP:
        die(s->at_us, limits, count, false);
        return s->want;
    }
    return NULL;
}

static inline void run(const ration_limit_rule *limits, size_t count, const step *steps, size_t step_count)
{
    memset(&ledger, 0, sizeof ledger);
    begin_rules(steps[0].at_us, limits, count, false);
    for (size_t i = 0; i < step_count; i++) {
        CHECK_ROW(steps[i].why);
        CHECK_STR(step_do(&steps[i], limits, count), steps[i].want);
        CHECK_EQ(ration_engine_need(w.engine), steps[i].need);
    }
    CHECK_ROW(NULL);
    world_fini(&w);
}

#define STEPS(a) (a), sizeof(a) / sizeof((a)[0])
#define NOTHING RATION_NEED_NOTHING
#define SOON RATION_NEED_SAVE
#define NOW RATION_NEED_SAVE_NOW
#define DO(why, at, op, what, want, need)                                                                              \
    {                                                                                                                  \
        why, at, op, what, RATION_UNSET, want, need, 0, 0                                                              \
    }
#define SETTLE(why, at, what, units, need)                                                                             \
    {                                                                                                                  \
        why, at, END, what, units, "released", need, 0, 0                                                              \
    }
#define STANDS(why, at, used, mark, need)                                                                              \
    {                                                                                                                  \
        why, at, USED, "", 0, "", need, used, mark                                                                     \
    }

#endif
