/* SPDX-License-Identifier: MIT */
/*
 * Text that grows as it is written, and the few pieces of JSON that config needs to write.
 *
 * Room doubles, so writing costs a constant per byte; a failed allocation is remembered and reported once, at the end.
 */
#include "config/out.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

void rn_out_init(rn_out *out, const ration_allocator *mem)
{
    *out = (rn_out){.mem = mem};
}

void rn_out_fini(rn_out *out)
{
    rn_mem_free(out->mem, out->data);
    *out = (rn_out){.mem = out->mem};
}

/* Room for `size` more bytes and a NUL. */
static bool out_reserve(rn_out *out, size_t size)
{
    size_t room = out->room > 0 ? out->room : 256;

    if (out->failed || size >= SIZE_MAX / 4 - out->size) {
        out->failed = true;
        return false;
    }
    while (room < out->size + size + 1)
        room *= 2;
    if (room == out->room)
        return true;

    char *data = rn_mem_resize(out->mem, out->data, room, 1);

    out->failed = data == NULL;
    if (data == NULL)
        return false;
    out->data = data;
    out->room = room;
    return true;
}

void rn_out_text(rn_out *out, ration_text text)
{
    if (text.size == 0 || !out_reserve(out, text.size))
        return;
    memcpy(out->data + out->size, text.data, text.size);
    out->size += text.size;
}

void rn_out_str(rn_out *out, const char *s)
{
    rn_out_text(out, ration_text_of(s));
}

void rn_out_int(rn_out *out, int64_t value)
{
    char buffer[32];
    rn_builder b;

    rn_builder_init(&b, buffer, sizeof buffer);
    rn_builder_int(&b, value);
    rn_out_str(out, buffer);
}

void rn_out_micro(rn_out *out, int64_t value)
{
    char buffer[32];
    rn_builder b;

    rn_builder_init(&b, buffer, sizeof buffer);
    rn_builder_micro(&b, value);
    rn_out_str(out, buffer);
}

static void out_escape(rn_out *out, char c)
{
    static const char hex[] = "0123456789abcdef";
    char escape[] = "\\u0000";

    if (c == '"' || c == '\\') {
        rn_out_text(out, (ration_text){"\\", 1});
        rn_out_text(out, (ration_text){&c, 1});
        return;
    }
    escape[4] = hex[(unsigned char)c >> 4];
    escape[5] = hex[c & 0xF];
    rn_out_str(out, escape);
}

static bool needs_escape(char c)
{
    return c == '"' || c == '\\' || (unsigned char)c < 0x20 || c == 0x7F;
}

void rn_out_json(rn_out *out, const char *s)
{
    rn_out_str(out, "\"");
    while (*s != '\0') {
        size_t plain = 0;

        while (s[plain] != '\0' && !needs_escape(s[plain]))
            plain++;
        rn_out_text(out, (ration_text){s, plain});
        s += plain;
        if (*s != '\0')
            out_escape(out, *s++);
    }
    rn_out_str(out, "\"");
}

void rn_out_comma(rn_out *out)
{
    if (out->size > 0 && out->data[out->size - 1] != '[' && out->data[out->size - 1] != '{')
        rn_out_str(out, ",");
}

int rn_out_take(rn_out *out, char **data, size_t *size)
{
    if (!out_reserve(out, 0)) {
        rn_out_fini(out);
        return RATION_ERR_NOMEM;
    }
    out->data[out->size] = '\0';
    *data = out->data;
    *size = out->size;
    *out = (rn_out){.mem = out->mem};
    return RATION_OK;
}
