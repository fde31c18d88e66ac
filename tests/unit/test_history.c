/* SPDX-License-Identifier: MIT */
/* The last quarter of an hour: what a sample says, and that the oldest go. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "serve/history.h"

#include "support/check.h"

static ration_text written(const rn_history *history, rn_output *out)
{
    rn_output_init(out, rn_mem_default(), (size_t)1 << 20);
    rn_history_write(history, (ration_time){5000}, out);
    CHECK_EQ(out->err, RATION_OK);
    return (ration_text){out->data, out->size};
}

/* How often `what` stands in a text. */
static size_t occurrences(ration_text text, const char *what)
{
    size_t count = 0, at;

    while (rn_text_find(text, ration_text_of(what), &at)) {
        text = rn_text_slice(text, at + 1, text.size);
        count++;
    }
    return count;
}

static void test_a_sample(void **state)
{
    static const char want[] =
        "{\"startedAt\":5,\"samples\":[{\"at\":7,\"waits\":{\"boundsMs\":[0.5,1,2.5,5,10,25,50,100,250,500,1000,2500,"
        "5000,10000,30000,60000],\"critical\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"
        "\"high\":[0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2],\"normal\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"
        "\"low\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},\"refusals\":{\"deadline\":3},"
        "\"outcomes\":{\"success\":4,\"throttled\":0,\"failure\":0,\"cancelled\":1},\"limits\":[]}],\"moves\":[]}\n";
    rn_history_counts counts = {.refusals = {[RATION_REASON_DEADLINE] = 3},
                                .outcomes = {[RATION_OUTCOME_SUCCESS] = 4, [RATION_OUTCOME_CANCELLED] = 1}};
    rn_history *history;
    rn_output out;
    (void)state;

    rn_histogram_add(&counts.waits[RATION_PRIORITY_HIGH], 1000);
    rn_histogram_add(&counts.waits[RATION_PRIORITY_HIGH], 60000001);
    rn_histogram_add(&counts.waits[RATION_PRIORITY_HIGH], 90000000);
    CHECK_EQ(rn_history_new(RN_HISTORY_MAX, 3, &history), RATION_OK);
    CHECK_ROW("none yet");
    CHECK_TEXT(written(history, &out), "{\"startedAt\":5,\"samples\":[],\"moves\":[]}\n");
    rn_output_fini(&out);

    CHECK_ROW("one");
    rn_history_add(history, (ration_time){7000}, &counts, NULL, (ration_time){0});
    CHECK_TEXT(written(history, &out), want);
    rn_output_fini(&out);
    rn_history_free(history);
}

/* ---- what limits stand at: a decider that has some */

#define MANY (RN_HISTORY_ROWS + 5)

typedef struct fake {
    rn_decider base;
    size_t adaptive, tenants;
    size_t key_size;
    ration_time asked_at;
    uint32_t kinds;
} fake;

static int fake_report(rn_decider *d, ration_time now, ration_report_kind kind, const ration_reporter *reporter)
{
    static char long_key[RN_HISTORY_ROWS_BYTES];
    ration_tenant_report tenants[RN_HISTORY_TENANTS + 1];
    fake *f = (fake *)(void *)d;
    (void)kind;

    memset(long_key, 'k', sizeof long_key);
    f->asked_at = now;
    f->kinds = reporter->kinds;
    for (size_t i = 0; i < f->adaptive; i++) {
        const ration_counter_report row = {.provider = "p",
                                           .limit = "width",
                                           .kind = RATION_KIND_ADAPTIVE,
                                           .key = {long_key, f->key_size},
                                           .held = 2 * RATION_UNIT,
                                           .current = 7 * RATION_UNIT};
        reporter->counter(reporter->ctx, &row);
    }
    for (size_t i = 0; i < f->tenants; i++) {
        tenants[i] = (ration_tenant_report){.name = ration_text_of(i == 0 ? "a" : "b"),
                                            .held = RATION_UNIT,
                                            .lent = 2 * RATION_UNIT,
                                            .borrowed = 3 * RATION_UNIT,
                                            .deficit_unit_ms = 4};
    }
    const ration_counter_report share = {.provider = "p",
                                         .limit = "shared",
                                         .kind = RATION_KIND_SHARE,
                                         .key = ration_text_of("k"),
                                         .held = RATION_UNIT,
                                         .tenants = tenants,
                                         .tenant_count = f->tenants};
    if (f->tenants > 0)
        reporter->counter(reporter->ctx, &share);
    return RATION_OK;
}

static const rn_decider_ops fake_ops = {.report = fake_report};

static void test_what_limits_stand_at(void **state)
{
    static const struct {
        const char *why;
        size_t adaptive, tenants, key_size;
        size_t want; /* rows */
        const char *row;
    } rows[] = {
        {"none", 0, 0, 1, 0, "\"limits\":[]"},
        {"an adaptive one", 1, 0, 1, 1,
         "\"limits\":[{\"provider\":\"p\",\"limit\":\"width\",\"key\":\"k\",\"kind\":\"adaptive\",\"held\":2,"
         "\"current\":7}]"},
        {"a shared one with two tenants", 0, 2, 1, 1,
         "\"kind\":\"share\",\"held\":1,\"tenants\":{\"a\":{\"held\":1,\"lent\":2,\"borrowed\":3,"
         "\"deficitUnitMs\":4},\"b\":{\"held\":1"},
        {"no more than there is room for", MANY, 0, 1, RN_HISTORY_ROWS, "\"kind\":\"adaptive\""},
        {"whole ones only", 3, 0, RN_HISTORY_ROWS_BYTES / 2, 1, "\"current\":7}]"},
        {"none that is too long by itself", 3, 2, RN_HISTORY_ROWS_BYTES, 1,
         "\"limits\":[{\"provider\":\"p\",\"limit\":\"shared"},
    };
    const rn_history_counts counts = {.outcomes = {1}};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake f = {{&fake_ops}, rows[i].adaptive, rows[i].tenants, rows[i].key_size, {0}, 0};
        rn_history *history;
        rn_output out;
        size_t at;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_history_new(2, 1, &history), RATION_OK);
        for (int k = 0; k < 5; k++)
            rn_history_add(history, (ration_time){k}, &counts, &f.base, (ration_time){40 + k});
        CHECK_EQ(f.asked_at.us, 44);
        CHECK_EQ(f.kinds, 1u << RATION_KIND_ADAPTIVE | 1u << RATION_KIND_SHARE);
        const ration_text text = written(history, &out);
        CHECK_EQ(occurrences(text, "\"provider\":"), 2 * rows[i].want);
        CHECK(rn_text_find(text, ration_text_of(rows[i].row), &at));
        rn_output_fini(&out);
        rn_history_free(history);
    }
}

static void test_more_tenants_than_are_kept(void **state)
{
    fake f = {{&fake_ops}, 0, RN_HISTORY_TENANTS + 1, 1, {0}, 0};
    const rn_history_counts counts = {.outcomes = {1}};
    rn_history *history;
    rn_output out;
    (void)state;

    CHECK_EQ(rn_history_new(1, 1, &history), RATION_OK);
    rn_history_add(history, (ration_time){1}, &counts, &f.base, (ration_time){1});
    CHECK_EQ(occurrences(written(history, &out), "\"lent\":"), RN_HISTORY_TENANTS);
    rn_output_fini(&out);
    rn_history_free(history);
}

static void test_moves(void **state)
{
    static char long_key[RN_HISTORY_KEY];
    ration_event event = {.type = RATION_EVENT_LIMIT,
                          .decision = {.limit = "width", .key = {long_key, sizeof long_key}}};
    rn_history *history;
    rn_output out;
    (void)state;

    memset(long_key, 'k', sizeof long_key);
    CHECK_EQ(rn_history_new(1, 2, &history), RATION_OK);
    CHECK_ROW("a key that is too long");
    rn_history_hear(history, &event);
    CHECK_TEXT(written(history, &out), "{\"startedAt\":5,\"samples\":[],\"moves\":[]}\n");
    rn_output_fini(&out);

    CHECK_ROW("events of another kind");
    event.decision.key = ration_text_of("k");
    event.type = RATION_EVENT_PENALTY;
    rn_history_hear(history, &event);
    event.type = RATION_EVENT_LIMIT;
    for (int64_t i = 1; i <= 3; i++) {
        event.at.us = i * 1000;
        event.before = i * RATION_UNIT;
        event.value = (i + 1) * RATION_UNIT;
        rn_history_hear(history, &event);
    }
    CHECK_TEXT(written(history, &out), "{\"startedAt\":5,\"samples\":[],\"moves\":["
                                       "{\"at\":2,\"limit\":\"width\",\"key\":\"k\",\"before\":2,\"current\":3},"
                                       "{\"at\":3,\"limit\":\"width\",\"key\":\"k\",\"before\":3,\"current\":4}]}\n");
    rn_output_fini(&out);
    rn_history_free(history);
}

static void test_the_oldest_go(void **state)
{
    const rn_history_counts counts = {.outcomes = {1}};
    rn_history *history;
    rn_output out;
    (void)state;

    CHECK_EQ(rn_history_new(RN_HISTORY_MAX, 3, &history), RATION_OK);
    for (int64_t i = 0; i <= RN_HISTORY_MAX; i++)
        rn_history_add(history, (ration_time){i * 1000000}, &counts, NULL, (ration_time){0});
    const ration_text text = written(history, &out);
    CHECK_EQ(occurrences(text, "{\"at\":"), RN_HISTORY_MAX);
    CHECK_EQ(occurrences(text, "{\"at\":0,"), 0);
    CHECK_EQ(occurrences(text, "[{\"at\":1000,"), 1);
    CHECK_EQ(occurrences(text, "{\"at\":91000,"), 1);
    rn_output_fini(&out);
    rn_history_free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sample),
        cmocka_unit_test(test_the_oldest_go),
        cmocka_unit_test(test_what_limits_stand_at),
        cmocka_unit_test(test_more_tenants_than_are_kept),
        cmocka_unit_test(test_moves),
    };

    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
