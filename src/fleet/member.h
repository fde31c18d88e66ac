/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_MEMBER_H
#define RN_FLEET_MEMBER_H

#include <sys/queue.h>

#include "core/decider.h"
#include "net/loop.h"

/*
 * A process of a fleet: a decider whose limits are in Redis. Chapter 6.
 *
 * It is asked as the engine is; its answers come as events. What is told (a release, a response, a renewal) is sent and
 * forgotten: it is repeated until the store has it or it means nothing any more. One thread, the loop's.
 */
typedef struct rn_member rn_member;

typedef enum rn_member_state {
    RN_MEMBER_UP = 0,
    RN_MEMBER_DEGRADED, /* the store is away; some leases are granted here */
    RN_MEMBER_DOWN,     /* it is away, and all are refused */
    RN_MEMBER_STATES,
} rn_member_state;

const char *rn_member_state_name(rn_member_state state);

/* As the config has them. */
typedef struct rn_member_settings {
    const char *url;  /* of the store */
    const char *name; /* of the fleet */
    const char *ca;   /* NULL: the system's */
    int64_t connect_us, command_us;
    int64_t backoff_us;  /* between two tries to reach it, at most; whoever is refused meanwhile comes back after it */
    int64_t local_limit; /* RATION_UNSET: none is granted while the store is away */
    int64_t lease_ttl_us, waiter_ttl_us;
    unsigned replicas;
    int64_t prefetch;        /* units that are taken at once; below 2: each request asks for itself */
    int64_t prefetch_ttl_us; /* what of them is not used goes back */
} rn_member_settings;

/* All is borrowed for the call but the loop and `ctx`. */
typedef struct rn_member_options {
    rn_loop *loop;
    const rn_member_settings *settings;
    const ration_rules *rules;
    const char *user;     /* NULL: the default user */
    const char *password; /* NULL: none */
    const char *config;   /* a hash of it, by which members see that they differ */
    const char *instance;
    uint32_t first_generation; /* of leases, as of an engine */
    void (*woken)(void *ctx);  /* there are events */
    /* It is in another state. `text` says why, if it is not up. */
    void (*changed)(void *ctx, rn_member_state state, const char *text);
    /* The store was there and did not do what it was asked: an error, of which `text` has the words, or no answer in
     * time. As often as that happens. NULL: nobody wants to know. */
    void (*failed)(void *ctx, const char *text);
    /* The salt of credentials' keys is known, or another one: to be answered from inside with `rn_member_rekey`, else
     * it comes again. NULL: no account has a credential. Where limits go by credentials nobody is asked before. */
    void (*salt_known)(void *ctx, ration_text salt);
    void *ctx;
} rn_member_options;

#define RN_MEMBER_TEXT 400

/* Could there be one of this URL and these rules, whether the store is there or not? Errors as of new. */
RATION_MUST_CHECK int rn_member_may(const char *url, const ration_rules *rules, char *fault);
/* RATION_ERR_CONFIG: the URL, or limits that are not possible in a fleet: `fault`, of RN_MEMBER_TEXT bytes, says what;
 * RATION_ERR_NOMEM; RATION_ERR_IO: the system has no random bytes. */
RATION_MUST_CHECK int rn_member_new(const rn_member_options *options, rn_member **out, char *fault);
/* Without a word to the store, whose leases lapse. NULL is fine. The loop must turn once more. */
void rn_member_free(rn_member *member);

rn_decider *rn_member_decider(rn_member *member);

/* Other rules, and what of the settings may change. Leases and waiters end by what they began with. Errors as new. */
RATION_MUST_CHECK int rn_member_reload(rn_member *member, const rn_member_options *options, char *fault);

/* Who waits for the answer to one call. Zeroed but for `told`, which is called once, perhaps from within. */
typedef struct rn_member_listener {
    struct rn_member_call *call; /* NULL: none is under way */
    rn_member *member;           /* NULL: it waits for no figures */
    TAILQ_ENTRY(rn_member_listener) link;
    void (*told)(struct rn_member_listener *listener, int err);
} rn_member_listener;

/*
 * What operators do to a counter, here and at all members: RATION_OP_PAUSE, RESUME, RESET, GRANT; ration/operate.h. The
 * listener is told as `ration_engine_pause` and its likes return; RATION_ERR_IO: the store did not answer, and it is
 * not known whether it was done. What is returned is not told: RATION_ERR_UNKNOWN, RATION_ERR_INVALID: no limit, or
 * several, by these names; RATION_ERR_NOMEM.
 */
RATION_MUST_CHECK int rn_member_operate(rn_member *member, ration_op op, const ration_counter_name *counter,
                                        int64_t units, rn_member_listener *listener);
/* It is told nothing any more. Fine at any time. */
void rn_member_forget(rn_member_listener *listener);

/* The salt that the keys of the present rules' credentials have; absent: it is not known yet. A secret. */
ration_text rn_member_salt(const rn_member *member);
/* The same rules as before but for the keys of their credentials. Errors as new: then the salt is told again. */
int rn_member_rekey(rn_member *member, const ration_rules *rules);

/*
 * Reports of counters tell what the store has told last; `name` (NULL: none in particular; its provider is not looked
 * at) should be among them. True: they are asked for, and the listener is told when an answer has come, or none. False:
 * they are fresh, or the store is away.
 */
bool rn_member_figures_want(rn_member *member, const ration_counter_name *name, rn_member_listener *listener);

/* From now on leases are renewed no more: they are lost unless they are released before. */
void rn_member_lapse(rn_member *member);

/* Take leave: what has been told to it goes to the store, as long as that answers in time; then `done`, once, never
 * from inside. */
void rn_member_leave(rn_member *member, void (*done)(void *ctx), void *ctx);

/* ---- a circuit */

typedef struct rn_member_circuit {
    ration_time at;      /* the store's clock: what is later is newer */
    uint64_t generation; /* of the same instant the higher is newer */
    ration_circuit_state state;
    ration_time retry_at; /* the loop's clock; RATION_NEVER_US: not known, or there is no need */
    int64_t checks;    /* the number of the last health check that somebody was told to make; RATION_UNSET: not told */
    ration_text cause; /* of the last change; borrowed */
} rn_member_circuit;

/* Keep an eye on the circuit that a request goes through, once: `seen` is told of every change, whoever has brought it
 * about, and about once a second where it stands; NULL: the store does not say. It has the `ctx` of the member's
 * options. RATION_ERR_UNKNOWN: there is none; RATION_ERR_NOMEM. */
RATION_MUST_CHECK int rn_member_watch(rn_member *member, const ration_request *request,
                                      void (*seen)(void *ctx, const rn_member_circuit *circuit));
/* Something may have happened to it: ask now. */
void rn_member_watch_now(rn_member *member);

/* ---- what it is in */

typedef struct rn_member_seen {
    const char *id;
    const char *instance;
    const char *config;
    int64_t heard_us; /* ago */
    bool self;
} rn_member_seen;

typedef struct rn_member_script {
    const char *name;
    uint64_t calls; /* answered */
    int64_t p50_us, p99_us;
} rn_member_script;

#define RN_MEMBER_SCRIPTS 16

/* Units of blocks, since the start: what has been taken is held, spent, returned or lost. */
typedef struct rn_member_prefetched {
    uint64_t taken;
    uint64_t spent;
    uint64_t returned;
    uint64_t lost; /* the store had forgotten who held them */
    uint64_t held;
} rn_member_prefetched;

typedef struct rn_member_status {
    rn_member_state state;
    ration_time since;
    const char *id;
    const rn_member_seen *members; /* as the last beat found them; borrowed until the next turn */
    size_t member_count;
    bool config_differs; /* of some member that is alive */
    int64_t figures_us;  /* old is what reports tell of counters; RATION_UNSET: nothing has been told yet */
    uint64_t local_leases;
    int64_t local_limit;   /* RATION_UNSET: none */
    uint64_t unavailable;  /* times that the store went away */
    uint64_t failed;       /* calls that it answered with an error, or not in time */
    uint64_t told_late;    /* calls that wait to be made again */
    uint64_t told_never;   /* calls that were given up: the store was away for too long */
    uint64_t unreplicated; /* calls that fewer replicas confirmed than `wait` says */
    rn_member_prefetched prefetched;
    const char *last_error; /* of the store; "": there was none */
    rn_member_script scripts[RN_MEMBER_SCRIPTS];
    size_t script_count;
} rn_member_status;

void rn_member_look(const rn_member *member, rn_member_status *out);

#endif
