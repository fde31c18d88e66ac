/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_ANSWER_H
#define RN_SIMULATE_ANSWER_H

#include <stddef.h>

#include <ration/rules.h>
#include <ration/types.h>

#include "base/text.h"
#include "net/http.h"

/* The fields of a simulated provider's response: what `sync` reads, written. */

#define RN_ANSWER_FIELDS_MAX 48
#define RN_QUOTA_KEY_MAX 128

typedef struct rn_answer {
    rn_http_field fields[RN_ANSWER_FIELDS_MAX];
    size_t count;
    size_t used;
    char text[4096]; /* of the values */
} rn_answer;

/* One quota limit that applies to the call, as it stands now. */
typedef struct rn_quota_state {
    const ration_limit_rule *rule;
    int64_t max; /* micro-units */
    int64_t remaining;
    ration_time start;          /* of the window; meaningless where there is no `end` */
    ration_time end;            /* RATION_NEVER_US: a rolling window has none */
    uint64_t id;                /* a hash of the limit's name and the key */
    char key[RN_QUOTA_KEY_MAX]; /* the scope key, as the provider sees it; a long one is cut */
} rn_quota_state;

void rn_answer_init(rn_answer *answer);
/* What does not fit is left out. `name` is borrowed, `value` copied. */
void rn_answer_add(rn_answer *answer, const char *name, ration_text value);
/*
 * The fields of all quotas: each one's own names, and the IETF fields for those that say `standard`. A name that
 * several share is written once, for the first of them. Times are rounded up, so that no client believes in a window
 * that has not begun.
 */
void rn_answer_quotas(rn_answer *answer, const rn_quota_state *quotas, size_t count, ration_time now);
/* Retry-After in seconds and retry-after-ms, rounded up; nothing if `wait_us` is RATION_UNSET. */
void rn_answer_retry(rn_answer *answer, int64_t wait_us);

/* A reset as a provider writes it. RATION_RESET_AUTO writes epoch seconds. */
void rn_reset_write(rn_builder *b, ration_reset_format format, ration_time at, ration_time now);

#endif
