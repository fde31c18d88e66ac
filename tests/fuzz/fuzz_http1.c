/* SPDX-License-Identifier: MIT */
/*
 * The codec on any bytes: the first byte chooses the side and how the rest is cut. Whatever the cuts, the events must
 * be the same, and fields must be free of what a smuggler needs.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static uint64_t mix(uint64_t sum, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(1099511628211);
    return sum;
}

static uint64_t mix_fields(uint64_t sum, rn_http_fields fields)
{
    for (size_t i = 0; i < fields.count; i++) {
        require(rn_http_is_token(fields.items[i].name));
        require(rn_http_is_value(fields.items[i].value));
        sum = mix(sum, fields.items[i].name.data, fields.items[i].name.size);
        sum = mix(sum, fields.items[i].value.data, fields.items[i].value.size);
    }
    return sum;
}

/* Framed in one way that nobody can read differently, or not at all. */
static void require_one_framing(const rn_http1 *h)
{
    const size_t lengths = rn_http_count(h->head.fields, "content-length");
    const size_t codings = rn_http_count(h->head.fields, "transfer-encoding");

    require(lengths + codings <= 1);
    require(h->response || rn_http_count(h->head.fields, "host") <= 1);
    require(codings == 0 || h->head.minor > 0);
    require(h->head.body_bytes == 0 || (h->head.body_bytes == RN_LENGTH_UNKNOWN) == (lengths == 0));
    require(h->response || h->head.body_bytes == 0 || lengths + codings == 1);
    require(!h->head.keep_alive || h->head.body_bytes != RN_LENGTH_UNKNOWN || codings == 1);
}

static uint64_t mix_event(uint64_t sum, const rn_http1 *h, rn_http1_event event, ration_text body)
{
    if (event == RN_HTTP1_BODY) {
        require(body.size > 0);
        return mix(sum, body.data, body.size);
    }
    sum = mix(sum, &event, sizeof event);
    if (event == RN_HTTP1_FAILED)
        return mix(sum, &h->status, sizeof h->status);
    if (event == RN_HTTP1_HEAD) {
        require_one_framing(h);
        sum = mix(sum, &h->head.body_bytes, sizeof h->head.body_bytes);
        sum = mix_fields(sum, h->head.fields);
    } else if (event == RN_HTTP1_END) {
        sum = mix_fields(sum, h->trailers);
    }
    return sum;
}

/* One number for all events of the input, fed in parts of `step` bytes; 0: of sizes drawn from the input. */
static uint64_t run(const uint8_t *data, size_t size, bool response, bool answers_head, size_t step)
{
    rn_http1 h;
    uint64_t sum = UINT64_C(14695981039346656037);
    uint64_t drawn = step == 0 ? mix(sum, data, size) : 0;
    rn_http1_event event = RN_HTTP1_MORE;

    rn_http1_init(&h, response, 4096);
    rn_http1_begin(&h, answers_head);
    for (size_t at = 0; at < size && event != RN_HTTP1_FAILED;) {
        drawn = mix(drawn, &at, sizeof at);
        const size_t most = step == 0 ? (size_t)(drawn >> 40) % 64 + 1 : step;
        ration_text input = {(const char *)data + at, size - at < most ? size - at : most};
        ration_text body = {NULL, 0};

        at += input.size;
        while ((event = rn_http1_next(&h, &input, &body)) != RN_HTTP1_MORE && event != RN_HTTP1_FAILED) {
            sum = mix_event(sum, &h, event, body);
            if (event == RN_HTTP1_END)
                rn_http1_begin(&h, answers_head);
        }
        require(event == RN_HTTP1_FAILED || input.size == 0);
    }
    if (event != RN_HTTP1_FAILED)
        event = rn_http1_finish(&h);
    sum = mix_event(sum, &h, event, (ration_text){NULL, 0});
    rn_http1_fini(&h);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;

    const bool response = (data[0] & 1) != 0;
    const bool answers_head = (data[0] & 2) != 0;
    const size_t step = (size_t)(data[0] >> 2) + 1;
    const uint64_t whole = run(data + 1, size - 1, response, answers_head, SIZE_MAX / 2);

    require(run(data + 1, size - 1, response, answers_head, step) == whole);
    require(run(data + 1, size - 1, response, answers_head, 1) == whole);
    require(run(data + 1, size - 1, response, answers_head, 0) == whole);
    return 0;
}
