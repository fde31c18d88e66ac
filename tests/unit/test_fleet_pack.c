/* SPDX-License-Identifier: MIT */
/* MessagePack as the scripts read it: every form that goes out, byte for byte; and answers that lack something. */
#include "support/check.h"

#include "base/mem.h"
#include "fleet/answer.h"
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
    rn_pack_int(&pack, 127);
    rn_pack_int(&pack, 128);
    rn_pack_int(&pack, UINT16_MAX);
    rn_pack_int(&pack, UINT16_MAX + 1);
    rn_pack_int(&pack, UINT32_MAX);
    rn_pack_int(&pack, (int64_t)UINT32_MAX + 1);
    CHECK_BYTES(&pack, "\1"
                       "\xd3\xff\xff\xff\xff\xff\xff\xff\xfe"
                       "\xcf\0\x20\0\0\0\0\0\0"
                       "\x7f"
                       "\xcc\x80"
                       "\xcd\xff\xff"
                       "\xce\0\1\0\0"
                       "\xce\xff\xff\xff\xff"
                       "\xcf\0\0\0\1\0\0\0\0");
    rn_pack_clear(&pack);
    rn_pack_bool(&pack, true);
    rn_pack_bool(&pack, false);
    rn_pack_text(&pack, ration_text_of("ab"));
    rn_pack_text(&pack, (ration_text){NULL, 0});
    CHECK_BYTES(&pack, "\xc3\xc2"
                       "\xa2"
                       "ab"
                       "\xa0");
    rn_pack_clear(&pack);
    rn_pack_text(&pack, (ration_text){"0123456789012345678901234567890", 31});
    rn_pack_text(&pack, (ration_text){"01234567890123456789012345678901", 32});
    CHECK_BYTES(&pack, "\xbf"
                       "0123456789012345678901234567890"
                       "\xd9\x20"
                       "01234567890123456789012345678901");
    rn_pack_clear(&pack);
    rn_pack_array(&pack, 15);
    rn_pack_array(&pack, 16);
    rn_pack_map(&pack, 15);
    rn_pack_map(&pack, 70000);
    rn_pack_key_bool(&pack, "key", true);
    rn_pack_given(&pack, 5, RATION_UNSET);
    rn_pack_given(&pack, RATION_UNSET, RATION_UNSET);
    CHECK_BYTES(&pack, "\x9f\xdd\0\0\0\x10\x8f\xdf\0\1\x11\x70"
                       "\xa3key\xc3"
                       "\5\xc2");
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
            rn_pack_int(&pack, RATION_TIME_MAX_US);
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
    static const char *const names[] = {"admit",   "observe", "release", "renew",   "cancel",  "collect",  "health",
                                        "advance", "beat",    "tenants", "operate", "inspect", "prefetch", "settle"};

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

/* Nothing is read of an answer that it does not have. */
static void test_short_answer(void **state)
{
    char beyond[] = "beyond";
    redisReply number = {.type = REDIS_REPLY_INTEGER, .integer = 1};
    redisReply text = {.type = REDIS_REPLY_STRING, .str = beyond, .len = sizeof beyond - 1};
    redisReply *texts[] = {&text};
    redisReply list = {.type = REDIS_REPLY_ARRAY, .elements = 1, .element = texts};
    redisReply *parts[] = {&number, &number, &list, &list, &list};
    redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = 5, .element = parts};
    rn_fleet_event event;
    rn_fleet_lost lost;

    (void)state;
    CHECK(rn_answer_is(&reply));
    CHECK_EQ(rn_answer_text(&reply, 0).size, text.len);
    reply.elements = 2;
    CHECK(rn_answer_is(&reply));
    CHECK_EQ(rn_answer_text(&reply, 0).size, 0);
    CHECK_EQ(rn_answer_number(&reply, 0, -7), -7);
    CHECK(!rn_answer_lost(&reply, 0, &lost));
    CHECK(!rn_answer_event(&reply, 0, &event));
    reply.elements = 3;
    CHECK(!rn_answer_is(&reply));
}

/* A refusal has a reason, whatever the store says. */
static void test_refusals_without_reason(void **state)
{
    static const char *const names[] = {NULL, "", "of a later version", "store_unavailable"};
    const rn_call_ask ask = {.id = {"", 0}};
    const rn_route route = {.count = 0};
    char name[32];
    redisReply text = {.type = REDIS_REPLY_STRING, .str = name};
    redisReply *texts[] = {&text};
    redisReply why = {.type = REDIS_REPLY_ARRAY, .element = texts};
    ration_decision decision;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK_ROW(names[i] != NULL ? names[i] : "none");
        (void)snprintf(name, sizeof name, "%s", names[i] != NULL ? names[i] : "");
        text.len = strlen(name);
        why.elements = names[i] != NULL ? 1 : 0;
        rn_answer_refuse(&why, ration_time_of(1), &route, &ask, &decision);
        CHECK_EQ(decision.reason, RATION_REASON_STORE_UNAVAILABLE);
    }
    rn_answer_refuse(NULL, ration_time_of(1), &route, &ask, &decision);
    CHECK_EQ(decision.reason, RATION_REASON_STORE_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_short_answer), cmocka_unit_test(test_refusals_without_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
