/* SPDX-License-Identifier: MIT */
#ifndef RN_LEDGER_ROWS_H
#define RN_LEDGER_ROWS_H

#include <sqlite3.h>

#include <ration/state.h>

#include "base/text.h"

/* Records as rows: one table of columns for each type of record, for both ways, and for who shows them. */

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

/* How each table is made, NULL at the end; the text is kept by SQLite as it stands, and compared when it is opened. */
extern const char *const rn_schema[];

/* Statements, with a parameter for each column, or each column of the key, in their order. */
void rn_sql_put(rn_builder *b, const rn_table *table);
void rn_sql_drop(rn_builder *b, const rn_table *table);
void rn_sql_read(rn_builder *b, const rn_table *table);

/* Bind the first `count` columns. An SQLite code. */
int rn_row_bind(sqlite3_stmt *stmt, const rn_table *table, int count, const ration_record *record, int64_t id);

/* The row that `stmt` is at. Texts are borrowed until its next step. False: `*column` is of another type than its
 * table says, or out of range. */
bool rn_row_read(sqlite3_stmt *stmt, const rn_table *table, ration_record *out, int64_t *id, const char **column);

/* Is there something in the column? For who shows records. */
bool rn_column_is_set(const rn_column *column, const ration_record *record);
int64_t rn_column_number(const rn_column *column, const ration_record *record);

#endif
