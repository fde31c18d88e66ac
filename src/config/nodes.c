/* SPDX-License-Identifier: MIT */
/*
 * Nodes, and the builder that makes a tree of them from a parser's events.
 *
 * The builder keeps the way from the root to where it is as a stack, so no depth of input costs depth of C. Each node
 * knows how many nodes it stands for; an alias adds the weight of its target, so a few lines of aliases of aliases are
 * refused when their sum passes the bound and not when memory runs out.
 *
 * Invariants: an open node is linked to its parent only when it is closed, so an alias can never name what holds it; in
 * an open map a key waits in `keys` exactly while its value is to come.
 */
#include "config/node.h"

#include <string.h>

#include "base/text.h"

void rn_nodes_init(rn_nodes *tree, rn_arena *arena)
{
    *tree = (rn_nodes){.arena = arena};
}

rn_node *rn_nodes_new(rn_nodes *tree, rn_node_kind kind, rn_mark at)
{
    rn_node *node = rn_arena_zalloc(tree->arena, 1, sizeof *node);

    if (node == NULL)
        return NULL;
    node->kind = kind;
    node->at = at;
    node->weight = 1;
    return node;
}

bool rn_nodes_wants_key(const rn_nodes *tree)
{
    return tree->depth > 0 && tree->open[tree->depth - 1]->kind == RN_NODE_MAP && tree->keys[tree->depth - 1] == NULL;
}

int rn_node_append(rn_arena *arena, rn_node *node, const rn_node *key, const rn_node *value)
{
    rn_entry *entry = rn_arena_zalloc(arena, 1, sizeof *entry);

    if (entry == NULL)
        return RATION_ERR_NOMEM;
    entry->key = key;
    entry->value = value;
    if (node->last != NULL) {
        node->last->next = entry;
    } else {
        node->first = entry;
    }
    node->last = entry;
    node->count++;
    node->weight += value->weight + (key != NULL ? 1 : 0);
    return RATION_OK;
}

/* Link a finished node to what is open, or make it the root. */
static int tree_link(rn_nodes *tree, rn_node *node)
{
    if (tree->depth == 0) {
        tree->root = node;
        return RATION_OK;
    }

    const size_t top = tree->depth - 1;
    const rn_node *key = tree->keys[top];

    tree->keys[top] = NULL;
    return rn_node_append(tree->arena, tree->open[top], key, node);
}

int rn_nodes_put(rn_nodes *tree, rn_node *node)
{
    if (node->weight > RN_NODES_MAX - tree->weight)
        return RATION_ERR_RANGE;
    tree->weight += node->weight;
    if (node->kind == RN_NODE_SCALAR)
        tree->last = node;
    if (!rn_nodes_wants_key(tree))
        return tree_link(tree, node);
    if (node->kind != RN_NODE_SCALAR)
        return RATION_ERR_SYNTAX;
    tree->keys[tree->depth - 1] = node;
    return RATION_OK;
}

int rn_nodes_open(rn_nodes *tree, rn_node *node)
{
    if (rn_nodes_wants_key(tree))
        return RATION_ERR_SYNTAX;
    if (tree->depth == RN_DEPTH_MAX || tree->weight == RN_NODES_MAX)
        return RATION_ERR_RANGE;
    tree->weight++;
    tree->keys[tree->depth] = NULL;
    tree->open[tree->depth++] = node;
    return RATION_OK;
}

rn_node *rn_nodes_close(rn_nodes *tree)
{
    if (tree->depth == 0)
        return NULL;

    rn_node *node = tree->open[--tree->depth];

    return tree_link(tree, node) == RATION_OK ? node : NULL;
}

const rn_entry *rn_node_find(const rn_node *node, ration_text key)
{
    if (node == NULL || node->kind != RN_NODE_MAP)
        return NULL;
    for (const rn_entry *entry = node->first; entry != NULL; entry = entry->next) {
        if (rn_text_eq(entry->key->text, key))
            return entry;
    }
    return NULL;
}

const rn_node *rn_node_get(const rn_node *node, const char *key)
{
    const rn_entry *entry = rn_node_find(node, ration_text_of(key));

    return entry != NULL ? entry->value : NULL;
}

static const rn_node *node_item(const rn_node *node, size_t index)
{
    const rn_entry *entry = node->kind == RN_NODE_LIST ? node->first : NULL;

    while (entry != NULL && index-- > 0)
        entry = entry->next;
    return entry != NULL ? entry->value : NULL;
}

/* "12]" -> 12, and `*path` behind the bracket. */
static size_t path_index(const char **path)
{
    size_t index = 0;

    while (**path >= '0' && **path <= '9' && index < RN_NODES_MAX)
        index = index * 10 + (size_t)(*(*path)++ - '0');
    *path += strcspn(*path, "]");
    if (**path == ']')
        (*path)++;
    return index;
}

const rn_node *rn_node_at(const rn_node *root, const char *path)
{
    const rn_node *node = root;

    while (*path != '\0') {
        const rn_node *next = NULL;

        if (*path == '[') {
            path++;
            next = node_item(node, path_index(&path));
        } else {
            const size_t size = strcspn(path, ".[");
            const rn_entry *entry = rn_node_find(node, (ration_text){path, size});

            next = entry != NULL ? entry->value : NULL;
            path += size;
        }
        if (next == NULL)
            return node;
        node = next;
        if (*path == '.')
            path++;
    }
    return node;
}

static bool node_is_word(const rn_node *node, const char *const *words, size_t count)
{
    if (node->kind != RN_NODE_SCALAR || node->quoted)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (rn_text_is(node->text, words[i]))
            return true;
    }
    return false;
}

bool rn_node_is_null(const rn_node *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};

    return node_is_word(node, words, sizeof words / sizeof words[0]);
}

bool rn_node_is_bool(const rn_node *node)
{
    static const char *const words[] = {"true", "True", "TRUE", "false", "False", "FALSE"};

    return node_is_word(node, words, sizeof words / sizeof words[0]);
}

static size_t skip_digits(ration_text text, size_t at)
{
    while (at < text.size && text.data[at] >= '0' && text.data[at] <= '9')
        at++;
    return at;
}

bool rn_node_is_number(const rn_node *node)
{
    if (node->kind != RN_NODE_SCALAR || node->quoted)
        return false;

    const ration_text text = node->text;
    const size_t begin = text.size > 0 && text.data[0] == '-' ? 1 : 0;
    size_t at = skip_digits(text, begin);

    if (at == begin)
        return false;
    if (at < text.size && text.data[at] == '.')
        at = skip_digits(text, at + 1);
    if (at < text.size && (text.data[at] == 'e' || text.data[at] == 'E')) {
        at++;
        if (at < text.size && (text.data[at] == '+' || text.data[at] == '-'))
            at++;
        at = skip_digits(text, at);
    }
    return at == text.size;
}

int rn_source_hide(rn_source *source, rn_arena *arena, rn_span span)
{
    if (source->hidden_count == source->hidden_room) {
        const size_t room = source->hidden_room * 2 + 8;
        rn_span *hidden = rn_arena_zalloc(arena, room, sizeof *hidden);

        if (hidden == NULL)
            return RATION_ERR_NOMEM;
        if (source->hidden_count > 0)
            memcpy(hidden, source->hidden, source->hidden_count * sizeof *hidden);
        source->hidden = hidden;
        source->hidden_room = room;
    }
    source->hidden[source->hidden_count++] = span;
    return RATION_OK;
}
