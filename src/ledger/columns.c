/* SPDX-License-Identifier: MIT */
/*
 * The members of records as columns, once: what statements say, what is bound, what is read and what is shown all comes
 * from the tables below.
 *
 * What is not known is NULL: a member has a value that stands for that, or a flag that says so. Instants are
 * microseconds since 1970, amounts micro-units, so nothing is rounded. Texts are kept byte by byte.
 */
#include "ledger/columns.h"

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
#columns, (t), (columns), (int)(sizeof(columns) / sizeof((columns)[0])), (keys)                                \
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

const void *rn_column_at(const rn_column *column, const ration_record *record)
{
    return (const char *)record + column->offset;
}

int64_t rn_column_number(const rn_column *column, const ration_record *record)
{
    int64_t number = 0;
    uint32_t small = 0;

    switch (column->form) {
    case RN_FORM_SMALL:
        memcpy(&small, rn_column_at(column, record), sizeof small);
        return small;
    case RN_FORM_YES:
        return *(const bool *)rn_column_at(column, record) ? 1 : 0;
    case RN_FORM_INSTANT:
    case RN_FORM_SPAN:
    case RN_FORM_UNITS:
    case RN_FORM_COUNT:
        memcpy(&number, rn_column_at(column, record), sizeof number);
        break;
    case RN_FORM_TEXT:
    case RN_FORM_LIMIT:
    case RN_FORM_ID:
    case RN_FORM_STATE:
        break;
    }
    return number;
}

int64_t rn_column_unset(const rn_column *column)
{
    return column->form == RN_FORM_INSTANT ? RATION_NEVER_US : RATION_UNSET;
}

bool rn_column_is_set(const rn_column *column, const ration_record *record)
{
    if (column->flag != 0)
        return *(const bool *)((const char *)record + column->flag);
    if (column->unset)
        return rn_column_number(column, record) != rn_column_unset(column);
    if (column->form == RN_FORM_TEXT || column->form == RN_FORM_LIMIT)
        return ((const ration_text *)rn_column_at(column, record))->data != NULL;
    return true;
}
