/* SPDX-License-Identifier: MIT */
/* Units that a process has taken at once: how many of them it may spend, until when, and what has been used. */
#include "fleet/block.h"

#include "support/check.h"

#define UNTIL_MS 1000

typedef enum what { TAKE, END, SETTLE } what;

/* A block of three requests at 10 each, until 1 s, and what happens to it, in order. */
static const struct {
    const char *why;
    what what;
    int64_t at_ms, cost, actual;
    bool fits, over;
    int64_t used, under_way, used_cost;
} steps[] = {
    {"as it was taken for", TAKE, 0, 10, 0, true, false, 1, 1, 10},
    {"cheaper ones leave cost, and no units", TAKE, 0, 4, 0, true, false, 2, 2, 14},
    {"too dear: nothing is taken", TAKE, 0, 17, 0, false, false, 2, 2, 14},
    {"dearer than declared: less is left", SETTLE, 0, 10, 17, true, true, 2, 2, 21},
    {"nothing for one like the first", TAKE, 0, 9, 0, false, true, 2, 2, 21},
    {"cheaper than declared: more is left", SETTLE, 0, 17, 10, true, false, 2, 2, 14},
    {"it ends", END, 0, 0, 0, true, false, 2, 1, 14},
    {"to the last of its cost", TAKE, UNTIL_MS - 1, 16, 0, true, true, 3, 2, 30},
    {"no unit is left", TAKE, UNTIL_MS - 1, 0, 0, false, true, 3, 2, 30},
    {"the others end", END, UNTIL_MS, 0, 0, true, true, 3, 1, 30},
};

static void each_request_takes_a_unit_and_its_cost(void **state)
{
    rn_block block;

    (void)state;
    rn_block_init(&block, 3, 10, ration_time_of(UNTIL_MS * INT64_C(1000)));
    CHECK_EQ(rn_block_cost(&block), 30);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const ration_time at = {steps[i].at_ms * 1000};
        bool fits = true;

        CHECK_ROW(steps[i].why);
        if (steps[i].what == TAKE) {
            fits = rn_block_take(&block, at, steps[i].cost);
        } else if (steps[i].what == SETTLE) {
            rn_block_settle(&block, steps[i].cost, steps[i].actual);
        } else {
            rn_block_end(&block);
        }
        CHECK_EQ(fits, steps[i].fits);
        CHECK_EQ(rn_block_is_over(&block, at), steps[i].over);
        CHECK_EQ(block.used, steps[i].used);
        CHECK_EQ(block.under_way, steps[i].under_way);
        CHECK_EQ(block.used_cost, steps[i].used_cost);
    }
    CHECK_ROW(NULL);
}

static void nothing_is_granted_once_its_time_is_over(void **state)
{
    static const struct {
        int64_t at_us;
        bool fits;
    } rows[] = {{-1, true}, {999999, true}, {1000000, false}, {INT64_MAX / 2, false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_block block;

        rn_block_init(&block, 2, 0, ration_time_of(1000000));
        CHECK_EQ(rn_block_is_over(&block, ration_time_of(rows[i].at_us)), !rows[i].fits);
        CHECK_EQ(rn_block_take(&block, ration_time_of(rows[i].at_us), 1), rows[i].fits);
        CHECK_EQ(block.used, rows[i].fits);
    }
}

static void where_nothing_counts_cost_it_is_not_looked_at(void **state)
{
    rn_block block;

    (void)state;
    rn_block_init(&block, 2, 0, ration_time_of(1000000));
    CHECK(rn_block_take(&block, ration_time_of(0), INT64_MAX));
    rn_block_settle(&block, INT64_MAX, 1);
    CHECK(rn_block_take(&block, ration_time_of(0), INT64_MAX));
    CHECK_EQ(block.used_cost, 0);
    CHECK(!rn_block_take(&block, ration_time_of(0), 0));
}

static void sums_saturate(void **state)
{
    rn_block block;

    (void)state;
    rn_block_init(&block, 3, INT64_MAX / 2, ration_time_of(1000000));
    CHECK_EQ(rn_block_cost(&block), INT64_MAX);
    CHECK(rn_block_take(&block, ration_time_of(0), INT64_MAX / 2));
    rn_block_settle(&block, 0, INT64_MAX);
    CHECK_EQ(block.used_cost, INT64_MAX);
    CHECK(rn_block_is_over(&block, ration_time_of(0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_takes_a_unit_and_its_cost),
        cmocka_unit_test(nothing_is_granted_once_its_time_is_over),
        cmocka_unit_test(where_nothing_counts_cost_it_is_not_looked_at),
        cmocka_unit_test(sums_saturate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
