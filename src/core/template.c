/* SPDX-License-Identifier: MIT */

/*
 * Templates and globs are the same thing: a list of segment patterns. A template names variables with `{name}`, a glob
 * uses `*` within a segment; `**` stands for zero or more whole segments in both.
 *
 * Segments are compared as a provider reads them, decoded, so that an encoding more does not slip past a template.
 *
 * Matching keeps one point of return, the last `**` passed: an earlier one can never do better, because a later one
 * already takes any number of segments. The same holds for `*` within a segment. So nothing is exponential.
 */

#include "core/template.h"

#include <string.h>

#include "base/percent.h"

ration_text rn_path_without_query(ration_text path)
{
    static const char ends[] = {'?', '#'};

    for (size_t i = 0; i < sizeof ends && path.size > 0; i++) {
        const char *end = memchr(path.data, ends[i], path.size);

        if (end != NULL)
            path.size = (size_t)(end - path.data);
    }
    return path;
}

bool rn_path_split(ration_text path, rn_path *out)
{
    const ration_text all = rn_path_without_query(path);
    size_t start = 0;

    out->count = 0;
    for (size_t i = 0; i <= all.size; i++) {
        if (i < all.size && all.data[i] != '/')
            continue;
        if (i > start) {
            if (out->count == RN_SEGMENTS_MAX)
                return false;
            out->segment[out->count++] = rn_text_slice(all, start, i);
        }
        start = i + 1;
    }
    return true;
}

static bool name_repeats(const rn_template *template, ration_text name)
{
    for (size_t i = 0; i < template->count; i++) {
        if (template->segments[i].kind == RN_SEGMENT_VAR && rn_text_eq(template->segments[i].text, name))
            return true;
    }
    return false;
}

static bool has_char(ration_text text, char c)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == c)
            return true;
    }
    return false;
}

static int segment_init(const rn_template *template, ration_text text, rn_segment *out)
{
    const bool opens = has_char(text, '{');
    const bool closes = has_char(text, '}');

    if (opens || closes) {
        const ration_text name = text.size > 2 ? rn_text_slice(text, 1, text.size - 1) : (ration_text){"", 0};

        if (text.data[0] != '{' || text.data[text.size - 1] != '}' || name.size == 0 || has_char(name, '{') ||
            has_char(name, '}') || name_repeats(template, name))
            return RATION_ERR_SYNTAX;
        *out = (rn_segment){RN_SEGMENT_VAR, name};
    } else if (rn_text_is(text, "**")) {
        *out = (rn_segment){RN_SEGMENT_REST, text};
    } else {
        *out = (rn_segment){has_char(text, '*') ? RN_SEGMENT_GLOB : RN_SEGMENT_LITERAL, text};
    }
    return RATION_OK;
}

int rn_template_init(rn_template *template, rn_arena *arena, ration_text text)
{
    rn_path path;

    if (text.size == 0 || text.data[0] != '/' || has_char(text, '?') || has_char(text, '#') ||
        !rn_path_split(text, &path))
        return RATION_ERR_SYNTAX;

    *template = (rn_template){.text = text};
    template->segments = rn_arena_zalloc(arena, path.count, sizeof *template->segments);
    if (template->segments == NULL)
        return RATION_ERR_NOMEM;

    for (size_t i = 0; i < path.count; i++) {
        if (segment_init(template, path.segment[i], &template->segments[i]) != RATION_OK)
            return RATION_ERR_SYNTAX;
        template->count++;
    }
    return RATION_OK;
}

/* Both as a provider reads them; a star that is written `%2A` is a letter. */
static bool glob_match(ration_text glob, ration_text text)
{
    size_t g = 0;
    size_t t = 0;
    size_t star = SIZE_MAX;
    size_t retry = 0;

    while (t < text.size) {
        char want = '\0', byte;
        const size_t size = rn_percent_take(text, t, &byte);

        if (g < glob.size && glob.data[g] == '*') {
            star = g++;
            retry = t;
            continue;
        }

        const size_t step = g < glob.size ? rn_percent_take(glob, g, &want) : 0;

        if (step > 0 && want == byte) {
            g += step;
            t += size;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            retry += rn_percent_take(text, retry, &byte);
            t = retry;
        } else {
            return false;
        }
    }
    while (g < glob.size && glob.data[g] == '*')
        g++;
    return g == glob.size;
}

static bool segment_match(const rn_segment *segment, ration_text text)
{
    switch (segment->kind) {
    case RN_SEGMENT_LITERAL:
        return rn_text_eq(segment->text, text) || rn_percent_eq(segment->text, text);
    case RN_SEGMENT_VAR:
        return true;
    case RN_SEGMENT_GLOB:
        return glob_match(segment->text, text);
    case RN_SEGMENT_REST:
        break;
    }
    return false;
}

bool rn_template_match(const rn_template *template, const rn_path *path, ration_text *values)
{
    size_t s = 0;
    size_t p = 0;
    size_t rest = SIZE_MAX;
    size_t retry = 0;

    while (p < path->count) {
        if (s < template->count && template->segments[s].kind == RN_SEGMENT_REST) {
            rest = s++;
            retry = p;
        } else if (s < template->count && segment_match(&template->segments[s], path->segment[p])) {
            if (values != NULL)
                values[s] = path->segment[p];
            s++;
            p++;
        } else if (rest != SIZE_MAX) {
            s = rest + 1;
            p = ++retry;
        } else {
            return false;
        }
    }
    while (s < template->count && template->segments[s].kind == RN_SEGMENT_REST)
        s++;
    return s == template->count;
}

bool rn_template_beats(const rn_template *a, const rn_template *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (a->segments[i].kind != b->segments[i].kind)
            return a->segments[i].kind < b->segments[i].kind;
    }
    if (a->count == b->count)
        return false;

    /* "/a" is more specific than the same with a rest behind it, else the longer. */
    const rn_template *longer = a->count > b->count ? a : b;
    const size_t shared = a->count < b->count ? a->count : b->count;
    const bool open = longer->segments[shared].kind == RN_SEGMENT_REST;

    return open ? longer != a : longer == a;
}

size_t rn_template_find(const rn_template *templates, size_t count, const rn_path *path)
{
    size_t best = count;

    for (size_t i = 0; i < count; i++) {
        if (rn_template_match(&templates[i], path, NULL) &&
            (best == count || rn_template_beats(&templates[i], &templates[best])))
            best = i;
    }
    return best;
}
