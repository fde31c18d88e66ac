/* SPDX-License-Identifier: MIT */
/* Penalties: doubling, bursts that are one event, and what a success resets. */
#include "support/check.h"

#include "core/penalty.h"

#define MS INT64_C(1000)
#define SECOND_US INT64_C(1000000)
#define HOUR_US (3600 * SECOND_US)
#define WEEK_US (168 * HOUR_US)
#define NONE RATION_NEVER_US

typedef struct step {
    const char *why;
    int64_t at_us, granted_us;
    bool success;
    int64_t retry_us; /* the instant that the provider named */
    bool moved;
    int64_t until_us;
    uint32_t events;
} step;

static void run(const ration_error_rule *rule, const step *steps, size_t count)
{
    rn_penalty penalty = {0};

    CHECK(!rn_penalty_runs(&penalty, ration_time_of(0)));
    for (size_t i = 0; i < count; i++) {
        const step *const s = &steps[i];
        const ration_time granted_at = {s->granted_us};

        CHECK_ROW(s->why);
        if (s->success) {
            rn_penalty_success(&penalty, granted_at);
        } else {
            CHECK_EQ(rn_penalty_hit(&penalty, ration_time_of(s->at_us), granted_at, ration_time_of(s->retry_us), rule),
                     s->moved);
        }
        CHECK_EQ(penalty.until.us, s->until_us);
        CHECK_EQ(penalty.events, s->events);
        CHECK(rn_penalty_runs(&penalty, ration_time_of(s->until_us - 1)));
        CHECK(!rn_penalty_runs(&penalty, ration_time_of(s->until_us)));
    }
}

#define RUN(rule, steps) run((rule), (steps), sizeof(steps) / sizeof(steps)[0])

/* The golden trace one-burst. */
static void test_burst(void **state)
{
    static const step steps[] = {
        {"the first", 10 * MS, 0, false, NONE, true, 2010 * MS, 1},
        {"of the same burst: moves the end, doubles nothing", 20 * MS, 0, false, NONE, true, 2020 * MS, 1},
        {"granted at the very instant", 20 * MS, 10 * MS, false, NONE, false, 2020 * MS, 1},
        {"the later end wins", 30 * MS, 0, false, 1030 * MS, false, 2020 * MS, 1},
        {"granted since: the next event", 2030 * MS, 2020 * MS, false, NONE, true, 6030 * MS, 2},
        {"granted 1 us after it began", 2031 * MS, 2030 * MS + 1, false, NONE, true, 10031 * MS, 3},
    };
    const ration_error_rule rule = {0};

    (void)state;
    RUN(&rule, steps);
}

/* The golden trace penalty-growth: 2 s doubling up to 10 min. */
static void test_growth(void **state)
{
    static const int64_t waits_s[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600};
    const ration_error_rule rule = {0};
    rn_penalty penalty = {0};
    ration_time now = {1000};

    (void)state;
    for (size_t i = 0; i < sizeof waits_s / sizeof waits_s[0]; i++) {
        CHECK(rn_penalty_hit(&penalty, now, ration_time_of(now.us - 1), ration_time_of(NONE), &rule));
        CHECK_EQ(penalty.until.us - now.us, waits_s[i] * SECOND_US);
        now.us = penalty.until.us + 2;
    }

    rn_penalty_success(&penalty, ration_time_of(0));
    rn_penalty_success(&penalty, penalty.began);
    CHECK(rn_penalty_hit(&penalty, now, ration_time_of(now.us - 1), ration_time_of(NONE), &rule));
    CHECK_EQ(penalty.until.us - now.us, 600 * SECOND_US);

    rn_penalty_success(&penalty, ration_time_of(penalty.began.us + 1));
    now.us = penalty.until.us + 2;
    CHECK(rn_penalty_hit(&penalty, now, ration_time_of(now.us - 1), ration_time_of(NONE), &rule));
    CHECK_EQ(penalty.until.us - now.us, 2 * SECOND_US);
    CHECK_EQ(penalty.events, 14);
}

static void test_named(void **state)
{
    static const step steps[] = {
        {"as it is", 0, -1, false, 1, true, 1, 1},
        {"longer than any doubling", 2, 1, false, 5 * HOUR_US, true, 5 * HOUR_US, 2},
        {"not beyond the maximum", 3, 3, false, 100 * HOUR_US, true, 24 * HOUR_US + 3, 3},
        {"one that is past is none: the third doubling", 24 * HOUR_US + 4, 24 * HOUR_US + 4, false, 0, true,
         24 * HOUR_US + 4 + 16 * SECOND_US, 4},
        {"one that is now is none", 25 * HOUR_US, 25 * HOUR_US, false, 25 * HOUR_US, true,
         25 * HOUR_US + 32 * SECOND_US, 5},
        {"a success granted before changes nothing", 25 * HOUR_US, 25 * HOUR_US, true, 0, false,
         25 * HOUR_US + 32 * SECOND_US, 5},
        {"one granted since resets", 25 * HOUR_US, 25 * HOUR_US + 1, true, 0, false, 25 * HOUR_US + 32 * SECOND_US, 5},
        {"a straggler of the old burst", 25 * HOUR_US + SECOND_US, 0, false, NONE, false, 25 * HOUR_US + 32 * SECOND_US,
         5},
    };
    static const step own[] = {
        {"a default of its own", 0, -1, false, NONE, true, 100 * SECOND_US, 1},
        {"doubled", 1, 1, false, NONE, true, 200 * SECOND_US + 1, 2},
        {"up to a maximum of its own", 2, 2, false, NONE, true, 300 * SECOND_US + 2, 3},
        {"for what the provider names, too", 3, 3, false, HOUR_US, true, 300 * SECOND_US + 3, 4},
    };
    static const step large[] = {
        {"a default above the cap", 0, -1, false, NONE, true, 600 * SECOND_US, 1},
    };
    const ration_error_rule rule = {0};
    const ration_error_rule of_its_own = {
        .default_penalty_us = 100 * SECOND_US,
        .max_penalty_us = 300 * SECOND_US,
    };
    const ration_error_rule above = {.default_penalty_us = 2 * HOUR_US};

    (void)state;
    RUN(&rule, steps);
    RUN(&of_its_own, own);
    RUN(&above, large);
}

/* Decision 0024. */
static void test_forgotten(void **state)
{
    static const step steps[] = {
        {"the first", 0, -1, false, NONE, true, 2 * SECOND_US, 1},
        {"the second", 3 * SECOND_US, 3 * SECOND_US, false, NONE, true, 7 * SECOND_US, 2},
        {"a week after its end, less 1 us", 7 * SECOND_US + WEEK_US - 1, HOUR_US, false, NONE, true,
         15 * SECOND_US + WEEK_US - 1, 3},
        {"a straggler a week after the end of that: the first again", 15 * SECOND_US + 2 * WEEK_US - 1, 0, false, NONE,
         true, 17 * SECOND_US + 2 * WEEK_US - 1, 4},
        {"and the second", 20 * SECOND_US + 2 * WEEK_US, 20 * SECOND_US + 2 * WEEK_US, false, NONE, true,
         24 * SECOND_US + 2 * WEEK_US, 5},
    };
    const ration_error_rule rule = {0};

    (void)state;
    RUN(&rule, steps);
}

static void test_last_instant(void **state)
{
    const ration_error_rule rule = {0};
    rn_penalty penalty = {0};
    const ration_time late = {RATION_TIME_MAX_US - 1};

    (void)state;
    CHECK(rn_penalty_hit(&penalty, late, ration_time_of(0), ration_time_of(NONE), &rule));
    CHECK_EQ(penalty.until.us, RATION_TIME_MAX_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_burst),     cmocka_unit_test(test_growth),       cmocka_unit_test(test_named),
        cmocka_unit_test(test_forgotten), cmocka_unit_test(test_last_instant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
