/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_RUN_METER_H
#define RN_SERVE_RUN_METER_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/plan.h>

/*
 * One run of a job after the other, told apart by the requests alone. No clock: every call takes `now`, which never
 * runs back; no request is known to it but by its number.
 */

/* How long a job's runs and the pauses between them are. Both above 0. */
typedef struct rn_run_pace {
    int64_t quiet_us;   /* without a request under way: the run is over */
    int64_t longest_us; /* a request so long after the run's begin is of the next one */
} rn_run_pace;

/* `interval_us` as desired, `effective_us` as planned. */
rn_run_pace rn_run_pace_of(int64_t interval_us, int64_t effective_us);

/* How a run came out. */
typedef enum rn_run_end {
    RN_RUN_NONE = 0, /* none has ended */
    RN_RUN_WHOLE,    /* all that was asked was sent */
    RN_RUN_CUT,      /* a request was not sent, or none was a first try: it tells nothing of the next run */
} rn_run_end;

typedef struct rn_run_told {
    rn_run_end end;
    ration_time begun; /* the rest only of a WHOLE one */
    ration_run run;
} rn_run_told;

typedef struct rn_run_meter { /* zero: nothing has come yet */
    bool open;
    bool cut;
    ration_time begun;
    ration_time quiet_since; /* while nothing is under way */
    int64_t under_way;       /* requests that wait or run, of this run or of one before */
    ration_run run;
} rn_run_meter;

/* A request comes, and will leave. True: it begins a run. `*told`: the run before, if it has ended with that. */
bool rn_run_arrive(rn_run_meter *meter, ration_time now, rn_run_pace pace, rn_run_told *told);
/* It is sent to the provider, first or once more. */
void rn_run_sent(rn_run_meter *meter, bool retry);
/* It is over. `sent`: it was, at least once. */
void rn_run_leave(rn_run_meter *meter, ration_time now, bool sent);
/* Has it been quiet for long enough? Then the run has ended. */
rn_run_told rn_run_over(rn_run_meter *meter, ration_time now, rn_run_pace pace);
/* Somebody else knows what this run was: it ends unseen. */
void rn_run_drop(rn_run_meter *meter);

#endif
