/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_MEANT_H
#define RN_SERVE_MEANT_H

#include "jobs/jobs.h"
#include "serve/clients.h"

/*
 * What was meant by a name that nobody has: the nearest one that somebody has, if one is near, and never one that the
 * client may not claim.
 */

#define RN_MEANT_BYTES 1536 /* of an explanation with its guess */

/* What a request that was refused has said. Absent texts were not said. */
typedef struct rn_said {
    const ration_config *config;
    const rn_client *client; /* NULL: one who may claim anything */
    ration_text account;
    ration_text provider;
    ration_text tenant;
    ration_text class_name;
} rn_said;

/*
 * The name that was meant, where a refusal is for an account, provider, tenant or class that is unknown; NULL for any
 * other reason, and where none is near.
 *
 * Cost  Linear in the names of that sort, of which the first 1000 are looked at.
 */
const char *rn_meant_name(const rn_said *said, const ration_decision *refused);
/* Is it a job of the account that the client may name? */
bool rn_said_may_name(const rn_said *said, const rn_job *job);
/* Of `count` jobs the nearest among those. */
const char *rn_meant_job(const rn_said *said, const rn_jobs *jobs, size_t count, ration_text name);
/* The refusal's explanation with that, in `buffer`; absent where there is none. */
ration_text rn_meant_explain(const rn_said *said, const ration_decision *refused, char buffer[RN_MEANT_BYTES]);

#endif
