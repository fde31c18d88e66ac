/* SPDX-License-Identifier: MIT */
/*
 * Recorded lines against those that come out: equal ones in any interleaving, and the first that differs, whichever
 * it is.
 */
#include "support/check.h"
#include "support/failalloc.h"

#include <stdio.h>

#include "base/mem.h"
#include "trace/verify.h"

/* Lines of one letter; upper case: the same, written otherwise. */
static const struct {
    const char *why;
    const char *steps;    /* 'r' + letter: recorded, 'p' + letter: produced */
    size_t line;          /* of the difference; 0: none */
    const char *recorded; /* NULL: that side has none */
    const char *produced;
    size_t matched;
} rows[] = {
    {"nothing at all", "", 0, NULL, NULL, 0},
    {"as they come", "parapbrb", 0, NULL, NULL, 2},
    {"recorded first", "rarbrcpapbpc", 0, NULL, NULL, 3},
    {"recorded last", "papbpcrarbrc", 0, NULL, NULL, 3},
    {"the same in other words", "parApBrb", 0, NULL, NULL, 2},
    {"one that differs", "parapbrcpdrd", 4, "{\"x\":\"c\",\"y\":1}", "{\"x\":\"b\",\"y\":1}", 1},
    {"one recorded too many", "pararb", 3, "{\"x\":\"b\",\"y\":1}", NULL, 1},
    {"one recorded too few", "parapb", 3, NULL, "{\"x\":\"b\",\"y\":1}", 1},
    {"nothing recorded", "pa", 1, NULL, "{\"x\":\"a\",\"y\":1}", 0},
    {"recorded, but nothing comes out", "ra", 1, "{\"x\":\"a\",\"y\":1}", NULL, 0},
};

static ration_text line_of(char letter, char *buffer, size_t size)
{
    const bool other = letter >= 'A' && letter <= 'Z';
    const int length = snprintf(
        buffer, size, other ? "{ \"y\": 1.0, \"explanation\": \"so\", \"x\": \"%c\" }" : "{\"x\":\"%c\",\"y\":1}",
        other ? letter - 'A' + 'a' : letter);

    return (ration_text){buffer, (size_t)length};
}

static int run(rn_verify *verify, const char *steps)
{
    char buffer[80];
    int err = RATION_OK;

    for (size_t i = 0; steps[i] != '\0' && err == RATION_OK; i += 2) {
        const ration_text line = line_of(steps[i + 1], buffer, sizeof buffer);

        err =
            steps[i] == 'r' ? rn_verify_recorded(verify, i / 2 + 1, line) : rn_verify_produced(verify, i / 2 + 1, line);
    }
    if (err == RATION_OK)
        rn_verify_end(verify);
    return err;
}

static void the_first_difference_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_verify verify;

        CHECK_ROW(rows[i].why);
        rn_verify_init(&verify, rn_mem_default());
        CHECK_EQ(run(&verify, rows[i].steps), RATION_OK);
        CHECK_EQ(verify.differs, rows[i].line > 0);
        CHECK_EQ(verify.matched, rows[i].matched);
        CHECK_EQ(verify.difference.line, rows[i].line);
        CHECK_TEXT(verify.difference.recorded, rows[i].recorded);
        CHECK_TEXT(verify.difference.produced, rows[i].produced);
        rn_verify_fini(&verify);
    }
}

static void memory_that_is_missing_is_an_error(void **state)
{
    failalloc fail = {.failed = true};

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        rn_verify verify;

        failalloc_init(&fail, i);
        rn_verify_init(&verify, &fail.allocator);

        const int err = run(&verify, "papbrArB");

        CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
        rn_verify_fini(&verify);
        CHECK_EQ(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_difference_is_told),
        cmocka_unit_test(memory_that_is_missing_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
