/* SPDX-License-Identifier: MIT */
/* The fields by which a client talks to ration: what is read, and what is a fault at which field. */
#include "serve/directives.h"

#include "support/check.h"

static ration_header header(const char *name, const char *value)
{
    return (ration_header){ration_text_of(name), ration_text_of(value)};
}

static void test_reads(void **state)
{
    static const struct {
        const char *why, *name, *value;
        int64_t cost, hold_us, wait_us;
        ration_priority priority;
        bool retry;
    } rows[] = {
        {"whole cost", "Ration-Cost", "2", 2000000, -1, -1, RATION_PRIORITY_UNSET, false},
        {"six places", "ration-cost", "0.000001", 1, -1, -1, RATION_PRIORITY_UNSET, false},
        {"a cost of nothing", "Ration-Cost", "0", 0, -1, -1, RATION_PRIORITY_UNSET, false},
        {"a bare number is milliseconds", "Ration-Hold", "250", -1, 250000, -1, RATION_PRIORITY_UNSET, false},
        {"a duration", "Ration-Hold", "1m30s", -1, 90000000, -1, RATION_PRIORITY_UNSET, false},
        {"no wait", "Ration-Timeout", "0", -1, -1, 0, RATION_PRIORITY_UNSET, false},
        {"a wait", "RATION-TIMEOUT", "2s", -1, -1, 2000000, RATION_PRIORITY_UNSET, false},
        {"priority", "Ration-Priority", "critical", -1, -1, -1, RATION_PRIORITY_CRITICAL, false},
        {"retry", "Ration-Retry", "true", -1, -1, -1, RATION_PRIORITY_UNSET, true},
        {"no retry", "Ration-Retry", "false", -1, -1, -1, RATION_PRIORITY_UNSET, false},
        {"fields of others are not read", "X-Ration-Cost", "rubbish", -1, -1, -1, RATION_PRIORITY_UNSET, false},
        {"white space around", "Ration-Cost", " 3 ", 3000000, -1, -1, RATION_PRIORITY_UNSET, false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_header h = header(rows[i].name, rows[i].value);
        rn_directives got;
        rn_directive_fault fault;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_directives_read(&h, 1, &got, &fault), RATION_OK);
        CHECK_EQ(got.cost, rows[i].cost);
        CHECK_EQ(got.hold_us, rows[i].hold_us);
        CHECK_EQ(got.wait_us, rows[i].wait_us);
        CHECK_EQ(got.priority, rows[i].priority);
        CHECK_EQ(got.retry, rows[i].retry);
    }
}

static void test_texts(void **state)
{
    const ration_header headers[] = {header("Ration-Tenant", "acme"), header("Accept", "*/*"),
                                     header("Ration-Class", "batch"), header("Ration-Job", "nightly"),
                                     header("Ration-Token", "t0k=")};
    rn_directives got;
    rn_directive_fault fault;
    (void)state;

    CHECK_EQ(rn_directives_read(headers, 5, &got, &fault), RATION_OK);
    CHECK_TEXT(got.tenant, "acme");
    CHECK_TEXT(got.class_name, "batch");
    CHECK_TEXT(got.job, "nightly");
    CHECK_TEXT(got.token, "t0k=");
    CHECK_EQ(rn_directives_read(headers, 0, &got, &fault), RATION_OK);
    CHECK_TEXT(got.tenant, NULL);
    CHECK_EQ(got.cost, RATION_UNSET);
}

static void test_faults(void **state)
{
    char long_name[258];
    const struct {
        const char *why, *name, *value;
    } rows[] = {
        {"no number", "Ration-Cost", "many"},
        {"negative", "Ration-Cost", "-1"},
        {"not a number", "Ration-Cost", "NaN"},
        {"exponent", "Ration-Cost", "1e3"},
        {"seven places", "Ration-Cost", "0.0000001"},
        {"beyond the largest cost", "Ration-Cost", "99999999999999999999"},
        {"empty", "Ration-Tenant", ""},
        {"blank", "Ration-Tenant", "  "},
        {"not UTF-8", "Ration-Tenant", "\xff"},
        {"too long", "Ration-Tenant", long_name},
        {"unknown priority", "Ration-Priority", "urgent"},
        {"priority in capitals", "Ration-Priority", "HIGH"},
        {"unknown unit", "Ration-Hold", "5 parsecs"},
        {"negative wait", "Ration-Timeout", "-5"},
        {"a wait beyond all time", "Ration-Timeout", "9999999999999999999999"},
        {"neither true nor false", "Ration-Retry", "yes"},
        {"a name that ration does not know", "Ration-Prioritty", "high"},
    };
    (void)state;

    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_header h = header(rows[i].name, rows[i].value);
        rn_directives got = {.cost = 77};
        rn_directive_fault fault = {{NULL, 0}, NULL};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_directives_read(&h, 1, &got, &fault), RATION_ERR_SYNTAX);
        CHECK_TEXT(fault.field, rows[i].name);
        CHECK(fault.want != NULL);
        CHECK_EQ(got.cost, 77);
    }
}

static void test_twice(void **state)
{
    const ration_header headers[] = {header("Ration-Tenant", "a"), header("ration-tenant", "a")};
    rn_directives got;
    rn_directive_fault fault;
    (void)state;

    CHECK_EQ(rn_directives_read(headers, 2, &got, &fault), RATION_ERR_SYNTAX);
    CHECK_TEXT(fault.field, "ration-tenant");
    CHECK_STR(fault.want, "given once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_twice),
    };

    return cmocka_run_group_tests_name("directives", tests, NULL, NULL);
}
