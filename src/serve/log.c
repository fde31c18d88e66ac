/* SPDX-License-Identifier: MIT */
/*
 * Lines for the operator in logfmt or JSON.
 *
 * A line is built in a fixed buffer and written at once, so that lines of several processes on one terminal do not mix.
 * What cannot be written is lost: the log must never stop a call.
 *
 * Invariant: whatever bytes the values have, a line is one line of valid UTF-8 without control characters, in JSON one
 * valid object. A value that does not fit is cut between two characters, a pair whose key does not fit is left out, and
 * the line says so (`cut`): `KEPT` bytes are kept for its end.
 */
#include "serve/log.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define LINE_MAX_BYTES 2048
#define KEPT 64

typedef struct log_text {
    char bytes[LINE_MAX_BYTES];
    size_t used;
    size_t room; /* nothing is put beyond it */
    bool json;
    bool cut;
} log_text;

/* All of it, or nothing. */
static bool put(log_text *line, const char *bytes, size_t size)
{
    if (size > line->room - line->used)
        return false;
    memcpy(line->bytes + line->used, bytes, size);
    line->used += size;
    return true;
}

/* A character that a terminal or a parser might obey: of ASCII, and the controls of Latin-1 in UTF-8. */
static bool is_obeyed(const unsigned char *c, size_t size)
{
    return (size == 1 && (*c < ' ' || *c == 0x7F)) || (size == 2 && c[0] == 0xC2 && c[1] < 0xA0);
}

/* The character at the front, as it stands within quotes; false: it does not fit. */
static bool character_put(log_text *line, const char *value, size_t *size)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *c = (const unsigned char *)value;

    *size = rn_text_character((ration_text){value, strnlen(value, 4)});
    if (*size == 0) {
        *size = 1;
        return put(line, "\xEF\xBF\xBD", 3);
    }
    if (is_obeyed(c, *size)) {
        const unsigned char code = c[*size - 1];
        const char escape[] = {'\\', 'u', '0', '0', hex[code >> 4], hex[code & 15]};

        return line->json ? put(line, escape, sizeof escape) : put(line, " ", 1);
    }
    if (*c == '"' || *c == '\\') {
        const char escape[] = {'\\', *value};

        return put(line, escape, sizeof escape);
    }
    return put(line, value, *size);
}

/* Can it stand without quotes in logfmt? */
static bool is_plain(const char *value)
{
    for (const char *c = value; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || *c == '"' || *c == '=' || *c == '\\')
            return false;
    }
    return value[0] != '\0';
}

/* With its quotes, the last of which always has room. */
static bool quoted_put(log_text *line, const char *value)
{
    size_t size = 0;

    if (line->room - line->used < 2)
        return false;
    line->bytes[line->used++] = '"';
    line->room--;
    for (const char *c = value; *c != '\0'; c += size) {
        if (!character_put(line, c, &size)) {
            line->cut = true;
            break;
        }
    }
    line->room++;
    line->bytes[line->used++] = '"';
    return true;
}

/* `word`: the value is one of ours that JSON has without quotes. */
static void pair_put(log_text *line, const char *key, const char *value, bool word)
{
    const size_t before = line->used;

    if (value == NULL)
        return;
    bool fits = before == 0 ? !line->json || put(line, "{", 1) : put(line, line->json ? "," : " ", 1);
    if (fits && line->json) {
        fits = put(line, "\"", 1) && put(line, key, strlen(key)) && put(line, "\":", 2);
    } else if (fits) {
        fits = put(line, key, strlen(key)) && put(line, "=", 1);
    }
    if (fits) {
        fits = word || (!line->json && is_plain(value) && strlen(value) <= line->room - line->used)
                   ? put(line, value, strlen(value))
                   : quoted_put(line, value);
    }
    if (fits)
        return;
    line->used = before;
    line->cut = true;
}

static void line_write(const rn_log *log, ration_time now, const char *const head[2], uint64_t left_out, va_list pairs)
{
    log_text line = {.room = LINE_MAX_BYTES - KEPT, .json = log->format == RN_LOG_JSON};
    char text[48];
    rn_builder b;

    rn_builder_init(&b, text, sizeof text);
    rn_builder_instant(&b, now);
    pair_put(&line, "time", text, false);
    pair_put(&line, "level", head[0], false);
    pair_put(&line, "msg", head[1], false);
    for (const char *key = va_arg(pairs, const char *); key != NULL; key = va_arg(pairs, const char *))
        pair_put(&line, key, va_arg(pairs, const char *), false);
    line.room = LINE_MAX_BYTES;
    if (left_out > 0) {
        rn_builder_init(&b, text, sizeof text);
        rn_builder_int(&b, left_out > INT64_MAX ? INT64_MAX : (int64_t)left_out);
        pair_put(&line, "left_out", text, true);
    }
    if (line.cut)
        pair_put(&line, "cut", "true", true);
    (void)put(&line, line.json ? "}\n" : "\n", line.json ? 2 : 1);
    const ssize_t written = write(log->descriptor, line.bytes, line.used);
    (void)written;
}

static bool is_written(const rn_log *log, const char *level)
{
    const rn_log_level rank = strcmp(level, "info") == 0   ? RN_LOG_INFO
                              : strcmp(level, "warn") == 0 ? RN_LOG_WARN
                                                           : RN_LOG_ERROR;

    return log->descriptor >= 0 && rank >= log->level;
}

void rn_log_line(const rn_log *log, ration_time now, const char *level, const char *message, ...)
{
    const char *const head[] = {level, message};
    va_list pairs;

    if (!is_written(log, level))
        return;
    va_start(pairs, message);
    line_write(log, now, head, 0, pairs);
    va_end(pairs);
}

void rn_log_gated(const rn_log *log, rn_log_gate *gate, ration_time now, const char *level, const char *message, ...)
{
    const char *const head[] = {level, message};
    const int64_t second = now.us / 1000000;
    va_list pairs;

    if (!is_written(log, level))
        return;
    if (gate->second != second) {
        gate->second = second;
        gate->passed = 0;
    } else if (gate->passed < gate->more) {
        gate->passed++;
    } else {
        gate->left_out++;
        return;
    }
    va_start(pairs, message);
    line_write(log, now, head, gate->left_out, pairs);
    va_end(pairs);
    gate->left_out = 0;
}
