/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_DAY_PARTS_H
#define RN_SIMULATE_DAY_PARTS_H

/*
 * What the parts of a simulated day share. Instants are of two clocks: `now` is true time, which the provider has too;
 * `rn_day_clock` is what the gateway's machine believes.
 */

#include <sys/queue.h>

#include <ration/state.h>

#include "base/arena.h"
#include "base/heap.h"
#include "jobs/jobs.h"
#include "net/clock.h"
#include "simulate/answer.h"
#include "simulate/day.h"
#include "simulate/enforcer.h"
#include "simulate/store.h"
#include "trace/recorder.h"

#define RN_DAY_LANES 8   /* children of a run at once */
#define RN_DAY_RETRIES 2 /* of a call */
#define RN_DAY_QUOTAS_MAX 64

typedef struct rn_day rn_day;

/* Something that will happen. */
typedef struct rn_day_event {
    rn_heap_node node;
    ration_time at;
    uint64_t order; /* of those at one instant */
    int (*fire)(rn_day *day, struct rn_day_event *event);
} rn_day_event;

/* Whoever asks the engine: what it hears. The engine's `user`, and a wire's. */
typedef struct rn_day_caller rn_day_caller;
typedef struct rn_day_caller_ops {
    int (*granted)(rn_day *day, rn_day_caller *caller, int64_t waited_us);
    int (*refused)(rn_day *day, rn_day_caller *caller, ration_reason reason);
    int (*answered)(rn_day *day, rn_day_caller *caller, int status);
} rn_day_caller_ops;

struct rn_day_caller {
    const rn_day_caller_ops *ops;
    ration_lease lease;
    bool waiting;
    struct rn_day_wire *wire; /* the call that is out; NULL: none */
};

/* A call on its way, at the provider, or on its way back. It outlives the gateway that made it. */
typedef struct rn_day_wire {
    rn_day_event event;
    LIST_ENTRY(rn_day_wire) link;
    struct rn_day_provider *provider;
    rn_day_caller *caller; /* NULL: the gateway that made it is gone */
    ration_priority priority;
    uint64_t number;
    rn_arrival arrival;
    bool judged;
    rn_judgement judgement;
    int status;
    rn_answer answer;
    char path[];
} rn_day_wire;

typedef struct rn_day_provider {
    rn_enforcer *enforcer; /* NULL: no job goes there */
    const ration_provider_rule *rule;
    size_t in_flight;
    rn_behaviour behaviour; /* with the other client's rate */
    rn_day_event external;
    int64_t external_next; /* its ordinal */
    bool has_seen;
    rn_arrival seen; /* a call of ours that the other client makes over again */
    char *seen_path;
} rn_day_provider;

/* A quota at one key, as the provider counts it. */
typedef struct rn_day_audit {
    uint64_t id;
    rn_day_provider *provider;
    const ration_limit_rule *rule;
    rn_arrival arrival; /* a call that it applies to, to look at it again */
    char *path;
    ration_time start, end; /* of the window that is counted */
    int64_t own;            /* ours in it */
    int64_t tried;          /* the same, with what was refused */
    int64_t external;
    rn_day_quota result;
    size_t point_capacity;
} rn_day_audit;

typedef enum rn_day_lane_state {
    RN_LANE_IDLE = 0,
    RN_LANE_PARKED,  /* the gateway is down */
    RN_LANE_WAITING, /* in the engine */
    RN_LANE_OUT,     /* the call is */
} rn_day_lane_state;

/* One of a runner's callers: takes one child after the other, page by page. */
typedef struct rn_day_lane {
    rn_day_caller caller;
    struct rn_day_runner *runner;
    rn_day_lane_state state;
    int64_t child;
    int64_t pages; /* left, this one included */
    int attempt;
    ration_time deadline; /* for waiting, by the gateway's clock */
    bool on_time;         /* `deadline` means something */
    char *path;
    size_t path_size;
} rn_day_lane;

typedef struct rn_day_runner {
    rn_day_event due;
    const rn_job *job;
    size_t index;
    rn_day_lane lanes[RN_DAY_LANES];
    size_t busy; /* lanes that are not idle */
    bool running;
    bool overdue; /* the next run is due while one runs */
    uint64_t run; /* its number */
    int64_t next_child;
    ration_run counted;
    int64_t last_effective_us;
    size_t interval_capacity;
    ration_run kept[RATION_RUNS_MAX]; /* runs that have ended, the oldest first */
    size_t kept_count;
} rn_day_runner;

/* An account's health check. */
typedef struct rn_day_check {
    rn_day_caller caller;
    size_t account;
    rn_day_provider *provider;
} rn_day_check;

typedef struct rn_day_waits {
    int64_t *items;
    size_t count, capacity;
} rn_day_waits;

/* The process that decides. */
typedef struct rn_day_gateway {
    ration_engine *engine; /* NULL: it is down */
    bool unclean;          /* it was killed */
    ration_time stop_by;   /* draining: true time */
    rn_engine_decider decider;
    rn_jobs *jobs;
    rn_clock clock;
    bool draining;
    bool flushing;
    rn_day_event wake, flush, kept, replan, drain, up;
} rn_day_gateway;

struct rn_day {
    const rn_day_options *options;
    const ration_config *config;
    const ration_rules *rules;
    const rn_settings *settings;
    rn_arena arena;
    rn_heap events;
    uint64_t order;
    ration_time start, end;
    ration_time now;
    int64_t wall_off_us; /* what the machine's wall clock is off by */
    int64_t latency_times;
    int64_t error_storms; /* under way */
    rn_day_gateway gateway;
    ration_sink sink;
    rn_recorder *recorder;
    char *config_json;
    rn_store store;
    rn_day_provider *providers;
    rn_day_check *checks; /* by account */
    rn_day_runner *runners;
    size_t runner_count;
    LIST_HEAD(, rn_day_wire) wires;
    uint64_t calls;
    rn_day_audit *audits[RN_DAY_QUOTAS_MAX];
    size_t audit_count;
    rn_day_waits waits[RN_DAY_PRIORITIES];
    struct rn_day_turn *turns; /* of the faults */
    rn_day_event sample;
    rn_day_result result;
    rn_day_error *error;
};

/* ---- day.c: time, and the result's lists */

int rn_day_at(rn_day *day, rn_day_event *event, ration_time at); /* (re)schedule, in true time */
void rn_day_not(rn_day *day, rn_day_event *event);               /* if it is scheduled */
int64_t rn_day_since(const rn_day *day);                         /* the start */
/* Room for one more; NULL: no memory. */
void *rn_day_grow(void *items, size_t count, size_t *capacity, size_t size);
void rn_day_mix(rn_day *day, uint64_t value); /* into the hash */
size_t rn_day_slot(const rn_day *day);
int rn_day_fail(rn_day *day, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- day_gateway.c: the process that decides */

ration_time rn_day_clock(rn_day *day); /* what it believes */
/* True time at which it will believe `at`, or a little before. */
ration_time rn_day_when(rn_day *day, ration_time at);
bool rn_day_is_up(const rn_day *day); /* takes requests */
int rn_day_gateway_start(rn_day *day);
int rn_day_gateway_stop(rn_day *day); /* begins to, in order */
int rn_day_gateway_kill(rn_day *day); /* at once */
void rn_day_gateway_fini(rn_day *day);
int rn_day_gateway_replan(rn_day *day);
/* A request of a caller: its lease and whether it waits are set; of what comes later it hears. */
int rn_day_ask(rn_day *day, rn_day_caller *caller, ration_request *request, ration_decision *out);
/* What the engine has done by itself; then what it needs. After everything that has called it. */
int rn_day_gateway_settle(rn_day *day);
/* The answer has come: the engine hears of it, and the lease ends. */
int rn_day_gateway_answer(rn_day *day, rn_day_caller *caller, const rn_day_wire *wire);
/* What waits is withdrawn, what is out broken off; the engine hears of it if it is there. */
int rn_day_let_go(rn_day *day, rn_day_caller *caller);

/* ---- day_check.c: health checks */

int rn_day_checks_init(rn_day *day);
int rn_day_check_start(rn_day *day, const ration_event *event);
int rn_day_checks_cut(rn_day *day);

/* ---- day_provider.c: the other side, and the way there */

int rn_day_providers_init(rn_day *day);
void rn_day_providers_fini(rn_day *day);
/* A call leaves. `arrival`'s path is copied, its other texts must live as long as the day. */
int rn_day_send(rn_day *day, rn_day_caller *caller, rn_day_provider *provider, const rn_arrival *arrival,
                ration_priority priority);
/* Nobody waits for the caller's call any more; the provider hears of it. */
int rn_day_hang_up(rn_day *day, rn_day_caller *caller);

/* ---- day_audit.c: what the providers have counted */

int rn_day_audit_call(rn_day *day, rn_day_provider *provider, const rn_arrival *arrival, const rn_judgement *judgement);
int rn_day_audit_sample(rn_day *day);
int rn_day_audit_finish(rn_day *day);
void rn_day_audit_fini(rn_day *day);

/* ---- day_runner.c: who runs the jobs */

int rn_day_runners_init(rn_day *day);
int rn_day_runners_look(rn_day *day);   /* there is a new plan, or a gateway again */
int rn_day_runners_unpark(rn_day *day); /* the gateway is there again */
/* The gateway takes no more: those who wait hear of it, and ask again when it is back. */
int rn_day_runners_drain(rn_day *day);
/* It is gone: what is out is lost too. */
int rn_day_runners_cut(rn_day *day);
size_t rn_day_runners_out(const rn_day *day); /* calls */

/* ---- day_fault.c: what goes wrong when */

int rn_day_faults_init(rn_day *day);

#endif
