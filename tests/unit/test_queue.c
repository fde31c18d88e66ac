/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"

#include "core/lease.h"

#define UNIT RATION_UNIT
#define HIGH RATION_PRIORITY_HIGH
#define NORMAL RATION_PRIORITY_NORMAL

static failalloc memory;
static rn_queue queue;
static rn_lease waiters[64];
static uint64_t serial;

static void begin(bool fifo)
{
    failalloc_init(&memory, UINT64_MAX);
    rn_queue_init(&queue, &memory.allocator, fifo);
    memset(waiters, 0, sizeof waiters);
    serial = 0;
}

static void end(void)
{
    rn_queue_fini(&queue);
    CHECK_EQ(memory.live, 0);
}

/* Waiter `id` of `tenant` (NULL: none) begins to wait; its tag. */
static uint64_t enter(int id, const char *tenant, ration_priority priority, int64_t cost, int64_t weight)
{
    rn_lease *lease = &waiters[id];
    const ration_text name = ration_text_of(tenant);

    lease->rank = (rn_rank){priority, rn_queue_tag(&queue, name, priority, cost, weight), ++serial};
    CHECK_EQ(rn_queue_enter(&queue, lease, name), RATION_OK);
    return lease->rank.tag;
}

static void leave(int id, bool granted)
{
    rn_queue_leave(&queue, &waiters[id], granted);
}

static void ranks_go_by_priority_then_tag_then_age(void **state)
{
    static const struct {
        const char *why;
        rn_rank first;
        rn_rank second;
    } rows[] = {
        {"priority before all", {RATION_PRIORITY_CRITICAL, 9, 9}, {HIGH, 1, 1}},
        {"high before normal", {HIGH, 9, 9}, {NORMAL, 1, 1}},
        {"normal before low", {NORMAL, 9, 9}, {RATION_PRIORITY_LOW, 1, 1}},
        {"then the tag", {NORMAL, 1, 9}, {NORMAL, 2, 1}},
        {"then age", {NORMAL, 1, 1}, {NORMAL, 1, 2}},
        {"tags at their end", {NORMAL, UINT64_MAX - 1, 2}, {NORMAL, UINT64_MAX, 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        CHECK(rn_rank_before(&rows[i].first, &rows[i].second));
        CHECK(!rn_rank_before(&rows[i].second, &rows[i].first));
        CHECK(!rn_rank_before(&rows[i].first, &rows[i].first));
    }
    CHECK_ROW(NULL);
}

/* The trace golden/fair-queue by hand: a asks three times, b once, then dear ones. V follows the grants. */
static void tags_by_hand(void **state)
{
    (void)state;
    begin(false);
    CHECK_EQ(enter(1, "a", NORMAL, UNIT, 1), 1 * UNIT);
    CHECK_EQ(enter(2, "a", NORMAL, UNIT, 1), 2 * UNIT);
    CHECK_EQ(enter(3, "a", NORMAL, UNIT, 1), 3 * UNIT);
    CHECK_EQ(enter(4, "b", NORMAL, UNIT, 1), 1 * UNIT); /* by age behind a's first, before its second */
    CHECK(rn_rank_before(&waiters[1].rank, &waiters[4].rank));
    CHECK(rn_rank_before(&waiters[4].rank, &waiters[2].rank));

    leave(1, true); /* V = 1 */
    CHECK_EQ(enter(5, "c", NORMAL, UNIT, 1), 2 * UNIT);
    CHECK_EQ(enter(6, "b", NORMAL, UNIT, 1), 2 * UNIT); /* b's last tag is 1 too */
    leave(4, true);
    leave(2, true); /* V = 2 */
    CHECK_EQ(enter(7, "d", NORMAL, 5 * UNIT, 1), 7 * UNIT);
    CHECK_EQ(enter(8, "d", NORMAL, UNIT, 1), 8 * UNIT);
    leave(8, true); /* V = 8, though d's first still waits at 7 */
    CHECK_EQ(enter(9, "a", NORMAL, UNIT, 1), 9 * UNIT);
    CHECK_EQ(enter(10, "d", NORMAL, UNIT, 1), 9 * UNIT);
    leave(7, true); /* V does not go back */
    CHECK_EQ(enter(11, "e", NORMAL, UNIT, 1), 9 * UNIT);
    end();
}

static void one_that_leaves_ungranted_does_not_count(void **state)
{
    (void)state;
    begin(false);
    enter(1, "b", NORMAL, UNIT, 1);
    enter(2, "a", NORMAL, 10 * UNIT, 1);
    enter(3, "a", NORMAL, 10 * UNIT, 1);
    leave(3, false);
    CHECK_EQ(enter(4, "a", NORMAL, UNIT, 1), 11 * UNIT);
    leave(4, false);
    leave(2, false);
    CHECK_EQ(enter(5, "a", NORMAL, UNIT, 1), UNIT);
    end();
}

static void weights_divide_and_round_up(void **state)
{
    static const struct {
        int64_t cost;
        int64_t weight;
        int64_t tag;
    } rows[] = {
        {UNIT, 1, UNIT},    {UNIT, 3, 333334},
        {UNIT, 1000000, 1}, {1, 1000000, 1},
        {0, 1, 0},          {2, 3, 1},
        {3, 3, 1},          {4, 3, 2},
        {6, 4, 2},          {RATION_UNITS_MAX, 1, RATION_UNITS_MAX},
    };

    (void)state;
    begin(false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ(rn_queue_tag(&queue, ration_text_of("a"), NORMAL, rows[i].cost, rows[i].weight), rows[i].tag);
    end();
}

static void a_tenant_of_weight_three_gets_three_of_four(void **state)
{
    int heavy = 0;

    (void)state;
    begin(false);
    for (int i = 0; i < 12; i++)
        enter(i, "heavy", NORMAL, UNIT, 3);
    for (int i = 12; i < 24; i++)
        enter(i, "light", NORMAL, UNIT, 1);
    for (int grants = 0; grants < 16; grants++) {
        int first = -1;

        for (int i = 0; i < 24; i++) {
            if (waiters[i].line != NULL && (first < 0 || rn_rank_before(&waiters[i].rank, &waiters[first].rank)))
                first = i;
        }
        heavy += first < 12;
        leave(first, true);
    }
    CHECK_EQ(heavy, 12);
    end();
}

static void fifo_has_no_tags(void **state)
{
    (void)state;
    begin(true);
    CHECK_EQ(enter(1, "a", NORMAL, 100 * UNIT, 1), 0);
    CHECK_EQ(enter(2, "a", NORMAL, UNIT, 1), 0);
    leave(1, true);
    CHECK_EQ(enter(3, "b", NORMAL, UNIT, 1), 0);
    CHECK(rn_rank_before(&waiters[2].rank, &waiters[3].rank));
    end();
}

static void without_tenants_the_order_is_that_of_arrival(void **state)
{
    (void)state;
    begin(false);
    for (int i = 0; i < 30; i++) {
        enter(i, NULL, NORMAL, i % 7 * UNIT, 1);
        if (i > 0)
            CHECK(rn_rank_before(&waiters[i - 1].rank, &waiters[i].rank));
        if (i % 3 == 2)
            leave(i / 3, true);
    }
    CHECK_EQ(rn_queue_waiting(&queue, (ration_text){NULL, 0}), 20);
    CHECK_EQ(rn_queue_waiting(&queue, ration_text_of("")), 20); /* "" is no tenant either */
    end();
}

static void tags_saturate_and_age_decides(void **state)
{
    (void)state;
    begin(false);
    enter(1, "a", NORMAL, RATION_UNITS_MAX, 1);
    waiters[1].rank.tag = UINT64_MAX - 5;
    CHECK_EQ(enter(2, "a", NORMAL, 4, 1), (int64_t)(UINT64_MAX - 1));
    CHECK_EQ(enter(3, "a", NORMAL, 1, 1), (int64_t)UINT64_MAX);
    CHECK_EQ(enter(4, "a", NORMAL, RATION_UNITS_MAX, 1), (int64_t)UINT64_MAX);
    CHECK(rn_rank_before(&waiters[3].rank, &waiters[4].rank));
    leave(4, true);
    CHECK_EQ(enter(5, "b", NORMAL, UNIT, 1), (int64_t)UINT64_MAX);
    end();
}

static void priorities_have_tags_of_their_own_and_forget_when_empty(void **state)
{
    (void)state;
    begin(false);
    enter(1, "a", NORMAL, 5 * UNIT, 1);
    enter(2, "b", NORMAL, 9 * UNIT, 1);
    CHECK_EQ(enter(3, "a", HIGH, UNIT, 1), UNIT);
    leave(1, true);
    CHECK_EQ(enter(4, "c", NORMAL, UNIT, 1), 6 * UNIT);
    CHECK_EQ(enter(5, "c", HIGH, UNIT, 1), UNIT);
    leave(2, false);
    leave(4, false); /* nobody normal waits: V is forgotten */
    CHECK_EQ(enter(6, "c", NORMAL, UNIT, 1), UNIT);
    leave(3, true);
    CHECK_EQ(enter(7, "a", HIGH, UNIT, 1), 2 * UNIT); /* high went on */
    end();
}

static void waiters_are_counted_by_tenant_over_all_priorities(void **state)
{
    (void)state;
    begin(false);
    enter(1, "a", NORMAL, UNIT, 1);
    enter(2, "a", HIGH, UNIT, 1);
    enter(3, "b", HIGH, UNIT, 1);
    CHECK_EQ(rn_queue_waiting(&queue, ration_text_of("a")), 2);
    CHECK_EQ(rn_queue_waiting(&queue, ration_text_of("b")), 1);
    CHECK_EQ(rn_queue_waiting(&queue, ration_text_of("c")), 0);
    CHECK_EQ(queue.count, 3);
    leave(2, true);
    CHECK_EQ(rn_queue_waiting(&queue, ration_text_of("a")), 1);
    leave(1, false);
    leave(3, false);
    CHECK_EQ(queue.count, 0);
    end();
}

static void lines_are_used_again(void **state)
{
    static const char longer[] = "a tenant whose name needs more room than a line has at first, which is not so much";

    (void)state;
    begin(false);
    enter(1, "a", NORMAL, UNIT, 1);
    enter(2, longer, NORMAL, UNIT, 1);
    enter(3, "c", HIGH, UNIT, 1);
    leave(3, true);
    leave(1, true);
    leave(2, true);
    memory.countdown = 0;
    for (int i = 0; i < 100; i++) {
        enter(1, longer, NORMAL, UNIT, 1); /* the line that came back last is the first to be used again */
        enter(2, "b", i % 2 == 0 ? NORMAL : HIGH, UNIT, 1);
        leave(2, false);
        leave(1, true);
    }
    CHECK(!memory.failed);
    end();
}

static void without_memory_nobody_enters(void **state)
{
    bool failed = true;

    (void)state;
    for (uint64_t at = 0; failed; at++) {
        const ration_text name = ration_text_of("a");

        begin(false);
        memory.countdown = at;
        waiters[0].rank.priority = NORMAL;

        const int err = rn_queue_enter(&queue, &waiters[0], name);

        failed = memory.failed;
        CHECK_EQ(err, failed ? RATION_ERR_NOMEM : RATION_OK);
        CHECK_EQ(queue.count, !failed);
        CHECK_EQ(rn_queue_waiting(&queue, name), !failed);
        enter(1, "a", NORMAL, UNIT, 1);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_go_by_priority_then_tag_then_age),
        cmocka_unit_test(tags_by_hand),
        cmocka_unit_test(one_that_leaves_ungranted_does_not_count),
        cmocka_unit_test(weights_divide_and_round_up),
        cmocka_unit_test(a_tenant_of_weight_three_gets_three_of_four),
        cmocka_unit_test(fifo_has_no_tags),
        cmocka_unit_test(without_tenants_the_order_is_that_of_arrival),
        cmocka_unit_test(tags_saturate_and_age_decides),
        cmocka_unit_test(priorities_have_tags_of_their_own_and_forget_when_empty),
        cmocka_unit_test(waiters_are_counted_by_tenant_over_all_priorities),
        cmocka_unit_test(lines_are_used_again),
        cmocka_unit_test(without_memory_nobody_enters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
