/* SPDX-License-Identifier: MIT */
#ifndef RN_JOBS_SCOPE_NAME_H
#define RN_JOBS_SCOPE_NAME_H

/* One scope or rate limit of the plan: a limit at a key. Texts live as long as the jobs. */
typedef struct rn_scope_name {
    const char *provider;
    const char *limit;
    const char *account; /* whose jobs made it be looked at */
    const char *key;     /* a variable that only children know stands as {name} */
} rn_scope_name;

#endif
