/* SPDX-License-Identifier: MIT */

/*
 * The last results of a breaker, by number or by age.
 *
 * `count` keeps one bit a result, so that the last hundred are two words. `sampling` is exact: it keeps every instant
 * at which there were results, with how many, and lets go of those that are `duration` old. It grows by doubling up to
 * a bound; at the bound, and without memory, the two oldest instants become one, the later: then a few results stay in
 * somewhat too long, but none is lost before its time.
 *
 * Invariants: `calls` and `failed` are sums over what is in; the instants of the ring increase; capacity is a power of
 * two, at least 2, and count at most capacity.
 */
#include "core/breaker_ring.h"

#include <string.h>

#include "base/mem.h"
#include "base/units.h"

#define ENTRIES_FIRST 8
#define WORD_BITS 64

static size_t words_of(const rn_breaker *b)
{
    return ((size_t)b->spec->rule.size + WORD_BITS - 1) / WORD_BITS;
}

int rn_breaker_ring_init(rn_breaker *b)
{
    switch (b->spec->rule.strategy) {
    case RATION_BREAKER_NONE:
    case RATION_BREAKER_CONSECUTIVE:
        return RATION_OK;
    case RATION_BREAKER_COUNT:
        b->results = rn_mem_zalloc(b->mem, words_of(b), sizeof *b->results);
        return b->results != NULL ? RATION_OK : RATION_ERR_NOMEM;
    case RATION_BREAKER_SAMPLING:
        b->ring = rn_mem_zalloc(b->mem, ENTRIES_FIRST, sizeof *b->ring);
        b->capacity = b->ring != NULL ? ENTRIES_FIRST : 0;
        return b->ring != NULL ? RATION_OK : RATION_ERR_NOMEM;
    }
    return RATION_ERR_INVALID;
}

void rn_breaker_ring_fini(rn_breaker *b)
{
    rn_mem_free(b->mem, b->results);
    rn_mem_free(b->mem, b->ring);
}

void rn_breaker_ring_clear(rn_breaker *b)
{
    b->count = 0;
    b->calls = 0;
    b->failed = 0;
}

static rn_breaker_entry *entry_at(const rn_breaker *b, size_t i)
{
    return &b->ring[(b->first + i) & (b->capacity - 1)];
}

void rn_breaker_ring_expire(rn_breaker *b, ration_time now)
{
    while (b->ring != NULL && b->count > 0) {
        const rn_breaker_entry *const oldest = entry_at(b, 0);

        if (rn_time_before(now, rn_time_add(oldest->at, b->spec->rule.duration_us)))
            break;
        b->calls -= oldest->failures + oldest->successes;
        b->failed -= oldest->failures;
        b->first = (b->first + 1) & (b->capacity - 1);
        b->count--;
    }
}

/* Twice the room. False: there is none to have. */
static bool ring_grow(rn_breaker *b)
{
    if (b->capacity >= RN_BREAKER_ENTRIES_MAX)
        return false;

    rn_breaker_entry *const grown = rn_mem_zalloc(b->mem, b->capacity * 2, sizeof *grown);

    if (grown == NULL)
        return false;
    for (size_t i = 0; i < b->count; i++)
        grown[i] = *entry_at(b, i);
    rn_mem_free(b->mem, b->ring);
    b->ring = grown;
    b->capacity *= 2;
    b->first = 0;
    return true;
}

/* The entry of `now`, which is the last. */
static rn_breaker_entry *ring_entry(rn_breaker *b, ration_time now)
{
    if (b->count > 0 && !rn_time_before(entry_at(b, b->count - 1)->at, now))
        return entry_at(b, b->count - 1);

    if (b->count == b->capacity && !ring_grow(b)) {
        const rn_breaker_entry *const oldest = entry_at(b, 0);
        rn_breaker_entry *const next = entry_at(b, 1);

        next->failures += oldest->failures;
        next->successes += oldest->successes;
        b->first = (b->first + 1) & (b->capacity - 1);
        b->count--;
    }

    rn_breaker_entry *const entry = entry_at(b, b->count++);

    *entry = (rn_breaker_entry){.at = now};
    return entry;
}

static void sampling_add(rn_breaker *b, ration_time now, bool ok)
{
    rn_breaker_ring_expire(b, now);

    rn_breaker_entry *const entry = ring_entry(b, now);

    entry->successes += ok ? 1 : 0;
    entry->failures += ok ? 0 : 1;
    b->calls++;
    b->failed += ok ? 0 : 1;
}

static void count_add(rn_breaker *b, bool ok)
{
    const size_t size = (size_t)b->spec->rule.size;
    uint64_t *const word = &b->results[b->first / WORD_BITS];
    const uint64_t bit = UINT64_C(1) << b->first % WORD_BITS;

    if (b->count == size) {
        b->failed -= (*word & bit) != 0 ? 1 : 0;
    } else {
        b->count++;
        b->calls++;
    }
    *word = ok ? *word & ~bit : *word | bit;
    b->failed += ok ? 0 : 1;
    b->first = (b->first + 1) % size;
}

void rn_breaker_ring_add(rn_breaker *b, ration_time now, bool ok)
{
    if (b->results != NULL)
        count_add(b, ok);
    if (b->ring != NULL)
        sampling_add(b, now, ok);
}
