/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_CONTROL_H
#define RN_SERVE_CONTROL_H

#include "serve/api.h"
#include "serve/fleet.h"
#include "serve/gateway.h"
#include "serve/keeper.h"
#include "serve/planning.h"
#include "serve/recording.h"

/* The control port: health, metrics, status, and the decision API. Chapter 7. */
typedef struct rn_control rn_control;

/* Everything is borrowed for the control port's life. */
typedef struct rn_control_options {
    rn_loop *loop;
    rn_decider *decider;
    rn_gateway *gateway;
    rn_planning *planning;           /* NULL: there are no jobs */
    const rn_recording *recording;   /* NULL: nothing is recorded */
    rn_keeper *keeper;               /* NULL: nothing is kept */
    rn_member *member;               /* NULL: the limits are this process' own */
    const rn_api_reloader *reloader; /* NULL: there is no file to read anew */
    const rn_reload_counts *reloads; /* NULL: nobody counts them */
    int descriptor;                  /* a socket that listens already; 0: as the config says */
} rn_control_options;

/* RATION_ERR_NOMEM; RATION_ERR_IO with `*error` filled. */
int rn_control_new(const rn_control_options *options, rn_control **out, rn_net_error *error);
/* The bound TCP port; 0 on a Unix socket. */
uint16_t rn_control_port(const rn_control *control);
/* The gateway is about to go by another config; nothing is borrowed of the present one after this. */
void rn_control_part(rn_control *control);
/* The gateway goes by another config: so does this port's patience with its clients. */
void rn_control_adopt(rn_control *control);
/* Breaks what still runs. NULL is fine. */
void rn_control_free(rn_control *control);

#endif
