/* SPDX-License-Identifier: MIT */
/*
 * From one attempt of a call to the next.
 *
 * Each attempt has a lease of its own: the first one's goes back with what the attempt came to, and the next is asked
 * for as a retry, so that quotas take it from their reserve and everything that may refuse a call may refuse this one.
 * Until it is granted the answer of the last attempt is kept, because that, and no refusal of ours, is what the client
 * gets if there is no other one; so nothing of an answer may have been passed on.
 *
 * A body is kept from its beginning, as it is read, in one piece: another attempt sends what is there and goes on
 * reading where the last one stopped, so a body that was half read when the provider said "too many" is no special
 * case. All that is kept of all calls has one bound; beyond it a call goes on as one that cannot be made again.
 *
 * Invariants: `fallen` is there exactly while a call that had an attempt has no lease; `kept_bytes` is the sum of all
 * kept bodies and answers.
 */
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/fields.h"
#include "serve/exchange.h"
#include "serve/outcome.h"

/* ---- what is kept */

int rn_kept_add(rn_exchange *x, ration_text bytes)
{
    rn_gateway *gw = x->gateway;

    rn_output_raw(&x->kept.bytes, bytes);
    if (x->kept.bytes.err != RATION_OK)
        return RATION_ERR_NOMEM;
    gw->kept_bytes += bytes.size;
    return gw->kept_bytes <= RN_KEPT_MAX_BYTES ? RATION_OK : RATION_ERR_FULL;
}

void rn_kept_forget(rn_exchange *x)
{
    x->gateway->kept_bytes -= x->kept.bytes.size;
    rn_output_fini(&x->kept.bytes);
    rn_output_init(&x->kept.bytes, rn_mem_default(), SIZE_MAX);
    x->kept.relayed = 0;
    x->kept.again = false;
}

void rn_fallen_forget(rn_exchange *x)
{
    rn_fallen *fallen = x->fallen;

    if (fallen == NULL)
        return;
    x->gateway->kept_bytes -= fallen->bytes;
    x->fallen = NULL;
    rn_output_fini(&fallen->body);
    rn_arena_fini(&fallen->arena);
    rn_mem_free(rn_mem_default(), fallen);
}

static rn_fallen *fallen_new(void)
{
    rn_fallen *fallen = rn_mem_zalloc(rn_mem_default(), 1, sizeof *fallen);

    if (fallen == NULL)
        return NULL;
    rn_arena_init(&fallen->arena, rn_mem_default());
    rn_output_init(&fallen->body, rn_mem_default(), SIZE_MAX);
    return fallen;
}

/* False: no memory. */
static bool text_keep(rn_fallen *fallen, ration_text text, ration_text *out)
{
    const char *data = rn_arena_textdup(&fallen->arena, text);

    *out = (ration_text){data, text.size};
    fallen->bytes += text.size;
    return data != NULL;
}

static bool fields_keep(rn_fallen *fallen, rn_http_fields given, rn_http_fields *out)
{
    rn_http_field *items = rn_arena_zalloc(&fallen->arena, given.count, sizeof *items);
    bool fine = items != NULL;

    for (size_t i = 0; fine && i < given.count; i++) {
        fine = text_keep(fallen, given.items[i].name, &items[i].name) &&
               text_keep(fallen, given.items[i].value, &items[i].value);
    }
    *out = (rn_http_fields){items, given.count};
    fallen->bytes += given.count * sizeof *items;
    return fine;
}

/* Take up what the last attempt came to, in the place of the one before. False: there is no room for it. */
static bool fallen_take(rn_exchange *x, rn_fallen *fallen, bool fine)
{
    rn_gateway *gw = x->gateway;

    x->fallen = fallen;
    if (fallen == NULL)
        return false;
    gw->kept_bytes += fallen->bytes;
    if (fine && gw->kept_bytes <= RN_KEPT_MAX_BYTES)
        return true;
    rn_fallen_forget(x);
    return false;
}

/* The answer with the body that was kept back. False: no room, and nothing has changed. */
static bool answer_keep(rn_exchange *x, rn_http_fields trailers)
{
    rn_fallen *fallen = fallen_new();
    bool fine = fallen != NULL;

    if (fine) {
        fallen->head = *x->answer;
        fine = text_keep(fallen, x->answer->reason, &fallen->head.reason) &&
               fields_keep(fallen, x->answer->fields, &fallen->head.fields) &&
               fields_keep(fallen, trailers, &fallen->trailers);
        fallen->bytes += x->seen.size;
    }
    if (!fallen_take(x, fallen, fine))
        return false;
    rn_output_raw(&fallen->body, (ration_text){x->seen.data, x->seen.size});
    if (fallen->body.err == RATION_OK)
        return true;
    rn_fallen_forget(x);
    return false;
}

static bool fault_keep(rn_exchange *x, rn_upstream_fault fault, const char *words)
{
    rn_fallen *fallen = fallen_new();

    if (fallen != NULL) {
        fallen->fault = fault;
        fallen->words = rn_arena_strdup(&fallen->arena, words);
    }
    return fallen_take(x, fallen, fallen != NULL && fallen->words != NULL);
}

/* ---- whether there is another one */

/* The instant before which the provider does not want to be asked again. */
static ration_time named_time(rn_exchange *x, const rn_http_head *head)
{
    rn_gateway *gw = x->gateway;
    ration_time at = {RATION_NEVER_US};

    if (head == NULL || rn_gateway_reserve(gw, head->fields.count) != RATION_OK)
        return at;
    for (size_t i = 0; i < head->fields.count; i++)
        gw->headers[i] = (ration_header){head->fields.items[i].name, head->fields.items[i].value};
    const ration_response response = {.headers = gw->headers, .header_count = head->fields.count};
    (void)rn_field_retry_after(&response, rn_loop_now(gw->loop), &at);
    return at;
}

/* Counts why not. `head` NULL: there was no answer. */
static bool attempt_decide(rn_exchange *x, rn_retry_cause cause, const rn_http_head *head, ration_time *at)
{
    const rn_http_head *request = rn_inbound_head(x->in);
    const rn_retry_facts facts = {
        .cause = cause,
        .idempotent = rn_request_is_idempotent(request),
        .kept = request->body_bytes == 0 || x->kept.again,
        .draining = rn_gateway_draining(x->gateway),
        .attempts = x->attempts,
        .retries = x->retries,
        .now = rn_loop_now(x->gateway->loop),
        .after = named_time(x, head),
        .deadline = x->deadline,
        .seed = x->id,
    };
    const rn_retry_verdict verdict = rn_retry_decide(&facts, at);

    if (verdict != RN_RETRY_AGAIN)
        x->gateway->counts.withheld[verdict]++;
    return verdict == RN_RETRY_AGAIN;
}

static bool answer_decide(rn_exchange *x, ration_time *at)
{
    return attempt_decide(x, x->throttled ? RN_RETRY_THROTTLED : RN_RETRY_TRANSIENT, x->answer, at);
}

bool rn_attempt_may_follow(rn_exchange *x)
{
    ration_time at;

    return (x->throttled || rn_status_is_transient(x->to->errors, x->status)) && answer_decide(x, &at);
}

/* ---- and then */

static void attempt_log(rn_exchange *x, const char *cause)
{
    rn_gateway *gw = x->gateway;
    char attempt[24], status[24];
    rn_builder b;

    rn_builder_init(&b, attempt, sizeof attempt);
    rn_builder_int(&b, x->attempts);
    rn_builder_init(&b, status, sizeof status);
    rn_builder_int(&b, x->status);
    rn_log_gated(gw->log, &gw->retry_gate, rn_loop_now(gw->loop), "info", "an attempt failed, another follows",
                 "account", x->to->account->name, "cause", cause != NULL ? cause : status, "attempt", attempt, NULL);
}

/* The lease goes back, and the next one is asked for at `at`. The exchange may be over afterwards. */
static void attempt_follow(rn_exchange *x, ration_outcome outcome, ration_time at)
{
    const ration_time now = rn_loop_now(x->gateway->loop);

    if (!x->kept.whole)
        rn_inbound_pause(x->in);
    if (x->lease.generation != 0)
        rn_exchange_release(x, outcome);
    rn_mem_free(rn_mem_default(), x->usage);
    x->usage = NULL;
    rn_output_clear(&x->seen);
    x->answer = NULL;
    x->judged = x->throttled = x->ended = false;
    x->kept.relayed = 0;
    x->rests_at = now;
    rn_exchange_enter(x, RN_EXCHANGE_RESTING);
    if (!rn_time_before(now, at)) {
        rn_exchange_submit(x);
    } else if (rn_timer_set(&x->timer, at) != RATION_OK) {
        rn_attempt_give(x, RN_RETRY_REFUSED);
    }
}

bool rn_attempt_answered(rn_exchange *x, rn_http_fields trailers)
{
    ration_time at = {0};

    if (!answer_decide(x, &at))
        return false;
    if (!answer_keep(x, trailers)) {
        x->gateway->counts.withheld[RN_RETRY_ANSWER]++;
        return false;
    }
    attempt_log(x, NULL);
    attempt_follow(x, rn_outcome_of(x->to->errors, x->status, x->throttled), at);
    return true;
}

bool rn_attempt_broke(rn_exchange *x, rn_upstream_fault fault, const char *words)
{
    rn_retry_cause cause = fault == RN_UPSTREAM_CONNECT ? RN_RETRY_UNSENT : RN_RETRY_BROKEN;
    ration_time at = {0};

    /* Who it is that answers does not change by asking again. */
    if (fault == RN_UPSTREAM_TLS)
        return false;
    if (x->judged && x->throttled)
        cause = RN_RETRY_THROTTLED;
    if (!attempt_decide(x, cause, x->judged ? x->answer : NULL, &at))
        return false;
    if (!fault_keep(x, fault, words))
        return false;
    rn_exchange_note(x, fault, words);
    attempt_log(x, rn_upstream_fault_name(fault));
    attempt_follow(x, RATION_OUTCOME_FAILURE, at);
    return true;
}

void rn_attempt_give(rn_exchange *x, rn_retry_verdict why)
{
    const rn_fallen *fallen = x->fallen;

    x->gateway->counts.withheld[why]++;
    if (fallen->words != NULL) {
        rn_exchange_blame(x, fallen->fault, fallen->words);
        return;
    }
    if (!rn_exchange_start(x, &fallen->head))
        return;
    if (rn_inbound_write(x->in, (ration_text){fallen->body.data, fallen->body.size}) < 0) {
        rn_inbound_abort(x->in);
        x->in = NULL;
    } else {
        rn_exchange_finish(x, fallen->trailers);
    }
    rn_exchange_end(x, RATION_OUTCOME_FAILURE);
}

void rn_attempts_stop(rn_gateway *gw)
{
    while (!TAILQ_EMPTY(&gw->states[RN_EXCHANGE_RESTING]))
        rn_attempt_give(TAILQ_FIRST(&gw->states[RN_EXCHANGE_RESTING]), RN_RETRY_DRAINING);
}
