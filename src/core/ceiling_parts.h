/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_CEILING_PARTS_H
#define RN_CORE_CEILING_PARTS_H

#include "base/heap.h"
#include "core/ceiling.h"

/* What the files of the ceiling ask of each other. Nobody else includes this. */

struct rn_tenant_name {
    rn_map_node node;
};

struct rn_slice {
    rn_tree_node by_end;        /* among the loans of its lender */
    SLIST_ENTRY(rn_slice) next; /* in its hold, or spare */
    rn_ceiling_hold *hold;
    struct rn_tenant *lender;
    int64_t units;
};
SLIST_HEAD(rn_slice_list, rn_slice);

/* What a search or an admission looks at stands together and first: of many tenants, few lines are in the cache. */
typedef struct rn_tenant {
    rn_tree_node in_pool; /* while there is something to lend */
    int64_t available;    /* what it can lend now; 0 unless it is idle */

    int64_t guarantee;
    int64_t lendable; /* what of it may be on loan at most */
    int64_t own;      /* of it, in use by its own leases */
    int64_t lent;     /* of it, on loan */
    int64_t held;     /* all units of its leases */
    rn_tree leases;   /* in order of ends */
    rn_tree loans;    /* slices of its guarantee, in order of ends */
    uint64_t lease_count;
    int64_t waiting;
    int64_t shorts;               /* of those, short of this ceiling */
    ration_time asked_at;         /* the last refusal, waiter or release: while it holds leases nobody looks */
    ration_time used_at;          /* the last release, likewise */
    TAILQ_ENTRY(rn_tenant) rests; /* while it is quiet, but not for long enough */
    uint64_t granted;
    int64_t granted_cost;
    uint32_t index;
    bool resting;
    bool idle; /* it may lend */
    bool wanting;
    bool reclaiming;
    bool touched;
    bool has_moved;

    rn_heap_node in_cooling; /* quiet for long enough, but not yet past its cooldown */
    ration_time quiet_at;    /* its key there */
    rn_heap_node in_lapses;
    ration_time lapse_at;   /* its key there: never after the instant itself */
    ration_time cool_until; /* it lends nothing before */
    int64_t wait_most;      /* the largest charge since somebody waits */
    int64_t want;           /* the largest refused charge outstanding */
    ration_time refused_at;
    ration_time reclaim_at;
    ration_time counted_at; /* up to where the deficit is known */
    int64_t deficit;        /* unit-milliseconds, and ... */
    int64_t deficit_rest;   /* ... thousand-millionths of one */
    uint64_t reclaims;
    int64_t worst_reclaim_us;

    rn_heap_node in_lenders;        /* idle, with loans */
    rn_heap_node in_over;           /* uses more than its guarantee */
    const rn_tree_node *next_lease; /* while in one of these: where a walk stands, the first ones between walks */
    const rn_tree_node *next_loan;
    SLIST_ENTRY(rn_tenant) moved; /* while a walk has moved it on */
    int64_t returned;             /* to it, by the leases that the walk has met */

    TAILQ_ENTRY(rn_tenant) touch; /* has waiters and more free units than they were told */
    rn_tree_node in_stalled;      /* refused because the ceiling itself is full; the value is the least charge */

    int64_t part;          /* its part of a split; RATION_UNSET: not known yet */
    int64_t rest;          /* what a part was rounded down by, in units of the sum of weights */
    rn_heap_node in_order; /* of a report */
    uint64_t refused[RATION_REASON_COUNT];
} rn_tenant;
TAILQ_HEAD(rn_tenant_list, rn_tenant);

/* A block of slices. They live as long as the ceiling. */
struct rn_slice_block {
    SLIST_ENTRY(rn_slice_block) next;
    rn_slice slices[];
};
SLIST_HEAD(rn_slice_blocks, rn_slice_block);

struct rn_ceiling {
    const ration_allocator *mem;
    const rn_ceiling_spec *spec;
    int64_t size;
    int64_t held;
    uint32_t count;
    rn_tenant *tenants;

    int64_t pool;       /* the sum of what is available */
    rn_tree lenders_by; /* those with something available, the largest first */
    uint32_t idle_count;
    struct rn_tenant_list quiet; /* those who rest, in order of the instants since which they do */
    rn_heap cooling;
    rn_heap lapses;  /* `freeze: wanted`: wants that end by time */
    rn_heap lenders; /* by the end of their next loan */
    rn_heap over;    /* by the end of their next lease or loan */
    struct rn_tenant_list touched;
    rn_tree stalled;

    struct rn_slice_list spare;
    size_t spare_count;
    struct rn_slice_blocks blocks;

    rn_heap order; /* for reports */
    ration_tenant_report *rows;
    uint64_t *overrun;
    size_t overrun_room;
};

/* What is free of its guarantee; negative when more is used than there is. */
static inline int64_t rn_tenant_free(const rn_tenant *tenant)
{
    return tenant->guarantee - tenant->own - tenant->lent;
}

static inline const ration_tenant_share *rn_tenant_rule(const rn_ceiling *ceiling, const rn_tenant *tenant)
{
    return &ceiling->spec->rule->tenants[tenant->index];
}

/* The struct around a node, which those who compare see as const. */
static inline void *rn_around(const void *node, size_t offset)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the address is the same, only the const goes. */
    return (void *)((uintptr_t)node - offset);
}

static inline rn_ceiling_hold *rn_hold_of_lease(const rn_tree_node *node)
{
    return rn_around(node, offsetof(rn_ceiling_hold, by_end));
}

static inline rn_slice *rn_slice_of_loan(const rn_tree_node *node)
{
    return rn_around(node, offsetof(rn_slice, by_end));
}

/* Leases in order of their ends. */
bool rn_hold_before(const rn_ceiling_hold *a, const rn_ceiling_hold *b);

/* Its own, lent or guarantee, its want or its idleness have changed: everything that follows from them. */
void rn_tenant_changed(rn_ceiling *ceiling, rn_tenant *tenant);
/* It has more free units than before, or another guarantee. */
void rn_tenant_freed(rn_ceiling *ceiling, rn_tenant *tenant);

/* ceiling_split.c */
/* Each tenant's `part`: its guarantee of the ceiling's size. */
void rn_split_guarantees(rn_ceiling *ceiling);
/* Each tenant's `part`: its weighted max-min part of what is held and wanted. `order` has room for all. */
void rn_split_demands(rn_ceiling *ceiling);

/* ceiling_pool.c */
int rn_pool_init(rn_ceiling *ceiling); /* RATION_ERR_NOMEM; `rn_pool_fini` is fine then */
void rn_pool_fini(rn_ceiling *ceiling);
/* All that changes by time alone up to `now`; every operation does this first. */
void rn_pool_advance(rn_ceiling *ceiling, ration_time now);
/* What it may have on loan at most while it is idle: what may be lent, less what it asks for itself. */
int64_t rn_pool_cap(const rn_ceiling *ceiling, const rn_tenant *tenant);
/* What it can lend has changed. */
void rn_pool_renew(rn_ceiling *ceiling, rn_tenant *tenant);
/* It is idle no longer; if it is not busy either, it rests from now on. */
void rn_pool_wake(rn_ceiling *ceiling, rn_tenant *tenant);
/* Its want will end by time, and what it keeps back with it. */
void rn_pool_lapse(rn_ceiling *ceiling, rn_tenant *tenant);
/* Forget who is idle and find it out anew: the rule has changed. */
void rn_pool_restart(rn_ceiling *ceiling);
/* Room for the slices of a loan of `units` to somebody else than `borrower`. RATION_ERR_NOMEM. */
int rn_pool_reserve(rn_ceiling *ceiling, const rn_tenant *borrower, int64_t units);
/* Write a loan down; the pool has as much. What there is no memory for, after `reserve` never anything. */
int64_t rn_pool_lend(rn_ceiling *ceiling, rn_ceiling_hold *hold, int64_t units);
/* Give back `units` of what `hold` has on loan, the last lender's first. */
void rn_pool_repay(rn_ceiling *ceiling, rn_ceiling_hold *hold, int64_t units);

/* ceiling_want.c */
/* Count the deficit up to `now` and let the want lapse if it is time. Before held, want or guarantee change. */
void rn_want_settle(rn_ceiling *ceiling, rn_tenant *tenant, ration_time now);
/* When its want lapses if nobody asks; RATION_NEVER_US: it has none, or somebody waits. */
ration_time rn_want_lapse(const rn_ceiling *ceiling, const rn_tenant *tenant);
/* It was granted something and asks for `left` from now on. */
void rn_want_served(rn_ceiling *ceiling, rn_tenant *tenant, ration_time now, int64_t left);

/* ceiling_walk.c */
int rn_walk_init(rn_ceiling *ceiling); /* RATION_ERR_NOMEM */
void rn_walk_fini(rn_ceiling *ceiling);
/* Its leases, loans or idleness have changed. */
void rn_walk_renew(rn_ceiling *ceiling, rn_tenant *tenant);

#endif
