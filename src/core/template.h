/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_TEMPLATE_H
#define RN_CORE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/text.h"

/* Path templates that name variables, and globs over them. Both work segment by segment; empty segments do not
 * count. */

#define RN_SEGMENTS_MAX 64

typedef struct rn_path {
    ration_text segment[RN_SEGMENTS_MAX];
    size_t count;
} rn_path;

/* A path up to its query or fragment. */
ration_text rn_path_without_query(ration_text path);

/* Split a path up to its query or fragment. False: more than RN_SEGMENTS_MAX segments. */
bool rn_path_split(ration_text path, rn_path *out);

typedef enum rn_segment_kind {
    RN_SEGMENT_LITERAL = 0,
    RN_SEGMENT_VAR,  /* "{name}": one segment */
    RN_SEGMENT_GLOB, /* has a "*": any run of characters within one segment */
    RN_SEGMENT_REST, /* "**": zero or more whole segments */
} rn_segment_kind;

typedef struct rn_segment {
    rn_segment_kind kind;
    ration_text text; /* the variable's name without braces */
} rn_segment;

typedef struct rn_template {
    ration_text text;
    rn_segment *segments;
    size_t count;
} rn_template;

/* Compile; the text is borrowed. RATION_ERR_SYNTAX: no leading '/', unbalanced braces, an empty or repeated name, too
 * long. */
int rn_template_init(rn_template *template, rn_arena *arena, ration_text text);

/*
 * Does `path` match? `values`, RN_SEGMENTS_MAX texts or NULL, gets the value of each variable at the index of its
 * segment. Worst case O(segments of both multiplied): only the last "**" is ever tried again.
 */
bool rn_template_match(const rn_template *template, const rn_path *path, ration_text *values);

/* Is `a` more specific than `b`? Segment by segment: literal, variable, "*", "**"; then the longer one. */
bool rn_template_beats(const rn_template *a, const rn_template *b);

/* The most specific that matches; of equals, the first. `count`: none does. O(count) matches. */
size_t rn_template_find(const rn_template *templates, size_t count, const rn_path *path);

#endif
