/* SPDX-License-Identifier: MIT */
/* MessagePack as the scripts read it: every form that goes out, byte for byte. */
#include "support/check.h"

#include "base/mem.h"
#include "fleet/call.h"
#include "fleet/scripts.h"
#include "support/failalloc.h"

static void check_bytes(const rn_pack *pack, const char *want, size_t size)
{
    CHECK_EQ(pack->err, RATION_OK);
    CHECK_EQ(pack->size, size);
    CHECK(memcmp(pack->data, want, size) == 0);
}

#define CHECK_BYTES(pack, want) check_bytes((pack), (want), sizeof(want) - 1)

static void test_forms(void **state)
{
    rn_pack pack;

    (void)state;
    rn_pack_init(&pack, rn_mem_default());
    rn_pack_int(&pack, 1);
    rn_pack_int(&pack, -2);
    rn_pack_int(&pack, RATION_TIME_MAX_US);
    CHECK_BYTES(&pack, "\xd3\0\0\0\0\0\0\0\1"
                       "\xd3\xff\xff\xff\xff\xff\xff\xff\xfe"
                       "\xd3\0\x20\0\0\0\0\0\0");
    rn_pack_clear(&pack);
    rn_pack_bool(&pack, true);
    rn_pack_bool(&pack, false);
    rn_pack_text(&pack, ration_text_of("ab"));
    rn_pack_text(&pack, (ration_text){NULL, 0});
    CHECK_BYTES(&pack, "\xc3\xc2"
                       "\xdb\0\0\0\2"
                       "ab"
                       "\xdb\0\0\0\0");
    rn_pack_clear(&pack);
    rn_pack_array(&pack, 3);
    rn_pack_map(&pack, 70000);
    rn_pack_key_bool(&pack, "key", true);
    rn_pack_key_given(&pack, "a", 5, RATION_UNSET);
    rn_pack_key_given(&pack, "b", RATION_UNSET, RATION_UNSET);
    CHECK_BYTES(&pack, "\xdd\0\0\0\3\xdf\0\1\x11\x70"
                       "\xa3key\xc3"
                       "\xa1"
                       "a\xd3\0\0\0\0\0\0\0\5"
                       "\xa1"
                       "b\xc2");
    rn_pack_fini(&pack);
}

static void test_no_memory(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 2; at++) {
        failalloc fail;
        rn_pack pack;
        size_t written = 0;

        failalloc_init(&fail, at);
        rn_pack_init(&pack, &fail.allocator);
        for (; pack.err == RATION_OK && written < 1000; written++)
            rn_pack_int(&pack, (int64_t)written);
        CHECK_EQ(pack.err, RATION_ERR_NOMEM);
        CHECK_EQ(pack.size, (written - 1) * 9);
        rn_pack_text(&pack, ration_text_of("x"));
        CHECK_EQ(pack.size, (written - 1) * 9);
        rn_pack_fini(&pack);
        CHECK_EQ(fail.live, 0);
    }
}

/* What stands in a key can end neither its slot nor its part. */
static void test_names(void **state)
{
    static const struct {
        const char *name, *want;
    } rows[] = {
        {"meraki-api_v1.2", "meraki-api_v1.2"}, {"a b", "a%20b"},
        {"{x}/y:z@w", "%7Bx%7D%2Fy%3Az%40w"},   {"100%", "100%25"},
        {"\xc3\xa9\x01", "%C3%A9%01"},          {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_pack pack;

        CHECK_ROW(rows[i].name);
        rn_pack_init(&pack, rn_mem_default());
        rn_call_name(&pack, ration_text_of(rows[i].name));
        CHECK_EQ(pack.size, strlen(rows[i].want));
        CHECK(pack.size == 0 || memcmp(pack.data, rows[i].want, pack.size) == 0);
        rn_pack_fini(&pack);
    }
}

/* Each script is there, in the order of its names, and by a digest of its own. */
static void test_scripts(void **state)
{
    static const char *const names[] = {"admit",   "observe", "release", "renew", "cancel",
                                        "collect", "health",  "advance", "beat",  "tenants"};

    (void)state;
    for (size_t i = 0; i < RN_SCRIPT_COUNT; i++) {
        CHECK_ROW(names[i]);
        CHECK_STR(rn_scripts[i].name, names[i]);
        CHECK_EQ(strspn(rn_scripts[i].digest, "0123456789abcdef"), 40);
        CHECK(rn_scripts[i].size > 500 && rn_scripts[i].text[rn_scripts[i].size - 1] == '\n');
        for (size_t other = 0; other < i; other++)
            CHECK(strcmp(rn_scripts[i].digest, rn_scripts[other].digest) != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_scripts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
