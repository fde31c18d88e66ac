/* SPDX-License-Identifier: MIT */
#ifndef RN_LEDGER_COLUMNS_H
#define RN_LEDGER_COLUMNS_H

#include <ration/state.h>

#include "base/text.h"

/* Records as columns: a table of them for each type of record, for whoever keeps records or shows them. */

typedef enum rn_form {
    RN_FORM_TEXT = 0,
    RN_FORM_LIMIT, /* a text; absent is "" */
    RN_FORM_ID,    /* no member: the number of the thing */
    RN_FORM_INSTANT,
    RN_FORM_SPAN,
    RN_FORM_UNITS, /* micro-units */
    RN_FORM_COUNT,
    RN_FORM_SMALL, /* a count of 32 bits */
    RN_FORM_YES,   /* 0 or 1 */
    RN_FORM_STATE, /* of a breaker, as a word */
} rn_form;

typedef struct rn_column {
    const char *name;
    rn_form form;
    size_t offset;
    size_t flag; /* offset of the bool without which it is NULL; 0: none */
    bool unset;  /* RATION_UNSET or RATION_NEVER_US is NULL */
} rn_column;

typedef struct rn_table {
    const char *name;
    ration_record_type type;
    const rn_column *columns; /* those of the primary key first */
    int count;
    int keys;
} rn_table;

#define RN_TABLES (RATION_RECORD_PAUSE + 1)

extern const rn_table rn_tables[RN_TABLES]; /* by type */

/* The arrays of quotas, by their place below. */
enum { RN_ARRAY_PARTS = 0, RN_ARRAY_TIMELINE, RN_ARRAYS };
extern const char *const rn_array_names[RN_ARRAYS];

/* Is there something in the column? */
bool rn_column_is_set(const rn_column *column, const ration_record *record);
int64_t rn_column_number(const rn_column *column, const ration_record *record);
const void *rn_column_at(const rn_column *column, const ration_record *record); /* the member itself */
int64_t rn_column_unset(const rn_column *column);                               /* what stands for NULL */

#endif
