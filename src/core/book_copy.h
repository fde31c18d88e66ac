/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_BOOK_COPY_H
#define RN_CORE_BOOK_COPY_H

#include <ration/rules.h>

#include "base/arena.h"

/* Deep copies of rules into an arena. RATION_ERR_NOMEM. */
int rn_copy_provider(rn_arena *arena, const ration_provider_rule *from, ration_provider_rule *to);
int rn_copy_limit(rn_arena *arena, const ration_limit_rule *from, ration_limit_rule *to);

#endif
