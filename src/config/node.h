/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_NODE_H
#define RN_CONFIG_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/types.h>

#include "base/arena.h"

/*
 * A config text as a tree of nodes, each with its place in its file. YAML and JSON both end here. Nodes live in an
 * arena. An alias is the same node once more, so a tree may be a graph, never a circle.
 */

#define RN_SOURCE_MAX ((size_t)16 * 1024 * 1024) /* bytes of one file */
#define RN_NODES_MAX 1000000                     /* of one file, aliases counted as what they stand for */
#define RN_DEPTH_MAX 64

/* A stretch of a file that no fault may show. Bytes, the end is outside. */
typedef struct rn_span {
    size_t begin;
    size_t end;
} rn_span;

typedef struct rn_source {
    const char *name;
    ration_text text;
    uint32_t index; /* in the order in which the files were read */
    uint32_t first_line;
    rn_span *hidden;
    size_t hidden_count;
    size_t hidden_room;
} rn_source;

typedef struct rn_mark {
    rn_source *source;
    uint32_t line;   /* from 1; 0: the file as a whole */
    uint32_t column; /* in characters, from 1 */
} rn_mark;

typedef enum rn_node_kind {
    RN_NODE_SCALAR = 0,
    RN_NODE_LIST,
    RN_NODE_MAP,
} rn_node_kind;

typedef struct rn_node rn_node;

/* A member of a list or a map. */
typedef struct rn_entry {
    struct rn_entry *next;
    const rn_node *key; /* a scalar; NULL in a list */
    const rn_node *value;
} rn_entry;

struct rn_node {
    rn_node_kind kind;
    bool quoted; /* scalar: certainly a text, never a number or a word such as true */
    rn_mark at;
    rn_span span;     /* scalar: its bytes, quotes too */
    ration_text text; /* scalar: NUL-terminated */
    rn_entry *first;
    rn_entry *last;
    size_t count;
    size_t weight; /* nodes in it with itself, aliases followed */
    /* Of an item that came with a provider file: where the user may write more about it. NULL: no such item. */
    const rn_node *used_by;
};

/* Builds a tree from the events of a parser. */
typedef struct rn_nodes {
    rn_arena *arena;
    rn_node *root;
    const rn_node *last;               /* the scalar that came last */
    rn_node *open[RN_DEPTH_MAX];       /* what is not closed yet */
    const rn_node *keys[RN_DEPTH_MAX]; /* of each open map: the key whose value comes next */
    size_t depth;
    size_t weight;
} rn_nodes;

void rn_nodes_init(rn_nodes *tree, rn_arena *arena);
/* A fresh node that is in no tree yet. NULL: no memory. */
rn_node *rn_nodes_new(rn_nodes *tree, rn_node_kind kind, rn_mark at);
/*
 * Put a whole node (a scalar, an alias) in its place, or begin a list or a map. RATION_ERR_NOMEM; RATION_ERR_RANGE: too
 * deep or too many nodes; RATION_ERR_SYNTAX: a list or a map where a key should be.
 */
int rn_nodes_put(rn_nodes *tree, rn_node *node);
int rn_nodes_open(rn_nodes *tree, rn_node *node);
/* Ends the innermost list or map; NULL if none is open. */
rn_node *rn_nodes_close(rn_nodes *tree);

/* True if the next node will be the key of a map. */
bool rn_nodes_wants_key(const rn_nodes *tree);

int rn_node_append(rn_arena *arena, rn_node *node, const rn_node *key, const rn_node *value);
/* The value of a map's key; NULL: none, or `node` is no map. Of a key that stands twice, the first. */
const rn_node *rn_node_get(const rn_node *node, const char *key);
const rn_entry *rn_node_find(const rn_node *node, ration_text key);
/* The deepest node on a way such as "providers[0].limits[2].window"; at least the root. */
const rn_node *rn_node_at(const rn_node *root, const char *path);

bool rn_node_is_null(const rn_node *node); /* nothing, ~ or null, not quoted */
bool rn_node_is_bool(const rn_node *node);
bool rn_node_is_number(const rn_node *node); /* a number as JSON knows it, not quoted */

/* Remember that the bytes of a scalar must not be shown. */
int rn_source_hide(rn_source *source, rn_arena *arena, rn_span span);

#endif
