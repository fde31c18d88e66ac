/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_PAGES_H
#define TESTS_SUPPORT_PAGES_H

/*
 * How much memory does an operation look at? An allocator whose large blocks can be locked: the first touch of a page,
 * reading or writing, is counted and unlocks it. So a walk through a large table cannot hide.
 *
 *     pages_lock();
 *     ... the operation ...
 *     CHECK(pages_unlock() < 50);
 *
 * One set of pages a process.
 */

#include <ration/engine.h>

#include <stddef.h>

/** The C library's, but for blocks of 64 KiB or more. */
const ration_allocator *pages_allocator(void);
/** Small blocks lie one behind the other in large ones, and are never used again: a walk from one to the next shows. */
const ration_allocator *pages_packed(void);
/** All large blocks together. */
size_t pages_total(void);
void pages_lock(void);
/** How many pages were touched since. */
size_t pages_unlock(void);

#endif
