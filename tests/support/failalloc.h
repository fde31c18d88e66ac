/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_FAILALLOC_H
#define TESTS_SUPPORT_FAILALLOC_H

/*
 * An allocator that fails once, at the allocation of your choice, and knows what has not been given back.
 *
 *     failalloc fail = {.failed = true};
 *
 *     for (uint64_t i = 0; fail.failed; i++) {
 *         failalloc_init(&fail, i);
 *         const int err = thing_new(&fail.allocator, &thing);
 *         CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
 *         ... thing_free(thing) ...
 *         CHECK_EQ(fail.live, 0);
 *     }
 *
 * So the loop ends with the first run that needs fewer allocations than `i`, which is the one in which none failed.
 */

#include <ration/engine.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct failalloc {
    ration_allocator allocator; /* borrows the struct: do not move it */
    uint64_t countdown;         /* allocations and growths that still succeed before the one that fails */
    bool failed;                /* it has */
    size_t live;                /* blocks not released */
} failalloc;

/** The allocation number `at`, counted from 0, fails; UINT64_MAX: none does. */
void failalloc_init(failalloc *fail, uint64_t at);

#endif
