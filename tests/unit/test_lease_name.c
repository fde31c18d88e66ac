/* SPDX-License-Identifier: MIT */
/* How leases are called: every name that is written is read, and no other text is. */
#include "serve/lease_name.h"

#include "support/check.h"

static void written_and_read(void **state)
{
    static const struct {
        ration_lease lease;
        const char *name;
    } rows[] = {
        {{0, 1}, "0-1"},
        {{7, 42}, "7-42"},
        {{UINT32_MAX, UINT32_MAX}, "4294967295-4294967295"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[RN_LEASE_NAME_BYTES];
        ration_lease lease = {9, 9};

        CHECK_ROW(rows[i].name);
        CHECK_TEXT(rn_lease_name_write(rows[i].lease, buffer), rows[i].name);
        CHECK_EQ(rn_lease_name_read(ration_text_of(rows[i].name), &lease), RATION_OK);
        CHECK_EQ(lease.index, rows[i].lease.index);
        CHECK_EQ(lease.generation, rows[i].lease.generation);
    }
}

static void no_names(void **state)
{
    static const char *const names[] = {
        "",
        "-",
        "1",
        "1-",
        "-1",
        "1-0",
        "0-0",
        "01-1",
        "1-01",
        "00-1",
        "+1-1",
        "1-+1",
        "1--1",
        "1-1-",
        "1-1 ",
        " 1-1",
        "1 -1",
        "0x1-1",
        "1-1x",
        "1_1",
        "a-1",
        "1-b",
        "1.0-1",
        "1e1-",
        "4294967296-1",
        "1-4294967296",
        "18446744073709551617-1",
        "1-18446744073709551617",
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ration_lease lease = {9, 9};

        CHECK_ROW(names[i]);
        CHECK_EQ(rn_lease_name_read(ration_text_of(names[i]), &lease), RATION_ERR_SYNTAX);
        CHECK_EQ(lease.index, 9);
        CHECK_EQ(lease.generation, 9);
    }
    CHECK_EQ(rn_lease_name_read((ration_text){"1-1\0", 4}, &(ration_lease){0, 0}), RATION_ERR_SYNTAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(written_and_read), cmocka_unit_test(no_names)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
