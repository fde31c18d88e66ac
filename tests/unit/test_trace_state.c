/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "trace/reader.h"
#include "trace/state.h"
#include "trace/writer.h"

/* Each record as it must come out again, to the byte. */
static const char *const records[] = {
    "{\"type\":\"quota\",\"provider\":\"p\",\"limit\":\"daily\",\"key\":\"x=1\",\"at\":3599000.001,\"used\":0}",
    "{\"type\":\"quota\",\"provider\":\"p\",\"limit\":\"daily\",\"key\":\"x=1\",\"at\":-5,\"windowStart\":-10,"
    "\"windowEnd\":86400000,\"offset\":-3.5,\"used\":9.000001,\"carried\":1,\"inFlight\":2.5,\"remaining\":-4,"
    "\"remainingUntil\":7,\"max\":12,\"external\":1,\"exhausted\":true,\"exhaustedUntil\":8,\"dippedAt\":0,"
    "\"movedAt\":-1,\"parts\":[[-7,1],[-6.5,8]]}",
    "{\"type\":\"quota\",\"provider\":\"p\",\"limit\":\"daily\",\"key\":\"x=1\",\"at\":5,\"used\":1,\"mark\":0,"
    "\"timeline\":[[-60000.001,0.5],[4,2]]}",
    "{\"type\":\"quota\",\"provider\":\"p\",\"limit\":\"daily\",\"key\":\"x=1\",\"at\":5,\"used\":1,\"mark\":2.5,"
    "\"parts\":[[3,1]],\"timeline\":[[4,2]]}",
    "{\"type\":\"bucket\",\"provider\":\"p\",\"limit\":\"rate\",\"key\":\"\",\"at\":0,\"available\":-0.5}",
    "{\"type\":\"adaptive\",\"provider\":\"p\",\"limit\":\"l\",\"key\":\"acc\",\"at\":1,\"current\":7,\"grownAt\":0}",
    "{\"type\":\"adaptive\",\"provider\":\"p\",\"limit\":\"l\",\"key\":\"acc\",\"at\":1,\"current\":7,\"grownAt\":1,"
    "\"throttledAt\":0,\"decreasedAt\":-1,\"stride\":4,\"climbTo\":9}",
    "{\"type\":\"penalty\",\"provider\":\"p\",\"limit\":\"l\",\"key\":\"acc\",\"at\":1,\"began\":0,\"until\":2000,"
    "\"doublings\":4294967295,\"events\":3}",
    "{\"type\":\"penalty\",\"provider\":\"p\",\"key\":\"acc\",\"at\":1,\"began\":0,\"until\":2000}",
    "{\"type\":\"breaker\",\"provider\":\"p\",\"key\":\"acc\",\"at\":1,\"state\":\"half-open\",\"generation\":3}",
    "{\"type\":\"breaker\",\"provider\":\"p\",\"key\":\"acc\",\"at\":1,\"state\":\"open\",\"generation\":3,"
    "\"retryAt\":2.125,\"delay\":1000}",
};

static const char *const openings[] = {"\"unclean\":true,", "", "\"uncleanAt\":-4.5,",
                                       "\"unclean\":true,\"uncleanAt\":2,"};

static void every_member_comes_out_as_it_went_in(void **state)
{
    rn_trace_reader reader;
    rn_output out;

    (void)state;
    rn_trace_reader_init(&reader, rn_mem_default());
    rn_output_init(&out, rn_mem_default(), 1 << 20);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        char line[1024];
        rn_trace_line read;
        rn_trace_fault fault = {0};

        CHECK_ROW(records[i]);
        snprintf(line, sizeof line, "{\"at\":5,\"op\":\"state\",%s\"records\":[%s]}", openings[i % 4], records[i]);
        CHECK_EQ(rn_trace_read(&reader, ration_text_of(line), &read, &fault), RATION_OK);
        CHECK_STR(fault.text, "");
        CHECK_EQ(read.op, RN_TRACE_STATE);
        CHECK_EQ(read.state.count, 1);
        CHECK_EQ(read.state.unclean, i % 4 == 0 || i % 4 == 3);
        CHECK_EQ(read.state.unclean_at.us, i % 4 == 2 ? -4500 : i % 4 == 3 ? 2000 : 0);
        rn_output_clear(&out);
        rn_trace_write_state(&out, read.at, &read.state);
        CHECK_EQ(out.err, RATION_OK);
        out.data[out.size - 1] = '\0'; /* instead of the line's end */
        CHECK_STR(out.data, line);
    }
    CHECK_ROW(NULL);
    rn_output_fini(&out);
    rn_trace_reader_fini(&reader);
}

#define PENALTY(MORE) "{\"type\":\"penalty\",\"provider\":\"p\",\"key\":\"a\",\"at\":1,\"began\":0,\"until\":2" MORE "}"

static void faults_name_the_member(void **state)
{
    static const struct {
        const char *why;
        const char *records;
        const char *fault;
    } rows[] = {
        {"no list", "7", "\"records\" must be an array"},
        {"no record", "[7]", "a record is an object"},
        {"no type", "[{\"provider\":\"p\"}]", "begins with its type"},
        {"empty", "[{}]", "begins with its type"},
        {"another type", "[{\"type\":\"lease\"}]",
         "\"type\" must be quota, bucket, adaptive, penalty, breaker or pause"},
        {"a number for a type", "[{\"type\":1}]",
         "\"type\" must be quota, bucket, adaptive, penalty, breaker or pause"},
        {"nothing missing", "[" PENALTY("") "]", NULL},
        {"missing", "[{\"type\":\"penalty\",\"provider\":\"p\",\"key\":\"a\",\"at\":1,\"began\":0}]",
         "\"until\" is missing"},
        {"of another type", "[" PENALTY(",\"used\":1") "]", "\"used\" is no member of such a record"},
        {"twice", "[" PENALTY(",\"key\":\"b\"") "]", "\"key\" is there twice"},
        {"in quotes", "[" PENALTY(",\"events\":\"1\"") "]", "\"events\" must be a number"},
        {"negative", "[" PENALTY(",\"events\":-1") "]", "\"events\" is out of range"},
        {"a fraction", "[" PENALTY(",\"events\":1.5") "]", "\"events\" has too many places, or is too large"},
        {"more than 32 bits", "[" PENALTY(",\"events\":4294967296") "]", "\"events\" is out of range"},
        {"huge", "[" PENALTY(",\"doublings\":1e30") "]", "\"doublings\" has too many places, or is too large"},
        {"NaN", "[" PENALTY(",\"doublings\":NaN") "]", "not a value"},
        {"a limit that is a number", "[" PENALTY(",\"limit\":1") "]", "\"limit\" must be a text"},
        {"a state of its own",
         "[{\"type\":\"breaker\",\"provider\":\"p\",\"key\":\"a\",\"at\":1,\"generation\":1,\"state\":\"ajar\"}]",
         "\"state\" must be closed, open or half-open"},
        {"parts of no pairs", "[{\"type\":\"quota\",\"parts\":[1]}]", "\"parts\" must be an array of pairs"},
        {"half a pair", "[{\"type\":\"quota\",\"parts\":[[1]]}]", "\"parts\" must be pairs of an instant and units"},
        {"three of a pair", "[{\"type\":\"quota\",\"parts\":[[1,2,3]]}]",
         "\"parts\" must be pairs of an instant and units"},
        {"no parts", "[{\"type\":\"quota\",\"parts\":7}]", "\"parts\" must be an array of pairs"},
        {"not quite true", "[{\"type\":\"quota\",\"exhausted\":false}]", "\"exhausted\" must be true, or absent"},
    };
    rn_trace_reader reader;

    (void)state;
    rn_trace_reader_init(&reader, rn_mem_default());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[512];
        rn_trace_line read;
        rn_trace_fault fault = {0};

        CHECK_ROW(rows[i].why);
        snprintf(line, sizeof line, "{\"at\":5,\"op\":\"state\",\"records\":%s}", rows[i].records);
        CHECK_EQ(rn_trace_read(&reader, ration_text_of(line), &read, &fault),
                 rows[i].fault == NULL ? RATION_OK : RATION_ERR_SYNTAX);
        CHECK_STR(fault.text, rows[i].fault == NULL ? "" : rows[i].fault);
    }
    CHECK_ROW(NULL);
    rn_trace_reader_fini(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_comes_out_as_it_went_in),
        cmocka_unit_test(faults_name_the_member),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
