/* SPDX-License-Identifier: MIT */
/*
 * What the event of a call tells: one call, however many attempts it took.
 *
 * It is made when the call is asked for, if anybody listens then, and told when the call has ended, if it ever had a
 * lease: what was refused has an event of its own.
 */
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/exchange.h"
#include "serve/trace_context.h"

#define NAME_BYTES 48

static void copy(char *out, size_t size, ration_text text)
{
    rn_builder b;

    rn_builder_init(&b, out, size);
    rn_builder_text(&b, text);
}

void rn_span_begin(rn_exchange *x)
{
    const rn_http_head *head = rn_inbound_head(x->in);

    if (!rn_bulletin_heard(x->gateway->bulletin, "call"))
        return;
    x->span = rn_mem_zalloc(rn_mem_default(), 1, sizeof *x->span);
    if (x->span == NULL)
        return;
    x->span->began_at = rn_loop_now(x->gateway->loop);
    x->span->cost = rn_exchange_charged(x);
    copy(x->span->method, sizeof x->span->method, head->method);
    copy(x->span->tenant, sizeof x->span->tenant, x->directives.tenant);
    copy(x->span->traceparent, sizeof x->span->traceparent, rn_trace_context_find(head->fields));
}

void rn_span_waits(rn_exchange *x, const char *limit)
{
    if (x->span != NULL && x->span->limit[0] == '\0')
        copy(x->span->limit, sizeof x->span->limit, ration_text_of(limit));
}

void rn_span_add(rn_exchange *x, const ration_completion *how)
{
    rn_span *span = x->span;

    if (span == NULL)
        return;
    span->held = true;
    span->outcome = how->outcome;
    span->spent = rn_add(span->spent, how->cost != RATION_UNSET ? how->cost : span->cost);
    span->ran_us = rn_add(span->ran_us, rn_max(0, rn_sub(rn_loop_now(x->gateway->loop).us, x->granted_at.us)));
}

void rn_span_tell(const rn_exchange *x)
{
    const rn_span *span = x->span;
    char name[NAME_BYTES];
    rn_output *out = span != NULL && span->held
                         ? rn_bulletin_begin(x->gateway->bulletin, "call", rn_loop_now(x->gateway->loop))
                         : NULL;

    if (out == NULL)
        return;
    rn_output_text(out, "requestId", rn_exchange_name(x, name, sizeof name));
    rn_output_str(out, "account", x->to->account->name);
    rn_output_str(out, "method", span->method);
    rn_output_str(out, "priority", ration_priority_name(x->priority));
    if (span->tenant[0] != '\0')
        rn_output_str(out, "tenant", span->tenant);
    rn_output_ms(out, "startedAt", span->began_at.us);
    rn_output_ms(out, "waitedMs", x->waited_us);
    rn_output_ms(out, "durationMs", span->ran_us);
    if (span->limit[0] != '\0')
        rn_output_str(out, "limit", span->limit);
    if (x->status > 0)
        rn_output_int(out, "status", x->status);
    rn_output_str(out, "outcome", ration_outcome_name(span->outcome));
    rn_output_int(out, "attempts", x->attempts);
    rn_output_micro(out, "cost", span->spent);
    rn_trace_context_write(ration_text_of(span->traceparent), out);
    rn_bulletin_tell(x->gateway->bulletin);
}
