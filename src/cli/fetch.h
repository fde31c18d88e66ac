/* SPDX-License-Identifier: MIT */
#ifndef RN_CLI_FETCH_H
#define RN_CLI_FETCH_H

#include <stddef.h>

/*
 * One GET of a running gateway's control port, whole and at once: for commands that look at it. A page of more than
 * 64 MiB is an error.
 */

typedef struct rn_fetch_options {
    const char *control; /* "127.0.0.1:7601", "http://HOST:PORT" or "unix:PATH" */
    const char *token;   /* a secret; NULL: none */
    long timeout_ms;
} rn_fetch_options;

/*
 * `*body` is the caller's, freed with `free`, NUL-terminated. Not 200 is an error.
 *
 * Errors  RATION_ERR_IO with `error` (of `error_size` bytes) in one line; RATION_ERR_NOMEM.
 */
int rn_fetch(const rn_fetch_options *options, const char *page, char **body, size_t *size, char *error,
             size_t error_size);

#endif
