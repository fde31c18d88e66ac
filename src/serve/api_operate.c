/* SPDX-License-Identifier: MIT */
/*
 * Operators over HTTP: pause, resume, reset and grant a counter, drain the whole.
 *
 * A counter is named by its path, as its page is; the body has what is left to say. What an operator does is logged,
 * told to those who listen, and stands in the recording.
 */
#include <assert.h>

#include "base/text.h"
#include "serve/api_parts.h"

typedef struct verb {
    const char *name;
    ration_op op;
    const char *result;
} verb;

static const verb verbs[] = {
    {"pause", RATION_OP_PAUSE, "paused"},
    {"resume", RATION_OP_RESUME, "resumed"},
    {"reset", RATION_OP_RESET, "reset"},
    {"grant", RATION_OP_GRANT, "granted"},
};

/* What the last part of a counter's path asks for; NULL: nothing. */
static const verb *verb_find(ration_text path, ration_text *name, ration_text *key)
{
    ration_text last;

    if (!rn_api_counter_split(path, name, key, &last) || last.data == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (rn_text_is(last, verbs[i].name))
            return &verbs[i];
    }
    return NULL;
}

rn_trace_op rn_api_operate_find(ration_text path)
{
    static const rn_trace_op ops[] = {RN_TRACE_PAUSE, RN_TRACE_RESUME, RN_TRACE_RESET, RN_TRACE_GRANT};
    ration_text name, key;
    const verb *found = verb_find(path, &name, &key);

    return found != NULL ? ops[found - verbs] : RN_TRACE_BLANK;
}

static void operator_tell(const rn_api *api, const char *did, const ration_counter_name *counter, int64_t units)
{
    const ration_time now = rn_loop_now(api->loop);

    rn_gateway_operated(api->gateway, did, counter, units);
    rn_output *out = rn_bulletin_begin(rn_gateway_bulletin(api->gateway), "operator", now);
    if (out == NULL)
        return;
    rn_output_str(out, "did", did);
    if (counter != NULL) {
        rn_output_text(out, "limit", counter->limit);
        rn_output_text(out, "key", counter->key);
    }
    if (units > 0)
        rn_output_micro(out, "units", units);
    rn_bulletin_tell(rn_gateway_bulletin(api->gateway));
}

static void reject(rn_api_call *call, int err, const verb *did)
{
    const ration_text no_field = {NULL, 0};

    if (err == RATION_ERR_UNKNOWN) {
        rn_api_reject(call->in, 404, "unknown_key", "Nothing is counted there",
                      "no limit of this name has a counter at that scope key: nothing has been asked there yet",
                      ration_text_of("key"));
    } else if (err == RATION_ERR_RANGE) {
        rn_api_reject(
            call->in, 400, "bad_request", "Units that cannot be granted",
            "more than 0, whole where the limit counts requests, and with what was granted before in this window "
            "no more than 9007199254.740992",
            ration_text_of("units"));
    } else if (err == RATION_ERR_INVALID && did->op == RATION_OP_GRANT) {
        rn_api_reject(
            call->in, 422, "not_grantable", "Nothing can be granted there",
            "its units are held and not spent (raise its maximum instead), or several providers have such a limit",
            no_field);
    } else if (err == RATION_ERR_INVALID) {
        rn_api_reject(call->in, 400, "bad_request", "It is not clear whose limit that is",
                      "several providers have a limit of this name", ration_text_of("provider"));
    } else if (err == RATION_ERR_IO) {
        rn_api_reject(call->in, 503, "store_away", "The fleet's store did not answer",
                      "it is not known whether that was done: look at the counter when the store is back", no_field);
    } else {
        rn_api_fail(call->in, err);
    }
    rn_api_call_end(call);
}

/* What the path of a call names. */
typedef struct place {
    const verb *did;
    ration_counter_name counter;
    char name[RN_API_NAME_MAX], key[RN_API_KEY_MAX];
} place;

/* False: it cannot be read, and was answered. */
static bool place_read(const rn_api_call *call, place *out)
{
    out->counter = (ration_counter_name){.provider = {NULL, 0}};
    out->did = verb_find(rn_api_path(rn_inbound_head(call->in)->target), &out->counter.limit, &out->counter.key);
    assert(out->did != NULL); /* by its path it was found to be one of these */
    return rn_api_counter_decode(call->in, &out->counter.limit, out->name, &out->counter.key, out->key);
}

static void operated(rn_api_call *call, const place *at, int err)
{
    rn_gateway_touch(call->api->gateway);
    if (err != RATION_OK) {
        reject(call, err, at->did);
        return;
    }
    operator_tell(call->api, at->did->result, &at->counter, call->units);
    rn_api_answer(call, at->did->result, RATION_UNSET);
}

/* The store has answered. */
static void on_operated(rn_member_listener *listener, int err)
{
    rn_api_call *call = (rn_api_call *)(void *)((char *)listener - offsetof(rn_api_call, store));
    place at;

    if (place_read(call, &at)) {
        operated(call, &at, err);
    } else {
        rn_api_call_end(call);
    }
}

void rn_api_operate(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    rn_api *api = call->api;
    place at;
    int err;

    (void)body;
    if (!place_read(call, &at)) {
        rn_api_call_end(call);
        return;
    }
    at.counter.provider = asked->counter.provider;
    call->units = at.did->op == RATION_OP_GRANT ? asked->units : 0;
    if (api->member == NULL) {
        err = api->decider->ops->operate(api->decider, rn_loop_now(api->loop), at.did->op, &at.counter, call->units);
        operated(call, &at, err);
        return;
    }
    call->store.told = on_operated;
    err = rn_member_operate(api->member, at.did->op, &at.counter, call->units, &call->store);
    if (err != RATION_OK)
        reject(call, err, at.did);
}

void rn_api_operate_drain(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    rn_api *api = call->api;
    const ration_counter_name none = {.provider = {NULL, 0}};

    (void)asked;
    (void)body;
    const int err = api->decider->ops->operate(api->decider, rn_loop_now(api->loop), RATION_OP_DRAIN, &none, 0);
    rn_gateway_touch(api->gateway);
    if (err != RATION_OK) {
        rn_api_fail(call->in, err);
        rn_api_call_end(call);
        return;
    }
    rn_gateway_quiesce(api->gateway);
    operator_tell(api, "draining", NULL, 0);
    rn_api_answer(call, "draining", RATION_UNSET);
}
