/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_QUOTA_STEPS_H
#define TESTS_SUPPORT_QUOTA_STEPS_H

/* One quota and what happens to it, in order, as a table. Times in microseconds, amounts in micro-units. */

#include "support/counter.h"

#include "base/units.h"

#define UNIT RATION_UNIT
#define MS INT64_C(1000)

typedef enum quota_op {
    QUOTA_ASK = 0,
    QUOTA_END,    /* with its response seen */
    QUOTA_LOSE,   /* without a response */
    QUOTA_SETTLE, /* to another charge */
    QUOTA_TELL,   /* a response with headers */
    QUOTA_IS,     /* the report */
} quota_op;

typedef enum quota_how {
    NORMAL = 0,
    RETRY = 1,
    CRITICAL = 2,
    CRITICAL_RETRY = 3,
    WAITS = 4,     /* without end */
    WAITS_1US = 8, /* 1 us less than the wait that is wanted */
    ESTIMATE = 16, /* the wait is one */
} quota_how;

#define NO_TIME INT64_C(-1)
#define GRANTED RN_FIT_NOW, 0
#define SHORT_OF(wait) RN_FIT_SHORT, (wait)
#define REFUSED(wait) RN_FIT_REFUSED, (wait)
#define TOO_MUCH RN_FIT_REFUSED, -2 /* cost_exceeds_limit */

typedef struct quota_step {
    const char *why;
    int64_t at_us;
    quota_op op;
    char id;
    int64_t amount;
    unsigned how;
    rn_fit fit;
    int64_t wait_us;
    const char *limit, *remaining, *reset;
    bool throttled;
    uint64_t rejected;
    int64_t max, used, external, remains, start, end;
} quota_step;

/*
 * Rows. ASK: how, then what it gets. TELL: a 200; TELL_429. IS: max, used, external, remaining. WINDOW: start and end.
 */
#define ASK(why, at, id, charge, how, gets)                                                                            \
    {                                                                                                                  \
        why, at, QUOTA_ASK, id, charge, how, gets, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                     \
    }
#define END(why, at, id)                                                                                               \
    {                                                                                                                  \
        why, at, QUOTA_END, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                            \
    }
#define LOSE(why, at, id)                                                                                              \
    {                                                                                                                  \
        why, at, QUOTA_LOSE, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                           \
    }
#define SETTLE(why, at, id, charge)                                                                                    \
    {                                                                                                                  \
        why, at, QUOTA_SETTLE, id, charge, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                    \
    }
#define TELL(why, at, id, limit, remaining, reset, rejected)                                                           \
    {                                                                                                                  \
        why, at, QUOTA_TELL, id, 0, 0, 0, 0, limit, remaining, reset, false, rejected, 0, 0, 0, 0, 0, 0                \
    }
#define TELL_429(why, at, id, limit, remaining, reset)                                                                 \
    {                                                                                                                  \
        why, at, QUOTA_TELL, id, 0, 0, 0, 0, limit, remaining, reset, true, 0, 0, 0, 0, 0, 0, 0                        \
    }
#define IS(why, at, max, used, external, remains)                                                                      \
    {                                                                                                                  \
        why, at, QUOTA_IS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, max, used, external, remains, NO_TIME, NO_TIME                \
    }
#define WINDOW(why, at, max, used, external, remains, start, end)                                                      \
    {                                                                                                                  \
        why, at, QUOTA_IS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, max, used, external, remains, start, end                      \
    }

static inline ration_limit_rule quota_rule(int64_t max, ration_counts counts, ration_period period, int64_t rolling_us)
{
    const ration_limit_rule rule = {
        .name = "quota",
        .kind = RATION_KIND_QUOTA,
        .counts = counts,
        .max = max,
        .margin = RATION_UNSET,
        .arrival_us = RATION_UNSET,
        .window = {.period = period, .rolling_us = rolling_us},
        .sync = {.limit_header = "X-Limit", .remaining_header = "X-Remaining", .reset_header = "X-Reset"},
    };

    return rule;
}

static inline void quota_ask(lone *l, const quota_step *s)
{
    const ration_time wanted_at = {s->wait_us >= 0 ? s->at_us + s->wait_us : RATION_NEVER_US};
    rn_ask ask = {
        .charge = s->amount,
        .retry = (s->how & RETRY) != 0,
        .critical = (s->how & CRITICAL) != 0,
        .may_wait = (s->how & (WAITS | WAITS_1US)) != 0,
        .deadline = ration_time_of(s->at_us),
    };

    if ((s->how & WAITS) != 0)
        ask.deadline = wanted_at;
    if ((s->how & WAITS_1US) != 0)
        ask.deadline.us = wanted_at.us - 1;

    const rn_verdict verdict = lone_take(l, s->at_us, &ask, s->id, RATION_UNSET);
    const rn_verdict again = lone_check(l, s->at_us, &ask);
    const int64_t next = l->limit.kind->next_change(&l->counter, ration_time_of(s->at_us), &ask).us;

    CHECK_EQ(verdict.fit, s->fit);
    if (verdict.fit == RN_FIT_NOW) {
        CHECK_EQ(verdict.reason, RATION_REASON_NONE);
        return;
    }
    CHECK_EQ(verdict.reason, s->wait_us == -2 ? RATION_REASON_COST_EXCEEDS_LIMIT : RATION_REASON_QUOTA_EXHAUSTED);
    CHECK_EQ(rn_time_known(verdict.at) ? verdict.at.us - s->at_us : NO_TIME, s->wait_us >= 0 ? s->wait_us : NO_TIME);
    CHECK_EQ(verdict.estimate, (s->how & ESTIMATE) != 0);
    CHECK_EQ(again.fit, verdict.fit);
    CHECK_EQ(next, verdict.at.us);
}

static inline uint64_t rejected_of(const lone *l)
{
    uint64_t sum = 0;

    for (int i = 0; i < RATION_TOLD_COUNT; i++)
        sum += l->rejected[i];
    return sum;
}

static inline void quota_tell(lone *l, const quota_step *s)
{
    const char *const names[] = {"x-limit", "X-REMAINING", "X-Reset"};
    const char *const values[] = {s->limit, s->remaining, s->reset};
    ration_header headers[3];
    ration_response response = {.status = s->throttled ? 429 : 200, .headers = headers};
    const uint64_t before = rejected_of(l);

    for (size_t i = 0; i < 3; i++) {
        if (values[i] != NULL)
            headers[response.header_count++] = (ration_header){ration_text_of(names[i]), ration_text_of(values[i])};
    }
    lone_observe(l, s->at_us, s->id, &response, s->throttled);
    CHECK_EQ(rejected_of(l) - before, s->rejected);
}

static inline void quota_is(lone *l, const quota_step *s)
{
    const ration_counter_report report = lone_report(l, s->at_us);

    CHECK_EQ(report.max, s->max);
    CHECK_EQ(report.used, s->used);
    CHECK_EQ(report.external, s->external);
    CHECK_EQ(report.remaining, s->remains);
    if (s->end != NO_TIME) {
        CHECK(report.has_window);
        CHECK_EQ(report.window_start.us, s->start);
        CHECK_EQ(report.window_end.us, s->end);
    }
}

/* Run the table on `l`, which is set up; fini is the caller's. */
static inline void quota_run(lone *l, const quota_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const quota_step *const s = &steps[i];

        CHECK_ROW(s->why);
        switch (s->op) {
        case QUOTA_ASK:
            quota_ask(l, s);
            break;
        case QUOTA_END:
            lone_observe(l, s->at_us, s->id, NULL, false);
            lone_end(l, s->at_us, s->id);
            break;
        case QUOTA_LOSE:
            lone_end(l, s->at_us, s->id);
            break;
        case QUOTA_SETTLE:
            lone_settle(l, s->at_us, s->id, s->amount);
            break;
        case QUOTA_TELL:
            quota_tell(l, s);
            break;
        case QUOTA_IS:
            quota_is(l, s);
            break;
        }
    }
}

/* Not inlined: what is alone is large, and a test that runs three tables would have three of them on its stack. */
__attribute__((noinline, unused)) static void quota_run_alone(const ration_limit_rule *rule, const quota_step *steps,
                                                              size_t count)
{
    lone l;

    lone_init(&l, rule, steps[0].at_us);
    quota_run(&l, steps, count);
    lone_fini(&l);
}

#define QUOTA_RUN(rule, steps) quota_run_alone((rule), (steps), sizeof(steps) / sizeof(steps)[0])

#endif
