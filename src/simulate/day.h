/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_DAY_H
#define RN_SIMULATE_DAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "core/decider.h"
#include "jobs/jobs.h"
#include "simulate/behaviour.h"
#include "trace/output.h"

/*
 * A day of the jobs of a config, in virtual time: runners, planner, engine and the providers' own judgement together,
 * with no socket and no clock. Specification chapter 10. The same options give the same result, to the bit.
 */

/* What goes wrong, as bits. */
typedef enum rn_day_fault {
    RN_DAY_LATENCY = 1u << 0,  /* for minutes, answers take twenty times as long */
    RN_DAY_ERRORS = 1u << 1,   /* for minutes, half of the calls that were let in fail */
    RN_DAY_CLOCK = 1u << 2,    /* the machine's wall clock jumps, and is set right later */
    RN_DAY_RESTART = 1u << 3,  /* the gateway stops in order and starts again */
    RN_DAY_KILL = 1u << 4,     /* it is killed */
    RN_DAY_EXTERNAL = 1u << 5, /* another client uses a tenth of each quota */
} rn_day_fault;

#define RN_DAY_FAULTS 6
#define RN_DAY_ALL ((1u << RN_DAY_FAULTS) - 1)
#define RN_DAY_SPAN_MIN_US (INT64_C(60) * 1000000)
#define RN_DAY_SPAN_MAX_US (INT64_C(31) * 86400 * 1000000)
#define RN_DAY_CALLS_MAX 5000000 /* that jobs may want */
#define RN_DAY_SLOTS 96          /* a priority's calls are told by this many equal parts of the span */
#define RN_DAY_PRIORITIES (RATION_PRIORITY_LOW + 1)
#define RN_DAY_SAMPLES 288 /* looks at a day, in equal steps */

/* "latency", ...; "" for what is none. */
const char *rn_day_fault_name(rn_day_fault fault);
/* "latency,kill", "all", "none"; adds to `*faults`. RATION_ERR_SYNTAX. */
int rn_day_faults_parse(ration_text text, unsigned *faults);

typedef struct rn_day_error {
    char text[400]; /* one line */
} rn_day_error;

struct rn_day_result;

/* What a day looks like at an instant. Borrowed for the call. */
typedef struct rn_day_look {
    ration_time at;                      /* true time */
    bool last;                           /* the day is over */
    ration_time believed;                /* by the gateway; `decider` is to be asked at it */
    rn_decider *decider;                 /* NULL: the gateway is down */
    const rn_jobs *jobs;                 /* NULL: likewise */
    const struct rn_day_result *counted; /* so far; percentiles and quotas are known at the end only */
    struct {
        const int64_t *us; /* how long each call that was granted had waited, in the order of their grants */
        size_t count;
    } waits[RN_DAY_PRIORITIES];
} rn_day_look;

/* Who watches. It may ask the decider for reports, and nothing else. */
typedef struct rn_day_watcher {
    void *ctx;
    int (*look)(void *ctx, const rn_day_look *look);     /* RN_DAY_SAMPLES times, and at the end */
    void (*event)(void *ctx, const ration_event *event); /* of the engine, as they come */
} rn_day_watcher;

/* All is borrowed for the run and for the life of its result. */
typedef struct rn_day_options {
    const ration_config *config;
    int64_t span_us;
    rn_behaviour behaviour; /* of every provider; `external` is one other client at each of them */
    unsigned faults;
    /* Every call of the engine as a trace; NULL: none. Not with RN_DAY_RESTART and RN_DAY_KILL: a trace is of one
     * engine. */
    int (*record)(void *ctx, const char *data, size_t size);
    void *record_ctx;
    const rn_day_watcher *watcher; /* NULL: nobody. The day is the same with one. */
} rn_day_options;

/* Why a provider refused a call. */
typedef enum rn_day_cause {
    RN_DAY_BY_QUOTA = 0,
    RN_DAY_BY_RATE,
    RN_DAY_BY_CONCURRENCY, /* of slots, declared or hidden */
    RN_DAY_BY_OTHER,
    RN_DAY_CAUSES,
} rn_day_cause;

const char *rn_day_cause_name(rn_day_cause cause); /* "quota", ... */

/* The calls of one priority. */
typedef struct rn_day_class {
    bool present;   /* a job has it */
    int64_t wanted; /* at the desired intervals; retries are not wanted */
    uint64_t sent;  /* with retries */
    uint64_t retries;
    uint64_t answered; /* with a 2xx */
    uint64_t limited[RN_DAY_CAUSES];
    uint64_t failed;  /* with a transient status */
    uint64_t broken;  /* the gateway died over it */
    uint64_t refused; /* by ration */
    uint64_t refusals[RATION_REASON_COUNT];
    uint64_t given_up; /* children whose run ended early, because of a refusal or after the last retry */
    int64_t wait_p50_us, wait_p99_us, wait_max_us; /* of those granted */
    uint32_t slot_sent[RN_DAY_SLOTS];
    uint32_t slot_refused[RN_DAY_SLOTS];
} rn_day_class;

/* What a quota looked like at an instant, as the provider has it. Micro-units. */
typedef struct rn_day_point {
    int64_t at_us; /* after the start */
    int64_t spent; /* by us; of a rolling window: by anybody */
    int64_t external;
} rn_day_point;

/* A quota at one key. Micro-units. */
typedef struct rn_day_quota {
    const char *provider;
    const char *limit;
    char *key;
    bool rolling;
    bool strict;
    int64_t max, usable, reserve;
    uint64_t windows;   /* that lay in the span as a whole and saw a call; of a rolling one: 0 */
    int64_t spent;      /* in these, by us */
    int64_t least;      /* the least of one of them */
    int64_t external;   /* by others, in all windows */
    int64_t left;       /* of max, at the end */
    uint64_t refused;   /* calls that it refused us */
    uint64_t overspent; /* windows in which more than `usable` of ours arrived, refused calls counted */
    rn_day_point *points;
    size_t point_count;
} rn_day_quota;

/* A job's interval from an instant on. */
typedef struct rn_day_interval {
    int64_t at_us; /* after the start */
    int64_t effective_us;
} rn_day_interval;

typedef struct rn_day_job {
    const rn_job *job;
    const char *limit; /* that bound last; NULL: none */
    uint64_t runs;     /* that ended */
    uint64_t requests, retries;
    int64_t stretch_most; /* millionths; at least one unit */
    rn_day_interval *intervals;
    size_t interval_count;
} rn_day_job;

/* Something that went wrong for a while. */
typedef struct rn_day_episode {
    rn_day_fault kind;
    int64_t from_us, to_us; /* after the start */
    int64_t by_us;          /* clock: the jump */
} rn_day_episode;

typedef struct rn_day_result {
    ration_time start;
    const char *zone; /* of the daily window that it begins with; NULL: UTC */
    int64_t span_us;
    uint64_t seed;
    unsigned faults;
    rn_day_class classes[RN_DAY_PRIORITIES]; /* by ration_priority */
    rn_day_quota *quotas;
    size_t quota_count;
    uint64_t unwatched; /* calls at keys beyond the most that are told */
    rn_day_job *jobs;   /* as in the config */
    size_t job_count;
    rn_day_episode *episodes;
    size_t episode_count;
    uint64_t limited[RN_DAY_CAUSES]; /* of all priorities and of health checks */
    uint64_t plans, infeasible;
    uint64_t restarts, kills;
    uint64_t checks;     /* health checks made */
    uint64_t unexpected; /* 429s that no counter of the engine explains */
    uint64_t flushes;
    uint64_t hash; /* of all decisions, events and answers */
} rn_day_result;

/*
 * Play it.
 *
 * Errors     RATION_ERR_NOMEM; RATION_ERR_INVALID, RATION_ERR_CONFIG, RATION_ERR_FULL for options and configs that
 *            cannot be played, with `*error` filled. `*out` is untouched.
 * Cost       O(calls * (quota keys + log runners)); a hundred thousand calls take about a second.
 */
RATION_MUST_CHECK int rn_day_run(const rn_day_options *options, rn_day_result *out, rn_day_error *error);
void rn_day_result_fini(rn_day_result *result);

/* No provider refused a call of ours for a quota's sake, and no share of one was overdrawn. */
bool rn_day_passed(const rn_day_result *result);

/* The report for people, and for programs. Append to `out`. */
void rn_day_text(const rn_day_result *result, rn_output *out);
void rn_day_json(const rn_day_result *result, rn_output *out);

#endif
