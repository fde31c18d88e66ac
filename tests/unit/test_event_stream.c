/* SPDX-License-Identifier: MIT */
/* Numbers in streams of events: of the last that has one, however the stream is cut and its lines end. */
#include "support/check.h"

#include "base/event_stream.h"

#define UNIT RATION_UNIT
#define NONE RN_PICKED_NONE
#define NUMBER RN_PICKED_NUMBER

static const ration_text steps[] = {{"u", 1}, {"t", 1}};
static const rn_pointer pointer = {"/u/t", steps, 2};

static const struct {
    const char *why;
    const char *text; /* '|' is a line's end */
    rn_picked want;
    int64_t units;
} rows[] = {
    {"nothing", "", NONE, 0},
    {"as OpenAI's", "data: {\"u\":null}||data: {\"u\":{\"t\":7}}||data: [DONE]||", NUMBER, 7},
    {"as Anthropic's",
     "event: start|data: {\"u\":{\"t\":1}}||event: ping|data: {}||event: delta|data: {\"u\":{\"t\":9}}||", NUMBER, 9},
    {"the last that has it, not the last", "data: {\"u\":{\"t\":7}}||data: {\"x\":1}||", NUMBER, 7},
    {"one that has no number there does not count", "data: {\"u\":{\"t\":7}}||data: {\"u\":{\"t\":null}}||", NUMBER, 7},
    {"one that is no JSON does not count", "data: {\"u\":{\"t\":7}}||data: {\"u\":{\"t\":8}||", NUMBER, 7},
    {"no blank behind the colon", "data:{\"u\":{\"t\":7}}||", NUMBER, 7},
    {"several blanks", "data:   {\"u\":{\"t\":7}}||", NUMBER, 7},
    {"data of several lines", "data: {\"u\":|data: {\"t\":7}|data: }||", NUMBER, 7},
    {"lines are no one line: a text cannot go on in the next", "data: {\"u\":{\"t\":7},\"x\":\"a|data: b\"}||", NONE,
     0},
    {"nor a number", "data: {\"u\":{\"t\":7|data: 7}}||", NONE, 0},
    {"a line of data without a colon is an empty one", "data: {\"u\":{\"t\":7}|data|data: }||", NUMBER, 7},
    {"comments and other fields between", "data: {\"u\":|: a comment|id: 5|retry: 10|data: {\"t\":7}}||", NUMBER, 7},
    {"a name that begins alike", "datax: {\"u\":{\"t\":7}}||dat: {\"u\":{\"t\":7}}||", NONE, 0},
    {"a name with a blank before it", " data: {\"u\":{\"t\":7}}||", NONE, 0},
    {"a name with a blank behind it", "data : {\"u\":{\"t\":7}}||", NONE, 0},
    {"another case", "Data: {\"u\":{\"t\":7}}||", NONE, 0},
    {"a comment that looks like data", ":data: {\"u\":{\"t\":7}}||", NONE, 0},
    {"two events are no one", "data: {\"u\":||data: {\"t\":7}}||", NONE, 0},
    {"blank lines before", "|||data: {\"u\":{\"t\":7}}||", NUMBER, 7},
    {"one that breaks off counts if it is whole", "data: {\"u\":{\"t\":7}}", NUMBER, 7},
    {"one that breaks off in its JSON does not", "data: {\"u\":{\"t\":7}}||data: {\"u\":{\"t\":8}", NUMBER, 7},
    {"a mark at the beginning",
     "\xEF\xBB\xBF"
     "data: {\"u\":{\"t\":7}}||",
     NUMBER, 7},
    {"a mark later",
     "|\xEF\xBB\xBF"
     "data: {\"u\":{\"t\":7}}||",
     NONE, 0},
    {"half a mark",
     "\xEF\xBB"
     "data: {\"u\":{\"t\":7}}||",
     NONE, 0},
    {"half a mark spoils its line alone", "\xEF\xBB|data: {\"u\":{\"t\":7}}||", NUMBER, 7},
};

static ration_text lines_of(const char *text, const char *end, char *out)
{
    size_t used = 0;

    for (; *text != '\0'; text++) {
        if (*text != '|') {
            out[used++] = *text;
            continue;
        }
        for (const char *c = end; *c != '\0'; c++)
            out[used++] = *c;
    }
    return (ration_text){out, used};
}

/* In two pieces at `cut`; 0: by bytes. */
static rn_picked picked(ration_text text, size_t cut, int64_t *micro)
{
    rn_event_pick events;

    rn_event_pick_init(&events, &pointer);
    for (size_t i = 0; i < text.size && cut == 0; i++)
        rn_event_pick_feed(&events, (ration_text){text.data + i, 1});
    if (cut > 0) {
        rn_event_pick_feed(&events, (ration_text){text.data, cut});
        rn_event_pick_feed(&events, (ration_text){text.data + cut, text.size - cut});
    }
    return rn_event_pick_end(&events, micro);
}

static void each_stream_has_its_number(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    char buffer[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        for (size_t k = 0; k < 3; k++) {
            const ration_text text = lines_of(rows[i].text, ends[k], buffer);

            for (size_t cut = 0; cut <= text.size; cut++) {
                int64_t micro = -1;

                CHECK_EQ(picked(text, cut, &micro), rows[i].want);
                CHECK_EQ(micro, rows[i].want == NUMBER ? rows[i].units * UNIT : -1);
            }
        }
    }
}

/* A number may be asked for at any time, and the stream goes on. */
static void asking_changes_nothing(void **state)
{
    rn_event_pick events;
    int64_t micro = 0;

    (void)state;
    rn_event_pick_init(&events, &pointer);
    rn_event_pick_feed(&events, ration_text_of("data: {\"u\":{\"t\":7}}\n\ndata: {\"u\":{\"t\":1"));
    CHECK_EQ(rn_event_pick_end(&events, &micro), NUMBER);
    CHECK_EQ(micro, 7 * UNIT);
    rn_event_pick_feed(&events, ration_text_of("2}}\n\n"));
    CHECK_EQ(rn_event_pick_end(&events, &micro), NUMBER);
    CHECK_EQ(micro, 12 * UNIT);
}

static void a_number_that_is_too_large_is_told(void **state)
{
    rn_event_pick events;
    int64_t micro = -1;

    (void)state;
    rn_event_pick_init(&events, &pointer);
    rn_event_pick_feed(&events, ration_text_of("data: {\"u\":{\"t\":7}}\n\ndata: {\"u\":{\"t\":1e30}}\n\n"));
    CHECK_EQ(rn_event_pick_end(&events, &micro), RN_PICKED_LARGE);
    CHECK_EQ(micro, -1);
}

/* What is whole to the end of a stream, and what may have gone on where one breaks off. */
static void what_breaks_off_amid_a_number_has_none(void **state)
{
    static const rn_pointer whole_text = {"", NULL, 0};
    static const struct {
        const char *text;
        const rn_pointer *pointer;
        rn_picked ends, seen;
        int64_t units; /* where it breaks off */
    } rows_cut[] = {
        {"data: {\"u\":{\"t\":7}}", &pointer, NUMBER, NUMBER, 7},
        {"data: {\"u\":{\"t\":7}", &pointer, NONE, NONE, 0},
        {"data: {\"u\":{\"t\":7}}\n\ndata: {\"u\":{\"t\":1", &pointer, NUMBER, NUMBER, 7},
        {"data: 12", &whole_text, NUMBER, NONE, 0},
        {"data: 12\n", &whole_text, NUMBER, NUMBER, 12},
        {"data: 7\n\ndata: 12", &whole_text, NUMBER, NUMBER, 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows_cut / sizeof rows_cut[0]; i++) {
        rn_event_pick events;
        int64_t micro = 0, at_end = 0;

        CHECK_ROW(rows_cut[i].text);
        rn_event_pick_init(&events, rows_cut[i].pointer);
        rn_event_pick_feed(&events, ration_text_of(rows_cut[i].text));
        CHECK_EQ(rn_event_pick_end(&events, &at_end), rows_cut[i].ends);
        CHECK_EQ(rn_event_pick_seen(&events, &micro), rows_cut[i].seen);
        CHECK_EQ(micro, rows_cut[i].units * UNIT);
    }
    CHECK_ROW(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stream_has_its_number),
        cmocka_unit_test(asking_changes_nothing),
        cmocka_unit_test(a_number_that_is_too_large_is_told),
        cmocka_unit_test(what_breaks_off_amid_a_number_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
