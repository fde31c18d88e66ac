/* SPDX-License-Identifier: MIT */
/*
 * One form for all lines that mean the same.
 *
 * Recursive over arrays and objects, no deeper than the JSON reader allows. The members of an object are gathered and
 * sorted, so that an object of n members costs n log n however they stood.
 */
#include "trace/canonical.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "trace/json.h"

typedef struct canon {
    rn_json json;
    rn_arena arena;
    rn_output *out;
} canon;

typedef struct canon_member {
    ration_text name;
    rn_json_value value;
} canon_member;

static int canon_value(canon *c, const rn_json_value *value, bool outermost);

static int member_compare(const void *a, const void *b)
{
    const canon_member *const left = a;
    const canon_member *const right = b;

    const int order = rn_text_compare(left->name, right->name);

    if (order != 0)
        return order;
    /* Twice the same name: as they stood, so that the order does not hang on the sorting. */
    return left->value.at < right->value.at ? -1 : 1;
}

/* 48.50 and 485e-1 are 48.5; a number with more places than any of ours stands as it is written. */
static void canon_number(canon *c, ration_text number)
{
    int64_t micro = 0;

    if (rn_json_fixed(number, 6, &micro) == RATION_OK) {
        rn_output_micro(c->out, NULL, micro);
    } else {
        rn_output_element(c->out, number);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than RN_JSON_DEPTH_MAX */
static int canon_array(canon *c, const rn_json_value *array)
{
    rn_json inner;
    rn_json_value value;

    rn_output_open(c->out, NULL, '[');
    rn_json_reopen(&c->json, array, &inner);
    while (rn_json_element(&inner, &value)) {
        const int err = canon_value(c, &value, false);

        if (err != RATION_OK)
            return err;
    }
    rn_output_close(c->out, ']');
    return RATION_OK;
}

static size_t member_count(const canon *c, const rn_json_value *object)
{
    rn_json inner;
    rn_json_value name;
    rn_json_value value;
    size_t count = 0;

    rn_json_reopen(&c->json, object, &inner);
    while (rn_json_member(&inner, &name, &value))
        count++;
    return count;
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than RN_JSON_DEPTH_MAX */
static int canon_object(canon *c, const rn_json_value *object, bool outermost)
{
    const size_t count = member_count(c, object);
    canon_member *const members = rn_arena_zalloc(&c->arena, count, sizeof *members);
    rn_json inner;
    rn_json_value name;

    if (members == NULL)
        return RATION_ERR_NOMEM;
    rn_json_reopen(&c->json, object, &inner);
    for (size_t i = 0; i < count && rn_json_member(&inner, &name, &members[i].value); i++) {
        if (rn_json_text(&name, &c->arena, &members[i].name) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    qsort(members, count, sizeof *members, member_compare);
    rn_output_open(c->out, NULL, '{');
    for (size_t i = 0; i < count; i++) {
        if (outermost && rn_text_is(members[i].name, "explanation"))
            continue;
        rn_output_key(c->out, members[i].name);

        const int err = canon_value(c, &members[i].value, false);

        if (err != RATION_OK)
            return err;
    }
    rn_output_close(c->out, '}');
    return RATION_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than RN_JSON_DEPTH_MAX */
static int canon_value(canon *c, const rn_json_value *value, bool outermost)
{
    ration_text text;

    switch (value->type) {
    case RN_JSON_NULL:
    case RN_JSON_FALSE:
    case RN_JSON_TRUE:
        rn_output_element(c->out, value->raw);
        return c->out->err;
    case RN_JSON_NUMBER:
        canon_number(c, value->raw);
        return c->out->err;
    case RN_JSON_STRING:
        if (rn_json_text(value, &c->arena, &text) != RATION_OK)
            return RATION_ERR_NOMEM;
        rn_output_text(c->out, NULL, text);
        return c->out->err;
    case RN_JSON_ARRAY:
        return canon_array(c, value);
    case RN_JSON_OBJECT:
        return canon_object(c, value, outermost);
    }
    return RATION_ERR_SYNTAX;
}

int rn_trace_canonical(ration_text line, const ration_allocator *mem, rn_output *out)
{
    canon c = {.out = out};
    rn_json_value value;
    int err = RATION_ERR_SYNTAX;

    rn_arena_init(&c.arena, mem);
    rn_json_init(&c.json, line);
    if (rn_json_value_next(&c.json, &value) && rn_json_end(&c.json))
        err = canon_value(&c, &value, true);
    rn_arena_fini(&c.arena);
    return err != RATION_OK ? err : out->err;
}
