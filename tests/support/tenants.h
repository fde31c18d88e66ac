/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TENANTS_H
#define TESTS_SUPPORT_TENANTS_H

/*
 * A ceiling by itself and the leases that a test has of it, by short names.
 *
 *     tenants t;
 *
 *     tenants_init(&t, &options);
 *     CHECK_STR(tenants_call(&t, 0, "acquire b1 b 50 1000"), "granted");
 *     CHECK_STR(tenants_call(&t, 10000, "acquire a1 a 50 50"), "guarantee_on_loan 90 b1");
 *     tenants_fini(&t);
 *
 * Calls, with costs in units and holds in milliseconds ("-": not declared):
 *
 *     acquire NAME TENANT COST HOLD   "granted", or "REASON RETRY [BLOCKING ...]", RETRY in milliseconds or "-"
 *     release NAME                    "released" or "unknown"
 *     state TENANT                    "guarantee 50 held 0 own 0 lent 50 borrowed 0 want 0 busy"; or "idle"
 *     toll TENANT                     "deficit 4500 reclaims 1 worst 90 granted 2 refused guarantee_on_loan:1"
 *     targets                         "a:50 b:50"
 *     fairness                        "a 0.5 0.5 0.5 1 1; b 0.5 0.5 0.5 1 1; agree": configured, cost, requests, skews
 *     total                           "100 of 100 draining 0 overrun b1 b2"
 *
 * Texts returned are good until the next call.
 */

#include <ration/ceiling.h>

#define TENANTS_LEASES 256

typedef struct tenants {
    ration_ceiling *ceiling;
    struct {
        char name[16];
        ration_lease lease;
        uint64_t serial;
    } leases[TENANTS_LEASES];
    size_t count;
    ration_decision last; /* of the last acquire */
    int err;              /* of the last call */
    const char *asked_of; /* whose row a report is asked for */
    char text[2048];
} tenants;

void tenants_init(tenants *t, const ration_ceiling_options *options);
void tenants_fini(tenants *t);
const char *tenants_call(tenants *t, int64_t at_us, const char *call);

typedef struct tenants_step {
    const char *why;
    int64_t at_us;
    const char *call;
    const char *want;
} tenants_step;

/** Carry out a table of calls on a ceiling of its own and check each answer. */
void tenants_run(const ration_ceiling_options *options, const tenants_step *steps, size_t count);
#define TENANTS_RUN(options, steps) tenants_run((options), (steps), sizeof(steps) / sizeof(steps)[0])

/** The tenants and the ceiling of chapter 2: a and b of weight 1, 100, horizon 100 ms, idle after 200 ms, from -1 s. */
ration_ceiling_options tenants_two(void);

#endif
