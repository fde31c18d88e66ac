/* SPDX-License-Identifier: MIT */
/*
 * The decision API: bodies in, decisions out.
 *
 * A table of operations, each a body of one kind of call (chapter 9's members) and what is done with it. A request is
 * looked at as early as it can be refused: method and content type with its head, the size while the body comes.
 * Demanding `application/json` also keeps web pages out, which may send other types to this machine unasked.
 *
 * Ownership: a call is in `calls` from its head until it is answered or its client has gone; its inbound has it as
 * user exactly that long. Only an acquire outlives the turn in which its body ended.
 */
#include "serve/api.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/api_parts.h"

typedef struct api_operation {
    ration_text path;
    rn_trace_op op; /* BLANK: `act` reads the body itself */
    void (*act)(rn_api_call *call, rn_trace_line *asked, ration_text body);
    bool operates; /* an operator's */
} api_operation;

static const ration_text no_field = {NULL, 0};

rn_api_call *rn_api_call_new(rn_api *api, rn_inbound *in)
{
    rn_api_call *call = rn_mem_zalloc(rn_mem_default(), 1, sizeof *call);

    if (call == NULL)
        return NULL;
    call->api = api;
    call->in = in;
    TAILQ_INSERT_TAIL(&api->calls, call, link);
    rn_inbound_set_user(in, call);
    return call;
}

void rn_api_call_end(rn_api_call *call)
{
    TAILQ_REMOVE(&call->api->calls, call, link);
    rn_member_forget(&call->store);
    if (call->api->keeper != NULL)
        rn_keeper_forget(call->api->keeper, &call->durable);
    rn_buffer_fini(&call->body);
    rn_mem_free(rn_mem_default(), call);
}

void rn_api_reject(rn_inbound *in, int status, const char *name, const char *title, const char *detail,
                   ration_text field)
{
    const rn_problem problem = {.status = status,
                                .name = name,
                                .title = title,
                                .detail = ration_text_of(detail),
                                .field = field,
                                .waited_us = RATION_UNSET};

    rn_reply_problem(in, &problem, NULL);
}

void rn_api_fail(rn_inbound *in, int err)
{
    rn_api_reject(in, 503, "internal", "The request could not be carried out", ration_err_text(err), no_field);
}

/* ---- operations */

void rn_api_answer(rn_api_call *call, const char *result, int64_t ttl_us)
{
    rn_output *body = &call->api->answer;

    rn_output_clear(body);
    rn_output_open(body, NULL, '{');
    rn_output_str(body, "result", result);
    if (ttl_us != RATION_UNSET)
        rn_output_ms(body, "ttlMs", ttl_us);
    rn_output_close(body, '}');
    rn_output_newline(body);
    rn_reply(call->in, 200, RN_API_JSON, NULL, body);
    rn_api_call_end(call);
}

/* What the decider said to a call about a lease. False: not OK, and it was answered. */
static bool decided(rn_api_call *call, int err)
{
    rn_gateway_touch(call->api->gateway);
    if (err == RATION_OK)
        return true;
    if (err == RATION_ERR_UNKNOWN) {
        rn_api_lease_over(call);
        return false;
    }
    if (err == RATION_ERR_INVALID) {
        rn_api_reject(call->in, 400, "bad_request", "Request cannot be carried out", "a number in it is out of range",
                      no_field);
    } else {
        rn_api_fail(call->in, err);
    }
    rn_api_call_end(call);
    return false;
}

/* At most one Idempotency-Key of 1 to 255 printable ASCII characters; `*out` is absent without one. */
static bool key_read(const rn_http_head *head, ration_text *out)
{
    const size_t count = rn_http_look(head->fields, "Idempotency-Key", out);

    if (count > 1 || (count == 1 && (out->size == 0 || out->size > RN_API_KEY_BYTES_MAX)))
        return false;
    for (size_t i = 0; i < out->size; i++) {
        if (out->data[i] < 0x20 || out->data[i] > 0x7e)
            return false;
    }
    return true;
}

static void act_acquire(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    ration_text key;

    if (!rn_api_permits(call, &asked->request))
        return;
    if (key_read(rn_inbound_head(call->in), &key)) {
        rn_api_acquire(call, &asked->request, key, body);
        return;
    }
    rn_api_reject(call->in, 400, "bad_request", "Malformed request field",
                  "Idempotency-Key must be given once, as 1 to 255 printable ASCII characters",
                  ration_text_of("Idempotency-Key"));
    rn_api_call_end(call);
}

static bool observe(rn_api_call *call, rn_api_lease *lease, const ration_response *response)
{
    rn_api *api = call->api;

    return decided(call, api->decider->ops->observe(api->decider, rn_loop_now(api->loop), lease->lease, response));
}

static void on_durable(rn_keeper_waiter *waiter)
{
    rn_api_call *call = (rn_api_call *)(void *)((char *)waiter - offsetof(rn_api_call, durable));

    rn_api_answer(call, "released", RATION_UNSET);
}

/* Whoever names the cost may have gone above a mark, and is not told so before a crash could not undo it. */
static bool release_waits(rn_api_call *call, const ration_completion *completion)
{
    rn_keeper *keeper = call->api->keeper;

    call->durable.kept = on_durable;
    return keeper != NULL && completion->cost != RATION_UNSET && rn_keeper_hold(keeper, &call->durable);
}

static void act_release(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    rn_api *api = call->api;
    const ration_response *response = &asked->response;
    rn_api_lease *lease = rn_api_lease_find(call, asked->id);

    (void)body;
    if (lease == NULL)
        return;
    if ((response->status > 0 || response->header_count > 0 || response->body.data != NULL) &&
        !observe(call, lease, response))
        return;
    if (!decided(call,
                 api->decider->ops->release(api->decider, rn_loop_now(api->loop), lease->lease, &asked->completion)))
        return;
    rn_api_lease_forget(lease);
    if (!release_waits(call, &asked->completion))
        rn_api_answer(call, "released", RATION_UNSET);
}

static void act_observe(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    rn_api_lease *lease = rn_api_lease_find(call, asked->id);

    (void)body;
    if (lease != NULL && observe(call, lease, &asked->response))
        rn_api_answer(call, "observed", RATION_UNSET);
}

static void act_renew(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    rn_api *api = call->api;
    const ration_time now = rn_loop_now(api->loop);
    rn_api_lease *lease = rn_api_lease_find(call, asked->id);

    (void)body;
    if (lease == NULL || !decided(call, api->decider->ops->renew(api->decider, now, lease->lease)))
        return;
    lease->expires = rn_time_add(now, lease->ttl_us);
    rn_api_answer(call, "renewed", lease->ttl_us);
}

static void check_write(rn_output *out, const ration_decision *decision, const char *words)
{
    static const char *const results[] = {
        [RATION_REFUSED] = "refused",
        [RATION_GRANTED] = "granted",
        [RATION_QUEUED] = "queued",
        [RATION_PENDING] = "pending",
    };
    char text[1024];

    rn_output_open(out, NULL, '{');
    rn_output_str(out, "result", results[decision->result]);
    if (decision->result == RATION_REFUSED) {
        rn_refusal_write(out, decision);
        const size_t size = ration_decision_explain(decision, text, sizeof text);
        rn_output_text(out, "explanation", words != NULL ? ration_text_of(words) : (ration_text){text, size});
    }
    rn_output_close(out, '}');
    rn_output_newline(out);
}

void rn_api_check_answer(rn_api_call *call, const ration_decision *decision, const char *words)
{
    rn_output out;

    rn_output_init(&out, rn_mem_default(), RN_PROBLEM_MAX);
    check_write(&out, decision, words);
    rn_reply(call->in, 200, RN_API_JSON, NULL, &out);
    rn_output_fini(&out);
    rn_api_call_end(call);
}

/* The answer is the decision, whatever it is: nothing was refused to anybody. A store's comes later. */
static void act_check(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    rn_api *api = call->api;
    rn_decider *d = api->decider;
    char words[RN_MEANT_BYTES];
    ration_decision decision;
    rn_api_lease *lease;

    (void)body;
    if (!rn_api_permits(call, &asked->request))
        return;
    lease = rn_api_check_new(call);
    asked->request.user = lease;

    const int err = lease == NULL ? RATION_ERR_NOMEM
                                  : d->ops->check(d, rn_loop_now(api->loop), &asked->request, asked->check, &decision);

    if (err == RATION_OK && decision.result == RATION_PENDING) {
        rn_api_check_wait(lease, decision.lease);
        return;
    }
    if (lease != NULL)
        rn_api_lease_forget(lease);
    if (decided(call, err))
        rn_api_check_answer(call, &decision, rn_api_explain(call, &asked->request, &decision, words));
}

/* It is none of the engine's calls, so it is read elsewhere. */
static void act_run(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    (void)asked;
    rn_api_run(call, body);
}

static const api_operation operations[] = {
    {RN_TEXT("/v1/acquire"), RN_TRACE_ACQUIRE, act_acquire, false},
    {RN_TEXT("/v1/release"), RN_TRACE_RELEASE, act_release, false},
    {RN_TEXT("/v1/renew"), RN_TRACE_RENEW, act_renew, false},
    {RN_TEXT("/v1/check"), RN_TRACE_CHECK, act_check, false},
    {RN_TEXT("/v1/observe"), RN_TRACE_OBSERVE, act_observe, false},
    {RN_TEXT("/v1/runs"), RN_TRACE_BLANK, act_run, false},
    {RN_TEXT("/v1/drain"), RN_TRACE_DRAIN, rn_api_operate_drain, true},
    {RN_TEXT("/v1/reload"), RN_TRACE_DRAIN, rn_api_reload, true}, /* its body is as empty */
};

/* Of a counter, which the path names. */
static const api_operation operates[] = {
    {{NULL, 0}, RN_TRACE_PAUSE, rn_api_operate, true},
    {{NULL, 0}, RN_TRACE_RESUME, rn_api_operate, true},
    {{NULL, 0}, RN_TRACE_RESET, rn_api_operate, true},
    {{NULL, 0}, RN_TRACE_GRANT, rn_api_operate, true},
};

static const api_operation *operation_find(ration_text path)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        if (rn_text_eq(path, operations[i].path))
            return &operations[i];
    }

    const rn_trace_op op = rn_api_operate_find(path);
    for (size_t i = 0; i < sizeof operates / sizeof operates[0]; i++) {
        if (operates[i].op == op)
            return &operates[i];
    }
    return NULL;
}

/* ---- requests */

static void reject_method(rn_inbound *in, const char *allowed)
{
    const rn_http_field allow = {ration_text_of("Allow"), ration_text_of(allowed)};
    const rn_problem problem = {.status = 405,
                                .name = "method_not_allowed",
                                .title = "Method not allowed",
                                .detail = ration_text_of("the Allow field has the methods that it answers"),
                                .waited_us = RATION_UNSET};

    rn_reply_problem(in, &problem, &allow);
}

/* `application/json`, with parameters or without. */
static bool is_json(const rn_http_head *head)
{
    ration_text value;

    if (rn_http_look(head->fields, "Content-Type", &value) != 1)
        return false;
    if (rn_text_is(value, RN_API_JSON))
        return true;

    size_t end = value.size;
    (void)rn_text_find(value, (ration_text){";", 1}, &end);
    return rn_text_is_nocase(rn_text_trim(rn_text_slice(value, 0, end)), RN_API_JSON);
}

static void reject_size(rn_inbound *in)
{
    rn_api_reject(in, 413, "too_large", "Body too large", "a body may have 65536 bytes", no_field);
}

static void operation_begin(rn_api *api, const api_operation *operation, rn_inbound *in, const rn_http_head *head)
{
    if (!rn_text_is(head->method, "POST")) {
        reject_method(in, "POST");
        return;
    }
    if (!is_json(head)) {
        rn_api_reject(in, 415, "unsupported_media_type", "Not JSON", "Content-Type must be application/json",
                      ration_text_of("Content-Type"));
        return;
    }
    if (head->body_bytes > RN_API_BODY_MAX) {
        reject_size(in);
        return;
    }

    rn_api_call *call = rn_api_call_new(api, in);
    if (call == NULL) {
        rn_api_fail(in, RATION_ERR_NOMEM);
        return;
    }
    call->operation = operation;
    rn_inbound_resume(in);
}

ration_text rn_api_path(ration_text target)
{
    size_t end = target.size;

    (void)rn_text_find(target, (ration_text){"?", 1}, &end);
    return rn_text_slice(target, 0, end);
}

static void events_join(rn_api *api, rn_inbound *in, const rn_http_head *head, const rn_client *client)
{
    const size_t path = rn_api_path(head->target).size;
    const ration_text query = rn_text_slice(head->target, path, head->target.size);
    uint32_t types;

    if (!rn_text_is(head->method, "GET")) {
        reject_method(in, "GET");
    } else if (!rn_bulletin_types(query, &types)) {
        rn_api_reject(in, 400, "bad_request", "Malformed query", "types=TYPE,TYPE with types that there are",
                      ration_text_of("types"));
    } else if (rn_api_may_view(api, in, client)) {
        rn_bulletin_join(rn_gateway_bulletin(api->gateway), in, types);
    }
}

bool rn_api_request(rn_api *api, rn_inbound *in, const rn_http_head *head, ration_text path, const rn_client *client)
{
    const api_operation *operation = operation_find(path);

    if (operation != NULL) {
        operation_begin(api, operation, in, head);
        return true;
    }
    if (rn_text_is(path, "/v1/events")) {
        events_join(api, in, head, client);
        return true;
    }
    if (!rn_api_page_exists(path))
        return false;
    if (rn_text_is(head->method, "GET") || rn_text_is(head->method, "HEAD")) {
        rn_api_page(api, in, client, path, rn_text_slice(head->target, path.size, head->target.size));
    } else {
        reject_method(in, "GET, HEAD");
    }
    return true;
}

void rn_api_body(rn_inbound *in, ration_text bytes)
{
    rn_api_call *call = rn_inbound_user(in);
    const bool fits = rn_buffer_size(&call->body) + bytes.size <= RN_API_BODY_MAX;

    if (fits && rn_buffer_append(&call->body, bytes.data, bytes.size))
        return;
    if (fits) {
        rn_api_fail(in, RATION_ERR_NOMEM);
    } else {
        reject_size(in);
    }
    rn_api_call_end(call);
}

void rn_api_reject_body(rn_api_call *call, const rn_trace_fault *fault)
{
    char detail[sizeof fault->text + sizeof fault->member + 48];
    rn_builder b;

    rn_builder_init(&b, detail, sizeof detail);
    if (fault->member[0] != '\0') {
        rn_builder_str(&b, fault->member);
        rn_builder_str(&b, ": ");
    }
    rn_builder_str(&b, fault->text);
    rn_builder_str(&b, " (at character ");
    rn_builder_int(&b, (int64_t)fault->column);
    rn_builder_str(&b, ")");
    rn_api_reject(call->in, 400, "bad_request", "Malformed body", detail,
                  fault->member[0] != '\0' ? ration_text_of(fault->member) : no_field);
    rn_api_call_end(call);
}

void rn_api_end(rn_inbound *in)
{
    rn_api_call *call = rn_inbound_user(in);
    rn_api *api = call->api;
    const ration_text body = rn_buffer_bytes(&call->body);
    rn_trace_fault fault;
    rn_trace_line asked;

    if (rn_bearer_read(rn_gateway_config(api->gateway), rn_inbound_head(in)->fields, &call->client) !=
        RN_BEARER_KNOWN) {
        rn_api_unauthorized(api, in, RN_BEARER_UNKNOWN);
        rn_api_call_end(call);
        return;
    }
    if (call->operation->operates && !rn_api_may_operate(call))
        return;
    const rn_trace_op op = call->operation->op;
    const int err = op != RN_TRACE_BLANK ? rn_trace_read_body(&api->reader, op, body, &asked, &fault) : RATION_OK;
    if (err == RATION_OK) {
        call->operation->act(call, &asked, body);
    } else if (err == RATION_ERR_SYNTAX) {
        rn_api_reject_body(call, &fault);
    } else {
        rn_api_fail(in, err);
        rn_api_call_end(call);
    }
}

void rn_api_gone(rn_inbound *in)
{
    rn_api_call *call = rn_inbound_user(in);

    if (call->waits != NULL)
        rn_api_lease_leave(call->waits);
    rn_api_call_end(call);
}

/* ---- the whole */

int rn_api_new(const rn_api_options *options, rn_api **out)
{
    rn_api *api = rn_mem_zalloc(rn_mem_default(), 1, sizeof *api);

    if (api == NULL)
        return RATION_ERR_NOMEM;
    api->loop = options->loop;
    api->decider = options->decider;
    api->gateway = options->gateway;
    api->planning = options->planning;
    api->member = options->member;
    api->keeper = options->keeper;
    api->reloader = options->reloader;
    TAILQ_INIT(&api->calls);
    for (size_t i = 0; i < RN_API_LEASE_STATES; i++)
        TAILQ_INIT(&api->states[i]);
    rn_map_init(&api->keys, rn_mem_default());
    TAILQ_INIT(&api->spare);
    rn_trace_reader_init(&api->reader, rn_mem_default());
    rn_output_init(&api->answer, rn_mem_default(), RN_PROBLEM_MAX);
    *out = api;
    return RATION_OK;
}

void rn_api_part(rn_api *api)
{
    rn_api_leases_part(api);
}

void rn_api_free(rn_api *api)
{
    if (api == NULL)
        return;
    rn_api_leases_end(api);
    while (!TAILQ_EMPTY(&api->calls))
        rn_api_call_end(TAILQ_FIRST(&api->calls));
    rn_map_fini(&api->keys);
    rn_trace_reader_fini(&api->reader);
    rn_output_fini(&api->answer);
    rn_mem_free(rn_mem_default(), api->slots);
    rn_mem_free(rn_mem_default(), api);
}
