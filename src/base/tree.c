/* SPDX-License-Identifier: MIT */
/*
 * Balanced tree of intrusive members (AVL), each node with the lowest value below it.
 *
 * The order is the caller's and says nothing of the values; the lowest values let a search skip every part of the tree
 * in which none is small enough. Nothing recurses: members know their parents, so a change is repaired on the way up,
 * and the way up ends where neither height nor lowest value has changed.
 *
 * Invariants: no member is less than one on its left; the heights of two siblings differ by one at most; `lowest` is
 * the least of a node's own value and its children's `lowest`; `height` is 0 for everything outside.
 */
#include "base/tree.h"

#include <stddef.h>

void rn_tree_init(rn_tree *tree, rn_tree_less *less)
{
    tree->root = NULL;
    tree->less = less;
}

void rn_tree_node_init(rn_tree_node *node)
{
    *node = (rn_tree_node){0};
}

bool rn_tree_contains(const rn_tree_node *node)
{
    return node->height > 0;
}

static int32_t height_of(const rn_tree_node *node)
{
    return node == NULL ? 0 : node->height;
}

/* Bring height and lowest value up to the children's. True: something changed. */
static bool node_renew(rn_tree_node *node)
{
    const int32_t left = height_of(node->left);
    const int32_t right = height_of(node->right);
    const int32_t height = 1 + (left > right ? left : right);
    int64_t lowest = node->value;

    if (node->left != NULL && node->left->lowest < lowest)
        lowest = node->left->lowest;
    if (node->right != NULL && node->right->lowest < lowest)
        lowest = node->right->lowest;

    const bool changed = height != node->height || lowest != node->lowest;

    node->height = height;
    node->lowest = lowest;
    return changed;
}

/* Where `parent` points to `old`, let it point to `new`. No parent: the root. */
static void tree_relink(rn_tree *tree, rn_tree_node *parent, const rn_tree_node *old, rn_tree_node *new)
{
    if (parent == NULL) {
        tree->root = new;
    } else if (parent->left == old) {
        parent->left = new;
    } else {
        parent->right = new;
    }
    if (new != NULL)
        new->parent = parent;
}

/* The left child takes the place of `node`, which becomes its right child. */
static rn_tree_node *turn_right(rn_tree *tree, rn_tree_node *node)
{
    rn_tree_node *const top = node->left;

    tree_relink(tree, node->parent, node, top);
    node->left = top->right;
    if (node->left != NULL)
        node->left->parent = node;
    top->right = node;
    node->parent = top;
    (void)node_renew(node);
    (void)node_renew(top);
    return top;
}

static rn_tree_node *turn_left(rn_tree *tree, rn_tree_node *node)
{
    rn_tree_node *const top = node->right;

    tree_relink(tree, node->parent, node, top);
    node->right = top->left;
    if (node->right != NULL)
        node->right->parent = node;
    top->left = node;
    node->parent = top;
    (void)node_renew(node);
    (void)node_renew(top);
    return top;
}

/* Restore the balance of `node`, whose children are sound; returns what stands in its place. */
static rn_tree_node *tree_balance(rn_tree *tree, rn_tree_node *node)
{
    const int32_t tilt = height_of(node->left) - height_of(node->right);

    if (tilt > 1) {
        if (height_of(node->left->left) < height_of(node->left->right))
            (void)turn_left(tree, node->left);
        return turn_right(tree, node);
    }
    if (tilt < -1) {
        if (height_of(node->right->right) < height_of(node->right->left))
            (void)turn_right(tree, node->right);
        return turn_left(tree, node);
    }
    return node;
}

/* Below `node` something has changed. */
static void tree_repair(rn_tree *tree, rn_tree_node *node)
{
    while (node != NULL) {
        const bool changed = node_renew(node);
        rn_tree_node *const top = tree_balance(tree, node);

        if (!changed && top == node)
            return;
        node = top->parent;
    }
}

void rn_tree_add(rn_tree *tree, rn_tree_node *node, int64_t value)
{
    rn_tree_node *parent = NULL;
    rn_tree_node **spot = &tree->root;

    while (*spot != NULL) {
        parent = *spot;
        spot = tree->less(node, parent) ? &parent->left : &parent->right;
    }
    *node = (rn_tree_node){.parent = parent, .value = value, .lowest = value, .height = 1};
    *spot = node;
    tree_repair(tree, parent);
}

static rn_tree_node *leftmost(rn_tree_node *node)
{
    while (node->left != NULL)
        node = node->left;
    return node;
}

/*
 * Put the next member, which has no left child, into the place of `node`, with the numbers that those above know of
 * that place. Returns the lowest node below which something has changed.
 */
static rn_tree_node *tree_replace(rn_tree *tree, const rn_tree_node *node, rn_tree_node *next)
{
    rn_tree_node *changed = next;

    if (next->parent != node) {
        changed = next->parent;
        tree_relink(tree, changed, next, next->right);
        next->right = node->right;
        next->right->parent = next;
    }
    next->left = node->left;
    next->left->parent = next;
    next->height = node->height;
    next->lowest = node->lowest;
    tree_relink(tree, node->parent, node, next);
    return changed;
}

void rn_tree_remove(rn_tree *tree, rn_tree_node *node)
{
    if (!rn_tree_contains(node))
        return;
    if (node->left != NULL && node->right != NULL) {
        rn_tree_node *const next = leftmost(node->right);

        tree_repair(tree, tree_replace(tree, node, next));
        /* Its value is another than that of `node`, even where nothing below it has changed. */
        tree_repair(tree, next);
    } else {
        tree_relink(tree, node->parent, node, node->left != NULL ? node->left : node->right);
        tree_repair(tree, node->parent);
    }
    rn_tree_node_init(node);
}

void rn_tree_set(rn_tree_node *node, int64_t value)
{
    node->value = value;
    while (node != NULL && node_renew(node))
        node = node->parent;
}

rn_tree_node *rn_tree_first(const rn_tree *tree)
{
    return tree->root == NULL ? NULL : leftmost(tree->root);
}

/* The nearest member above `node` that comes after it. */
static rn_tree_node *tree_climb(const rn_tree_node *node)
{
    while (node->parent != NULL && node->parent->right == node)
        node = node->parent;
    return node->parent;
}

rn_tree_node *rn_tree_next(const rn_tree_node *node)
{
    return node->right != NULL ? leftmost(node->right) : tree_climb(node);
}

/* The first member at or below `node` whose value is at most `bound`; there is one. */
static rn_tree_node *first_below(rn_tree_node *node, int64_t bound)
{
    for (;;) {
        if (node->left != NULL && node->left->lowest <= bound) {
            node = node->left;
        } else if (node->value <= bound) {
            return node;
        } else {
            node = node->right;
        }
    }
}

/* The first member after `after`. */
static rn_tree_node *tree_after(const rn_tree *tree, const rn_tree_node *after)
{
    rn_tree_node *found = NULL;
    rn_tree_node *node = tree->root;

    while (node != NULL) {
        if (tree->less(after, node)) {
            found = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return found;
}

rn_tree_node *rn_tree_first_within(const rn_tree *tree, const rn_tree_node *after, int64_t bound)
{
    if (tree->root == NULL || tree->root->lowest > bound)
        return NULL;
    if (after == NULL)
        return first_below(tree->root, bound);

    for (rn_tree_node *node = tree_after(tree, after); node != NULL; node = tree_climb(node)) {
        if (node->value <= bound)
            return node;
        if (node->right != NULL && node->right->lowest <= bound)
            return first_below(node->right, bound);
    }
    return NULL;
}
