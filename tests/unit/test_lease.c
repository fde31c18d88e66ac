/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"

#include "core/lease.h"

static failalloc memory;
static rn_leases leases;

static void begin(uint32_t max)
{
    failalloc_init(&memory, UINT64_MAX);
    rn_leases_init(&leases, &memory.allocator, max, 0);
}

static void end(void)
{
    rn_leases_fini(&leases);
    CHECK_EQ(memory.live, 0);
}

static rn_lease *take(size_t places)
{
    CHECK_EQ(rn_leases_reserve(&leases, places), RATION_OK);

    rn_lease *lease = rn_leases_take(&leases);

    lease->state = RN_LEASE_HELD;
    return lease;
}

static void a_handle_names_one_life(void **state)
{
    (void)state;
    begin(100);

    rn_lease *a = take(2);
    const ration_lease first = rn_lease_handle(a);

    CHECK_EQ(first.index, 0);
    CHECK_EQ(first.generation, 1);
    CHECK(rn_leases_find(&leases, first) == a);
    rn_leases_put(&leases, a);
    CHECK(rn_leases_find(&leases, first) == NULL);

    rn_lease *b = take(1);
    const ration_lease second = rn_lease_handle(b);

    CHECK(b == a);
    CHECK_EQ(second.generation, 2);
    CHECK_EQ(b->place_capacity, 2); /* the memory of the life before */
    CHECK(rn_leases_find(&leases, first) == NULL);
    CHECK(rn_leases_find(&leases, second) == b);
    end();
}

static void lives_begin_where_they_are_told_to(void **state)
{
    static const struct {
        uint32_t told, first;
    } rows[] = {{0, 1}, {1, 1}, {2, 2}, {UINT32_MAX, UINT32_MAX}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        failalloc_init(&memory, UINT64_MAX);
        rn_leases_init(&leases, &memory.allocator, 600, rows[i].told);
        for (size_t lease = 0; lease < 600; lease++) /* of several chunks */
            CHECK_EQ(rn_lease_handle(take(0)).generation, rows[i].first);
        end();
    }
}

static void what_was_never_named_leaves_no_trace(void **state)
{
    (void)state;
    begin(100);

    rn_lease *a = take(0);

    CHECK_EQ(a->generation, 1);
    rn_leases_untake(&leases, a);
    CHECK_EQ(leases.used, 0);
    a = take(0);
    CHECK_EQ(a->index, 0);
    CHECK_EQ(a->generation, 1);
    end();
}

static void handles_that_name_nothing(void **state)
{
    static const struct {
        const char *why;
        ration_lease handle;
    } rows[] = {{"none", {0, 0}},          {"of the next life", {0, 2}},   {"a free one", {1, 0}},
                {"a free one's", {1, 1}},  {"beyond the table", {256, 1}}, {"far beyond", {UINT32_MAX, UINT32_MAX}},
                {"nothing, far", {999, 0}}};

    (void)state;
    begin(100);
    CHECK(rn_leases_find(&leases, (ration_lease){0, 1}) == NULL); /* an empty table */
    take(0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        CHECK(rn_leases_find(&leases, rows[i].handle) == NULL);
    }
    CHECK_ROW(NULL);
    end();
}

static void the_table_grows_in_order_up_to_its_maximum(void **state)
{
    (void)state;
    begin(600);
    for (uint32_t i = 0; i < 600; i++)
        CHECK_EQ(take(0)->index, i);
    CHECK_EQ(rn_leases_reserve(&leases, 0), RATION_ERR_FULL);
    rn_leases_put(&leases, rn_leases_at(&leases, 300));
    CHECK_EQ(take(0)->index, 300);
    CHECK_EQ(rn_leases_reserve(&leases, 0), RATION_ERR_FULL);
    CHECK_EQ(leases.used, 600);
    end();
}

static void a_used_up_generation_retires(void **state)
{
    (void)state;
    begin(100);

    rn_lease *a = take(0);

    rn_leases_put(&leases, a);
    a->generation = UINT32_MAX - 1;
    a = take(0);
    CHECK_EQ(a->index, 0);
    CHECK_EQ(a->generation, UINT32_MAX);
    rn_leases_untake(&leases, a); /* a life that did not count may still be used */
    a = take(0);
    CHECK_EQ(a->generation, UINT32_MAX);
    rn_leases_put(&leases, a);
    CHECK_EQ(take(0)->index, 1);
    CHECK(rn_leases_find(&leases, (ration_lease){0, UINT32_MAX}) == NULL);
    end();
}

static void without_memory_nothing_is_taken(void **state)
{
    bool failed = true;

    (void)state;
    for (uint64_t at = 0; failed; at++) {
        begin(100);
        memory.countdown = at;

        const int err = rn_leases_reserve(&leases, 5);

        failed = memory.failed;
        CHECK_EQ(err, failed ? RATION_ERR_NOMEM : RATION_OK);
        CHECK_EQ(leases.used, 0);
        CHECK_EQ(take(5)->index, 0);
        end();
    }
}

static void order_is_by_rank_and_by_provider_first(void **state)
{
    rn_provider providers[2] = {{.index = 0}, {.index = 1}};
    rn_route routes[2] = {{.provider = &providers[0]}, {.provider = &providers[1]}};
    rn_lease a = {.route = &routes[0], .rank = {RATION_PRIORITY_LOW, 9, 9}};
    rn_lease b = {.route = &routes[1], .rank = {RATION_PRIORITY_HIGH, 1, 1}};
    rn_lease c = {.route = &routes[1], .rank = {RATION_PRIORITY_HIGH, 1, 2}};
    rn_place of_b = {.lease = &b};
    rn_place of_c = {.lease = &c};

    (void)state;
    CHECK(rn_look_less(&a.look, &b.look));
    CHECK(!rn_look_less(&b.look, &a.look));
    CHECK(rn_look_less(&b.look, &c.look));
    CHECK(!rn_look_less(&c.look, &b.look));
    CHECK(rn_place_less(&of_b.node, &of_c.node));
    CHECK(!rn_place_less(&of_c.node, &of_b.node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_names_one_life),
        cmocka_unit_test(lives_begin_where_they_are_told_to),
        cmocka_unit_test(what_was_never_named_leaves_no_trace),
        cmocka_unit_test(handles_that_name_nothing),
        cmocka_unit_test(the_table_grows_in_order_up_to_its_maximum),
        cmocka_unit_test(a_used_up_generation_retires),
        cmocka_unit_test(without_memory_nothing_is_taken),
        cmocka_unit_test(order_is_by_rank_and_by_provider_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
