/* SPDX-License-Identifier: MIT */
/*
 * Waiting between vain tries: exponential, bounded, jittered by half.
 *
 * Half of it is certain, so that a server which is down is not asked more often than its turn; half is chance, so that
 * a thousand processes do not ask together.
 */
#include "fleet/store_backoff.h"

uint64_t rn_backoff_ms(unsigned tries, uint64_t last_ms, uint32_t random)
{
    uint64_t whole = RN_BACKOFF_FIRST_MS;

    for (unsigned i = 1; i < tries && whole < last_ms; i++)
        whole *= 2;
    if (whole > last_ms)
        whole = last_ms;

    const uint64_t half = whole / 2;

    return half + random % (half + 1);
}
