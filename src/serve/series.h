/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_SERIES_H
#define RN_SERVE_SERIES_H

#include "trace/output.h"

/*
 * A metric with labels that come from outside: scope keys, tenants. Of each group (a limit of a provider) the largest
 * RN_SERIES_TOP values (or the smallest, where these matter) are written with their labels, all others together with
 * "*" in the place of these, so the number of series is bounded by the config, whatever the traffic.
 */

#define RN_SERIES_TOP 20
#define RN_SERIES_LABELS 4

typedef enum rn_series_rest {
    RN_SERIES_SUM = 0,  /* what the rest comes to together */
    RN_SERIES_LARGEST,  /* or the largest of it, where a sum would mean nothing */
    RN_SERIES_SMALLEST, /* or the smallest */
} rn_series_rest;

/* What a family of series is. Static. */
typedef struct rn_series_kind {
    const char *name;
    const char *labels[RN_SERIES_LABELS]; /* NULL: no more */
    size_t fixed;                         /* so many of them name the group */
    bool micro;                           /* values are millionths */
    rn_series_rest rest;
    bool smallest;      /* the smallest values are the ones to show, not the largest */
    const char *always; /* a label that is the same for all, such as `pace="15m"`; NULL: none */
} rn_series_kind;

typedef struct rn_series_sample {
    ration_text labels[RN_SERIES_LABELS];
    int64_t value;
} rn_series_sample;

typedef struct rn_series {
    const rn_series_kind *kind;
    rn_series_sample top[RN_SERIES_TOP]; /* of the present group, in order, of equals the first come first */
    size_t count;
    rn_series_sample group; /* whose labels name the present group */
    bool rested;            /* `rest` has something in it */
    int64_t rest;
    rn_output out; /* of the groups that are over */
} rn_series;

void rn_series_init(rn_series *series, const rn_series_kind *kind);
void rn_series_fini(rn_series *series);

/*
 * One sample. Those of one group come one after the other. Its texts are borrowed until the group is over: a sample of
 * another group, or `rn_series_end`. `again`: these labels have been there already, so it counts among the rest.
 */
void rn_series_add(rn_series *series, const rn_series_sample *sample, bool again);
/* No more come; what is to be shown is in `out`. */
void rn_series_end(rn_series *series);

#endif
