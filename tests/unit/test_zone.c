/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"
#include "support/tzif.h"

#include "base/mem.h"
#include "core/zone.h"
#include "core/zone_posix.h"

#define H 3600
#define MANY 4096
#define YEAR_S INT64_C(31536000)

static rn_zone *zone_open(const tzif *file)
{
    rn_zone *zone = NULL;

    CHECK_EQ(rn_zone_new(rn_mem_default(), file->bytes, file->size, &zone), RATION_OK);
    return zone;
}

static void check_segment(const rn_zone *zone, int64_t at, int32_t offset, int64_t from, int64_t to)
{
    int64_t got_from = 0;
    int64_t got_to = 0;

    CHECK_EQ(rn_zone_segment(zone, at, &got_from, &got_to), offset);
    CHECK_EQ(got_from, from);
    CHECK_EQ(got_to, to);
    CHECK_EQ(rn_zone_offset(zone, at), offset);
}

static void no_zone_is_utc(void **state)
{
    (void)state;
    check_segment(NULL, 0, 0, INT64_MIN, INT64_MAX);
    check_segment(NULL, INT64_MIN, 0, INT64_MIN, INT64_MAX);
    check_segment(NULL, INT64_MAX, 0, INT64_MIN, INT64_MAX);
    rn_zone_free(NULL);
}

static void a_table_is_read_as_stretches(void **state)
{
    static const tzif_step steps[] = {{0, -1234}, {-100, H}, {0, 2 * H}, {50, 2 * H}, {100, H}, {900, H}};
    tzif file;

    (void)state;
    tzif_write(&file, steps, 6, "");

    rn_zone *const zone = zone_open(&file);

    check_segment(zone, INT64_MIN, -1234, INT64_MIN, -100);
    check_segment(zone, -101, -1234, INT64_MIN, -100);
    check_segment(zone, -100, H, -100, 0);
    check_segment(zone, 0, 2 * H, 0, 100);
    check_segment(zone, 60, 2 * H, 0, 100);
    check_segment(zone, 100, H, 100, INT64_MAX);
    check_segment(zone, INT64_MAX, H, 100, INT64_MAX);
    rn_zone_free(zone);
}

static void the_rule_joins_the_table(void **state)
{
    /* 2024-03-31T01:00Z and 2024-10-27T01:00Z, the ends of 2025's summer. */
    static const tzif_step agrees[] = {{0, 0}, {0, H}, {1711846800, 2 * H}, {1729990800, H}, {1735689600, H}};
    static const tzif_step differs[] = {{0, 0}, {1735689600, 3 * H}};
    tzif file;

    (void)state;
    tzif_write(&file, agrees, 5, "CET-1CEST,M3.5.0,M10.5.0/3");

    rn_zone *zone = zone_open(&file);

    check_segment(zone, 1729990799, 2 * H, 1711846800, 1729990800);
    check_segment(zone, 1729990800, H, 1729990800, 1743296400);
    check_segment(zone, 1735689600, H, 1729990800, 1743296400);
    check_segment(zone, 1743296400, 2 * H, 1743296400, 1761440400);
    check_segment(zone, 1761440400, H, 1761440400, 1774746000);
    rn_zone_free(zone);

    /* A rule that contradicts the last step begins where the table ends. */
    tzif_write(&file, differs, 2, "CET-1");
    zone = zone_open(&file);
    check_segment(zone, 1735689599, 0, INT64_MIN, 1735689600);
    check_segment(zone, 1735689600, H, 1735689600, INT64_MAX);
    rn_zone_free(zone);
}

/* A stretch that reaches over the table's end, seen from before it, while the last step changed nothing. */
static void a_stretch_over_the_end_of_the_table(void **state)
{
    static const tzif_step steps[] = {{0, 0}, {1729990800, H}, {1735689600, H}};
    static const tzif_step other[] = {{0, 0}, {1729990800, 5 * H}, {1735689600, 5 * H}};
    tzif file;

    (void)state;
    tzif_write(&file, steps, 3, "CET-1CEST,M3.5.0,M10.5.0/3");

    rn_zone *zone = zone_open(&file);

    check_segment(zone, 1735689599, H, 1729990800, 1743296400);
    rn_zone_free(zone);
    tzif_write(&file, other, 3, "CET-1CEST,M3.5.0,M10.5.0/3");
    zone = zone_open(&file);
    check_segment(zone, 1735689599, 5 * H, 1729990800, 1735689600);
    check_segment(zone, 1735689600, H, 1735689600, 1743296400);
    rn_zone_free(zone);
}

static void version_1_files(void **state)
{
    static const tzif_step steps[] = {{0, -5 * H}, {-1000, -4 * H}, {1000, -5 * H}};
    tzif file = {.size = 0};

    (void)state;
    tzif_table(&file, '\0', 4, steps, 3);

    rn_zone *const zone = zone_open(&file);

    check_segment(zone, -1001, -5 * H, INT64_MIN, -1000);
    check_segment(zone, 0, -4 * H, -1000, 1000);
    check_segment(zone, 1000, -5 * H, 1000, INT64_MAX);
    rn_zone_free(zone);
}

static void rules(void **state)
{
    static const struct {
        const char *why, *rule;
        int64_t at;
        int32_t offset;
        int64_t from, to;
    } rows[] = {
        {"no summer", "<+0545>-5:45", 0, 20700, INT64_MIN, INT64_MAX},
        {"seconds", "LMT0:44:30", 0, -2670, INT64_MIN, INT64_MAX},
        {"a plus is west too", "EST+5", 0, -5 * H, INT64_MIN, INT64_MAX},
        {"north, winter", "EST5EDT,M3.2.0,M11.1.0", 1730703600, -5 * H, 1730613600, 1741503600},
        {"north, summer", "EST5EDT,M3.2.0,M11.1.0", 1720000000, -4 * H, 1710054000, 1730613600},
        {"north, on the dot", "EST5EDT,M3.2.0,M11.1.0", 1710054000, -4 * H, 1710054000, 1730613600},
        {"north, a second before", "EST5EDT,M3.2.0,M11.1.0", 1710053999, -5 * H, 1699164000, 1710054000},
        {"south, over the new year", "AEST-10AEDT,M10.1.0,M4.1.0/3", 1735689600, 11 * H, 1728144000, 1743868800},
        {"half an hour of summer", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1735689600, 11 * H, 1728142200, 1743865200},
        {"winter is the saving", "IST-1GMT0,M10.5.0,M3.5.0/1", 1735689600, 0, 1729990800, 1743296400},
        {"Julian days skip 29 February", "AAA0BBB,J59/0,J61/0", 1709164800, H, 1709078400, 1709337600 - H},
        {"counted days do not", "AAA0BBB,58/0,60/0", 1709164799, H, 1709078400, 1709251200 - H},
        {"times before midnight", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1711846800, -H, 1711846800, 1729990800},
        {"times after the day", "EET-2EEST,M3.4.4/50,M10.4.4/50", 1712000000, 3 * H, 1711756800, 1729897200},
        {"a week before and after", "AAA0BBB,M1.1.1/-167,M12.5.0/167", 1704067200, H, 1703466000, 1704578400},
        {"the fifth is the last", "AAA0BBB,M2.5.4/0,M2.5.5/0", 1709164800, H, 1709164800, 1740700800 - H},
        {"no difference", "AAA1BBB1,M3.2.0,M11.1.0", 1720000000, -H, INT64_MIN, INT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tzif file;

        CHECK_ROW(rows[i].why);
        tzif_write_rule(&file, rows[i].rule);

        rn_zone *const zone = zone_open(&file);

        check_segment(zone, rows[i].at, rows[i].offset, rows[i].from, rows[i].to);
        rn_zone_free(zone);
    }
}

/* RFC 8536, 3.3.1: summer time all year is the end of one at the beginning of the next. */
static void summer_that_never_ends(void **state)
{
    tzif file;

    (void)state;
    tzif_write_rule(&file, "XXX3EDT4,0/0,J365/23");

    rn_zone *const zone = zone_open(&file);

    for (int64_t at = 1600000000; at < 1900000000; at += 10000000) {
        int64_t from = 0;
        int64_t to = 0;

        CHECK_EQ(rn_zone_segment(zone, at, &from, &to), -4 * H);
        CHECK(from < at - YEAR_S && to > at + YEAR_S);
    }
    CHECK_EQ(rn_zone_offset(zone, 1704081600), -4 * H);
    CHECK_EQ(rn_zone_offset(zone, 1704081599), -4 * H);
    rn_zone_free(zone);
}

/* Walking from stretch to stretch covers the line without holes, to the ends of int64. */
static void stretches_meet(void **state)
{
    static const int64_t starts[] = {INT64_MIN,  INT64_MIN / 2,          -INT64_C(9223372036855), -1,
                                     1700000000, INT64_C(9223372036854), INT64_MAX / 2,           INT64_MAX - 1};
    tzif file;

    (void)state;
    tzif_write_rule(&file, "EST5EDT,M3.2.0,M11.1.0");

    rn_zone *const zone = zone_open(&file);

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        int64_t at = starts[i];

        for (int step = 0; step < 100 && at != INT64_MAX; step++) {
            int64_t from = 0;
            int64_t to = 0;

            (void)rn_zone_segment(zone, at, &from, &to);
            CHECK(from <= at && at < to);
            if (step > 0)
                CHECK_EQ(from, at);
            at = to;
        }
    }
    rn_zone_free(zone);
}

static void rules_that_are_none(void **state)
{
    static const char *const rows[] = {
        "A5",
        "AB5",
        "5",
        "EST",
        "EST25",
        "EST5:60",
        "EST5:00:60",
        "EST5:",
        "EST--5",
        "EST5EDT",
        "EST5EDT4",
        "EST5EDT,",
        "EST5EDT,M3.2.0",
        "EST5EDT,M3.2.0,",
        "EST5EDT,M3.2.0,M11.1.0,",
        "EST5EDT,M3.2.0,M11.1.0 ",
        "EST5EDT,M3.2.0/,M11.1.0",
        "EST5EDT,M3.2.0/168,M11.1.0",
        "EST5EDT,M3.2.0/-168,M11.1.0",
        "EST5EDT,M0.2.0,M11.1.0",
        "EST5EDT,M13.2.0,M11.1.0",
        "EST5EDT,M3.0.0,M11.1.0",
        "EST5EDT,M3.6.0,M11.1.0",
        "EST5EDT,M3.2.7,M11.1.0",
        "EST5EDT,M3.2,M11.1.0",
        "EST5EDT,J0,J100",
        "EST5EDT,J366,J100",
        "EST5EDT,366,J100",
        "EST5EDT,1000,J100",
        "EST5EDT25,M3.2.0,M11.1.0",
        "<EST5",
        "<E>5",
        "<E+T5EDT,M3.2.0,M11.1.0",
        "E+T5",
        "EST5\xff",
        " EST5",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rn_posix_zone rule = {.standard = 77};
        tzif file;
        rn_zone *zone = NULL;

        CHECK_ROW(rows[i]);
        CHECK_EQ(rn_posix_zone_parse(ration_text_of(rows[i]), &rule), RATION_ERR_SYNTAX);
        CHECK_EQ(rule.standard, 77);
        tzif_write_rule(&file, rows[i]);
        CHECK_EQ(rn_zone_new(rn_mem_default(), file.bytes, file.size, &zone), RATION_ERR_SYNTAX);
        CHECK(zone == NULL);
    }
}

static void check_broken(const char *why, const tzif *file)
{
    rn_zone *zone = NULL;

    CHECK_ROW(why);
    CHECK_EQ(rn_zone_new(rn_mem_default(), file->bytes, file->size, &zone), RATION_ERR_SYNTAX);
    CHECK(zone == NULL);
}

static void bytes_that_are_no_zone(void **state)
{
    static const tzif_step good[] = {{0, 0}, {100, H}, {200, 0}};
    static const tzif_step standing[] = {{0, 0}, {100, H}, {100, 0}};
    static const tzif_step back[] = {{0, 0}, {100, H}, {99, 0}};
    static const tzif_step far[] = {{0, 0}, {100, 26 * H + 1}, {200, 0}};
    static const tzif_step west[] = {{0, -26 * H - 1}, {100, 0}, {200, 0}};
    const size_t second = 44 + 6 + 4; /* where the second header begins */
    tzif file;

    (void)state;
    tzif_write(&file, standing, 3, "");
    check_broken("time stands", &file);
    tzif_write(&file, back, 3, "");
    check_broken("time goes back", &file);
    tzif_write(&file, far, 3, "");
    check_broken("too far east", &file);
    tzif_write(&file, west, 3, "");
    check_broken("too far west", &file);

    tzif_write(&file, good, 3, "EST5");
    file.bytes[0] = 't';
    check_broken("another file", &file);
    tzif_write(&file, good, 3, "EST5");
    file.bytes[second] = 't';
    check_broken("another second table", &file);
    tzif_write(&file, good, 3, "EST5");
    file.bytes[second + 31] = 1;
    check_broken("leap seconds", &file);
    tzif_write(&file, good, 3, "EST5");
    file.bytes[second + 39] = 0;
    check_broken("no types", &file);
    tzif_write(&file, good, 3, "EST5");
    file.bytes[second + 44 + 16] = 9;
    check_broken("no such type", &file);
    tzif_write(&file, good, 3, "EST5");
    memset(file.bytes + second + 20, 0xff, 24);
    check_broken("huge counts", &file);
    file.size = 0;
    check_broken("nothing", &file);
    tzif_write(&file, good, 3, "EST5");
    for (file.size--; file.size > 0; file.size--)
        check_broken("cut", &file);
    CHECK_EQ(rn_zone_new(rn_mem_default(), NULL, 0, &(rn_zone *){NULL}), RATION_ERR_SYNTAX);
}

static void a_table_has_a_maximum(void **state)
{
    static unsigned char bytes[2 * 44 + 6 + (MANY + 1) * 9 + 6 + 2];
    const size_t extra[] = {0, 1};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const size_t count = MANY + extra[i];
        size_t size = 44;
        rn_zone *zone = NULL;

        memset(bytes, 0, sizeof(bytes));
        memcpy(bytes, (const unsigned char[]){'T', 'Z', 'i', 'f'}, 4);
        bytes[34] = (unsigned char)(count >> 8);
        bytes[35] = (unsigned char)count;
        bytes[39] = 1;
        for (size_t at = 0; at < count; at++, size += 4) {
            bytes[size + 2] = (unsigned char)(at >> 8);
            bytes[size + 3] = (unsigned char)at;
        }
        size += count + 6;
        CHECK_EQ(rn_zone_new(rn_mem_default(), bytes, size, &zone), i == 0 ? RATION_OK : RATION_ERR_SYNTAX);
        rn_zone_free(zone);
    }
}

static void no_memory(void **state)
{
    failalloc memory;
    tzif file;
    rn_zone *zone = NULL;

    (void)state;
    tzif_write_rule(&file, "EST5");
    failalloc_init(&memory, 0);
    CHECK_EQ(rn_zone_new(&memory.allocator, file.bytes, file.size, &zone), RATION_ERR_NOMEM);
    CHECK(zone == NULL);
    CHECK_EQ(rn_zone_new(&memory.allocator, file.bytes, file.size, &zone), RATION_OK);
    rn_zone_free(zone);
    tzif_write_rule(&file, "EST");
    CHECK_EQ(rn_zone_new(&memory.allocator, file.bytes, file.size, &zone), RATION_ERR_SYNTAX);
    CHECK_EQ(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_zone_is_utc),           cmocka_unit_test(a_table_is_read_as_stretches),
        cmocka_unit_test(the_rule_joins_the_table), cmocka_unit_test(a_stretch_over_the_end_of_the_table),
        cmocka_unit_test(version_1_files),          cmocka_unit_test(rules),
        cmocka_unit_test(summer_that_never_ends),   cmocka_unit_test(stretches_meet),
        cmocka_unit_test(rules_that_are_none),      cmocka_unit_test(bytes_that_are_no_zone),
        cmocka_unit_test(a_table_has_a_maximum),    cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
