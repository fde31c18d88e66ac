/* SPDX-License-Identifier: MIT */

/*
 * Start-time fair queueing by tenant within each priority.
 *
 * A request that begins to wait gets the tag max(V, last tag of its tenant) + ceil(cost / weight): a tenant with many
 * waiters, or dear ones, runs ahead of V and others come before it. V is the largest tag of a waiter granted; the last
 * tag of a tenant is the largest of those granted or still waiting, so one that was refused or gave up does not count.
 * Tags saturate, then age decides.
 *
 * A newcomer may go before a waiter with a larger tag and need not wait for it. V grows with it all the same: else an
 * endless stream of cheap newcomers would pass a dear waiter for ever (decision 0008).
 *
 * A tag granted is never above V, so max(V, last tag) asks only for those who still wait: a tenant that does not wait
 * is forgotten. When nobody of a priority waits, V is forgotten too, which changes no later order and keeps the tags
 * small.
 *
 * Invariant: the waiters of one tenant and priority are in order of arrival, hence of growing tags.
 */

#include "core/queue.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/lease.h"

bool rn_rank_before(const rn_rank *a, const rn_rank *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->tag != b->tag)
        return a->tag < b->tag;
    return a->serial < b->serial;
}

void rn_queue_init(rn_queue *queue, const ration_allocator *mem, bool fifo)
{
    *queue = (rn_queue){.mem = mem, .fifo = fifo};
    for (size_t i = 0; i < RN_PRIORITIES; i++)
        rn_map_init(&queue->of[i].lines, mem);
    SLIST_INIT(&queue->spare);
    TAILQ_INIT(&queue->parked);
}

static void line_drop(rn_queue *queue, rn_rank_queue *of, rn_line *line)
{
    rn_map_remove(&of->lines, &line->node);
    SLIST_INSERT_HEAD(&queue->spare, line, next_spare);
}

void rn_queue_fini(rn_queue *queue)
{
    rn_line *line;

    for (size_t i = 0; i < RN_PRIORITIES; i++) {
        rn_map_node *node;

        while ((node = rn_map_first(&queue->of[i].lines)) != NULL)
            line_drop(queue, &queue->of[i], (rn_line *)(void *)node);
        rn_map_fini(&queue->of[i].lines);
    }
    while ((line = SLIST_FIRST(&queue->spare)) != NULL) {
        SLIST_REMOVE_HEAD(&queue->spare, next_spare);
        rn_mem_free(queue->mem, line);
    }
}

static rn_line *line_find(const rn_rank_queue *of, ration_text tenant)
{
    return (rn_line *)(void *)rn_map_find(&of->lines, tenant.size > 0 ? tenant.data : "", tenant.size);
}

uint64_t rn_queue_tag(const rn_queue *queue, ration_text tenant, ration_priority priority, int64_t cost, int64_t weight)
{
    if (queue->fifo)
        return 0;

    const rn_rank_queue *of = &queue->of[priority];
    const rn_line *line = of->count > 0 ? line_find(of, tenant) : NULL;
    uint64_t last = of->virtual_time;

    if (line != NULL && line->count > 0 && TAILQ_LAST(&line->waiting, rn_lease_list)->rank.tag > last)
        last = TAILQ_LAST(&line->waiting, rn_lease_list)->rank.tag;

    const uint64_t step = (uint64_t)rn_div_ceil(cost, weight);

    return last > UINT64_MAX - step ? UINT64_MAX : last + step;
}

int64_t rn_queue_waiting(const rn_queue *queue, ration_text tenant)
{
    int64_t count = 0;

    for (size_t i = 0; i < RN_PRIORITIES; i++) {
        const rn_line *line = queue->of[i].count > 0 ? line_find(&queue->of[i], tenant) : NULL;

        count += line == NULL ? 0 : line->count;
    }
    return count;
}

/* A line with room for the name, a spare one if it will do. */
static rn_line *line_make(rn_queue *queue, size_t name_size)
{
    rn_line *line = SLIST_FIRST(&queue->spare);
    size_t capacity = name_size < 32 ? 32 : name_size;

    if (line != NULL) {
        SLIST_REMOVE_HEAD(&queue->spare, next_spare);
        if (line->capacity >= name_size) {
            capacity = line->capacity;
        } else {
            rn_mem_free(queue->mem, line);
            line = NULL;
        }
    }
    if (line == NULL)
        line = rn_mem_alloc(queue->mem, sizeof *line + capacity);
    if (line != NULL)
        *line = (rn_line){.capacity = capacity};
    return line;
}

static rn_line *line_new(rn_queue *queue, rn_rank_queue *of, ration_text tenant)
{
    rn_line *line = line_make(queue, tenant.size);

    if (line == NULL)
        return NULL;
    TAILQ_INIT(&line->waiting);
    if (tenant.size > 0)
        memcpy(line->name, tenant.data, tenant.size);
    if (rn_map_add(&of->lines, &line->node, line->name, tenant.size) != RATION_OK) {
        rn_mem_free(queue->mem, line);
        return NULL;
    }
    return line;
}

int rn_queue_reserve(rn_queue *queue, ration_priority priority, ration_text tenant)
{
    rn_rank_queue *of = &queue->of[priority];

    return line_find(of, tenant) != NULL || line_new(queue, of, tenant) != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

int rn_queue_enter(rn_queue *queue, rn_lease *lease, ration_text tenant)
{
    rn_rank_queue *of = &queue->of[lease->rank.priority];
    rn_line *line = line_find(of, tenant);

    if (line == NULL)
        line = line_new(queue, of, tenant);
    if (line == NULL)
        return RATION_ERR_NOMEM;

    lease->line = line;
    /* Lines that a reload has made one may bring a later one with a smaller tag: it comes after all the same. */
    if (line->count > 0 && TAILQ_LAST(&line->waiting, rn_lease_list)->rank.tag > lease->rank.tag)
        lease->rank.tag = TAILQ_LAST(&line->waiting, rn_lease_list)->rank.tag;
    TAILQ_INSERT_TAIL(&line->waiting, lease, in_line);
    line->count++;
    of->count++;
    queue->count++;
    return RATION_OK;
}

static void tag_served(rn_rank_queue *of, uint64_t tag)
{
    if (tag > of->virtual_time)
        of->virtual_time = tag;
}

void rn_queue_pass(rn_queue *queue, const rn_rank *rank)
{
    tag_served(&queue->of[rank->priority], rank->tag);
}

void rn_queue_leave(rn_queue *queue, rn_lease *lease, bool granted)
{
    rn_rank_queue *of = &queue->of[lease->rank.priority];
    rn_line *line = lease->line;

    TAILQ_REMOVE(&line->waiting, lease, in_line);
    lease->line = NULL;
    line->count--;
    of->count--;
    queue->count--;

    if (line->count == 0)
        line_drop(queue, of, line);
    if (granted)
        tag_served(of, lease->rank.tag);
    if (of->count == 0)
        of->virtual_time = 0;
}
