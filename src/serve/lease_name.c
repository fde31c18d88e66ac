/* SPDX-License-Identifier: MIT */
/*
 * How a lease is called outside. One name a lease: no sign, no zero in front, so that two texts never mean one lease.
 */
#include "serve/lease_name.h"

#include "base/text.h"

ration_text rn_lease_name_write(ration_lease lease, char buffer[RN_LEASE_NAME_BYTES])
{
    rn_builder b;

    rn_builder_init(&b, buffer, RN_LEASE_NAME_BYTES);
    rn_builder_int(&b, lease.index);
    rn_builder_char(&b, '-');
    rn_builder_int(&b, lease.generation);
    return (ration_text){buffer, b.used};
}

static bool number_read(ration_text text, uint32_t *out)
{
    uint64_t value = 0;

    if (text.size == 0 || text.size > 10 || (text.size > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *out = (uint32_t)value;
    return value <= UINT32_MAX;
}

int rn_lease_name_read(ration_text name, ration_lease *out)
{
    ration_lease lease = {0, 0};
    size_t dash = 0;

    if (!rn_text_find(name, (ration_text){"-", 1}, &dash) || !number_read(rn_text_slice(name, 0, dash), &lease.index) ||
        !number_read(rn_text_slice(name, dash + 1, name.size), &lease.generation) || lease.generation == 0)
        return RATION_ERR_SYNTAX;
    *out = lease;
    return RATION_OK;
}
