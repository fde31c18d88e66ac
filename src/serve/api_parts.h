/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_API_PARTS_H
#define RN_SERVE_API_PARTS_H

#include <sys/queue.h>

#include "base/map.h"
#include "net/buffer.h"
#include "serve/api.h"
#include "serve/clients.h"
#include "serve/lease_name.h"
#include "serve/meant.h"
#include "serve/reply.h"
#include "serve/trace_context.h"
#include "trace/reader.h"

/* Between api.c (requests), api_lease.c (leases and those who wait for one), api_pages.c (reports), api_permit.c
 * (who may) and api_plan.c (jobs, their runs and the plan). */

#define RN_API_BODY_MAX 65536
#define RN_API_KEYS_MAX 65536 /* of leases that live, whose acquire had an Idempotency-Key */
#define RN_API_KEY_BYTES_MAX 255
#define RN_API_KEY_NAME_BYTES (sizeof(uint64_t) + RN_API_KEY_BYTES_MAX) /* with whose it is */
#define RN_API_NAME_MAX 256                                             /* bytes of a limit's or job's name */
#define RN_API_KEY_MAX 4096                                             /* more than any scope key has */
#define RN_API_SPARE_MAX 64
#define RN_API_TTL_US INT64_C(30000000)
#define RN_API_JSON "application/json"

typedef enum rn_api_lease_state {
    RN_API_WAITING = 0, /* a waiter of the decider */
    RN_API_HELD,        /* a lease, until it is released or lost */
    RN_API_LEAVING,     /* its client went, or the process ends, while an event is on the way */
    RN_API_LEASE_STATES,
} rn_api_lease_state;

typedef struct rn_api_call rn_api_call;

/* One acquire, from its submit to the end of its lease. */
typedef struct rn_api_lease {
    rn_party party;
    TAILQ_ENTRY(rn_api_lease) link;
    rn_api *api;
    rn_api_lease_state state;
    ration_lease lease;
    rn_api_call *call;   /* WAITING: who is to be answered */
    bool check;          /* nothing is wanted but the answer */
    const char *account; /* WAITING: its name; NULL: none of the config's */
    char *own_account;   /* the same, where a reload has replaced the config that it was borrowed from; else NULL */
    uint64_t owner;      /* rn_client_id of who acquired it */
    ration_time asked;
    int64_t ttl_us;
    int64_t waited_us;   /* RATION_UNSET: refused at once */
    char tenant[64];     /* as asked, cut; for those who look later */
    ration_time expires; /* HELD: lost then, if it is not renewed */
    rn_map_node by_key;
    char *key; /* Idempotency-Key; NULL: none, or forgotten */
    size_t key_size;
    uint64_t body; /* hash of what was asked under that key */
} rn_api_lease;

TAILQ_HEAD(rn_api_lease_list, rn_api_lease);

/* What the API knows of one index of the decider's. */
typedef struct rn_api_slot {
    rn_api_lease *live;  /* NULL: the lease at this index is none of the API's */
    uint32_t generation; /* of the last lease of the API here; older names are of leases that have ended */
} rn_api_slot;

/* One request whose body is read, or which waits for its lease. */
struct rn_api_call {
    TAILQ_ENTRY(rn_api_call) link;
    rn_api *api;
    rn_inbound *in;
    const struct api_operation *operation;
    const rn_client *client; /* while it is acted on: who asks; NULL: one who may claim anything */
    rn_buffer body;
    rn_api_lease *waits;      /* NULL: it does not */
    int64_t units;            /* that an operator grants */
    rn_member_listener store; /* of a fleet: who acts as an operator, or reads of counters, is answered by it */
    rn_keeper_waiter durable; /* a release that went above a mark: answered when it is written */
};

TAILQ_HEAD(rn_api_call_list, rn_api_call);

struct rn_api {
    rn_loop *loop;
    rn_decider *decider;
    rn_gateway *gateway;
    rn_planning *planning; /* NULL: there are no jobs */
    rn_member *member;     /* NULL: the limits are this process' own */
    rn_keeper *keeper;
    const rn_api_reloader *reloader;
    struct rn_api_call_list calls;
    struct rn_api_lease_list states[RN_API_LEASE_STATES];
    struct rn_api_lease_list spare; /* memory of leases that have ended, for the next; RN_API_SPARE_MAX */
    size_t spare_count;
    rn_api_slot *slots; /* by index of the lease */
    size_t slot_count;
    rn_map keys;
    rn_trace_reader reader;
    rn_output answer; /* that is being written */
};

/* ---- api.c */

/* A target without its query. */
ration_text rn_api_path(ration_text target);
/* A request that is answered later: it is its inbound's user from now on. NULL: no memory. */
rn_api_call *rn_api_call_new(rn_api *api, rn_inbound *in);
/* The call is answered, or its inbound is dead. */
void rn_api_call_end(rn_api_call *call);
/* A problem that is no refusal. `field` absent: no part of the request is at fault. */
void rn_api_reject(rn_inbound *in, int status, const char *name, const char *title, const char *detail,
                   ration_text field);
/* The body of a call cannot be read: answers and ends it. */
void rn_api_reject_body(rn_api_call *call, const rn_trace_fault *fault);
/* One result and nothing else: answers and ends the call. `ttl_us` RATION_UNSET: there is none. */
void rn_api_answer(rn_api_call *call, const char *result, int64_t ttl_us);
/* Memory or a table is short, or the decider failed in a way that no request explains. */
void rn_api_fail(rn_inbound *in, int err);

/* What was asked by POST /v1/check is known: answers and ends the call. `words` NULL: the decision's own. */
void rn_api_check_answer(rn_api_call *call, const ration_decision *decision, const char *words);

/* ---- api_lease.c */

/* Whom the decider tells what it thinks, if it does not know at once. NULL: no memory. */
rn_api_lease *rn_api_check_new(rn_api_call *call);
/* It does not: its answer comes under this handle. */
void rn_api_check_wait(rn_api_lease *lease, ration_lease handle);

/*
 * POST /v1/acquire: answered now, or when the waiter has heard. `request` is borrowed for the call; its `user` and ttl
 * are filled in. `key` absent: no Idempotency-Key.
 */
void rn_api_acquire(rn_api_call *call, ration_request *request, ration_text key, ration_text body);
/* The client of a waiting call has gone. */
void rn_api_lease_leave(rn_api_lease *lease);
/* The lease that is called so. NULL: there is none, and the call was answered 404 or 410. */
rn_api_lease *rn_api_lease_find(rn_api_call *call, ration_text name);
/* The decider knows it no more, though its event has not come yet: answers 410. */
void rn_api_lease_over(rn_api_call *call);
/* It was released. */
void rn_api_lease_forget(rn_api_lease *lease);
/* The config is about to go, from which they borrow. */
void rn_api_leases_part(rn_api *api);
/* The end of all of them. */
void rn_api_leases_end(rn_api *api);

/* ---- api_operate.c */

/* What "/v1/limits/NAME/KEY/VERB" does; RN_TRACE_BLANK: `path` is no such. */
rn_trace_op rn_api_operate_find(ration_text path);
void rn_api_operate(rn_api_call *call, rn_trace_line *asked, ration_text body);
void rn_api_operate_drain(rn_api_call *call, rn_trace_line *asked, ration_text body);

/* ---- api_reload.c */

void rn_api_reload(rn_api_call *call, rn_trace_line *asked, ration_text body);

/* ---- api_pages.c */

/* "/v1/limits/NAME/KEY" or ".../VERB", parts as they stand in it; no verb: absent. False: it is neither. */
bool rn_api_counter_split(ration_text path, ration_text *name, ration_text *key, ration_text *verb);
/* Decode both, in place; they are borrowed from the buffers then. False: one cannot be, and that was answered. */
bool rn_api_counter_decode(rn_inbound *in, ration_text *name, char name_buffer[RN_API_NAME_MAX], ration_text *key,
                           char key_buffer[RN_API_KEY_MAX]);

/* GET of `path`, which exists; `query` is what stands behind it, with its '?'. */
void rn_api_page(rn_api *api, rn_inbound *in, const rn_client *client, ration_text path, ration_text query);
bool rn_api_page_exists(ration_text path);

/* ---- api_permit.c; false: it was answered, and a call with it has ended */

/* Answer 403 `not_permitted`. `claim` NULL: of no account or tenant. */
void rn_api_forbid(rn_api *api, rn_inbound *in, const rn_claim *claim, const rn_not_permitted *why);
bool rn_api_may_operate(rn_api_call *call);
/* Is the lease this client's, or anybody's? */
bool rn_api_owns(rn_api_call *call, const rn_api_lease *lease);
/* May the client ask that? What it leaves open is filled in. */
bool rn_api_permits(rn_api_call *call, ration_request *request);
/* The words for a refusal for a name that nobody has, with the one that may have been meant; NULL: the decision's. */
const char *rn_api_explain(const rn_api_call *call, const ration_request *request, const ration_decision *refused,
                           char buffer[RN_MEANT_BYTES]);
/* May the client name this job? NULL: there is none of that name, which not everybody may know. */
bool rn_api_knows_job(rn_api *api, rn_inbound *in, const rn_client *client, const rn_job *job);

/* ---- api_plan.c */

/* POST /v1/runs. */
void rn_api_run(rn_api_call *call, ration_text body);
/* GET /v1/plan: its body. RATION_ERR_NOMEM: there is no plan. */
int rn_api_plan_write(rn_api *api, rn_output *out);
/* GET /v1/plan/jobs/NAME, percent-encoded. False: `path` is none of these. */
bool rn_api_job_split(ration_text path, ration_text *name);
void rn_api_job_page(rn_api *api, rn_inbound *in, const rn_client *client, ration_text name);

#endif
