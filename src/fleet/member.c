/* SPDX-License-Identifier: MIT */
/*
 * A process of a fleet, as a decider.
 *
 * It holds no state of a limit: it knows its own leases and waiters, and what it has asked and told. Each request
 * that may be granted is one call of one script, whatever the number of its limits; all that follows from time
 * (renewals, the ends of waits, of leases that their holders renew) hangs in one heap.
 *
 * The store's clock is the clock. What it says of instants is moved by what the last answer has shown of the
 * difference, so that those who read it here can compare it with their own.
 *
 * Invariant: the state is UP exactly while the store is, or has just been and is being reached again, and the salt of
 * credentials is known where it is needed.
 */
#include "fleet/member_parts.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/engine.h"
#include "fleet/store_url.h"

static rn_member *member_of(rn_decider *d)
{
    return (rn_member *)(void *)d;
}

static const rn_member *looked_at(const rn_decider *d)
{
    return (const rn_member *)(const void *)d;
}

const char *rn_member_state_name(rn_member_state state)
{
    static const char *const names[RN_MEMBER_STATES] = {"up", "degraded", "down"};

    return names[state];
}

ration_time rn_member_now(const rn_member *m)
{
    return rn_loop_now(m->loop);
}

ration_time rn_member_local(const rn_member *m, ration_time at)
{
    return rn_time_known(at) ? rn_time_add(at, -m->ahead_us) : at;
}

int64_t rn_member_jitter(rn_member *m, int64_t span_us)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (int64_t)(m->random % ((uint64_t)span_us + 1));
}

/* ---- rules */

void rn_member_hold(rn_member_world *world)
{
    world->refs++;
}

void rn_member_unhold(rn_member *m, rn_member_world *world)
{
    if (--world->refs > 0)
        return;
    rn_fleet_rules_fini(&world->rules);
    rn_mem_free(&m->mem, world);
}

static int rules_make(rn_fleet_rules *rules, const ration_allocator *mem, const char *fleet, const ration_rules *from,
                      ration_time start, char *fault)
{
    const int err = rn_fleet_rules_init(rules, mem, fleet, from, start);

    if (err != RATION_OK)
        (void)snprintf(fault, RN_MEMBER_TEXT, "%s", rules->text);
    return err;
}

static int world_new(rn_member *m, const ration_rules *rules, rn_member_world **out, char *fault)
{
    rn_member_world *const world = rn_mem_zalloc(&m->mem, 1, sizeof *world);

    if (world == NULL)
        return RATION_ERR_NOMEM;

    const int err = rules_make(&world->rules, &m->mem, m->fleet, rules, rn_member_now(m), fault);

    if (err != RATION_OK) {
        rn_fleet_rules_fini(&world->rules);
        rn_mem_free(&m->mem, world);
        return err;
    }
    world->refs = 1;
    world->by_credential = rn_member_goes_by_credential(&world->rules.book);
    world->salted = m->salted;
    *out = world;
    return RATION_OK;
}

/* What may change while it runs. */
static void settings_take(rn_member *m, const rn_member_options *options)
{
    m->settings = *options->settings;
    m->settings.url = m->settings.name = m->settings.ca = NULL;
    (void)snprintf(m->config, sizeof m->config, "%s", options->config);
}

int rn_member_rules(rn_member *m, const ration_rules *rules, char *fault)
{
    rn_member_world *const was = m->world;
    const int err = world_new(m, rules, &m->world, fault);

    if (err != RATION_OK)
        return err;
    rn_member_blocks_close(m);
    rn_member_listen(m);
    rn_member_figures_reload(m);
    rn_member_unhold(m, was);
    return RATION_OK;
}

int rn_member_reload(rn_member *m, const rn_member_options *options, char *fault)
{
    fault[0] = '\0';

    const int err = rn_member_rules(m, options->rules, fault);

    if (err == RATION_OK)
        settings_take(m, options);
    return err;
}

/* ---- the store's state */

/* Each change is told; and of the state that a member begins with, once it is known, why it is so. */
static void enter_state(rn_member *m, rn_member_state state, const char *text)
{
    if (m->state == state && m->state_told)
        return;
    if (m->state != state)
        m->since = rn_member_now(m);
    m->unavailable += m->state == RN_MEMBER_UP;
    m->state = state;
    m->state_told = true;
    m->changed(m->ctx, state, text);
}

static rn_member_state away_state(const rn_member *m)
{
    return m->settings.local_limit != RATION_UNSET ? RN_MEMBER_DEGRADED : RN_MEMBER_DOWN;
}

void rn_member_came_back(rn_member *m)
{
    rn_member_lease *lease;

    enter_state(m, RN_MEMBER_UP, "");
    rn_member_enter_all(m);
    rn_member_call_flush(m);
    TAILQ_FOREACH (lease, &m->stages[RN_OURS_WAITING], link)
        rn_member_lease_due(m, lease, rn_member_now(m));
    m->woken(m->ctx);
}

static void on_store(void *ctx, rn_store_state state, const char *text)
{
    rn_member *const m = ctx;

    if (m->store == NULL || state == RN_STORE_CONNECTING)
        return;
    if (state == RN_STORE_DOWN) {
        (void)snprintf(m->last_error, sizeof m->last_error, "%s", text != NULL ? text : "");
        enter_state(m, away_state(m), m->last_error);
        return;
    }
    if (rn_member_lacks_salt(m)) {
        rn_member_beat_now(m);
    } else {
        rn_member_came_back(m);
    }
}

/* ---- what is told */

/* A call about a lease that is held; NULL: there is no memory. */
static rn_member_call *tell(rn_member *m, rn_script_name script, const rn_member_lease *lease)
{
    return rn_member_call_new(m, script, lease);
}

static bool is_held(const rn_member_lease *lease)
{
    return lease->stage == RN_OURS_HELD || lease->stage == RN_OURS_LOCAL || lease->stage == RN_OURS_PART;
}

/*
 * The store may know it. What it was never asked for it is told nothing of: in a long outage such calls would be all
 * that waits to be told, for nothing.
 */
static bool is_known(const rn_member_lease *lease)
{
    return lease->stage != RN_OURS_PART && (lease->stage != RN_OURS_LOCAL || lease->asked);
}

static int member_release(rn_decider *d, ration_time now, ration_lease handle, const ration_completion *completion)
{
    const ration_completion usual = RATION_COMPLETION_INIT;
    const ration_completion *const how = completion != NULL ? completion : &usual;
    rn_member *const m = member_of(d);
    rn_member_lease *const lease = rn_member_lease_find(m, handle);

    (void)now;
    if (lease == NULL || !is_held(lease))
        return RATION_ERR_UNKNOWN;

    /* One that is being entered is known there when this comes. */
    rn_member_call *const call = is_known(lease) ? tell(m, RN_SCRIPT_RELEASE, lease) : NULL;

    if (lease->stage == RN_OURS_PART)
        rn_member_block_release(m, lease, how);
    if (call != NULL) {
        call->end = (rn_call_end){.outcome = how->outcome, .cost = how->cost};
        rn_member_call_send(m, call);
    }
    m->totals.released++;
    rn_member_lease_free(m, lease);
    return RATION_OK;
}

/* The texts of a response, in one block. False: no memory. */
static bool response_copy(rn_member *m, rn_member_call *call, const ration_response *from, bool with_body)
{
    size_t size = from->header_count * sizeof(ration_header) + (with_body ? from->body.size : 0) + 1;
    ration_header *headers;
    char *at;

    for (size_t i = 0; i < from->header_count; i++)
        size += from->headers[i].name.size + from->headers[i].value.size;
    call->block = rn_mem_alloc(&m->mem, size);
    if (call->block == NULL)
        return false;
    headers = call->block;
    at = (char *)(headers + from->header_count);
    for (size_t i = 0; i < from->header_count; i++) {
        const ration_text texts[] = {from->headers[i].name, from->headers[i].value};
        ration_text copies[2];

        for (size_t k = 0; k < 2; k++) {
            copies[k] = (ration_text){at, texts[k].size};
            if (texts[k].size > 0)
                memcpy(at, texts[k].data, texts[k].size);
            at += texts[k].size;
        }
        headers[i] = (ration_header){copies[0], copies[1]};
    }
    call->response = (ration_response){.status = from->status, .headers = headers, .header_count = from->header_count};
    if (with_body && from->body.size > 0) {
        memcpy(at, from->body.data, from->body.size);
        call->response.body = (ration_text){at, from->body.size};
    }
    return true;
}

rn_member_call *rn_member_call_response(rn_member *m, const rn_member_lease *lease, const ration_response *response,
                                        bool with_body)
{
    rn_member_call *const call = tell(m, RN_SCRIPT_OBSERVE, lease);

    if (call == NULL || response_copy(m, call, response, with_body))
        return call;
    rn_member_call_free(call);
    return NULL;
}

static int member_observe(rn_decider *d, ration_time now, ration_lease handle, const ration_response *response)
{
    rn_member *const m = member_of(d);
    rn_member_lease *const lease = rn_member_lease_find(m, handle);

    (void)now;
    if (lease == NULL || !is_held(lease))
        return RATION_ERR_UNKNOWN;
    if (lease->stage == RN_OURS_PART)
        return rn_member_block_observe(m, lease, response);

    const ration_error_rule *const rule = &lease->route->provider->rule.errors;

    m->totals.rate_limited += rn_response_read(rule, response).rate_limited;
    if (!is_known(lease))
        return RATION_OK;

    rn_member_call *const call = rn_member_call_response(m, lease, response, rule->body_contains != NULL);

    if (call == NULL)
        return RATION_ERR_NOMEM;
    rn_member_call_send(m, call);
    return RATION_OK;
}

static int member_renew(rn_decider *d, ration_time now, ration_lease handle)
{
    rn_member *const m = member_of(d);
    rn_member_lease *const lease = rn_member_lease_find(m, handle);

    (void)now;
    if (lease == NULL || !is_held(lease))
        return RATION_ERR_UNKNOWN;
    if (lease->own)
        rn_member_lease_alive(m, lease);
    if (lease->own && lease->stage == RN_OURS_HELD)
        rn_member_call_many(m, RN_SCRIPT_RENEW, lease, &handle, 1);
    return RATION_OK;
}

/* While its admission is under way nothing need be told: the answer finds nobody. */
static void wait_withdraw(rn_member *m, const rn_member_lease *lease)
{
    rn_member_call *const call = lease->stage == RN_OURS_WAITING ? tell(m, RN_SCRIPT_CANCEL, lease) : NULL;

    if (call != NULL)
        rn_member_call_send(m, call);
}

static int member_cancel(rn_decider *d, ration_time now, ration_lease handle)
{
    rn_member *const m = member_of(d);
    rn_member_lease *const lease = rn_member_lease_find(m, handle);

    (void)now;
    if (lease == NULL || (lease->stage != RN_OURS_ASKING && lease->stage != RN_OURS_WAITING))
        return RATION_ERR_UNKNOWN;
    m->totals.cancelled++;
    wait_withdraw(m, lease);
    rn_member_lease_free(m, lease);
    return RATION_OK;
}

/* Nobody who waits here gets a lease any more. */
static void drain(rn_member *m)
{
    static const rn_member_stage stages[] = {RN_OURS_ASKING, RN_OURS_WAITING};
    const ration_decision decision = {.result = RATION_REFUSED,
                                      .at = rn_member_now(m),
                                      .reason = RATION_REASON_DRAINING,
                                      .retry_at = {RATION_NEVER_US},
                                      .facts = RN_NO_FACTS};

    m->draining = true;
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        while (!TAILQ_EMPTY(&m->stages[stages[i]])) {
            wait_withdraw(m, TAILQ_FIRST(&m->stages[stages[i]]));
            rn_member_tell_refused(m, TAILQ_FIRST(&m->stages[stages[i]]), &decision);
        }
    }
    rn_member_blocks_close(m);
}

static int member_operate(rn_decider *d, ration_time now, ration_op op, const ration_counter_name *counter,
                          int64_t units)
{
    (void)now;
    (void)counter;
    (void)units;
    if (op != RATION_OP_DRAIN)
        return RATION_ERR_INVALID; /* its answer comes later: rn_member_operate */
    drain(member_of(d));
    return RATION_OK;
}

/* ---- time */

/* Leases to be asked for, or renewed, as they come: of one provider and one set of rules in one call. */
typedef struct batch {
    rn_script_name script;
    const rn_member_lease *first;
    ration_lease leases[RN_CALL_IDS_MAX];
    size_t count;
} batch;

static void batch_send(rn_member *m, batch *all)
{
    if (all->count > 0)
        rn_member_call_many(m, all->script, all->first, all->leases, all->count);
    all->count = 0;
}

static void batch_add(rn_member *m, batch *all, const rn_member_lease *lease)
{
    const bool other =
        all->count > 0 && (all->first->world != lease->world || all->first->route->provider != lease->route->provider);

    if (other || all->count == RN_CALL_IDS_MAX)
        batch_send(m, all);
    if (all->count == 0)
        all->first = lease;
    all->leases[all->count++] = lease->handle;
}

static void held_due(rn_member *m, rn_member_lease *lease, batch *renewals)
{
    if (lease->stage == RN_OURS_BLOCK) {
        if (rn_member_block_due(m, lease))
            batch_add(m, renewals, lease);
        return;
    }
    if (lease->own) {
        rn_member_tell_lost(m, lease);
        return;
    }
    if (m->lapses) {
        lease->own = true;
        rn_member_lease_due(m, lease, lease->expires_at);
        return;
    }
    if (lease->stage == RN_OURS_HELD) {
        batch_add(m, renewals, lease);
    } else if (!rn_member_is_away(m)) {
        rn_member_enter(m, lease);
    }
    rn_member_lease_alive(m, lease);
}

static int member_advance(rn_decider *d, ration_time now)
{
    rn_member *const m = member_of(d);
    batch renewals = {.script = RN_SCRIPT_RENEW};
    batch waiters = {.script = RN_SCRIPT_COLLECT};
    rn_heap_node *top;

    while ((top = rn_heap_top(&m->due)) != NULL) {
        rn_member_lease *const lease = (rn_member_lease *)(void *)top;

        if (rn_time_before(now, lease->due_at))
            break;
        if (lease->stage != RN_OURS_WAITING) {
            held_due(m, lease, &renewals);
        } else if (rn_member_wait_due(m, lease, now)) {
            batch_add(m, &waiters, lease);
        }
    }
    batch_send(m, &renewals);
    batch_send(m, &waiters);
    return RATION_OK;
}

static ration_time member_next_deadline(const rn_decider *d)
{
    const rn_heap_node *const top = rn_heap_top(&looked_at(d)->due);

    return top != NULL ? ((const rn_member_lease *)(const void *)top)->due_at : (ration_time){RATION_NEVER_US};
}

/* ---- reports */

static void report_lease(const rn_member *m, const rn_member_lease *lease, const ration_reporter *reporter)
{
    const bool waiting = lease->stage == RN_OURS_ASKING || lease->stage == RN_OURS_WAITING;
    const ration_lease_report report = {
        .serial = lease->serial,
        .lease = lease->handle,
        .waiting = waiting,
        .provider = lease->route->provider->name,
        .account = lease->route->account->name,
        .tenant = lease->route->tenant,
        .class_name = lease->route->class_name,
        .priority = lease->priority,
        .cost = lease->ask.cost,
        .since = waiting ? lease->asked_at : lease->granted_at,
        .ends_at = waiting ? lease->deadline : lease->ends_at,
        .ttl_until.us = waiting || !lease->own ? RATION_NEVER_US : lease->expires_at.us,
        .overrun = !waiting && rn_time_before(lease->ends_at, rn_member_now(m)),
    };

    reporter->lease(reporter->ctx, &report);
}

static int member_report(rn_decider *d, ration_time now, ration_report_kind kind, const ration_reporter *reporter)
{
    rn_member *const m = member_of(d);

    (void)now;
    if ((kind == RATION_REPORT_LIMITS || kind == RATION_REPORT_STATS) &&
        (reporter->counter != NULL || reporter->penalty != NULL))
        rn_member_figures_report(m, reporter);
    if (kind == RATION_REPORT_LIMITS && reporter->breaker != NULL)
        rn_member_gates_report(m, reporter);
    for (uint32_t i = 0; kind == RATION_REPORT_LEASES && reporter->lease != NULL && i < m->slot_count; i++) {
        if (m->slots[i].lease != NULL && m->slots[i].lease->stage != RN_OURS_BLOCK)
            report_lease(m, m->slots[i].lease, reporter);
    }
    return RATION_OK;
}

static void member_totals(const rn_decider *d, ration_totals *out)
{
    const rn_member *const m = looked_at(d);

    *out = m->totals;
    out->held = m->stage_sizes[RN_OURS_HELD] + m->stage_sizes[RN_OURS_LOCAL] + m->stage_sizes[RN_OURS_PART];
    out->waiting = m->stage_sizes[RN_OURS_ASKING] + m->stage_sizes[RN_OURS_WAITING];
    out->counters = m->figures.size;
}

void rn_member_look(const rn_member *m, rn_member_status *out)
{
    rn_store_stats store;

    rn_store_stats_of(m->store, &store);
    *out = (rn_member_status){
        .figures_us = rn_time_known(m->figures_at) ? rn_sub(rn_member_now(m).us, m->figures_at.us) : RATION_UNSET,
        .state = m->state,
        .since = m->since,
        .id = m->id,
        .members = m->seen,
        .member_count = m->peer_count,
        .local_leases = m->stage_sizes[RN_OURS_LOCAL],
        .local_limit = m->settings.local_limit,
        .unavailable = m->unavailable,
        .failed = m->failed,
        .told_late = m->later_count,
        .told_never = m->told_never,
        .unreplicated = store.unreplicated,
        .prefetched = m->prefetched,
        .last_error = m->last_error,
    };
    out->prefetched.held = m->prefetched.taken - m->prefetched.spent - m->prefetched.returned - m->prefetched.lost;
    for (size_t i = 0; i < m->peer_count; i++)
        out->config_differs = out->config_differs || strcmp(m->seen[i].config, m->config) != 0;
    for (int i = 0; i < RN_SCRIPT_COUNT && out->script_count < RN_MEMBER_SCRIPTS; i++) {
        const rn_member_times *const times = &m->times[i];

        if (times->calls == 0)
            continue;
        out->scripts[out->script_count++] = (rn_member_script){
            .name = rn_scripts[i].name,
            .calls = times->calls,
            .p50_us = rn_member_times_percentile(times, 50),
            .p99_us = rn_member_times_percentile(times, 99),
        };
    }
}

/* ---- life */

static const rn_decider_ops member_ops = {
    .submit = rn_member_submit,
    .check = rn_member_check,
    .release = member_release,
    .observe = member_observe,
    .renew = member_renew,
    .cancel = member_cancel,
    .health = rn_member_health,
    .operate = member_operate,
    .advance = member_advance,
    .next_deadline = member_next_deadline,
    .next_event = rn_member_next_event,
    .standing = rn_member_standing,
    .report = member_report,
    .totals = member_totals,
};

rn_decider *rn_member_decider(rn_member *m)
{
    return &m->base;
}

static bool due_less(const rn_heap_node *a, const rn_heap_node *b)
{
    return ((const rn_member_lease *)(const void *)a)->due_at.us <
           ((const rn_member_lease *)(const void *)b)->due_at.us;
}

/*
 * Ids are different from those of all other members, and from those of earlier runs: two of the same name would take
 * each other's leases for their own. False: there is no randomness.
 */
static bool id_make(rn_member *m)
{
    unsigned char random[16];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (size_t i = 0; i < 8; i++)
        (void)snprintf(m->id + 2 * i, 3, "%02x", random[i]);
    memcpy(&m->random, random + 8, sizeof m->random);
    m->random |= 1;
    return true;
}

static void on_leave(rn_deferred *work)
{
    rn_member *const m = (rn_member *)(void *)((char *)work - offsetof(rn_member, leave));
    void (*const left)(void *ctx) = m->left;

    if (left == NULL || m->call_count > 0 || m->beating)
        return;
    m->left = NULL;
    left(m->left_ctx);
}

void rn_member_leave_look(rn_member *m)
{
    if (m->left != NULL && m->call_count == 0 && !m->beating)
        rn_loop_defer(m->loop, &m->leave);
}

void rn_member_lapse(rn_member *m)
{
    m->lapses = true;
}

void rn_member_leave(rn_member *m, void (*done)(void *ctx), void *ctx)
{
    m->left = done;
    m->left_ctx = ctx;
    rn_member_blocks_close(m);
    rn_member_beat_leave(m);
    rn_loop_defer_next(m->loop, &m->leave);
}

static int store_open(rn_member *m, const rn_member_options *options, char *fault)
{
    const rn_store_options store = {
        .url = options->settings->url,
        .user = options->user,
        .password = options->password,
        .ca_file = options->settings->ca,
        .connect_timeout_us = options->settings->connect_us,
        .command_timeout_us = options->settings->command_us,
        .backoff_us = options->settings->backoff_us,
        .wait = options->settings->replicas,
        .changed = on_store,
        .changed_ctx = m,
    };
    char text[RN_STORE_TEXT] = "";
    const int err = rn_store_open(rn_loop_uv(m->loop), &store, &m->store, text);

    if (err == RATION_ERR_INVALID)
        (void)snprintf(fault, RN_MEMBER_TEXT, "settings.fleet.redis: %s", text);
    return err == RATION_ERR_INVALID ? RATION_ERR_CONFIG : err;
}

int rn_member_may(const char *url, const ration_rules *rules, char *fault)
{
    const ration_allocator *const mem = rn_mem_default();
    rn_fleet_rules *const compiled = rn_mem_zalloc(mem, 1, sizeof *compiled);
    rn_store_url where;
    const char *wrong = rn_store_url_read(url, &where);

    fault[0] = '\0';
    if (compiled == NULL)
        return RATION_ERR_NOMEM;

    int err = rules_make(compiled, mem, "", rules, ration_time_of(0), fault);

    rn_fleet_rules_fini(compiled);
    rn_mem_free(mem, compiled);
    if (err == RATION_OK && wrong != NULL) {
        (void)snprintf(fault, RN_MEMBER_TEXT, "settings.fleet.redis: %s", wrong);
        err = RATION_ERR_CONFIG;
    }
    return err;
}

static void member_init(rn_member *m, const rn_member_options *options)
{
    m->base.ops = &member_ops;
    m->mem = *rn_mem_default();
    m->loop = options->loop;
    m->woken = options->woken;
    m->changed = options->changed;
    m->failed_call = options->failed;
    m->salt_known = options->salt_known;
    m->ctx = options->ctx;
    m->first_free = UINT32_MAX;
    m->first_generation = options->first_generation > 0 ? options->first_generation : 1;
    m->leave.fn = on_leave;
    settings_take(m, options);
    m->state = away_state(m);
    m->since = rn_member_now(m);
    for (size_t i = 0; i < RN_OURS_STAGES; i++)
        TAILQ_INIT(&m->stages[i]);
    TAILQ_INIT(&m->events);
    SLIST_INIT(&m->channels);
    rn_member_blocks_init(m);
    rn_heap_init(&m->due, &m->mem, due_less);
    rn_member_calls_init(m);
    rn_member_beat_init(m);
    rn_member_figures_init(m);
    rn_member_gates_init(m);
    rn_call_init(&m->call, &m->mem, NULL, NULL, false);
}

static int member_join(rn_member *m, const rn_member_options *options, char *fault)
{
    int err = RATION_ERR_NOMEM;

    m->fleet = rn_mem_strdup(&m->mem, options->settings->name);
    m->instance = rn_mem_strdup(&m->mem, options->instance);
    if (m->fleet != NULL && m->instance != NULL)
        err = world_new(m, options->rules, &m->world, fault);
    if (err == RATION_OK && (!id_make(m) || !rn_member_salt_init(m)))
        err = RATION_ERR_IO;
    if (err == RATION_OK)
        err = store_open(m, options, fault);
    if (err == RATION_OK)
        rn_member_listen(m);
    return err == RATION_OK ? rn_member_beat_start(m) : err;
}

int rn_member_new(const rn_member_options *options, rn_member **out, char *fault)
{
    rn_member *const m = rn_mem_zalloc(rn_mem_default(), 1, sizeof *m);

    fault[0] = '\0';
    if (m == NULL)
        return RATION_ERR_NOMEM;
    member_init(m, options);

    const int err = member_join(m, options, fault);

    if (err != RATION_OK) {
        rn_member_free(m);
        return err;
    }
    *out = m;
    return RATION_OK;
}

void rn_member_free(rn_member *m)
{
    if (m == NULL)
        return;

    rn_store *const store = m->store;

    m->store = NULL; /* what is answered now is told nobody */
    m->left = NULL;
    rn_loop_forget(m->loop, &m->leave);
    rn_store_close(store, NULL, NULL);
    rn_member_calls_fini(m);
    rn_member_beat_fini(m);
    rn_member_figures_fini(m);
    rn_member_gates_fini(m);
    rn_member_events_fini(m);
    rn_member_channels_fini(m);
    rn_member_circuits_fini(m);
    rn_member_watch_fini(m);
    rn_member_blocks_fini(m);
    for (size_t i = 0; i < RN_OURS_STAGES; i++) {
        while (!TAILQ_EMPTY(&m->stages[i]))
            rn_member_lease_free(m, TAILQ_FIRST(&m->stages[i]));
    }
    rn_heap_fini(&m->due);
    rn_mem_free(&m->mem, m->slots);
    rn_call_fini(&m->call);
    if (m->world != NULL)
        rn_member_unhold(m, m->world);
    rn_mem_free(&m->mem, m->fleet);
    rn_mem_free(&m->mem, m->instance);
    rn_member_salt_fini(m);
    rn_mem_free(&m->mem, m);
}
