/* SPDX-License-Identifier: MIT */
/*
 * A ring of what was refused lately.
 *
 * An entry owns copies of all it shows, so it says the same an hour later, whatever became of the limit or its key. Its
 * size is fixed: a flood of refusals costs no memory, it only makes the memory of them shorter.
 *
 * Invariant: entries `count - kept` to `count - 1` are in the ring, at their number modulo its size.
 */
#include "serve/refused.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/refusal.h"
#include "serve/route.h"
#include "serve/trace_context.h"

#define NAME_BYTES 64
#define KEY_BYTES 160
#define WORDS_BYTES 320

typedef struct entry {
    ration_time at;
    ration_time retry_at;
    ration_reason reason;
    int64_t waited_us;
    char request_id[48];
    char account[NAME_BYTES];
    char tenant[NAME_BYTES];
    char limit[NAME_BYTES];
    char traceparent[NAME_BYTES];
    char key[KEY_BYTES];
    char words[WORDS_BYTES];
} entry;

struct rn_refusals {
    entry *ring; /* NULL: nothing was refused yet, or there was no memory */
    uint64_t count;
    uint64_t first; /* the oldest that was kept */
};

int rn_refusals_new(rn_refusals **out)
{
    rn_refusals *refusals = rn_mem_zalloc(rn_mem_default(), 1, sizeof *refusals);

    if (refusals == NULL)
        return RATION_ERR_NOMEM;
    *out = refusals;
    return RATION_OK;
}

void rn_refusals_free(rn_refusals *refusals)
{
    if (refusals == NULL)
        return;
    rn_mem_free(rn_mem_default(), refusals->ring);
    rn_mem_free(rn_mem_default(), refusals);
}

/* Cut between characters. */
static void keep(char *out, size_t size, ration_text text)
{
    size_t used = text.data != NULL && text.size < size ? text.size : size - 1;

    if (text.data == NULL)
        used = 0;
    while (used > 0 && used < text.size && ((unsigned char)text.data[used] & 0xC0) == 0x80)
        used--;
    if (used > 0)
        memcpy(out, text.data, used);
    out[used] = '\0';
}

/* All but its instant. */
static void entry_fill(entry *e, const rn_refused *refused)
{
    const ration_decision *d = refused->decision;

    e->retry_at = d->retry_at;
    e->reason = d->reason;
    e->waited_us = refused->waited_us;
    keep(e->request_id, sizeof e->request_id, refused->request_id);
    keep(e->account, sizeof e->account, refused->account);
    keep(e->tenant, sizeof e->tenant, refused->tenant);
    keep(e->limit, sizeof e->limit, ration_text_of(d->limit));
    keep(e->traceparent, sizeof e->traceparent, refused->traceparent);
    keep(e->key, sizeof e->key, d->key);
    if (refused->detail.data != NULL) {
        keep(e->words, sizeof e->words, refused->detail);
    } else {
        (void)ration_decision_explain(d, e->words, sizeof e->words);
    }
}

void rn_refusals_add(rn_refusals *refusals, ration_time now, const rn_refused *refused)
{
    if (refusals == NULL)
        return;
    if (refusals->ring == NULL) {
        refusals->ring = rn_mem_zalloc(rn_mem_default(), RN_REFUSED_MAX, sizeof *refusals->ring);
        refusals->first = refusals->count;
    }
    refusals->count++;
    if (refusals->ring == NULL)
        return;

    entry *e = &refusals->ring[(refusals->count - 1) % RN_REFUSED_MAX];
    e->at = now;
    entry_fill(e, refused);
}

/* ---- the page */

static bool wanted(ration_text asked, const char *has)
{
    return asked.data == NULL || rn_text_is(asked, has);
}

/* A name that was cut matches what it was cut from. */
static bool wanted_key(ration_text asked, const char *has)
{
    char cut[KEY_BYTES];

    if (asked.data == NULL)
        return true;
    keep(cut, sizeof cut, asked);
    return strcmp(cut, has) == 0;
}

static bool entry_matches(const entry *e, const rn_refused_filter *filter)
{
    return e->at.us >= filter->since.us && wanted(filter->tenant, e->tenant) && wanted(filter->account, e->account) &&
           wanted(filter->limit, e->limit) && wanted_key(filter->key, e->key) &&
           wanted(filter->reason, ration_reason_name(e->reason));
}

static void member(rn_output *out, const char *name, const char *value)
{
    if (value[0] != '\0')
        rn_output_str(out, name, value);
}

/* All but its instant. */
static void entry_members(const entry *e, rn_output *out)
{
    member(out, "requestId", e->request_id);
    member(out, "account", e->account);
    member(out, "tenant", e->tenant);
    rn_output_str(out, "reason", ration_reason_name(e->reason));
    member(out, "limit", e->limit);
    member(out, "key", e->key);
    if (e->waited_us != RATION_UNSET)
        rn_output_ms(out, "waitedMs", e->waited_us);
    if (rn_time_known(e->retry_at))
        rn_output_ms(out, "retryAt", e->retry_at.us);
    rn_trace_context_write(ration_text_of(e->traceparent), out);
    member(out, "explanation", e->words);
}

void rn_refused_write(const rn_refused *refused, rn_output *out)
{
    entry e;

    entry_fill(&e, refused);
    entry_members(&e, out);
}

static uint64_t kept_from(const rn_refusals *refusals)
{
    const uint64_t oldest = refusals->count > RN_REFUSED_MAX ? refusals->count - RN_REFUSED_MAX : 0;

    if (refusals->ring == NULL)
        return refusals->count;
    return oldest > refusals->first ? oldest : refusals->first;
}

void rn_refusals_write(const rn_refusals *refusals, const rn_refused_filter *filter, rn_output *out)
{
    const uint64_t oldest = kept_from(refusals);
    size_t shown = 0;

    rn_output_open(out, NULL, '{');
    rn_output_open(out, "refusals", '[');
    for (uint64_t i = refusals->count; i > oldest && (filter->most == 0 || shown < filter->most); i--) {
        const entry *e = &refusals->ring[(i - 1) % RN_REFUSED_MAX];

        if (!entry_matches(e, filter))
            continue;
        rn_output_open(out, NULL, '{');
        rn_output_ms(out, "at", e->at.us);
        entry_members(e, out);
        rn_output_close(out, '}');
        shown++;
    }
    rn_output_close(out, ']');
    rn_output_int(out, "kept", (int64_t)(refusals->count - oldest));
    rn_output_int(out, "forgotten", (int64_t)oldest);
    if (refusals->count > oldest)
        rn_output_ms(out, "since", refusals->ring[oldest % RN_REFUSED_MAX].at.us);
    rn_output_close(out, '}');
    rn_output_newline(out);
}

/* ---- what is asked for */

static bool reason_exists(ration_text name)
{
    for (int i = RATION_REASON_NONE + 1; i < RATION_REASON_COUNT; i++) {
        if (rn_text_is(name, ration_reason_name((ration_reason)i)))
            return true;
    }
    return false;
}

/* A number of milliseconds, or of entries. */
static int number_read(ration_text name, ration_text value, rn_refused_filter *out)
{
    int64_t number;

    if (rn_text_is(name, "since"))
        return rn_parse_ms(value, &out->since.us) == RATION_OK ? RATION_OK : RATION_ERR_SYNTAX;
    if (rn_parse_int(value, &number) != RATION_OK || number < 1 || number > RN_REFUSED_MAX)
        return RATION_ERR_SYNTAX;
    out->most = (size_t)number;
    return RATION_OK;
}

static int parameter_read(ration_text name, ration_text value, rn_refused_filter *out, unsigned int *given)
{
    const struct {
        const char *name;
        ration_text *text; /* NULL: a number */
    } parameters[] = {
        {"tenant", &out->tenant}, {"account", &out->account}, {"limit", &out->limit},
        {"key", &out->key},       {"reason", &out->reason},   {"since", NULL},
        {"most", NULL},
    };

    for (unsigned int i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        if (!rn_text_is(name, parameters[i].name))
            continue;
        if ((*given & (1U << i)) != 0)
            return RATION_ERR_SYNTAX;
        *given |= 1U << i;
        if (parameters[i].text == NULL)
            return number_read(name, value, out);
        *parameters[i].text = value;
        return parameters[i].text != &out->reason || reason_exists(value) ? RATION_OK : RATION_ERR_SYNTAX;
    }
    return RATION_ERR_SYNTAX;
}

int rn_refused_filter_read(ration_text query, char *buffer, size_t size, rn_refused_filter *out, ration_text *parameter)
{
    rn_refused_filter filter = {.since = {INT64_MIN}};
    unsigned int given = 0;

    for (size_t from = 0; from < query.size;) {
        ration_text pair = rn_text_slice(query, from, query.size);
        ration_text value;
        size_t end = pair.size, equals;

        (void)rn_text_find(pair, (ration_text){"&", 1}, &end);
        pair = rn_text_slice(pair, 0, end);
        from += end + 1;
        equals = pair.size;
        (void)rn_text_find(pair, (ration_text){"=", 1}, &equals);
        *parameter = rn_text_slice(pair, 0, equals);

        const ration_text raw = rn_text_slice(pair, equals < pair.size ? equals + 1 : pair.size, pair.size);
        const int err = rn_route_decode(raw, buffer, size, &value);
        if (err != RATION_OK)
            return err == RATION_ERR_RANGE ? RATION_ERR_FULL : RATION_ERR_SYNTAX;
        buffer += value.size;
        size -= value.size;
        if (parameter_read(*parameter, value, &filter, &given) != RATION_OK)
            return RATION_ERR_SYNTAX;
    }
    *out = filter;
    return RATION_OK;
}
