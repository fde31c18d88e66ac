/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_DIRECTIVES_H
#define RN_SERVE_DIRECTIVES_H

#include <ration/engine.h>

/*
 * The request fields by which a client talks to ration: `Ration-Tenant`, `-Class`, `-Priority`, `-Cost`, `-Hold`,
 * `-Timeout`, `-Retry`, `-Job` and `Ration-Token`. Chapter 7. None of them is ever forwarded.
 */

typedef struct rn_directives {
    ration_text tenant;
    ration_text class_name;
    ration_text job;
    ration_text token;
    ration_priority priority;
    bool retry;
    int64_t cost;    /* RATION_UNSET: not given */
    int64_t hold_us; /* RATION_UNSET: not given */
    int64_t wait_us; /* RATION_UNSET: not given */
} rn_directives;

/* Which field is at fault (borrowed from the headers), and what it should have been. */
typedef struct rn_directive_fault {
    ration_text field;
    const char *want;
} rn_directive_fault;

/* Whether ration reads the field itself: any name that begins with "Ration-", known or not. */
bool rn_directive_is(ration_text name);

/*
 * Read all directives among `headers`. Texts are borrowed from them.
 *
 * Errors  RATION_ERR_SYNTAX with `*fault` filled: a value outside its form, an empty one, a field given twice, or a
 * field
 *         "Ration-..." that is none of these (a typing error must not go unseen). `*out` is then untouched.
 */
int rn_directives_read(const ration_header *headers, size_t count, rn_directives *out, rn_directive_fault *fault);

#endif
