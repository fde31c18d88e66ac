/* SPDX-License-Identifier: MIT */

/* Provider fields, of which the engine needs Retry-After in seconds first; the other forms come with header sync. */

#include "core/fields.h"

#include "base/text.h"
#include "base/units.h"

rn_field rn_field_retry_after(const ration_response *response, ration_time now, ration_time *out)
{
    rn_field found = RN_FIELD_ABSENT;

    for (size_t i = 0; i < response->header_count; i++) {
        int64_t us;

        if (!rn_text_is_nocase(response->headers[i].name, "retry-after"))
            continue;
        if (rn_parse_micro(response->headers[i].value, &us) != RATION_OK)
            return RN_FIELD_BAD;
        *out = found == RN_FIELD_OK ? rn_time_max(*out, rn_time_add(now, us)) : rn_time_add(now, us);
        found = RN_FIELD_OK;
    }
    return found;
}
