/* SPDX-License-Identifier: MIT */
#ifndef RN_CLI_DEMO_REPORT_H
#define RN_CLI_DEMO_REPORT_H

#include <stdbool.h>

#include "simulate/provider.h"
#include "simulate/schedule.h"
#include "simulate/summary.h"

/* What the demo found, and how it is shown. */

/* One of the two ways to the provider. */
typedef struct rn_demo_side {
    rn_summary summary;          /* as the clients saw it */
    rn_simulator_counts counted; /* by the provider */
} rn_demo_side;

/* The gateway was killed and started again. Micro-units of the minute's quota, as it counts them. */
typedef struct rn_demo_restart {
    int64_t at_us; /* after the start */
    int64_t before, after;
    bool same_window; /* the minute did not turn in between */
} rn_demo_restart;

typedef struct rn_demo_result {
    uint64_t seed;
    const char *control; /* address of the control port */
    const char *record;  /* NULL: nothing was recorded */
    const rn_schedule *schedule;
    rn_demo_side straight;
    rn_demo_side through;
    rn_demo_restart restart;
} rn_demo_result;

/*
 * Every call through the gateway was answered, its provider never said "too many", and the restart has forgotten none.
 */
bool rn_demo_passed(const rn_demo_result *result);

/* To standard output: a table and a few sentences, or the same figures as one JSON object (RATION_ERR_NOMEM). */
void rn_demo_print_text(const rn_demo_result *result);
int rn_demo_print_json(const rn_demo_result *result);

#endif
