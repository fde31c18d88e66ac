/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_LOADER_H
#define RN_CONFIG_LOADER_H

#include "base/text.h"
#include "config/faults.h"
#include "config/model.h"
#include "config/schema.h"

/* One load under way: what the readers of keys and the checks share. */

#define RN_PATH_MAX 320

struct rn_loader {
    const ration_allocator *mem;
    const ration_config_options *options;
    rn_arena *arena; /* the config's: what stays */
    rn_arena work;   /* nodes and texts of this load; the faults' arena */
    rn_faults faults;
    rn_faults warnings; /* in the config's arena */
    rn_config_model *model;
    const ration_config *running; /* beside which it is loaded; NULL: none */
    const rn_node *root;
    char path[RN_PATH_MAX]; /* of the node that is read */
    size_t path_size;
    const rn_node *at; /* the scalar that is read, for its faults */
    bool quiet_value;  /* it is a secret, or comes from outside: do not repeat it */
    uint32_t sources;
    size_t faults_before; /* the object that is checked has none of its own if there are not more by now */
    bool nomem;
};

/* Longer and shorter paths. `push` returns what `pop` needs. */
size_t rn_path_push(rn_loader *loader, ration_text key);
size_t rn_path_index(rn_loader *loader, size_t index);
void rn_path_pop(rn_loader *loader, size_t size);

/* A fault at a node of the present path; with `key`, of that key below it. `text` is a format. `hint` may be NULL. */
void rn_loader_fault(rn_loader *loader, const rn_node *at, const char *key, const char *hint, const char *text, ...)
    __attribute__((format(printf, 5, 6)));

/* What is allowed and probably not meant. */
void rn_loader_warn(rn_loader *loader, const rn_node *at, const char *key, const char *hint, const char *text, ...)
    __attribute__((format(printf, 5, 6)));

/* A text of the user as a message may show it: in quotes, without control characters, cut when long. */
const char *rn_loader_quote(rn_loader *loader, ration_text text);
const char *rn_loader_format(rn_loader *loader, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A copy that the config keeps; NULL sets `nomem`. */
const char *rn_loader_keep(rn_loader *loader, ration_text text);
void *rn_loader_alloc(rn_loader *loader, rn_arena *arena, size_t count, size_t size);

/* Read the object `node` into `self`, with all faults. */
void rn_read_object(rn_loader *loader, const rn_object *object, const rn_node *node, void *self);

/* Something with a name and a place. */
typedef struct rn_named {
    ration_text name;
    const rn_node *at;
    size_t order;
} rn_named;

/* A fault for each name that stands twice: of items of a list, in their `key`; NULL: of keys. Sorts `items`. */
void rn_loader_unique(rn_loader *loader, rn_named *items, size_t count, const char *key);

/*
 * `${NAME}`, `${file:/path}` and `$${` in a scalar; `*out` is borrowed from the loader. RATION_ERR_CONFIG: a fault
 * was added.
 */
int rn_expand(rn_loader *loader, const rn_node *node, ration_text *out, bool *expanded);

/* The time zone is read once and kept among the rules'. RATION_ERR_CONFIG: a fault was added. */
int rn_zone_load(rn_loader *loader, ration_text name, const char **out);

/*
 * A whole file of at most `max` bytes, in the arena, NUL-terminated. Only regular files: nothing here ever waits for a
 * pipe. RATION_ERR_IO with `*why` set; RATION_ERR_NOMEM.
 */
int rn_file_read(rn_arena *arena, const char *path, size_t max, ration_text *out, const char **why);

/* Merge the files that `include:` names into `*root`. RATION_ERR_NOMEM; faults otherwise. */
int rn_include(rn_loader *loader, const char *path, const rn_node **root);
/*
 * Lay what `use:` names below each provider that says so. RATION_ERR_CONFIG: a fault was added, and nothing else need
 * be read; RATION_ERR_NOMEM. `from_file`: the config is a file, so that paths beside it have a meaning.
 */
int rn_presets(rn_loader *loader, bool from_file, const rn_node **root);
/* Read and parse one file. `*out` is NULL when it has faults. */
int rn_loader_source(rn_loader *loader, const char *name, ration_text text, uint32_t first_line, const rn_node **out);

/* URLs and addresses. RATION_ERR_SYNTAX; RATION_ERR_NOMEM. */
int rn_url_read(rn_loader *loader, ration_text text, rn_url *out);
int rn_address_read(rn_loader *loader, ration_text text, rn_address *out);

/* The checks of objects (schema.c names them). */
void rn_check_ledger(rn_loader *loader, const rn_node *given, void *self);
void rn_check_settings(rn_loader *loader, const rn_node *given, void *self);
void rn_check_limit(rn_loader *loader, const rn_node *given, void *self);
void rn_check_endpoint(rn_loader *loader, const rn_node *given, void *self);
void rn_check_estimate(rn_loader *loader, const rn_node *given, void *self);
void rn_check_actual(rn_loader *loader, const rn_node *given, void *self);
void rn_check_outcome(rn_loader *loader, const rn_node *given, void *self);
void rn_check_breaker(rn_loader *loader, const rn_node *given, void *self);
void rn_check_provider(rn_loader *loader, const rn_node *given, void *self);
void rn_check_credential(rn_loader *loader, const rn_node *given, void *self);
void rn_check_account(rn_loader *loader, const rn_node *given, void *self);
void rn_check_job(rn_loader *loader, const rn_node *given, void *self);
void rn_check_client(rn_loader *loader, const rn_node *given, void *self);
void rn_check_fleet(rn_loader *loader, const rn_node *given, void *self);
void rn_check_unavailable(rn_loader *loader, const rn_node *given, void *self);
void rn_check_file(rn_loader *loader, const rn_node *given, void *self);
/* Parts of the last one. */
void rn_check_jobs(rn_loader *loader, const rn_node *given, rn_config_model *model);
void rn_check_clients(rn_loader *loader, const rn_node *given, const rn_config_model *model);
void rn_check_running(rn_loader *loader); /* of the whole file, against the running config */
void rn_check_fleet_running(rn_loader *loader);
/* A fault at the path if the process cannot change that while it runs. */
void rn_settled_text(rn_loader *loader, const char *path, const char *was, const char *now);
void rn_settled_us(rn_loader *loader, const char *path, int64_t was, int64_t now);
const rn_node *rn_overlay_limit(rn_loader *loader, const rn_node *item, const void *owner);

/* A fault at the key of a map, or at the map if it is not there. */
void rn_fault_below(rn_loader *loader, const rn_node *given, const char *key, const char *hint, const char *text);
/* What is wrong with a `follower` that takes its ceiling from `leader` (NULL: no limit has the name); NULL: nothing. */
const char *rn_follow_fault(const ration_limit_rule *follower, const ration_limit_rule *leader);
bool rn_same_scope(const ration_limit_rule *a, const ration_limit_rule *b);

/* HMAC-SHA256(salt, header ":" value), the first 16 hex characters. RATION_ERR_NOMEM. */
int rn_credential_key(const ration_config_options *options, rn_arena *arena, const rn_credential *credential,
                      const char **out);

#endif
