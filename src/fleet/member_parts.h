/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_MEMBER_PARTS_H
#define RN_FLEET_MEMBER_PARTS_H

#include <sys/queue.h>

#include "base/heap.h"
#include "base/map.h"
#include "fleet/answer.h"
#include "fleet/block.h"
#include "fleet/figures.h"
#include "fleet/member.h"
#include "fleet/rules.h"
#include "fleet/store.h"

/* The inside of a member, shared by the files that make it. */

#define RN_MEMBER_ID 17 /* with its NUL */
#define RN_MEMBER_SALT 32
#define RN_MEMBER_NAME 40 /* of a lease in the store: ID.INDEX.GENERATION */

/* The rules of one time. Leases and calls go by those that they began with. */
typedef struct rn_member_world {
    rn_fleet_rules rules;
    size_t refs;
    bool by_credential; /* limits or breakers go by it */
    bool salted;        /* the keys of credentials are those of the fleet */
} rn_member_world;

/* What is on its way to whoever asked. */
typedef struct rn_member_event {
    TAILQ_ENTRY(rn_member_event) link;
    struct rn_member_lease *lease; /* of which it is a part; NULL: it stands alone, ... */
    struct rn_member_world *world; /* ... and holds these, whose texts it has */
    rn_route *route;
    ration_event event;
    bool due; /* it is in the list */
} rn_member_event;

TAILQ_HEAD(rn_member_events, rn_member_event);

typedef enum rn_member_stage {
    RN_OURS_ASKING = 0, /* its admission is under way */
    RN_OURS_WAITING,    /* it waits for its turn */
    RN_OURS_HELD,       /* the store has it */
    RN_OURS_LOCAL,      /* granted while the store was away, which does not know of it yet */
    RN_OURS_PART,       /* granted here, of a block */
    RN_OURS_BLOCK,      /* no request's: a block's */
    RN_OURS_OVER,       /* its handle is dead; it is kept for its events */
    RN_OURS_STAGES,
} rn_member_stage;

typedef struct rn_member_lease {
    rn_heap_node node; /* in the member's `due`, unless OVER or there is nothing to do */
    TAILQ_ENTRY(rn_member_lease) link;
    ration_time due_at;
    rn_member_stage stage;
    ration_lease handle;
    uint64_t serial;
    void *user;
    rn_member_world *world;
    rn_route *route;
    char name[RN_MEMBER_NAME];
    rn_call_ask ask;
    ration_priority priority;
    ration_time asked_at;
    ration_time deadline; /* of its wait */
    ration_time granted_at;
    ration_time ends_at;         /* as declared; RATION_NEVER_US: not */
    ration_time expires_at;      /* in the store, at the latest */
    bool own;                    /* whoever holds it renews it; else the member does */
    bool waits;                  /* the answer has not been at once */
    bool called;                 /* a message has come before the answer that it waits */
    bool asked;                  /* the store has been asked for it, and may know it */
    int tries;                   /* of an admission whose connection broke */
    struct rn_member_call *told; /* the last that was told of it and is not answered */
    rn_member_event answer, lost;
    struct rn_member_block *block; /* BLOCK: its own; PART: of which it is; ASKING: that it waits for; else NULL */
    TAILQ_ENTRY(rn_member_lease) parked;
    bool heard; /* PART: the store knows what came of it, or need not */
} rn_member_lease;

TAILQ_HEAD(rn_member_leases, rn_member_lease);

typedef enum rn_member_block_state {
    RN_BLOCK_ASKED = 0,
    RN_BLOCK_OPEN,    /* requests are granted from it */
    RN_BLOCK_CLOSED,  /* no more are; it is held until the last of them has ended */
    RN_BLOCK_RESTING, /* there is none: the store would not give one, and is not asked again for a while */
} rn_member_block_state;

/* Units that have been taken at once for the requests of a route. See member_prefetch.c. */
typedef struct rn_member_block {
    rn_map_node node; /* in `blocks` by its route, unless CLOSED */
    rn_member_block_state state;
    bool mapped;
    bool known; /* the store has it as `settled` and `settled_cost` say */
    bool lost;  /* the store has forgotten it, and what it was charged stays */
    bool well;  /* one success has been told */
    rn_block units;
    int64_t settled, settled_cost;
    const rn_route *route;
    rn_member_lease *lease;
    struct rn_member_leases parked; /* who wait for the answer */
} rn_member_block;

typedef struct rn_member_slot {
    rn_member_lease *lease; /* NULL: free */
    uint32_t generation;    /* of the last one */
    uint32_t next_free;
} rn_member_slot;

/* A call of a script, from when it is wanted until it is answered for good. */
typedef struct rn_member_call {
    TAILQ_ENTRY(rn_member_call) link; /* in `calls` or `later` */
    struct rn_member *member;
    rn_script_name script;
    rn_member_world *world;
    rn_route *route;    /* NULL: of no request */
    ration_lease lease; /* whom the answer concerns; generation 0: nobody any more */
    char name[RN_MEMBER_NAME];
    rn_call_ask ask;
    rn_call_end end;
    ration_outcome said; /* an observation without a response: what is known of it */
    bool has_said;
    ration_response response;    /* its texts are in `block` */
    rn_call_health health;       /* so are its */
    ration_op op;                /* an operator's ... */
    ration_counter_name counter; /* ... at this counter, of `block` */
    int64_t units;
    size_t figure_count;          /* an inspection: their numbers are in `block` */
    rn_member_listener *listener; /* who waits for what it comes to; NULL: nobody (any more) */
    ration_text provider;         /* of an advance: the world's */
    ration_text circuit;          /* with it: of which it is to be told, and the name of its gate; of `block` */
    ration_text gate;
    void *block;
    struct rn_member_call *then; /* about the same lease, and to come after it */
    ration_lease *many;          /* a renewal, a collect */
    size_t many_count;
    rn_call_window *windows; /* that were asked for: RN_CALL_WINDOWS_MAX; NULL: none was */
    size_t window_count;
    ration_time wanted_at, sent_at;
    ration_time give_up; /* what was not told by then means nothing */
} rn_member_call;

TAILQ_HEAD(rn_member_calls, rn_member_call);

/* A counter, and what the store has told of it. */
typedef struct rn_member_figure {
    rn_map_node node;
    TAILQ_ENTRY(rn_member_figure) link;
    const rn_limit *limit;
    uint64_t serial;
    bool told;  /* `figures` are there */
    bool named; /* by somebody who looks; no request has asked for it here, and no account's names lead to it */
    rn_figures figures;
    ration_time told_at; /* the store's clock */
    int64_t spent;       /* micro-units, by grants that this member has heard of since */
    size_t name_size;
    char name[]; /* the number of its limit, then its key */
} rn_member_figure;

TAILQ_HEAD(rn_member_figures, rn_member_figure);

/* A circuit that requests have gone through here, and what the store has told of it. */
typedef struct rn_member_gate {
    rn_map_node node;
    TAILQ_ENTRY(rn_member_gate) link;
    bool told;
    ration_circuit_state state;
    uint64_t generation;
    ration_time retry_at;
    char cause[64];
    size_t name_size;
    char name[]; /* the provider's, a NUL, the circuit's key */
} rn_member_gate;

TAILQ_HEAD(rn_member_gates, rn_member_gate);

/* A health check that this member has been told to make. */
typedef struct rn_member_due_check {
    SLIST_ENTRY(rn_member_due_check) link;
    int64_t number;
    size_t account_size, key_size;
    char text[]; /* the account's name, then the circuit's key */
} rn_member_due_check;

SLIST_HEAD(rn_member_due_checks, rn_member_due_check);

/* On which it hears of its waiters at a provider. */
typedef struct rn_member_channel {
    SLIST_ENTRY(rn_member_channel) link;
    char *name;
} rn_member_channel;

SLIST_HEAD(rn_member_channels, rn_member_channel);

#define RN_MEMBER_BUCKETS 320

typedef struct rn_member_times {
    uint64_t calls;
    uint32_t counts[RN_MEMBER_BUCKETS]; /* eight to each doubling of microseconds */
} rn_member_times;

/* A member of the fleet as the last beat has told. */
typedef struct rn_member_peer {
    rn_member_seen seen;
    char id[RN_MEMBER_ID];
    char instance[128];
    char config[20];
} rn_member_peer;

struct rn_member {
    rn_decider base;
    ration_allocator mem;
    rn_loop *loop;
    rn_store *store;
    rn_member_settings settings; /* numbers only */
    char *fleet;                 /* its name */
    char id[RN_MEMBER_ID];
    char *instance;
    char config[20];
    void (*woken)(void *ctx);
    void (*changed)(void *ctx, rn_member_state state, const char *text);
    void (*failed_call)(void *ctx, const char *text);
    void (*salt_known)(void *ctx, ration_text salt);
    void *ctx;
    rn_member_world *world; /* the present one */
    char salt[RN_MEMBER_SALT];
    bool salted;      /* it is the fleet's, and the present rules go by it */
    rn_call call;     /* scratch: the store copies */
    int64_t ahead_us; /* of the loop's clock is the server's, by the last answer */

    rn_member_slot *slots;
    uint32_t slot_count, first_free; /* UINT32_MAX: none is */
    uint32_t first_generation;
    struct rn_member_leases stages[RN_OURS_STAGES];
    size_t stage_sizes[RN_OURS_STAGES];
    rn_heap due;
    struct rn_member_events events;
    rn_member_event *taken; /* whose texts are borrowed until the next is taken */
    rn_map blocks;
    rn_member_prefetched prefetched;
    struct rn_member_channels channels;
    struct rn_member_due_checks checks;
    struct {
        rn_member_world *world; /* held, as is the route; NULL: none is watched */
        rn_route *route;
        void (*seen)(void *ctx, const rn_member_circuit *circuit);
        bool asked, again; /* a call is out; something has happened since */
    } watch;
    struct rn_member_calls calls, later;
    size_t call_count, later_count;
    rn_timer again; /* the calls of `later` */

    rn_map figures; /* of counters, by limit and key */
    struct rn_member_figures figures_used;
    TAILQ_HEAD(, rn_member_listener) listeners; /* who wait for the figures asked for last, or next */
    uint64_t figure_serial;
    rn_map gates; /* circuits, by provider and key */
    struct rn_member_gates gates_used;
    size_t asked_out;
    ration_time figures_at, figures_asked_at, looked_at;

    rn_timer beat;
    bool beating;
    enum { RN_LEAVES_NOT = 0, RN_LEAVES_SOON, RN_LEAVES_TOLD } leaves;
    ration_time beat_sent_at;
    rn_member_peer *peers;
    rn_member_seen *seen;
    size_t peer_count;
    rn_member_state state;
    bool state_told;
    ration_time since;
    uint64_t unavailable, failed, told_never;
    char last_error[RN_STORE_TEXT];
    bool draining;
    bool lapses; /* leases are renewed no more */
    void (*left)(void *ctx);
    void *left_ctx;
    rn_deferred leave;
    uint64_t random;
    uint64_t serial;
    ration_totals totals;
    rn_member_times times[RN_SCRIPT_COUNT];
};

/* ---- member.c */

ration_time rn_member_now(const rn_member *m);
/* Up to `span_us`, never the same. */
int64_t rn_member_jitter(rn_member *m, int64_t span_us);
/* If it wants to leave and nothing is out any more, it does. */
void rn_member_leave_look(rn_member *m);
void rn_member_hold(rn_member_world *world);
void rn_member_unhold(rn_member *m, rn_member_world *world);
/* Other rules from now on. Errors as of a reload. */
int rn_member_rules(rn_member *m, const ration_rules *rules, char *fault);
/* The store is there, or what was missing: it is up, and tells what is to be told. */
void rn_member_came_back(rn_member *m);
/* An instant of the server's, as the loop's clock has it. */
ration_time rn_member_local(const rn_member *m, ration_time at);

/* ---- member_lease.c */

/* NULL with RATION_ERR_FULL or RATION_ERR_NOMEM. Takes the reference to `route`. */
int rn_member_lease_new(rn_member *m, rn_route *route, const ration_request *request, const rn_call_ask *ask,
                        rn_member_lease **out);
rn_member_lease *rn_member_lease_find(const rn_member *m, ration_lease handle); /* NULL: it is over */
rn_member_lease *rn_member_lease_named(const rn_member *m, ration_text name);   /* of ours, and not over */
void rn_member_lease_enter(rn_member *m, rn_member_lease *lease, rn_member_stage stage);
/* When it is to be looked at; RATION_NEVER_US: not by time. */
void rn_member_lease_due(rn_member *m, rn_member_lease *lease, ration_time at);
/* Its handle dies. It is freed with its last event. */
void rn_member_lease_end(rn_member *m, rn_member_lease *lease);
void rn_member_lease_free(rn_member *m, rn_member_lease *lease);
/* The time to live begins anew, in the store too if it has been told. */
void rn_member_lease_alive(rn_member *m, rn_member_lease *lease);

/* Its answer, or its loss, goes to whoever asked. */
void rn_member_tell_granted(rn_member *m, rn_member_lease *lease);
void rn_member_tell_refused(rn_member *m, rn_member_lease *lease, const ration_decision *decision);
void rn_member_tell_lost(rn_member *m, rn_member_lease *lease);
/* What an answer tells of a limit of its route. Without memory it is not told. */
void rn_member_tell_limit(rn_member *m, rn_member_world *world, rn_route *route, const rn_fleet_event *what);
/* An event that stands alone goes on its way: `event->world` is held for it, `event->route` if there is one. */
void rn_member_tell(rn_member *m, rn_member_event *event);
void rn_member_events_fini(rn_member *m);
bool rn_member_next_event(rn_decider *d, ration_event *out);

/* ---- member_call.c */

/* A call with a response, whose texts it copies, about a lease; NULL: no memory. */
rn_member_call *rn_member_call_response(rn_member *m, const rn_member_lease *lease, const ration_response *response,
                                        bool with_body);
/* A call about a lease, or none; it is the caller's to send. NULL: no memory. */
rn_member_call *rn_member_call_new(rn_member *m, rn_script_name script, const rn_member_lease *lease);
rn_member_call *rn_member_call_plain(rn_member *m, rn_script_name script, rn_member_world *world);
/* About some leases at the first one's provider, and sent; without memory it is not. */
void rn_member_call_many(rn_member *m, rn_script_name script, const rn_member_lease *first, const ration_lease *leases,
                         size_t count);
/* The scratch is for a call by these rules. */
void rn_member_call_for(rn_member *m, const rn_member_world *world);
/* Sent now, or, where the store is away or refuses, later. It frees itself. */
void rn_member_call_send(rn_member *m, rn_member_call *call);
void rn_member_call_free(rn_member_call *call);
/* What waits to be told is told. */
void rn_member_call_flush(rn_member *m);
void rn_member_calls_init(rn_member *m);
void rn_member_calls_fini(rn_member *m);

/* ---- member_ask.c */

int rn_member_submit(rn_decider *d, ration_time now, const ration_request *request, ration_decision *out);
int rn_member_check(rn_decider *d, ration_time now, const ration_request *request, ration_check_mode mode,
                    ration_decision *out);
/* There is no answer from the store: this process says what it says by itself. False: it is refused. */
bool rn_member_alone(rn_member *m, rn_member_lease *lease);
/* Ask the store for it. False: no memory. */
bool rn_member_ask(rn_member *m, rn_member_lease *lease);
/* Somebody who waited was granted or refused: if it is ours, it hears of it. */
void rn_member_heard(rn_member *m, const rn_fleet_event *event);
/* The answer to an admission; `reply` NULL: there is none. */
void rn_member_admitted(rn_member *m, rn_member_call *call, const redisReply *reply);
/* The store is away: what this process says by itself. */
void rn_member_decide(rn_member *m, rn_member_lease *lease, ration_decision *out);
/* Its time has come. True: the store is to be asked what has come of it. */
bool rn_member_wait_due(rn_member *m, rn_member_lease *lease, ration_time now);
/* What has come of those that a collect has asked for. */
void rn_member_collected(rn_member *m, const rn_member_call *call, const redisReply *reply);
/* The store is back, or has forgotten them: leases that are held here become known there. */
void rn_member_enter_all(rn_member *m);
void rn_member_enter(rn_member *m, rn_member_lease *lease);

/* ---- member_prefetch.c */

typedef enum rn_member_served {
    RN_SERVED_NOT = 0, /* the store is to be asked */
    RN_SERVED_PARKED,  /* it will be served when the block is there */
    RN_SERVED_GRANTED,
} rn_member_served;

/* A new request, from a block if it may be. */
rn_member_served rn_member_block_serve(rn_member *m, rn_member_lease *lease);
/* The store's answer to a block; NULL: there is none. */
void rn_member_block_answered(rn_member *m, const rn_member_call *call, const redisReply *reply);
/* What came of a PART's call: a response; its end. RATION_ERR_NOMEM. */
int rn_member_block_observe(rn_member *m, rn_member_lease *lease, const ration_response *response);
void rn_member_block_release(rn_member *m, rn_member_lease *lease, const ration_completion *how);
/* A lease is none of its block any more; nothing where it has none. */
void rn_member_block_leave(rn_member *m, rn_member_lease *lease);
/* The block's time has come. True: its lease is to be renewed. */
bool rn_member_block_due(rn_member *m, rn_member_lease *lease);
/* The store has lost it. */
void rn_member_block_lost(rn_member *m, rn_member_lease *lease);
/* The store is back: blocks are entered, and are spent no further. */
void rn_member_blocks_enter(rn_member *m);
/* What is not spent goes back: other rules, or the end. */
void rn_member_blocks_close(rn_member *m);
void rn_member_blocks_init(rn_member *m);
void rn_member_blocks_fini(rn_member *m);

/* ---- member_circuit.c */

/* A breaker has changed, or a health check is due that this member is to make. Without memory it is not told. */
void rn_member_tell_circuit(rn_member *m, rn_member_world *world, const rn_fleet_event *what);
int rn_member_health(rn_decider *d, ration_time now, ration_text account, bool ok);
/* Let time pass where health checks fall due. */
void rn_member_circuits_advance(rn_member *m);
void rn_member_circuits_fini(rn_member *m);

/* ---- member_operate.c */

/* The counter of that name. Errors as of rn_fleet_rules_counter. */
int rn_member_counter(const rn_member_world *world, const ration_counter_name *name, rn_call_counter *out);
/* What the call has come to, if anybody waits for that: once. */
void rn_member_call_tell(rn_member_call *call, int err);
/* What a reset has done to an adaptive limit. Without memory it is not told. */
void rn_member_tell_reset(rn_member *m, const rn_member_call *call, const rn_fleet_event *what);

/* ---- member_inspect.c */

void rn_member_figures_init(rn_member *m);
void rn_member_figures_fini(rn_member *m);
/* The rules are others: those of before are still there. */
void rn_member_figures_reload(rn_member *m);
/* A request asks for these counters. */
void rn_member_figures_touch(rn_member *m, const rn_route *route);
/* What is known of a counter; NULL: it is not among those that are asked for. The second: of the present rules. */
rn_member_figure *rn_member_figure_of(const rn_member *m, const rn_counter *counter);
/* Of a counter of any rules: that of the present ones which has its provider, limit and key. */
rn_member_figure *rn_member_figure_like(const rn_member *m, const rn_counter *counter);
const rn_member_figure *rn_member_figure_named(const rn_member *m, const char *limit, ration_text key);
void rn_member_figures_beat(rn_member *m);
void rn_member_figures_report(rn_member *m, const ration_reporter *reporter);
/* Write the call into the scratch. */
int rn_member_inspect_write(rn_member *m, const rn_member_call *call);
/* Its answer; NULL: there is none. */
void rn_member_inspected(rn_member *m, const rn_member_call *call, const redisReply *reply);

/* The round of questions has one answer less to wait for. */
void rn_member_round_answered(rn_member *m);

/* ---- member_gates.c */

void rn_member_gates_init(rn_member *m);
void rn_member_gates_fini(rn_member *m);
/* A request goes through this circuit, if there is one. */
void rn_member_gates_touch(rn_member *m, const rn_route *route);
/* Of all of them, in the present round. */
void rn_member_gates_ask(rn_member *m);
/* The answer about one; NULL: there is none. */
void rn_member_gate_told(rn_member *m, const rn_member_call *call, const redisReply *reply);
void rn_member_gates_report(const rn_member *m, const ration_reporter *reporter);

/* ---- member_watch.c */

/* Where a circuit stands, by the answer to an advance that asks for it; `out->cause` is the answer's. */
void rn_member_circuit_read(const rn_member *m, const redisReply *reply, rn_member_circuit *out);

/* The answer to a call that asks for the circuit that is watched; NULL: there is none. */
void rn_member_watched(rn_member *m, const redisReply *reply);
void rn_member_watch_fini(rn_member *m);

/* ---- member_channel.c */

/* Listen at all providers of the present rules. Where that is not possible waiters are heard of all the same, later. */
void rn_member_listen(rn_member *m);
/* At one channel of a provider (`rn_call_channel`); the scratch is for its rules. `message` has the member. */
void rn_member_listen_at(rn_member *m, ration_text provider, const char *what, ration_text whose,
                         rn_store_message *message);
void rn_member_channels_fini(rn_member *m);

/* ---- member_salt.c */

bool rn_member_salt_init(rn_member *m); /* false: there are no random bytes */
void rn_member_salt_fini(rn_member *m);
bool rn_member_goes_by_credential(rn_book *book);
/* Its rules go by credentials, and their keys are not known yet. */
bool rn_member_lacks_salt(const rn_member *m);
/* The store cannot be asked now. */
bool rn_member_is_away(const rn_member *m);
/* What a beat brings; absent: nothing. */
ration_text rn_member_salt_beat(const rn_member *m);
/* What the store has answered: an array of it, or of nothing. */
void rn_member_salt_take(rn_member *m, const redisReply *salt);

/* ---- member_beat.c */

void rn_member_beat_init(rn_member *m);
void rn_member_beat_now(rn_member *m);
int rn_member_beat_start(rn_member *m); /* RATION_ERR_NOMEM */
void rn_member_beat_fini(rn_member *m);
/* Take leave of the others. */
void rn_member_beat_leave(rn_member *m);

/* ---- member_times.c */

void rn_member_times_add(rn_member_times *times, int64_t us);
int64_t rn_member_times_percentile(const rn_member_times *times, int percent);

/* ---- member_standing.c */

size_t rn_member_standing(rn_decider *d, ration_lease handle, const ration_decision *refused, rn_standing *out,
                          size_t max);
/* The store has granted it, or a block for so many of its likes. */
void rn_member_spent(rn_member *m, const rn_member_lease *lease, int64_t units);

#endif
