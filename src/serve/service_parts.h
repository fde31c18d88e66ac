/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_SERVICE_PARTS_H
#define RN_SERVE_SERVICE_PARTS_H

#include "serve/fleet.h"
#include "serve/service.h"
#include "trace/recorder.h"

/* Between service.c (the parts put together) and service_reload.c (other rules for all of them). */

struct rn_service {
    rn_loop *loop;
    rn_log *log;
    const char *config_file; /* NULL: none */
    bool exposed;            /* others can reach a socket that was given */
    ration_config *owned;    /* the present config, if it came by a reload; else NULL, and it is the caller's */
    rn_keeper *keeper;
    rn_recording *recording;
    rn_recorder *recorder;
    rn_decider *decider; /* one of the next two */
    ration_engine *engine;
    rn_engine_decider engine_decider;
    rn_member *member; /* NULL: the limits are this process' own */
    rn_log_gate member_gate;
    rn_planning *planning;
    rn_bulletin *bulletin;
    rn_refusals *refusals;
    rn_gateway *gateway;
    rn_control *control;
    rn_api_reloader reloader;
    rn_reload_counts reloads;
    rn_timer drain;
    void (*on_drained)(void *user);
    void *drained_user;
    rn_timer flush; /* of the recording */
};

/* What a member of a fleet is made by, of that config. */
rn_fleet_options rn_service_fleet(rn_service *service, const ration_config *config);
/* Whoever comes to a listener must show a token: the operator's, or a client's. */
bool rn_service_guarded(const ration_config *config);

#endif
