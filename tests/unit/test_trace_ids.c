/* SPDX-License-Identifier: MIT */
/*
 * The ids in use: an entry is found by its text, its lease and its serial, or by none of them, whatever memory is
 * missing.
 */
#include "support/check.h"
#include "support/failalloc.h"

#include "base/mem.h"
#include "trace/ids.h"

static void in_use(const rn_ids *ids, const rn_trace_id *want, const char *text, ration_lease lease, uint64_t serial)
{
    CHECK(rn_ids_find(ids, ration_text_of(text)) == want);
    CHECK(rn_ids_find_lease(ids, lease) == want);
    CHECK(rn_ids_find_serial(ids, serial) == want);
}

static void an_id_is_found_by_all_of_its_names(void **state)
{
    const ration_lease lease = {3, 1};
    const ration_lease next = {3, 2};
    rn_ids ids;
    rn_trace_id *id;

    (void)state;
    rn_ids_init(&ids, rn_mem_default());
    in_use(&ids, NULL, "a", lease, 7);
    id = rn_ids_new(&ids, ration_text_of("a"));
    in_use(&ids, NULL, "a", lease, 7);
    CHECK_EQ(rn_ids_add(&ids, id, lease, 7), RATION_OK);
    in_use(&ids, id, "a", lease, 7);
    in_use(&ids, NULL, "ab", next, 8);
    CHECK_TEXT(rn_trace_id_text(id), "a");

    /* The same text again, for another lease. */
    rn_ids_remove(&ids, id);
    in_use(&ids, NULL, "a", lease, 7);
    id = rn_ids_new(&ids, ration_text_of("a"));
    CHECK_EQ(rn_ids_add(&ids, id, next, 8), RATION_OK);
    in_use(&ids, id, "a", next, 8);
    CHECK(rn_ids_find_lease(&ids, lease) == NULL);
    CHECK(rn_ids_find_serial(&ids, 7) == NULL);
    rn_ids_fini(&ids);
}

static void memory_that_is_missing_leaves_an_id_out_of_use(void **state)
{
    const ration_lease lease = {0, 1};
    failalloc fail = {.failed = true};
    uint64_t failures = 0;

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        rn_ids ids;

        failalloc_init(&fail, i);
        rn_ids_init(&ids, &fail.allocator);

        rn_trace_id *const id = rn_ids_new(&ids, ration_text_of("a"));

        if (id != NULL && rn_ids_add(&ids, id, lease, 1) == RATION_OK) {
            CHECK(!fail.failed);
            in_use(&ids, id, "a", lease, 1);
        } else {
            CHECK(fail.failed);
            failures++;
            in_use(&ids, NULL, "a", lease, 1);
        }
        rn_ids_fini(&ids);
        CHECK_EQ(fail.live, 0);
    }
    CHECK(failures >= 4); /* the entry, and each of the maps */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_found_by_all_of_its_names),
        cmocka_unit_test(memory_that_is_missing_leaves_an_id_out_of_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
