/* SPDX-License-Identifier: MIT */
/* Header fields: counts, resets in every format, dates, Retry-After; and values that nobody should send. */
#include "support/check.h"

#include "base/units.h"
#include "core/fields.h"
#include "core/scan.h"

#define S INT64_C(1000000)
#define MS INT64_C(1000)
#define DAY (86400 * S)
#define NOW (1700000000 * S) /* 2023-11-14T22:13:20Z, a Tuesday */

static ration_response response_of(const ration_header *headers, size_t count)
{
    const ration_response response = {.status = 200, .headers = headers, .header_count = count};

    return response;
}

static void test_find(void **state)
{
    const ration_header headers[] = {
        {{"X-One", 5}, {" 1\t", 3}},
        {{"x-two", 5}, {"2", 1}},
        {{"X-TWO", 5}, {"3", 1}},
        {{"X-Empty", 7}, {NULL, 0}},
    };
    const ration_response response = response_of(headers, 4);
    ration_text value = {0};

    (void)state;
    CHECK_EQ(rn_field_find(&response, "x-oNE", &value), RN_FIELD_OK);
    CHECK_TEXT(value, "1");
    CHECK_EQ(rn_field_find(&response, "x-two", &value), RN_FIELD_BAD);
    CHECK_TEXT(value, "1");
    CHECK_EQ(rn_field_find(&response, "x-three", &value), RN_FIELD_ABSENT);
    CHECK_EQ(rn_field_find(&response, "", &value), RN_FIELD_ABSENT);
    CHECK_EQ(rn_field_find(&response, NULL, &value), RN_FIELD_ABSENT);
    CHECK_EQ(rn_field_find(&response, "x-empty", &value), RN_FIELD_OK);
    CHECK_EQ(value.size, 0);
}

static void test_count(void **state)
{
    static const struct {
        const char *why, *value;
        int64_t want; /* -1: bad */
    } rows[] = {
        {"whole", "4990", 4990 * S},
        {"a fraction", "12.5", 12500000},
        {"none", "0", 0},
        {"blanks around", "\t 7 ", 7 * S},
        {"leading zeros", "007", 7 * S},
        {"below a micro-unit: down", "1.9999999", 1999999},
        {"to the digit", "1.2345678", 1234567},
        {"the largest", "9007199254.740992", RATION_UNITS_MAX},
        {"one more", "9007199254.740993", -1},
        {"many digits", "99999999999999999999999999", -1},
        {"negative", "-1", -1},
        {"plus", "+1", -1},
        {"not a number", "NaN", -1},
        {"infinite", "inf", -1},
        {"empty", "", -1},
        {"blank", " ", -1},
        {"an exponent", "1e3", -1},
        {"hexadecimal", "0x10", -1},
        {"a point", ".", -1},
        {"a point behind", "1.", -1},
        {"a point before", ".5", -1},
        {"two", "1 2", -1},
        {"a list", "1, 2", -1},
        {"a thousand", "1,000", -1},
        {"no UTF-8", "\xff\xfe", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t got = -1;
        const rn_field field = rn_field_count(ration_text_of(rows[i].value), &got);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(field, rows[i].want < 0 ? RN_FIELD_BAD : RN_FIELD_OK);
        CHECK_EQ(got, rows[i].want);
    }
}

static void test_reset(void **state)
{
    static const struct {
        const char *why;
        ration_reset_format format;
        const char *value;
        int64_t want; /* -1: bad */
    } rows[] = {
        {"a delta gets a second", RATION_RESET_AUTO, "30", NOW + 31 * S},
        {"not one with a fraction", RATION_RESET_AUTO, "30.0", NOW + 30 * S},
        {"the fraction", RATION_RESET_AUTO, "0.25", NOW + S / 4},
        {"below a microsecond: up", RATION_RESET_AUTO, "0.0000001", NOW + 1},
        {"nothing is now", RATION_RESET_AUTO, "0", NOW},
        {"and so it is", RATION_RESET_AUTO, "0.0", NOW},
        {"1e9 is a delta", RATION_RESET_AUTO, "1000000000", NOW + 1000000001 * S},
        {"above it an epoch", RATION_RESET_AUTO, "1000000000.5", 1000000000 * S + S / 2},
        {"an epoch", RATION_RESET_AUTO, "1700000060", NOW + 60 * S},
        {"1e12 is too late an epoch", RATION_RESET_AUTO, "1000000000000", -1},
        {"above it milliseconds", RATION_RESET_AUTO, "1000000000001", 1000000000001 * MS},
        {"milliseconds", RATION_RESET_AUTO, "1700000060500", NOW + 60 * S + S / 2},
        {"minutes", RATION_RESET_AUTO, "6m0s", NOW + 360 * S},
        {"hours", RATION_RESET_AUTO, "1h2m", NOW + 3720 * S},
        {"milliseconds of a duration", RATION_RESET_AUTO, "20ms", NOW + 20 * MS},
        {"a fraction of a duration", RATION_RESET_AUTO, "1.5s", NOW + S + S / 2},
        {"nanoseconds of one, up", RATION_RESET_AUTO, "7.000000001s", NOW + 7 * S + 1},
        {"microseconds", RATION_RESET_AUTO, "350us", NOW + 350},
        {"with the micro sign", RATION_RESET_AUTO, "350\xc2\xb5s", NOW + 350},
        {"with the Greek letter", RATION_RESET_AUTO, "350\xce\xbcs", NOW + 350},
        {"days", RATION_RESET_AUTO, "2d3h", NOW + 2 * DAY + 10800 * S},
        {"ISO 8601", RATION_RESET_AUTO, "2023-11-14T22:14:20Z", NOW + 60 * S},
        {"an HTTP date", RATION_RESET_AUTO, "Tue, 14 Nov 2023 22:14:20 GMT", NOW + 60 * S},
        {"negative", RATION_RESET_AUTO, "-1", -1},
        {"empty", RATION_RESET_AUTO, "", -1},
        {"a word", RATION_RESET_AUTO, "soon", -1},
        {"no such unit", RATION_RESET_AUTO, "5w", -1},
        {"a unit alone", RATION_RESET_AUTO, "s", -1},
        {"a second number without a unit", RATION_RESET_AUTO, "5m3", -1},
        {"many digits", RATION_RESET_AUTO, "99999999999999999999999999", -1},
        {"many days", RATION_RESET_AUTO, "99999999999999999999d", -1},
        {"an epoch by name", RATION_RESET_EPOCH, "60", 60 * S},
        {"which is no date", RATION_RESET_EPOCH, "2023-11-14T22:14:20Z", -1},
        {"milliseconds by name", RATION_RESET_EPOCH_MS, "1500.5", 1500500},
        {"not a duration", RATION_RESET_EPOCH_MS, "5s", -1},
        {"a delta by name, however large", RATION_RESET_DELTA, "2000000000", NOW + 2000000001 * S},
        {"not NaN", RATION_RESET_DELTA, "NaN", -1},
        {"a duration by name", RATION_RESET_DURATION, "1m", NOW + 60 * S},
        {"not a number", RATION_RESET_DURATION, "60", -1},
        {"ISO 8601 by name", RATION_RESET_ISO8601, "2023-11-14T22:14:20Z", NOW + 60 * S},
        {"not a number", RATION_RESET_ISO8601, "1700000060", -1},
        {"an HTTP date by name", RATION_RESET_HTTP_DATE, "Tue Nov 14 22:14:20 2023", NOW + 60 * S},
        {"not ISO 8601", RATION_RESET_HTTP_DATE, "2023-11-14T22:14:20Z", -1},
        {"no such format", (ration_reset_format)99, "1", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_time got = {-1};
        const rn_field field = rn_field_reset(ration_text_of(rows[i].value), rows[i].format, ration_time_of(NOW), &got);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(field, rows[i].want < 0 ? RN_FIELD_BAD : RN_FIELD_OK);
        CHECK_EQ(got.us, rows[i].want);
    }
}

#define BAD INT64_MIN

static void test_http_date(void **state)
{
    static const struct {
        const char *why, *value;
        int64_t want_s;
    } rows[] = {
        {"IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"RFC 850", "Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
        {"asctime", "Sun Nov  6 08:49:37 1994", 784111777},
        {"asctime, two digits", "Wed Nov 16 08:49:37 1994", 784975777},
        {"any weekday will do", "Mon, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"any case", "sun, 06 nov 1994 08:49:37 gmt", 784111777},
        {"one digit", "Sun, 6 Nov 1994 08:49:37 GMT", 784111777},
        {"a leap second is the next", "Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
        {"before 1970", "Wed, 31 Dec 1969 23:59:59 GMT", -1},
        {"long before", "Mon, 01 Jan 1900 00:00:00 GMT", -2208988800},
        {"a leap day", "Thu, 29 Feb 2024 00:00:00 GMT", 1709164800},
        {"50 years ahead", "Friday, 01-Dec-73 00:00:00 GMT", 3279312000},
        {"51 years ahead was 49 ago", "Sunday, 01-Dec-74 00:00:00 GMT", 155088000},
        {"too far ahead", "Fri, 01 Dec 9999 00:00:00 GMT", BAD},
        {"too long ago", "Fri, 01 Dec 0001 00:00:00 GMT", BAD},
        {"no leap day", "Wed, 29 Feb 2023 00:00:00 GMT", BAD},
        {"day 0", "Wed, 00 Feb 2023 00:00:00 GMT", BAD},
        {"day 32", "Wed, 32 Jan 2023 00:00:00 GMT", BAD},
        {"no such month", "Wed, 01 Foo 2023 00:00:00 GMT", BAD},
        {"hour 24", "Wed, 01 Feb 2023 24:00:00 GMT", BAD},
        {"minute 60", "Wed, 01 Feb 2023 00:60:00 GMT", BAD},
        {"second 61", "Wed, 01 Feb 2023 00:00:61 GMT", BAD},
        {"another zone", "Wed, 01 Feb 2023 00:00:00 CET", BAD},
        {"no zone", "Wed, 01 Feb 2023 00:00:00", BAD},
        {"more behind", "Wed, 01 Feb 2023 00:00:00 GMT x", BAD},
        {"asctime with a zone", "Sun Nov  6 08:49:37 1994 GMT", BAD},
        {"no seconds", "Wed, 01 Feb 2023 00:00 GMT", BAD},
        {"a short weekday", "We, 01 Feb 2023 00:00:00 GMT", BAD},
        {"a weekday alone", "Wed", BAD},
        {"a weekday and a comma", "Wed,", BAD},
        {"cut", "Wed, 01 Feb 2023 0", BAD},
        {"empty", "", BAD},
        {"a year of two digits in the first form", "Wed, 01 Feb 23 00:00:00 GMT", BAD},
        {"a year of four in the second", "Wednesday, 01-Feb-2023 00:00:00 GMT", BAD},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_time got = {0};
        const rn_field field = rn_field_http_date(ration_text_of(rows[i].value), ration_time_of(NOW), &got);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(field, rows[i].want_s == BAD ? RN_FIELD_BAD : RN_FIELD_OK);
        if (field == RN_FIELD_OK)
            CHECK_EQ(got.us, rows[i].want_s * S);
    }
}

static void test_iso8601(void **state)
{
    static const struct {
        const char *why, *value;
        int64_t want_us;
    } rows[] = {
        {"UTC", "2023-11-14T22:13:20Z", NOW},
        {"small letters", "2023-11-14t22:13:20z", NOW},
        {"a blank for the T", "2023-11-14 22:13:20Z", NOW},
        {"east", "2023-11-15T00:13:20+02:00", NOW},
        {"west", "2023-11-14T16:43:20-0530", NOW},
        {"hours alone", "2023-11-15T00:13:20+02", NOW},
        {"no offset is UTC", "2023-11-14T22:13:20", NOW},
        {"no seconds", "2023-11-14T22:13Z", NOW - 20 * S},
        {"a date alone", "2023-11-14", NOW - 80000 * S},
        {"a fraction", "2023-11-14T22:13:20.5Z", NOW + S / 2},
        {"with a comma", "2023-11-14T22:13:20,25Z", NOW + S / 4},
        {"nanoseconds, up", "2023-11-14T22:13:20.000000001Z", NOW + 1},
        {"zeros beyond", "2023-11-14T22:13:20.0000000000Z", NOW},
        {"a leap second", "2016-12-31T23:59:60Z", 1483228800 * S},
        {"before 1970", "1969-12-31T23:59:59.5Z", -S / 2},
        {"too long ago", "0000-01-01T00:00:00Z", BAD},
        {"too far ahead", "9999-01-01T00:00:00Z", BAD},
        {"month 13", "2023-13-01T00:00:00Z", BAD},
        {"month 0", "2023-00-01T00:00:00Z", BAD},
        {"no such day", "2023-02-30T00:00:00Z", BAD},
        {"hour 24", "2023-11-14T24:00:00Z", BAD},
        {"an offset without end", "2023-11-14T22:13:20+2", BAD},
        {"an offset of a day", "2023-11-14T22:13:20+24:00", BAD},
        {"of 60 minutes", "2023-11-14T22:13:20+01:60", BAD},
        {"a colon and nothing", "2023-11-14T22:13:20+01:", BAD},
        {"a point and nothing", "2023-11-14T22:13:20.Z", BAD},
        {"more behind", "2023-11-14T22:13:20Zx", BAD},
        {"an offset and more", "2023-11-14T22:13:20+01:00x", BAD},
        {"no time after the T", "2023-11-14T", BAD},
        {"a week", "2023-W46-2", BAD},
        {"basic form", "20231114T221320Z", BAD},
        {"empty", "", BAD},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_time got = {0};
        const rn_field field = rn_field_iso8601(ration_text_of(rows[i].value), &got);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(field, rows[i].want_us == BAD ? RN_FIELD_BAD : RN_FIELD_OK);
        if (field == RN_FIELD_OK)
            CHECK_EQ(got.us, rows[i].want_us);
    }
}

static void test_retry_after(void **state)
{
    static const struct {
        const char *why, *ms, *first, *second;
        rn_field is;
        int64_t want; /* from now */
    } rows[] = {
        {"nothing", NULL, NULL, NULL, RN_FIELD_ABSENT, 0},
        {"seconds, as they are", NULL, "120", NULL, RN_FIELD_OK, 120 * S},
        {"a fraction", NULL, "0.5", NULL, RN_FIELD_OK, S / 2},
        {"below a microsecond: up", NULL, "0.0000001", NULL, RN_FIELD_OK, 1},
        {"0 is now", NULL, "0", NULL, RN_FIELD_OK, 0},
        {"a date", NULL, "Tue, 14 Nov 2023 22:13:50 GMT", NULL, RN_FIELD_OK, 30 * S},
        {"an old date", NULL, "Tuesday, 14-Nov-23 22:13:50 GMT", NULL, RN_FIELD_OK, 30 * S},
        {"an older date", NULL, "Tue Nov 14 22:13:50 2023", NULL, RN_FIELD_OK, 30 * S},
        {"a date that has passed", NULL, "Tue, 14 Nov 2023 22:13:19 GMT", NULL, RN_FIELD_OK, -S},
        {"of two, the later", NULL, "10", "20", RN_FIELD_OK, 20 * S},
        {"in any order", NULL, "20", "10", RN_FIELD_OK, 20 * S},
        {"a bad one beside a good", NULL, "soon", "10", RN_FIELD_OK, 10 * S},
        {"a good one beside a bad", NULL, "10", "soon", RN_FIELD_OK, 10 * S},
        {"two bad", NULL, "soon", "later", RN_FIELD_BAD, 0},
        {"milliseconds first", "250", "1", NULL, RN_FIELD_OK, 250 * MS},
        {"fractions of them", "0.5", NULL, NULL, RN_FIELD_OK, 500},
        {"bad ones fall back", "x", "1", NULL, RN_FIELD_OK, S},
        {"bad ones alone", "-5", NULL, NULL, RN_FIELD_BAD, 0},
        {"negative", NULL, "-1", NULL, RN_FIELD_BAD, 0},
        {"empty", NULL, "", NULL, RN_FIELD_BAD, 0},
        {"a wish without end", NULL, "99999999999999999999999", NULL, RN_FIELD_OK, RATION_TIME_MAX_US - NOW},
        {"a duration", NULL, "5s", NULL, RN_FIELD_BAD, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const names[] = {"Retry-After-Ms", "retry-after", "RETRY-AFTER"};
        const char *const values[] = {rows[i].ms, rows[i].first, rows[i].second};
        ration_header headers[3];
        size_t count = 0;
        ration_time got = {NOW};

        for (size_t k = 0; k < 3; k++) {
            if (values[k] != NULL)
                headers[count++] = (ration_header){ration_text_of(names[k]), ration_text_of(values[k])};
        }

        const ration_response response = response_of(headers, count);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_field_retry_after(&response, ration_time_of(NOW), &got), rows[i].is);
        CHECK_EQ(got.us - NOW, rows[i].want);
    }
}

static void test_twice_in_milliseconds(void **state)
{
    const ration_header headers[] = {
        {{"retry-after-ms", 14}, {"10", 2}},
        {{"retry-after-ms", 14}, {"20", 2}},
        {{"retry-after", 11}, {"1", 1}},
    };
    ration_response response = response_of(headers, 3);
    ration_time got = {0};

    (void)state;
    CHECK_EQ(rn_field_retry_after(&response, ration_time_of(NOW), &got), RN_FIELD_OK);
    CHECK_EQ(got.us, NOW + S);
    response.header_count = 2;
    CHECK_EQ(rn_field_retry_after(&response, ration_time_of(NOW), &got), RN_FIELD_BAD);
}

static void test_scan(void **state)
{
    ration_text text = ration_text_of("12ab");
    int64_t digits = 0;
    rn_number number = {0};

    (void)state;
    CHECK(!rn_scan_digits(&text, 3, 4, &digits));
    CHECK_TEXT(text, "12ab");
    CHECK(rn_scan_digits(&text, 1, 1, &digits));
    CHECK_EQ(digits, 1);
    CHECK(rn_scan_number(&text, &number));
    CHECK_EQ(number.whole, 2);
    CHECK(!rn_scan_number(&text, &number));
    CHECK(!rn_scan_char(&text, 'b'));
    CHECK_TEXT(rn_scan_letters(&text), "ab");
    CHECK_EQ(text.size, 0);
    CHECK(!rn_scan_char(&text, 'b'));

    number = (rn_number){.whole = 10, .micro = 1};
    CHECK(rn_number_above(&number, 10));
    CHECK(!rn_number_above(&number, 11));
    number.micro = 0;
    CHECK(!rn_number_above(&number, 10));
    CHECK_EQ(rn_number_times(&number, INT64_MAX), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),    cmocka_unit_test(test_count),
        cmocka_unit_test(test_reset),   cmocka_unit_test(test_http_date),
        cmocka_unit_test(test_iso8601), cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_scan),    cmocka_unit_test(test_twice_in_milliseconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
