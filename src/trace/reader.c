/* SPDX-License-Identifier: MIT */
/*
 * Lines of a trace to typed operations.
 *
 * A line is gone over twice: once to check it as JSON and note where its members are, for `op` may stand anywhere and
 * says what the others mean; once through the table of members, each row of which knows the operations that it
 * belongs to, what reads it, and where it goes. Sets of rows are bits of a word, so that few rows are looked at.
 * Numbers are taken from their digits, so that no time and no cost is ever rounded.
 *
 * Invariants: a line that is a fault leaves `newest` as it was; `newest` never runs back.
 */
#include "trace/reader.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/faults.h"
#include "trace/json.h"
#include "trace/state.h"

/* What is being read. */
typedef struct reading {
    rn_trace_reader *reader;
    ration_text line;
    rn_json json;
    rn_json_value names[RN_TRACE_MEMBERS_MAX + 1]; /* the last one is one too many */
    rn_json_value values[RN_TRACE_MEMBERS_MAX + 1];
    ration_text texts[RN_TRACE_MEMBERS_MAX]; /* the names, unescaped */
    size_t count;
    uint64_t rows;      /* of the table of members, that say anything about it */
    uint64_t seen;      /* those of them whose member it has */
    size_t at;          /* where the value of `at` is */
    ration_text member; /* that is being read, as written */
    bool body;          /* of a call of the API, not a line */
    rn_trace_line *out;
    rn_trace_fault *fault;
    int err;
} reading;

static const char *const op_names[RN_TRACE_OP_COUNT] = {
    [RN_TRACE_BLANK] = "",          [RN_TRACE_OUTPUT] = "",           [RN_TRACE_CONFIG] = "config",
    [RN_TRACE_ACQUIRE] = "acquire", [RN_TRACE_OBSERVE] = "observe",   [RN_TRACE_RELEASE] = "release",
    [RN_TRACE_RENEW] = "renew",     [RN_TRACE_CANCEL] = "cancel",     [RN_TRACE_ADVANCE] = "advance",
    [RN_TRACE_CHECK] = "check",     [RN_TRACE_STATS] = "stats",       [RN_TRACE_LIMITS] = "limits",
    [RN_TRACE_LEASES] = "leases",   [RN_TRACE_FAIRNESS] = "fairness", [RN_TRACE_ALLOCATION] = "allocation",
    [RN_TRACE_HEALTH] = "health",   [RN_TRACE_STATE] = "state",       [RN_TRACE_SAVE] = "save",
    [RN_TRACE_KEPT] = "kept",       [RN_TRACE_PAUSE] = "pause",       [RN_TRACE_RESUME] = "resume",
    [RN_TRACE_RESET] = "reset",     [RN_TRACE_GRANT] = "grant",       [RN_TRACE_DRAIN] = "drain",
    [RN_TRACE_RELOAD] = "reload",   [RN_TRACE_STEP] = "step",
};

enum {
    CONFIG = 1 << RN_TRACE_CONFIG,
    ACQUIRE = 1 << RN_TRACE_ACQUIRE,
    CHECK = 1 << RN_TRACE_CHECK,
    ASKS = ACQUIRE | CHECK,
    OBSERVE = 1 << RN_TRACE_OBSERVE,
    RELEASE = 1 << RN_TRACE_RELEASE,
    RENEW = 1 << RN_TRACE_RENEW,
    CANCEL = 1 << RN_TRACE_CANCEL,
    NAMED = ASKS | OBSERVE | RELEASE | RENEW | CANCEL,
    HEALTH = 1 << RN_TRACE_HEALTH,
    STATE = 1 << RN_TRACE_STATE,
    SAVE = 1 << RN_TRACE_SAVE,
    GRANT = 1 << RN_TRACE_GRANT,
    OPERATES = 1 << RN_TRACE_PAUSE | 1 << RN_TRACE_RESUME | 1 << RN_TRACE_RESET | GRANT,
    DRAIN = 1 << RN_TRACE_DRAIN,
    RELOAD = 1 << RN_TRACE_RELOAD,
    STEP = 1 << RN_TRACE_STEP,
    REPORTS = 1 << RN_TRACE_STATS | 1 << RN_TRACE_LIMITS | 1 << RN_TRACE_LEASES | 1 << RN_TRACE_FAIRNESS |
              1 << RN_TRACE_ALLOCATION,
    TIMED = NAMED | REPORTS | HEALTH | STATE | SAVE | 1 << RN_TRACE_KEPT | OPERATES | DRAIN | RELOAD | STEP |
            1 << RN_TRACE_ADVANCE,
};

const char *rn_trace_op_name(rn_trace_op op)
{
    return op_names[op];
}

static size_t characters(ration_text text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

static void fault_set(rn_trace_fault *fault, size_t number, size_t column, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
static void fault_set(rn_trace_fault *fault, size_t number, size_t column, const char *format, va_list args)
{
    fault->line = number;
    fault->column = column;
    fault->member[0] = '\0';
    (void)vsnprintf(fault->text, sizeof fault->text, format, args);
}

void rn_trace_fault_set(rn_trace_fault *fault, size_t number, ration_text line, size_t at, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fault_set(fault, number, characters(rn_text_slice(line, 0, at)) + 1, format, args);
    va_end(args);
}

/* How much of a text of a stranger is shown: at most 40 bytes, cut between characters. For "%.*s". */
static int shown(ration_text text)
{
    size_t size = text.size < 40 ? text.size : 40;

    while (size > 0 && size < text.size && ((unsigned char)text.data[size] & 0xc0) == 0x80)
        size--;
    return (int)size;
}

/* Always false, so that a reader can return it. */
static bool fail(reading *g, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool fail(reading *g, size_t at, const char *format, ...)
{
    rn_builder member;
    va_list args;

    va_start(args, format);
    fault_set(g->fault, g->reader->number, characters(rn_text_slice(g->line, 0, at)) + 1, format, args);
    va_end(args);
    rn_builder_init(&member, g->fault->member, sizeof g->fault->member);
    rn_builder_text(&member, rn_text_slice(g->member, 0, (size_t)shown(g->member)));
    g->err = RATION_ERR_SYNTAX;
    return false;
}

static bool no_memory(reading *g)
{
    g->err = RATION_ERR_NOMEM;
    return false;
}

static bool want(reading *g, const rn_json_value *value, rn_json_type type)
{
    if (value->type == type)
        return true;
    return fail(g, value->at, "%s where %s should be", rn_json_type_name(value->type), rn_json_type_name(type));
}

static bool take_text(reading *g, const rn_json_value *value, void *into)
{
    if (!want(g, value, RN_JSON_STRING))
        return false;
    return rn_json_text(value, &g->reader->arena, into) == RATION_OK || no_memory(g);
}

static bool take_id(reading *g, const rn_json_value *value, void *into)
{
    if (want(g, value, RN_JSON_STRING) && value->raw.size == 0)
        return fail(g, value->at, "an empty id");
    g->out->id_at = value->at;
    return take_text(g, value, into);
}

/* A number of at most `places` places from `low` to `high`, which are in its smallest unit. */
static bool take_fixed(reading *g, const rn_json_value *value, int places, int64_t low, int64_t *into)
{
    int64_t number = 0;

    if (!want(g, value, RN_JSON_NUMBER))
        return false;

    const int err = rn_json_fixed(value->raw, places, &number);

    if (err == RATION_ERR_SYNTAX)
        return fail(g, value->at, "%.*s has more than %d places", shown(value->raw), value->raw.data, places);
    if (err == RATION_OK && number < low) {
        return fail(g, value->at, low < 0 ? "%.*s is too far in the past" : "%.*s is too small", shown(value->raw),
                    value->raw.data);
    }
    if (err != RATION_OK || number > RATION_TIME_MAX_US)
        return fail(g, value->at, "%.*s is too large", shown(value->raw), value->raw.data);
    *into = number;
    return true;
}

static bool take_instant(reading *g, const rn_json_value *value, void *into)
{
    ration_time *const at = into;

    return take_fixed(g, value, 3, -RATION_TIME_MAX_US, &at->us);
}

static bool take_at(reading *g, const rn_json_value *value, void *into)
{
    g->at = value->at;
    return take_instant(g, value, into);
}

static bool take_started(reading *g, const rn_json_value *value, void *into)
{
    g->out->has_started_at = true;
    g->at = value->at;
    return take_instant(g, value, into);
}

static bool take_span(reading *g, const rn_json_value *value, void *into)
{
    return take_fixed(g, value, 3, 0, into);
}

/* null: it never ends, whatever the endpoint's default is. */
static bool take_hold(reading *g, const rn_json_value *value, void *into)
{
    if (value->type == RN_JSON_NULL) {
        *(int64_t *)into = RATION_FOREVER_US;
        return true;
    }
    return take_span(g, value, into);
}

static bool take_ttl(reading *g, const rn_json_value *value, void *into)
{
    return take_fixed(g, value, 3, 1, into);
}

static bool take_units(reading *g, const rn_json_value *value, void *into)
{
    return take_fixed(g, value, 6, 0, into);
}

static bool take_status(reading *g, const rn_json_value *value, void *into)
{
    int64_t status = 0;

    if (!take_fixed(g, value, 0, 0, &status))
        return false;
    if (status > 999)
        return fail(g, value->at, "%.*s is no status", shown(value->raw), value->raw.data);
    *(int *)into = (int)status;
    return true;
}

static bool take_truth(reading *g, const rn_json_value *value, bool *into)
{
    if (value->type != RN_JSON_TRUE && value->type != RN_JSON_FALSE)
        return fail(g, value->at, "%s where true or false should be", rn_json_type_name(value->type));
    *into = value->type == RN_JSON_TRUE;
    return true;
}

static bool take_flag(reading *g, const rn_json_value *value, void *into)
{
    return take_truth(g, value, into);
}

static bool take_auth(reading *g, const rn_json_value *value, void *into)
{
    ration_auth *const auth = into;
    bool truth = false;

    if (!take_truth(g, value, &truth))
        return false;
    *auth = truth ? RATION_AUTH_YES : RATION_AUTH_NO;
    return true;
}

/* The place of a word in a list; the words of a message when it has none. */
static bool take_word(reading *g, const rn_json_value *value, const char *const *words, size_t count, size_t *into)
{
    ration_text word;
    char list[80];
    rn_builder b;

    if (!take_text(g, value, &word))
        return false;
    rn_builder_init(&b, list, sizeof list);
    for (size_t i = 0; i < count; i++) {
        if (rn_text_is(word, words[i])) {
            *into = i;
            return true;
        }
        rn_builder_str(&b, i > 0 ? ", " : "");
        rn_builder_str(&b, words[i]);
    }
    return fail(g, value->at, "\"%.*s\" is none of %s", shown(value->raw), value->raw.data, list);
}

static bool take_priority(reading *g, const rn_json_value *value, void *into)
{
    static const char *const words[] = {"critical", "high", "normal", "low"};
    ration_priority *const priority = into;
    size_t index = 0;

    if (!take_word(g, value, words, 4, &index))
        return false;
    *priority = (ration_priority)((size_t)RATION_PRIORITY_CRITICAL + index);
    return true;
}

static bool take_mode(reading *g, const rn_json_value *value, void *into)
{
    static const char *const words[] = {"acquire", "enforcer"};
    ration_check_mode *const mode = into;
    size_t index = 0;

    if (!take_word(g, value, words, 2, &index))
        return false;
    *mode = (ration_check_mode)index;
    return true;
}

static bool take_outcome(reading *g, const rn_json_value *value, void *into)
{
    static const char *const words[] = {"success", "throttled", "failure", "cancelled"};
    ration_outcome *const outcome = into;
    size_t index = 0;

    if (!take_word(g, value, words, 4, &index))
        return false;
    *outcome = (ration_outcome)((size_t)RATION_OUTCOME_SUCCESS + index);
    return true;
}

/* Names and texts of an object or of one list in it. They double, within the arena, up to RN_TRACE_PAIRS_MAX. */
typedef struct pairs {
    ration_header *items;
    size_t count;
    size_t capacity;
} pairs;

static bool pairs_add(reading *g, pairs *list, ration_text name, const rn_json_value *value)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;

        if (capacity > RN_TRACE_PAIRS_MAX)
            return fail(g, value->at, "more than %d of them", RN_TRACE_PAIRS_MAX);

        ration_header *const items = rn_arena_zalloc(&g->reader->arena, capacity, sizeof *items);

        if (items == NULL)
            return no_memory(g);
        if (list->count > 0)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count].name = name;
    if (!take_text(g, value, &list->items[list->count].value))
        return false;
    list->count++;
    return true;
}

static bool pairs_add_list(reading *g, pairs *list, ration_text name, const rn_json_value *array)
{
    rn_json inner;
    rn_json_value value;

    rn_json_reopen(&g->json, array, &inner);
    while (rn_json_element(&inner, &value)) {
        if (!pairs_add(g, list, name, &value))
            return false;
    }
    return true;
}

/* An object of texts; of lists of texts too where `lists`. */
static bool take_pairs(reading *g, const rn_json_value *object, bool lists, pairs *list)
{
    rn_json inner;
    rn_json_value name;
    rn_json_value value;
    ration_text text;

    if (!want(g, object, RN_JSON_OBJECT))
        return false;
    rn_json_reopen(&g->json, object, &inner);
    while (rn_json_member(&inner, &name, &value)) {
        if (!take_text(g, &name, &text))
            return false;
        for (size_t i = 0; i < list->count; i++) {
            if (rn_text_eq(list->items[i].name, text))
                return fail(g, name.at, "\"%.*s\" occurs twice", shown(name.raw), name.raw.data);
        }
        const bool good = lists && value.type == RN_JSON_ARRAY ? pairs_add_list(g, list, text, &value)
                                                               : pairs_add(g, list, text, &value);
        if (!good)
            return false;
    }
    return true;
}

static bool take_headers(reading *g, const rn_json_value *value, void *into)
{
    ration_response *const response = into;
    pairs list = {0};

    if (!take_pairs(g, value, true, &list))
        return false;
    response->headers = list.items;
    response->header_count = list.count;
    return true;
}

static bool take_vars(reading *g, const rn_json_value *value, void *into)
{
    ration_request *const request = into;
    pairs list = {0};

    if (!take_pairs(g, value, false, &list))
        return false;
    if (list.count == 0)
        return true;

    ration_var *const vars = rn_arena_zalloc(&g->reader->arena, list.count, sizeof *vars);

    if (vars == NULL)
        return no_memory(g);
    for (size_t i = 0; i < list.count; i++)
        vars[i] = (ration_var){list.items[i].name, list.items[i].value};
    request->vars = vars;
    request->var_count = list.count;
    return true;
}

static bool take_records(reading *g, const rn_json_value *value, void *into)
{
    ration_state *const state = into;
    rn_record_fault fault = {0};
    const int err = rn_records_read(&g->json, value, &g->reader->arena, &state->records, &state->count, &fault);

    if (err == RATION_ERR_NOMEM)
        return no_memory(g);
    if (err == RATION_OK)
        return true;
    if (fault.name.data == NULL)
        return fail(g, fault.at, "%s", fault.why);
    return fail(g, fault.at, "\"%.*s\" %s", shown(fault.name), fault.name.data, fault.why);
}

/* Where a member may stand. The API has its own word for some, and no use for others. */
typedef enum dialect {
    ANYWHERE = 0,
    IN_LINES,
    IN_BODIES,
} dialect;

/* A member, the operations that it belongs to, those that need it, what reads it, and where it goes. */
typedef struct member {
    ration_text name;
    unsigned ops;
    unsigned needed;
    bool (*take)(reading *g, const rn_json_value *value, void *into);
    size_t offset;
    dialect dialect;
} member;

#define INTO(field) offsetof(rn_trace_line, field)

static const member members[] = {
    {RN_TEXT("op"), TIMED | CONFIG, 0, NULL, 0, IN_LINES},
    {RN_TEXT("startedAt"), CONFIG, 0, take_started, INTO(started_at), IN_LINES},
    {RN_TEXT("at"), TIMED, TIMED, take_at, INTO(at), IN_LINES},
    {RN_TEXT("id"), NAMED, NAMED, take_id, INTO(id), IN_LINES},
    {RN_TEXT("lease"), OBSERVE | RELEASE | RENEW, OBSERVE | RELEASE | RENEW, take_id, INTO(id), IN_BODIES},
    {RN_TEXT("provider"), ASKS, 0, take_text, INTO(request.provider), ANYWHERE},
    {RN_TEXT("account"), ASKS, 0, take_text, INTO(request.account), ANYWHERE},
    {RN_TEXT("target"), ASKS, 0, take_text, INTO(request.target), ANYWHERE},
    {RN_TEXT("credential"), ASKS, 0, take_text, INTO(request.credential), ANYWHERE},
    {RN_TEXT("tenant"), ASKS, 0, take_text, INTO(request.tenant), ANYWHERE},
    {RN_TEXT("class"), ASKS, 0, take_text, INTO(request.class_name), ANYWHERE},
    {RN_TEXT("cost"), ASKS, 0, take_units, INTO(request.cost), ANYWHERE},
    {RN_TEXT("hold"), ASKS, 0, take_hold, INTO(request.hold_us), ANYWHERE},
    {RN_TEXT("wait"), ASKS, 0, take_span, INTO(request.wait_us), IN_LINES},
    {RN_TEXT("timeout"), ASKS, 0, take_span, INTO(request.wait_us), IN_BODIES},
    {RN_TEXT("ttl"), ASKS, 0, take_ttl, INTO(request.ttl_us), ANYWHERE},
    {RN_TEXT("priority"), ASKS, 0, take_priority, INTO(request.priority), ANYWHERE},
    {RN_TEXT("method"), ASKS, 0, take_text, INTO(request.method), ANYWHERE},
    {RN_TEXT("path"), ASKS, 0, take_text, INTO(request.path), ANYWHERE},
    {RN_TEXT("endpoint"), ASKS, 0, take_text, INTO(request.endpoint), ANYWHERE},
    {RN_TEXT("vars"), ASKS, 0, take_vars, INTO(request), ANYWHERE},
    {RN_TEXT("retry"), ASKS, 0, take_flag, INTO(request.retry), ANYWHERE},
    {RN_TEXT("auth"), ASKS, 0, take_auth, INTO(request.auth), ANYWHERE},
    {RN_TEXT("health"), ASKS, 0, take_flag, INTO(request.health), IN_LINES},
    {RN_TEXT("mode"), CHECK, 0, take_mode, INTO(check), ANYWHERE},
    {RN_TEXT("status"), OBSERVE, 0, take_status, INTO(response.status), ANYWHERE},
    {RN_TEXT("headers"), OBSERVE, 0, take_headers, INTO(response), ANYWHERE},
    {RN_TEXT("body"), OBSERVE, 0, take_text, INTO(response.body), ANYWHERE},
    {RN_TEXT("status"), RELEASE, 0, take_status, INTO(response.status), IN_BODIES},
    {RN_TEXT("headers"), RELEASE, 0, take_headers, INTO(response), IN_BODIES},
    {RN_TEXT("body"), RELEASE, 0, take_text, INTO(response.body), IN_BODIES},
    {RN_TEXT("outcome"), RELEASE, 0, take_outcome, INTO(completion.outcome), ANYWHERE},
    {RN_TEXT("cost"), RELEASE, 0, take_units, INTO(completion.cost), ANYWHERE},
    {RN_TEXT("account"), HEALTH, HEALTH, take_text, INTO(account), IN_LINES},
    {RN_TEXT("ok"), HEALTH, HEALTH, take_flag, INTO(ok), IN_LINES},
    {RN_TEXT("provider"), OPERATES, 0, take_text, INTO(counter.provider), ANYWHERE},
    {RN_TEXT("limit"), OPERATES, OPERATES, take_text, INTO(counter.limit), IN_LINES},
    {RN_TEXT("key"), OPERATES, OPERATES, take_text, INTO(counter.key), IN_LINES},
    {RN_TEXT("units"), GRANT, GRANT, take_units, INTO(units), ANYWHERE},
    {RN_TEXT("unclean"), STATE, 0, take_flag, INTO(state.unclean), IN_LINES},
    {RN_TEXT("uncleanAt"), STATE, 0, take_instant, INTO(state.unclean_at), IN_LINES},
    {RN_TEXT("records"), STATE, STATE, take_records, INTO(state), IN_LINES},
    {RN_TEXT("all"), SAVE, 0, take_flag, INTO(all), IN_LINES},
    {RN_TEXT("by"), STEP, STEP, take_span, INTO(by_us), IN_LINES},
};
enum { MEMBER_COUNT = sizeof members / sizeof members[0] };
_Static_assert(MEMBER_COUNT <= 64, "a bit each");

/* The line as JSON: notes its members. */
static bool reading_scan(reading *g)
{
    rn_json *const json = &g->json;

    if (!rn_json_enter(json, RN_JSON_OBJECT))
        return fail(g, json->fault_at, "%s is one JSON object", g->body ? "the body" : "a line of a trace");
    for (;;) {
        const size_t count = g->count;
        rn_json_value *const name = &g->names[count];

        if (!rn_json_member(json, name, &g->values[count]))
            break;
        if (count == RN_TRACE_MEMBERS_MAX)
            return fail(g, name->at, "more than %d members", RN_TRACE_MEMBERS_MAX);
        if (!take_text(g, name, &g->texts[count]))
            return false;
        g->member = name->raw;
        for (size_t i = 0; i < count; i++) {
            if (rn_text_eq(g->texts[i], g->texts[count]))
                return fail(g, name->at, "\"%.*s\" occurs twice", shown(name->raw), name->raw.data);
        }
        g->count++;
    }
    g->member = (ration_text){NULL, 0};
    if (!rn_json_end(json))
        return fail(g, json->fault_at, "%s", json->fault);
    return true;
}

static const rn_json_value *reading_find(const reading *g, const char *name)
{
    for (size_t i = 0; i < g->count; i++) {
        if (rn_text_is(g->texts[i], name))
            return &g->values[i];
    }
    return NULL;
}

static const char *known_at(const void *names, size_t index)
{
    return ((const char *const *)names)[index];
}

static bool reading_op(reading *g)
{
    const rn_json_value *const value = reading_find(g, "op");
    const char *known[RN_TRACE_OP_COUNT];
    size_t count = 0;
    ration_text name;

    if (value == NULL)
        return fail(g, 0, "no op");
    if (!take_text(g, value, &name))
        return false;
    for (rn_trace_op op = RN_TRACE_CONFIG; op < RN_TRACE_OP_COUNT; op++) {
        if (rn_text_is(name, op_names[op])) {
            g->out->op = op;
            return true;
        }
        known[count++] = op_names[op];
    }

    const char *const near = rn_nearest(name, known, count, known_at);

    if (near != NULL)
        return fail(g, value->at, "no op \"%.*s\" (%s?)", shown(value->raw), value->raw.data, near);
    return fail(g, value->at, "no op \"%.*s\"", shown(value->raw), value->raw.data);
}

static bool member_unknown(reading *g, size_t index)
{
    const rn_json_value *const name = &g->names[index];
    const char *known[MEMBER_COUNT];
    size_t count = 0;

    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if ((g->rows & UINT64_C(1) << i) != 0)
            known[count++] = members[i].name.data;
    }

    const char *const near = rn_nearest(g->texts[index], known, count, known_at);

    if (near != NULL) {
        return fail(g, name->at, "%s has no member \"%.*s\" (%s?)", op_names[g->out->op], shown(name->raw),
                    name->raw.data, near);
    }
    return fail(g, name->at, "%s has no member \"%.*s\"", op_names[g->out->op], shown(name->raw), name->raw.data);
}

static bool reading_member(reading *g, size_t index)
{
    const ration_text name = g->texts[index];
    uint64_t rows = name.size <= RN_TRACE_NAME_MAX ? g->rows & g->reader->rows.of_size[name.size] : 0;

    g->member = g->names[index].raw;
    for (; rows != 0; rows &= rows - 1) {
        const member *const row = &members[__builtin_ctzll(rows)];

        if (!rn_text_eq(name, row->name))
            continue;
        g->seen |= rows & (0 - rows);
        return row->take == NULL || row->take(g, &g->values[index], (char *)g->out + row->offset);
    }
    /* The config's own members are the config loader's to judge. */
    return g->out->op == RN_TRACE_CONFIG || g->out->op == RN_TRACE_RELOAD || member_unknown(g, index);
}

static bool reading_members(reading *g)
{
    const rn_trace_rows *const rows = &g->reader->rows;

    g->rows = rows->of_op[g->out->op] & (g->body ? rows->in_bodies : rows->in_lines);
    g->seen = 0;
    for (size_t i = 0; i < g->count; i++) {
        if (!reading_member(g, i))
            return false;
    }

    const uint64_t missing = g->rows & rows->needed[g->out->op] & ~g->seen;
    if (missing != 0) {
        g->member = members[__builtin_ctzll(missing)].name;
        return fail(g, 0, "%s without \"%s\"", op_names[g->out->op], g->member.data);
    }
    g->member = (ration_text){NULL, 0};
    return true;
}

/* What the table says, by what is asked of it for every member of every line. */
static void rows_fill(rn_trace_rows *rows)
{
    *rows = (rn_trace_rows){0};
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        const uint64_t bit = UINT64_C(1) << i;

        for (unsigned op = 0; op < RN_TRACE_OP_COUNT; op++) {
            rows->of_op[op] |= (members[i].ops & 1u << op) != 0 ? bit : 0;
            rows->needed[op] |= (members[i].needed & 1u << op) != 0 ? bit : 0;
        }
        assert(members[i].name.size <= RN_TRACE_NAME_MAX);
        rows->of_size[members[i].name.size] |= bit;
        rows->in_lines |= members[i].dialect != IN_BODIES ? bit : 0;
        rows->in_bodies |= members[i].dialect != IN_LINES ? bit : 0;
    }
}

/* Time and the config's place in the trace. */
static bool reading_order(reading *g)
{
    rn_trace_reader *const reader = g->reader;

    if (g->out->op == RN_TRACE_CONFIG) {
        if (reader->started)
            return fail(g, 0, "a config line may only be the first of a trace");
        reader->started = true;
        if (g->out->has_started_at)
            reader->newest = g->out->started_at;
        return true;
    }
    if (g->out->at.us < reader->newest.us)
        return fail(g, g->at, "time runs back by %lld us", (long long)(reader->newest.us - g->out->at.us));
    reader->started = true;
    reader->newest = g->out->at;
    return true;
}

static bool reading_line(reading *g)
{
    if (!reading_scan(g))
        return false;
    if (reading_find(g, "result") != NULL || reading_find(g, "event") != NULL) {
        g->out->op = RN_TRACE_OUTPUT;
        return true;
    }
    return reading_op(g) && reading_members(g) && reading_order(g);
}

static bool is_blank(ration_text line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r')
            return false;
    }
    return true;
}

void rn_trace_reader_init(rn_trace_reader *reader, const ration_allocator *mem)
{
    *reader = (rn_trace_reader){.newest = {-RATION_TIME_MAX_US}};
    rows_fill(&reader->rows);
    rn_arena_init(&reader->arena, mem);
}

void rn_trace_reader_fini(rn_trace_reader *reader)
{
    rn_arena_fini(&reader->arena);
}

/* What the last line left is gone, and nothing is known of this one. The members are written before they are read. */
static void reading_begin(reading *g, rn_trace_reader *reader, ration_text line, rn_trace_line *out,
                          rn_trace_fault *fault)
{
    g->reader = reader;
    g->line = line;
    g->count = g->at = 0;
    g->member = (ration_text){NULL, 0};
    g->body = false;
    g->out = out;
    g->fault = fault;
    g->err = RATION_OK;

    rn_arena_fini(&reader->arena);
    rn_arena_init(&reader->arena, reader->arena.mem);
    reader->number++;
    *g->out = (rn_trace_line){
        .number = reader->number,
        .text = g->line,
        .request = RATION_REQUEST_INIT,
        .completion = RATION_COMPLETION_INIT,
    };
    rn_json_init(&g->json, g->line);
}

int rn_trace_read_body(rn_trace_reader *reader, rn_trace_op op, ration_text body, rn_trace_line *out,
                       rn_trace_fault *fault)
{
    reading g;

    reading_begin(&g, reader, body, out, fault);
    g.body = true;
    out->op = op;
    return reading_scan(&g) && reading_members(&g) ? RATION_OK : g.err;
}

int rn_trace_read(rn_trace_reader *reader, ration_text line, rn_trace_line *out, rn_trace_fault *fault)
{
    reading g;

    reading_begin(&g, reader, line, out, fault);
    if (is_blank(line))
        return RATION_OK;
    if (line.size > RN_TRACE_LINE_MAX) {
        rn_trace_fault_set(fault, reader->number, line, 0, "a line of more than %zu bytes", RN_TRACE_LINE_MAX);
        return RATION_ERR_SYNTAX;
    }
    return reading_line(&g) ? RATION_OK : g.err;
}
