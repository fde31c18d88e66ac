/* SPDX-License-Identifier: MIT */
/*
 * MessagePack, as much of it as the scripts read.
 *
 * Numbers and texts go out in as few bytes as they may, since Redis hashes every byte of an argument: in the very bytes
 * that the scripts' own `cmsgpack.pack` would make. Lua makes doubles of integers, so nothing beyond 2^53 is sent;
 * `rn_pack_int` asserts it.
 */
#include "fleet/pack.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define FIRST_SIZE 512

void rn_pack_init(rn_pack *pack, const ration_allocator *mem)
{
    *pack = (rn_pack){.mem = mem};
}

void rn_pack_fini(rn_pack *pack)
{
    rn_mem_free(pack->mem, pack->data);
    pack->data = NULL;
}

void rn_pack_clear(rn_pack *pack)
{
    pack->size = 0;
    pack->err = RATION_OK;
}

static void put(rn_pack *pack, const void *data, size_t size)
{
    if (pack->err != RATION_OK)
        return;
    if (pack->capacity - pack->size < size) {
        size_t capacity = pack->capacity == 0 ? FIRST_SIZE : 2 * pack->capacity;

        while (capacity - pack->size < size)
            capacity *= 2;

        char *const grown = rn_mem_resize(pack->mem, pack->data, capacity, 1);

        if (grown == NULL) {
            pack->err = RATION_ERR_NOMEM;
            return;
        }
        pack->data = grown;
        pack->capacity = capacity;
    }
    if (size > 0)
        memcpy(pack->data + pack->size, data, size);
    pack->size += size;
}

/* A byte of type and a number of so many bytes, the highest first. */
static void put_number(rn_pack *pack, uint8_t type, uint64_t number, size_t bytes)
{
    uint8_t out[9] = {type};

    for (size_t i = 0; i < bytes; i++)
        out[1 + i] = (uint8_t)(number >> (8 * (bytes - 1 - i)));
    put(pack, out, 1 + bytes);
}

/* How many there are of something, below `small` in the byte of its type. */
static void put_count(rn_pack *pack, uint8_t small_type, size_t small, uint8_t type, size_t count)
{
    if (count < small) {
        put_number(pack, (uint8_t)(small_type | count), 0, 0);
    } else {
        put_number(pack, type, count, 4);
    }
}

/* `type`: of one byte; those of two and of four follow it. */
static void put_unsigned(rn_pack *pack, uint8_t type, uint64_t number)
{
    if (number <= UINT8_MAX) {
        put_number(pack, type, number, 1);
    } else if (number <= UINT16_MAX) {
        put_number(pack, (uint8_t)(type + 1), number, 2);
    } else {
        put_number(pack, (uint8_t)(type + 2), number, 4);
    }
}

void rn_pack_array(rn_pack *pack, size_t count)
{
    put_count(pack, 0x90, 16, 0xdd, count);
}

void rn_pack_map(rn_pack *pack, size_t count)
{
    put_count(pack, 0x80, 16, 0xdf, count);
}

void rn_pack_int(rn_pack *pack, int64_t value)
{
    assert(value >= -RATION_TIME_MAX_US && value <= RATION_TIME_MAX_US);
    if (value < 0 || value > UINT32_MAX) {
        put_number(pack, value < 0 ? 0xd3 : 0xcf, (uint64_t)value, 8);
    } else if (value < 128) {
        put_number(pack, (uint8_t)value, 0, 0);
    } else {
        put_unsigned(pack, 0xcc, (uint64_t)value);
    }
}

void rn_pack_bool(rn_pack *pack, bool value)
{
    put_number(pack, value ? 0xc3 : 0xc2, 0, 0);
}

void rn_pack_text(rn_pack *pack, ration_text text)
{
    if (text.size < 32) {
        put_number(pack, (uint8_t)(0xa0 | text.size), 0, 0);
    } else {
        put_unsigned(pack, 0xd9, text.size);
    }
    put(pack, text.data, text.size);
}

void rn_pack_raw(rn_pack *pack, ration_text bytes)
{
    put(pack, bytes.data, bytes.size);
}

void rn_pack_key(rn_pack *pack, const char *key)
{
    const size_t size = strlen(key);

    assert(size < 32);
    put_number(pack, (uint8_t)(0xa0 | size), 0, 0);
    put(pack, key, size);
}

void rn_pack_key_int(rn_pack *pack, const char *key, int64_t value)
{
    rn_pack_key(pack, key);
    rn_pack_int(pack, value);
}

void rn_pack_key_bool(rn_pack *pack, const char *key, bool value)
{
    rn_pack_key(pack, key);
    rn_pack_bool(pack, value);
}

void rn_pack_key_text(rn_pack *pack, const char *key, ration_text text)
{
    rn_pack_key(pack, key);
    rn_pack_text(pack, text);
}

void rn_pack_given(rn_pack *pack, int64_t value, int64_t none)
{
    if (value == none) {
        rn_pack_bool(pack, false);
    } else {
        rn_pack_int(pack, value);
    }
}
