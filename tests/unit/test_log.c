/* SPDX-License-Identifier: MIT */
/* Lines for the operator: their form, and how a flood of them is held back. */
#include <fcntl.h>
#include <unistd.h>

#include "serve/log.h"

#include "support/check.h"

typedef struct capture {
    int ends[2];
    rn_log log;
    char text[4096];
} capture;

static void capture_open(capture *c)
{
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
    const rn_log log = {-1};
    rn_log_gate gate = {.more = 0};
    (void)state;

    rn_log_line(&log, ration_time_of(0), "info", "x", NULL);
    rn_log_gated(&log, &gate, ration_time_of(5000000), "info", "x", NULL);
    CHECK_EQ(gate.second, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_no_descriptor),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
