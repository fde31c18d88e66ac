/* SPDX-License-Identifier: MIT */
/*
 * Whole answers of the control port.
 *
 * Nothing of it may be kept by anybody on the way: every answer is of one instant.
 */
#include "serve/reply.h"

#include "base/mem.h"
#include "base/text.h"

#define FIELDS_MAX 4

static void reply_send(rn_inbound *in, int status, const char *type, const rn_http_field *extra, size_t count,
                       const rn_output *body)
{
    rn_http_field fields[FIELDS_MAX] = {
        {ration_text_of("Content-Type"), ration_text_of(type)},
        {ration_text_of("Cache-Control"), ration_text_of("no-store")},
    };

    for (size_t i = 0; extra != NULL && i < count; i++)
        fields[2 + i] = extra[i];
    const rn_response response = {.status = status, .fields = {fields, 2 + count}};
    if (body->err != RATION_OK || rn_inbound_respond(in, &response, (ration_text){body->data, body->size}) != RATION_OK)
        rn_inbound_abort(in);
}

void rn_reply(rn_inbound *in, int status, const char *type, const rn_http_field *extra, const rn_output *body)
{
    const rn_http_field none = {{NULL, 0}, {NULL, 0}};

    reply_send(in, status, type, extra != NULL ? extra : &none, extra != NULL ? 1 : 0, body);
}

static void reply_problem(rn_inbound *in, const rn_problem *problem, const rn_http_field *extra, size_t count)
{
    const ration_decision *d = problem->decision;
    rn_output body;

    rn_output_init(&body, rn_mem_default(), RN_PROBLEM_MAX);
    rn_problem_write(&body, problem);
    reply_send(in, d != NULL ? rn_refusal_status(d->reason) : problem->status, RN_PROBLEM_TYPE, extra, count, &body);
    rn_output_fini(&body);
}

void rn_reply_problem(rn_inbound *in, const rn_problem *problem, const rn_http_field *extra)
{
    reply_problem(in, problem, extra, extra != NULL ? 1 : 0);
}

void rn_reply_refusal(rn_inbound *in, const rn_problem *problem, ration_time now)
{
    const int64_t seconds = rn_refusal_retry_after(problem->decision, now);
    char after[24];
    rn_builder b;

    rn_builder_init(&b, after, sizeof after);
    rn_builder_int(&b, seconds);
    const rn_http_field fields[] = {
        {ration_text_of("Ration-Refused"), ration_text_of(ration_reason_name(problem->decision->reason))},
        {ration_text_of("Retry-After"), {b.data, b.used}},
    };
    reply_problem(in, problem, fields, seconds > 0 ? 2 : 1);
}
