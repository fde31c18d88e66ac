/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_SERVICE_H
#define RN_SERVE_SERVICE_H

#include "net/activation.h"
#include "serve/control.h"
#include "serve/gateway.h"
#include "serve/keeper.h"
#include "serve/reload.h"

/*
 * What `ration serve` runs, for whoever has a loop: an engine from the config, the gateway, the control port and
 * perhaps a recording. Signals are the caller's.
 */
typedef struct rn_service rn_service;

typedef struct rn_service_options {
    rn_loop *loop;
    const ration_config *config;
    const char *config_file; /* that it was read from, and will be anew; NULL: none */
    rn_log *log;             /* a reload sets its format and level anew */
    const char *record;      /* file of the recording; NULL: none */
    rn_keeper *keeper;       /* what outlives the process; NULL: nothing does */
    rn_given_socket gateway; /* that listen already, in place of what the config says */
    rn_given_socket control;
} rn_service_options;

/*
 * Listen and serve. All of `options` is borrowed for the service's life.
 *
 * Errors  RATION_ERR_CONFIG, RATION_ERR_IO with `*error` filled: a listener that others can reach without
 * `settings.token`,
 *         an address that cannot be bound, a file that cannot be written; RATION_ERR_NOMEM.
 */
int rn_service_new(const rn_service_options *options, rn_service **out, rn_net_error *error);

/* The bound TCP ports; 0 on a Unix socket. */
uint16_t rn_service_gateway_port(const rn_service *service);
uint16_t rn_service_control_port(const rn_service *service);

/*
 * Stop accepting, let calls end for at most `settings.drain`, break what is left, then call `on_drained` (may be NULL),
 * once, never from inside. The control port answers until `rn_service_free`.
 */
void rn_service_drain(rn_service *service, void (*on_drained)(void *user), void *user);

/*
 * Read the config file anew and go by it from now on, or change nothing: decision 0023. Who wanted it (`by`: "SIGHUP",
 * "api") stands in the log with what came of it. `*out`, from rn_reload_init, is filled in. Not from inside a
 * handler of the gateway's.
 */
void rn_service_reload(rn_service *service, const char *by, rn_reload *out);

/* Who decides. Borrowed; after a call of one's own, `rn_service_touch`. */
rn_decider *rn_service_decider(rn_service *service);
void rn_service_touch(rn_service *service);

/* Calls that run or wait. */
size_t rn_service_calls(const rn_service *service);

/* Ends everything at once; recording and ledger are written to their ends. The keeper stays. NULL is fine. */
void rn_service_free(rn_service *service);

#endif
