/* SPDX-License-Identifier: MIT */
/* Other rules for a running engine: what may fail, and what is kept for later. Decision 0017. */
#include "support/reload.h"

/* ---- memory ---- */

static char told[8192];
static size_t told_used;

static void tell(void *ctx, const ration_counter_report *row)
{
    (void)ctx;
    told_used +=
        (size_t)snprintf(told + told_used, sizeof told - told_used, "%s %.*s %lld %lld %lld %llu %d;", row->limit,
                         (int)row->key.size, row->key.data, (long long)(row->held + row->used + row->available),
                         (long long)row->max, (long long)row->current, (unsigned long long)row->waiting, row->paused);
    for (size_t i = 0; i < row->tenant_count; i++) {
        const ration_tenant_report *t = &row->tenants[i];

        told_used += (size_t)snprintf(told + told_used, sizeof told - told_used, "%.*s %lld %lld %lld %lld,",
                                      (int)t->name.size, t->name.data, (long long)t->guarantee, (long long)t->own,
                                      (long long)t->lent, (long long)t->want);
    }
}

static const char *tell_all(int64_t at_us)
{
    const ration_reporter reporter = {.counter = tell};

    told_used = 0;
    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_STATS, &reporter), RATION_OK);
    CHECK(told_used < sizeof told);
    return told;
}

/* Every kind, held and waited for; an account and a tenant that will go. */
static void crowd_begin(const ration_rules *rules, const ration_allocator *mem)
{
    const ration_record record = {.type = RATION_RECORD_PAUSE,
                                  .provider = ration_text_of("p"),
                                  .limit = ration_text_of("slots"),
                                  .key = ration_text_of("acc/x=9"),
                                  .u.paused = true};
    const ration_state loaded = {.records = &record, .count = 1};

    CHECK_EQ(world_init_rules(&w, rules, mem), RATION_OK);
    CHECK_EQ(ration_engine_load(w.engine, ration_time_of(0), &loaded, NULL), RATION_OK);
    CHECK_STR(ask(0, "a tenant=s x=1 hold=90"), "granted");
    CHECK_STR(ask(0, "b tenant=s x=2 cost=2 hold=90"), "granted");
    CHECK_STR(ask(0, "c tenant=u x=1 account=bcc"), "granted");
    CHECK_STR(ask(0, "d tenant=u x=1 account=bcc wait=1000"), "queued");
    CHECK_STR(ask(0, "e tenant=s x=1 wait=1000"), "queued");
    CHECK_STR(ask(0, "f tenant=t x=1 wait=1000 priority=high class=k"), "queued");
    CHECK_STR(ask(0, "g tenant=u x=2 wait=1000"), "queued");
}

static const char *crowd_end(void)
{
    static const char *const names[] = {"a", "b", "c", "e", "f"};
    static char all[8192];
    size_t used = 0;

    used += (size_t)snprintf(all, sizeof all, "%s|", world_events(&w));
    used += (size_t)snprintf(all + used, sizeof all - used, "%s|", tell_all(MS(2)));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s;", end(MS(3), names[i]));
    used += (size_t)snprintf(all + used, sizeof all - used, "%s|", world_events(&w));
    (void)snprintf(all + used, sizeof all - used, "%s", ask(MS(4), "z tenant=s x=9"));
    return all;
}

static void without_memory_nothing_has_happened(void **state)
{
    static const ration_tenant_share stu[] = {{"s", 1, {0, 0}}, {"t", 1, {0, 0}}, {"u", 1, {0, 0}}};
    static const ration_tenant_share ts[] = {{"t", 1, {0, 0}}, {"s", 2, {0, 0}}};
    static const ration_class_rule classes[] = {{"k", {0, 0}}};
    static const ration_limit_rule slots = {
        .name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 2, .max = UNIT};
    const ration_limit_rule from[] = {
        slots, SHARE(stu, 3, .ceiling = 9 * UNIT), LIMIT("day", QUOTA, .max = 50 * UNIT, HOURLY),
        LIMIT("a", ADAPTIVE, .adaptive = {.initial_limit = 9, .classes = classes, .class_count = 1})};
    const ration_limit_rule to[] = {
        LIMIT("day", QUOTA, .max = 50 * UNIT, .window = {.rolling_us = HOUR_US}),
        LIMIT("a", ADAPTIVE, .adaptive = {.initial_limit = 7, .classes = classes, .class_count = 1}), slots,
        SHARE(ts, 2, .ceiling = 8 * UNIT)};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules before;
    ration_rules after;
    ration_provider_rule other;
    static char usual[8192];
    failalloc memory = {.failed = true};

    (void)state;
    rules_of(&before, &provider, accounts, from, 4);
    rules_of(&after, &other, accounts, to, 4);
    provider.breaker = (ration_breaker_rule){.strategy = RATION_BREAKER_COUNT};
    other.breaker = provider.breaker;
    after.account_count = 1;
    crowd_begin(&before, NULL);
    CHECK_EQ(reload_rules(MS(1), &after), RATION_OK);
    snprintf(usual, sizeof usual, "%s", crowd_end());
    world_fini(&w);

    for (uint64_t at = 0; memory.failed; at++) {
        static char was[8192];

        failalloc_init(&memory, UINT64_MAX);
        crowd_begin(&before, &memory.allocator);
        snprintf(was, sizeof was, "%s", tell_all(MS(1)));
        memory.countdown = at;

        const int err = reload_rules(MS(1), &after);

        CHECK_EQ(err, memory.failed ? RATION_ERR_NOMEM : RATION_OK);
        memory.countdown = UINT64_MAX;
        if (err != RATION_OK) {
            CHECK_STR(tell_all(MS(1)), was);
            CHECK_STR(world_events(&w), "");
            CHECK_EQ(reload_rules(MS(1), &after), RATION_OK);
        }
        CHECK_STR(crowd_end(), usual);
        world_fini(&w);
        CHECK_EQ(memory.live, 0);
    }
}

/* ---- state ---- */

static size_t kept;

static void keep(void *ctx, const ration_record *record)
{
    (void)ctx;
    (void)record;
    kept++;
}

static void records_that_wait_wait_on(void **state)
{
    static const ration_limit_rule before[] = {QUOTA(9, HOURLY), LIMIT("m", QUOTA, .max = 9 * UNIT, HOURLY)};
    static const ration_limit_rule after[] = {LIMIT("n", CONCURRENCY, .max = UNIT), QUOTA(9, HOURLY)};
    const ration_record records[] = {
        {.type = RATION_RECORD_QUOTA,
         .provider = ration_text_of("p"),
         .limit = ration_text_of("l"),
         .key = ration_text_of("acc"),
         .u.quota = {.window_end = {HOUR_US}, .used = 4 * UNIT, .max = RATION_UNSET, .mark = RATION_UNSET}},
        {.type = RATION_RECORD_PAUSE,
         .provider = ration_text_of("p"),
         .limit = ration_text_of("l"),
         .key = ration_text_of("acc"),
         .u.paused = true}};
    const ration_state loaded = {.records = records, .count = 2};
    const ration_counter_name name = {.limit = ration_text_of("l"), .key = ration_text_of("acc")};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    rules_of(&rules, &provider, accounts, before, 2);
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_EQ(ration_engine_load(w.engine, ration_time_of(0), &loaded, NULL), RATION_OK);
    reload(MS(1), after, 2);
    CHECK_EQ(ration_engine_resume(w.engine, ration_time_of(MS(1)), &name), RATION_OK);
    CHECK_EQ(report(MS(1)).used, 4 * UNIT);
    CHECK_STR(ask(MS(1), "a"), "granted");
    world_fini(&w);
}

/* A quota that becomes strict has no mark yet: it waits for one, and what it has spent is in it. */
static void strict_from_now_on(void **state)
{
    static const ration_limit_rule relaxed = QUOTA(300, HOURLY);
    static const ration_limit_rule strict = QUOTA(300, HOURLY, .durability = RATION_DURABILITY_STRICT);

    (void)state;
    begin(&relaxed);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_EQ(ration_engine_need(w.engine), RATION_NEED_NOTHING);
    reload(0, &strict, 1);
    CHECK_STR(ask(0, "b"), "store_unavailable l acc -");
    CHECK(ration_engine_need(w.engine) != RATION_NEED_NOTHING);
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(0), false, NULL, keep), RATION_OK);
    CHECK_EQ(kept, 1);
    /* Given out, reloaded, kept: nothing is lost on the way. */
    reload(0, &strict, 1);
    CHECK_EQ(ration_engine_kept(w.engine, ration_time_of(0)), RATION_OK);
    CHECK_STR(ask(0, "b"), "granted");
    CHECK_EQ(report(0).used, 2 * UNIT);
    reload(0, &relaxed, 1);
    CHECK_EQ(ration_engine_need(w.engine), RATION_NEED_NOTHING);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_has_happened),
        cmocka_unit_test(records_that_wait_wait_on),
        cmocka_unit_test(strict_from_now_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
