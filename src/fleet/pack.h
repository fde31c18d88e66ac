/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_PACK_H
#define RN_FLEET_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ration/engine.h>

/*
 * MessagePack going out: how a call's parameters travel, for the scripts read it with one call of `cmsgpack.unpack`.
 * Whoever opens an array or a map writes as many members as it said.
 */

typedef struct rn_pack {
    const ration_allocator *mem;
    char *data;
    size_t size;
    size_t capacity;
    int err; /* the first: RATION_ERR_NOMEM. Nothing is written after it. */
} rn_pack;

void rn_pack_init(rn_pack *pack, const ration_allocator *mem);
void rn_pack_fini(rn_pack *pack);
void rn_pack_clear(rn_pack *pack); /* keeps the memory */

void rn_pack_array(rn_pack *pack, size_t count);
void rn_pack_map(rn_pack *pack, size_t count);
void rn_pack_int(rn_pack *pack, int64_t value);
void rn_pack_bool(rn_pack *pack, bool value);
void rn_pack_text(rn_pack *pack, ration_text text);
/* false where it is `none`. */
void rn_pack_given(rn_pack *pack, int64_t value, int64_t none);
void rn_pack_raw(rn_pack *pack, ration_text bytes); /* as they are */

/* Members of a map. */
void rn_pack_key_int(rn_pack *pack, const char *key, int64_t value);
void rn_pack_key_bool(rn_pack *pack, const char *key, bool value);
void rn_pack_key_text(rn_pack *pack, const char *key, ration_text text);
void rn_pack_key(rn_pack *pack, const char *key);

#endif
