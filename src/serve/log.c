/* SPDX-License-Identifier: MIT */
/*
 * Lines for the operator in logfmt.
 *
 * A line is built in a fixed buffer and written at once, so that lines of several processes on one terminal do not mix.
 * What does not fit is cut; what cannot be written is lost: the log must never stop a call.
 */
#include "serve/log.h"

#include <unistd.h>

#include "base/text.h"

#define LINE_MAX_BYTES 2048

static bool plain(const char *value)
{
    for (const char *c = value; *c != '\0'; c++) {
        if (*c <= ' ' || *c == '"' || *c == '=' || *c == '\\' || *c == 0x7F)
            return false;
    }
    return value[0] != '\0';
}

static void log_value(rn_builder *b, const char *value)
{
    if (plain(value)) {
        rn_builder_str(b, value);
        return;
    }
    rn_builder_char(b, '"');
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            rn_builder_char(b, '\\');
        if ((unsigned char)*c < ' ' || *c == 0x7F) {
            rn_builder_char(b, ' ');
        } else {
            rn_builder_char(b, *c);
        }
    }
    rn_builder_char(b, '"');
}

static void log_pair(rn_builder *b, const char *key, const char *value)
{
    if (value == NULL)
        return;
    rn_builder_char(b, ' ');
    rn_builder_str(b, key);
    rn_builder_char(b, '=');
    log_value(b, value);
}

static void log_write(const rn_log *log, ration_time now, const char *const head[2], uint64_t left_out, va_list pairs)
{
    char line[LINE_MAX_BYTES];
    char count[24];
    rn_builder b, n;

    rn_builder_init(&b, line, sizeof line - 1);
    rn_builder_str(&b, "time=");
    rn_builder_instant(&b, now);
    log_pair(&b, "level", head[0]);
    log_pair(&b, "msg", head[1]);
    for (const char *key = va_arg(pairs, const char *); key != NULL; key = va_arg(pairs, const char *))
        log_pair(&b, key, va_arg(pairs, const char *));
    if (left_out > 0) {
        rn_builder_init(&n, count, sizeof count);
        rn_builder_int(&n, (int64_t)left_out);
        log_pair(&b, "left_out", count);
    }
    line[b.used] = '\n';
    const ssize_t written = write(log->descriptor, line, b.used + 1);
    (void)written;
}

void rn_log_line(const rn_log *log, ration_time now, const char *level, const char *message, ...)
{
    const char *const head[] = {level, message};
    va_list pairs;

    if (log->descriptor < 0)
        return;
    va_start(pairs, message);
    log_write(log, now, head, 0, pairs);
    va_end(pairs);
}

void rn_log_gated(const rn_log *log, rn_log_gate *gate, ration_time now, const char *level, const char *message, ...)
{
    const char *const head[] = {level, message};
    const int64_t second = now.us / 1000000;
    va_list pairs;

    if (log->descriptor < 0)
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
    log_write(log, now, head, gate->left_out, pairs);
    va_end(pairs);
    gate->left_out = 0;
}
