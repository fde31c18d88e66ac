/* SPDX-License-Identifier: MIT */
/*
 * The hash of 200 random streams through the engine, printed for comparison between compilers: see same_hash.sh.
 */
#include "support/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t splitmix(void *ctx, uint64_t bound)
{
    uint64_t *state = ctx;
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return bound == UINT64_MAX ? z : z % (bound + 1);
}

static void insist(void *ctx, bool holds, const char *what, int line)
{
    (void)ctx;
    if (holds)
        return;
    (void)fprintf(stderr, "tests/support/stream.c:%d: does not hold: %s\n", line, what);
    exit(EXIT_FAILURE);
}

int main(void)
{
    uint64_t hash = 0;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t state = seed;
        const stream_driver driver = {.choose = splitmix, .hold = insist, .ctx = &state};

        hash = hash * 31 + stream_play(&driver);
    }
    (void)printf("%016" PRIx64 "\n", hash);
    return EXIT_SUCCESS;
}
