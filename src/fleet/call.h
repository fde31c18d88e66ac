/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_CALL_H
#define RN_FLEET_CALL_H

#include "core/engine.h"
#include "fleet/pack.h"
#include "fleet/scripts.h"

/*
 * A call of a script: the keys that it may touch and what it must know. The rules of a limit travel with every call, so
 * a process with newer rules needs no other's consent.
 */

#define RN_FLEET_LAYOUT 1 /* of keys and values in the store: the number that each key has in it */
#define RN_CALL_KEYS_MAX 256
#define RN_CALL_WINDOWS_MAX 24
#define RN_CALL_LIMIT_MAX 256
#define RN_CALL_IDS_MAX 200 /* leases in one call */

/* What a script has asked for, of this limit, named as in keys: the window that holds this instant; of a share limit,
 * its rule. */
typedef struct rn_call_window {
    char limit[RN_CALL_LIMIT_MAX];
    ration_time at;
} rn_call_window;

/* Admissions, releases and responses have a short way for what is usual, that leaves all else to the whole script. */
typedef enum rn_call_path {
    RN_CALL_WHOLE = 0, /* the other two are tests': the whole script */
    RN_CALL_QUICK = 1,
    RN_CALL_ONLY = 2, /* the short way, or RN_ANSWER_UNKNOWN and nothing is done */
} rn_call_path;

typedef struct rn_call {
    const rn_book *book;
    const char *fleet;    /* its name, as keys have it */
    ration_text provider; /* of the call as it is written */
    ration_text member;   /* who calls; empty: nobody who is told of waiters or must show that it lives */
    int64_t waiter_ttl_us;
    bool tells_time; /* a test's; its keys have no end but with `keys_end` */
    bool keys_end;
    rn_call_path path;
    ration_time now; /* what the caller takes for now */
    rn_call_window windows[RN_CALL_WINDOWS_MAX];
    size_t window_count;
    rn_pack argument;
    rn_pack brief; /* what the quick path needs of it; empty: there is none */
    rn_pack bytes; /* of the keys */
    size_t ends[RN_CALL_KEYS_MAX];
    size_t key_count;
} rn_call;

/* What an admission asks beside its counters. */
typedef struct rn_call_ask {
    ration_text id;
    int64_t hold_us; /* RATION_UNSET: not declared */
    int64_t ttl_us;  /* RATION_UNSET: none */
    int64_t cost;
    int64_t wait_us; /* 0: it may not wait */
    ration_priority priority;
    ration_text tenant; /* the route's */
    int64_t weight;     /* of the tenant */
    bool retry;
    bool dry;   /* only to know */
    bool enter; /* it was granted elsewhere: take, whatever is there */
    bool again; /* with it: it was here before, and has spent what it spends */
    bool enforcer;
    bool health;   /* a health check: no circuit is in its way */
    int64_t units; /* of a block: so many times what one request takes, at most; 0: it is none */
} rn_call_ask;

/* A member shows that it is alive. */
typedef struct rn_call_beating {
    ration_text member, instance, config;
    ration_text salt; /* of credentials' keys, if there is none yet; absent: it needs none */
    bool leaves;
} rn_call_beating;

/* The end of a lease. */
typedef struct rn_call_end {
    ration_outcome outcome;
    int64_t cost;  /* RATION_UNSET: as it was charged */
    int64_t units; /* RN_SCRIPT_SETTLE: a block goes on, of which so much counts where requests are counted */
} rn_call_end;

/* Borrows book and name. */
void rn_call_init(rn_call *call, const ration_allocator *mem, const rn_book *book, const char *fleet, bool tells_time);
void rn_call_fini(rn_call *call);

/* What a health check came to. */
typedef struct rn_call_health {
    const rn_account *account;
    bool ok;
    ration_text circuit; /* that asked for it; no data: all that requests of the account go through */
    int64_t number;      /* of that circuit's checks */
} rn_call_health;

/* A counter by its name, whether anybody has asked for it here or not. */
typedef struct rn_call_counter {
    rn_counter counter;  /* its names and rules; it stands nowhere */
    rn_account *account; /* one that has the limit */
    ration_text owner;   /* the account whose own it is; absent: the provider's */
    bool known;          /* somebody has asked for it */
} rn_call_counter;

/* What an operator does to a counter. */
typedef struct rn_call_operation {
    ration_op op;        /* PAUSE, RESUME, RESET, GRANT */
    rn_call_counter *at; /* borrowed, and not changed */
    int64_t units;
} rn_call_operation;

#define RN_CALL_INSPECTED 64

/* Counters of one provider. Borrowed, and not changed. */
typedef struct rn_call_inspection {
    rn_call_counter *counters;
    size_t count; /* at least 1 */
} rn_call_inspection;

/* Each writes keys and argument anew. RATION_ERR_NOMEM; RATION_ERR_FULL: too many limits. */
int rn_call_admit(rn_call *call, const rn_route *route, const rn_call_ask *ask);
/* `said`: all that is known of the response; NULL: it is there. */
int rn_call_observe(rn_call *call, const rn_route *route, ration_text id, const ration_response *response,
                    const ration_outcome *said);
int rn_call_release(rn_call *call, const rn_route *route, ration_text id, const rn_call_end *end);
int rn_call_cancel(rn_call *call, const rn_route *route, ration_text id);
/* A renewal or a collect: of leases, and of waiters of the member, at a provider; at most RN_CALL_IDS_MAX. */
int rn_call_leases(rn_call *call, ration_text provider, const ration_text *ids, size_t count);
int rn_call_health_write(rn_call *call, const rn_call_health *health);
/* `circuit`: of which it is to be told, by its key; absent: of none. */
int rn_call_advance(rn_call *call, ration_text provider, ration_text circuit);
int rn_call_beat(rn_call *call, const rn_call_beating *beat);
/* What a share limit's counter has to tell. `account`: whose own limit it is; absent: the provider's. */
int rn_call_tenants(rn_call *call, const ration_counter_name *counter, ration_text account);
int rn_call_operate(rn_call *call, const rn_call_operation *operation);
/* What counters of one provider have to tell; at most RN_CALL_INSPECTED. */
int rn_call_inspect(rn_call *call, const rn_call_inspection *what);

/* Any of them: what it needs of this is set. */
typedef struct rn_call_what {
    rn_script_name script;
    const rn_route *route;
    ration_text id; /* of the lease; of an advance, a renewal or a collect: the provider; of tenants: the account */
    const ration_text *ids; /* a renewal, a collect: of leases at one provider */
    size_t id_count;
    ration_text circuit; /* an advance: of which it is to be told */
    const ration_counter_name *counter;
    const rn_call_ask *ask;
    const ration_response *response;
    const ration_outcome *said; /* an observation without a response; NULL: there is one */
    const rn_call_end *end;
    const rn_call_beating *beat;
    const rn_call_health *health;
    const rn_call_operation *operation;
    const rn_call_inspection *inspection;
} rn_call_what;

int rn_call_write(rn_call *call, const rn_call_what *what);

/* A channel of the provider in place of keys: `what`, and behind it `whose`, which may be empty. RATION_ERR_NOMEM. */
int rn_call_channel(rn_call *call, ration_text provider, const char *what, ration_text whose, ration_text *out);

/* The keys; room for RN_CALL_KEYS_MAX of them. */
void rn_call_keys(const rn_call *call, ration_text *keys);

/* The values of a share limit's counter that no other has. */
void rn_call_share(rn_pack *out, const rn_call *call, const rn_route_link *link, int64_t cost);
/* The limits whose ceilings follow this adaptive one, by their names in keys; false: none. */
void rn_call_followers(rn_pack *out, const rn_route_link *link);
/* Its whole rule. */
void rn_call_share_rule(rn_pack *out, const rn_limit *limit);

/* The name of a limit that applies to the account as it stands in keys. */
void rn_call_limit_name(rn_pack *out, const rn_account *account, const rn_limit *limit);
/* A name as it stands in a key: what is neither a letter, a digit, '_', '-' nor '.' is percent-encoded. */
void rn_call_name(rn_pack *out, ration_text name);

#endif
