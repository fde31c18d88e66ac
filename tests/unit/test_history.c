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
        "\"outcomes\":{\"success\":4,\"throttled\":0,\"failure\":0,\"cancelled\":1}}]}\n";
    rn_history_counts counts = {.refusals = {[RATION_REASON_DEADLINE] = 3},
                                .outcomes = {[RATION_OUTCOME_SUCCESS] = 4, [RATION_OUTCOME_CANCELLED] = 1}};
    rn_history *history;
    rn_output out;
    (void)state;

    rn_histogram_add(&counts.waits[RATION_PRIORITY_HIGH], 1000);
    rn_histogram_add(&counts.waits[RATION_PRIORITY_HIGH], 60000001);
    rn_histogram_add(&counts.waits[RATION_PRIORITY_HIGH], 90000000);
    CHECK_EQ(rn_history_new(&history), RATION_OK);
    CHECK_ROW("none yet");
    CHECK_TEXT(written(history, &out), "{\"startedAt\":5,\"samples\":[]}\n");
    rn_output_fini(&out);

    CHECK_ROW("one");
    rn_history_add(history, (ration_time){7000}, &counts);
    CHECK_TEXT(written(history, &out), want);
    rn_output_fini(&out);
    rn_history_free(history);
}

static void test_the_oldest_go(void **state)
{
    const rn_history_counts counts = {.outcomes = {1}};
    rn_history *history;
    rn_output out;
    (void)state;

    CHECK_EQ(rn_history_new(&history), RATION_OK);
    for (int64_t i = 0; i <= RN_HISTORY_MAX; i++)
        rn_history_add(history, (ration_time){i * 1000000}, &counts);
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
    };

    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
