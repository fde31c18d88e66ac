/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_FAULT_H
#define RN_BASE_FAULT_H

#include <ration/engine.h>

/* Fill `*fault` (NULL: nobody asks) with a key of a rule and what is wrong with it. Returns RATION_ERR_CONFIG, for
 * whoever checks the rule to return. */
int rn_rule_fault(ration_fault *fault, const char *path, const char *text);

#endif
