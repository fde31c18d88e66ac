/* SPDX-License-Identifier: MIT */

/*
 * The members of a record, once: name, form, for which types, where it is kept.
 *
 * What is not known is absent: an optional member has a value that stands for that, or a flag that says so. Times are
 * milliseconds with three decimals, units have six, so nothing is rounded either way.
 */

#include "trace/state.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

typedef enum form {
    TEXT = 0,
    INSTANT,
    SPAN,
    UNITS,
    COUNT,
    SMALL, /* a count of 32 bits */
    YES,
    STATE,
    PARTS,
} form;

enum {
    QUOTA = 1 << RATION_RECORD_QUOTA,
    BUCKET = 1 << RATION_RECORD_BUCKET,
    ADAPTIVE = 1 << RATION_RECORD_ADAPTIVE,
    PENALTY = 1 << RATION_RECORD_PENALTY,
    BREAKER = 1 << RATION_RECORD_BREAKER,
    PAUSE = 1 << RATION_RECORD_PAUSE,
    ANY = QUOTA | BUCKET | ADAPTIVE | PENALTY | BREAKER | PAUSE,
};

static const char *const types[] = {
    [RATION_RECORD_QUOTA] = "quota",     [RATION_RECORD_BUCKET] = "bucket",   [RATION_RECORD_ADAPTIVE] = "adaptive",
    [RATION_RECORD_PENALTY] = "penalty", [RATION_RECORD_BREAKER] = "breaker", [RATION_RECORD_PAUSE] = "pause",
};
#define TYPES (sizeof types / sizeof types[0])

typedef struct member {
    const char *name;
    unsigned of;   /* types that have it */
    unsigned must; /* types that must */
    form form;
    size_t offset;
    size_t flag;  /* offset of the flag that says whether it is there; 0: none. Of parts: of their count */
    bool instead; /* a RATION_UNSET or RATION_NEVER_US says that it is not */
} member;

#define AT(m) offsetof(ration_record, m)

static const member members[] = {
    {"provider", ANY, ANY, TEXT, AT(provider), 0, false},
    {"limit", ANY & ~BREAKER, QUOTA | BUCKET | ADAPTIVE | PAUSE, TEXT, AT(limit), 0, false},
    {"key", ANY, ANY, TEXT, AT(key), 0, false},
    {"at", ANY, ANY, INSTANT, AT(at), 0, false},
    {"windowStart", QUOTA, 0, INSTANT, AT(u.quota.window_start), 0, false},
    {"windowEnd", QUOTA, 0, INSTANT, AT(u.quota.window_end), 0, false},
    {"offset", QUOTA, 0, SPAN, AT(u.quota.offset_us), 0, false},
    {"used", QUOTA, QUOTA, UNITS, AT(u.quota.used), 0, false},
    {"carried", QUOTA, 0, UNITS, AT(u.quota.carried), 0, false},
    {"inFlight", QUOTA, 0, UNITS, AT(u.quota.in_flight), 0, false},
    {"remaining", QUOTA, 0, UNITS, AT(u.quota.remaining), AT(u.quota.has_remaining), false},
    {"remainingUntil", QUOTA, 0, INSTANT, AT(u.quota.remaining_until), 0, true},
    {"max", QUOTA, 0, UNITS, AT(u.quota.max), 0, true},
    {"external", QUOTA, 0, UNITS, AT(u.quota.external), 0, false},
    {"exhausted", QUOTA, 0, YES, AT(u.quota.exhausted), 0, false},
    {"exhaustedUntil", QUOTA, 0, INSTANT, AT(u.quota.exhausted_until), 0, true},
    {"dippedAt", QUOTA, 0, INSTANT, AT(u.quota.dipped_at), AT(u.quota.dipped), false},
    {"movedAt", QUOTA, 0, INSTANT, AT(u.quota.moved_at), AT(u.quota.moved), false},
    {"mark", QUOTA, 0, UNITS, AT(u.quota.mark), 0, true},
    {"parts", QUOTA, 0, PARTS, AT(u.quota.parts), AT(u.quota.part_count), false},
    {"timeline", QUOTA, 0, PARTS, AT(u.quota.timeline), AT(u.quota.timeline_count), false},
    {"available", BUCKET, BUCKET, UNITS, AT(u.available), 0, false},
    {"current", ADAPTIVE, ADAPTIVE, COUNT, AT(u.adaptive.limit), 0, false},
    {"grownAt", ADAPTIVE, ADAPTIVE, INSTANT, AT(u.adaptive.grown_at), 0, false},
    {"throttledAt", ADAPTIVE, 0, INSTANT, AT(u.adaptive.throttled_at), AT(u.adaptive.throttled), false},
    {"decreasedAt", ADAPTIVE, 0, INSTANT, AT(u.adaptive.decreased_at), AT(u.adaptive.decreased), false},
    {"stride", ADAPTIVE, 0, COUNT, AT(u.adaptive.stride), 0, false},
    {"climbTo", ADAPTIVE, 0, COUNT, AT(u.adaptive.climb_to), 0, false},
    {"began", PENALTY, PENALTY, INSTANT, AT(u.penalty.began), 0, false},
    {"until", PENALTY, PENALTY, INSTANT, AT(u.penalty.until), 0, false},
    {"doublings", PENALTY, 0, SMALL, AT(u.penalty.doublings), 0, false},
    {"events", PENALTY, 0, SMALL, AT(u.penalty.events), 0, false},
    {"state", BREAKER, BREAKER, STATE, AT(u.breaker.state), 0, false},
    {"generation", BREAKER, BREAKER, COUNT, AT(u.breaker.generation), 0, false},
    {"retryAt", BREAKER, 0, INSTANT, AT(u.breaker.until), 0, true},
    {"delay", BREAKER, 0, SPAN, AT(u.breaker.delay_us), 0, false},
    {"paused", PAUSE, 0, YES, AT(u.paused), 0, false},
};
enum { MEMBER_COUNT = sizeof members / sizeof members[0] };

static const void *value_of(const ration_record *record, const member *m)
{
    return (const char *)record + m->offset;
}

static int64_t number_of(const ration_record *record, const member *m)
{
    int64_t number;

    if (m->form == SMALL) {
        uint32_t small;

        memcpy(&small, value_of(record, m), sizeof small);
        return small;
    }
    memcpy(&number, value_of(record, m), sizeof number);
    return number;
}

/* ---- out ---- */

static size_t parts_count(const ration_record *record, const member *m)
{
    return *(const size_t *)(const void *)((const char *)record + m->flag);
}

static bool is_absent(const ration_record *record, const member *m)
{
    const bool numeric = m->form != TEXT && m->form != YES && m->form != STATE && m->form != PARTS;

    if (m->form == TEXT)
        return ((const ration_text *)value_of(record, m))->data == NULL;
    if (m->form == YES)
        return !*(const bool *)value_of(record, m);
    if (m->form == PARTS)
        return parts_count(record, m) == 0;
    if (m->flag != 0)
        return !*(const bool *)((const char *)record + m->flag);
    if (m->instead)
        return number_of(record, m) == (m->form == INSTANT ? RATION_NEVER_US : RATION_UNSET);
    /* Nothing is what it is anyway. */
    return numeric && m->must == 0 && number_of(record, m) == 0;
}

static void parts_write(rn_output *out, const ration_record *record, const member *m)
{
    const ration_part *parts = *(const ration_part *const *)value_of(record, m);
    const size_t count = parts_count(record, m);

    rn_output_open(out, m->name, '[');
    for (size_t i = 0; i < count; i++) {
        rn_output_open(out, NULL, '[');
        rn_output_ms(out, NULL, parts[i].last.us);
        rn_output_micro(out, NULL, parts[i].units);
        rn_output_close(out, ']');
    }
    rn_output_close(out, ']');
}

static void member_write(rn_output *out, const ration_record *record, const member *m)
{
    switch (m->form) {
    case TEXT:
        rn_output_text(out, m->name, *(const ration_text *)value_of(record, m));
        break;
    case INSTANT:
    case SPAN:
        rn_output_ms(out, m->name, number_of(record, m));
        break;
    case UNITS:
        rn_output_micro(out, m->name, number_of(record, m));
        break;
    case COUNT:
    case SMALL:
        rn_output_int(out, m->name, number_of(record, m));
        break;
    case YES:
        rn_output_bool(out, m->name, true);
        break;
    case STATE:
        rn_output_str(out, m->name, ration_circuit_state_name(record->u.breaker.state));
        break;
    case PARTS:
        parts_write(out, record, m);
        break;
    }
}

void rn_record_write(rn_output *out, const ration_record *record)
{
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "type", types[record->type]);
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if ((members[i].of & 1u << record->type) != 0 && !is_absent(record, &members[i]))
            member_write(out, record, &members[i]);
    }
    rn_output_close(out, '}');
}

/* ---- in ---- */

typedef struct reading {
    rn_arena *arena;
    rn_record_fault *fault;
    int err;
} reading;

static bool fail(reading *g, size_t at, const char *why, ration_text name)
{
    *g->fault = (rn_record_fault){at, why, name};
    g->err = RATION_ERR_SYNTAX;
    return false;
}

static bool no_memory(reading *g)
{
    g->err = RATION_ERR_NOMEM;
    return false;
}

static bool number_read(reading *g, const rn_json_value *value, int places, int64_t *into, ration_text name)
{
    if (value->type != RN_JSON_NUMBER)
        return fail(g, value->at, "must be a number", name);
    if (rn_json_fixed(value->raw, places, into) != RATION_OK)
        return fail(g, value->at, "has too many places, or is too large", name);
    return true;
}

static size_t elements_count(const rn_json *json, const rn_json_value *value)
{
    rn_json list;
    rn_json_value element;
    size_t count = 0;

    rn_json_reopen(json, value, &list);
    while (rn_json_element(&list, &element))
        count++;
    return count;
}

static bool parts_read(reading *g, const rn_json *json, const rn_json_value *value, const ration_part **into,
                       size_t *count, ration_text name)
{
    rn_json list;
    rn_json_value element;

    if (value->type != RN_JSON_ARRAY)
        return fail(g, value->at, "must be an array of pairs", name);

    ration_part *parts = rn_arena_zalloc(g->arena, elements_count(json, value), sizeof *parts);

    if (parts == NULL)
        return no_memory(g);
    rn_json_reopen(json, value, &list);
    while (rn_json_element(&list, &element)) {
        rn_json pair;
        rn_json_value last;
        rn_json_value units;
        rn_json_value more;

        if (element.type != RN_JSON_ARRAY)
            return fail(g, element.at, "must be an array of pairs", name);
        rn_json_reopen(&list, &element, &pair);
        if (!rn_json_element(&pair, &last) || !rn_json_element(&pair, &units) || rn_json_element(&pair, &more))
            return fail(g, element.at, "must be pairs of an instant and units", name);
        if (!number_read(g, &last, 3, &parts[*count].last.us, name) ||
            !number_read(g, &units, 6, &parts[*count].units, name))
            return false;
        (*count)++;
    }
    *into = parts;
    return true;
}

static bool state_read(reading *g, const rn_json_value *value, ration_circuit_state *into, ration_text name)
{
    for (ration_circuit_state s = RATION_BREAKER_CLOSED; s <= RATION_BREAKER_HALF_OPEN; s++) {
        if (value->type == RN_JSON_STRING && rn_text_is(value->raw, ration_circuit_state_name(s))) {
            *into = s;
            return true;
        }
    }
    return fail(g, value->at, "must be closed, open or half-open", name);
}

static bool small_read(reading *g, const rn_json_value *value, uint32_t *into, ration_text name)
{
    int64_t number = 0;

    if (!number_read(g, value, 0, &number, name))
        return false;
    if (number < 0 || number > UINT32_MAX)
        return fail(g, value->at, "is out of range", name);
    *into = (uint32_t)number;
    return true;
}

static bool member_read(reading *g, const rn_json *json, const rn_json_value *value, const member *m,
                        ration_record *record)
{
    const ration_text name = ration_text_of(m->name);
    void *into = (char *)record + m->offset;

    if (m->flag != 0 && m->form != PARTS)
        *(bool *)(void *)((char *)record + m->flag) = true;
    switch (m->form) {
    case TEXT:
        if (value->type != RN_JSON_STRING)
            return fail(g, value->at, "must be a text", name);
        return rn_json_text(value, g->arena, into) == RATION_OK || no_memory(g);
    case INSTANT:
    case SPAN:
        return number_read(g, value, 3, into, name);
    case UNITS:
        return number_read(g, value, 6, into, name);
    case COUNT:
        return number_read(g, value, 0, into, name);
    case SMALL:
        return small_read(g, value, into, name);
    case YES:
        if (value->type != RN_JSON_TRUE)
            return fail(g, value->at, "must be true, or absent", name);
        *(bool *)into = true;
        return true;
    case STATE:
        return state_read(g, value, into, name);
    case PARTS:
        return parts_read(g, json, value, into, (size_t *)(void *)((char *)record + m->flag), name);
    }
    return false;
}

/* The type comes first, since it says what may follow. */
static bool type_read(reading *g, rn_json *json, size_t at, ration_record *record)
{
    rn_json_value name;
    rn_json_value value;

    if (!rn_json_member(json, &name, &value) || !rn_text_is(name.raw, "type"))
        return fail(g, at, "begins with its type", (ration_text){NULL, 0});
    for (size_t i = 0; i < TYPES; i++) {
        if (value.type == RN_JSON_STRING && rn_text_is(value.raw, types[i])) {
            *record = (ration_record){.type = (ration_record_type)i};
            if (record->type == RATION_RECORD_QUOTA) {
                record->u.quota.max = RATION_UNSET;
                record->u.quota.mark = RATION_UNSET;
                record->u.quota.remaining_until.us = RATION_NEVER_US;
                record->u.quota.exhausted_until.us = RATION_NEVER_US;
            } else if (record->type == RATION_RECORD_BREAKER) {
                record->u.breaker.until.us = RATION_NEVER_US;
            }
            return true;
        }
    }
    return fail(g, value.at, "must be quota, bucket, adaptive, penalty, breaker or pause", ration_text_of("type"));
}

static size_t member_find(ration_text name, ration_record_type type)
{
    size_t i = 0;

    while (i < MEMBER_COUNT && ((members[i].of & 1u << type) == 0 || !rn_text_is(name, members[i].name)))
        i++;
    return i;
}

static bool record_read(reading *g, const rn_json *json, const rn_json_value *value, ration_record *record)
{
    uint64_t seen = 0;
    rn_json inner;
    rn_json_value name;
    rn_json_value member_value;

    _Static_assert(MEMBER_COUNT <= 64, "a bit each");
    if (value->type != RN_JSON_OBJECT)
        return fail(g, value->at, "a record is an object", (ration_text){NULL, 0});
    rn_json_reopen(json, value, &inner);
    if (!type_read(g, &inner, value->at, record))
        return false;
    while (rn_json_member(&inner, &name, &member_value)) {
        const size_t i = member_find(name.raw, record->type);

        if (i == MEMBER_COUNT)
            return fail(g, name.at, "is no member of such a record", name.raw);
        if ((seen & UINT64_C(1) << i) != 0)
            return fail(g, name.at, "is there twice", name.raw);
        seen |= UINT64_C(1) << i;
        if (!member_read(g, &inner, &member_value, &members[i], record))
            return false;
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if ((members[i].must & 1u << record->type) != 0 && (seen & UINT64_C(1) << i) == 0)
            return fail(g, value->at, "is missing", ration_text_of(members[i].name));
    }
    return true;
}

int rn_records_read(const rn_json *json, const rn_json_value *value, rn_arena *arena, const ration_record **records,
                    size_t *count, rn_record_fault *fault)
{
    reading g = {.arena = arena, .fault = fault, .err = RATION_OK};
    rn_json list;
    rn_json_value element;

    if (value->type != RN_JSON_ARRAY) {
        (void)fail(&g, value->at, "must be an array", ration_text_of("records"));
        return g.err;
    }

    const size_t most = elements_count(json, value);
    ration_record *made = rn_arena_zalloc(arena, most, sizeof *made);
    size_t n = 0;

    if (made == NULL)
        return RATION_ERR_NOMEM;
    rn_json_reopen(json, value, &list);
    while (n < most && rn_json_element(&list, &element)) {
        if (!record_read(&g, &list, &element, &made[n]))
            return g.err;
        n++;
    }
    *records = made;
    *count = n;
    return RATION_OK;
}
