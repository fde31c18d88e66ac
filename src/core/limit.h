/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_LIMIT_H
#define RN_CORE_LIMIT_H

/*
 * The table of limit kinds: what the engine asks of a limit, whatever its kind.
 *
 * A kind is one file and one row (`rn_kind_of`). It decides for one counter at a time and knows nothing of waiters,
 * other limits or the engine. The engine checks all counters of a request and then takes from all or from none.
 */

#include <sys/queue.h>

#include <ration/engine.h>
#include <ration/rules.h>
#include <ration/state.h>

#include "base/fault.h"
#include "base/heap.h"
#include "base/map.h"
#include "core/adaptive.h"
#include "core/alarm.h"
#include "core/bucket.h"
#include "core/penalty.h"
#include "core/queue.h"
#include "core/quota.h"
#include "core/share.h"
#include "core/slots.h"
#include "core/zone.h"

typedef struct rn_limit rn_limit;
typedef struct rn_counter rn_counter;
typedef struct rn_hold rn_hold;
typedef struct rn_kind rn_kind;
struct rn_place;
struct rn_route_link;

#define RN_NEVER_LOST INT64_MIN
#define RN_LANE_UNKNOWN UINT32_MAX /* the limit does not know the tenant or class */

/* One request as a limit sees it. */
typedef struct rn_ask {
    int64_t charge;       /* micro-units, >= 0 */
    int64_t ahead;        /* charges of the waiters before it that keep a place on this counter */
    ration_time deadline; /* how long it may wait; `now` when it may not */
    bool may_wait;
    bool retry;
    bool critical;
    bool enforcer; /* as the provider would judge it: no margin, share or reserve */
    bool when;     /* `at` of the verdict is wanted, even where it costs more than the verdict */
    bool demand;   /* an adaptive limit that may grow by this demand counts as grown */
    uint32_t lane; /* of the tenant or class, for kinds that have lanes */
    int64_t cost;
    int64_t hold_us; /* RATION_UNSET: not declared */
    int64_t left;    /* take: the largest charge of its lane that still waits short */
    uint64_t serial; /* of the request */
} rn_ask;

typedef enum rn_fit {
    RN_FIT_NOW = 0, /* there; with `ahead` > 0: it would be, but others come first, `at` says when */
    RN_FIT_SHORT,   /* missing, but it comes back by itself or by a release */
    RN_FIT_REFUSED, /* chapter 1, step 2: refuse at once, whatever the deadline */
} rn_fit;

typedef struct rn_verdict {
    rn_fit fit;
    ration_reason reason; /* unless RN_FIT_NOW with nobody ahead */
    ration_time at;       /* when asking again succeeds; RATION_NEVER_US: not known, or never */
    bool estimate;        /* `at` rests on what others declared */
    int64_t available;    /* for the explanation; RATION_UNSET: means nothing */
    int64_t capacity;
    bool nomem; /* it would be there, but there is no memory to write it down */
} rn_verdict;

/* What happens to a request that asks at a counter, for kinds that keep account of it. */
typedef enum rn_note {
    RN_NOTE_ASKED = 0, /* refused only because it may not wait */
    RN_NOTE_WAIT,      /* begins to wait, for whatever */
    RN_NOTE_SHORT,     /* keeps a place here from now on */
    RN_NOTE_FOUND,     /* is the first of its lane, was looked at and cannot take here */
    RN_NOTE_LEAVE,     /* waits no longer and gets nothing */
    RN_NOTE_GRANTED,   /* waits no longer; `take` follows */
    RN_NOTE_REFUSED,   /* was refused with `reason`, and this counter named */
} rn_note;

/* Waiters that stand in each other's way at a counter: all of them, or those of one tenant or class. */
typedef struct rn_lane {
    rn_counter *counter;
    rn_heap places; /* of waiters that have the counter in their short set, in waiting order */
    int64_t charge; /* of all of them together */
    rn_rank last;   /* none of them comes after it */
    size_t waiters; /* that may come to keep a place here, those who do included */
} rn_lane;

/* The lane of a tenant. */
typedef struct rn_tenant_lane {
    rn_lane lane;
    rn_heap charges;   /* the same places, the largest charge first */
    rn_rank rank;      /* of the first, while it is among the borrowers */
    rn_tree_node node; /* in `lanes->borrowers`, by rank; its value is what the first would have to borrow */
} rn_tenant_lane;

/* The lanes of a counter whose kind has more than one. */
typedef struct rn_lanes {
    size_t count;
    rn_tree borrowers; /* lanes of tenants whose first could borrow what it needs, were it there */
    int64_t pool_seen; /* what idle lenders could give when the borrowers were last looked at */
    bool starved;      /* one of them could go, but for the memory to write its loan down */
    bool chasing;      /* the borrowers are being looked at, one after the other; `chase` is the last one */
    rn_rank chase;
    rn_counter *leader;                 /* share: the adaptive counter whose limit is its ceiling */
    TAILQ_HEAD(, rn_counter) followers; /* adaptive: whose ceiling it is */
    rn_lane *at[];                      /* by number, made when somebody begins to wait there */
} rn_lanes;

typedef enum rn_lanes_kind {
    RN_LANES_ONE = 0, /* all waiters of a counter in one */
    RN_LANES_CLASSES, /* a few */
    RN_LANES_TENANTS, /* many; they borrow from each other */
} rn_lanes_kind;

/* What one lease holds at one counter. Lives in the lease; linked in `counter->holds` in order of grants. */
struct rn_hold {
    TAILQ_ENTRY(rn_hold) next;
    rn_counter *counter;
    int64_t charge; /* as it counts here now */
    ration_time granted_at;
    ration_time ends_at; /* the declared end; RATION_NEVER_US: none */
    uint64_t order;      /* of the grant, engine-wide, growing */
    bool retry;
    bool critical;
    bool seen; /* observed, or released with success or throttled; the engine sets it after `observe` */
    uint32_t lane;
    union {
        rn_quota_hold quota;
        rn_ceiling_hold share;
    };
};

TAILQ_HEAD(rn_hold_list, rn_hold);
TAILQ_HEAD(rn_counter_list, rn_counter);

/* What came back for one lease, as the engine has classified it. No `response`: a release without an observation. */
typedef struct rn_reply {
    const ration_response *response;
    bool rate_limited;       /* matches `errors.rateLimited` */
    bool throttled;          /* what adaptive limits take for "too many" */
    uint64_t *rejected;      /* counts header values that were ignored, RATION_TOLD_COUNT of them; NULL: nobody does */
    uint64_t *maxima;        /* counts maxima that were not known; NULL: nobody does */
    uint64_t *disagreements; /* counts windows in which the maximum is not the declared one; NULL: nobody does */
} rn_reply;

/* A limit of a provider, compiled once. */
struct rn_limit {
    const ration_limit_rule *rule; /* the engine's copy */
    const rn_kind *kind;
    const char *provider;
    uint32_t index; /* order of declaration in the provider */
    uint32_t depth; /* dimensions of its scope; [] counts as one */
    bool enforcer;
    ration_ratio reserve;
    const rn_zone *zone; /* of its window; NULL: UTC */
    union {
        rn_bucket_spec bucket;
        rn_quota_spec quota;
        rn_share_spec share;
        rn_adaptive_spec *adaptive; /* in the arena */
    } spec;
    rn_arena *arena; /* of the rules, for `prepare` */
    const ration_allocator *mem;
    rn_limit *follows;          /* share: the adaptive limit that its ceiling follows; NULL: none */
    SLIST_ENTRY(rn_limit) next; /* of those that have been prepared */
    struct rn_scope *scope;     /* how its keys are made; core/scope.h */
    uint32_t uid;               /* of all limits of the engine */
    struct rn_counter_list counters;
    int64_t counter_count;
    int64_t timeline_bytes; /* quota: that the timelines of its counters take */
};

/* The state of one limit at one scope key. */
struct rn_counter {
    /* What the kinds use. */
    rn_limit *limit;
    const ration_allocator *mem;
    ration_text key;
    ration_ratio share;     /* the smallest of the accounts that can reach it */
    ration_time started_at; /* when the engine began */
    bool unclean;           /* the process before it did not stop in order */
    ration_time lost_at;    /* when one began that was the first after such a stop; RN_NEVER_LOST: none that counts */
    bool paused;            /* by an operator */
    bool was_paused;        /* there may be a record of a pause */
    struct rn_hold_list holds;
    union {
        rn_bucket bucket;
        rn_slots slots;
        rn_quota *quota; /* a block of its own: it is large, and most counters are none */
        rn_ceiling *share;
        rn_adaptive *adaptive;
    } u;

    /* What the engine uses. */
    rn_map_node node;
    TAILQ_ENTRY(rn_counter) in_limit;
    TAILQ_HEAD(, rn_route_link) routes; /* that lead here */
    rn_penalty penalty;
    rn_alarm penalty_timer;
    rn_lane lane;       /* the only one, where the kind has no others */
    rn_lanes *lanes;    /* NULL: `lane` */
    size_t place_count; /* in all lanes */
    TAILQ_ENTRY(rn_counter) in_followers;
    TAILQ_HEAD(rn_place_list, rn_place) watchers; /* of all waiters that need it, but for the parked ones */
    struct rn_place_list parked;                  /* of those that could take everything while a penalty runs */
    size_t watcher_count;                         /* in both lists */
    uint64_t shadowed;                            /* see ration_counter_report */
    uint32_t pins;                                /* events not yet taken that name its key */
    rn_alarm wake;                                /* when the first in `places` can take by time alone */
    TAILQ_ENTRY(rn_counter) in_dirty;
    TAILQ_ENTRY(rn_counter) in_shrunk;
    TAILQ_ENTRY(rn_counter) in_growing;
    TAILQ_ENTRY(rn_counter) in_changed;
    TAILQ_ENTRY(rn_counter) in_given;
    rn_counter *successor; /* during a reload: the same under the new rules; NULL: there is none */
    bool changed;          /* since the last save */
    bool given;            /* a strict quota, since the last save that was kept */
    ration_need need;      /* of a strict quota, as it has been counted */
    bool growing;          /* demand may make it grow: to be asked before anybody is looked at */
    bool dirty;
    bool shrunk;                    /* less may be there than when its waiters were last looked at */
    int64_t watch_charge_max;       /* bound over watchers: the largest charge */
    ration_time watch_deadline_min; /* bound over watchers: the nearest deadline */
    size_t name_size;
    char *name; /* the map's key: the limit's number and the scope key */
};

/*
 * One kind. `now` never goes back. None allocates but `init`. `check` may bring the state up to `now` and changes no
 * decision; `take` is called only after `check` said RN_FIT_NOW, or for a shadow limit whatever it said (then it may
 * pass the limit).
 */
struct rn_kind {
    const char *name;
    ration_reason reason; /* when something is short */
    bool timed; /* what is short comes back by time alone, so a waiter for whom it is too late need not wait */
    rn_lanes_kind lanes;
    /* Compile `limit->rule` into `limit->spec`; RATION_ERR_CONFIG with `fault->text` and the key in `fault->path`. */
    int (*prepare)(rn_limit *limit, ration_fault *fault);
    void (*unprepare)(rn_limit *limit);                /* NULL: nothing to free */
    int (*init)(rn_counter *counter, ration_time now); /* RATION_ERR_NOMEM */
    void (*fini)(rn_counter *counter);
    void (*check)(rn_counter *counter, ration_time now, const rn_ask *ask, rn_verdict *out);
    /* `hold` is filled but for the kind's own part, and linked in `holds` only afterwards. Sets `hold->charge`. */
    void (*take)(rn_counter *counter, ration_time now, const rn_ask *ask, rn_hold *hold);
    /* The lease's charge is now known to be `charge`: give back or charge the difference. */
    void (*settle)(rn_counter *counter, ration_time now, rn_hold *hold, int64_t charge);
    /* The lease ends: what is held goes back. Last call for `hold`, which is unlinked only afterwards. */
    void (*give_back)(rn_counter *counter, ration_time now, rn_hold *hold);
    /* The earliest instant after `now` at which `ask` may fit by time alone; RATION_NEVER_US: only a call can help. */
    ration_time (*next_change)(rn_counter *counter, ration_time now, const rn_ask *ask);
    /* For every response of the lease; without one, once, at a release with success or throttled. */
    void (*observe)(rn_counter *counter, ration_time now, rn_hold *hold, const rn_reply *reply);
    void (*describe)(rn_counter *counter, ration_time now, ration_counter_report *out);
    /* Forget what was spent and learned; not what is held. */
    void (*reset)(rn_counter *counter, ration_time now);
    /* `units` more, once. NULL: they are held here and not spent, so that means nothing. RATION_ERR_RANGE: with what
     * was granted before it is more than can be counted, and nothing has changed. */
    int (*grant)(rn_counter *counter, ration_time now, int64_t units);
    /*
     * The rules have been reloaded: go on where `from` was, a counter of the same limit, scope key and kind under the
     * old ones. Nobody waits at either. Cannot fail, so what it needs `init` has made. `from` is good for nothing
     * afterwards but to be finished.
     */
    void (*carry)(rn_counter *counter, ration_time now, rn_counter *from);
    /* Then for each lease, in order of grants: `hold` is a copy of `was`, which is left alone, and linked in `holds`
     * only afterwards. */
    void (*carry_hold)(rn_counter *counter, const rn_counter *from, rn_hold *was, rn_hold *hold);
    /* It equals a fresh one, so forgetting it changes nothing. The engine itself checks holds, waiters, penalty. */
    bool (*is_fresh)(rn_counter *counter, ration_time now);

    /* What outlives the process; NULL: nothing. `parts` has room for `rn_quota_parts_max`. False: not worth keeping. */
    bool (*save)(rn_counter *counter, ration_time now, ration_part *parts, ration_record *out);
    /* Right after `init`; the record is in its ranges, and of an instant that is not after `now`. */
    void (*load)(rn_counter *counter, ration_time now, const ration_record *record);
    /* Instead of that, where there is no record; NULL: nothing. */
    void (*lose)(rn_counter *counter, ration_time now);

    /* The rest is NULL for kinds without lanes. */
    uint32_t (*lane_of)(const rn_limit *limit, ration_text tenant, ration_text class_name);
    size_t (*lane_count)(const rn_limit *limit);
    void (*note)(rn_counter *counter, ration_time now, const rn_ask *ask, rn_note what, ration_reason reason,
                 bool is_short);
    /* The rest is NULL but for adaptive limits. */
    bool (*demand)(rn_counter *counter, ration_time now, const rn_ask *ask); /* there is demand at the cap: it grew */
    int64_t (*level)(const rn_counter *counter);                             /* what it stands at, in micro-units */
};

extern const rn_kind rn_kind_rate;        /* bucket.c */
extern const rn_kind rn_kind_concurrency; /* slots.c */
extern const rn_kind rn_kind_quota;       /* quota.c */
extern const rn_kind rn_kind_share;       /* share.c */
extern const rn_kind rn_kind_adaptive;    /* adaptive.c */

/* A quota whose grants wait for a durable mark. */
static inline bool rn_limit_is_strict(const rn_limit *limit)
{
    return limit->rule->kind == RATION_KIND_QUOTA && limit->spec.quota.strict;
}

/* The row of a kind; NULL for a kind that does not exist. */
const rn_kind *rn_kind_of(ration_kind kind);

#endif
