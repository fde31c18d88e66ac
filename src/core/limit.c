/* SPDX-License-Identifier: MIT */
/*
 * The table of limit kinds. A new kind is one file and one row; what it must do stands in limit.h.
 */
#include "core/limit.h"

#include "base/text.h"

const rn_kind *rn_kind_of(ration_kind kind)
{
    static const rn_kind *const kinds[RATION_KIND_COUNT] = {
        [RATION_KIND_RATE] = &rn_kind_rate,         [RATION_KIND_CONCURRENCY] = &rn_kind_concurrency,
        [RATION_KIND_QUOTA] = &rn_kind_quota,       [RATION_KIND_SHARE] = &rn_kind_share,
        [RATION_KIND_ADAPTIVE] = &rn_kind_adaptive,
    };

    return (unsigned)kind < RATION_KIND_COUNT ? kinds[kind] : NULL;
}

int rn_limit_fault(ration_fault *fault, const char *path, const char *text)
{
    rn_builder builder;

    rn_builder_init(&builder, fault->path, sizeof fault->path);
    rn_builder_str(&builder, path);
    rn_builder_init(&builder, fault->text, sizeof fault->text);
    rn_builder_str(&builder, text);
    return RATION_ERR_CONFIG;
}
