/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_BREAKER_RING_H
#define RN_CORE_BREAKER_RING_H

#include "core/breaker.h"

/* The results that the strategies `count` and `sampling` look at. Kept in the breaker; `calls` and `failed` count what
 * is in. With `consecutive` all of these do nothing. */

#define RN_BREAKER_ENTRIES_MAX 65536

int rn_breaker_ring_init(rn_breaker *breaker);
void rn_breaker_ring_fini(rn_breaker *breaker);
void rn_breaker_ring_clear(rn_breaker *breaker);
/* sampling: let go of what is too old. */
void rn_breaker_ring_expire(rn_breaker *breaker, ration_time now);
/* Cannot fail: without memory it becomes coarser. */
void rn_breaker_ring_add(rn_breaker *breaker, ration_time now, bool ok);

#endif
