/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_FLEET_H
#define RN_SERVE_FLEET_H

#include "config/config.h"
#include "fleet/member.h"
#include "net/server.h" /* rn_net_error */
#include "serve/bulletin.h"
#include "serve/log.h"

/* The member of a fleet that `settings.fleet` makes of a process: from the config to it, and what is told of it. */

typedef struct rn_fleet_options {
    rn_loop *loop;
    const ration_config *config; /* it has a fleet */
    uint32_t first_generation;
    void (*woken)(void *ctx);
    void (*changed)(void *ctx, rn_member_state state, const char *text);
    void (*failed)(void *ctx, const char *text);
    void (*salt_known)(void *ctx, ration_text salt);
    void *ctx;
} rn_fleet_options;

bool rn_fleet_is(const ration_config *config);

/* RATION_ERR_CONFIG with `*error` filled: the URL, a variable that is not set, limits that are not possible in a fleet;
 * RATION_ERR_NOMEM. */
RATION_MUST_CHECK int rn_fleet_join(const rn_fleet_options *options, rn_member **out, rn_net_error *error);
/* The config is another one. Errors as above: nothing has changed. */
RATION_MUST_CHECK int rn_fleet_rejoin(rn_member *member, const rn_fleet_options *options, rn_net_error *error);

/* The keys of the config's credentials are those under the fleet's salt. Without memory it is tried again. */
void rn_fleet_rekey(rn_member *member, const ration_config *config, ration_text salt);

/* The store is there, or away: a line in the log, an event for those who listen (`bulletin` may be NULL). */
void rn_fleet_tell(const rn_log *log, rn_bulletin *bulletin, ration_time now, rn_member_state state, const char *text);

/* The member "fleet" of the status. */
void rn_fleet_write(const rn_member_status *status, rn_output *out);

#endif
