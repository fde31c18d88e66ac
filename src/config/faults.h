/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_FAULTS_H
#define RN_CONFIG_FAULTS_H

#include <ration/config.h>

#include "base/arena.h"
#include "base/text.h"
#include "config/node.h"

/*
 * Collects what is wrong with a config. A fault that repeats another word for word at its place (an alias) is
 * dropped.
 */

#define RN_FAULTS_MAX 1000

typedef struct rn_fault {
    struct rn_fault *next;
    rn_mark at;
    const char *path;
    const char *text;
    const char *hint;
    size_t order;
} rn_fault;

typedef struct rn_faults {
    rn_arena *arena;
    rn_fault *first;
    size_t count;
    bool nomem;   /* a fault could not be kept */
    bool warning; /* what is collected are warnings */
} rn_faults;

/* At most `max` bytes of a user's text, control characters as '?', with "..." where it was cut. */
void rn_plain_text(rn_builder *b, ration_text text, size_t max);

void rn_faults_init(rn_faults *faults, rn_arena *arena);
/* `text` and `hint` (may be NULL) are copied, cut when very long, control characters as '?'. */
void rn_faults_add(rn_faults *faults, rn_mark at, const char *path, const char *text, const char *hint);
/* Sorted, with their source lines, as the caller gets them; `out->owner` stays as it is. RATION_ERR_NOMEM. */
int rn_faults_finish(rn_faults *faults, ration_config_faults *out);

/* The place of a byte. */
rn_mark rn_source_mark(rn_source *source, size_t offset);

/* Of `count` names the one nearest to `word` by edits; NULL: none is near enough for a guess. */
typedef const char *rn_name_at(const void *names, size_t index);
const char *rn_nearest(ration_text word, const void *names, size_t count, rn_name_at *name_at);

#endif
