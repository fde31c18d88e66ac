/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_TREE_H
#define RN_BASE_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* A balanced tree: members in order, each with a value, and the first of them whose value is small enough found without
 * looking at the others. Intrusive; owns no member, allocates nothing. All in O(log n). */

typedef struct rn_tree_node {
    struct rn_tree_node *parent, *left, *right;
    int64_t value;  /* see rn_tree_first_within */
    int64_t lowest; /* of the values below and here */
    int32_t height; /* 0: in no tree */
} rn_tree_node;

/* Strict order; two members are never equal. */
typedef bool rn_tree_less(const rn_tree_node *a, const rn_tree_node *b);

typedef struct rn_tree {
    rn_tree_node *root;
    rn_tree_less *less;
} rn_tree;

void rn_tree_init(rn_tree *tree, rn_tree_less *less);
void rn_tree_node_init(rn_tree_node *node);
bool rn_tree_contains(const rn_tree_node *node); /* in any tree */
void rn_tree_add(rn_tree *tree, rn_tree_node *node, int64_t value);
void rn_tree_remove(rn_tree *tree, rn_tree_node *node); /* nothing if it is in no tree */
void rn_tree_set(rn_tree_node *node, int64_t value);    /* of a member */
rn_tree_node *rn_tree_first(const rn_tree *tree);       /* NULL: empty */
rn_tree_node *rn_tree_next(const rn_tree_node *node);   /* NULL: it was the last */
/* The first member after `after` (NULL: of all; it need not be a member, only comparable) whose value is at most
 * `bound`; NULL: there is none. */
rn_tree_node *rn_tree_first_within(const rn_tree *tree, const rn_tree_node *after, int64_t bound);

#endif
