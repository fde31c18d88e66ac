/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"
#include "support/property.h"

#include "base/heap.h"
#include "base/mem.h"

#define MEMBERS 64

typedef struct member {
    rn_heap_node node;
    int64_t key;
} member;

static const member *member_of(const rn_heap_node *node)
{
    return (const member *)(const void *)((const char *)node - offsetof(member, node));
}

static bool member_less(const rn_heap_node *a, const rn_heap_node *b)
{
    return member_of(a)->key < member_of(b)->key;
}

static void members_come_out_in_order(void **state)
{
    static const int64_t keys[] = {5, 3, 9, 3, -1, 100, 0, 7};
    static const int64_t sorted[] = {-1, 0, 3, 3, 5, 7, 9, 100};
    member members[8];
    rn_heap heap;

    (void)state;
    rn_heap_init(&heap, rn_mem_default(), member_less);
    CHECK(rn_heap_top(&heap) == NULL);
    CHECK(rn_heap_pop(&heap) == NULL);
    for (size_t i = 0; i < 8; i++) {
        members[i].key = keys[i];
        rn_heap_node_init(&members[i].node);
        CHECK(!rn_heap_contains(&members[i].node));
        CHECK_EQ(rn_heap_push(&heap, &members[i].node), RATION_OK);
        CHECK(rn_heap_contains(&members[i].node));
    }
    for (size_t i = 0; i < 8; i++) {
        CHECK_EQ(member_of(rn_heap_top(&heap))->key, sorted[i]);

        rn_heap_node *const node = rn_heap_pop(&heap);

        CHECK_EQ(member_of(node)->key, sorted[i]);
        CHECK(!rn_heap_contains(node));
        rn_heap_remove(&heap, node);
        rn_heap_moved(&heap, node);
    }
    CHECK_EQ(heap.size, 0);
    rn_heap_fini(&heap);
}

static void fini_lets_the_members_go(void **state)
{
    member one = {.key = 1};
    rn_heap heap;

    (void)state;
    rn_heap_init(&heap, rn_mem_default(), member_less);
    rn_heap_node_init(&one.node);
    CHECK_EQ(rn_heap_push(&heap, &one.node), RATION_OK);
    rn_heap_fini(&heap);
    CHECK(!rn_heap_contains(&one.node));
    rn_heap_fini(&heap);
}

static void a_failed_push_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 3; at++) {
        member members[MEMBERS];
        failalloc memory;
        rn_heap heap;
        size_t in = 0;

        failalloc_init(&memory, at);
        rn_heap_init(&heap, &memory.allocator, member_less);
        for (; in < MEMBERS; in++) {
            members[in].key = -(int64_t)in;
            rn_heap_node_init(&members[in].node);
            if (rn_heap_push(&heap, &members[in].node) != RATION_OK)
                break;
        }
        CHECK(memory.failed && in < MEMBERS);
        CHECK_EQ(heap.size, in);
        CHECK(!rn_heap_contains(&members[in].node));
        CHECK_EQ(rn_heap_reserve(&heap, SIZE_MAX), RATION_ERR_NOMEM);
        CHECK_EQ(rn_heap_push(&heap, &members[in].node), RATION_OK);
        for (size_t i = in + 1; i > 0; i--)
            CHECK_EQ(member_of(rn_heap_pop(&heap))->key, -(int64_t)(i - 1));
        rn_heap_fini(&heap);
        CHECK_EQ(memory.live, 0);
    }
}

static void reserved_room_needs_no_memory(void **state)
{
    member members[MEMBERS];
    failalloc memory;
    rn_heap heap;

    (void)state;
    failalloc_init(&memory, 1);
    rn_heap_init(&heap, &memory.allocator, member_less);
    CHECK_EQ(rn_heap_reserve(&heap, MEMBERS), RATION_OK);
    for (size_t i = 0; i < MEMBERS; i++) {
        members[i].key = (int64_t)i;
        rn_heap_node_init(&members[i].node);
        CHECK_EQ(rn_heap_push(&heap, &members[i].node), RATION_OK);
    }
    CHECK(!memory.failed);
    rn_heap_fini(&heap);
    CHECK_EQ(memory.live, 0);
}

static void heap_holds(choices *c, const rn_heap *heap)
{
    for (size_t i = 0; i < heap->size; i++) {
        HOLDS(c, heap->items[i]->index == i);
        HOLDS(c, i == 0 || !member_less(heap->items[i], heap->items[(i - 1) / 2]));
    }
}

static void like_a_list(choices *c, void *context)
{
    member members[MEMBERS];
    size_t in = 0;
    rn_heap heap;

    (void)context;
    rn_heap_init(&heap, rn_mem_default(), member_less);
    for (size_t i = 0; i < MEMBERS; i++)
        rn_heap_node_init(&members[i].node);
    for (uint64_t action = choose(c, 4); action != 0; action = choose(c, 4)) {
        member *const one = &members[choose(c, MEMBERS - 1)];
        const bool inside = rn_heap_contains(&one->node);

        if (action == 4) {
            const bool removed = rn_heap_pop(&heap) != NULL;

            HOLDS(c, removed == (in > 0));
            in -= removed;
        } else if (inside && action == 3) {
            rn_heap_remove(&heap, &one->node);
            HOLDS(c, !rn_heap_contains(&one->node));
            in--;
        } else if (inside) {
            one->key = choose_from(c, -20, 20);
            rn_heap_moved(&heap, &one->node);
        } else {
            one->key = choose_from(c, -20, 20);
            HOLDS(c, rn_heap_push(&heap, &one->node) == RATION_OK);
            in++;
        }
        HOLDS(c, heap.size == in);
        heap_holds(c, &heap);
    }
    rn_heap_fini(&heap);
}

static void any_sequence(void **state)
{
    (void)state;
    property_check("heap", like_a_list, NULL, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_out_in_order),
        cmocka_unit_test(fini_lets_the_members_go),
        cmocka_unit_test(a_failed_push_changes_nothing),
        cmocka_unit_test(reserved_room_needs_no_memory),
        cmocka_unit_test(any_sequence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
