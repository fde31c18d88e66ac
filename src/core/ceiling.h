/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_CEILING_H
#define RN_CORE_CEILING_H

#include <sys/queue.h>

#include <ration/engine.h>
#include <ration/rules.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/tree.h"

/*
 * One ceiling across tenants: guarantees, loans, wants, reclaims, deficits. Chapter 2. Knows nothing of limits, queues
 * or engines: `share.c` makes a limit kind of it, `ceiling_alone.c` the public door.
 *
 * Tenants are numbers in order of declaration. `now` never goes back.
 */

#define RN_TENANT_NONE UINT32_MAX

/* A rule, checked and compiled: what all ceilings of one limit share. Immutable. */
typedef struct rn_ceiling_spec {
    const ration_share_rule *rule; /* borrowed, outlives the spec */
    struct rn_tenant_name *names;
    rn_map by_name;
    uint32_t count;
    uint32_t unknown; /* what callers without a known tenant count as; RN_TENANT_NONE: they are refused */
    uint64_t digest;  /* of the whole rule: two that have the same are the same */
} rn_ceiling_spec;

/* RATION_ERR_CONFIG with `fault->path` (a key below the rule, as in the config: "tenants.acme", "idleAfter") and
 * `fault->text`; RATION_ERR_NOMEM. On error there is nothing to free. */
int rn_ceiling_spec_init(rn_ceiling_spec *spec, const ration_allocator *mem, const ration_share_rule *rule,
                         ration_fault *fault);
void rn_ceiling_spec_fini(rn_ceiling_spec *spec);
/* The tenant that a name counts as; RN_TENANT_NONE: unknown. An absent name is unknown. */
uint32_t rn_ceiling_spec_find(const rn_ceiling_spec *spec, ration_text name);

typedef struct rn_ceiling rn_ceiling;
typedef struct rn_slice rn_slice; /* units that one lease has on loan from one lender */

/* What one lease holds. Lives in the lease; its address is its name among those that block. */
typedef struct rn_ceiling_hold {
    rn_tree_node by_end; /* among the leases of its tenant */
    uint32_t tenant;
    int64_t charge;
    int64_t own; /* of it from the tenant's own guarantee; the rest are slices */
    ration_time ends_at;
    uint64_t serial; /* what reports call it */
    SLIST_HEAD(, rn_slice) slices;
} rn_ceiling_hold;

/* One request as the ceiling sees it. */
typedef struct rn_ceiling_ask {
    uint32_t tenant; /* not RN_TENANT_NONE */
    int64_t charge;  /* micro-units */
    int64_t cost;    /* for the fairness report; the charge when it counts cost */
    int64_t hold_us; /* RATION_UNSET or RATION_FOREVER_US: not declared */
} rn_ceiling_ask;

typedef struct rn_ceiling_verdict {
    ration_reason reason; /* RATION_REASON_NONE: there */
    bool hopeless;        /* no wait helps */
    bool nomem;           /* it would be there, but there is no memory to write the loan down */
} rn_ceiling_verdict;

/* Where the time of a refusal rests on, and who is in the way. */
typedef struct rn_ceiling_when {
    ration_time at; /* RATION_NEVER_US: not known */
    /* Called for each lease that blocks (`guarantee_on_loan`), in order of their ends. NULL: nobody asks. */
    void (*blocking)(void *ctx, rn_ceiling_hold *hold);
    void *ctx;
} rn_ceiling_when;

int rn_ceiling_new(const ration_allocator *mem, const rn_ceiling_spec *spec, int64_t size, ration_time started_at,
                   rn_ceiling **out);
void rn_ceiling_free(rn_ceiling *ceiling); /* forgets its holds; NULL is fine */

/* Could it be granted now? Steps 1 to 5 of the chapter; changes nothing that anybody can see. Makes room for the slices
 * that a loan would need, so that `take` cannot fail. O(log tenants) amortised. */
void rn_ceiling_check(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, rn_ceiling_verdict *out);
/* The time to retry of what `check` refused with `reason`. O(leases that it rests on). */
void rn_ceiling_when_free(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, ration_reason reason,
                          rn_ceiling_when *when);

/*
 * Take. After `check` said that it is there; if it did not, or nobody asked (a shadow limit), what is missing or cannot
 * be written down is the tenant's own.
 * It ends, by declaration, after its hold. `left` is the largest charge of the tenant's requests that still wait short:
 * its want from now on. No two leases have the same `serial`.
 */
void rn_ceiling_take(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, uint64_t serial, int64_t left,
                     rn_ceiling_hold *hold);
/* The charge is now known to be `actual`: what is less goes back, loans first; what is more is the tenant's own. */
void rn_ceiling_settle(rn_ceiling *ceiling, ration_time now, rn_ceiling_hold *hold, int64_t actual);
void rn_ceiling_give_back(rn_ceiling *ceiling, ration_time now, rn_ceiling_hold *hold);

/* It has asked and was refused because it may not wait; `reason` as of `check`, RATION_REASON_NONE: something else was
 * short, or others come before it. `is_short`: it counts as short of this ceiling. */
void rn_ceiling_asked(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, ration_reason reason,
                      bool is_short);
/* It begins to wait (for whatever), and so asks until it leaves. */
void rn_ceiling_wait(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask);
/* One that waits has become short of this ceiling. */
void rn_ceiling_short(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask);
/* The first of the tenant's waiters has been looked at and is refused with `reason`. */
void rn_ceiling_found(rn_ceiling *ceiling, ration_time now, uint32_t tenant, ration_reason reason);
/* It waits no longer. `was_short`: `rn_ceiling_short` was said of it. If it was granted, `take` follows. */
void rn_ceiling_leave(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, bool was_short, bool granted);
/* A request of the tenant was refused for good, and this ceiling named. */
void rn_ceiling_refused(rn_ceiling *ceiling, uint32_t tenant, ration_reason reason);

/* Whom to look at again: a tenant with waiters whose free units have grown, or whose guarantee has moved, since it was
 * last returned here, one at a time; RN_TENANT_NONE: no more. */
uint32_t rn_ceiling_touched(rn_ceiling *ceiling);
/* What idle lenders can give at `now`, all together. */
int64_t rn_ceiling_pool(rn_ceiling *ceiling, ration_time now);
/* What the request would have to borrow; 0: nothing; RATION_FOREVER_US: it cannot borrow (its hold is too long), or it
 * waits for what is over the ceiling to drain, and is told of that by `touched`. */
int64_t rn_ceiling_need(rn_ceiling *ceiling, const rn_ceiling_ask *ask);
/* The earliest instant after `now` at which the pool may grow by time alone. */
ration_time rn_ceiling_pool_change(rn_ceiling *ceiling, ration_time now);

/* Another size: guarantees are split anew, nobody is preempted. For `follows`. */
void rn_ceiling_resize(rn_ceiling *ceiling, ration_time now, int64_t size);
/* Other weights. Same tenants in the same order. RATION_ERR_INVALID otherwise. `spec` outlives the ceiling. */
int rn_ceiling_reweight(rn_ceiling *ceiling, ration_time now, const rn_ceiling_spec *spec, int64_t size);

int64_t rn_ceiling_size(const rn_ceiling *ceiling);
/*
 * Everything of `from`, by the names of tenants, into a new ceiling; nobody waits at either. Leases of a tenant that is
 * gone are those of the one that unknown callers count as, or end without it (`tenant` RN_TENANT_NONE). Loans of a
 * lender that is gone are the borrower's own. `from` is good for nothing afterwards but to be freed.
 */
void rn_ceiling_carry(rn_ceiling *ceiling, ration_time now, rn_ceiling *from);
/* A lease's hold has moved: `to` is a copy of it. */
void rn_ceiling_move(rn_ceiling *ceiling, rn_ceiling_hold *from, rn_ceiling_hold *to);

/* Wants, reclaims, deficits and what reports add up begin anew; what waiters want, leases and loans stay. */
void rn_ceiling_forget(rn_ceiling *ceiling, ration_time now);

/* Nothing held, nothing wanted, everything as new but for the reports. */
bool rn_ceiling_is_fresh(rn_ceiling *ceiling, ration_time now);

/* The numbers behind a refusal. */
void rn_ceiling_facts(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, ration_facts *out);

/* Reports: fill `counter->tenants`, `overrun` and what goes with them; both arrays are the ceiling's, good until the
 * next call. RATION_ERR_NOMEM. */
int rn_ceiling_stats(rn_ceiling *ceiling, ration_time now, ration_counter_report *out);
int rn_ceiling_shares(rn_ceiling *ceiling, ration_time now, ration_share_report *out); /* fairness and allocation */

#endif
