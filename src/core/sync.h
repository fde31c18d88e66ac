/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_SYNC_H
#define RN_CORE_SYNC_H

#include "core/fields.h"

/* What the header fields of one response tell about one quota: chapter 3, "Header sync". */

typedef struct rn_told {
    rn_field max_is; /* whether the provider told a maximum */
    rn_field left_is;
    rn_field reset_is;
    int64_t max; /* micro-units, above zero */
    int64_t left;
    ration_time reset;
} rn_told;

/* Read the fields that `rule->sync` names; the standard ones fill what those did not tell. */
void rn_sync_read(const ration_limit_rule *rule, int64_t window_us, const ration_response *response, ration_time now,
                  rn_told *out);

/* The IETF fields alone; sync_standard.c. */
void rn_sync_standard(const ration_limit_rule *rule, int64_t window_us, const ration_response *response,
                      ration_time now, rn_told *out);

#endif
