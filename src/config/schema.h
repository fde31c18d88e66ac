/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_SCHEMA_H
#define RN_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/types.h>

#include "config/node.h"
#include "config/out.h"

/*
 * The one table of keys. The parser, its messages, the defaults, the writer of recordings, `ration schema` and the
 * reference page all walk it; a new key is a row (and a member of a struct for its value).
 */

typedef struct rn_loader rn_loader;
typedef struct rn_key rn_key;
typedef struct rn_object rn_object;

/* How a value may stand in the text. */
typedef enum rn_form {
    RN_FORM_TEXT = 0, /* a text: `123` and `true` need quotes */
    RN_FORM_NUMBER,   /* a number: no quotes */
    RN_FORM_BOOL,
    RN_FORM_ANY, /* the reader decides */
} rn_form;

/* A kind of scalar: how it is read, written and described. */
typedef struct rn_type {
    const char *name; /* for the reference: "duration" */
    const char *what; /* for messages: "a duration such as 250ms, 10s or 1h30m" */
    rn_form form;
    size_t size;      /* of the value in memory */
    const char *json; /* its JSON Schema without the range */
    /*
     * RATION_ERR_SYNTAX: it is not `what`; RATION_ERR_RANGE; RATION_ERR_CONFIG: it has added a fault;
     * RATION_ERR_NOMEM.
     */
    int (*read)(rn_loader *loader, const rn_key *key, ration_text text, void *out);
    /* As JSON. False: there is no value, and nothing has been written. */
    bool (*write)(rn_out *out, const rn_key *key, const void *value);
    /* The key's `min` or `max` for a person; NULL: the type has no range. */
    void (*show)(rn_out *out, int64_t bound);
} rn_type;

extern const rn_type rn_type_text, rn_type_name, rn_type_header, rn_type_credential_header, rn_type_header_value,
    rn_type_method, rn_type_file, rn_type_template, rn_type_glob, rn_type_dimension, rn_type_zone, rn_type_key16,
    rn_type_pointer, rn_type_proxy, rn_type_variable, rn_type_target, rn_type_path, rn_type_call, rn_type_segment;
extern const rn_type rn_type_bool, rn_type_word, rn_type_integer, rn_type_small, rn_type_units, rn_type_units_auto,
    rn_type_duration, rn_type_duration_auto, rn_type_rate, rn_type_ratio, rn_type_factor, rn_type_size, rn_type_clock,
    rn_type_url, rn_type_address;

/* A word of an enumeration. */
typedef struct rn_word {
    const char *name;
    int value;
} rn_word;

typedef enum rn_shape {
    RN_SHAPE_ONE = 0,
    RN_SHAPE_LIST,
    RN_SHAPE_TABLE, /* a map from names of the user's choice */
} rn_shape;

enum {
    RN_KEY_REQUIRED = 1 << 0,
    RN_KEY_NEEDED = 1 << 1, /* required, but not in a recording */
    RN_KEY_LATER = 1 << 2,  /* a word of the specification whose feature does not exist yet */
    RN_KEY_SECRET = 1 << 3, /* nothing below it is ever shown */
    RN_KEY_UNSET = 1 << 4,  /* without it the value is RATION_UNSET instead of zero */
    RN_KEY_LOCAL = 1 << 5,  /* decides nothing: recordings leave it out */
    RN_KEY_FILLED = 1 << 6, /* a list or table that may not be empty: to the engine that means "not given" */
    RN_KEY_LAID = 1 << 7,   /* with the object's `base`, its items are laid over others and need only a name */
};

#define RN_KIND_BIT(kind) (1U << (kind))

struct rn_key {
    const char *name;
    const char *doc;         /* one sentence or two */
    const rn_type *type;     /* of a scalar, or of each in a list or table; NULL: an object */
    const rn_object *object; /* of an object, or of each in a list */
    const rn_word *words;    /* of rn_type_word; ends with a NULL name */
    const char *fallback;    /* the default, as one would write it; items of a list are separated by spaces */
    const char *otherwise;   /* what holds without it, where no one value does */
    int64_t min, max;        /* of numbers, both 0: no range of its own */
    rn_shape shape;
    unsigned flags;
    unsigned kinds;    /* bits of the object's kinds that know it; 0: all. Rows of one name have none in common */
    unsigned required; /* bits of the kinds that need it */
    size_t offset;     /* of the value in the struct; of the pointer to a list's or table's items */
    size_t count;      /* of the number of items in the struct */
    size_t item;       /* size of an item of a table (which begins with its name) */
    size_t value;      /* of the value in it; an object is the item itself */
    /* Before an item of a list is read: what to read in its place. NULL: the item itself. */
    const rn_node *(*overlay)(rn_loader *loader, const rn_node *item, const void *owner);
};

struct rn_object {
    const char *name; /* unique: "limit" */
    const char *doc;
    const rn_key *keys;    /* ends with a NULL name */
    size_t size;           /* as an item of a list */
    const char *shorthand; /* the key that a bare scalar stands for; NULL: none */
    const char *base;      /* the key that names what it is laid over: with it no other key is required; NULL: none */
    const char *kind;      /* the key, a word and no list, that says which rows it has; NULL: it has all of them */
    /* What the single keys cannot know. `given` is the object's node. */
    void (*check)(rn_loader *loader, const rn_node *given, void *self);
};

extern const rn_object rn_schema_root;
/* The row of that name that one of `kinds` has; else any of that name; NULL: there is none. */
const rn_key *rn_object_key(const rn_object *object, ration_text name, unsigned kinds);
/* The row that says the kind; NULL: the object has none. */
const rn_key *rn_object_kind(const rn_object *object);
/* The kind of a struct that the table has filled, as a bit: 0 if it is not given, all bits if the object has none. */
unsigned rn_object_kind_bit(const rn_object *object, const void *self);
/* True if other rows have its name, so that without the kind nobody knows what it means. */
bool rn_object_key_varies(const rn_object *object, const rn_key *key);
/* True for a word that is, or looks like, the name of a secret key. */
bool rn_schema_hides(ration_text name);

/* The table as a JSON Schema, and as a page of Markdown. The callers' own, as rn_out_take gives it. */
int rn_schema_json(const ration_allocator *mem, char **out, size_t *size);
int rn_schema_markdown(const ration_allocator *mem, char **out, size_t *size);

#endif
