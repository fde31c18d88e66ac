/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_SCRIPTS_H
#define RN_FLEET_SCRIPTS_H

#include <stddef.h>

/* The scripts of src/fleet/scripts as the build has put them together (scripts/embed-lua). */

typedef enum rn_script_name {
    RN_SCRIPT_ADMIT = 0,
    RN_SCRIPT_OBSERVE,
    RN_SCRIPT_RELEASE,
    RN_SCRIPT_RENEW,
    RN_SCRIPT_CANCEL,
    RN_SCRIPT_COLLECT,
    RN_SCRIPT_HEALTH,
    RN_SCRIPT_ADVANCE,
    RN_SCRIPT_BEAT,
    RN_SCRIPT_TENANTS,
    RN_SCRIPT_OPERATE,
    RN_SCRIPT_INSPECT,
    RN_SCRIPT_PREFETCH,
    RN_SCRIPT_SETTLE,
    RN_SCRIPT_COUNT,
} rn_script_name;

typedef struct rn_script {
    const char *name;
    const char *digest; /* SHA-1 in hex, by which Redis knows it */
    const char *text;
    size_t size;
} rn_script;

extern const rn_script rn_scripts[RN_SCRIPT_COUNT];

#endif
