/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_SCOPE_H
#define RN_CORE_SCOPE_H

#include "base/arena.h"
#include "base/text.h"
#include "core/template.h"

/* Scopes: which dimensions partition a limit, and the key that a request has in them. Chapter 1, "Words" and "Limit
 * kinds". */

typedef enum rn_dimension_kind {
    RN_DIMENSION_INSTANCE = 0,
    RN_DIMENSION_PROVIDER,
    RN_DIMENSION_ACCOUNT,
    RN_DIMENSION_TARGET,
    RN_DIMENSION_CREDENTIAL,
    RN_DIMENSION_ENDPOINT,
    RN_DIMENSION_TENANT,
    RN_DIMENSION_VAR,
    RN_DIMENSION_COUNT,
} rn_dimension_kind;

typedef struct rn_dimension {
    rn_dimension_kind kind;
    ration_text name; /* of a variable */
} rn_dimension;

/* A limit's scope and its filters, compiled. */
typedef struct rn_scope {
    rn_dimension *dimensions; /* at least one */
    size_t count;
    rn_template *endpoints;
    size_t endpoint_count;
    ration_text *methods;
    size_t method_count;
    ration_text with_var; /* absent: no filter */
    ration_auth_filter auth;
} rn_scope;

#define RN_VARS_MAX 64

/* A request with its names resolved. All borrowed. */
typedef struct rn_subject {
    ration_text dimension[RN_DIMENSION_VAR]; /* by rn_dimension_kind; absent: not resolved */
    ration_text method;
    ration_text path; /* the template; where none matches, the path itself: what globs look at */
    ration_var vars[RN_VARS_MAX];
    size_t var_count;
    size_t plain_count; /* the first of them: as they are meant; the others stand so in the path, percent-encoded */
    bool auth;
} rn_subject;

/* Compile. RATION_ERR_CONFIG with `*bad` naming the key ("scope.by[1]", "appliesTo.endpoints[0]"), RATION_ERR_NOMEM. */
int rn_scope_init(rn_scope *scope, rn_arena *arena, const ration_limit_rule *rule, rn_builder *bad);

/* Does the limit apply? If so its key is appended to `key` (which may be cut: then `key->full`). */
bool rn_scope_key(const rn_scope *scope, const rn_subject *subject, rn_builder *key);

bool rn_scope_has(const rn_scope *scope, rn_dimension_kind kind);

/* Does a key of this scope stand for requests with that value? True where the scope does not have the dimension. */
bool rn_scope_matches(const rn_scope *scope, ration_text key, rn_dimension_kind kind, ration_text value);

ration_text rn_subject_var(const rn_subject *subject, ration_text name); /* absent if not set */

#endif
