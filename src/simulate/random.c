/* SPDX-License-Identifier: MIT */
/*
 * A hash in place of a generator.
 *
 * A generator's answers depend on how often it was asked before, so that one more draw anywhere shifts all that
 * follow. Here each draw is a function of its name alone (seed, stream, index): the third call's latency is the same
 * whether or not the second had an error. The mixer is the finalizer of MurmurHash3 with the constants of David
 * Stafford's "Mix13", which is also what splitmix64 uses.
 */
#include "simulate/random.h"

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t rn_random(uint64_t seed, rn_stream stream, uint64_t index)
{
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);

    return mix(mix(mix(seed + step) + step * (uint64_t)stream) + step * (index + 1));
}

int64_t rn_random_between(uint64_t seed, rn_stream stream, uint64_t index, int64_t low, int64_t high)
{
    const uint64_t count = (uint64_t)(high - low) + 1;

    return low + (int64_t)(rn_random(seed, stream, index) % count);
}
