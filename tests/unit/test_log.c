/* SPDX-License-Identifier: MIT */
/* Lines for the operator: their form, and how a flood of them is held back. */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/text.h"
#include "serve/log.h"
#include "trace/json.h"

#include "support/check.h"
#include "support/property.h"

typedef struct capture {
    int ends[2];
    rn_log log;
    char text[4096];
} capture;

static void capture_open(capture *c)
{
    c->log = (rn_log){.format = RN_LOG_LOGFMT};
    CHECK_EQ(pipe(c->ends), 0);
    CHECK_EQ(fcntl(c->ends[0], F_SETFL, O_NONBLOCK), 0);
    c->log.descriptor = c->ends[1];
}

/* What was written since the last call. */
static const char *captured(capture *c)
{
    const ssize_t size = read(c->ends[0], c->text, sizeof c->text - 1);

    c->text[size > 0 ? size : 0] = '\0';
    return c->text;
}

static void capture_close(capture *c)
{
    (void)close(c->ends[0]);
    (void)close(c->ends[1]);
}

static void test_form(void **state)
{
    capture c;
    (void)state;

    capture_open(&c);
    rn_log_line(&c.log, ration_time_of(0), "info", "listening", "plain", "a/b", "left", NULL, "said", "a \"b\"", NULL);
    CHECK_STR(captured(&c), "time=1970-01-01T00:00:00Z level=info msg=listening plain=a/b said=\"a \\\"b\\\"\"\n");
    rn_log_line(&c.log, ration_time_of(0), "warn", "two words", "empty", "", "line", "a\nb", NULL);
    CHECK_STR(captured(&c), "time=1970-01-01T00:00:00Z level=warn msg=\"two words\" empty=\"\" line=\"a b\"\n");
    capture_close(&c);
}

/* One value in both forms. */
static const struct {
    const char *why, *value, *logfmt, *json;
} values[] = {
    {"a word", "a/b", "a/b", "\"a/b\""},
    {"nothing", "", "\"\"", "\"\""},
    {"a space", "a b", "\"a b\"", "\"a b\""},
    {"quotes and backslashes", "\"\\", "\"\\\"\\\\\"", "\"\\\"\\\\\""},
    {"an equals sign", "a=b", "\"a=b\"", "\"a=b\""},
    {"a line of its own", "a\nlevel=error", "\"a level=error\"", "\"a\\u000alevel=error\""},
    {"what a terminal obeys", "\033[2J", "\" [2J\"", "\"\\u001b[2J\""},
    {"delete", "\177", "\" \"", "\"\\u007f\""},
    {"the same in Latin-1's controls", "\302\233x", "\" x\"", "\"\\u009bx\""},
    {"the first letter after them", "\302\240", "\"\302\240\"", "\"\302\240\""},
    {"letters of others", "\303\251", "\"\303\251\"", "\"\303\251\""},
    {"no UTF-8", "a\377b", "\"a\357\277\275b\"", "\"a\357\277\275b\""},
    {"a character cut off", "\342\202", "\"\357\277\275\357\277\275\"", "\"\357\277\275\357\277\275\""},
};

static void test_values(void **state)
{
    char want[256];
    rn_builder b;
    capture c;
    (void)state;

    capture_open(&c);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        CHECK_ROW(values[i].why);
        c.log.format = RN_LOG_LOGFMT;
        rn_log_line(&c.log, ration_time_of(0), "info", "x", "v", values[i].value, "n", "1", NULL);
        rn_builder_init(&b, want, sizeof want);
        rn_builder_str(&b, "time=1970-01-01T00:00:00Z level=info msg=x v=");
        rn_builder_str(&b, values[i].logfmt);
        rn_builder_str(&b, " n=1\n");
        CHECK_STR(captured(&c), want);
        c.log.format = RN_LOG_JSON;
        rn_log_line(&c.log, ration_time_of(0), "info", "x", "v", values[i].value, "n", "1", NULL);
        rn_builder_init(&b, want, sizeof want);
        rn_builder_str(&b, "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"msg\":\"x\",\"v\":");
        rn_builder_str(&b, values[i].json);
        rn_builder_str(&b, ",\"n\":\"1\"}\n");
        CHECK_STR(captured(&c), want);
    }
    capture_close(&c);
}

/* What is written is one line, valid, and says of itself if something is missing. */
typedef struct seen {
    char time[64], left_out[64];
    bool cut;
    size_t members, size;
} seen;

static void json_look(choices *choice, ration_text line, seen *out)
{
    rn_json json;
    rn_json_value name, value;

    rn_json_init(&json, line);
    HOLDS(choice, rn_json_enter(&json, RN_JSON_OBJECT));
    *out = (seen){.size = line.size};
    while (rn_json_member(&json, &name, &value)) {
        out->members++;
        out->cut = out->cut || (rn_text_is(name.raw, "cut") && value.type == RN_JSON_TRUE);
        if (rn_text_is(name.raw, "left_out"))
            (void)memcpy(out->left_out, value.raw.data, value.raw.size);
        if (rn_text_is(name.raw, "time"))
            (void)memcpy(out->time, value.raw.data, value.raw.size);
    }
    HOLDS(choice, rn_json_end(&json));
}

static void bytes_draw(choices *choice, char *out, size_t most)
{
    static const char hard[] = "\"\\\n\r\t\033\177\302\233\342\202\254\360\237\230\200\355\240\200\377 =a{}";
    const size_t size = choose_wide(choice, most);

    for (size_t i = 0; i < size; i++) {
        const char any[] = {(char)choose_from(choice, CHAR_MIN, -1), (char)choose_from(choice, 1, CHAR_MAX)};
        const uint64_t which = choose(choice, 3);

        out[i] = any[which & 1];
        if (which > 1)
            out[i] = hard[choose(choice, sizeof hard - 2)];
    }
    out[size] = '\0';
}

static void any_bytes(choices *choice, void *context)
{
    static char texts[3][3000];
    rn_log_gate gate = {.second = 0, .left_out = choose_wide(choice, UINT64_MAX)};
    capture *c = context;
    seen line;

    for (size_t i = 0; i < 3; i++)
        bytes_draw(choice, texts[i], sizeof texts[i] - 1);
    c->log.format = choose(choice, 2) == 0 ? RN_LOG_LOGFMT : RN_LOG_JSON;
    rn_log_gated(&c->log, &gate, ration_time_of(INT64_C(1700000000123456)), "warn", texts[0], "account", texts[1],
                 "detail", texts[2], NULL);
    const char *text = captured(c);
    const size_t size = strlen(text);

    HOLDS(choice, size > 0 && size <= 2048 && strchr(text, '\n') == text + size - 1);
    HOLDS(choice, rn_text_is_utf8((ration_text){text, size}));
    for (size_t i = 0; i + 1 < size; i++)
        HOLDS(choice, (unsigned char)text[i] >= ' ' && text[i] != 0x7F);
    if (c->log.format == RN_LOG_LOGFMT) {
        HOLDS(choice, strncmp(text, "time=2023-11-14T22:13:20.123456Z level=warn msg=", 48) == 0);
        HOLDS(choice, (strstr(text, " left_out=") != NULL) || gate.left_out == 0);
        return;
    }
    json_look(choice, (ration_text){text, size}, &line);
    HOLDS(choice, strcmp(line.time, "2023-11-14T22:13:20.123456Z") == 0);
    HOLDS(choice, line.cut || line.members == 5 + (line.left_out[0] != '\0'));
    HOLDS(choice, line.cut == false || line.size > 1900);
}

static void test_any_bytes(void **state)
{
    capture c;
    (void)state;

    capture_open(&c);
    property_check("a line is valid whatever its values are", any_bytes, &c, 3000);
    capture_close(&c);
}

static void test_cut(void **state)
{
    static char value[3000];
    capture c;
    (void)state;

    memset(value, 'x', sizeof value - 1);
    capture_open(&c);
    for (int format = RN_LOG_LOGFMT; format <= RN_LOG_JSON; format++) {
        c.log.format = (rn_log_format)format;
        rn_log_line(&c.log, ration_time_of(0), "info", "x", "v", value, "never", "there", NULL);
        const char *line = captured(&c);
        CHECK(strstr(line, "xxxx") != NULL && strstr(line, "never") == NULL);
        CHECK_STR(line + strlen(line) - 14, format == RN_LOG_JSON ? "\",\"cut\":true}\n" : "xxx\" cut=true\n");
    }
    capture_close(&c);
}

static void test_levels(void **state)
{
    static const struct {
        const char *why;
        rn_log_level level;
        const char *of;
        bool written;
    } rows[] = {
        {"all", RN_LOG_INFO, "info", true},
        {"warnings", RN_LOG_WARN, "warn", true},
        {"not what is less", RN_LOG_WARN, "info", false},
        {"but what is more", RN_LOG_WARN, "error", true},
        {"errors alone", RN_LOG_ERROR, "warn", false},
        {"errors", RN_LOG_ERROR, "error", true},
    };
    capture c;
    (void)state;

    capture_open(&c);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_log_gate gate = {.more = 0};

        CHECK_ROW(rows[i].why);
        c.log.level = rows[i].level;
        rn_log_line(&c.log, ration_time_of(0), rows[i].of, "x", NULL);
        CHECK_EQ(captured(&c)[0] != '\0', rows[i].written);
        rn_log_gated(&c.log, &gate, ration_time_of(1000000), rows[i].of, "x", NULL);
        CHECK_EQ(captured(&c)[0] != '\0', rows[i].written);
    }
    capture_close(&c);
}

static void test_gates(void **state)
{
    static const struct {
        const char *why;
        uint32_t more;
        int64_t at_us;
        const char *want; /* NULL: nothing is written */
    } rows[] = {
        {"the first of a second", 0, 1000000, "left_out=none"},
        {"the second of it is left out", 0, 1999999, NULL},
        {"and the third", 0, 1999999, NULL},
        {"the next second tells how many", 0, 2000000, "left_out=2"},
        {"and counts anew", 0, 3000000, "left_out=none"},
        {"where more may pass", 2, 4000000, "left_out=none"},
        {"one more", 2, 4000001, "left_out=none"},
        {"two more", 2, 4000002, "left_out=none"},
        {"but not three", 2, 4000003, NULL},
        {"nor later in that second", 2, 4999999, NULL},
        {"the next second has room again", 2, 5000000, "left_out=2"},
        {"for more", 2, 5000000, "left_out=none"},
    };
    rn_log_gate gate = {.more = 0};
    capture c;
    (void)state;

    capture_open(&c);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        gate.more = rows[i].more;
        rn_log_gated(&c.log, &gate, ration_time_of(rows[i].at_us), "warn", "x", NULL);
        const char *line = captured(&c);
        if (rows[i].want == NULL) {
            CHECK_STR(line, "");
        } else {
            const char *told = strstr(line, "left_out=");
            CHECK(strstr(line, "msg=x") != NULL);
            CHECK(strncmp(told != NULL ? told : "left_out=none", rows[i].want, strlen(rows[i].want)) == 0);
        }
    }
    capture_close(&c);
}

static void test_no_descriptor(void **state)
{
    const rn_log log = {.descriptor = -1};
    rn_log_gate gate = {.more = 0};
    (void)state;

    rn_log_line(&log, ration_time_of(0), "info", "x", NULL);
    rn_log_gated(&log, &gate, ration_time_of(5000000), "info", "x", NULL);
    CHECK_EQ(gate.second, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),          cmocka_unit_test(test_values), cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_cut),           cmocka_unit_test(test_levels), cmocka_unit_test(test_gates),
        cmocka_unit_test(test_no_descriptor),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
