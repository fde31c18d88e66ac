/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_BOOK_COPY_H
#define RN_CORE_BOOK_COPY_H

#include <stdbool.h>

#include <ration/rules.h>

#include "base/arena.h"

/* Is there a list wherever a count says so? To be asked before anything is copied. */
bool rn_rules_have_lists(const ration_rules *rules);

/* Deep copies of rules into an arena. RATION_ERR_NOMEM. */
int rn_copy_provider(rn_arena *arena, const ration_provider_rule *from, ration_provider_rule *to);
int rn_copy_limit(rn_arena *arena, const ration_limit_rule *from, ration_limit_rule *to);

#endif
