/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_STORE_BACKOFF_H
#define RN_FLEET_STORE_BACKOFF_H

#include <stdint.h>

#define RN_BACKOFF_FIRST_MS 50

/* How long to wait after so many vain tries, at least one: 50 ms, doubled by each, at most `last_ms`; of that between
 * half and all, by `random`, so that those whom one failure has cut off do not come back at once. */
uint64_t rn_backoff_ms(unsigned tries, uint64_t last_ms, uint32_t random);

#endif
