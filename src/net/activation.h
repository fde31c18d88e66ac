/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_ACTIVATION_H
#define RN_NET_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/server.h"

/* Sockets that a service manager has opened for this process, as sd_listen_fds(3) has it. */

/* Values of the environment; NULL: not set. */
typedef struct rn_activation {
    const char *pid;   /* LISTEN_PID */
    const char *fds;   /* LISTEN_FDS */
    const char *names; /* LISTEN_FDNAMES */
} rn_activation;

/* A socket that listens already. */
typedef struct rn_given_socket {
    int descriptor; /* 0: none was given */
    bool local;     /* nobody but this machine can reach it */
    char text[128]; /* its address, as a client would write it */
} rn_given_socket;

/*
 * The socket of that name (`FileDescriptorName=`), which is ours from now on: it is not inherited further, and does
 * not block. `*out` has no descriptor where the variables are not set, are another process's, or name no such socket.
 *
 * Errors  RATION_ERR_CONFIG with `*error` filled: two of that name, or it is no stream socket that listens.
 */
int rn_activation_take(const rn_activation *activation, int64_t pid, const char *name, rn_given_socket *out,
                       rn_net_error *error);

/* How many sockets there are whose names are none of `names`, which ends with NULL: a manager that means another. */
size_t rn_activation_unknown(const rn_activation *activation, int64_t pid, const char *const *names);

#endif
