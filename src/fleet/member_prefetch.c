/* SPDX-License-Identifier: MIT */
/*
 * Blocks: units taken at once and spent here, without a word to the store.
 *
 * A block is a lease of the store's that is charged for many requests (prefetch.lua), for one route whose limits are
 * all rate or quota, without a breaker, and with no quota that headers correct: there the units of a route are alike,
 * and a grant need know nothing but how many there are. Requests that come while it is asked for are parked, and share
 * it in order. What is refused, or has to wait, is asked for singly, so reasons, times and turns stay the store's.
 *
 * A block is CLOSED when it is spent, its time is over, a call of it was told "too many", the rules change, the store
 * has been away, or the process ends: what it has not spent is given back then (settle.lua). Its lease is held until
 * the last of its calls has ended, for their responses are told by it, and so count as of the instant of its grant.
 * Of those only what changes something is told: each "too many", and the first success, which ends the doubling of
 * penalties. If this process dies the lease lapses, and all that the block was charged has been spent.
 *
 * Invariants: a block has its lease in RN_OURS_BLOCK; it is in the map unless CLOSED, once a route; units.under_way is
 * the number of PARTs that point to it; who is parked is ASKING.
 */
#include "fleet/member_parts.h"

#include "base/mem.h"
#include "base/units.h"
#include "core/engine.h"
#include "core/quota_budget.h"

#define EARLY_US INT64_C(1000) /* before the end of a window: clocks are not read to the microsecond */

static rn_member_block *block_of(rn_map_node *node)
{
    return (rn_member_block *)(void *)node;
}

static rn_member_block *block_find(const rn_member *m, const rn_route *route)
{
    return block_of(rn_map_find(&m->blocks, &route, sizeof(const rn_route *)));
}

static void block_unmap(rn_member *m, rn_member_block *block)
{
    if (block->mapped)
        rn_map_remove(&m->blocks, &block->node);
    block->mapped = false;
}

static void block_free(rn_member *m, rn_member_block *block)
{
    block_unmap(m, block);
    block->lease->block = NULL;
    rn_member_lease_free(m, block->lease);
    rn_mem_free(&m->mem, block);
}

/* ---- for whom */

static bool is_by_cost(const rn_route *route)
{
    for (size_t i = 0; i < route->count; i++) {
        if (route->links[i].counter->limit->rule->counts == RATION_COUNTS_COST)
            return true;
    }
    return false;
}

static bool limit_may(const rn_limit *limit)
{
    const ration_kind kind = limit->rule->kind;

    return kind == RATION_KIND_RATE || (kind == RATION_KIND_QUOTA && !rn_quota_learns(limit->rule));
}

static bool route_may(const rn_route *route)
{
    bool may = route->circuit == NULL && route->count > 0;

    for (size_t i = 0; may && i < route->count; i++)
        may = limit_may(route->links[i].counter->limit);
    return may;
}

static bool may_be_served(const rn_member *m, const rn_member_lease *lease)
{
    return m->settings.prefetch > 1 && !m->draining && !lease->ask.dry && !lease->ask.health &&
           lease->world == m->world;
}

/* ---- asking for one */

static rn_member_lease *block_lease(rn_member *m, const rn_member_lease *first)
{
    const ration_request request = RATION_REQUEST_INIT;
    const rn_call_ask ask = {
        .hold_us = RATION_UNSET,
        .ttl_us = RATION_UNSET,
        .cost = first->ask.cost,
        .priority = RATION_PRIORITY_NORMAL,
        .tenant = first->ask.tenant,
        .weight = first->ask.weight,
        .units = m->settings.prefetch,
    };
    rn_member_lease *lease = NULL;

    first->route->refs++;
    if (rn_member_lease_new(m, first->route, &request, &ask, &lease) == RATION_OK)
        return lease;
    rn_fleet_rules_forget(&m->world->rules, first->route);
    return NULL;
}

/* NULL: there is none for such a request, or no memory, and each asks for itself. */
static rn_member_block *block_new(rn_member *m, const rn_member_lease *first)
{
    if (!route_may(first->route) || (is_by_cost(first->route) && first->ask.cost <= 0))
        return NULL;

    rn_member_block *const block = rn_mem_zalloc(&m->mem, 1, sizeof *block);

    if (block == NULL)
        return NULL;
    block->lease = block_lease(m, first);
    block->route = first->route;
    TAILQ_INIT(&block->parked);
    if (block->lease == NULL) {
        rn_mem_free(&m->mem, block);
        return NULL;
    }
    block->lease->block = block;
    rn_member_lease_enter(m, block->lease, RN_OURS_BLOCK);
    block->mapped = rn_map_add(&m->blocks, &block->node, &block->route, sizeof(const rn_route *)) == RATION_OK;
    if (!block->mapped) {
        block_free(m, block);
        return NULL;
    }
    return block;
}

static void park(rn_member_block *block, rn_member_lease *lease)
{
    lease->block = block;
    TAILQ_INSERT_TAIL(&block->parked, lease, parked);
}

static void grant(rn_member *m, rn_member_block *block, rn_member_lease *lease)
{
    lease->block = block;
    lease->granted_at = rn_member_now(m);
    if (lease->ask.hold_us != RATION_UNSET)
        lease->ends_at = rn_time_add(lease->granted_at, lease->ask.hold_us);
    rn_member_lease_enter(m, lease, RN_OURS_PART);
    if (lease->own)
        rn_member_lease_alive(m, lease);
    m->prefetched.spent++;
}

static void block_close(rn_member *m, rn_member_block *block);

static rn_member_served serve_new(rn_member *m, rn_member_lease *lease)
{
    const bool away = rn_member_is_away(m);
    rn_member_block *const block = away ? NULL : block_new(m, lease);
    rn_member_call *const call = block != NULL ? rn_member_call_new(m, RN_SCRIPT_PREFETCH, block->lease) : NULL;

    if (call == NULL) {
        if (block != NULL)
            block_free(m, block);
        return RN_SERVED_NOT;
    }
    park(block, lease);
    rn_member_call_send(m, call); /* where that fails at once it has been answered */
    return RN_SERVED_PARKED;
}

rn_member_served rn_member_block_serve(rn_member *m, rn_member_lease *lease)
{
    const ration_time now = rn_member_now(m);
    rn_member_block *block = may_be_served(m, lease) ? block_find(m, lease->route) : NULL;

    if (block != NULL && block->state == RN_BLOCK_OPEN && rn_block_is_over(&block->units, now)) {
        block_close(m, block);
        block = NULL;
    }
    if (block == NULL)
        return may_be_served(m, lease) ? serve_new(m, lease) : RN_SERVED_NOT;
    if (block->state == RN_BLOCK_ASKED) {
        park(block, lease);
        return RN_SERVED_PARKED;
    }
    if (block->state != RN_BLOCK_OPEN || !rn_block_take(&block->units, now, lease->ask.cost))
        return RN_SERVED_NOT;
    grant(m, block, lease);
    return RN_SERVED_GRANTED;
}

/* ---- the end of one */

/* What counts from now on, if the store does not have it already. */
static void block_settle(rn_member *m, rn_member_block *block)
{
    const int64_t used = rn_mul(block->units.used, RATION_UNIT);
    const bool same = block->known && used == block->settled && block->units.used_cost == block->settled_cost;
    rn_member_call *const call = same || block->lost ? NULL : rn_member_call_new(m, RN_SCRIPT_SETTLE, block->lease);

    if (call == NULL)
        return; /* without memory all of it has been spent */
    call->end =
        (rn_call_end){.outcome = RATION_OUTCOME_CANCELLED, .cost = rn_max(0, block->units.used_cost), .units = used};
    block->known = true;
    block->settled = used;
    block->settled_cost = block->units.used_cost;
    rn_member_call_send(m, call);
}

static void block_end(rn_member *m, rn_member_block *block)
{
    rn_member_call *call;

    block_settle(m, block);
    call = rn_member_call_new(m, RN_SCRIPT_RELEASE, block->lease);
    if (call != NULL) {
        call->end = (rn_call_end){.outcome = RATION_OUTCOME_CANCELLED, .cost = RATION_UNSET};
        rn_member_call_send(m, call);
    }
    block_free(m, block);
}

static void block_close(rn_member *m, rn_member_block *block)
{
    const uint64_t left = (uint64_t)(block->units.units - block->units.used);

    block_unmap(m, block);
    block->state = RN_BLOCK_CLOSED;
    *(block->lost ? &m->prefetched.lost : &m->prefetched.returned) += left;
    if (block->units.under_way == 0) {
        block_end(m, block);
        return;
    }
    block_settle(m, block);
    rn_member_lease_alive(m, block->lease);
}

void rn_member_block_leave(rn_member *m, rn_member_lease *lease)
{
    rn_member_block *const block = lease->block;

    if (block == NULL || lease->stage == RN_OURS_BLOCK)
        return;
    lease->block = NULL;
    if (lease->stage == RN_OURS_ASKING) {
        TAILQ_REMOVE(&block->parked, lease, parked);
        return;
    }
    rn_block_end(&block->units);
    if (block->state == RN_BLOCK_CLOSED && block->units.under_way == 0)
        block_end(m, block);
}

/* ---- its answer */

static bool answer_take(rn_member *m, rn_member_block *block, const rn_member_call *call, const redisReply *reply)
{
    const ration_time now = rn_member_now(m);
    const bool granted = reply != NULL && rn_answer_result(reply) == RN_ANSWER_GRANTED;
    const int64_t units = granted ? rn_answer_number(reply, 1, 0) : 0;
    const int64_t last = granted ? rn_answer_number(reply, 2, RATION_NEVER_US) : RATION_NEVER_US;
    ration_time until = rn_time_add(call->sent_at, m->settings.prefetch_ttl_us);

    if (units < 1 || units > call->ask.units)
        return false;
    /* The server's clock was read after this call was sent: at most by so much is it ahead of what it seems. */
    if (last != RATION_NEVER_US) {
        const int64_t trip_us = rn_max(0, rn_sub(now.us, call->sent_at.us));

        until = rn_time_min(until, rn_time_add(rn_member_local(m, ration_time_of(last)), -trip_us - EARLY_US));
    }
    rn_block_init(&block->units, units, is_by_cost(block->route) ? call->ask.cost : 0, until);
    block->known = true;
    block->settled = rn_mul(units, RATION_UNIT);
    block->settled_cost = rn_block_cost(&block->units);
    block->state = RN_BLOCK_OPEN;
    m->prefetched.taken += (uint64_t)units;
    rn_member_spent(m, block->lease, units);
    rn_member_lease_alive(m, block->lease);
    rn_member_lease_due(m, block->lease, rn_time_min(block->lease->due_at, until));
    return true;
}

/* By the block if it is of use; else singly, or, where the store is late, as this process says by itself. */
static void parked_serve(rn_member *m, rn_member_lease *lease, bool of_use, bool late)
{
    const rn_member_served served = of_use ? rn_member_block_serve(m, lease) : RN_SERVED_NOT;

    if (served == RN_SERVED_GRANTED) {
        rn_member_tell_granted(m, lease);
    } else if (served == RN_SERVED_NOT && (late || !rn_member_ask(m, lease))) {
        (void)rn_member_alone(m, lease);
    }
}

/* None for now. */
static void block_rest(rn_member *m, rn_member_block *block)
{
    if (!block->mapped) {
        block_free(m, block);
        return;
    }
    block->state = RN_BLOCK_RESTING;
    rn_member_lease_due(m, block->lease, rn_time_add(rn_member_now(m), m->settings.prefetch_ttl_us));
}

/* The store may have it all the same: it is given back whole. */
static void block_withdraw(rn_member *m, rn_member_block *block)
{
    block_unmap(m, block);
    block->state = RN_BLOCK_CLOSED;
    block->known = false;
    block_end(m, block);
}

void rn_member_block_answered(rn_member *m, const rn_member_call *call, const redisReply *reply)
{
    rn_member_lease *const of = rn_member_lease_find(m, call->lease);
    rn_member_block *const block = of != NULL && of->stage == RN_OURS_BLOCK ? of->block : NULL;
    const bool late = reply == NULL && rn_sub(rn_member_now(m).us, call->sent_at.us) >= m->settings.command_us / 2;
    struct rn_member_leases parked = TAILQ_HEAD_INITIALIZER(parked);
    bool of_use = false;

    if (block == NULL || block->state != RN_BLOCK_ASKED)
        return;
    TAILQ_CONCAT(&parked, &block->parked, parked);
    if (reply != NULL && rn_answer_result(reply) == RN_ANSWER_REFUSED) {
        block_rest(m, block);
    } else if (!answer_take(m, block, call, reply)) {
        block_withdraw(m, block);
    } else if (!block->mapped || rn_block_is_over(&block->units, rn_member_now(m))) {
        block_close(m, block); /* the rules are others by now, this is the end, or it comes too late */
    } else {
        of_use = true;
    }
    while (!TAILQ_EMPTY(&parked)) {
        rn_member_lease *const lease = TAILQ_FIRST(&parked);

        TAILQ_REMOVE(&parked, lease, parked);
        lease->block = NULL;
        parked_serve(m, lease, of_use, late);
    }
}

/* ---- what comes of its calls */

/* The store hears of it by the block's lease. Without memory it does not. */
static void tell_end(rn_member *m, rn_member_block *block, ration_outcome outcome)
{
    rn_member_call *const call = rn_member_call_new(m, RN_SCRIPT_OBSERVE, block->lease);

    if (call == NULL)
        return;
    call->has_said = true;
    call->said = outcome;
    rn_member_call_send(m, call);
}

static void block_stop(rn_member *m, rn_member_block *block)
{
    if (block->state == RN_BLOCK_OPEN)
        block_close(m, block);
}

int rn_member_block_observe(rn_member *m, rn_member_lease *lease, const ration_response *response)
{
    rn_member_block *const block = lease->block;
    const ration_error_rule *const rule = &lease->route->provider->rule.errors;
    const rn_reading reading = rn_response_read(rule, response);
    rn_member_call *call;

    if (response->status == 0 || lease->heard)
        return RATION_OK;
    lease->heard = true;
    m->totals.rate_limited += reading.rate_limited;
    if (!reading.rate_limited && (!reading.success || block->well))
        return RATION_OK;
    block->well = block->well || reading.success;
    call = rn_member_call_response(m, block->lease, response, rule->body_contains != NULL);
    if (call != NULL)
        rn_member_call_send(m, call);
    if (reading.rate_limited)
        block_stop(m, block);
    return call != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

void rn_member_block_release(rn_member *m, rn_member_lease *lease, const ration_completion *how)
{
    rn_member_block *const block = lease->block;
    const bool throttled = how->outcome == RATION_OUTCOME_THROTTLED;
    const bool success = how->outcome == RATION_OUTCOME_SUCCESS && !block->well;

    if (how->cost != RATION_UNSET)
        rn_block_settle(&block->units, lease->ask.cost, how->cost);
    if (!lease->heard && (throttled || success)) {
        block->well = block->well || success;
        tell_end(m, block, how->outcome);
        if (throttled)
            block_stop(m, block);
    }
}

/* ---- time, and the store */

bool rn_member_block_due(rn_member *m, rn_member_lease *lease)
{
    rn_member_block *const block = lease->block;

    if (block->state == RN_BLOCK_RESTING) {
        block_free(m, block);
        return false;
    }
    if (block->state == RN_BLOCK_OPEN && rn_block_is_over(&block->units, rn_member_now(m))) {
        block_close(m, block);
        return false;
    }
    rn_member_lease_alive(m, lease);
    if (block->state == RN_BLOCK_OPEN)
        rn_member_lease_due(m, lease, rn_time_min(lease->due_at, block->units.until));
    return !m->lapses;
}

void rn_member_block_lost(rn_member *m, rn_member_lease *lease)
{
    rn_member_block *const block = lease->block;

    if (block->state != RN_BLOCK_OPEN && block->state != RN_BLOCK_CLOSED)
        return;
    block->lost = true;
    if (block->units.under_way > 0)
        rn_member_enter(m, lease);
    block_stop(m, block);
}

void rn_member_blocks_enter(rn_member *m)
{
    rn_member_lease *next;

    for (rn_member_lease *lease = TAILQ_FIRST(&m->stages[RN_OURS_BLOCK]); lease != NULL; lease = next) {
        rn_member_block *const block = lease->block;

        next = TAILQ_NEXT(lease, link);
        if (block->state != RN_BLOCK_OPEN && block->state != RN_BLOCK_CLOSED)
            continue;
        rn_member_enter(m, lease);
        block_stop(m, block);
    }
}

void rn_member_blocks_close(rn_member *m)
{
    rn_member_lease *next;

    for (rn_member_lease *lease = TAILQ_FIRST(&m->stages[RN_OURS_BLOCK]); lease != NULL; lease = next) {
        rn_member_block *const block = lease->block;

        next = TAILQ_NEXT(lease, link);
        if (block->state == RN_BLOCK_RESTING) {
            block_free(m, block);
        } else {
            block_unmap(m, block);
            block_stop(m, block);
        }
    }
}

void rn_member_blocks_init(rn_member *m)
{
    rn_map_init(&m->blocks, &m->mem);
}

/* Nothing is told any more. */
void rn_member_blocks_fini(rn_member *m)
{
    for (size_t i = 0; i < RN_OURS_BLOCK; i++) {
        rn_member_lease *lease;

        TAILQ_FOREACH (lease, &m->stages[i], link)
            lease->block = NULL;
    }
    while (!TAILQ_EMPTY(&m->stages[RN_OURS_BLOCK]))
        block_free(m, TAILQ_FIRST(&m->stages[RN_OURS_BLOCK])->block);
    rn_map_fini(&m->blocks);
}
