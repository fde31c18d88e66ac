/* SPDX-License-Identifier: MIT */
/* A heart-beat: of no provider, at two keys of the fleet. */
#include "fleet/call_parts.h"

#include <stdio.h>

#include "base/text.h"

int rn_call_beat(rn_call *call, const rn_call_beating *beat)
{
    static const char *const keys[] = {"members", "salt"};
    rn_pack *const out = &call->argument;
    char layout[32];

    rn_pack_clear(out);
    rn_pack_clear(&call->brief);
    rn_pack_clear(&call->bytes);
    (void)snprintf(layout, sizeof layout, "ration:%d:{", RN_FLEET_LAYOUT);
    for (call->key_count = 0; call->key_count < sizeof keys / sizeof keys[0]; call->key_count++) {
        rn_pack_raw(&call->bytes, ration_text_of(layout));
        rn_pack_raw(&call->bytes, ration_text_of(call->fleet));
        rn_pack_raw(&call->bytes, ration_text_of("}:"));
        rn_pack_raw(&call->bytes, ration_text_of(keys[call->key_count]));
        call->ends[call->key_count] = call->bytes.size;
    }
    rn_pack_map(out, 5);
    rn_pack_key_text(out, "member", beat->member);
    rn_pack_key_text(out, "instance", beat->instance);
    rn_pack_key_text(out, "config", beat->config);
    rn_pack_key_bool(out, "leave", beat->leaves);
    rn_pack_key(out, "salt");
    if (beat->salt.size == 0) {
        rn_pack_bool(out, false);
    } else {
        rn_pack_text(out, beat->salt);
    }
    return rn_call_written(call);
}
