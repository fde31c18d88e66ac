/* SPDX-License-Identifier: MIT */
/*
 * Slots of Redis Cluster: CRC-16 (XMODEM: polynomial 0x1021, from 0, not reflected) of the key, modulo 16384.
 *
 * Keys with the same text in braces lie in one slot; that is how all keys of a provider do. A call computes one slot,
 * so bits are as good as a table.
 */
#include "fleet/store_slot.h"

#include <string.h>

static uint16_t crc16(ration_text text)
{
    uint32_t crc = 0;

    for (size_t i = 0; i < text.size; i++) {
        crc ^= (uint32_t)(unsigned char)text.data[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
        crc &= 0xffffU;
    }
    return (uint16_t)crc;
}

uint16_t rn_store_slot(ration_text key)
{
    const char *const open = key.size > 0 ? memchr(key.data, '{', key.size) : NULL;

    if (open != NULL) {
        const size_t left = key.size - (size_t)(open - key.data) - 1;
        const char *const shut = left > 0 ? memchr(open + 1, '}', left) : NULL;

        if (shut != NULL && shut > open + 1)
            key = (ration_text){open + 1, (size_t)(shut - open) - 1};
    }
    return crc16(key) % RN_STORE_SLOTS;
}
