/* SPDX-License-Identifier: MIT */
/*
 * Operators over HTTP: pause, resume, reset and grant a counter, drain the whole.
 *
 * A counter is named by its path, as its page is; the body has what is left to say. What an operator does is logged,
 * told to those who listen, and stands in the recording.
 */
#include "base/mem.h"
#include "base/text.h"
#include "serve/api_parts.h"
#include "serve/route.h"

#define KEY_MAX_BYTES 4096 /* more than any key has */

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

/* What a path names, decoded into the buffers. */
typedef struct target {
    const verb *verb;
    ration_text name, key;
} target;

/* "/v1/limits/NAME/KEY/VERB", parts as they stand in it. False: it is none. */
static bool target_split(ration_text path, target *out)
{
    static const ration_text prefix = {"/v1/limits/", 11};
    ration_text parts[3];
    size_t count = 0;

    if (!rn_text_eq(rn_text_slice(path, 0, prefix.size), prefix))
        return false;
    for (size_t from = prefix.size; from <= path.size;) {
        const ration_text rest = rn_text_slice(path, from, path.size);
        size_t end = rest.size;

        (void)rn_text_find(rest, (ration_text){"/", 1}, &end);
        if (count == 3)
            return false;
        parts[count++] = rn_text_slice(rest, 0, end);
        from += end + 1;
    }
    if (count < 3 || parts[0].size == 0)
        return false;
    *out = (target){.name = parts[0], .key = parts[1]};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (rn_text_is(parts[2], verbs[i].name))
            out->verb = &verbs[i];
    }
    return out->verb != NULL;
}

rn_trace_op rn_api_operate_find(ration_text path)
{
    static const rn_trace_op ops[] = {RN_TRACE_PAUSE, RN_TRACE_RESUME, RN_TRACE_RESET, RN_TRACE_GRANT};
    target at;

    return target_split(path, &at) ? ops[at.verb - verbs] : RN_TRACE_BLANK;
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
        rn_api_reject(call->in, 400, "bad_request", "Units that cannot be granted",
                      "more than 0, and whole where the limit counts requests", ration_text_of("units"));
    } else if (err == RATION_ERR_INVALID && did->op == RATION_OP_GRANT) {
        rn_api_reject(
            call->in, 422, "not_grantable", "Nothing can be granted there",
            "its units are held and not spent (raise its maximum instead), or several providers have such a limit",
            no_field);
    } else if (err == RATION_ERR_INVALID) {
        rn_api_reject(call->in, 400, "bad_request", "It is not clear whose limit that is",
                      "several providers have a limit of this name", ration_text_of("provider"));
    } else {
        rn_api_fail(call->in, err);
    }
    rn_api_call_end(call);
}

static void answer(rn_api_call *call, const char *result)
{
    rn_output body;

    rn_output_init(&body, rn_mem_default(), RN_PROBLEM_MAX);
    rn_output_open(&body, NULL, '{');
    rn_output_str(&body, "result", result);
    rn_output_close(&body, '}');
    rn_output_newline(&body);
    rn_reply(call->in, 200, RN_API_JSON, NULL, &body);
    rn_output_fini(&body);
    rn_api_call_end(call);
}

void rn_api_operate(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    rn_api *api = call->api;
    char name[RN_API_NAME_MAX], key[KEY_MAX_BYTES];
    ration_counter_name counter = {.provider = asked->counter.provider};
    target at;

    (void)body;
    if (!target_split(rn_api_path(rn_inbound_head(call->in)->target), &at) ||
        rn_route_decode(at.name, name, sizeof name, &counter.limit) != RATION_OK ||
        rn_route_decode(at.key, key, sizeof key, &counter.key) != RATION_OK) {
        rn_api_reject(call->in, 400, "bad_request", "Malformed target",
                      "a % without two hexadecimal digits behind it, or longer than any name or key",
                      ration_text_of("key"));
        rn_api_call_end(call);
        return;
    }

    const int64_t units = at.verb->op == RATION_OP_GRANT ? asked->units : 0;
    const int err = api->decider->ops->operate(api->decider, rn_loop_now(api->loop), at.verb->op, &counter, units);
    rn_gateway_touch(api->gateway);
    if (err != RATION_OK) {
        reject(call, err, at.verb);
        return;
    }
    operator_tell(api, at.verb->result, &counter, units);
    answer(call, at.verb->result);
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
    answer(call, "draining");
}
