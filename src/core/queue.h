/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_QUEUE_H
#define RN_CORE_QUEUE_H

#include <sys/queue.h>

#include <ration/engine.h>

#include "base/map.h"

/* The order among the waiters of one provider: priority, then tag, then age. Chapter 1, "Order among waiters". */

#define RN_PRIORITIES (RATION_PRIORITY_LOW + 1) /* by ration_priority; 0 is unused */

struct rn_lease;
TAILQ_HEAD(rn_lease_list, rn_lease);

/* A waiter's place in the order. Smaller goes first. */
typedef struct rn_rank {
    ration_priority priority;
    uint64_t tag;
    uint64_t serial;
} rn_rank;

bool rn_rank_before(const rn_rank *a, const rn_rank *b);

/* A tenant of one priority while it waits. */
typedef struct rn_line {
    rn_map_node node;
    struct rn_lease_list waiting; /* in order of arrival, so by growing tag */
    int64_t count;
    SLIST_ENTRY(rn_line) next_spare;
    size_t capacity; /* of `name` */
    char name[];
} rn_line;

SLIST_HEAD(rn_line_list, rn_line);

/* The waiters of one priority. */
typedef struct rn_rank_queue {
    rn_map lines;
    uint64_t virtual_time; /* V: the largest tag of a waiter granted, or of who passed one */
    int64_t count;
} rn_rank_queue;

typedef struct rn_queue {
    const ration_allocator *mem;
    bool fifo;
    rn_rank_queue of[RN_PRIORITIES];
    int64_t count;
    struct rn_line_list spare;   /* lines kept for their memory */
    struct rn_lease_list parked; /* could take everything, but a penalty runs */
} rn_queue;

void rn_queue_init(rn_queue *queue, const ration_allocator *mem, bool fifo);
void rn_queue_fini(rn_queue *queue);

/* The tag that a request of `tenant` would get. */
uint64_t rn_queue_tag(const rn_queue *queue, ration_text tenant, ration_priority priority, int64_t cost,
                      int64_t weight);

/* How many of `tenant` wait. */
int64_t rn_queue_waiting(const rn_queue *queue, ration_text tenant);

/* Room for one of the tenant to enter. RATION_ERR_NOMEM. Who has asked for it must enter, or the queue be finished. */
int rn_queue_reserve(rn_queue *queue, ration_priority priority, ration_text tenant);

/* `lease->rank` is set: let it wait. RATION_ERR_NOMEM: nothing changed. */
int rn_queue_enter(rn_queue *queue, struct rn_lease *lease, ration_text tenant);

/* It waits no longer. `granted`: its tag counts from now on. */
void rn_queue_leave(rn_queue *queue, struct rn_lease *lease, bool granted);

/* One of its rank has been granted at once and passed a waiter of its priority: its tag counts as a waiter's. */
void rn_queue_pass(rn_queue *queue, const rn_rank *rank);

#endif
