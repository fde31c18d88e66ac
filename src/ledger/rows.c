/* SPDX-License-Identifier: MIT */
/*
 * The members of records as columns, once: what the statements say, what is bound and what is read all comes from the
 * tables below.
 *
 * What is not known is NULL: a member has a value that stands for that, or a flag that says so. Instants are
 * microseconds since 1970, amounts micro-units, so nothing is rounded. Texts are kept byte by byte.
 *
 * The arrays of quotas are tables of their own, in order of time: what changes is the newest, and the newest of all
 * quotas stand side by side, so a flush touches few pages.
 */
#include "ledger/rows.h"

#include <string.h>

#define AT(m) offsetof(ration_record, m)
#define NAMED(form_of_limit)                                                                                           \
    {"provider", RN_FORM_TEXT, AT(provider), 0, false}, {"limit_name", form_of_limit, AT(limit), 0, false},            \
    {                                                                                                                  \
        "scope_key", RN_FORM_TEXT, AT(key), 0, false                                                                   \
    }
#define UPDATED                                                                                                        \
    {                                                                                                                  \
        "updated_at", RN_FORM_INSTANT, AT(at), 0, false                                                                \
    }

static const rn_column quotas[] = {
    NAMED(RN_FORM_TEXT),
    {"window_start", RN_FORM_INSTANT, AT(u.quota.window_start), 0, false},
    {"id", RN_FORM_ID, 0, 0, false},
    {"window_end", RN_FORM_INSTANT, AT(u.quota.window_end), 0, false},
    {"rolling", RN_FORM_SPAN, AT(u.quota.rolling_us), 0, false},
    {"window_offset", RN_FORM_SPAN, AT(u.quota.offset_us), 0, false},
    {"used", RN_FORM_UNITS, AT(u.quota.used), 0, false},
    {"mark", RN_FORM_UNITS, AT(u.quota.mark), 0, true},
    {"carried", RN_FORM_UNITS, AT(u.quota.carried), 0, false},
    {"in_flight", RN_FORM_UNITS, AT(u.quota.in_flight), 0, false},
    {"observed_remaining", RN_FORM_UNITS, AT(u.quota.remaining), AT(u.quota.has_remaining), false},
    {"remaining_until", RN_FORM_INSTANT, AT(u.quota.remaining_until), 0, true},
    {"observed_max", RN_FORM_UNITS, AT(u.quota.max), 0, true},
    {"external", RN_FORM_UNITS, AT(u.quota.external), 0, false},
    {"exhausted", RN_FORM_YES, AT(u.quota.exhausted), 0, false},
    {"exhausted_until", RN_FORM_INSTANT, AT(u.quota.exhausted_until), 0, true},
    {"dipped_at", RN_FORM_INSTANT, AT(u.quota.dipped_at), AT(u.quota.dipped), false},
    {"moved_at", RN_FORM_INSTANT, AT(u.quota.moved_at), AT(u.quota.moved), false},
    UPDATED,
};

static const rn_column buckets[] = {
    NAMED(RN_FORM_TEXT),
    {"available", RN_FORM_UNITS, AT(u.available), 0, false},
    UPDATED,
};

static const rn_column adaptive[] = {
    NAMED(RN_FORM_TEXT),
    {"current", RN_FORM_COUNT, AT(u.adaptive.limit), 0, false},
    {"grown_at", RN_FORM_INSTANT, AT(u.adaptive.grown_at), 0, false},
    {"throttled_at", RN_FORM_INSTANT, AT(u.adaptive.throttled_at), AT(u.adaptive.throttled), false},
    {"decreased_at", RN_FORM_INSTANT, AT(u.adaptive.decreased_at), AT(u.adaptive.decreased), false},
    {"stride", RN_FORM_COUNT, AT(u.adaptive.stride), 0, false},
    {"climb_to", RN_FORM_COUNT, AT(u.adaptive.climb_to), 0, false},
    UPDATED,
};

static const rn_column penalties[] = {
    NAMED(RN_FORM_LIMIT),
    {"began", RN_FORM_INSTANT, AT(u.penalty.began), 0, false},
    {"until", RN_FORM_INSTANT, AT(u.penalty.until), 0, false},
    {"doublings", RN_FORM_SMALL, AT(u.penalty.doublings), 0, false},
    {"events", RN_FORM_SMALL, AT(u.penalty.events), 0, false},
    UPDATED,
};

static const rn_column breakers[] = {
    {"provider", RN_FORM_TEXT, AT(provider), 0, false},
    {"scope_key", RN_FORM_TEXT, AT(key), 0, false},
    {"state", RN_FORM_STATE, AT(u.breaker.state), 0, false},
    {"generation", RN_FORM_COUNT, AT(u.breaker.generation), 0, false},
    {"until", RN_FORM_INSTANT, AT(u.breaker.until), 0, true},
    {"delay", RN_FORM_SPAN, AT(u.breaker.delay_us), 0, false},
    UPDATED,
};

static const rn_column pauses[] = {
    NAMED(RN_FORM_TEXT),
    {"paused", RN_FORM_YES, AT(u.paused), 0, false},
    UPDATED,
};

#define TABLE(t, columns, keys)                                                                                        \
    {                                                                                                                  \
#columns, t, columns, (int)(sizeof columns / sizeof columns[0]), keys                                          \
    }

const rn_table rn_tables[RN_TABLES] = {
    [RATION_RECORD_QUOTA] = TABLE(RATION_RECORD_QUOTA, quotas, 4),
    [RATION_RECORD_BUCKET] = TABLE(RATION_RECORD_BUCKET, buckets, 3),
    [RATION_RECORD_ADAPTIVE] = TABLE(RATION_RECORD_ADAPTIVE, adaptive, 3),
    [RATION_RECORD_PENALTY] = TABLE(RATION_RECORD_PENALTY, penalties, 3),
    [RATION_RECORD_BREAKER] = TABLE(RATION_RECORD_BREAKER, breakers, 2),
    [RATION_RECORD_PAUSE] = TABLE(RATION_RECORD_PAUSE, pauses, 3),
};

const char *const rn_array_names[RN_ARRAYS] = {"quota_parts", "quota_timeline"};

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

/* ---- columns ---- */

static const void *value_of(const rn_column *column, const ration_record *record)
{
    return (const char *)record + column->offset;
}

int64_t rn_column_number(const rn_column *column, const ration_record *record)
{
    int64_t number = 0;
    uint32_t small = 0;

    switch (column->form) {
    case RN_FORM_SMALL:
        memcpy(&small, value_of(column, record), sizeof small);
        return small;
    case RN_FORM_YES:
        return *(const bool *)value_of(column, record) ? 1 : 0;
    case RN_FORM_INSTANT:
    case RN_FORM_SPAN:
    case RN_FORM_UNITS:
    case RN_FORM_COUNT:
        memcpy(&number, value_of(column, record), sizeof number);
        break;
    case RN_FORM_TEXT:
    case RN_FORM_LIMIT:
    case RN_FORM_ID:
    case RN_FORM_STATE:
        break;
    }
    return number;
}

static int64_t unset_of(const rn_column *column)
{
    return column->form == RN_FORM_INSTANT ? RATION_NEVER_US : RATION_UNSET;
}

bool rn_column_is_set(const rn_column *column, const ration_record *record)
{
    if (column->flag != 0)
        return *(const bool *)((const char *)record + column->flag);
    if (column->unset)
        return rn_column_number(column, record) != unset_of(column);
    if (column->form == RN_FORM_TEXT || column->form == RN_FORM_LIMIT)
        return ((const ration_text *)value_of(column, record))->data != NULL;
    return true;
}

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
        return text_bind(stmt, place, *(const ration_text *)value_of(column, record));
    case RN_FORM_ID:
        return sqlite3_bind_int64(stmt, place, id);
    case RN_FORM_STATE:
        return text_bind(stmt, place, ration_text_of(ration_breaker_state_name(record->u.breaker.state)));
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

static bool state_read(ration_text text, ration_breaker_state *out)
{
    for (ration_breaker_state s = RATION_BREAKER_CLOSED; s <= RATION_BREAKER_HALF_OPEN; s++) {
        if (rn_text_is(text, ration_breaker_state_name(s))) {
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
        const int64_t nothing = column->unset ? unset_of(column) : 0;

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
