/* SPDX-License-Identifier: MIT */
/*
 * Names in keys. What separates the parts of a key never stands in a name as it is, so no two names lead to one key.
 */
#include "fleet/call.h"

#include <string.h>

void rn_call_name(rn_pack *out, ration_text name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < name.size; i++) {
        const unsigned char c = (unsigned char)name.data[i];
        const char coded[] = {'%', digits[c >> 4], digits[c & 15]};

        if (c != '\0' && strchr(plain, c) != NULL) {
            rn_pack_raw(out, (ration_text){&name.data[i], 1});
        } else {
            rn_pack_raw(out, (ration_text){coded, sizeof coded});
        }
    }
}
