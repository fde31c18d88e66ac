/* SPDX-License-Identifier: MIT */
/* The ring of refusals: what is kept, what is forgotten, what a query asks for. */
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "serve/refusal.h"
#include "serve/refused.h"

#include "support/check.h"

static const rn_refused_filter everything = {.since = {INT64_MIN}};

static void add(rn_refusals *refusals, int64_t at_us, ration_reason reason, const char *tenant, const char *limit,
                const char *key)
{
    ration_decision d = rn_refusal_of(reason, ration_time_of(at_us));

    d.limit = limit;
    d.key = ration_text_of(key);
    d.retry_at = ration_time_of(at_us + 1000);
    rn_refusals_add(refusals, ration_time_of(at_us),
                    &(rn_refused){.request_id = ration_text_of("r-1"),
                                  .account = ration_text_of("acc"),
                                  .tenant = ration_text_of(tenant),
                                  .waited_us = 0,
                                  .decision = &d,
                                  .detail = ration_text_of("words")});
}

/* The page, without its final line feed. */
static const char *page(const rn_refusals *refusals, const rn_refused_filter *filter)
{
    static char text[16384];
    rn_output out;

    rn_output_init(&out, rn_mem_default(), 64 << 20);
    rn_refusals_write(refusals, filter, &out);
    CHECK_EQ(out.err, RATION_OK);
    (void)snprintf(text, sizeof text, "%.*s", (int)(out.size > 0 ? out.size - 1 : 0), out.data);
    rn_output_fini(&out);
    return text;
}

/* How many entries the page has. */
static size_t entries(const rn_refusals *refusals, const rn_refused_filter *filter)
{
    rn_output out;
    size_t count = 0, at = 0;
    ration_text rest;

    rn_output_init(&out, rn_mem_default(), 64 << 20);
    rn_refusals_write(refusals, filter, &out);
    rest = (ration_text){out.data, out.size};
    while (rn_text_find(rest, ration_text_of("\"reason\""), &at)) {
        count++;
        rest = rn_text_slice(rest, at + 1, rest.size);
    }
    rn_output_fini(&out);
    return count;
}

static void test_page(void **state)
{
    rn_refusals *refusals = NULL;
    (void)state;

    CHECK_EQ(rn_refusals_new(&refusals), RATION_OK);
    CHECK_STR(page(refusals, &everything), "{\"refusals\":[],\"kept\":0,\"forgotten\":0}");
    add(refusals, 1000, RATION_REASON_RATE_LIMITED, "a", "rate", "k/x=1");
    add(refusals, 2000, RATION_REASON_DRAINING, NULL, NULL, NULL);
    CHECK_STR(
        page(refusals, &everything),
        "{\"refusals\":["
        "{\"at\":2,\"requestId\":\"r-1\",\"account\":\"acc\",\"reason\":\"draining\",\"waitedMs\":0,\"retryAt\":3,"
        "\"explanation\":\"words\"},"
        "{\"at\":1,\"requestId\":\"r-1\",\"account\":\"acc\",\"tenant\":\"a\",\"reason\":\"rate_limited\","
        "\"limit\":\"rate\",\"key\":\"k/x=1\",\"waitedMs\":0,\"retryAt\":2,\"explanation\":\"words\"}"
        "],\"kept\":2,\"forgotten\":0,\"since\":1}");
    rn_refusals_free(refusals);
}

static void test_filters(void **state)
{
    static const struct {
        const char *why;
        rn_refused_filter filter;
        size_t want;
    } rows[] = {
        {"all", {.since = {INT64_MIN}}, 4},
        {"a tenant", {.tenant = {"a", 1}, .since = {INT64_MIN}}, 2},
        {"the tenant without a name", {.tenant = {"", 0}, .since = {INT64_MIN}}, 1},
        {"a limit", {.limit = {"daily", 5}, .since = {INT64_MIN}}, 1},
        {"a part of a limit's name", {.limit = {"dail", 4}, .since = {INT64_MIN}}, 0},
        {"a reason", {.reason = {"draining", 8}, .since = {INT64_MIN}}, 1},
        {"a key", {.key = {"k", 1}, .since = {INT64_MIN}}, 2},
        {"an account", {.account = {"acc", 3}, .since = {INT64_MIN}}, 4},
        {"another account", {.account = {"ac", 2}, .since = {INT64_MIN}}, 0},
        {"since, inclusive", {.since = {3000}}, 2},
        {"since, a microsecond later", {.since = {3001}}, 1},
        {"the newest", {.since = {INT64_MIN}, .most = 1}, 1},
        {"the newest that match", {.tenant = {"a", 1}, .since = {INT64_MIN}, .most = 3}, 2},
        {"both", {.tenant = {"a", 1}, .limit = {"daily", 5}, .since = {INT64_MIN}}, 1},
    };
    rn_refusals *refusals = NULL;
    (void)state;

    CHECK_EQ(rn_refusals_new(&refusals), RATION_OK);
    add(refusals, 1000, RATION_REASON_RATE_LIMITED, "a", "rate", "k");
    add(refusals, 2000, RATION_REASON_QUOTA_EXHAUSTED, "a", "daily", "k");
    add(refusals, 3000, RATION_REASON_RATE_LIMITED, "b", "rate", "k2");
    add(refusals, 4000, RATION_REASON_DRAINING, NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(entries(refusals, &rows[i].filter), rows[i].want);
    }
    rn_refusals_free(refusals);
}

static void test_old_ones_are_forgotten(void **state)
{
    const rn_refused_filter oldest = {.since = {INT64_MIN}, .key = {"5", 1}};
    const rn_refused_filter gone = {.since = {INT64_MIN}, .key = {"4", 1}};
    rn_refusals *refusals = NULL;
    (void)state;

    CHECK_EQ(rn_refusals_new(&refusals), RATION_OK);
    for (int i = 0; i < RN_REFUSED_MAX + 5; i++) {
        char key[16];

        (void)snprintf(key, sizeof key, "%d", i);
        add(refusals, i, RATION_REASON_RATE_LIMITED, "a", "rate", key);
    }
    CHECK_EQ(entries(refusals, &everything), RN_REFUSED_MAX);
    CHECK_EQ(entries(refusals, &oldest), 1);
    CHECK_EQ(entries(refusals, &gone), 0);
    rn_refusals_free(refusals);
}

static void test_long_texts(void **state)
{
    static char tenant[400], key[400];
    rn_refusals *refusals = NULL;
    (void)state;

    /* The 63rd byte would be the first half of a character. */
    memset(tenant, 't', 62);
    memcpy(tenant + 62, "\xC3\xA9", 3);
    memset(key, 'k', sizeof key - 1);
    CHECK_EQ(rn_refusals_new(&refusals), RATION_OK);
    add(refusals, 1000, RATION_REASON_RATE_LIMITED, tenant, "rate", key);
    CHECK_EQ(entries(refusals, &(rn_refused_filter){.since = {INT64_MIN}, .key = ration_text_of(key)}), 1);
    tenant[62] = '\0';
    CHECK_EQ(entries(refusals, &(rn_refused_filter){.since = {INT64_MIN}, .tenant = ration_text_of(tenant)}), 1);
    rn_refusals_free(refusals);
}

static void test_queries(void **state)
{
    static const struct {
        const char *query;
        int want;
        const char *at_fault;
    } rows[] = {
        {"", RATION_OK, NULL},
        {"tenant=a&limit=b&key=c%2Fd&account=e&reason=deadline&since=1.5&most=4096", RATION_OK, NULL},
        {"tenant=", RATION_OK, NULL},
        {"tenant", RATION_OK, NULL},
        {"tenant=a&tenant=a", RATION_ERR_SYNTAX, "tenant"},
        {"tenants=a", RATION_ERR_SYNTAX, "tenants"},
        {"=a", RATION_ERR_SYNTAX, ""},
        {"reason=late", RATION_ERR_SYNTAX, "reason"},
        {"reason=", RATION_ERR_SYNTAX, "reason"},
        {"since=now", RATION_ERR_SYNTAX, "since"},
        {"since=NaN", RATION_ERR_SYNTAX, "since"},
        {"since=", RATION_ERR_SYNTAX, "since"},
        {"since=99999999999999999999", RATION_ERR_SYNTAX, "since"},
        {"most=0", RATION_ERR_SYNTAX, "most"},
        {"most=4097", RATION_ERR_SYNTAX, "most"},
        {"most=-1", RATION_ERR_SYNTAX, "most"},
        {"key=%4", RATION_ERR_SYNTAX, "key"},
        {"key=%zz", RATION_ERR_SYNTAX, "key"},
        {"tenant=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", RATION_ERR_FULL,
         "tenant"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[64];
        rn_refused_filter filter;
        ration_text parameter = {NULL, 0};

        CHECK_ROW(rows[i].query);
        CHECK_EQ(rn_refused_filter_read(ration_text_of(rows[i].query), buffer, sizeof buffer, &filter, &parameter),
                 rows[i].want);
        if (rows[i].at_fault != NULL)
            CHECK(rn_text_is(parameter, rows[i].at_fault));
    }
}

static void test_what_a_query_means(void **state)
{
    char buffer[64];
    rn_refused_filter filter;
    ration_text parameter;
    (void)state;

    CHECK_EQ(rn_refused_filter_read(ration_text_of("key=a%2Fb%3D1&since=1.5&tenant=&most=7"), buffer, sizeof buffer,
                                    &filter, &parameter),
             RATION_OK);
    CHECK(rn_text_is(filter.key, "a/b=1"));
    CHECK(filter.tenant.data != NULL && filter.tenant.size == 0);
    CHECK(filter.limit.data == NULL);
    CHECK_EQ(filter.since.us, 1500);
    CHECK_EQ(filter.most, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_old_ones_are_forgotten),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_what_a_query_means),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
