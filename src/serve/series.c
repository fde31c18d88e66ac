/* SPDX-License-Identifier: MIT */
/*
 * A metric with labels that come from outside.
 *
 * The few of a group that matter most are kept in order while its samples pass, so a group of any size takes no memory
 * and one comparison a sample, mostly. A name that is "*" itself counts among the rest: two series with the same labels
 * would make a scrape fail as a whole.
 *
 * Invariant: `top` is in order, and nothing in the rest would go before its last, but for what had to go there.
 */
#include "serve/series.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define SERIES_MAX ((size_t)4 << 20)

void rn_series_init(rn_series *series, const rn_series_kind *kind)
{
    memset(series, 0, sizeof *series);
    series->kind = kind;
    rn_output_init(&series->out, rn_mem_default(), SERIES_MAX);
}

void rn_series_fini(rn_series *series)
{
    rn_output_fini(&series->out);
}

/* ---- text */

static void raw(rn_output *out, const char *s)
{
    rn_output_raw(out, ration_text_of(s));
}

/* As Prometheus wants it: UTF-8, with three characters escaped. */
static void label_value(rn_output *out, ration_text value)
{
    const bool utf8 = rn_text_is_utf8(value);

    for (size_t i = 0; i < value.size; i++) {
        const char c = value.data[i];

        if (c == '\n') {
            raw(out, "\\n");
        } else if (c == '"' || c == '\\') {
            const char escaped[] = {'\\', c};
            rn_output_raw(out, (ration_text){escaped, sizeof escaped});
        } else if (!utf8 && (unsigned char)c >= 0x80) {
            raw(out, "?");
        } else {
            rn_output_raw(out, (ration_text){&c, 1});
        }
    }
}

static void sample_write(rn_series *series, const rn_series_sample *sample, bool is_rest)
{
    const rn_series_kind *kind = series->kind;
    char digits[40];
    rn_builder b;

    raw(&series->out, kind->name);
    for (size_t i = 0; i < RN_SERIES_LABELS && kind->labels[i] != NULL; i++) {
        raw(&series->out, i == 0 ? "{" : ",");
        raw(&series->out, kind->labels[i]);
        raw(&series->out, "=\"");
        label_value(&series->out, is_rest && i >= kind->fixed ? (ration_text){"*", 1} : sample->labels[i]);
        raw(&series->out, "\"");
    }
    if (kind->always != NULL) {
        raw(&series->out, ",");
        raw(&series->out, kind->always);
    }
    raw(&series->out, "} ");
    rn_builder_init(&b, digits, sizeof digits);
    if (kind->micro) {
        rn_builder_micro(&b, sample->value);
    } else {
        rn_builder_int(&b, sample->value);
    }
    rn_output_raw(&series->out, (ration_text){digits, b.used});
    raw(&series->out, "\n");
}

/* ---- groups */

void rn_series_end(rn_series *series)
{
    for (size_t i = 0; i < series->count; i++)
        sample_write(series, &series->top[i], false);
    series->group.value = series->rest;
    if (series->rested)
        sample_write(series, &series->group, true);
    series->count = 0;
    series->rested = false;
}

static void rest_add(rn_series *series, int64_t value)
{
    if (!series->rested) {
        series->rest = value;
    } else if (series->kind->rest == RN_SERIES_LARGEST) {
        series->rest = rn_max(series->rest, value);
    } else if (series->kind->rest == RN_SERIES_SMALLEST) {
        series->rest = rn_min(series->rest, value);
    } else {
        series->rest = rn_add(series->rest, value);
    }
    series->rested = true;
}

/* Is `a` more worth showing than `b`? */
static bool goes_before(const rn_series *series, int64_t a, int64_t b)
{
    return series->kind->smallest ? a < b : a > b;
}

/* Into its place; the last goes to the rest where there is no more room. */
static void top_add(rn_series *series, const rn_series_sample *sample)
{
    size_t at = series->count;

    if (at == RN_SERIES_TOP) {
        at--;
        if (!goes_before(series, sample->value, series->top[at].value)) {
            rest_add(series, sample->value);
            return;
        }
        rest_add(series, series->top[at].value);
    } else {
        series->count++;
    }
    for (; at > 0 && goes_before(series, sample->value, series->top[at - 1].value); at--)
        series->top[at] = series->top[at - 1];
    series->top[at] = *sample;
}

static bool is_of_group(const rn_series *series, const rn_series_sample *sample)
{
    bool same = series->count > 0 || series->rested;

    for (size_t i = 0; i < series->kind->fixed && same; i++)
        same = rn_text_eq(series->group.labels[i], sample->labels[i]);
    return same;
}

/* Its labels would be those of the rest. */
static bool is_like_rest(const rn_series *series, const rn_series_sample *sample)
{
    bool like = true;

    for (size_t i = series->kind->fixed; i < RN_SERIES_LABELS && series->kind->labels[i] != NULL && like; i++)
        like = rn_text_is(sample->labels[i], "*");
    return like;
}

void rn_series_add(rn_series *series, const rn_series_sample *sample, bool again)
{
    if (!is_of_group(series, sample)) {
        rn_series_end(series);
        series->group = *sample;
    }
    if (again || is_like_rest(series, sample)) {
        rest_add(series, sample->value);
    } else {
        top_add(series, sample);
    }
}
