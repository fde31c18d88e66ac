/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_STREAM_RULES_H
#define TESTS_SUPPORT_STREAM_RULES_H

/*
 * Rules for random streams: two providers, limits of every kind whose scopes overlap, breakers. Which of them there are
 * and what their options say is drawn, so that each stands alone in some streams and among all others in some.
 */

#include <ration/engine.h>

#define STREAM_ACCOUNTS 3 /* "one" and "two" of provider p, "three" of q */
#define STREAM_TENANTS 4  /* that share limits know; one more is asked for, and none */
#define STREAM_CLASSES 2  /* likewise */
#define STREAM_LIMITS 16

extern const char *const stream_accounts[STREAM_ACCOUNTS];
extern const char *const stream_tenants[STREAM_TENANTS + 1]; /* the last is known to nobody */
extern const char *const stream_classes[STREAM_CLASSES + 1];

typedef struct stream_rules {
    ration_limit_rule limits[STREAM_LIMITS];
    size_t limit_count;
    ration_breaker_rule breaker;
    ration_provider_rule providers[2];
    ration_rules rules; /* points into the struct: do not move it */
} stream_rules;

typedef uint64_t stream_choose_fn(void *ctx, uint64_t bound);

void stream_rules_draw(stream_rules *out, stream_choose_fn *choose, void *ctx);
/** A limit of p; NULL: it was not drawn. */
const ration_limit_rule *stream_limit(const stream_rules *rules, const char *name);

#endif
