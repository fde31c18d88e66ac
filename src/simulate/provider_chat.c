/* SPDX-License-Identifier: MIT */
/*
 * The simulated provider in the shape of OpenAI's API: POST /chat/completions, whole and as a stream.
 *
 * A chat is judged when its body has come. It costs the tokens that it will use, which are drawn before it is let in,
 * so what the limits have counted and what the answers have told are the same. Where the config has credentials for
 * this provider, a call with none of them is turned away, before it costs anything: so a client whose own key went
 * through the gateway unreplaced does not get an answer.
 *
 * A stream has the first half of its call's latency before its head, and its events evenly in the other half. The slot
 * is given back before the last event leaves, as before any answer.
 *
 * Invariant: usage is counted once for each answer that is sent to its end, before the end is.
 */
#include "base/text.h"
#include "simulate/provider_parts.h"

#define SECOND_US 1000000

/* ---- what it says */

static void respond_error(rn_sim_exchange *x, int status, rn_answer *answer, const char *message, const char *type,
                          const char *code)
{
    rn_output json;

    rn_output_init(&json, x->sim->mem, RN_SIM_BODY_MAX);
    rn_chat_error_write(message, type, code, &json);
    rn_sim_respond_json(x->in, status, answer, &json);
}

/* The request cannot be served, whatever the limits are. */
static void chat_reject(rn_sim_exchange *x, int status, const char *message, const char *code)
{
    rn_answer answer;

    rn_answer_init(&answer);
    RN_SIM_COUNT(x, rejected, 1);
    rn_sim_exchange_end(x);
    respond_error(x, status, &answer, message, "invalid_request_error", code);
    rn_sim_exchange_free(x);
}

/* What the limit counts that refused the call, in this API's words. */
static const char *refused_type(const rn_sim_exchange *x)
{
    const ration_provider_rule *rule = x->sim->rule;

    for (size_t i = 0; i < rule->limit_count && x->judgement.limit != NULL; i++) {
        if (rn_text_is(ration_text_of(x->judgement.limit), rule->limits[i].name))
            return rule->limits[i].counts == RATION_COUNTS_COST ? "tokens" : "requests";
    }
    return "requests";
}

static void respond_refused(rn_sim_exchange *x, rn_answer *answer)
{
    const char *type = refused_type(x);
    char message[256];
    rn_builder b;

    rn_builder_init(&b, message, sizeof message);
    rn_builder_str(&b, "Rate limit reached for ");
    rn_builder_str(&b, x->chat.model);
    rn_builder_str(&b, " on ");
    rn_builder_str(&b, type);
    if (x->judgement.retry_us != RATION_UNSET) {
        rn_builder_str(&b, ". Please try again in ");
        rn_builder_ms(&b, x->judgement.retry_us);
        rn_builder_str(&b, "ms");
    }
    rn_answer_retry(answer, x->judgement.retry_us);
    respond_error(x, x->status, answer, message, type, "rate_limit_exceeded");
}

static void usage_count(rn_sim_exchange *x)
{
    RN_SIM_COUNT(x, ok, 1);
    RN_SIM_COUNT(x, prompt_tokens, x->chat.prompt_tokens);
    RN_SIM_COUNT(x, answer_tokens, x->chat.answer_tokens);
}

static void respond_whole(rn_sim_exchange *x, rn_answer *answer)
{
    rn_output json;

    rn_output_init(&json, x->sim->mem, RN_SIM_BODY_MAX);
    usage_count(x);
    rn_chat_write(&x->chat, x->created_s, &json);
    rn_sim_respond_json(x->in, 200, answer, &json);
}

/* ---- streams */

static void stream_break(rn_sim_exchange *x)
{
    rn_inbound_abort(x->in);
    rn_sim_exchange_end(x);
    rn_sim_exchange_free(x);
}

void rn_sim_chat_stream(rn_sim_exchange *x)
{
    const bool last = x->event == rn_chat_events(&x->chat) - 1;
    rn_output event;

    rn_output_init(&event, x->sim->mem, RN_SIM_BODY_MAX);
    rn_chat_event_write(&x->chat, x->created_s, x->event++, &event);
    const bool sent = event.err == RATION_OK && rn_inbound_write(x->in, (ration_text){event.data, event.size}) >= 0;
    rn_output_fini(&event);
    if (!sent) {
        stream_break(x);
        return;
    }
    if (!last) {
        const ration_time due = rn_time_add(rn_sim_now(x->sim), x->event_us);

        if (rn_timer_set(&x->timer, due) != RATION_OK)
            stream_break(x);
        return;
    }
    usage_count(x);
    rn_sim_exchange_end(x);
    rn_inbound_finish(x->in, (rn_http_fields){.items = NULL, .count = 0});
    rn_sim_exchange_free(x);
}

static void stream_begin(rn_sim_exchange *x, rn_answer *answer)
{
    rn_answer_add(answer, "Content-Type", ration_text_of("text/event-stream; charset=utf-8"));
    const rn_response response = {
        .status = 200, .fields = {answer->fields, answer->count}, .body_bytes = RN_LENGTH_UNKNOWN};

    if (rn_inbound_start(x->in, &response) != RATION_OK) {
        stream_break(x);
        return;
    }
    rn_sim_chat_stream(x);
}

/* ---- a call */

void rn_sim_chat_feed(rn_sim_exchange *x, ration_text bytes)
{
    rn_output_raw(&x->body, bytes);
}

/* Whether it presents what an account of the config does; where none has anything to present, all may call. */
static bool has_key(const rn_sim_exchange *x)
{
    const rn_simulator_options *options = &x->sim->options;
    const rn_account *account;

    if (x->client->account.data != NULL)
        return true;
    for (size_t i = 0; (account = rn_config_account(options->config, i)) != NULL; i++) {
        if (account->provider == options->provider && account->credential.header != NULL)
            return false;
    }
    return true;
}

static bool is_chat_path(ration_text target)
{
    size_t end = 0;

    while (end < target.size && target.data[end] != '?')
        end++;
    return rn_text_is(rn_text_slice(target, 0, end), RN_CHAT_PATH);
}

/* Half of its time before the first event, the other half for all of them. */
static int stream_pace(rn_sim_exchange *x)
{
    const int64_t latency_us = rn_behaviour_latency(&x->sim->options.behaviour, x->ordinal);

    x->event_us = latency_us / 2 / (rn_chat_events(&x->chat) - 1);
    return rn_timer_set(&x->timer, rn_time_add(rn_sim_now(x->sim), latency_us - latency_us / 2));
}

bool rn_sim_chat_begin(rn_sim_exchange *x)
{
    const char *fault = NULL;

    if (!has_key(x)) {
        chat_reject(x, 401, "Incorrect API key provided", "invalid_api_key");
        return false;
    }
    if (!is_chat_path(x->path) || !rn_text_is(rn_inbound_head(x->in)->method, "POST")) {
        chat_reject(x, 404, "Unknown request URL: there is only POST " RN_CHAT_PATH, "unknown_url");
        return false;
    }
    if (x->body.err == RATION_ERR_FULL)
        fault = "the body is too long";
    if (fault != NULL || rn_chat_read((ration_text){x->body.data, x->body.size}, &x->chat, &fault) != RATION_OK) {
        chat_reject(x, 400, fault, NULL);
        return false;
    }
    rn_chat_draw(&x->chat, x->sim->options.behaviour.seed, x->ordinal);
    x->created_s = rn_sim_now(x->sim).us / SECOND_US;

    int err = x->body.err;
    if (err == RATION_OK)
        err = rn_sim_judge(x, true, rn_mul(rn_chat_tokens(&x->chat), RATION_UNIT));
    if (err == RATION_OK && x->judgement.granted && x->chat.stream && x->status == 200)
        err = stream_pace(x);
    if (err == RATION_OK)
        return true;
    rn_sim_exchange_fail(x, err);
    return false;
}

void rn_sim_chat_answer(rn_sim_exchange *x)
{
    const bool streams = x->judgement.granted && x->status == 200 && x->chat.stream;
    rn_answer answer;

    rn_answer_init(&answer);
    rn_sim_quotas(x, &answer);
    if (streams) {
        stream_begin(x, &answer);
        return;
    }
    rn_sim_exchange_end(x);
    if (!x->judgement.granted) {
        RN_SIM_COUNT(x, rate_limited, 1);
        x->sim->causes[x->judgement.reason]++;
        respond_refused(x, &answer);
    } else if (x->status != 200) {
        RN_SIM_COUNT(x, errors, 1);
        respond_error(x, x->status, &answer, "The server had an error while processing your request", "server_error",
                      NULL);
    } else {
        respond_whole(x, &answer);
    }
    rn_sim_exchange_free(x);
}
