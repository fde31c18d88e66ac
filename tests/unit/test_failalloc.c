/* SPDX-License-Identifier: MIT */
/* The failing allocator itself, through the door that base has to an allocator, and over a container that uses it. */

#include "support/check.h"
#include "support/failalloc.h"

#include "base/heap.h"
#include "base/mem.h"

static void fails_once_at_its_turn(void **state)
{
    failalloc fail;

    (void)state;
    failalloc_init(&fail, 1);

    void *first = rn_mem_alloc(&fail.allocator, 8);

    CHECK(first != NULL);
    CHECK(rn_mem_resize(&fail.allocator, first, 2, 8) == NULL);
    CHECK(fail.failed);
    CHECK_EQ(fail.live, 1);
    first = rn_mem_resize(&fail.allocator, first, 2, 8);
    CHECK(first != NULL);
    rn_mem_free(&fail.allocator, first);
    rn_mem_free(&fail.allocator, NULL);
    CHECK_EQ(fail.live, 0);
}

static bool less_by_address(const rn_heap_node *a, const rn_heap_node *b)
{
    return a < b;
}

static void every_allocation_of_a_heap(void **state)
{
    static rn_heap_node nodes[100];
    failalloc fail = {.failed = true};
    uint64_t runs = 0;

    (void)state;
    for (; fail.failed; runs++) {
        rn_heap heap;
        size_t pushed = 0;

        failalloc_init(&fail, runs);
        rn_heap_init(&heap, &fail.allocator, less_by_address);
        for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
            rn_heap_node_init(&nodes[i]);
            pushed += rn_heap_push(&heap, &nodes[i]) == RATION_OK;
        }
        CHECK_EQ(pushed, sizeof nodes / sizeof nodes[0] - fail.failed);
        rn_heap_fini(&heap);
        CHECK_EQ(fail.live, 0);
    }
    CHECK(runs > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_once_at_its_turn),
        cmocka_unit_test(every_allocation_of_a_heap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
