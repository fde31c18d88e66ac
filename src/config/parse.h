/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_PARSE_H
#define RN_CONFIG_PARSE_H

#include "config/faults.h"
#include "config/node.h"

/*
 * A source's text to its root node. Every fault of the text is in `faults`, and then `*out` stays NULL. What a fault
 * must not show is hidden in `source`, in a text that is broken half-way too. RATION_ERR_NOMEM.
 */
int rn_parse_source(rn_source *source, rn_arena *arena, rn_faults *faults, const rn_node **out);

/* YAML into a tree. RATION_ERR_CONFIG: a fault was added, and the tree holds what came before. RATION_ERR_NOMEM. */
int rn_parse_yaml(rn_source *source, rn_nodes *tree, rn_faults *faults);

/*
 * The same for a text that is strictly JSON; RATION_ERR_SYNTAX if it is not, which the YAML parser is then asked about.
 * JSON has a reader of its own because libyaml knows neither its surrogate pairs nor tabs and keys as long as it
 * allows.
 */
int rn_parse_json(rn_source *source, rn_nodes *tree, rn_faults *faults);

/* The fault for an error of rn_nodes_put or rn_nodes_open. Returns RATION_ERR_CONFIG, or RATION_ERR_NOMEM as it is. */
int rn_parse_refused(rn_faults *faults, int err, rn_mark at);

#endif
