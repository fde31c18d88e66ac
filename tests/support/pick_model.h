/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_PICK_MODEL_H
#define TESTS_SUPPORT_PICK_MODEL_H

/*
 * What src/base/pick.h and event_stream.h must find, the slow way: the whole text parsed by jansson, the pointer walked
 * in its tree; a stream's lines cut out of one buffer.
 */

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/event_stream.h"
#include "base/text.h"

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than jansson reads */
static inline size_t model_depth(json_t *value)
{
    size_t most = 0;
    size_t i = 0;
    const char *key = NULL;
    json_t *member = NULL;

    if (!json_is_array(value) && !json_is_object(value))
        return 0;
    json_array_foreach(value, i, member)
    {
        const size_t depth = model_depth(member);

        most = depth > most ? depth : most;
    }
    json_object_foreach(value, key, member)
    {
        const size_t depth = model_depth(member);

        most = depth > most ? depth : most;
    }
    return most + 1;
}

static inline const json_t *model_walk(const json_t *value, const rn_pointer *pointer)
{
    for (size_t i = 0; i < pointer->count && value != NULL; i++) {
        const ration_text token = pointer->tokens[i];

        if (json_is_object(value)) {
            value = json_object_getn(value, token.data, token.size);
        } else {
            const uint64_t index = strtoull(token.data, NULL, 10);
            const bool is = json_is_array(value) && token.size < 10 && rn_pointer_is_index(token, index);

            value = is ? json_array_get(value, index) : NULL;
        }
    }
    return value;
}

/* True if what was picked is what jansson sees there, as far as a double can tell. */
static inline bool model_agrees(const json_t *value, rn_picked picked, int64_t micro)
{
    if (value == NULL)
        return picked == RN_PICKED_NONE;
    if (json_is_integer(value)) {
        const json_int_t whole = json_integer_value(value);

        if (whole < 0)
            return picked == RN_PICKED_OTHER;
        if (whole > RATION_UNITS_MAX / RATION_UNIT)
            return picked == RN_PICKED_LARGE;
        return picked == RN_PICKED_NUMBER && micro == whole * RATION_UNIT;
    }
    if (!json_is_real(value))
        return picked == RN_PICKED_OTHER;

    const double wanted = json_real_value(value) * (double)RATION_UNIT;
    const double slack = 1.0 + fabs(wanted) * 1e-12;

    if (picked == RN_PICKED_OTHER)
        return wanted < 0 || (wanted <= 0 && signbit(wanted) != 0);
    if (picked == RN_PICKED_LARGE)
        return wanted > (double)RATION_UNITS_MAX - slack;
    return picked == RN_PICKED_NUMBER && fabs((double)micro - wanted) <= slack;
}

/* jansson cannot hold what it refuses for these; only that nothing was picked wrongly could be said. */
static inline bool model_knows(const json_error_t *error)
{
    const enum json_error_code code = json_error_code(error);

    return code != json_error_numeric_overflow && code != json_error_null_byte_in_key &&
           code != json_error_stack_overflow;
}

/* True if `picked` is what a whole text has at the pointer. */
static inline bool model_check(const rn_pointer *pointer, ration_text text, rn_picked picked, int64_t micro)
{
    /* No JSON, but jansson overlooks one behind a number. */
    if (text.size > 0 && memchr(text.data, '\0', text.size) != NULL)
        return picked == RN_PICKED_NONE;

    json_error_t error;
    json_t *root = json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    bool agrees = root != NULL ? model_depth(root) > RN_PICK_DEPTH : !model_knows(&error);

    if (!agrees)
        agrees = root != NULL ? model_agrees(model_walk(root, pointer), picked, micro) : picked == RN_PICKED_NONE;
    json_decref(root);
    return agrees;
}

static inline void model_event(const rn_pointer *pointer, ration_text data, rn_picked *picked, int64_t *micro)
{
    rn_pick pick;
    int64_t value = 0;

    rn_pick_init(&pick, pointer);
    rn_pick_feed(&pick, data);

    const rn_picked had = rn_pick_end(&pick, &value);

    if (had == RN_PICKED_NUMBER || had == RN_PICKED_LARGE) {
        *picked = had;
        *micro = value;
    }
}

/* The end of the line that begins at `at`, and where the next begins. */
static inline size_t model_line(ration_text text, size_t at, size_t *next)
{
    size_t end = at;

    while (end < text.size && text.data[end] != '\r' && text.data[end] != '\n')
        end++;
    *next = end + 1 + (end + 1 < text.size && text.data[end] == '\r' && text.data[end + 1] == '\n');
    return end;
}

/* The same of a stream of events. */
static inline rn_picked model_events(const rn_pointer *pointer, ration_text text, int64_t *micro)
{
    char *data = malloc(text.size + 1);
    size_t size = 0;
    bool has_data = false;
    rn_picked picked = RN_PICKED_NONE;
    size_t next = 0;

    if (text.size >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0)
        text = rn_text_slice(text, 3, text.size);
    for (size_t at = 0; at < text.size; at = next) {
        const size_t end = model_line(text, at, &next);
        const ration_text line = rn_text_slice(text, at, end);
        size_t colon = line.size;

        (void)rn_text_find(line, ration_text_of(":"), &colon);
        if (line.size == 0) {
            model_event(pointer, (ration_text){data, size}, &picked, micro);
            size = 0;
            has_data = false;
        } else if (rn_text_is(rn_text_slice(line, 0, colon), "data")) {
            const size_t blank = colon + 1 < line.size && line.data[colon + 1] == ' ' ? 1 : 0;
            const ration_text value = colon < line.size ? rn_text_slice(line, colon + 1 + blank, line.size)
                                                        : rn_text_slice(line, line.size, line.size);

            if (has_data)
                data[size++] = '\n';
            has_data = true;
            memcpy(data + size, value.data, value.size);
            size += value.size;
        }
    }
    model_event(pointer, (ration_text){data, size}, &picked, micro);
    free(data);
    return picked;
}

#endif
