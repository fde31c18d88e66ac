/* SPDX-License-Identifier: MIT */
/*
 * From the text of a file to its nodes, with what must never be shown already hidden.
 *
 * Secrets are found by the names of their keys, or what looks like them, before anything else looks at the tree: so a
 * fault in the same line, a misspelt key and a text that breaks off in the middle of a secret show stars too.
 */
#include <string.h>

#include "base/text.h"
#include "config/loader.h"
#include "config/parse.h"

int rn_parse_refused(rn_faults *faults, int err, rn_mark at)
{
    if (err == RATION_ERR_NOMEM)
        return err;
    rn_faults_add(
        faults, at, "",
        err == RATION_ERR_RANGE ? "the file has too many values, or they are nested too deep" : "a key must be a text",
        err == RATION_ERR_RANGE ? "at most a million, at most 64 deep; an alias counts as what it stands for" : NULL);
    return RATION_ERR_CONFIG;
}

/* Hide the scalars below secret keys. `hidden`: this node is below one. */
/* NOLINTNEXTLINE(misc-no-recursion): no deeper than RN_DEPTH_MAX */
static int node_hide(rn_source *source, rn_arena *arena, const rn_node *node, bool hidden)
{
    int err = RATION_OK;

    if (node->kind == RN_NODE_SCALAR)
        return hidden ? rn_source_hide(source, arena, node->span) : RATION_OK;
    for (const rn_entry *entry = node->first; entry != NULL && err == RATION_OK; entry = entry->next) {
        const bool secret = hidden || (entry->key != NULL && rn_schema_hides(entry->key->text));
        const bool known =
            entry->key != NULL && (rn_text_is(entry->key->text, "header") || rn_schema_hides(entry->key->text));

        /* A key below a secret one may be a secret in the wrong place. */
        if (hidden && entry->key != NULL && !known)
            err = rn_source_hide(source, arena, entry->key->span);
        if (err == RATION_OK)
            err = node_hide(source, arena, entry->value, secret);
    }
    return err;
}

static bool is_hidden(const rn_source *source, size_t at)
{
    for (size_t i = 0; i < source->hidden_count; i++) {
        if (at >= source->hidden[i].begin && at < source->hidden[i].end)
            return true;
    }
    return false;
}

/*
 * A text that breaks off: all is hidden behind a secret key whose value had not come, and behind the last scalar if it
 * is secret, for what follows may belong to it. What was open is closed, so that the tree can be walked.
 */
static int rest_hide(rn_source *source, rn_nodes *tree)
{
    int err = RATION_OK;

    for (size_t i = 0; i < tree->depth && err == RATION_OK; i++) {
        const rn_node *key = tree->keys[i];

        if (key != NULL && rn_schema_hides(key->text))
            err = rn_source_hide(source, tree->arena, (rn_span){key->span.end, source->text.size});
    }
    while (tree->depth > 0 && err == RATION_OK) {
        if (rn_nodes_close(tree) == NULL)
            err = RATION_ERR_NOMEM;
    }
    if (err == RATION_OK && tree->root != NULL)
        err = node_hide(source, tree->arena, tree->root, false);
    if (err == RATION_OK && tree->last != NULL && is_hidden(source, tree->last->span.begin))
        err = rn_source_hide(source, tree->arena, (rn_span){tree->last->span.begin, source->text.size});
    return err;
}

static int source_parse(rn_source *source, rn_nodes *tree, rn_arena *arena, rn_faults *faults)
{
    int err = RATION_ERR_SYNTAX;

    rn_nodes_init(tree, arena);
    if (rn_text_is_utf8(source->text))
        err = rn_parse_json(source, tree, faults);
    if (err == RATION_ERR_SYNTAX) {
        rn_nodes_init(tree, arena);
        err = rn_parse_yaml(source, tree, faults);
    }
    return err;
}

int rn_parse_source(rn_source *source, rn_arena *arena, rn_faults *faults, const rn_node **out)
{
    static const char bom[] = "\xEF\xBB\xBF";
    const rn_mark whole = {source, source->first_line, 1};
    rn_nodes tree;

    *out = NULL;
    if (source->text.size >= 3 && memcmp(source->text.data, bom, 3) == 0)
        source->text = rn_text_slice(source->text, 3, source->text.size);
    if (source->text.size > RN_SOURCE_MAX) {
        rn_faults_add(faults, (rn_mark){source, 0, 0}, "", "the file is larger than 16 MiB", NULL);
        return RATION_OK;
    }

    int err = source_parse(source, &tree, arena, faults);

    if (err == RATION_ERR_NOMEM)
        return err;

    if (err != RATION_OK)
        return rest_hide(source, &tree);
    if (tree.root != NULL && node_hide(source, arena, tree.root, false) != RATION_OK)
        return RATION_ERR_NOMEM;
    if (tree.root == NULL || rn_node_is_null(tree.root)) {
        rn_faults_add(faults, whole, "", "the file is empty", "a config has `providers:` and `accounts:`");
    } else if (tree.root->kind != RN_NODE_MAP) {
        rn_faults_add(faults, tree.root->at, "", "the file must be a map of keys", "such as `providers:`");
    } else {
        *out = tree.root;
    }
    return RATION_OK;
}
