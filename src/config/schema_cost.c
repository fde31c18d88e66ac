/* SPDX-License-Identifier: MIT */
/* The table of keys: where a call's cost is told, by a provider and by an endpoint. schema.c says what the table is. */
#include "config/table.h"

static const rn_key estimate_keys[] = {
    {.name = "header",
     .type = &rn_type_header,
     .flags = RN_KEY_LOCAL,
     AT(rn_cost_rule, estimate_header),
     .doc = "A field of the request with the number."},
    {.name = "pointer",
     .type = &rn_type_pointer,
     .flags = RN_KEY_LOCAL,
     AT(rn_cost_rule, estimate_pointer),
     .doc = "A JSON pointer (RFC 6901) to the number in the request's body, such as `/max_tokens`."},
    {.name = "default",
     .type = &rn_type_units,
     .flags = RN_KEY_LOCAL | RN_KEY_UNSET,
     .min = 0,
     .max = RATION_UNITS_MAX,
     .otherwise = "`cost`, else 1",
     AT(rn_cost_rule, estimate_default),
     .doc = "The estimate of a request in which there is no such number."},
    {.name = "body",
     .type = &rn_type_size,
     .flags = RN_KEY_LOCAL,
     .fallback = "1MiB",
     AT(rn_cost_rule, estimate_body),
     .doc = "Bodies up to this size are held back and looked at; for larger ones the default holds."},
    END,
};
const rn_object rn_schema_estimate = {.name = "estimate",
                                      .doc = "What a request will cost. A bare number is its `default`.",
                                      .keys = estimate_keys,
                                      .shorthand = "default",
                                      .check = rn_check_estimate};

static const rn_key actual_keys[] = {
    {.name = "header",
     .type = &rn_type_header,
     .flags = RN_KEY_LOCAL,
     AT(rn_cost_rule, actual_header),
     .doc = "A field of the response with the number."},
    {.name = "pointer",
     .type = &rn_type_pointer,
     .flags = RN_KEY_LOCAL,
     AT(rn_cost_rule, actual_pointer),
     .doc =
         "A JSON pointer (RFC 6901) to the number in the response's body, such as `/usage/total_tokens`; in a stream "
         "of events, in the last that has it. The provider is then asked not to compress its responses."},
    END,
};
const rn_object rn_schema_actual = {.name = "actual",
                                    .doc = "What a call has cost, from its response. Without it the estimate stands.",
                                    .keys = actual_keys,
                                    .check = rn_check_actual};
