/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_PROVIDER_PARTS_H
#define RN_SIMULATE_PROVIDER_PARTS_H

#include <sys/queue.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/units.h"
#include "simulate/answer.h"
#include "simulate/chat.h"
#include "simulate/enforcer.h"
#include "simulate/provider.h"
#include "trace/output.h"

/* The simulated provider's own parts. Private to provider.c, provider_chat.c, provider_counts.c. */

#define RN_SIM_QUOTAS_MAX 16
#define RN_SIM_BODY_MAX ((size_t)4 << 20)
#define RN_SIM_CONTROL "/__ration/"

typedef struct rn_sim_client {
    rn_map_node node;
    uint64_t hash;
    char name[32];
    ration_text account; /* whose credential it is; absent: nobody's in the config */
    rn_simulator_counts counts;
} rn_sim_client;

typedef struct rn_sim_exchange {
    LIST_ENTRY(rn_sim_exchange) next;
    rn_simulator *sim;
    rn_inbound *in;
    rn_sim_client *client;
    rn_timer timer;
    rn_judgement judgement;
    uint64_t ordinal; /* among all that arrived, from 0 */
    int status;
    int64_t body_bytes;
    bool read;        /* the request, to its end */
    bool ripe;        /* its latency is over */
    ration_text path; /* borrowed from the request */

    /* A chat. */
    rn_output body;    /* of the request, until it has been read */
    rn_chat chat;      /* answer_tokens 0: not let in */
    int64_t event;     /* of its stream, the next one */
    int64_t event_us;  /* between two of them */
    int64_t created_s; /* what its answer says */
} rn_sim_exchange;

struct rn_simulator {
    rn_simulator_options options;
    const ration_allocator *mem;
    const ration_provider_rule *rule;
    rn_loop *loop;
    rn_server *server;
    rn_enforcer *enforcer;
    ration_time start;
    LIST_HEAD(, rn_sim_exchange) exchanges;
    rn_simulator_counts counts;
    uint64_t causes[RATION_REASON_COUNT]; /* of refusals; at RATION_REASON_NONE: the hidden ceiling's */
    uint64_t in_flight;
    uint64_t peak_in_flight;
    rn_capacity_meter meter;
    rn_map clients;

    /* The other client makes the latest call over again. */
    rn_timer external_timer;
    int64_t external_next;
    uint64_t external_spent, external_refused;
    bool external_ready;
    rn_arrival external;
    char *external_text; /* owns its texts */
};

/* In all, and for this client. */
#define RN_SIM_COUNT(x, what, count)                                                                                   \
    do {                                                                                                               \
        (x)->sim->counts.what += (count);                                                                              \
        (x)->client->counts.what += (count);                                                                           \
    } while (0)

/* ---- provider.c */

rn_sim_client *rn_sim_client_of(rn_map_node *node);
ration_time rn_sim_now(const rn_simulator *sim);
int64_t rn_sim_since_start(const rn_simulator *sim, ration_time now);
/* Answer. What could not be written whole is no answer. */
void rn_sim_respond(rn_inbound *in, int status, rn_answer *answer, const char *type, ration_text body);
/* The same with JSON, which is freed. */
void rn_sim_respond_json(rn_inbound *in, int status, rn_answer *answer, rn_output *json);
void rn_sim_respond_error(rn_inbound *in, int status, rn_answer *answer, const char *code, const char *message);
rn_output rn_sim_json_begin(void);
/* Let it in, or not. */
int rn_sim_judge(rn_sim_exchange *x, bool has_cost, int64_t cost);
/* It is over for the provider, whether or not anybody hears of it. */
void rn_sim_exchange_end(rn_sim_exchange *x);
void rn_sim_exchange_free(rn_sim_exchange *x);
/* The quota fields of what it called. */
void rn_sim_quotas(const rn_sim_exchange *x, rn_answer *answer);
/* Something of ours failed: it is answered, and over. */
void rn_sim_exchange_fail(rn_sim_exchange *x, int err);

/* ---- provider_chat.c: --shape openai */

/* A part of the request's body. */
void rn_sim_chat_feed(rn_sim_exchange *x, ration_text bytes);
/* All of it is there: judge the call, or answer what is wrong with it. False: it is over. */
bool rn_sim_chat_begin(rn_sim_exchange *x);
/* Answer a call that was judged, and whose time has come; a stream then goes on by its timer. */
void rn_sim_chat_answer(rn_sim_exchange *x);
/* The next event of its stream is due. */
void rn_sim_chat_stream(rn_sim_exchange *x);

/* ---- provider_counts.c */

/* A request of the simulator's own, below RN_SIM_CONTROL. */
void rn_sim_control(rn_simulator *sim, rn_inbound *in, const rn_http_head *head);

#endif
