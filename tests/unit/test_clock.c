/* SPDX-License-Identifier: MIT */
/* The rule of chapter 7 over samples: no clock is read here. */

#include "support/check.h"

#include "net/clock.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define S INT64_C(1000000)
#define BOOT (100 * S)
#define WALL (INT64_C(1700000000) * S)

/* One clock and what it is shown, in order: seconds of boot time, offset of the wall clock, ours. All from the start.
 * */
static const struct {
    const char *why;
    int64_t boot_us, wall_us, ours_us;
    uint64_t forward, backward;
} steps[] = {
    {"starts at the wall clock", 0, 0, 0, 0, 0},
    {"runs along", 10 * S, 10 * S, 10 * S, 0, 0},
    {"boot time running back counts as standing still", 9 * S, 10 * S, 10 * S, 0, 0},
    {"two seconds ahead is no step: 0.05 % faster", 20 * S, 22 * S, 20 * S + 5000, 0, 0},
    {"and a microsecond more is one", 20 * S, 22 * S + 5001, 22 * S + 5001, 1, 0},
    {"agrees", 30 * S, 32 * S + 5001, 32 * S + 5001, 1, 0},
    {"a minute back: not followed at once", 30 * S, -28 * S + 5001, 32 * S + 5001, 1, 1},
    {"1 % slower", 130 * S, 72 * S + 5001, 131 * S + 5001, 1, 1},
    {"another step back is counted", 130 * S, 71 * S + 5001, 131 * S + 5001, 1, 2},
    {"still 1 % slower", 6130 * S, 6071 * S + 5001, 6071 * S + 5001, 1, 2},
    {"until they agree, then along", 6140 * S, 6081 * S + 5001, 6081 * S + 5001, 1, 2},
    {"a year ahead", 6140 * S, 31536000 * S, 31536000 * S, 2, 2},
};

static void follows(void **state)
{
    rn_clock clock;

    (void)state;
    rn_clock_init(&clock, BOOT, WALL);
    for (size_t i = 0; i < COUNT(steps); i++) {
        CHECK_ROW(steps[i].why);
        CHECK_EQ(rn_clock_follow(&clock, BOOT + steps[i].boot_us, WALL + steps[i].wall_us).us, WALL + steps[i].ours_us);
        CHECK_EQ(clock.steps_forward, steps[i].forward);
        CHECK_EQ(clock.steps_backward, steps[i].backward);
    }
    CHECK_ROW("all steps forward together");
    CHECK_EQ(clock.stepped_us, 2 * S + 1 + 31536000 * S - (6081 * S + 5001));
    CHECK_ROW(NULL);
}

/* Many short samples slew as much as one long one: no fraction is lost. */
static void slews_in_small_samples(void **state)
{
    rn_clock clock;
    ration_time last = {0};

    (void)state;
    rn_clock_init(&clock, BOOT, WALL);
    for (int64_t us = 7; us <= 14 * S; us += 7) {
        const ration_time now = rn_clock_follow(&clock, BOOT + us, WALL + us - S);

        CHECK(now.us >= last.us);
        last = now;
    }
    CHECK_EQ(last.us, WALL + 14 * S - 14 * S / 100);
    CHECK_EQ(clock.steps_backward, 1);
}

static void absurd_clocks_are_clamped(void **state)
{
    static const struct {
        const char *why;
        int64_t boot_us, wall_us, want_us;
    } rows[] = {
        {"before 1970", 5, -5, 0},
        {"beyond the largest instant", 5, INT64_MAX, RATION_TIME_MAX_US},
        {"negative boot time", -5, 7, 7},
    };
    rn_clock clock;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        CHECK_ROW(rows[i].why);
        rn_clock_init(&clock, rows[i].boot_us, rows[i].wall_us);
        CHECK_EQ(rn_clock_follow(&clock, rows[i].boot_us, rows[i].wall_us).us, rows[i].want_us);
        CHECK(rn_clock_follow(&clock, INT64_MAX, INT64_MIN).us <= RATION_TIME_MAX_US);
    }
    CHECK_ROW(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows),
        cmocka_unit_test(slews_in_small_samples),
        cmocka_unit_test(absurd_clocks_are_clamped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
