/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_PERCENT_H
#define RN_BASE_PERCENT_H

#include <stdbool.h>

#include "base/text.h"

/* Segments of paths, as a provider reads them: two ways to write one name are one name. RFC 3986, 2.1 and 6.2.2. */

/* The byte that stands at `at`, which is in the text, and how many it is written with: 3 for `%41`, else 1. */
size_t rn_percent_take(ration_text text, size_t at, char *byte);

/* Whether two segments are one name. */
bool rn_percent_eq(ration_text a, ration_text b);

/*
 * The value of a path's variable, for scope keys: `encoded`, as it stands in the path; else as it is meant. Characters
 * stand as they are, but for '/', '=', '%', control characters and bytes that are no UTF-8, which are percent-encoded.
 */
void rn_percent_key(rn_builder *b, ration_text value, bool encoded);

#endif
