/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_TABLE_H
#define RN_CONFIG_TABLE_H

#include <stddef.h>

#include "config/loader.h"

/* How rows of the table of keys are written. For the files named schema*.c only. */

#define AT(owner, member) .offset = offsetof(owner, member)
#define ITEMS(owner, items, number) .offset = offsetof(owner, items), .count = offsetof(owner, number)
#define LATER(word)                                                                                                    \
    {                                                                                                                  \
        .name = (word), .flags = RN_KEY_LATER, .doc = ""                                                               \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)
#define YEAR (366 * DAY)

/* Parts of the table that have a file of their own. */
extern const rn_object rn_schema_actual, rn_schema_estimate, rn_schema_limit, rn_schema_provider, rn_schema_breaker,
    rn_schema_job, rn_schema_client, rn_schema_fleet;
extern const rn_word rn_words_priority[];

#endif
