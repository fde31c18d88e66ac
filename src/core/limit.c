/* SPDX-License-Identifier: MIT */
/*
 * The table of limit kinds. A new kind is one file and one row; what it must do stands in limit.h.
 */
#include "core/limit.h"

const rn_kind *rn_kind_of(ration_kind kind)
{
    static const rn_kind *const kinds[RATION_KIND_COUNT] = {
        [RATION_KIND_RATE] = &rn_kind_rate,         [RATION_KIND_CONCURRENCY] = &rn_kind_concurrency,
        [RATION_KIND_QUOTA] = &rn_kind_quota,       [RATION_KIND_SHARE] = &rn_kind_share,
        [RATION_KIND_ADAPTIVE] = &rn_kind_adaptive,
    };

    return (unsigned)kind < RATION_KIND_COUNT ? kinds[kind] : NULL;
}
