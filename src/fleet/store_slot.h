/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_STORE_SLOT_H
#define RN_FLEET_STORE_SLOT_H

#include <stdint.h>

#include <ration/types.h>

#define RN_STORE_SLOTS 16384

/* The slot of a key: of what stands in its first braces, if that is anything, else of all of it. */
uint16_t rn_store_slot(ration_text key);

#endif
