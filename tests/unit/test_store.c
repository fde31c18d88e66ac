/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include "simulate/store.h"

#define UNIT RATION_UNIT

static ration_record quota(const char *key, int64_t used, int64_t at_us, const ration_part *parts, size_t count)
{
    return (ration_record){
        .type = RATION_RECORD_QUOTA,
        .provider = ration_text_of("p"),
        .limit = ration_text_of("daily"),
        .key = ration_text_of(key),
        .at = {at_us},
        .u.quota = {.used = used, .parts = parts, .part_count = count},
    };
}

static const ration_record *find(const ration_state *state, const char *key)
{
    for (size_t i = 0; i < state->count; i++) {
        if (state->records[i].key.size == strlen(key) && memcmp(state->records[i].key.data, key, strlen(key)) == 0)
            return &state->records[i];
    }
    return NULL;
}

static void test_a_batch_is_durable_as_a_whole_or_not_at_all(void **state)
{
    ration_part parts[] = {{{7}, 3 * UNIT}};
    const ration_record one = quota("one", 1 * UNIT, 10, parts, 1);
    const ration_record again = quota("one", 2 * UNIT, 20, NULL, 0);
    const ration_record two = quota("two", 5 * UNIT, 15, NULL, 0);
    ration_state kept;
    rn_store store;

    (void)state;
    rn_store_init(&store);
    CHECK_EQ(rn_store_newest(&store).us, 0);
    rn_store_put(&store, &one);
    CHECK_EQ(rn_store_load(&store, true, &kept), 0);
    CHECK_EQ(kept.count, 0); /* not yet */
    CHECK(kept.unclean);

    CHECK_EQ(rn_store_commit(&store), 0);
    parts[0].units = 99; /* it was a copy */
    CHECK_EQ(rn_store_load(&store, false, &kept), 0);
    CHECK_EQ(kept.count, 1);
    CHECK(!kept.unclean);
    CHECK_EQ(find(&kept, "one")->u.quota.used, 1 * UNIT);
    CHECK_EQ(find(&kept, "one")->u.quota.part_count, 1);
    CHECK_EQ(find(&kept, "one")->u.quota.parts[0].units, 3 * UNIT);

    rn_store_put(&store, &again);
    rn_store_drop(&store);
    CHECK_EQ(rn_store_commit(&store), 0);
    CHECK_EQ(rn_store_load(&store, false, &kept), 0);
    CHECK_EQ(find(&kept, "one")->u.quota.used, 1 * UNIT); /* lost */

    rn_store_put(&store, &one);
    rn_store_put(&store, &again);
    rn_store_put(&store, &two);
    CHECK_EQ(rn_store_commit(&store), 0);
    CHECK_EQ(rn_store_load(&store, false, &kept), 0);
    CHECK_EQ(kept.count, 2);
    CHECK_EQ(find(&kept, "one")->u.quota.used, 2 * UNIT); /* the last */
    CHECK_EQ(find(&kept, "two")->u.quota.used, 5 * UNIT);
    CHECK_EQ(rn_store_newest(&store).us, 20);
    rn_store_fini(&store);
}

static void test_things_are_told_apart_by_type_and_names(void **state)
{
    ration_record records[] = {
        quota("k", 1, 1, NULL, 0), quota("k", 2, 1, NULL, 0), quota("k", 3, 1, NULL, 0),
        quota("k", 4, 1, NULL, 0), quota("k", 5, 1, NULL, 0),
    };
    ration_state kept;
    rn_store store;

    (void)state;
    records[1].provider = ration_text_of("q");
    records[2].limit = ration_text_of("dailyk");
    records[2].key = ration_text_of("");
    records[3].limit = (ration_text){NULL, 0};
    records[4].type = RATION_RECORD_PENALTY;
    records[4].u.penalty = (ration_penalty_record){.events = 9};
    rn_store_init(&store);
    for (size_t i = 0; i < 5; i++)
        rn_store_put(&store, &records[i]);
    CHECK_EQ(rn_store_commit(&store), 0);
    CHECK_EQ(rn_store_load(&store, false, &kept), 0);
    CHECK_EQ(kept.count, 5);
    rn_store_fini(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_is_durable_as_a_whole_or_not_at_all),
        cmocka_unit_test(test_things_are_told_apart_by_type_and_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
