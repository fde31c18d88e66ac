/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a rule, and where. Both texts are cut where the caller's buffers end.
 */
#include "base/fault.h"

#include "base/text.h"

int rn_rule_fault(ration_fault *fault, const char *path, const char *text)
{
    rn_builder builder;

    if (fault == NULL)
        return RATION_ERR_CONFIG;
    rn_builder_init(&builder, fault->path, sizeof fault->path);
    rn_builder_str(&builder, path);
    rn_builder_init(&builder, fault->text, sizeof fault->text);
    rn_builder_str(&builder, text);
    return RATION_ERR_CONFIG;
}
