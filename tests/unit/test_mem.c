/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"

#include "base/arena.h"
#include "base/mem.h"

static const ration_text absent;

static void the_default_gives_and_takes(void **state)
{
    const ration_allocator *const mem = rn_mem_default();
    unsigned char *block = rn_mem_zalloc(mem, 3, 5);

    (void)state;
    CHECK(block != NULL);
    for (size_t i = 0; i < 15; i++)
        CHECK_EQ(block[i], 0);
    block[14] = 7;
    block = rn_mem_resize(mem, block, 300, 5);
    CHECK(block != NULL);
    CHECK_EQ(block[14], 7);
    rn_mem_free(mem, block);
    rn_mem_free(mem, NULL);
}

static void nothing_is_still_a_block(void **state)
{
    const ration_allocator *const mem = rn_mem_default();
    void *const blocks[] = {rn_mem_alloc(mem, 0), rn_mem_zalloc(mem, 0, 8), rn_mem_resize(mem, NULL, 0, 8)};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        CHECK(blocks[i] != NULL);
        rn_mem_free(mem, blocks[i]);
    }
}

static void a_product_that_overflows_is_no_memory(void **state)
{
    failalloc memory;

    (void)state;
    failalloc_init(&memory, 1);

    const ration_allocator *const mem = &memory.allocator;
    void *const block = rn_mem_alloc(mem, 8);

    CHECK(rn_mem_zalloc(mem, SIZE_MAX / 2, 3) == NULL);
    CHECK(rn_mem_zalloc(mem, SIZE_MAX, 1) == NULL);
    CHECK(rn_mem_resize(mem, block, SIZE_MAX / 4, 5) == NULL);
    CHECK(!memory.failed); /* the allocator was not even asked */
    rn_mem_free(mem, block);
    CHECK_EQ(memory.live, 0);
}

static void copies_end_with_nul(void **state)
{
    const ration_allocator *const mem = rn_mem_default();
    const ration_text part = {"abcdef", 3};
    char *const copies[] = {rn_mem_strdup(mem, "abc"), rn_mem_textdup(mem, part)};
    char *const empty = rn_mem_strdup(mem, "");

    (void)state;
    CHECK_STR(copies[0], "abc");
    CHECK_STR(copies[1], "abc");
    CHECK_STR(empty, "");
    CHECK(rn_mem_strdup(mem, NULL) == NULL);
    CHECK(rn_mem_textdup(mem, absent) == NULL);
    CHECK(rn_mem_textdup(mem, (ration_text){"a", SIZE_MAX}) == NULL);
    rn_mem_free(mem, copies[0]);
    rn_mem_free(mem, copies[1]);
    rn_mem_free(mem, empty);
}

static void no_memory(void **state)
{
    failalloc memory;

    (void)state;
    failalloc_init(&memory, 0);
    CHECK(rn_mem_alloc(&memory.allocator, 1) == NULL);
    failalloc_init(&memory, 0);
    CHECK(rn_mem_zalloc(&memory.allocator, 1, 1) == NULL);
    failalloc_init(&memory, 0);
    CHECK(rn_mem_resize(&memory.allocator, NULL, 1, 1) == NULL);
    failalloc_init(&memory, 0);
    CHECK(rn_mem_strdup(&memory.allocator, "a") == NULL);
}

static void arena_gives_zeroed_aligned_memory(void **state)
{
    static const size_t sizes[] = {1, 3, 0, 8, 100, 600, 5000, 1, 200000, 7, 40000, 40000, 1};
    unsigned char *blocks[200];
    failalloc memory;
    rn_arena arena;

    (void)state;
    failalloc_init(&memory, UINT64_MAX);
    rn_arena_init(&arena, &memory.allocator);
    for (size_t i = 0; i < 200; i++) {
        const size_t size = sizes[i % 13];

        blocks[i] = rn_arena_zalloc(&arena, size, 1);
        CHECK(blocks[i] != NULL);
        CHECK_EQ((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < size; j++)
            CHECK_EQ(blocks[i][j], 0);
        memset(blocks[i], (int)i, size);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t j = 0; j < sizes[i % 13]; j++)
            CHECK_EQ(blocks[i][j], i);
    }
    CHECK(rn_arena_zalloc(&arena, SIZE_MAX / 2, 3) == NULL);
    CHECK(rn_arena_zalloc(&arena, SIZE_MAX, 1) == NULL);
    CHECK(rn_arena_zalloc(&arena, PTRDIFF_MAX, 1) == NULL);
    rn_arena_fini(&arena);
    rn_arena_fini(&arena);
    CHECK_EQ(memory.live, 0);
}

static void arena_calls_the_allocator_rarely(void **state)
{
    failalloc memory;
    rn_arena arena;

    (void)state;
    failalloc_init(&memory, 25);
    rn_arena_init(&arena, &memory.allocator);
    for (int i = 0; i < 10000; i++) {
        CHECK(rn_arena_zalloc(&arena, 1, 16) != NULL);
        /* Large ones must not waste what is left for small ones. */
        if (i % 1000 == 0)
            CHECK(rn_arena_zalloc(&arena, 1, 100000) != NULL);
    }
    CHECK(!memory.failed);
    rn_arena_fini(&arena);
    CHECK_EQ(memory.live, 0);
}

static void arena_copies(void **state)
{
    const ration_text part = {"abcdef", 3};
    rn_arena arena;

    (void)state;
    rn_arena_init(&arena, rn_mem_default());
    CHECK_STR(rn_arena_strdup(&arena, "abc"), "abc");
    CHECK_STR(rn_arena_textdup(&arena, part), "abc");
    CHECK_STR(rn_arena_strdup(&arena, ""), "");
    CHECK(rn_arena_strdup(&arena, NULL) == NULL);
    CHECK(rn_arena_textdup(&arena, absent) == NULL);
    CHECK(rn_arena_textdup(&arena, (ration_text){"a", SIZE_MAX}) == NULL);
    rn_arena_fini(&arena);
}

static void arena_survives_each_failure(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 12; at++) {
        failalloc memory;
        rn_arena arena;
        uint64_t given = 0;

        failalloc_init(&memory, at);
        rn_arena_init(&arena, &memory.allocator);
        while (rn_arena_zalloc(&arena, 1, 700) != NULL)
            given++;
        CHECK(memory.failed);
        CHECK(given >= at);
        CHECK_STR(rn_arena_strdup(&arena, "still usable"), "still usable");
        rn_arena_fini(&arena);
        CHECK_EQ(memory.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_gives_and_takes),
        cmocka_unit_test(nothing_is_still_a_block),
        cmocka_unit_test(a_product_that_overflows_is_no_memory),
        cmocka_unit_test(copies_end_with_nul),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(arena_gives_zeroed_aligned_memory),
        cmocka_unit_test(arena_calls_the_allocator_rarely),
        cmocka_unit_test(arena_copies),
        cmocka_unit_test(arena_survives_each_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
