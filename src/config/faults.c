/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a config, collected, sorted and made readable.
 *
 * Faults are kept as they are found and get their source line only at the end, when it is known which bytes of each
 * file are secret: a hidden stretch shows as three stars, wherever the fault itself stands in the line. A long line
 * shows a window around the caret.
 *
 * Invariant: no byte of a hidden span reaches `source` of a finished fault.
 */
#include "config/faults.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define WINDOW_BEFORE 60
#define WINDOW_CHARS 120
#define GUESS_MAX 40
#define MESSAGE_MAX 600 /* of a text or a hint */

void rn_faults_init(rn_faults *faults, rn_arena *arena)
{
    *faults = (rn_faults){.arena = arena};
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7F;
}

void rn_plain_text(rn_builder *b, ration_text text, size_t max)
{
    size_t size = text.size < max ? text.size : max;

    while (size < text.size && size > 0 && ((unsigned char)text.data[size] & 0xC0) == 0x80)
        size--;
    for (size_t i = 0; i < size; i++)
        rn_builder_text(b, is_control(text.data[i]) ? ration_text_of("?") : rn_text_slice(text, i, i + 1));
    if (size < text.size)
        rn_builder_str(b, "...");
}

/* A copy for a message, which is one line whatever was put into it. NULL: no memory. */
static const char *faults_keep(rn_faults *faults, const char *text)
{
    char line[MESSAGE_MAX + 4];
    rn_builder b;

    rn_builder_init(&b, line, sizeof line);
    rn_plain_text(&b, ration_text_of(text), MESSAGE_MAX);
    return rn_arena_strdup(faults->arena, line);
}

void rn_faults_add(rn_faults *faults, rn_mark at, const char *path, const char *text, const char *hint)
{
    const bool last = faults->count == RN_FAULTS_MAX;

    if (faults->count > RN_FAULTS_MAX)
        return;

    rn_fault *fault = rn_arena_zalloc(faults->arena, 1, sizeof *fault);

    faults->count++;
    faults->nomem = faults->nomem || fault == NULL;
    if (fault == NULL)
        return;
    fault->at = at;
    fault->order = faults->count;
    fault->path = rn_arena_strdup(faults->arena, last ? "" : path);
    fault->text = faults_keep(faults, last ? "too many faults: the rest is not shown" : text);
    fault->hint = faults_keep(faults, last || hint == NULL ? "" : hint);
    if (fault->path == NULL || fault->text == NULL || fault->hint == NULL) {
        faults->nomem = true;
        return;
    }
    fault->next = faults->first;
    faults->first = fault;
}

/* How many bytes a line break takes, as YAML counts lines; 0: none is here. */
static size_t break_size(ration_text text, size_t at)
{
    const unsigned char *p = (const unsigned char *)text.data + at;
    const size_t left = text.size - at;

    if (left >= 2 && p[0] == '\r' && p[1] == '\n')
        return 2;
    if (p[0] == '\n' || p[0] == '\r')
        return 1;
    if (left >= 2 && p[0] == 0xC2 && p[1] == 0x85)
        return 2;
    return left >= 3 && p[0] == 0xE2 && p[1] == 0x80 && (p[2] == 0xA8 || p[2] == 0xA9) ? 3 : 0;
}

static size_t char_size(ration_text text, size_t at)
{
    size_t size = 1;

    while (at + size < text.size && ((unsigned char)text.data[at + size] & 0xC0) == 0x80)
        size++;
    return size;
}

rn_mark rn_source_mark(rn_source *source, size_t offset)
{
    rn_mark mark = {source, source->first_line, 1};
    size_t at = 0;

    while (at < offset && at < source->text.size) {
        const size_t breaks = break_size(source->text, at);

        at += breaks > 0 ? breaks : char_size(source->text, at);
        mark.line += breaks > 0;
        mark.column = breaks > 0 ? 1 : mark.column + 1;
    }
    return mark;
}

static int span_compare(const void *a, const void *b)
{
    const rn_span *x = a;
    const rn_span *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Sorted and disjoint, so that a search can halve. */
static void source_settle(rn_source *source)
{
    size_t kept = 0;

    if (source->hidden_count == 0)
        return;
    qsort(source->hidden, source->hidden_count, sizeof *source->hidden, span_compare);
    for (size_t i = 1; i < source->hidden_count; i++) {
        rn_span *last = &source->hidden[kept];
        const rn_span span = source->hidden[i];

        if (span.begin > last->end) {
            source->hidden[++kept] = span;
        } else if (span.end > last->end) {
            last->end = span.end;
        }
    }
    source->hidden_count = kept + 1;
}

static bool source_hides(const rn_source *source, size_t at)
{
    size_t low = 0;
    size_t high = source->hidden_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (at < source->hidden[middle].begin) {
            high = middle;
        } else if (at >= source->hidden[middle].end) {
            low = middle + 1;
        } else {
            return true;
        }
    }
    return false;
}

/* Where a walk over a file's lines is. */
typedef struct line_cursor {
    const rn_source *source;
    uint32_t line;
    size_t at;
} line_cursor;

static void cursor_seek(line_cursor *cursor, rn_mark mark)
{
    const ration_text text = mark.source->text;

    if (cursor->source != mark.source || cursor->line > mark.line)
        *cursor = (line_cursor){mark.source, mark.source->first_line, 0};
    while (cursor->line < mark.line && cursor->at < text.size) {
        const size_t breaks = break_size(text, cursor->at);

        cursor->at += breaks > 0 ? breaks : 1;
        cursor->line += breaks > 0;
    }
}

static void excerpt_char(rn_builder *b, ration_text c)
{
    const unsigned char first = (unsigned char)c.data[0];

    if (c.size == 1 && (first < 0x20 || first == 0x7F)) {
        rn_builder_char(b, ' ');
    } else if (first < 0x80 || (first >= 0xC2 && rn_text_is_utf8(c))) {
        rn_builder_text(b, c);
    } else {
        rn_builder_char(b, '?');
    }
}

/* The line of `mark` with its secrets starred, a window of it if it is long; and where the caret goes. */
static void excerpt(const line_cursor *cursor, rn_mark mark, rn_builder *b, uint32_t *caret)
{
    const ration_text text = mark.source->text;
    const uint32_t from = mark.column > WINDOW_CHARS - WINDOW_BEFORE / 2 ? mark.column - WINDOW_BEFORE : 1;
    uint32_t column = 1;
    uint32_t shown = 0;
    bool starred = false;

    for (size_t at = cursor->at; at < text.size && break_size(text, at) == 0; column++) {
        const size_t size = char_size(text, at);
        const bool hidden = source_hides(mark.source, at);

        if (column == mark.column)
            *caret = shown - (hidden && starred ? 3 : 0);
        if (shown >= WINDOW_CHARS) {
            rn_builder_str(b, "...");
            return;
        }
        if (column == from && from > 1) {
            rn_builder_str(b, "...");
            shown += 3;
        }
        if (column >= from && !hidden) {
            excerpt_char(b, (ration_text){text.data + at, size});
            shown++;
        } else if (column >= from && !starred) {
            rn_builder_str(b, "***");
            shown += 3;
        }
        starred = hidden && column >= from;
        at += size;
    }
    if (column <= mark.column)
        *caret = shown;
}

static int fault_compare(const void *a, const void *b)
{
    const rn_fault *x = *(rn_fault *const *)a;
    const rn_fault *y = *(rn_fault *const *)b;

    if (x->at.source->index != y->at.source->index)
        return x->at.source->index < y->at.source->index ? -1 : 1;
    if (x->at.line != y->at.line)
        return x->at.line < y->at.line ? -1 : 1;
    if (x->at.column != y->at.column)
        return x->at.column < y->at.column ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static bool fault_repeats(const rn_fault *a, const rn_fault *b)
{
    return a->at.source == b->at.source && a->at.line == b->at.line && a->at.column == b->at.column &&
           strcmp(a->text, b->text) == 0 && strcmp(a->hint, b->hint) == 0;
}

/* A file's name for a message. NULL: no memory. */
static const char *name_keep(const rn_faults *faults, const char *name)
{
    char *copy = rn_arena_strdup(faults->arena, name);

    for (size_t i = 0; copy != NULL && copy[i] != '\0'; i++) {
        if (is_control(copy[i]))
            copy[i] = '?';
    }
    return copy;
}

static int fault_finish(const rn_faults *faults, const rn_fault *fault, line_cursor *cursor, ration_config_fault *out)
{
    char line[WINDOW_CHARS * 4 + 16];
    rn_builder b;

    assert(fault->at.source != NULL);
    rn_builder_init(&b, line, sizeof line);
    *out = (ration_config_fault){.file = name_keep(faults, fault->at.source->name),
                                 .line = fault->at.line,
                                 .column = fault->at.column,
                                 .path = fault->path,
                                 .text = fault->text,
                                 .hint = fault->hint,
                                 .warning = faults->warning};
    if (fault->at.line > 0) {
        cursor_seek(cursor, fault->at);
        excerpt(cursor, fault->at, &b, &out->caret);
    }
    /* A line that is nothing but a secret says nothing. */
    if (strcmp(line, "***") == 0) {
        rn_builder_init(&b, line, sizeof line);
        out->caret = 0;
    }
    out->source = rn_arena_strdup(faults->arena, line);
    return out->source != NULL && out->file != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

int rn_faults_finish(rn_faults *faults, ration_config_faults *out)
{
    size_t count = 0;
    line_cursor cursor = {NULL, 0, 0};

    if (faults->nomem)
        return RATION_ERR_NOMEM;

    rn_fault **sorted = rn_arena_zalloc(faults->arena, faults->count, sizeof(rn_fault *));
    ration_config_fault *items = rn_arena_zalloc(faults->arena, faults->count, sizeof *items);

    if (sorted == NULL || items == NULL)
        return RATION_ERR_NOMEM;
    for (rn_fault *fault = faults->first; fault != NULL; fault = fault->next)
        sorted[count++] = fault;
    qsort(sorted, count, sizeof(rn_fault *), fault_compare);

    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && fault_repeats(sorted[i - 1], sorted[i]))
            continue;
        if (cursor.source != sorted[i]->at.source)
            source_settle(sorted[i]->at.source);
        if (fault_finish(faults, sorted[i], &cursor, &items[kept++]) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    out->items = items;
    out->count = kept;
    return RATION_OK;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    const size_t least = a < b ? a : b;

    return least < c ? least : c;
}

static char lower(char c)
{
    const bool upper = c >= 'A' && c <= 'Z';

    return (char)(c + (upper ? 'a' - 'A' : 0));
}

/* Edits between two words, a swap of neighbours counting as one; case costs nothing. Both at most GUESS_MAX bytes. */
static size_t edits(ration_text a, ration_text b)
{
    size_t rows[3][GUESS_MAX + 1];
    size_t *before = rows[0];
    size_t *last = rows[1];
    size_t *now = rows[2];

    for (size_t j = 0; j <= b.size; j++)
        before[j] = last[j] = j;
    for (size_t i = 1; i <= a.size; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            const char x = lower(a.data[i - 1]);
            const char y = lower(b.data[j - 1]);

            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b.data[j - 2]) && lower(a.data[i - 2]) == y && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }

        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b.size];
}

const char *rn_nearest(ration_text word, const void *names, size_t count, rn_name_at *name_at)
{
    const char *nearest = NULL;
    size_t best = word.size <= 4 ? 2 : word.size / 3 + 2; /* fewer edits than this are a guess */

    if (word.size == 0 || word.size > GUESS_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name = name_at(names, i);
        const ration_text text = ration_text_of(name);

        if (text.size == 0 || text.size > GUESS_MAX)
            continue;

        const size_t distance = edits(word, text);

        if (distance < best) {
            best = distance;
            nearest = name;
        }
    }
    return nearest;
}
