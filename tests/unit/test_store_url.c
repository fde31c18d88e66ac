/* SPDX-License-Identifier: MIT */
/* Where a store is, what is no such place, slots of a cluster, and pauses. */
#include "support/check.h"

#include <stdio.h>

#include "fleet/store_backoff.h"
#include "fleet/store_slot.h"
#include "fleet/store_url.h"

#define SYNTAX                                                                                                         \
    "not a store: redis://HOST[:PORT] is, or rediss:// for TLS, redis+sentinel://HOST,HOST/MASTER, "                   \
    "redis+cluster://HOST,HOST, unix:PATH"
#define SECRETS "not a store: a user and a password come from the environment, not from the URL"
#define PATH "not a store: nothing may stand behind the hosts; a fleet uses database 0"
#define MASTER "not a store: Sentinel's URL ends with /MASTER, the name that the Sentinels know"
#define WORD "not a store: the master's name is one word of letters, digits, dots, dashes or underscores"

/* The kind, TLS, the places and the master, in one line. */
static void show(const rn_store_url *url, char *text, size_t size)
{
    static const char *const kinds[] = {"single", "sentinel", "cluster"};
    char place[RN_STORE_PLACE_TEXT];
    size_t used = (size_t)snprintf(text, size, "%s%s", kinds[url->kind], url->tls ? " tls" : "");

    for (size_t i = 0; i < url->count; i++) {
        rn_store_place_text(&url->places[i], place);
        used += (size_t)snprintf(text + used, size - used, " %s", place);
    }
    if (url->master[0] != '\0')
        (void)snprintf(text + used, size - used, " /%s", url->master);
}

static void test_urls(void **state)
{
    static const struct {
        const char *url, *want;
    } rows[] = {
        {"redis://h", "single h:6379"},
        {"redis://h:7000", "single h:7000"},
        {"redis://10.0.0.1:1", "single 10.0.0.1:1"},
        {"redis://h:65535", "single h:65535"},
        {"redis://[::1]", "single [::1]:6379"},
        {"redis://[fe80::1%25eth0]:7000", "single [fe80::1%25eth0]:7000"},
        {"redis://a,b:1,c", "single a:6379 b:1 c:6379"},
        {"rediss://h", "single tls h:6379"},
        {"unix:/run/redis.sock", "single /run/redis.sock"},
        {"unix:s", "single s"},
        {"redis+sentinel://a,b:2/main", "sentinel a:26379 b:2 /main"},
        {"rediss+sentinel://a/my.main-1_x", "sentinel tls a:26379 /my.main-1_x"},
        {"redis+cluster://a,[::1]:2", "cluster a:6379 [::1]:2"},
        {"rediss+cluster://a", "cluster tls a:6379"},
        {"redis://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a",
         "single a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 a:6379 "
         "a:6379 a:6379"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_store_url url;
        char text[512];

        CHECK_STR(rn_store_url_read(rows[i].url, &url) == NULL ? "" : rows[i].url, "");
        show(&url, text, sizeof text);
        CHECK_STR(text, rows[i].want);
    }
}

static void test_no_urls(void **state)
{
    static const struct {
        const char *url, *want;
    } rows[] = {
        {"", SYNTAX},
        {"h", SYNTAX},
        {"h:6379", SYNTAX},
        {"http://h", SYNTAX},
        {"REDIS://h", SYNTAX},
        {"redis:h", SYNTAX},
        {"redis://", SYNTAX},
        {"redis://:6379", SYNTAX},
        {"redis://h:", SYNTAX},
        {"redis://h:0", SYNTAX},
        {"redis://h:65536", SYNTAX},
        {"redis://h:-1", SYNTAX},
        {"redis://h:1x", SYNTAX},
        {"redis://h:000001", SYNTAX},
        {"redis://a,", SYNTAX},
        {"redis://,a", SYNTAX},
        {"redis://a b", SYNTAX},
        {"redis://::1", SYNTAX},
        {"redis://[::1", SYNTAX},
        {"redis://[::1]x", SYNTAX},
        {"redis://[]", SYNTAX},
        {"redis://h\r\n", SYNTAX},
        {"redis://me:secret@h", SECRETS},
        {"redis://secret@h", SECRETS},
        {"redis+sentinel://me:secret@h/m", SECRETS},
        {"redis://h/", PATH},
        {"redis://h/1", PATH},
        {"redis://h?timeout=1", PATH},
        {"redis://h#x", PATH},
        {"redis+cluster://h/0", PATH},
        {"redis+sentinel://h", MASTER},
        {"redis+sentinel://h/", MASTER},
        {"redis+sentinel://h/a/b", WORD},
        {"redis+sentinel://h/a b", WORD},
        {"redis+sentinel://h/a?b", WORD},
        {"unix:", "not a store: the path of a socket has 1 to 107 bytes"},
        {"redis://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", "not a store: it has more than 16 hosts"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_store_url url;
        const char *const wrong = rn_store_url_read(rows[i].url, &url);

        CHECK_STR(wrong != NULL ? wrong : rows[i].url, rows[i].want);
        CHECK(strstr(wrong, "secret") == NULL);
    }
}

/* As long as may be, and a byte more. */
static void test_long(void **state)
{
    rn_store_url url;
    char text[400];

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        const size_t path = 107 + more, host = 255 + more, master = 127 + more;

        (void)snprintf(text, sizeof text, "unix:%0*d", (int)path, 1);
        CHECK_EQ(rn_store_url_read(text, &url) == NULL, more == 0);
        (void)snprintf(text, sizeof text, "redis://%0*d", (int)host, 1);
        CHECK_EQ(rn_store_url_read(text, &url) == NULL, more == 0);
        (void)snprintf(text, sizeof text, "redis+sentinel://h/%0*d", (int)master, 1);
        CHECK_EQ(rn_store_url_read(text, &url) == NULL, more == 0);
    }
}

/* By `CLUSTER KEYSLOT` of Redis 7.0; the first is the check value of CRC-16/XMODEM. */
static void test_slots(void **state)
{
    static const struct {
        const char *key;
        int want;
    } rows[] = {
        {"123456789", 0x31c3},
        {"", 0},
        {"foo", 12182},
        {"bar", 5061},
        {"{foo}bar", 12182},
        {"x{foo}", 12182},
        {"x{foo}{bar}", 12182},
        {"{foo", 13308},
        {"foo}", 15679},
        {"{}foo", 9500},
        {"{}{foo}", 2263},
        {"{{foo}}", 13308},
        {"ration:1:{default/openai}:head", 7893},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ(rn_store_slot(ration_text_of(rows[i].key)), rows[i].want);
}

static void test_backoff(void **state)
{
    static const struct {
        unsigned tries;
        uint64_t last_ms;
        uint32_t random;
        uint64_t want;
    } rows[] = {
        {1, 2000, 0, 25},
        {1, 2000, 25, 50},
        {1, 2000, 26, 25},
        {2, 2000, 0, 50},
        {2, 2000, 50, 100},
        {5, 2000, 0, 400},
        {5, 2000, 400, 800},
        {6, 2000, 0, 800},
        {6, 2000, 800, 1600},
        {7, 2000, 0, 1000},
        {7, 2000, 1000, 2000},
        {7, 2000, 1001, 1000},
        {4000000000U, 2000, 0, 1000},
        {4000000000U, 2000, 1000, 2000},
        {7, 300, 150, 300}, /* another bound */
        {1, 10, 5, 10},     /* below the first pause */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ(rn_backoff_ms(rows[i].tries, rows[i].last_ms, rows[i].random), rows[i].want);
}

static void test_places(void **state)
{
    rn_store_place a, b;

    (void)state;
    CHECK(rn_store_place_set(&a, ration_text_of("h"), 1));
    CHECK(rn_store_place_set(&b, ration_text_of("h"), 1));
    CHECK(rn_store_place_eq(&a, &b));
    CHECK(rn_store_place_set(&b, ration_text_of("h"), 2));
    CHECK(!rn_store_place_eq(&a, &b));
    CHECK(rn_store_place_set(&b, ration_text_of("g"), 1));
    CHECK(!rn_store_place_eq(&a, &b));
    CHECK(!rn_store_place_set(&b, ration_text_of(""), 1));
    CHECK(!rn_store_place_set(&b, ration_text_of("a b"), 1));
    CHECK(!rn_store_place_set(&b, ration_text_of("h"), 65536));
    CHECK_EQ(rn_store_number(ration_text_of("00012")), 12);
    CHECK_EQ(rn_store_number(ration_text_of("000012")), -1);
    CHECK_EQ(rn_store_number(ration_text_of("")), -1);
    CHECK_EQ(rn_store_number(ration_text_of("1:")), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),  cmocka_unit_test(test_no_urls), cmocka_unit_test(test_long),
        cmocka_unit_test(test_slots), cmocka_unit_test(test_backoff), cmocka_unit_test(test_places),
    };

    return cmocka_run_group_tests_name("store_url", tests, NULL, NULL);
}
