/* SPDX-License-Identifier: MIT */
/*
 * Quota fields in the formats of chapter 3, written as a provider writes them.
 *
 * Everything that tells a time is rounded up to the next second: a reset that a client reads a moment too early would
 * let it spend a window that this provider has not begun.
 */
#include "simulate/answer.h"

#include "base/civil.h"
#include "base/units.h"

#define SECOND_US 1000000
#define DAY_S 86400

static int64_t seconds_up(int64_t us)
{
    return us <= 0 ? 0 : rn_div_ceil(us, SECOND_US);
}

static void two_digits(rn_builder *b, int64_t value)
{
    if (value < 10)
        rn_builder_char(b, '0');
    rn_builder_int(b, value);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static void http_date_write(rn_builder *b, int64_t seconds)
{
    static const char *const weekdays[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const int64_t days = rn_div_floor(seconds, DAY_S);
    const int64_t second = seconds - days * DAY_S;
    const rn_civil date = rn_civil_of_days(days);

    rn_builder_str(b, weekdays[rn_civil_weekday(days)]);
    rn_builder_str(b, ", ");
    two_digits(b, date.day);
    rn_builder_char(b, ' ');
    rn_builder_str(b, months[date.month - 1]);
    rn_builder_char(b, ' ');
    rn_builder_int(b, date.year);
    rn_builder_char(b, ' ');
    two_digits(b, second / 3600);
    rn_builder_char(b, ':');
    two_digits(b, second / 60 % 60);
    rn_builder_char(b, ':');
    two_digits(b, second % 60);
    rn_builder_str(b, " GMT");
}

/* "1h2m3s", "6m0s", "59s" */
static void duration_write(rn_builder *b, int64_t seconds)
{
    if (seconds >= 3600) {
        rn_builder_int(b, seconds / 3600);
        rn_builder_char(b, 'h');
    }
    if (seconds >= 60) {
        rn_builder_int(b, seconds / 60 % 60);
        rn_builder_char(b, 'm');
    }
    rn_builder_int(b, seconds % 60);
    rn_builder_char(b, 's');
}

void rn_reset_write(rn_builder *b, ration_reset_format format, ration_time at, ration_time now)
{
    const int64_t left_s = seconds_up(rn_sub(at.us, now.us));
    const int64_t epoch_s = seconds_up(at.us);

    switch (format) {
    case RATION_RESET_AUTO:
    case RATION_RESET_EPOCH:
        rn_builder_int(b, epoch_s);
        break;
    case RATION_RESET_EPOCH_MS:
        rn_builder_int(b, rn_div_ceil(at.us, 1000));
        break;
    case RATION_RESET_DELTA:
        rn_builder_int(b, left_s);
        break;
    case RATION_RESET_DURATION:
        duration_write(b, left_s);
        break;
    case RATION_RESET_ISO8601:
        rn_builder_instant(b, ration_time_of(epoch_s * SECOND_US));
        break;
    case RATION_RESET_HTTP_DATE:
        http_date_write(b, epoch_s);
        break;
    }
}

void rn_answer_init(rn_answer *answer)
{
    answer->count = 0;
    answer->used = 0;
}

/* Values are built in place, behind those that are there. */
static rn_builder value_begin(rn_answer *answer)
{
    rn_builder b;

    rn_builder_init(&b, answer->text + answer->used, sizeof answer->text - answer->used);
    return b;
}

static void value_end(rn_answer *answer, const char *name, const rn_builder *b)
{
    if (b->full || answer->count == RN_ANSWER_FIELDS_MAX)
        return;
    answer->fields[answer->count++] = (rn_http_field){ration_text_of(name), {b->data, b->used}};
    answer->used += b->used;
}

void rn_answer_add(rn_answer *answer, const char *name, ration_text value)
{
    rn_builder b = value_begin(answer);

    rn_builder_text(&b, value);
    value_end(answer, name, &b);
}

static bool is_free(const rn_answer *answer, const char *name)
{
    const rn_http_fields fields = {answer->fields, answer->count};

    return name != NULL && rn_http_count(fields, name) == 0;
}

/* What a client may read of an amount: whole units where requests are counted, never less than none. */
static int64_t shown(const rn_quota_state *quota, int64_t amount)
{
    amount = rn_max(amount, 0);
    return quota->rule->counts != RATION_COUNTS_COST ? rn_whole_units(amount) : amount;
}

static void amount_add(rn_answer *answer, const rn_quota_state *quota, const char *name, int64_t amount)
{
    if (!is_free(answer, name))
        return;
    rn_builder b = value_begin(answer);
    rn_builder_micro(&b, shown(quota, amount));
    value_end(answer, name, &b);
}

static void own_fields_add(rn_answer *answer, const rn_quota_state *quota, ration_time now)
{
    const ration_sync *sync = &quota->rule->sync;

    amount_add(answer, quota, sync->limit_header, quota->max);
    amount_add(answer, quota, sync->remaining_header, quota->remaining);
    if (!is_free(answer, sync->reset_header) || !rn_time_known(quota->end))
        return;
    rn_builder b = value_begin(answer);
    rn_reset_write(&b, sync->reset_format, quota->end, now);
    value_end(answer, sync->reset_header, &b);
}

static int64_t window_us(const rn_quota_state *quota)
{
    return rn_time_known(quota->end) ? rn_sub(quota->end.us, quota->start.us) : quota->rule->window.rolling_us;
}

/* One member of a structured list: a string, then integers as parameters. Commas go between members. */
static void member_write(rn_builder *b, const rn_quota_state *quota)
{
    if (b->used > 0)
        rn_builder_str(b, ", ");
    rn_builder_char(b, '"');
    for (const char *c = quota->rule->name; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            rn_builder_char(b, '\\');
        rn_builder_char(b, *c);
    }
    rn_builder_char(b, '"');
}

static void parameter_write(rn_builder *b, const char *name, int64_t value)
{
    rn_builder_str(b, name);
    rn_builder_int(b, value);
}

static void policy_add(rn_answer *answer, const rn_quota_state *quotas, size_t count)
{
    rn_builder b = value_begin(answer);

    for (size_t i = 0; i < count; i++) {
        if (!quotas[i].rule->sync.standard)
            continue;
        member_write(&b, &quotas[i]);
        parameter_write(&b, ";q=", shown(&quotas[i], quotas[i].max) / RATION_UNIT);
        parameter_write(&b, ";w=", seconds_up(window_us(&quotas[i])));
    }
    if (b.used > 0)
        value_end(answer, "RateLimit-Policy", &b);
}

static void standard_add(rn_answer *answer, const rn_quota_state *quotas, size_t count, ration_time now)
{
    rn_builder b = value_begin(answer);

    for (size_t i = 0; i < count; i++) {
        if (!quotas[i].rule->sync.standard)
            continue;
        member_write(&b, &quotas[i]);
        parameter_write(&b, ";r=", shown(&quotas[i], quotas[i].remaining) / RATION_UNIT);
        if (rn_time_known(quotas[i].end))
            parameter_write(&b, ";t=", seconds_up(rn_sub(quotas[i].end.us, now.us)));
    }
    if (b.used > 0)
        value_end(answer, "RateLimit", &b);
}

void rn_answer_quotas(rn_answer *answer, const rn_quota_state *quotas, size_t count, ration_time now)
{
    for (size_t i = 0; i < count; i++)
        own_fields_add(answer, &quotas[i], now);
    policy_add(answer, quotas, count);
    standard_add(answer, quotas, count, now);
}

void rn_answer_retry(rn_answer *answer, int64_t wait_us)
{
    if (wait_us == RATION_UNSET)
        return;

    rn_builder b = value_begin(answer);
    rn_builder_int(&b, seconds_up(wait_us));
    value_end(answer, "Retry-After", &b);

    b = value_begin(answer);
    rn_builder_int(&b, rn_div_ceil(rn_max(wait_us, 0), 1000));
    value_end(answer, "Retry-After-Ms", &b);
}
