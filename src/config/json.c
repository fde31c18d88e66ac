/* SPDX-License-Identifier: MIT */
/*
 * Strict JSON (RFC 8259) into the same tree as YAML.
 *
 * It says only "this is JSON" or "it is not": what is not is given to the YAML parser, whose faults the user then sees.
 * So a flow mapping of YAML is welcome, and JSON keeps all of its own rules. Numbers stay texts, so no digit is lost.
 *
 * Invariants: `at` never passes the end; `line` and `line_start` are those of `at`; a map that is open always has its
 * key before its value, so a misplaced comma or colon is found where it stands.
 */
#include "config/parse.h"

#include <string.h>

#include "base/text.h"

typedef struct json_reader {
    rn_source *source;
    rn_nodes *tree;
    rn_faults *faults;
    ration_text text; /* valid UTF-8 */
    size_t at;
    uint32_t line;
    size_t column_at; /* the byte up to which `column` is counted */
    uint32_t column;
} json_reader;

static int json_peek(const json_reader *r)
{
    return r->at < r->text.size ? (unsigned char)r->text.data[r->at] : -1;
}

static void json_space(json_reader *r)
{
    for (;; r->at++) {
        const int c = json_peek(r);

        if (c == '\n') {
            r->line++;
            r->column = 1;
            r->column_at = r->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

static rn_mark json_mark(json_reader *r)
{
    for (; r->column_at < r->at; r->column_at++) {
        if (((unsigned char)r->text.data[r->column_at] & 0xC0) != 0x80)
            r->column++;
    }

    const rn_mark mark = {r->source, r->line, r->column};

    return mark;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hex digits at `at`, or -1. */
static int32_t json_hex(const json_reader *r, size_t at)
{
    int32_t value = 0;

    if (r->text.size - at < 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        const int digit = hex_digit(r->text.data[i]);

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static size_t utf8_put(char *out, int32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | (c >> 6));
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | (c >> 12));
        out[1] = (char)(0x80 | ((c >> 6) & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (c >> 18));
    out[1] = (char)(0x80 | ((c >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((c >> 6) & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

/* Behind "\u": one character, of two escapes if it needs a pair. A lone half, and NUL, are no JSON that we take. */
static bool json_unicode(json_reader *r, char *out, size_t *used)
{
    int32_t c = json_hex(r, r->at);

    if (c <= 0 || (c >= 0xDC00 && c <= 0xDFFF))
        return false;
    r->at += 4;
    if (c >= 0xD800 && c <= 0xDBFF) {
        if (r->text.size - r->at < 6 || memcmp(r->text.data + r->at, "\\u", 2) != 0)
            return false;

        const int32_t low = json_hex(r, r->at + 2);

        if (low < 0xDC00 || low > 0xDFFF)
            return false;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        r->at += 6;
    }
    *used += utf8_put(out + *used, c);
    return true;
}

static bool json_escape(json_reader *r, char *out, size_t *used)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const int c = json_peek(r);
    const char *found = c > 0 ? strchr(from, c) : NULL;

    r->at++;
    if (c == 'u')
        return json_unicode(r, out, used);
    if (found == NULL)
        return false;
    out[(*used)++] = to[found - from];
    return true;
}

/* The byte behind the closing quote of the string that begins at `at`; 0: it has none. */
static size_t json_string_end(const json_reader *r)
{
    for (size_t i = r->at + 1; i < r->text.size; i++) {
        if (r->text.data[i] == '\\') {
            i++;
        } else if (r->text.data[i] == '"') {
            return i + 1;
        }
    }
    return 0;
}

static int json_string(json_reader *r, ration_text *out)
{
    const size_t end = json_string_end(r);
    size_t used = 0;

    if (end == 0)
        return RATION_ERR_SYNTAX;

    /* No escape is shorter than what it stands for. */
    char *data = rn_arena_zalloc(r->tree->arena, end - r->at, 1);

    if (data == NULL)
        return RATION_ERR_NOMEM;
    r->at++;
    while (r->at < end - 1) {
        const char c = r->text.data[r->at++];

        if ((unsigned char)c < 0x20)
            return RATION_ERR_SYNTAX;
        if (c != '\\') {
            data[used++] = c;
        } else if (!json_escape(r, data, &used)) {
            return RATION_ERR_SYNTAX;
        }
    }
    r->at = end;
    *out = (ration_text){data, used};
    return RATION_OK;
}

/* A number or one of the three words: whatever stands up to the next delimiter, if it is one. */
static int json_bare(json_reader *r, rn_node *node)
{
    const size_t begin = r->at;

    while (r->at < r->text.size && strchr(" \t\r\n,:]}[{\"", r->text.data[r->at]) == NULL)
        r->at++;
    node->text = rn_text_slice(r->text, begin, r->at);
    if (node->text.size > 1 && node->text.data[0] == '0' && node->text.data[1] >= '0' && node->text.data[1] <= '9')
        return RATION_ERR_SYNTAX;
    if (!rn_node_is_number(node) && !rn_text_is(node->text, "true") && !rn_text_is(node->text, "false") &&
        !rn_text_is(node->text, "null"))
        return RATION_ERR_SYNTAX;
    node->text.data = rn_arena_textdup(r->tree->arena, node->text);
    return node->text.data != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

static int json_scalar(json_reader *r)
{
    rn_node *node = rn_nodes_new(r->tree, RN_NODE_SCALAR, json_mark(r));

    if (node == NULL)
        return RATION_ERR_NOMEM;
    node->quoted = json_peek(r) == '"';
    node->span.begin = r->at;
    if (!node->quoted && rn_nodes_wants_key(r->tree))
        return RATION_ERR_SYNTAX;

    int err = node->quoted ? json_string(r, &node->text) : json_bare(r, node);

    if (err != RATION_OK)
        return err;
    node->span.end = r->at;
    err = rn_nodes_put(r->tree, node);
    return err == RATION_OK ? RATION_OK : rn_parse_refused(r->faults, err, node->at);
}

static int json_open(json_reader *r, rn_node_kind kind)
{
    rn_node *node = rn_nodes_new(r->tree, kind, json_mark(r));

    if (node == NULL)
        return RATION_ERR_NOMEM;

    const int err = rn_nodes_open(r->tree, node);

    r->at++;
    return err == RATION_OK || err == RATION_ERR_SYNTAX ? err : rn_parse_refused(r->faults, err, node->at);
}

/* A list, a map or a scalar begins; `*began` if it is a list or a map, which then is open. */
static int json_value(json_reader *r, bool *began)
{
    const int c = json_peek(r);

    *began = c == '{' || c == '[';
    if (*began)
        return json_open(r, c == '{' ? RN_NODE_MAP : RN_NODE_LIST);
    return c < 0 ? RATION_ERR_SYNTAX : json_scalar(r);
}

/* "name" and its colon, in a map. */
static int json_key(json_reader *r)
{
    int err = json_peek(r) == '"' ? json_scalar(r) : RATION_ERR_SYNTAX;

    if (err != RATION_OK)
        return err;
    json_space(r);
    if (json_peek(r) != ':')
        return RATION_ERR_SYNTAX;
    r->at++;
    json_space(r);
    return RATION_OK;
}

/* After a value: close what ends here, then stand before the next member (`*more`) or behind the root. */
static int json_after(json_reader *r, bool fresh, bool *more)
{
    *more = false;
    while (r->tree->depth > 0) {
        const char end = r->tree->open[r->tree->depth - 1]->kind == RN_NODE_MAP ? '}' : ']';

        json_space(r);
        if (json_peek(r) != end) {
            *more = true;
            if (fresh)
                return RATION_OK;
            if (json_peek(r) != ',')
                return RATION_ERR_SYNTAX;
            r->at++;
            json_space(r);
            return RATION_OK;
        }
        r->at++;
        fresh = false;
        if (rn_nodes_close(r->tree) == NULL)
            return RATION_ERR_NOMEM;
    }
    return RATION_OK;
}

int rn_parse_json(rn_source *source, rn_nodes *tree, rn_faults *faults)
{
    json_reader r = {.source = source,
                     .tree = tree,
                     .faults = faults,
                     .text = source->text,
                     .line = source->first_line,
                     .column = 1};
    bool more = true;
    int err = RATION_OK;

    json_space(&r);
    if (json_peek(&r) != '{' && json_peek(&r) != '[')
        return RATION_ERR_SYNTAX;
    while (more && err == RATION_OK) {
        bool began = false;

        if (rn_nodes_wants_key(tree))
            err = json_key(&r);
        if (err == RATION_OK)
            err = json_value(&r, &began);
        if (err == RATION_OK)
            err = json_after(&r, began, &more);
    }
    json_space(&r);
    if (err == RATION_OK && r.at < r.text.size)
        return RATION_ERR_SYNTAX;
    return err;
}
