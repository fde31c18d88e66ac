/* SPDX-License-Identifier: MIT */
#ifndef RN_LEDGER_ROWS_H
#define RN_LEDGER_ROWS_H

#include <sqlite3.h>

#include "ledger/columns.h"

/* Records as rows of SQLite. */

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

#endif
