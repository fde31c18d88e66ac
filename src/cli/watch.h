/* SPDX-License-Identifier: MIT */
#ifndef RN_CLI_WATCH_H
#define RN_CLI_WATCH_H

#include "cli/cli.h"
#include "cli/fetch.h"
#include "cli/view.h"

/* What `ration status` and `ration top` share: whom to ask, and asking. */

#define RN_CONTROL_DEFAULT "127.0.0.1:7601"

typedef struct rn_watch_options {
    rn_fetch_options fetch;
    rn_view_order order;
    bool all;   /* every counter, not only the first of them */
    bool json;  /* the status as it is */
    bool watch; /* again every second */
} rn_watch_options;

/* False: the usage was printed. The token is RATION_TOKEN of the environment: arguments can be seen by others. */
bool rn_watch_arguments(const rn_command *self, int argc, char **argv, bool top, rn_watch_options *out);

/* Ask for the status and read it, sorted; `fini` always. Errors as rn_fetch and rn_view_read, `error` filled. */
int rn_watch_look(const rn_watch_options *options, rn_view *out, char *error, size_t error_size);

#endif
