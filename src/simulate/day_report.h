/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_DAY_REPORT_H
#define RN_SIMULATE_DAY_REPORT_H

#include "simulate/day.h"

/* What the reports of a simulated day share: figures as people read them. */

typedef struct rn_day_label {
    char text[256];
} rn_day_label;

/* Appends at most a kilobyte. */
void rn_day_printf(rn_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Each writes into `label` and returns its text. */
const char *rn_day_short(int64_t us, rn_day_label *label);                                 /* "1.5 s" */
const char *rn_day_units(int64_t micro, rn_day_label *label);                              /* "4000" */
const char *rn_day_percent(int64_t part, int64_t whole, rn_day_label *label);              /* "99.6 %", rounded down */
const char *rn_day_stretch(int64_t effective_us, int64_t desired_us, rn_day_label *label); /* "2.48" */

int64_t rn_day_effective(const rn_day_job *job);  /* the interval at the end */
int64_t rn_day_budget(const rn_day_quota *quota); /* U - R of all whole windows */

#endif
