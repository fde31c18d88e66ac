/* SPDX-License-Identifier: MIT */
/*
 * The tables of the file, and records as rows of them.
 *
 * The arrays of quotas are tables of their own, in order of time: what changes is the newest, and the newest of all
 * quotas stand side by side, so a flush touches few pages.
 */
#include "ledger/rows.h"

#include <string.h>

#define ARRAY(name, comment)                                                                                           \
    "CREATE TABLE " name " ( -- " comment "\n"                                                                         \
    "  last INTEGER NOT NULL,\n"                                                                                       \
    "  quota_id INTEGER NOT NULL,\n"                                                                                   \
    "  units INTEGER NOT NULL,\n"                                                                                      \
    "  PRIMARY KEY (last, quota_id)\n"                                                                                 \
    ") STRICT, WITHOUT ROWID"

const char *const rn_schema[] = {
    "CREATE TABLE meta (\n"
    "  name TEXT NOT NULL PRIMARY KEY,\n"
    "  value ANY\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE quotas ( -- instants and spans in microseconds, amounts in millionths\n"
    "  provider TEXT NOT NULL,\n"
    "  limit_name TEXT NOT NULL,\n"
    "  scope_key TEXT NOT NULL,\n"
    "  window_start INTEGER NOT NULL, -- 0 where the window is a rolling one\n"
    "  id INTEGER NOT NULL UNIQUE, -- quota_id in quota_parts and quota_timeline\n"
    "  window_end INTEGER NOT NULL,\n"
    "  rolling INTEGER NOT NULL, -- the length of a rolling window\n"
    "  window_offset INTEGER NOT NULL, -- how far the end is from the calendar's\n"
    "  used INTEGER NOT NULL,\n"
    "  mark INTEGER, -- durability strict: what counts as used after a crash\n"
    "  carried INTEGER NOT NULL,\n"
    "  in_flight INTEGER NOT NULL,\n"
    "  observed_remaining INTEGER,\n"
    "  remaining_until INTEGER,\n"
    "  observed_max INTEGER,\n"
    "  external INTEGER NOT NULL,\n"
    "  exhausted INTEGER NOT NULL,\n"
    "  exhausted_until INTEGER,\n"
    "  dipped_at INTEGER,\n"
    "  moved_at INTEGER,\n"
    "  updated_at INTEGER NOT NULL,\n"
    "  PRIMARY KEY (provider, limit_name, scope_key, window_start)\n"
    ") STRICT, WITHOUT ROWID",

    ARRAY("quota_parts", "granted at or before an instant, and after that of the part before"),
    ARRAY("quota_timeline", "the same, of this window and the one before, for reports"),

    "CREATE TABLE buckets (\n"
    "  provider TEXT NOT NULL,\n"
    "  limit_name TEXT NOT NULL,\n"
    "  scope_key TEXT NOT NULL,\n"
    "  available INTEGER NOT NULL,\n"
    "  updated_at INTEGER NOT NULL,\n"
    "  PRIMARY KEY (provider, limit_name, scope_key)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE adaptive (\n"
    "  provider TEXT NOT NULL,\n"
    "  limit_name TEXT NOT NULL,\n"
    "  scope_key TEXT NOT NULL,\n"
    "  current INTEGER NOT NULL,\n"
    "  grown_at INTEGER NOT NULL,\n"
    "  throttled_at INTEGER,\n"
    "  decreased_at INTEGER,\n"
    "  stride INTEGER NOT NULL,\n"
    "  climb_to INTEGER NOT NULL,\n"
    "  updated_at INTEGER NOT NULL,\n"
    "  PRIMARY KEY (provider, limit_name, scope_key)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE penalties (\n"
    "  provider TEXT NOT NULL,\n"
    "  limit_name TEXT NOT NULL, -- '' where it is the account's; then scope_key is the account\n"
    "  scope_key TEXT NOT NULL,\n"
    "  began INTEGER NOT NULL,\n"
    "  until INTEGER NOT NULL,\n"
    "  doublings INTEGER NOT NULL,\n"
    "  events INTEGER NOT NULL,\n"
    "  updated_at INTEGER NOT NULL,\n"
    "  PRIMARY KEY (provider, limit_name, scope_key)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE breakers (\n"
    "  provider TEXT NOT NULL,\n"
    "  scope_key TEXT NOT NULL,\n"
    "  state TEXT NOT NULL, -- closed, open or half-open\n"
    "  generation INTEGER NOT NULL,\n"
    "  until INTEGER,\n"
    "  delay INTEGER NOT NULL,\n"
    "  updated_at INTEGER NOT NULL,\n"
    "  PRIMARY KEY (provider, scope_key)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE pauses (\n"
    "  provider TEXT NOT NULL,\n"
    "  limit_name TEXT NOT NULL,\n"
    "  scope_key TEXT NOT NULL,\n"
    "  paused INTEGER NOT NULL, -- 0: an operator has resumed it\n"
    "  updated_at INTEGER NOT NULL,\n"
    "  PRIMARY KEY (provider, limit_name, scope_key)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE runs ( -- of each job the last 20\n"
    "  job TEXT NOT NULL,\n"
    "  number INTEGER NOT NULL,\n"
    "  at INTEGER NOT NULL,\n"
    "  requests INTEGER NOT NULL,\n"
    "  retries INTEGER NOT NULL,\n"
    "  fan_out INTEGER NOT NULL,\n"
    "  PRIMARY KEY (job, number)\n"
    ") STRICT, WITHOUT ROWID",
    NULL,
};

/* ---- statements ---- */

static void columns_list(rn_builder *b, const rn_table *table, int from, int to, const char *each, const char *between)
{
    for (int i = from; i < to; i++) {
        rn_builder_str(b, i > from ? between : "");
        for (const char *c = each; *c != '\0'; c++) {
            if (*c == '$') {
                rn_builder_str(b, table->columns[i].name);
            } else {
                rn_builder_char(b, *c);
            }
        }
    }
}

void rn_sql_put(rn_builder *b, const rn_table *table)
{
    rn_builder_str(b, "INSERT INTO ");
    rn_builder_str(b, table->name);
    rn_builder_str(b, " (");
    columns_list(b, table, 0, table->count, "$", ", ");
    rn_builder_str(b, ") VALUES (");
    columns_list(b, table, 0, table->count, "?", ", ");
    rn_builder_str(b, ") ON CONFLICT (");
    columns_list(b, table, 0, table->keys, "$", ", ");
    rn_builder_str(b, ") DO UPDATE SET ");
    columns_list(b, table, table->keys, table->count, "$ = excluded.$", ", ");
}

void rn_sql_drop(rn_builder *b, const rn_table *table)
{
    rn_builder_str(b, "DELETE FROM ");
    rn_builder_str(b, table->name);
    rn_builder_str(b, " WHERE ");
    columns_list(b, table, 0, table->keys, "$ = ?", " AND ");
}

void rn_sql_read(rn_builder *b, const rn_table *table)
{
    rn_builder_str(b, "SELECT ");
    columns_list(b, table, 0, table->count, "$", ", ");
    rn_builder_str(b, " FROM ");
    rn_builder_str(b, table->name);
    rn_builder_str(b, " ORDER BY ");
    columns_list(b, table, 0, table->keys, "$", ", ");
}

/* ---- rows ---- */

static int text_bind(sqlite3_stmt *stmt, int place, ration_text text)
{
    /* An empty text without an address would be bound as NULL. */
    return sqlite3_bind_text(stmt, place, text.size > 0 ? text.data : "", (int)text.size, SQLITE_STATIC);
}

static int column_bind(sqlite3_stmt *stmt, int place, const rn_column *column, const ration_record *record, int64_t id)
{
    switch (column->form) {
    case RN_FORM_TEXT:
    case RN_FORM_LIMIT:
        return text_bind(stmt, place, *(const ration_text *)rn_column_at(column, record));
    case RN_FORM_ID:
        return sqlite3_bind_int64(stmt, place, id);
    case RN_FORM_STATE:
        return text_bind(stmt, place, ration_text_of(ration_circuit_state_name(record->u.breaker.state)));
    case RN_FORM_INSTANT:
    case RN_FORM_SPAN:
    case RN_FORM_UNITS:
    case RN_FORM_COUNT:
    case RN_FORM_SMALL:
    case RN_FORM_YES:
        break;
    }
    if (!rn_column_is_set(column, record))
        return sqlite3_bind_null(stmt, place);
    return sqlite3_bind_int64(stmt, place, rn_column_number(column, record));
}

int rn_row_bind(sqlite3_stmt *stmt, const rn_table *table, int count, const ration_record *record, int64_t id)
{
    int rc = SQLITE_OK;

    for (int i = 0; i < count && rc == SQLITE_OK; i++)
        rc = column_bind(stmt, i + 1, &table->columns[i], record, id);
    return rc;
}

static bool text_read(sqlite3_stmt *stmt, int place, ration_text *out)
{
    if (sqlite3_column_type(stmt, place) != SQLITE_TEXT)
        return false;
    /* The text before its length, as SQLite asks. */
    out->data = (const char *)sqlite3_column_text(stmt, place);
    out->size = (size_t)sqlite3_column_bytes(stmt, place);
    return out->data != NULL;
}

static bool state_read(ration_text text, ration_circuit_state *out)
{
    for (ration_circuit_state s = RATION_BREAKER_CLOSED; s <= RATION_BREAKER_HALF_OPEN; s++) {
        if (rn_text_is(text, ration_circuit_state_name(s))) {
            *out = s;
            return true;
        }
    }
    return false;
}

static bool number_put(const rn_column *column, int64_t number, void *into)
{
    const uint32_t small = (uint32_t)number;

    if (column->form == RN_FORM_SMALL) {
        memcpy(into, &small, sizeof small);
        return number >= 0 && number <= UINT32_MAX;
    }
    if (column->form == RN_FORM_YES) {
        *(bool *)into = number == 1;
        return number == 0 || number == 1;
    }
    memcpy(into, &number, sizeof number);
    return true;
}

static bool column_read(sqlite3_stmt *stmt, int place, const rn_column *column, ration_record *out, int64_t *id)
{
    void *into = (char *)out + column->offset;
    ration_text text;

    switch (column->form) {
    case RN_FORM_TEXT:
        return text_read(stmt, place, into);
    case RN_FORM_LIMIT:
        if (!text_read(stmt, place, &text))
            return false;
        *(ration_text *)into = text.size > 0 ? text : (ration_text){NULL, 0};
        return true;
    case RN_FORM_STATE:
        return text_read(stmt, place, &text) && state_read(text, &out->u.breaker.state);
    case RN_FORM_ID:
        *id = sqlite3_column_int64(stmt, place);
        return sqlite3_column_type(stmt, place) == SQLITE_INTEGER && *id > 0 && *id < INT64_MAX / 2;
    case RN_FORM_INSTANT:
    case RN_FORM_SPAN:
    case RN_FORM_UNITS:
    case RN_FORM_COUNT:
    case RN_FORM_SMALL:
    case RN_FORM_YES:
        break;
    }

    const bool may_be_null = column->flag != 0 || column->unset;
    const int type = sqlite3_column_type(stmt, place);

    if (type == SQLITE_NULL && may_be_null) {
        const int64_t nothing = column->unset ? rn_column_unset(column) : 0;

        memcpy(into, &nothing, sizeof nothing);
        return true;
    }
    if (column->flag != 0)
        *(bool *)(void *)((char *)out + column->flag) = true;
    return type == SQLITE_INTEGER && number_put(column, sqlite3_column_int64(stmt, place), into);
}

bool rn_row_read(sqlite3_stmt *stmt, const rn_table *table, ration_record *out, int64_t *id, const char **column)
{
    *out = (ration_record){.type = table->type};
    for (int i = 0; i < table->count; i++) {
        *column = table->columns[i].name;
        if (!column_read(stmt, i, &table->columns[i], out, id))
            return false;
    }
    return true;
}
