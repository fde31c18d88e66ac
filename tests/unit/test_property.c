/* SPDX-License-Identifier: MIT */
/*
 * The property runner itself: it finds what breaks, makes it simple, and says the same for the same seed.
 *
 * The runner prints what it found, which would look like a failure in the log of a test that passed: so stderr is
 * caught in a file, and the tests read it.
 */

#include "support/check.h"
#include "support/property.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char told[4096];

/* Runs the property with stderr caught in `told`. */
static bool run_quietly(property_fn *property, void *context, uint64_t runs)
{
    FILE *file = tmpfile();
    const int saved = dup(STDERR_FILENO);

    CHECK(file != NULL && saved >= 0);
    CHECK(dup2(fileno(file), STDERR_FILENO) >= 0);

    const bool holds = property_run("p", property, context, runs);

    (void)fflush(stderr);
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    rewind(file);
    told[fread(told, 1, sizeof told - 1, file)] = '\0';
    (void)fclose(file);
    return holds;
}

static void always_holds(choices *c, void *context)
{
    uint64_t *runs = context;

    HOLDS(c, choose(c, 9) <= 9);
    HOLDS(c, choose(c, UINT64_MAX) <= UINT64_MAX);
    HOLDS(c, choose_wide(c, 1000) <= 1000);

    const int64_t drawn = choose_from(c, -5, 5);

    HOLDS(c, drawn >= -5 && drawn <= 5);
    ++*runs;
}

/* Breaks as soon as two of the numbers drawn are 100 or more. */
static void few_large_numbers(choices *c, void *context)
{
    int large = 0;

    (void)context;
    while (choose(c, 20) != 0) {
        const uint64_t n = choose(c, 1000);

        NOTE(c, "n %d", (int)n);
        large += n >= 100;
        HOLDS(c, large < 2);
    }
}

static void holding_property_runs_every_seed(void **state)
{
    uint64_t runs = 0;

    (void)state;
    CHECK(run_quietly(always_holds, &runs, 300));
    CHECK_EQ(runs, 300);
    CHECK_STR(told, "");
}

static void broken_property_shrinks(void **state)
{
    (void)state;
    CHECK(!run_quietly(few_large_numbers, NULL, 300));
    CHECK(strstr(told, "of 4 choices:\n  n 100\n  n 100\n") != NULL);
    CHECK(strstr(told, "does not hold: large < 2\n") != NULL);
    CHECK(strstr(told, "replay: ") != NULL);
}

static void reported_seed_replays(void **state)
{
    char first[sizeof told];

    (void)state;
    CHECK(!run_quietly(few_large_numbers, NULL, 300));
    memcpy(first, told, sizeof first);

    const char *replay = strstr(told, "replay: ");

    CHECK(replay != NULL);
    CHECK_EQ(setenv("PROPERTY_SEED", replay + strlen("replay: "), 1), 0);
    CHECK(!run_quietly(few_large_numbers, NULL, 1));
    CHECK_EQ(unsetenv("PROPERTY_SEED"), 0);
    CHECK_STR(told, first);
}

static void bytes_are_choices(void **state)
{
    static const uint8_t bytes[] = {1, 0, 50, 1, 0, 60, 0};

    (void)state;
    property_fuzz(few_large_numbers, NULL, bytes, sizeof bytes);
    property_fuzz(few_large_numbers, NULL, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holding_property_runs_every_seed),
        cmocka_unit_test(broken_property_shrinks),
        cmocka_unit_test(reported_seed_replays),
        cmocka_unit_test(bytes_are_choices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
