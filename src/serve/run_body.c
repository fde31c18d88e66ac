/* SPDX-License-Identifier: MIT */
/*
 * The body of `POST /v1/runs`: one object of a table of members. It is no call of an engine, so a trace has no such
 * line, and its reader does not know it; what it says of faults is the same.
 */
#include "serve/run_body.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "config/faults.h"
#include "trace/json.h"

#define COUNT_MAX (RATION_UNITS_MAX / RATION_UNIT) /* as many as can be planned with */
#define CHILDREN_MAX INT64_C(1000000000)           /* as in the config */
#define SHOWN_MAX 40

typedef struct found {
    ration_text job;
    int64_t requests, retries, children, took_us;
} found;

typedef struct member {
    const char *name;
    bool needed;
    bool is_text;
    int places;   /* of a number */
    int64_t most; /* in its smallest unit */
    size_t offset;
} member;

static const member members[] = {
    {"job", true, true, 0, 0, offsetof(found, job)},
    {"requests", true, false, 0, COUNT_MAX, offsetof(found, requests)},
    {"retries", false, false, 0, COUNT_MAX, offsetof(found, retries)},
    {"fanOut", false, false, 0, CHILDREN_MAX, offsetof(found, children)},
    {"took", false, false, 3, RATION_TIME_MAX_US, offsetof(found, took_us)},
};

#define MEMBER_COUNT (sizeof members / sizeof members[0])

typedef struct reading {
    ration_text body;
    rn_arena *arena;
    rn_json json;
    bool seen[MEMBER_COUNT];
    found found;
    rn_trace_fault *fault;
} reading;

/* How much of a text of a stranger is shown; cut between characters. For "%.*s". */
static int shown(ration_text text)
{
    size_t size = text.size < SHOWN_MAX ? text.size : SHOWN_MAX;

    while (size > 0 && size < text.size && ((unsigned char)text.data[size] & 0xc0) == 0x80)
        size--;
    return (int)size;
}

static int fail(reading *g, size_t at, ration_text name, const char *format, ...) __attribute__((format(printf, 4, 5)));
static int fail(reading *g, size_t at, ration_text name, const char *format, ...)
{
    char text[sizeof g->fault->text];
    rn_builder b;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rn_trace_fault_set(g->fault, 1, g->body, at, "%s", text);
    rn_builder_init(&b, g->fault->member, sizeof g->fault->member);
    rn_builder_text(&b, rn_text_slice(name, 0, (size_t)shown(name)));
    return RATION_ERR_SYNTAX;
}

static const char *known_at(const void *table, size_t index)
{
    return ((const member *)table)[index].name;
}

static int unknown(reading *g, const rn_json_value *name, ration_text text)
{
    const char *near = rn_nearest(text, members, MEMBER_COUNT, known_at);
    const ration_text raw = name->raw;

    if (near != NULL)
        return fail(g, name->at, raw, "a run has no member \"%.*s\" (%s?)", shown(raw), raw.data, near);
    return fail(g, name->at, raw, "a run has no member \"%.*s\"", shown(raw), raw.data);
}

static int take_text(reading *g, const member *m, const rn_json_value *value)
{
    const ration_text name = ration_text_of(m->name);

    if (value->type != RN_JSON_STRING)
        return fail(g, value->at, name, "%s where a text should be", rn_json_type_name(value->type));
    if (value->raw.size == 0)
        return fail(g, value->at, name, "an empty name");
    return rn_json_text(value, g->arena, (ration_text *)(void *)((char *)&g->found + m->offset));
}

static int take_number(reading *g, const member *m, const rn_json_value *value)
{
    const ration_text name = ration_text_of(m->name);
    int64_t number = 0;

    if (value->type != RN_JSON_NUMBER)
        return fail(g, value->at, name, "%s where a number should be", rn_json_type_name(value->type));
    const int err = rn_json_fixed(value->raw, m->places, &number);
    if (err == RATION_ERR_SYNTAX && m->places == 0)
        return fail(g, value->at, name, "%.*s is no whole number", shown(value->raw), value->raw.data);
    if (err == RATION_ERR_SYNTAX)
        return fail(g, value->at, name, "%.*s has more than 3 places", shown(value->raw), value->raw.data);
    if (err == RATION_OK && number < 0)
        return fail(g, value->at, name, "%.*s is too small", shown(value->raw), value->raw.data);
    if (err != RATION_OK || number > m->most)
        return fail(g, value->at, name, "%.*s is too large", shown(value->raw), value->raw.data);
    *(int64_t *)(void *)((char *)&g->found + m->offset) = number;
    return RATION_OK;
}

static int take_member(reading *g, const rn_json_value *name, const rn_json_value *value)
{
    ration_text text;
    const int err = rn_json_text(name, g->arena, &text);

    if (err != RATION_OK)
        return err;
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (!rn_text_is(text, members[i].name))
            continue;
        if (g->seen[i])
            return fail(g, name->at, name->raw, "\"%.*s\" occurs twice", shown(name->raw), name->raw.data);
        g->seen[i] = true;
        return members[i].is_text ? take_text(g, &members[i], value) : take_number(g, &members[i], value);
    }
    return unknown(g, name, text);
}

static int read_all(reading *g)
{
    const ration_text none = {NULL, 0};
    rn_json *json = &g->json;
    rn_json_value name, value;

    if (!rn_json_enter(json, RN_JSON_OBJECT))
        return fail(g, json->fault_at, none, "the body is one JSON object");
    while (rn_json_member(json, &name, &value)) {
        const int err = take_member(g, &name, &value);
        if (err != RATION_OK)
            return err;
    }
    if (!rn_json_end(json))
        return fail(g, json->fault_at, none, "%s", json->fault);
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (members[i].needed && !g->seen[i])
            return fail(g, 0, ration_text_of(members[i].name), "a run without \"%s\"", members[i].name);
    }
    return RATION_OK;
}

int rn_run_body_read(ration_text body, rn_arena *arena, rn_run_body *out, rn_trace_fault *fault)
{
    reading g = {.body = body, .arena = arena, .found = {.children = RATION_UNSET}, .fault = fault};

    rn_json_init(&g.json, body);
    const int err = read_all(&g);
    if (err != RATION_OK)
        return err;
    *out = (rn_run_body){.job = g.found.job,
                         .run = {.requests = g.found.requests,
                                 .retries = g.found.retries,
                                 .fan_out = g.found.children == RATION_UNSET ? 0 : g.found.children},
                         .children = g.found.children,
                         .took_us = g.found.took_us};
    return RATION_OK;
}
