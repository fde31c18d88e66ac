/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"

#include "base/map.h"
#include "base/mem.h"

#define MEMBERS 5000

typedef struct member {
    rn_map_node node;
    uint32_t key;
} member;

static member members[MEMBERS];

static int add(rn_map *map, uint32_t key)
{
    members[key].key = key;
    return rn_map_add(map, &members[key].node, &members[key].key, sizeof(members[key].key));
}

static bool has(const rn_map *map, uint32_t key)
{
    const rn_map_node *const found = rn_map_find(map, &key, sizeof(key));

    CHECK(found == NULL || found == &members[key].node);
    return found != NULL;
}

static void an_empty_map(void **state)
{
    rn_map map;

    (void)state;
    rn_map_init(&map, rn_mem_default());
    CHECK(!has(&map, 1));
    CHECK(rn_map_first(&map) == NULL);
    rn_map_fini(&map);
    rn_map_fini(&map);
}

static void finds_what_is_in_it(void **state)
{
    failalloc memory;
    rn_map map;
    uint32_t at = 0;

    (void)state;
    failalloc_init(&memory, UINT64_MAX);
    rn_map_init(&map, &memory.allocator);
    for (uint32_t i = 0; i < MEMBERS; i++)
        CHECK_EQ(add(&map, i), RATION_OK);
    CHECK_EQ(map.size, MEMBERS);
    for (uint32_t i = 0; i < MEMBERS; i += 2)
        rn_map_remove(&map, &members[i].node);
    CHECK_EQ(map.size, MEMBERS / 2);
    for (uint32_t i = 0; i < MEMBERS; i++)
        CHECK_EQ(has(&map, i), i % 2 == 1);
    for (const rn_map_node *n = rn_map_first(&map); n != NULL; n = rn_map_next(n)) {
        CHECK(n == &members[2 * at + 1].node);
        at++;
    }
    CHECK_EQ(at, MEMBERS / 2);
    rn_map_fini(&map);
    CHECK_EQ(map.size, 0);
    CHECK_EQ(memory.live, 0);
}

static void keys_are_bytes(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } keys[] = {{"", 0}, {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"a\0", 2}, {"a\0b", 3}, {"A", 1}};
    rn_map_node nodes[7];
    rn_map map;

    (void)state;
    rn_map_init(&map, rn_mem_default());
    for (size_t i = 0; i < 7; i++) {
        CHECK(rn_map_find(&map, keys[i].bytes, keys[i].size) == NULL);
        CHECK_EQ(rn_map_add(&map, &nodes[i], keys[i].bytes, keys[i].size), RATION_OK);
    }
    for (size_t i = 0; i < 7; i++)
        CHECK(rn_map_find(&map, keys[i].bytes, keys[i].size) == &nodes[i]);
    for (size_t size = UINT32_MAX; size <= (size_t)UINT32_MAX + 1; size++) {
        CHECK(rn_map_find(&map, "a", size) == NULL);
        CHECK_EQ(rn_map_add(&map, &nodes[0], "a", size), RATION_ERR_NOMEM);
    }
    rn_map_fini(&map);
}

static void survives_each_failure(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 8; at++) {
        failalloc memory;
        rn_map map;
        uint32_t in = 0;

        failalloc_init(&memory, at);
        rn_map_init(&map, &memory.allocator);
        while (add(&map, in) == RATION_OK)
            in++;
        CHECK(in < MEMBERS);
        CHECK_EQ(map.size, in);
        for (uint32_t i = 0; i <= in; i++)
            CHECK_EQ(has(&map, i), i < in);
        CHECK_EQ(add(&map, in), RATION_OK);
        CHECK(has(&map, in));
        while (rn_map_first(&map) != NULL)
            rn_map_remove(&map, rn_map_first(&map));
        CHECK_EQ(map.size, 0);
        rn_map_fini(&map);
        CHECK_EQ(memory.live, 0);
    }
}

static void a_map_that_empties_keeps_its_table(void **state)
{
    failalloc memory;
    rn_map map;

    (void)state;
    failalloc_init(&memory, UINT64_MAX);
    rn_map_init(&map, &memory.allocator);
    CHECK_EQ(add(&map, 1), RATION_OK);
    memory.countdown = 0; /* the next allocation would fail */
    for (uint32_t i = 2; i < 100; i++) {
        rn_map_remove(&map, rn_map_first(&map));
        CHECK_EQ(map.size, 0);
        CHECK(rn_map_first(&map) == NULL);
        CHECK(!has(&map, i));
        CHECK_EQ(add(&map, i), RATION_OK);
        CHECK(rn_map_first(&map) == &members[i].node);
        CHECK(rn_map_next(&members[i].node) == NULL);
    }
    CHECK(!memory.failed);
    rn_map_fini(&map);
    CHECK_EQ(memory.live, 0);
    memory.countdown = UINT64_MAX;
    CHECK_EQ(add(&map, 7), RATION_OK); /* and it can be used again */
    CHECK(has(&map, 7));
    rn_map_fini(&map);
    CHECK_EQ(memory.live, 0);
}

static void one_hash(void **state)
{
    (void)state;
    /* XXH3's published value for no bytes: what is stored under a hash stays findable over versions. */
    CHECK_EQ(rn_hash("", 0), (int64_t)UINT64_C(0x2d06800538d394c2));
    CHECK(rn_hash("a", 1) != rn_hash("b", 1));
    CHECK(rn_hash("ab", 1) == rn_hash("a", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map),
        cmocka_unit_test(finds_what_is_in_it),
        cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(survives_each_failure),
        cmocka_unit_test(a_map_that_empties_keeps_its_table),
        cmocka_unit_test(one_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
