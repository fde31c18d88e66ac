/* SPDX-License-Identifier: MIT */
/*
 * `traceparent`, by W3C Trace Context, 3.2: VERSION-TRACE-PARENT-FLAGS, all in small hexadecimal digits.
 *
 * Version 00 ends with its flags. A later one may go on after a dash, with its ids where those of 00 are; ff is none.
 * An id of zeros alone names nothing. What cannot be read still goes on to the provider, as it came: it is not ours.
 */
#include "serve/trace_context.h"

#include "base/text.h"

#define TRACE_AT 3
#define PARENT_AT 36
#define FLAGS_AT 53
#define SIZE 55 /* of version 00, and the least of any */

ration_text rn_trace_context_find(rn_http_fields fields)
{
    const ration_text name = {"traceparent", 11};

    return rn_http_count_text(fields, name) == 1 ? rn_http_find_text(fields, name) : (ration_text){NULL, 0};
}

/* Small digits alone. */
static bool is_hex(ration_text text)
{
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

static bool is_id(ration_text text)
{
    size_t zeros = 0;

    while (zeros < text.size && text.data[zeros] == '0')
        zeros++;
    return zeros < text.size && is_hex(text);
}

int rn_trace_context_read(ration_text value, rn_trace_context *out)
{
    if (value.size < SIZE)
        return RATION_ERR_SYNTAX;

    const ration_text version = rn_text_slice(value, 0, TRACE_AT - 1);
    const ration_text trace = rn_text_slice(value, TRACE_AT, PARENT_AT - 1);
    const ration_text parent = rn_text_slice(value, PARENT_AT, FLAGS_AT - 1);
    const bool ends = value.size == SIZE || (!rn_text_is(version, "00") && value.data[SIZE] == '-');

    if (!ends || !is_hex(version) || rn_text_is(version, "ff") || !is_id(trace) || !is_id(parent) ||
        !is_hex(rn_text_slice(value, FLAGS_AT, SIZE)) || value.data[TRACE_AT - 1] != '-' ||
        value.data[PARENT_AT - 1] != '-' || value.data[FLAGS_AT - 1] != '-')
        return RATION_ERR_SYNTAX;
    *out = (rn_trace_context){.trace_id = trace, .parent_id = parent};
    return RATION_OK;
}

void rn_trace_context_write(ration_text value, rn_output *out)
{
    rn_trace_context context;

    if (value.size == 0)
        return;
    rn_output_text(out, "traceparent", value);
    if (rn_trace_context_read(value, &context) != RATION_OK)
        return;
    rn_output_text(out, "traceId", context.trace_id);
    rn_output_text(out, "parentId", context.parent_id);
}
