/* SPDX-License-Identifier: MIT */
/*
 * Leases of the API, and those who wait for one.
 *
 * The holder is on the other side of a network and may be dead, so every lease has a ttl, and the decider takes back
 * what is not renewed. What is kept here is little: whom to answer, and which names are the API's own, so that nobody
 * can release a lease of the gateway by guessing its name.
 *
 * A name tells what became of it: one generation is remembered at each index, and older ones have ended.
 *
 * An Idempotency-Key belongs to a waiter or a lease and dies with it. A retry whose first answer was lost finds the
 * lease that it was given; after the release the key is free again.
 *
 * Invariants: in exactly one of the lists; `call` is set exactly in WAITING; in `slots` exactly in HELD; `key` is in
 * `keys` exactly while it is not NULL, never in LEAVING. A member whose event may still come is never freed.
 */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/api_parts.h"

static void lease_enter(rn_api_lease *lease, rn_api_lease_state state)
{
    rn_api *api = lease->api;

    TAILQ_REMOVE(&api->states[lease->state], lease, link);
    lease->state = state;
    TAILQ_INSERT_TAIL(&api->states[state], lease, link);
}

static void key_forget(rn_api_lease *lease)
{
    if (lease->key == NULL)
        return;
    rn_map_remove(&lease->api->keys, &lease->by_key);
    rn_mem_free(rn_mem_default(), lease->key);
    lease->key = NULL;
}

/* A key is its client's own: others may have the same, and get nothing by guessing it. */
static ration_text key_name(uint64_t owner, ration_text key, char buffer[RN_API_KEY_NAME_BYTES])
{
    memcpy(buffer, &owner, sizeof owner);
    memcpy(buffer + sizeof owner, key.data, key.size);
    return (ration_text){buffer, sizeof owner + key.size};
}

static int key_keep(rn_api_lease *lease, ration_text key, ration_text body)
{
    char buffer[RN_API_KEY_NAME_BYTES];
    const ration_text name = key_name(lease->owner, key, buffer);

    lease->key = rn_mem_textdup(rn_mem_default(), name);
    if (lease->key == NULL)
        return RATION_ERR_NOMEM;
    lease->key_size = name.size;
    lease->body = rn_hash(body.data, body.size);
    const int err = rn_map_add(&lease->api->keys, &lease->by_key, lease->key, lease->key_size);
    if (err != RATION_OK) {
        rn_mem_free(rn_mem_default(), lease->key);
        lease->key = NULL;
    }
    return err;
}

/* The name is the API's no more; it will be told that it has ended. The index may have gone on to another life. */
static void slot_clear(const rn_api_lease *lease)
{
    rn_api *api = lease->api;

    if (lease->lease.index < api->slot_count && api->slots[lease->lease.index].live == lease)
        api->slots[lease->lease.index].live = NULL;
}

static int slot_fill(rn_api_lease *lease)
{
    rn_api *api = lease->api;
    const size_t index = lease->lease.index;

    if (index >= api->slot_count) {
        const size_t count = index + index / 2 + 64;
        rn_api_slot *slots = rn_mem_resize(rn_mem_default(), api->slots, count, sizeof *slots);
        if (slots == NULL)
            return RATION_ERR_NOMEM;
        memset(slots + api->slot_count, 0, (count - api->slot_count) * sizeof *slots);
        api->slots = slots;
        api->slot_count = count;
    }
    api->slots[index] = (rn_api_slot){lease, lease->lease.generation};
    return RATION_OK;
}

static void lease_free(rn_api_lease *lease)
{
    rn_api *api = lease->api;

    key_forget(lease);
    TAILQ_REMOVE(&api->states[lease->state], lease, link);
    rn_mem_free(rn_mem_default(), lease->own_account);
    if (api->spare_count == RN_API_SPARE_MAX) {
        rn_mem_free(rn_mem_default(), lease);
        return;
    }
    TAILQ_INSERT_HEAD(&api->spare, lease, link);
    api->spare_count++;
}

/* Zeroed; NULL: no memory. */
static rn_api_lease *lease_alloc(rn_api *api)
{
    rn_api_lease *lease = TAILQ_FIRST(&api->spare);

    if (lease == NULL)
        return rn_mem_zalloc(rn_mem_default(), 1, sizeof *lease);
    TAILQ_REMOVE(&api->spare, lease, link);
    api->spare_count--;
    memset(lease, 0, sizeof *lease);
    return lease;
}

void rn_api_lease_forget(rn_api_lease *lease)
{
    slot_clear(lease);
    lease_free(lease);
}

static void on_event(rn_party *party, const ration_event *event);

/* Nobody will use it: back it goes. What the decider no longer knows has an event on the way, and ends with that. */
static void lease_give_back(rn_api_lease *lease)
{
    rn_api *api = lease->api;
    rn_decider *d = api->decider;
    const ration_completion completion = {.outcome = RATION_OUTCOME_CANCELLED, .cost = RATION_UNSET};

    key_forget(lease);
    slot_clear(lease);
    lease->call = NULL;
    const int err = lease->state == RN_API_WAITING
                        ? d->ops->cancel(d, rn_loop_now(api->loop), lease->lease)
                        : d->ops->release(d, rn_loop_now(api->loop), lease->lease, &completion);
    rn_gateway_touch(api->gateway);
    if (err == RATION_OK) {
        lease_free(lease);
    } else {
        lease_enter(lease, RN_API_LEAVING);
    }
}

void rn_api_lease_leave(rn_api_lease *lease)
{
    lease_give_back(lease);
}

/* ---- answers */

static void answer_granted(const rn_api_lease *lease, rn_inbound *in)
{
    const int64_t left_us = rn_sub(lease->expires.us, rn_loop_now(lease->api->loop).us);
    char name[RN_LEASE_NAME_BYTES];
    rn_output *body = &lease->api->answer;

    rn_output_clear(body);
    rn_output_open(body, NULL, '{');
    rn_output_str(body, "result", "granted");
    rn_output_text(body, "lease", rn_lease_name_write(lease->lease, name));
    rn_output_ms(body, "waitedMs", lease->waited_us);
    rn_output_ms(body, "ttlMs", rn_max(0, left_us));
    rn_output_close(body, '}');
    rn_output_newline(body);
    rn_reply(in, 200, RN_API_JSON, NULL, body);
}

static void answer_refused(const rn_api_lease *lease, rn_inbound *in, const ration_decision *decision,
                           const char *detail)
{
    const rn_problem problem = {
        .decision = decision,
        .detail = ration_text_of(detail),
        .account = ration_text_of(lease->account),
        .waited_us = lease->waited_us,
    };
    const rn_refused refused = {
        .account = problem.account,
        .tenant = ration_text_of(lease->tenant[0] != '\0' ? lease->tenant : NULL),
        .traceparent = rn_trace_context_find(rn_inbound_head(in)->fields),
        .waited_us = lease->waited_us,
        .decision = decision,
        .detail = problem.detail,
    };

    rn_gateway_refused(lease->api->gateway, &refused);
    rn_reply_refusal(in, &problem, rn_loop_now(lease->api->loop));
}

static void lease_granted(rn_api_lease *lease, rn_api_call *call, ration_time at)
{
    lease->call = NULL;
    lease->expires = rn_time_add(at, lease->ttl_us);
    if (slot_fill(lease) != RATION_OK) {
        rn_api_fail(call->in, RATION_ERR_NOMEM);
        lease_enter(lease, RN_API_LEAVING);
        lease_give_back(lease);
    } else {
        lease_enter(lease, RN_API_HELD);
        lease->account = NULL;
        answer_granted(lease, call->in);
    }
    rn_api_call_end(call);
}

static void lease_refused(rn_api_lease *lease, rn_api_call *call, const ration_decision *decision, const char *detail)
{
    answer_refused(lease, call->in, decision, detail);
    rn_api_call_end(call);
    lease_free(lease);
}

/* ---- checks */

rn_api_lease *rn_api_check_new(rn_api_call *call)
{
    rn_api_lease *lease = rn_mem_zalloc(rn_mem_default(), 1, sizeof *lease);

    if (lease == NULL)
        return NULL;
    lease->party.event = on_event;
    lease->api = call->api;
    lease->call = call;
    lease->check = true;
    TAILQ_INSERT_TAIL(&call->api->states[RN_API_WAITING], lease, link);
    return lease;
}

void rn_api_check_wait(rn_api_lease *lease, ration_lease handle)
{
    lease->lease = handle;
    lease->call->waits = lease;
    rn_buffer_fini(&lease->call->body);
    rn_gateway_touch(lease->api->gateway);
}

/* What was granted is no lease: there is nothing to give back. */
static void check_heard(rn_api_lease *lease, const ration_event *event)
{
    static const ration_decision granted = {.result = RATION_GRANTED};

    if (lease->state != RN_API_LEAVING)
        rn_api_check_answer(lease->call, event->type == RATION_EVENT_GRANTED ? &granted : &event->decision, NULL);
    lease_free(lease);
}

/* ---- events */

static void on_event(rn_party *party, const ration_event *event)
{
    rn_api_lease *lease = (rn_api_lease *)(void *)party;

    if (lease->check) {
        check_heard(lease, event);
        return;
    }
    switch (event->type) {
    case RATION_EVENT_GRANTED:
        lease->lease = event->lease;
        lease->waited_us = event->waited_us;
        if (lease->state == RN_API_LEAVING) {
            lease_give_back(lease);
        } else {
            lease_granted(lease, lease->call, event->at);
        }
        return;
    case RATION_EVENT_REFUSED:
        lease->waited_us = event->waited_us;
        if (lease->state == RN_API_LEAVING) {
            lease_free(lease);
        } else {
            lease_refused(lease, lease->call, &event->decision, NULL);
        }
        return;
    case RATION_EVENT_LOST:
        rn_api_lease_forget(lease);
        return;
    case RATION_EVENT_PENALTY:
    case RATION_EVENT_LIMIT:
    case RATION_EVENT_BREAKER:
    case RATION_EVENT_HEALTH:
        return;
    }
}

/* ---- acquire */

static const ration_provider_rule *provider_find(const ration_rules *rules, ration_text name)
{
    for (size_t i = 0; i < rules->provider_count; i++) {
        if (rn_text_is(name, rules->providers[i].name))
            return &rules->providers[i];
    }
    return NULL;
}

/*
 * The ttl of a lease whose client names none: 30 s, or the least `leaseTtl` of its provider's adaptive limits. Which of
 * them apply to the request is not asked: at worst its client renews more often than it must.
 */
static int64_t ttl_default(const ration_provider_rule *provider)
{
    int64_t ttl_us = RN_API_TTL_US;

    for (size_t i = 0; provider != NULL && i < provider->limit_count; i++) {
        const ration_limit_rule *limit = &provider->limits[i];
        if (limit->kind == RATION_KIND_ADAPTIVE && limit->adaptive.lease_ttl_us > 0)
            ttl_us = rn_min(ttl_us, limit->adaptive.lease_ttl_us);
    }
    return ttl_us;
}

static rn_api_lease *lease_new(rn_api_call *call, ration_request *request)
{
    rn_api *api = call->api;
    const ration_config *config = rn_gateway_config(api->gateway);
    const ration_rules *rules = ration_config_rules(config);
    const rn_account *account = request->account.data != NULL ? rn_config_find_account(config, request->account) : NULL;
    const ration_provider_rule *provider = account != NULL                  ? &rules->providers[account->provider]
                                           : request->provider.data != NULL ? provider_find(rules, request->provider)
                                                                            : NULL;
    rn_api_lease *lease = lease_alloc(api);
    rn_builder b;

    if (lease == NULL)
        return NULL;
    lease->party.event = on_event;
    lease->account = account != NULL ? account->name : NULL;
    lease->asked = rn_loop_now(api->loop);
    lease->api = api;
    lease->call = call;
    lease->owner = rn_client_id(call->client);
    lease->ttl_us = request->ttl_us != RATION_UNSET ? request->ttl_us : ttl_default(provider);
    request->ttl_us = lease->ttl_us;
    request->user = lease;
    rn_builder_init(&b, lease->tenant, sizeof lease->tenant);
    rn_builder_text(&b, request->tenant);
    TAILQ_INSERT_TAIL(&api->states[RN_API_WAITING], lease, link);
    return lease;
}

static void acquire_submit(rn_api_lease *lease, const ration_request *request)
{
    char words[RN_MEANT_BYTES];
    rn_api *api = lease->api;
    rn_api_call *call = lease->call;
    ration_decision decision;

    const int err = api->decider->ops->submit(api->decider, rn_loop_now(api->loop), request, &decision);
    rn_gateway_touch(api->gateway);
    if (err != RATION_OK) {
        if (err == RATION_ERR_INVALID) {
            rn_api_reject(call->in, 400, "bad_request", "Request cannot be decided on",
                          "its path, its names or a number in it are beyond what limits can be kept by",
                          (ration_text){NULL, 0});
        } else {
            rn_api_fail(call->in, err);
        }
        rn_api_call_end(call);
        lease_free(lease);
        return;
    }
    lease->lease = decision.lease;
    switch (decision.result) {
    case RATION_GRANTED:
        lease_granted(lease, call, decision.at);
        return;
    case RATION_QUEUED:
    case RATION_PENDING:
        call->waits = lease;
        rn_buffer_fini(&call->body);
        return;
    case RATION_REFUSED:
        lease->waited_us = RATION_UNSET;
        lease_refused(lease, call, &decision, rn_api_explain(call, request, &decision, words));
        return;
    }
}

/* A key that is in use: the same lease, unless something else was asked or there is none yet. */
static void acquire_again(rn_api_call *call, const rn_api_lease *lease, ration_text body)
{
    const ration_text field = ration_text_of("Idempotency-Key");

    if (lease->body != rn_hash(body.data, body.size)) {
        rn_api_reject(call->in, 422, "idempotency_key_reused", "The key stands for something else",
                      "the lease that was acquired under this Idempotency-Key was asked for with another body", field);
    } else if (lease->state == RN_API_WAITING) {
        rn_api_reject(call->in, 409, "idempotency_key_waiting", "The first request still waits",
                      "a request with this Idempotency-Key waits for its lease", field);
    } else {
        answer_granted(lease, call->in);
    }
    rn_api_call_end(call);
}

static rn_api_lease *key_find(rn_api *api, const rn_client *client, ration_text key)
{
    char buffer[RN_API_KEY_NAME_BYTES];
    const ration_text name = key_name(rn_client_id(client), key, buffer);
    rn_map_node *node = rn_map_find(&api->keys, name.data, name.size);

    if (node == NULL)
        return NULL;
    rn_api_lease *lease = (rn_api_lease *)(void *)((char *)node - offsetof(rn_api_lease, by_key));
    /* Its time is up, though the decider has not said so yet: the key is free. */
    if (lease->state == RN_API_HELD && lease->expires.us <= rn_loop_now(api->loop).us) {
        key_forget(lease);
        return NULL;
    }
    return lease;
}

void rn_api_acquire(rn_api_call *call, ration_request *request, ration_text key, ration_text body)
{
    rn_api *api = call->api;
    const rn_api_lease *known = key.data != NULL ? key_find(api, call->client, key) : NULL;

    if (known != NULL) {
        acquire_again(call, known, body);
        return;
    }

    const bool full = key.data != NULL && api->keys.size >= RN_API_KEYS_MAX;
    rn_api_lease *lease = full ? NULL : lease_new(call, request);
    if (lease == NULL) {
        rn_api_fail(call->in, full ? RATION_ERR_FULL : RATION_ERR_NOMEM);
        rn_api_call_end(call);
        return;
    }
    if (rn_gateway_draining(api->gateway)) {
        const ration_decision decision = rn_refusal_of(RATION_REASON_DRAINING, rn_loop_now(api->loop));
        lease->waited_us = RATION_UNSET;
        rn_gateway_turned_away(api->gateway, RATION_REASON_DRAINING);
        lease_refused(lease, call, &decision, "the process is shutting down");
        return;
    }
    if (key.data != NULL && key_keep(lease, key, body) != RATION_OK) {
        rn_api_fail(call->in, RATION_ERR_NOMEM);
        rn_api_call_end(call);
        lease_free(lease);
        return;
    }
    acquire_submit(lease, request);
}

/* ---- by name */

rn_api_lease *rn_api_lease_find(rn_api_call *call, ration_text name)
{
    rn_api *api = call->api;
    const ration_text field = ration_text_of("lease");
    ration_lease lease;

    const int err = rn_lease_name_read(name, &lease);
    const rn_api_slot *slot = err == RATION_OK && lease.index < api->slot_count ? &api->slots[lease.index] : NULL;
    if (slot != NULL && slot->live != NULL && slot->generation == lease.generation)
        return rn_api_owns(call, slot->live) ? slot->live : NULL;
    if (slot != NULL && lease.generation <= slot->generation) {
        rn_api_lease_over(call);
        return NULL;
    }
    rn_api_reject(call->in, 404, "unknown_lease", "No such lease", "no lease of this API is called so", field);
    rn_api_call_end(call);
    return NULL;
}

void rn_api_lease_over(rn_api_call *call)
{
    rn_api_reject(call->in, 410, "lease_ended", "The lease has ended",
                  "it was released, or not renewed in time and taken back", ration_text_of("lease"));
    rn_api_call_end(call);
}

/* ---- the end */

/* Without memory a refusal goes without the account's name. */
void rn_api_leases_part(rn_api *api)
{
    rn_api_lease *lease;

    TAILQ_FOREACH (lease, &api->states[RN_API_WAITING], link) {
        if (lease->account != NULL && lease->own_account == NULL)
            lease->own_account = rn_mem_strdup(rn_mem_default(), lease->account);
        lease->account = lease->own_account;
    }
}

void rn_api_leases_end(rn_api *api)
{
    static const rn_api_lease_state ending[] = {RN_API_WAITING, RN_API_HELD};

    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
        while (!TAILQ_EMPTY(&api->states[ending[i]]))
            lease_give_back(TAILQ_FIRST(&api->states[ending[i]]));
    }
    rn_gateway_settle(api->gateway);
    while (!TAILQ_EMPTY(&api->states[RN_API_LEAVING]))
        lease_free(TAILQ_FIRST(&api->states[RN_API_LEAVING]));
    while (!TAILQ_EMPTY(&api->spare)) {
        rn_api_lease *lease = TAILQ_FIRST(&api->spare);

        TAILQ_REMOVE(&api->spare, lease, link);
        rn_mem_free(rn_mem_default(), lease);
    }
    api->spare_count = 0;
}
