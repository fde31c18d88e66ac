/* SPDX-License-Identifier: MIT */
/*
 * YAML by libyaml's events.
 *
 * Events and not its documents: depth, number of nodes and aliases are then bounded before any memory is spent on them,
 * and an alias costs one pointer. What this config language leaves out is refused by name: more than one document,
 * merge keys, keys that are no texts, tags.
 *
 * One thing more is taken than YAML has: a variable of a path template, "/{name}", also where braces would end a plain
 * text, as in `{ path: /networks/{networkId} }`. libyaml is shown two characters of private use in place of these
 * braces, and they are put back in every text.
 *
 * libyaml counts in characters; spans are bytes. The cursor walks the file's own text beside the events, so this costs
 * one pass, and the braces that are hidden from libyaml move nothing.
 */
#include "config/parse.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/text.h"

#define ANCHORS_MAX 1000

/* U+F8F0 and U+F8F1. */
static const ration_text left_brace = {"\xEF\xA3\xB0", 3};
static const ration_text right_brace = {"\xEF\xA3\xB1", 3};

typedef struct anchor {
    struct anchor *next;
    ration_text name;
    rn_node *node; /* NULL while what it names is still open */
} anchor;

typedef struct yaml_reader {
    yaml_parser_t parser;
    rn_source *source;
    ration_text shown; /* what libyaml reads */
    rn_nodes *tree;
    rn_faults *faults;
    anchor *anchors;
    size_t anchor_count;
    anchor *naming[RN_DEPTH_MAX]; /* of each open node: its anchor */
    size_t chars;                 /* the cursor, in characters and in bytes */
    size_t bytes;
    uint32_t documents;
} yaml_reader;

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* The byte at which the character `index` begins. */
static size_t reader_offset(yaml_reader *r, size_t index)
{
    const ration_text text = r->source->text;

    while (r->chars < index && r->bytes < text.size) {
        r->chars++;
        do {
            r->bytes++;
        } while (r->bytes < text.size && is_continuation(text.data[r->bytes]));
    }
    while (r->chars > index && r->bytes > 0) {
        r->chars--;
        do {
            r->bytes--;
        } while (r->bytes > 0 && is_continuation(text.data[r->bytes]));
    }
    return r->bytes;
}

static rn_mark reader_mark(const yaml_reader *r, yaml_mark_t mark)
{
    const rn_mark at = {r->source, (uint32_t)mark.line + r->source->first_line, (uint32_t)mark.column + 1};

    return at;
}

static int reader_fault(yaml_reader *r, rn_mark at, const char *text, const char *hint)
{
    rn_faults_add(r->faults, at, "", text, hint);
    return RATION_ERR_CONFIG;
}

/*
 * What libyaml found wrong. It names the place where it noticed; for something never closed, where that begins says
 * more.
 */
static int reader_broken(yaml_reader *r)
{
    const yaml_parser_t *p = &r->parser;
    char text[256];
    char hint[64] = "";

    if (p->error == YAML_MEMORY_ERROR)
        return RATION_ERR_NOMEM;
    if (p->error == YAML_READER_ERROR) {
        const bool control = p->problem != NULL && strstr(p->problem, "control") != NULL;
        rn_source shown = {.text = r->shown, .first_line = r->source->first_line};
        rn_mark at = rn_source_mark(&shown, p->problem_offset);

        /* libyaml reads ahead: what stands here was not looked at yet, and may be a secret. */
        if (rn_source_hide(r->source, r->tree->arena, (rn_span){0, r->source->text.size}) != RATION_OK)
            return RATION_ERR_NOMEM;
        at.source = r->source;
        return reader_fault(r, at, control ? "a control character is not allowed here" : "this is not UTF-8 text",
                            control ? "write it as an escape in double quotes" : "save the file as UTF-8");
    }

    const bool has_context = p->context != NULL;
    const bool at_end = p->problem != NULL && strstr(p->problem, "end of stream") != NULL;
    const yaml_mark_t mark = has_context && at_end ? p->context_mark : p->problem_mark;

    (void)snprintf(text, sizeof text, "%s%s%s", p->problem != NULL ? p->problem : "malformed YAML",
                   has_context ? " " : "", has_context ? p->context : "");
    if (has_context && p->context_mark.line != mark.line)
        (void)snprintf(hint, sizeof hint, "it begins in line %zu", p->context_mark.line + r->source->first_line);
    return reader_fault(r, reader_mark(r, mark), text, hint);
}

static int reader_anchor(yaml_reader *r, const yaml_char_t *name, rn_mark at, anchor **out)
{
    if (name == NULL)
        return RATION_OK;
    if (r->anchor_count++ == ANCHORS_MAX)
        return reader_fault(r, at, "too many anchors in one file", NULL);

    anchor *fresh = rn_arena_zalloc(r->tree->arena, 1, sizeof *fresh);
    char *copy = rn_arena_strdup(r->tree->arena, (const char *)name);

    if (fresh == NULL || copy == NULL)
        return RATION_ERR_NOMEM;
    fresh->name = ration_text_of(copy);
    fresh->next = r->anchors;
    r->anchors = fresh;
    *out = fresh;
    return RATION_OK;
}

static int reader_alias(yaml_reader *r, const yaml_event_t *event)
{
    const rn_mark at = reader_mark(r, event->start_mark);
    const anchor *a = r->anchors;

    while (a != NULL && !rn_text_is(a->name, (const char *)event->data.alias.anchor))
        a = a->next;
    if (a == NULL)
        return reader_fault(r, at, "an alias of an anchor that is not there", "an anchor stands before its aliases");
    if (a->node == NULL)
        return reader_fault(r, at, "an alias inside of what it stands for", NULL);
    if (rn_nodes_wants_key(r->tree))
        return reader_fault(r, at, "an alias cannot be a key", NULL);

    const int err = rn_nodes_put(r->tree, a->node);

    return err == RATION_OK ? RATION_OK : rn_parse_refused(r->faults, err, at);
}

static bool is_merge(const rn_nodes *tree, const yaml_event_t *event)
{
    return rn_nodes_wants_key(tree) && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           event->data.scalar.length == 2 && memcmp(event->data.scalar.value, "<<", 2) == 0;
}

static bool starts_with(ration_text text, ration_text piece)
{
    return rn_text_eq(rn_text_slice(text, 0, piece.size), piece);
}

/* Put the braces back. Both texts are the same number of characters. */
static void braces_restore(char *data, size_t *size)
{
    size_t to = 0;

    for (size_t from = 0; from < *size; to++) {
        const ration_text rest = {data + from, *size - from};

        if (starts_with(rest, left_brace)) {
            data[to] = '{';
            from += left_brace.size;
        } else if (starts_with(rest, right_brace)) {
            data[to] = '}';
            from += right_brace.size;
        } else {
            data[to] = data[from++];
        }
    }
    data[to] = '\0';
    *size = to;
}

static int node_text(yaml_reader *r, const yaml_event_t *event, rn_node *node)
{
    const ration_text text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    char *data = rn_arena_textdup(r->tree->arena, text);

    if (data == NULL)
        return RATION_ERR_NOMEM;
    node->text = (ration_text){data, text.size};
    if (r->shown.data != r->source->text.data)
        braces_restore(data, &node->text.size);
    return RATION_OK;
}

static int reader_scalar(yaml_reader *r, const yaml_event_t *event)
{
    const rn_mark at = reader_mark(r, event->start_mark);
    const char *tag = (const char *)event->data.scalar.tag;
    const bool is_text = tag != NULL && (strcmp(tag, "!") == 0 || strcmp(tag, YAML_STR_TAG) == 0);
    anchor *named = NULL;

    if (tag != NULL && !is_text)
        return reader_fault(r, at, "tags are not supported", NULL);
    if (is_merge(r->tree, event)) {
        return reader_fault(r, at, "merge keys are not supported",
                            "repeat the keys, or use an alias for a whole value");
    }
    if (memchr(event->data.scalar.value, '\0', event->data.scalar.length) != NULL)
        return reader_fault(r, at, "a text cannot hold a NUL character", NULL);

    int err = reader_anchor(r, event->data.scalar.anchor, at, &named);
    if (err != RATION_OK)
        return err;

    rn_node *node = rn_nodes_new(r->tree, RN_NODE_SCALAR, at);
    if (node == NULL || node_text(r, event, node) != RATION_OK)
        return RATION_ERR_NOMEM;
    node->quoted = is_text || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->span.begin = reader_offset(r, event->start_mark.index);
    node->span.end = reader_offset(r, event->end_mark.index);
    if (named != NULL)
        named->node = node;
    err = rn_nodes_put(r->tree, node);
    return err == RATION_OK ? RATION_OK : rn_parse_refused(r->faults, err, at);
}

static int reader_open(yaml_reader *r, rn_node_kind kind, yaml_mark_t mark, const yaml_char_t *name,
                       const yaml_char_t *tag)
{
    const char *expected = kind == RN_NODE_MAP ? YAML_MAP_TAG : YAML_SEQ_TAG;
    const rn_mark at = reader_mark(r, mark);
    anchor *named = NULL;

    if (tag != NULL && strcmp((const char *)tag, expected) != 0)
        return reader_fault(r, at, "tags are not supported", NULL);

    int err = reader_anchor(r, name, at, &named);
    if (err != RATION_OK)
        return err;

    rn_node *node = rn_nodes_new(r->tree, kind, at);
    if (node == NULL)
        return RATION_ERR_NOMEM;
    err = rn_nodes_open(r->tree, node);
    if (err != RATION_OK)
        return rn_parse_refused(r->faults, err, at);
    r->naming[r->tree->depth - 1] = named;
    return RATION_OK;
}

static int reader_close(yaml_reader *r)
{
    rn_node *node = rn_nodes_close(r->tree);

    if (node == NULL)
        return RATION_ERR_NOMEM;
    if (r->naming[r->tree->depth] != NULL)
        r->naming[r->tree->depth]->node = node;
    return RATION_OK;
}

static int reader_document(yaml_reader *r, const yaml_event_t *event)
{
    if (r->documents++ == 0)
        return RATION_OK;
    return reader_fault(r, reader_mark(r, event->start_mark), "a second document begins here",
                        "one file holds one config; `include:` takes a folder of files");
}

static int reader_event(yaml_reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return reader_document(r, event);
    case YAML_ALIAS_EVENT:
        return reader_alias(r, event);
    case YAML_SCALAR_EVENT:
        return reader_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return reader_open(r, RN_NODE_LIST, event->start_mark, event->data.sequence_start.anchor,
                           event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return reader_open(r, RN_NODE_MAP, event->start_mark, event->data.mapping_start.anchor,
                           event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return reader_close(r);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return RATION_OK;
    }
    return RATION_OK;
}

static int reader_run(yaml_reader *r)
{
    bool more = true;
    int err = RATION_OK;

    while (more && err == RATION_OK) {
        yaml_event_t event;

        if (yaml_parser_parse(&r->parser, &event) == 0)
            return reader_broken(r);
        err = reader_event(r, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    return err;
}

/* The size of a variable "/{name}" at `at`, with the slash; 0: none begins here. */
static size_t variable_size(ration_text text, size_t at)
{
    size_t end = at + 2;

    if (text.size - at < 4 || text.data[at] != '/' || text.data[at + 1] != '{')
        return 0;
    while (end < text.size && strchr(" \t\r\n/{}[],:#&*!|>'\"%@`$", text.data[end]) == NULL)
        end++;
    return end < text.size && end > at + 2 && text.data[end] == '}' ? end + 1 - at : 0;
}

static size_t text_put(char *to, ration_text text)
{
    memcpy(to, text.data, text.size);
    return text.size;
}

/* The text with the braces of variables replaced; the text itself if there are none. */
static int braces_hide(rn_arena *arena, ration_text text, ration_text *shown)
{
    size_t count = 0;
    size_t ignored = 0;
    size_t used = 0;

    *shown = text;
    for (size_t i = 0; i < text.size; i++)
        count += variable_size(text, i) > 0;
    if (count == 0 || rn_text_find(text, left_brace, &ignored) || rn_text_find(text, right_brace, &ignored))
        return RATION_OK;

    char *data = rn_arena_zalloc(arena, text.size + count * (left_brace.size + right_brace.size) + 1, 1);

    if (data == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < text.size;) {
        const size_t size = variable_size(text, i);

        data[used++] = text.data[i++];
        if (size == 0)
            continue;
        used += text_put(data + used, left_brace);
        used += text_put(data + used, rn_text_slice(text, i + 1, i + size - 2));
        used += text_put(data + used, right_brace);
        i += size - 1;
    }
    *shown = (ration_text){data, used};
    return RATION_OK;
}

int rn_parse_yaml(rn_source *source, rn_nodes *tree, rn_faults *faults)
{
    yaml_reader r = {.source = source, .tree = tree, .faults = faults};

    if (braces_hide(tree->arena, source->text, &r.shown) != RATION_OK || yaml_parser_initialize(&r.parser) == 0)
        return RATION_ERR_NOMEM;
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.shown.data, r.shown.size);

    const int err = reader_run(&r);

    yaml_parser_delete(&r.parser);
    return err;
}
