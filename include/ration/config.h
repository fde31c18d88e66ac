/* SPDX-License-Identifier: MIT */
#ifndef RATION_CONFIG_H
#define RATION_CONFIG_H

/*
 * The config file: YAML (and JSON, which YAML contains) to rules. Specification chapter 8.
 *
 * Loading collects every fault instead of stopping at the first. The library prints nothing: `ration_config_fault_text`
 * gives the line that `ration validate` prints. No secret appears in a fault, in its source line or in a written
 * config.
 */

#include <ration/engine.h>
#include <ration/rules.h>
#include <ration/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A loaded config: rules, and what only the gateway needs. Never changes once it is loaded. */
typedef struct ration_config ration_config;

/** One thing that is wrong. Texts are NUL-terminated, never NULL, and owned by the list. */
typedef struct ration_config_fault {
    const char *file;   /* as it was named by the caller or found through `include:` */
    uint32_t line;      /* from 1; 0: the file as a whole (it cannot be read, it is empty) */
    uint32_t column;    /* in characters, from 1 */
    const char *path;   /* such as "providers[0].limits[2].window.timezone"; "" for the whole file */
    const char *text;   /* what is wrong */
    const char *hint;   /* what was meant; "" when there is no guess */
    const char *source; /* the line as it stands in the file, its secrets masked; "" when there is none */
    uint32_t caret;     /* where the caret goes below `source`: so many characters from its start */
    bool warning;       /* it is allowed, and probably not what was meant */
} ration_config_fault;

/** All faults of one load, in order of file, line and column. Start from a zeroed one; free with `_fini` always. */
typedef struct ration_config_faults {
    const ration_config_fault *items;
    size_t count;
    void *owner;
} ration_config_faults;

/** Start from a zeroed one: every member has a default. All is borrowed for the call. */
typedef struct ration_config_options {
    const ration_allocator *allocator; /* NULL: the C library's; must outlive the config */
    const void *salt;                  /* of the credential keys; NULL: a random one for this load */
    size_t salt_size;
    const char *instance; /* what `settings.instance` is without the key; NULL: the host name, "local" in a recording */
    const char *zone_dir; /* where time zones are; NULL: $TZDIR, else /usr/share/zoneinfo */

    const char *provider_dir; /* where `use: NAME` looks; NULL: $RATION_PROVIDERS, else where they were installed */

    /* Looks up `${NAME}`; NULL result: not set. A NULL function: the environment of the process. */
    const char *(*variable)(void *ctx, const char *name);
    void *ctx;

    /*
     * The text is the `config` line of a recording, which may come from a stranger: `${...}` is plain text, `include:`
     * and `use:` are refused, a provider needs no `baseUrl`, and the members `op` and `startedAt` are skipped.
     */
    bool recording;
    uint32_t first_line; /* number of the text's first line; 0: 1 */
} ration_config_options;

/**
 * Load a config file, with the files that it includes.
 *
 * Ownership  `*out` is the caller's, freed with `ration_config_free`; `*faults` too, with `ration_config_faults_fini`.
 * Errors     RATION_ERR_CONFIG with at least one fault in `*faults`; RATION_ERR_IO if the file cannot be read (one
 *            fault says why); RATION_ERR_NOMEM; RATION_ERR_INVALID. `*out` is untouched on error.
 */
RATION_API RATION_MUST_CHECK int ration_config_load(const char *path, const ration_config_options *options,
                                                    ration_config **out, ration_config_faults *faults);

/** The same from a text; `name` stands in the faults for the file. `include:` is a fault: a text has no folder. */
RATION_API RATION_MUST_CHECK int ration_config_parse(ration_text text, const char *name,
                                                     const ration_config_options *options, ration_config **out,
                                                     ration_config_faults *faults);

/** What `ration_engine_new` wants. Borrowed until the config is freed. */
RATION_API const ration_rules *ration_config_rules(const ration_config *config);

/**
 * What is allowed in this config and probably not meant, in order of file, line and column; `*count` says how many.
 * Borrowed until the config is freed.
 */
RATION_API const ration_config_fault *ration_config_warnings(const ration_config *config, size_t *count);

/** NULL is fine. */
RATION_API void ration_config_free(ration_config *config);

/** Empties the list; a zeroed one and one already emptied are fine. */
RATION_API void ration_config_faults_fini(ration_config_faults *faults);

/**
 * "file:line:column: path: what is wrong (what was meant)"; of a warning, "file:line:column: warning: path: ...".
 *
 * Writes at most `size` bytes with a final NUL and returns the length written without it; what does not fit is cut.
 */
RATION_API size_t ration_config_fault_text(const ration_config_fault *fault, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
