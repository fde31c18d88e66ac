/* SPDX-License-Identifier: MIT */
#ifndef RN_CLI_SIMULATE_DAY_H
#define RN_CLI_SIMULATE_DAY_H

#include "simulate/day.h"

/* `ration simulate FILE --for SPAN`. */
typedef struct rn_day_command {
    int64_t span_us;
    unsigned faults;
    rn_behaviour behaviour;
    const char *report; /* files; NULL: none */
    const char *record;
    bool json;
} rn_day_command;

/* Play the day and tell of it. Returns the exit status: RN_EXIT_FAULTS where a quota was overdrawn. */
int rn_day_command_run(const rn_day_command *command, const char *file, const ration_config *config);

#endif
