/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

/*
 * Checks for unit tests, on top of cmocka: each evaluates its arguments once and prints both values.
 *
 * A test that walks a table says `CHECK_ROW(rows[i].why)` first; a failure then names the row.
 */

#include <ration/types.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHECK_ROW(why) (*check_row() = (why))
#define CHECK(condition) check_true((condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(got, want) check_eq((int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)
#define CHECK_STR(got, want) check_str((got), (want), #got, __FILE__, __LINE__)
#define CHECK_TEXT(got, want) check_text((got), (want), #got, __FILE__, __LINE__)

/** The row that the test of this file is at. */
static inline const char **check_row(void)
{
    static const char *row;

    return &row;
}

static inline _Noreturn void check_fail(const char *file, int line)
{
    if (*check_row() != NULL)
        print_error("row: %s\n", *check_row());
    *check_row() = NULL;
    _fail(file, line);
    abort(); /* cmocka has jumped away; its header does not say so */
}

static inline void check_true(bool holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    print_error("does not hold: %s\n", what);
    check_fail(file, line);
}

static inline void check_eq(int64_t got, int64_t want, const char *what, const char *file, int line)
{
    if (got == want)
        return;
    print_error("%s is %" PRId64 ", want %" PRId64 "\n", what, got, want);
    check_fail(file, line);
}

/** Texts that may be NULL; NULL equals only NULL. */
static inline void check_str(const char *got, const char *want, const char *what, const char *file, int line)
{
    if (got == want || (got != NULL && want != NULL && strcmp(got, want) == 0))
        return;
    print_error("%s is \"%s\", want \"%s\"\n", what, got != NULL ? got : "(null)", want != NULL ? want : "(null)");
    check_fail(file, line);
}

/** `want` NULL: the text is absent. */
static inline void check_text(ration_text got, const char *want, const char *what, const char *file, int line)
{
    const size_t size = want != NULL ? strlen(want) : 0;

    if ((got.data == NULL) == (want == NULL) && got.size == size && (size == 0 || memcmp(got.data, want, size) == 0))
        return;
    print_error("%s is \"%.*s\", want \"%s\"\n", what, got.data != NULL ? (int)got.size : 6,
                got.data != NULL ? got.data : "(null)", want != NULL ? want : "(null)");
    check_fail(file, line);
}

#endif
