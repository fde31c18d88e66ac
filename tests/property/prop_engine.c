/* SPDX-License-Identifier: MIT */
/* What holds of an engine whatever is asked of it: support/stream.h. */
#include "support/check.h"
#include "support/property.h"
#include "support/stream.h"

static uint64_t stream_choose(void *ctx, uint64_t bound)
{
    return choose(ctx, bound);
}

static void stream_hold(void *ctx, bool holds, const char *what, int line)
{
    property_hold(ctx, holds, what, "tests/support/stream.c", line);
}

static void stream_note(void *ctx, const char *line)
{
    property_note(ctx, "%s", line);
}

static void the_engine_keeps_its_word(choices *c, void *context)
{
    const stream_driver driver = {.choose = stream_choose, .hold = stream_hold, .note = stream_note, .ctx = c};

    (void)context;
    (void)stream_play(&driver);
}

static void engine(void **state)
{
    (void)state;
    property_check("engine", the_engine_keeps_its_word, NULL, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(engine)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
