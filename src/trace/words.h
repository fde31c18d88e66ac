/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_WORDS_H
#define RN_TRACE_WORDS_H

#include <stddef.h>

#include <ration/types.h>

/*
 * The word that was probably meant: the nearest by edits (a letter changed, left out, added, two swapped); NULL:
 * none is near.
 */
const char *rn_words_nearest(ration_text word, const char *const *words, size_t count);

#endif
