/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_LEASE_NAME_H
#define RN_SERVE_LEASE_NAME_H

#include <ration/engine.h>

/* How a lease is called outside: "INDEX-GENERATION", both decimal, as in reports and problem documents. */

#define RN_LEASE_NAME_BYTES 24

/* Borrowed from `buffer`. */
ration_text rn_lease_name_write(ration_lease lease, char buffer[RN_LEASE_NAME_BYTES]);

/* The lease that is called so. RATION_ERR_SYNTAX for anything that `write` does not write; `*out` is then untouched. */
int rn_lease_name_read(ration_text name, ration_lease *out);

#endif
