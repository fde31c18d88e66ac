/* SPDX-License-Identifier: MIT */
/*
 * Whole traces: what comes out and in which order, which ids are free, how lines may be cut, what stops a replay and
 * what `verify` says.
 */
#include "support/check.h"
#include "support/failalloc.h"

#include <stdio.h>

#include "base/mem.h"
#include "trace/output.h"
#include "trace/replay.h"

#define LIMITS "\"limits\":[{\"name\":\"slots\",\"kind\":\"concurrency\",\"max\":1,\"scope\":{\"by\":[\"account\"]}}]"
#define CONFIG                                                                                                         \
    "{\"op\":\"config\",\"startedAt\":-1000,\"providers\":[{\"name\":\"p\"," LIMITS                                    \
    "}],\"accounts\":[{\"name\":\"acc\",\"provider\":\"p\"}]}\n"
#define SHARED                                                                                                         \
    "{\"op\":\"config\",\"startedAt\":-1000,\"providers\":[{\"name\":\"p\",\"limits\":[{\"name\":\"t\",\"kind\":"      \
    "\"share\","                                                                                                       \
    "\"ceiling\":2,\"counts\":\"requests\",\"tenants\":{\"x\":1,\"y\":1},\"reclaimHorizon\":\"10ms\","                 \
    "\"idleAfter\":\"20ms\",\"scope\":{\"by\":[\"account\"]}}],\"breaker\":{\"strategy\":\"consecutive\","             \
    "\"recovery\":\"healthCheck\",\"healthCheck\":{\"path\":\"/health\"}}}],"                                          \
    "\"accounts\":[{\"name\":\"acc\",\"provider\":\"p\"}]}\n"
#define ACQUIRE(at, id, more)                                                                                          \
    "{\"at\":" #at ",\"op\":\"acquire\",\"id\":\"" id "\",\"provider\":\"p\",\"account\":\"acc\"" more "}\n"
#define OP(at, op, id) "{\"at\":" #at ",\"op\":\"" op "\",\"id\":\"" id "\"}\n"
#define ANSWER(at, op, id, result) "{\"at\":" #at ",\"op\":\"" op "\",\"id\":\"" id "\",\"result\":\"" result "\"}\n"
#define GRANTED(at, id, waited) "{\"at\":" #at ",\"event\":\"granted\",\"id\":\"" id "\",\"waitedMs\":" #waited "}\n"
#define HEALTH(at, account, ok, more)                                                                                  \
    "{\"at\":" #at ",\"op\":\"health\",\"account\":\"" account "\",\"ok\":" #ok more "}\n"
#define REPORT(at, op, more) "{\"at\":" #at ",\"op\":\"" op "\"" more "}\n"
#define TENANT(name, held, borrowed, lent, target, granted, more)                                                      \
    "\"" name "\":{\"guarantee\":1,\"held\":" #held ",\"own\":1,\"lent\":" #lent ",\"borrowed\":" #borrowed            \
    ",\"want\":0,\"idle\":false,\"target\":" #target ",\"deficitUnitMs\":0,\"reclaims\":0,\"worstReclaimMs\":0,"       \
    "\"granted\":" #granted ",\"refused\":{" more "}}"
#define LOST(at, id) "{\"at\":" #at ",\"event\":\"lost\",\"id\":\"" id "\"}\n"

static rn_output written;
static bool may_write;

static int line_write(void *ctx, const char *line, size_t size)
{
    (void)ctx;
    if (!may_write)
        return -1;
    CHECK_EQ(line[size - 1], '\n');
    rn_output_raw(&written, (ration_text){line, size});
    return 0;
}

static rn_replay_options options;

static int fresh(void **state)
{
    (void)state;
    rn_output_init(&written, rn_mem_default(), SIZE_MAX / 2);
    may_write = true;
    options = (rn_replay_options){.name = "t.jsonl", .write = line_write};
    return 0;
}

static int done(void **state)
{
    (void)state;
    rn_output_fini(&written);
    return 0;
}

static rn_replay *replay_of(void)
{
    rn_replay *replay = NULL;

    CHECK_EQ(rn_replay_new(&options, &replay), RATION_OK);
    return replay;
}

/* Feeds a trace in pieces of `piece` bytes; the replay is the caller's. */
static int run(rn_replay *replay, const char *trace, size_t piece)
{
    const size_t size = strlen(trace);
    int err = RATION_OK;

    rn_output_clear(&written);
    for (size_t at = 0; at < size && err == RATION_OK; at += piece)
        err = rn_replay_feed(replay, trace + at, piece < size - at ? piece : size - at);
    return err == RATION_OK ? rn_replay_finish(replay) : err;
}

static const struct {
    const char *why;
    const char *trace;
    const char *want;
} traces[] = {
    {"nothing", "", ""},
    {"only a config", CONFIG, ""},
    {"the answer stands before what it causes",
     CONFIG ACQUIRE(0, "a", "") ACQUIRE(1, "b", ",\"wait\":100") OP(2.5, "release", "a"),
     ANSWER(0, "acquire", "a", "granted") ANSWER(1, "acquire", "b", "queued") ANSWER(2.5, "release", "a", "released")
         GRANTED(2.5, "b", 1.5)},
    {"and behind what was due without it",
     CONFIG ACQUIRE(0, "a", ",\"ttl\":5") ACQUIRE(1, "b", ",\"wait\":100,\"ttl\":5") OP(10, "release", "a"),
     ANSWER(0, "acquire", "a", "granted") ANSWER(1, "acquire", "b", "queued") LOST(5, "a") GRANTED(5, "b", 4)
         LOST(10, "b") ANSWER(10, "release", "a", "unknown")},
    {"nothing happens behind the last line", CONFIG ACQUIRE(0, "a", ",\"ttl\":5"),
     ANSWER(0, "acquire", "a", "granted")},
    {"an advance brings what is due and has no line",
     CONFIG ACQUIRE(0, "a", ",\"ttl\":5") "{\"at\":7,\"op\":\"advance\"}",
     ANSWER(0, "acquire", "a", "granted") LOST(5, "a")},
    {"no startedAt: the first operation starts it",
     "{\"op\":\"config\",\"providers\":[{\"name\":\"p\"," LIMITS
     "}],\"accounts\":[{\"name\":\"acc\",\"provider\":\"p\"}]}\n"
     "{\"at\":1700000000000,\"op\":\"stats\"}\n",
     "{\"at\":1700000000000,\"op\":\"stats\",\"result\":{\"limits\":[]}}\n"},

    {"an id is free when its lease is released",
     CONFIG ACQUIRE(0, "a", "") OP(1, "release", "a") ACQUIRE(2, "a", "") OP(3, "renew", "a"),
     ANSWER(0, "acquire", "a", "granted") ANSWER(1, "release", "a", "released") ANSWER(2, "acquire", "a", "granted")
         ANSWER(3, "renew", "a", "renewed")},
    {"when it is lost", CONFIG ACQUIRE(0, "a", ",\"ttl\":5") ACQUIRE(5, "a", ""),
     ANSWER(0, "acquire", "a", "granted") LOST(5, "a") ANSWER(5, "acquire", "a", "granted")},
    {"when its waiter is cancelled",
     CONFIG ACQUIRE(0, "a", "") ACQUIRE(1, "b", ",\"wait\":9") OP(2, "cancel", "b") ACQUIRE(2, "b", ",\"wait\":9")
         OP(3, "cancel", "b") OP(3, "cancel", "b"),
     ANSWER(0, "acquire", "a", "granted") ANSWER(1, "acquire", "b", "queued") ANSWER(2, "cancel", "b", "cancelled")
         ANSWER(2, "acquire", "b", "queued") ANSWER(3, "cancel", "b", "cancelled") ANSWER(3, "cancel", "b", "unknown")},
    {"a waiter holds nothing, a lease does not wait",
     CONFIG ACQUIRE(0, "a", "") ACQUIRE(1, "b", ",\"wait\":9") OP(2, "release", "b") OP(2, "observe", "b")
         OP(2, "renew", "b") OP(2, "cancel", "a") OP(2, "observe", "a"),
     ANSWER(0, "acquire", "a", "granted") ANSWER(1, "acquire", "b", "queued") ANSWER(2, "release", "b", "unknown")
         ANSWER(2, "observe", "b", "unknown") ANSWER(2, "renew", "b", "unknown") ANSWER(2, "cancel", "a", "unknown")
             ANSWER(2, "observe", "a", "observed")},
    {"an id that never was", CONFIG OP(2, "release", "z"), ANSWER(2, "release", "z", "unknown")},

    {"empty lines and carriage returns", "\r\n" CONFIG "\n \n{\"at\":1,\"op\":\"release\",\"id\":\"z\"}\r\n\r\n",
     ANSWER(1, "release", "z", "unknown")},
    {"recorded outputs are skipped", CONFIG OP(2, "release", "z") ANSWER(2, "release", "z", "nonsense") LOST(1, "q"),
     ANSWER(2, "release", "z", "unknown")},
    {"leases by their ids", CONFIG ACQUIRE(0, "a", "") "{\"at\":7,\"op\":\"leases\"}",
     ANSWER(0, "acquire", "a",
            "granted") "{\"at\":7,\"op\":\"leases\",\"result\":{\"leases\":[{\"id\":\"a\",\"account\":"
                       "\"acc\",\"priority\":\"normal\",\"cost\":1,\"grantedAt\":0,\"overrun\":false}]}}\n"},

    {"health of an account that has a breaker, and of others",
     SHARED HEALTH(1, "acc", true, "") HEALTH(1, "bcc", false, ""),
     HEALTH(1, "acc", true, ",\"result\":\"noted\"") HEALTH(1, "bcc", false, ",\"result\":\"unknown\"")},
    {"health without a breaker", CONFIG HEALTH(1, "acc", true, ""), HEALTH(1, "acc", true, ",\"result\":\"unknown\"")},
    {"what only share limits have", CONFIG ACQUIRE(0, "a", "") REPORT(1, "fairness", "") REPORT(1, "allocation", ""),
     ANSWER(0, "acquire", "a", "granted") REPORT(1, "fairness", ",\"result\":{\"limits\":[]}")
         REPORT(1, "allocation", ",\"result\":{\"limits\":[]}")},
    {"an overrun lease is the latest of its id",
     SHARED ACQUIRE(0, "a", ",\"tenant\":\"x\",\"hold\":1") OP(1, "release", "a")
         ACQUIRE(1, "a", ",\"tenant\":\"x\",\"hold\":1") ACQUIRE(1, "b", ",\"tenant\":\"y\"") REPORT(3, "stats", ""),
     ANSWER(0, "acquire", "a", "granted") ANSWER(1, "release", "a", "released") ANSWER(1, "acquire", "a", "granted")
         ANSWER(1, "acquire", "b", "granted")
             REPORT(3, "stats",
                    ",\"result\":{\"limits\":[{\"limit\":\"t\",\"key\":\"acc\",\"tenants\":{" TENANT(
                        "x", 1, 0, 0, 1, 2, "") "," TENANT("y", 1, 0, 0, 1, 1, "") "},\"overrunLeases\":[\"a\"]}]}")},
    {"units of both kinds, and of nobody",
     SHARED REPORT(0, "fairness", "") ACQUIRE(0, "a", ",\"tenant\":\"x\",\"cost\":3")
         ACQUIRE(0, "b", ",\"tenant\":\"y\"") REPORT(0, "fairness", "") REPORT(0, "allocation", ""),
     REPORT(0, "fairness", ",\"result\":{\"limits\":[]}") ANSWER(0, "acquire", "a", "granted") ANSWER(0, "acquire", "b",
                                                                                                      "granted")
         REPORT(0, "fairness",
                ",\"result\":{\"limits\":[{\"limit\":\"t\",\"key\":\"acc\",\"tenants\":{\"x\":{\"costShare\":0.75,"
                "\"requestShare\":0.5,\"configuredShare\":0.5,\"costSkew\":1.5,\"requestSkew\":1},\"y\":{\"costShare\":"
                "0.25,\"requestShare\":0.5,\"configuredShare\":0.5,\"costSkew\":0.5,\"requestSkew\":1}},"
                "\"unitsDisagree\":true}]}")
             REPORT(0, "allocation",
                    ",\"result\":{\"limits\":[{\"limit\":\"t\",\"key\":\"acc\",\"tenants\":{\"x\":1,\"y\":1}}]}")},
};

static void what_comes_out(void **state)
{
    static const size_t pieces[] = {1, 7, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        for (size_t j = 0; j < sizeof pieces / sizeof pieces[0]; j++) {
            rn_replay *const replay = replay_of();

            CHECK_ROW(traces[i].why);
            CHECK_EQ(run(replay, traces[i].trace, pieces[j]), RATION_OK);
            CHECK_TEXT(((ration_text){written.size > 0 ? written.data : "", written.size}), traces[i].want);
            rn_replay_free(replay);
        }
    }
}

static const struct {
    const char *why;
    const char *trace;
    int err;
    size_t line;
    size_t column;
    const char *fault;
} stops[] = {
    {"a malformed line", CONFIG "\n" OP(2, "release", "z") "{\"at\":1,", RATION_ERR_SYNTAX, 4, 9,
     "a member's name in quotes should be here"},
    {"no config", OP(2, "release", "z"), RATION_ERR_SYNTAX, 1, 1,
     "no config: the trace does not begin with a config line, and none was given beside it"},
    {"a second config", CONFIG CONFIG, RATION_ERR_SYNTAX, 2, 1, "a config line may only be the first of a trace"},
    {"a config behind an operation", OP(2, "release", "z") CONFIG, RATION_ERR_SYNTAX, 1, 1,
     "no config: the trace does not begin with a config line, and none was given beside it"},
    {"an id of a held lease", CONFIG ACQUIRE(0, "a", "") ACQUIRE(1, "a", ""), RATION_ERR_SYNTAX, 3, 29,
     "this id is in use: its request still waits or its lease is still held"},
    {"an id of a waiter", CONFIG ACQUIRE(0, "a", "") ACQUIRE(1, "b", ",\"wait\":9") ACQUIRE(2, "b", ""),
     RATION_ERR_SYNTAX, 4, 29, "this id is in use: its request still waits or its lease is still held"},
    {"time before the start", CONFIG OP(-1001, "release", "z"), RATION_ERR_SYNTAX, 2, 7, "time runs back by 1000 us"},
};

static void what_stops_a_replay(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        rn_replay *const replay = replay_of();

        CHECK_ROW(stops[i].why);
        CHECK_EQ(run(replay, stops[i].trace, 5), stops[i].err);
        CHECK_EQ(rn_replay_fault(replay)->line, stops[i].line);
        CHECK_EQ(rn_replay_fault(replay)->column, stops[i].column);
        CHECK_STR(rn_replay_fault(replay)->text, stops[i].fault);
        /* It stays so. */
        CHECK_EQ(rn_replay_feed(replay, CONFIG, 10), stops[i].err);
        CHECK_EQ(rn_replay_finish(replay), stops[i].err);
        rn_replay_free(replay);
    }
}

static void a_line_without_end_stops_a_replay(void **state)
{
    static char blanks[1 << 16];
    rn_replay *const replay = replay_of();
    int err = RATION_OK;
    size_t fed = 0;

    (void)state;
    memset(blanks, ' ', sizeof blanks);
    for (; err == RATION_OK && fed < 2 * RN_TRACE_LINE_MAX; fed += sizeof blanks)
        err = rn_replay_feed(replay, blanks, sizeof blanks);
    CHECK_EQ(err, RATION_ERR_SYNTAX);
    CHECK_STR(rn_replay_fault(replay)->text, "a line of more than 16777216 bytes");
    CHECK(fed <= RN_TRACE_LINE_MAX + 2 * sizeof blanks);
    rn_replay_free(replay);
}

static void a_broken_config_tells_all_its_faults(void **state)
{
    rn_replay *const replay = replay_of();
    const ration_config_faults *faults;

    (void)state;
    CHECK_EQ(run(replay, "\n{\"op\":\"config\",\"providers\":[{\"name\":\"p\",\"limit\":[]}],\"acounts\":[]}\n", 1000),
             RATION_ERR_CONFIG);
    faults = rn_replay_config_faults(replay);
    CHECK(faults->count >= 2);
    CHECK_STR(faults->items[0].file, "t.jsonl");
    CHECK_EQ(faults->items[0].line, 2);
    rn_replay_free(replay);
}

static void rules_that_are_given_count_instead_of_the_config_line(void **state)
{
    static const char trace[] =
        "{\"op\":\"config\",\"startedAt\":5,\"providers\":17}\n" ACQUIRE(6, "a", "") ACQUIRE(6, "b", "");
    static const ration_provider_rule provider = {.name = "p"};
    static const ration_account_rule account = {.name = "acc", .provider = "p"};
    static const ration_rules rules = {
        .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    static const ration_account_rule nobody = {.name = "acc", .provider = "q"};
    static const ration_rules broken = {
        .providers = &provider, .provider_count = 1, .accounts = &nobody, .account_count = 1};
    rn_replay *replay;

    (void)state;
    options.rules = &rules;
    replay = replay_of();
    CHECK_EQ(run(replay, trace, 1000), RATION_OK);
    CHECK_TEXT(((ration_text){written.data, written.size}),
               ANSWER(6, "acquire", "a", "granted") ANSWER(6, "acquire", "b", "granted"));
    rn_replay_free(replay);

    options.rules = &broken;
    replay = replay_of();
    CHECK_EQ(run(replay, trace, 1000), RATION_ERR_SYNTAX);
    CHECK_EQ(memcmp(rn_replay_fault(replay)->text, "the config's ", 13), 0);
    rn_replay_free(replay);
}

/* Saves are carried out where something is strict, have no line of their own, and are nothing elsewhere. */
static void saves_make_marks(void **state)
{
    static const char trace[] = ACQUIRE(0, "a", "") ACQUIRE(1, "b", ",\"wait\":9") "{\"at\":2,\"op\":\"save\"}\n"
                                                                                   "{\"at\":3,\"op\":\"kept\"}\n";
    static const ration_limit_rule limits[] = {{.name = "q",
                                                .kind = RATION_KIND_QUOTA,
                                                .max = RATION_UNIT * 100,
                                                .window = {.period = RATION_PERIOD_DAY},
                                                .durability = RATION_DURABILITY_STRICT}};
    static const ration_provider_rule providers[] = {{.name = "p", .limits = limits, .limit_count = 1}, {.name = "p"}};
    static const ration_account_rule account = {.name = "acc", .provider = "p"};
    ration_rules rules = {.provider_count = 1, .accounts = &account, .account_count = 1};
    rn_replay *replay;

    (void)state;
    options.rules = &rules;
    rules.providers = &providers[0];
    replay = replay_of();
    CHECK_EQ(run(replay, trace, 1000), RATION_OK);
    CHECK_TEXT(((ration_text){written.data, written.size}),
               ANSWER(0, "acquire", "a", "granted") ANSWER(
                   1, "acquire", "b", "queued") "{\"at\":3,\"event\":\"granted\",\"id\":\"b\",\"waitedMs\":2}\n");
    rn_replay_free(replay);

    rn_output_clear(&written);
    rules.providers = &providers[1];
    replay = replay_of();
    CHECK_EQ(run(replay, trace, 1000), RATION_OK);
    CHECK_TEXT(((ration_text){written.data, written.size}),
               ANSWER(0, "acquire", "a", "granted") ANSWER(1, "acquire", "b", "granted"));
    rn_replay_free(replay);
}

static void decisions_that_cannot_be_written_stop_it(void **state)
{
    rn_replay *const replay = replay_of();

    (void)state;
    may_write = false;
    CHECK_EQ(run(replay, CONFIG ACQUIRE(0, "a", "") ACQUIRE(1, "b", ""), 1000), RATION_ERR_IO);
    rn_replay_free(replay);
}

#define RUN CONFIG ACQUIRE(0, "a", "") OP(2, "release", "a")

static const struct {
    const char *why;
    const char *trace;
    size_t matched;
    size_t line; /* 0: no difference */
    const char *recorded;
    const char *produced;
} verified[] = {
    {"all as recorded", RUN ANSWER(0, "acquire", "a", "granted") ANSWER(2, "release", "a", "released"), 2, 0, NULL,
     NULL},
    {"in other words",
     RUN "{\"op\": \"acquire\", \"at\": 0.0, \"id\": \"a\", \"result\": \"granted\"}\n" ANSWER(2, "release", "a",
                                                                                               "released"),
     2, 0, NULL, NULL},
    {"another result",
     CONFIG ACQUIRE(0, "a", "") "{\"op\":\"acquire\",\"result\":\"queued\"}\n{\"malformed and never read", 0, 3,
     "{\"op\":\"acquire\",\"result\":\"queued\"}", "{\"at\":0,\"op\":\"acquire\",\"id\":\"a\",\"result\":\"granted\"}"},
    {"one too few", RUN ANSWER(0, "acquire", "a", "granted"), 1, 3, NULL,
     "{\"at\":2,\"op\":\"release\",\"id\":\"a\",\"result\":\"released\"}"},
    {"one too many",
     RUN ANSWER(0, "acquire", "a", "granted") ANSWER(2, "release", "a", "released") "{\"event\":\"lost\"}\n", 2, 6,
     "{\"event\":\"lost\"}", NULL},
    {"a health check", SHARED HEALTH(1, "acc", true, "") HEALTH(1, "acc", true, ",\"result\":\"noted\""), 1, 0, NULL,
     NULL},
    {"another health check", SHARED HEALTH(1, "acc", true, "") HEALTH(1, "acc", false, ",\"result\":\"noted\""), 0, 3,
     "{\"at\":1,\"op\":\"health\",\"account\":\"acc\",\"ok\":false,\"result\":\"noted\"}",
     "{\"at\":1,\"op\":\"health\",\"account\":\"acc\",\"ok\":true,\"result\":\"noted\"}"},
    {"none recorded", CONFIG ACQUIRE(0, "a", ""), 0, 2, NULL,
     "{\"at\":0,\"op\":\"acquire\",\"id\":\"a\",\"result\":\"granted\"}"},
};

static void verify_finds_the_first_difference(void **state)
{
    (void)state;
    options.verify = true;
    for (size_t i = 0; i < sizeof verified / sizeof verified[0]; i++) {
        rn_replay *const replay = replay_of();

        CHECK_ROW(verified[i].why);
        CHECK_EQ(run(replay, verified[i].trace, 11), RATION_OK);
        CHECK_EQ(written.size, 0);
        CHECK_EQ(rn_replay_matched(replay), verified[i].matched);

        const rn_verify_difference *const difference = rn_replay_difference(replay);

        CHECK_EQ(difference != NULL, verified[i].line > 0);
        if (difference != NULL) {
            CHECK_EQ(difference->line, verified[i].line);
            CHECK_TEXT(difference->recorded, verified[i].recorded);
            CHECK_TEXT(difference->produced, verified[i].produced);
        }
        rn_replay_free(replay);
    }
}

/* The block of code behind a mark in a page, without its fences; the caller frees it. */
static char *page_block(const char *page, const char *mark)
{
    const char *const at = strstr(page, mark);

    CHECK(at != NULL);

    const char *const begin = strstr(at, "```json\n") + strlen("```json\n");
    const char *const end = strstr(begin, "```\n");

    return rn_mem_textdup(rn_mem_default(), (ration_text){begin, (size_t)(end - begin)});
}

/* What the page leaves out goes: from each line its explanation, which stands last. */
static void drop_explanations(char *lines)
{
    for (char *at = strstr(lines, ",\"explanation\":\""); at != NULL; at = strstr(at, ",\"explanation\":\"")) {
        char *const end = strchr(at, '\n');

        memmove(at + 1, end, strlen(end) + 1);
        *at = '}';
    }
}

static void the_reference_page_tells_the_truth(void **state)
{
    static char page[32768];
    FILE *const file = fopen("docs/reference/trace.md", "rb");
    rn_replay *const replay = replay_of();

    (void)state;
    CHECK(file != NULL);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    (void)fclose(file);

    char *const in = page_block(page, "<!-- in -->");
    char *const want = page_block(page, "<!-- out -->");

    CHECK_EQ(run(replay, in, 1000), RATION_OK);
    rn_output_raw(&written, (ration_text){"", 1});
    drop_explanations(written.data);
    CHECK_STR(written.data, want);
    rn_replay_free(replay);
    rn_mem_free(rn_mem_default(), in);
    rn_mem_free(rn_mem_default(), want);
}

static void memory_that_is_missing_is_an_error(void **state)
{
    static const char trace[] = CONFIG ACQUIRE(0, "a", ",\"ttl\":5") ACQUIRE(1, "b", ",\"wait\":100,\"ttl\":5")
        OP(10, "release", "a") ANSWER(0, "acquire", "a", "granted");
    failalloc fail = {.failed = true};

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        rn_replay *replay = NULL;

        failalloc_init(&fail, i);
        options.allocator = &fail.allocator;
        options.verify = i % 2 == 0;

        int err = rn_replay_new(&options, &replay);

        if (err == RATION_OK)
            err = run(replay, trace, 1000);
        CHECK(fail.failed ? err == RATION_ERR_NOMEM : err == RATION_OK);
        rn_replay_free(replay);
        CHECK_EQ(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_comes_out, fresh, done),
        cmocka_unit_test_setup_teardown(what_stops_a_replay, fresh, done),
        cmocka_unit_test_setup_teardown(a_line_without_end_stops_a_replay, fresh, done),
        cmocka_unit_test_setup_teardown(a_broken_config_tells_all_its_faults, fresh, done),
        cmocka_unit_test_setup_teardown(rules_that_are_given_count_instead_of_the_config_line, fresh, done),
        cmocka_unit_test_setup_teardown(saves_make_marks, fresh, done),
        cmocka_unit_test_setup_teardown(decisions_that_cannot_be_written_stop_it, fresh, done),
        cmocka_unit_test_setup_teardown(verify_finds_the_first_difference, fresh, done),
        cmocka_unit_test_setup_teardown(the_reference_page_tells_the_truth, fresh, done),
        cmocka_unit_test_setup_teardown(memory_that_is_missing_is_an_error, fresh, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
