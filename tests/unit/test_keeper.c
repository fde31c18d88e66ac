/* SPDX-License-Identifier: MIT */
/*
 * Rounds between an engine and a ledger that is a script: when they begin, in which order they go, what a failed one
 * does, who is told and when; and what comes in at the start.
 */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/keeper.h"

#include "support/config.h"

#define MS INT64_C(1000)
#define UNIT RATION_UNIT
#define HOUR (3600 * INT64_C(1000000))

static size_t told; /* who waited */

/* ---- the ledger */

static struct {
    /* what it answers */
    const char *path;
    bool unclean;
    const ration_record *records;
    size_t record_count;
    int load_err;
    int puts_left; /* before they fail; below 0: none does */
    int flush_err; /* of the start of one */
    int done_err;
    bool hangs; /* a flush ends when the test says so */
    /* what it heard */
    size_t puts, flushes, written, closes, abandons;
    size_t pending;
    char last[64];
    int64_t last_used;
    rn_loop *loop;
    rn_deferred work;
    bool flushing;
    void (*done)(void *user, int err);
    void *user;
} script;

struct rn_ledger {
    int unused;
};

static struct rn_ledger the_one;

int rn_ledger_open(const rn_ledger_options *options, rn_ledger **out, rn_ledger_error *error)
{
    (void)error;
    script.path = options->path;
    *out = &the_one;
    return RATION_OK;
}

const char *rn_ledger_aside(const rn_ledger *ledger)
{
    (void)ledger;
    return NULL;
}

ration_text rn_ledger_salt(const rn_ledger *ledger)
{
    (void)ledger;
    return ration_text_of("salt");
}

int rn_ledger_load(rn_ledger *ledger, ration_time now, ration_state *out, rn_ledger_error *error)
{
    (void)ledger;
    (void)now;
    (void)error;
    *out = (ration_state){.records = script.records, .count = script.record_count, .unclean = script.unclean};
    return script.load_err;
}

int rn_ledger_put(rn_ledger *ledger, const ration_record *record)
{
    rn_builder b;

    (void)ledger;
    CHECK(!script.flushing);
    if (script.puts_left == 0)
        return RATION_ERR_NOMEM;
    script.puts_left--;
    script.puts++;
    script.pending++;
    rn_builder_init(&b, script.last, sizeof script.last);
    rn_builder_text(&b, record->limit);
    rn_builder_char(&b, ' ');
    rn_builder_text(&b, record->key);
    script.last_used = record->type == RATION_RECORD_QUOTA ? record->u.quota.used : 0;
    return RATION_OK;
}

static void flush_end(int err)
{
    script.flushing = false;
    if (err == RATION_OK) {
        script.written += script.pending;
        script.pending = 0;
    }
    script.done(script.user, err);
}

static void on_work(rn_deferred *work)
{
    (void)work;
    flush_end(script.done_err);
}

int rn_ledger_flush(rn_ledger *ledger, rn_loop *loop, ration_time now, void (*done)(void *user, int err), void *user)
{
    (void)ledger;
    (void)now;
    CHECK(!script.flushing);
    script.flushes++;
    if (script.flush_err != RATION_OK)
        return script.flush_err;
    script.flushing = true;
    script.done = done;
    script.user = user;
    script.work.fn = on_work;
    if (!script.hangs)
        rn_loop_defer_next(loop, &script.work);
    return RATION_OK;
}

int rn_ledger_flush_now(rn_ledger *ledger, ration_time now)
{
    (void)ledger;
    (void)now;
    rn_loop_forget(script.loop, &script.work);
    script.flushing = false;
    if (script.done_err == RATION_OK) {
        script.written += script.pending;
        script.pending = 0;
    }
    return script.done_err;
}

void rn_ledger_look(const rn_ledger *ledger, rn_ledger_status *out)
{
    (void)ledger;
    *out = (rn_ledger_status){.path = script.path,
                              .unclean = script.unclean,
                              .flushed_at = {RATION_NEVER_US},
                              .pending = script.pending,
                              .error = "the disk is full"};
}

void rn_ledger_close(rn_ledger *ledger, ration_time now)
{
    (void)ledger;
    (void)now;
    script.closes++;
}

void rn_ledger_abandon(rn_ledger *ledger)
{
    (void)ledger;
    rn_loop_forget(script.loop, &script.work);
    script.abandons++;
}

static void ledger_reset(void)
{
    memset(&script, 0, sizeof script);
    script.puts_left = -1;
}

/* ---- a stage: a loop, an engine, a keeper */

#define CONFIG(durability)                                                                                             \
    "providers:\n"                                                                                                     \
    "- name: p\n"                                                                                                      \
    "  baseUrl: http://h\n"                                                                                            \
    "  limits:\n"                                                                                                      \
    "  - { name: q, kind: quota, max: 1000, counts: cost, window: { rolling: 1d }, scope: { by: [account] },"          \
    " durability: " durability " }\n"                                                                                  \
    "accounts: [{ name: a, provider: p }]\n"

static const char relaxed[] = CONFIG("relaxed");
static const char strict[] = CONFIG("strict"); /* a block is 10 */

typedef struct stage {
    rn_loop *loop;
    rn_log log;
    rn_keeper *keeper;
    ration_engine *engine;
    ration_config *config;
    rn_timer timer;
    size_t touched;
    size_t kept_calls, load_calls, save_calls;
    ration_state loaded; /* the last load; its records are dead */
    ration_time loaded_at;
    ration_lease lease; /* of the last grant */
} stage;

static void on_call(void *ctx, const ration_call *call)
{
    stage *s = ctx;

    if (call->op == RATION_OP_KEPT)
        s->kept_calls++;
    if (call->op == RATION_OP_SAVE)
        s->save_calls++;
    if (call->op == RATION_OP_LOAD) {
        s->load_calls++;
        s->loaded = *call->state;
        s->loaded_at = call->at;
    }
}

static void on_answer(void *ctx, const ration_call *call, int err, const ration_decision *decision)
{
    (void)ctx;
    (void)call;
    (void)err;
    (void)decision;
}

static void on_sink_event(void *ctx, const ration_event *event)
{
    (void)ctx;
    (void)event;
}

static void on_touched(void *user)
{
    stage *s = user;

    s->touched++;
}

/* How many were granted by events. */
static size_t events_take(stage *s)
{
    ration_event event;
    size_t granted = 0;

    while (ration_engine_next_event(s->engine, &event)) {
        granted += event.type == RATION_EVENT_GRANTED ? 1 : 0;
        s->lease = event.lease;
    }
    return granted;
}

static void on_stop(void *user, ration_time now)
{
    const stage *s = user;

    (void)now;
    rn_loop_stop(s->loop);
}

/* Let the loop run for so long. */
static void run(stage *s, int64_t us)
{
    CHECK_EQ(rn_timer_set(&s->timer, rn_time_add(rn_loop_now(s->loop), us)), RATION_OK);
    rn_loop_run(s->loop);
}

static void stage_open(stage *s, const char *text, int64_t flush_us)
{
    static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};
    const ration_sink sink = {.ctx = s, .call = on_call, .answer = on_answer, .event = on_sink_event};
    rn_net_error error = {""};

    *s = (stage){.log = {.descriptor = -1}, .config = config_of(text, &plain)};
    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);
    rn_timer_init(&s->timer, s->loop, on_stop, s);
    script.loop = s->loop;

    const rn_keeper_options options = {.loop = s->loop, .log = &s->log, .path = "ledger", .flush_us = flush_us};
    const ration_engine_options engine = {.rules = ration_config_rules(s->config), .sink = &sink, .keeps = true};

    CHECK_EQ(rn_keeper_open(&options, &s->keeper, &error), RATION_OK);
    CHECK(rn_keeper_keeps(s->keeper));
    CHECK_EQ(ration_engine_new(&engine, rn_loop_now(s->loop), &s->engine, NULL), RATION_OK);
}

static void stage_start(stage *s)
{
    rn_net_error error = {""};

    CHECK_EQ(rn_keeper_load(s->keeper, s->engine, &error), RATION_OK);
    CHECK_EQ(rn_keeper_start(s->keeper, s->engine, ration_config_rules(s->config), on_touched, s), RATION_OK);
}

static void stage_close(stage *s, int want)
{
    rn_keeper_stop(s->keeper);
    ration_engine_free(s->engine);
    CHECK_EQ(rn_keeper_close(s->keeper), want);
    rn_loop_free(s->loop);
    ration_config_free(s->config);
}

static ration_result ask(stage *s, int64_t cost)
{
    const ration_request request = {.account = ration_text_of("a"),
                                    .method = ration_text_of("GET"),
                                    .path = ration_text_of("/"),
                                    .cost = cost * UNIT,
                                    .hold_us = RATION_UNSET,
                                    .wait_us = 60000 * MS,
                                    .ttl_us = RATION_UNSET};
    ration_decision decision;

    CHECK_EQ(ration_engine_submit(s->engine, rn_loop_now(s->loop), &request, &decision), RATION_OK);
    s->lease = decision.lease;
    rn_keeper_look(s->keeper);
    return decision.result;
}

static void settle(stage *s, ration_lease lease, int64_t cost)
{
    const ration_completion completion = {.outcome = RATION_OUTCOME_SUCCESS, .cost = cost * UNIT};

    CHECK_EQ(ration_engine_release(s->engine, rn_loop_now(s->loop), lease, &completion), RATION_OK);
}

/* ---- rounds */

static void a_round_writes_what_has_changed(void **state)
{
    stage s;

    (void)state;
    ledger_reset();
    stage_open(&s, relaxed, 2 * MS);
    stage_start(&s);
    CHECK_ROW("nothing has changed, nothing is written");
    run(&s, 10 * MS);
    CHECK_EQ(script.puts, 0);
    CHECK_EQ(script.flushes, 0);

    CHECK_ROW("a grant is written with the next round, once");
    CHECK_EQ(ask(&s, 3), RATION_GRANTED);
    CHECK_EQ(script.puts, 0);
    run(&s, 20 * MS);
    CHECK_EQ(script.puts, 1);
    CHECK_EQ(script.flushes, 1);
    CHECK_EQ(script.written, 1);
    CHECK_STR(script.last, "q a");
    CHECK_EQ(script.last_used, 3 * UNIT);
    CHECK(s.touched > 0);

    CHECK_ROW("what is new at the end is written at the end, and the ledger is in order");
    CHECK_EQ(ask(&s, 1), RATION_GRANTED);
    stage_close(&s, RATION_OK);
    CHECK_EQ(script.written, 2);
    CHECK_EQ(script.last_used, 4 * UNIT);
    CHECK_EQ(script.closes, 1);
    CHECK_EQ(script.abandons, 0);
}

static void a_failed_round_comes_again(void **state)
{
    rn_keeper_status status;
    stage s;

    (void)state;
    ledger_reset();
    script.done_err = RATION_ERR_IO;
    stage_open(&s, relaxed, 2 * MS);
    stage_start(&s);
    CHECK_EQ(ask(&s, 3), RATION_GRANTED);
    run(&s, 20 * MS);
    rn_keeper_look_at(s.keeper, &status);
    CHECK_EQ(script.flushes, 1);
    CHECK_EQ(status.attempts, 1);

    CHECK_ROW("after a pause, that grows, with what has changed meanwhile; admissions go on");
    CHECK_EQ(ask(&s, 1), RATION_GRANTED);
    run(&s, 400 * MS);
    rn_keeper_look_at(s.keeper, &status);
    CHECK_EQ(script.flushes, 3);
    CHECK_EQ(status.attempts, 3);
    CHECK_EQ(script.last_used, 4 * UNIT);
    CHECK_EQ(script.written, 0);

    CHECK_ROW("and when it is written all is well");
    script.done_err = RATION_OK;
    run(&s, 600 * MS);
    rn_keeper_look_at(s.keeper, &status);
    CHECK_EQ(status.attempts, 0);
    CHECK(script.written >= 2);
    stage_close(&s, RATION_OK);
    CHECK_EQ(script.closes, 1);
}

static void what_was_not_put_is_given_again(void **state)
{
    stage s;

    (void)state;
    ledger_reset();
    script.puts_left = 0;
    stage_open(&s, relaxed, 2 * MS);
    stage_start(&s);
    CHECK_EQ(ask(&s, 3), RATION_GRANTED);
    run(&s, 20 * MS);
    CHECK_EQ(script.flushes, 0);
    script.puts_left = -1;
    run(&s, 200 * MS);
    CHECK_EQ(script.puts, 1);
    CHECK_EQ(script.last_used, 3 * UNIT);
    CHECK_EQ(script.written, 1);
    stage_close(&s, RATION_OK);
}

static void an_end_that_is_not_written_is_as_a_kill(void **state)
{
    stage s;

    (void)state;
    ledger_reset();
    stage_open(&s, relaxed, 1000 * MS);
    stage_start(&s);
    CHECK_EQ(ask(&s, 3), RATION_GRANTED);
    script.done_err = RATION_ERR_IO;
    stage_close(&s, RATION_ERR_IO);
    CHECK_EQ(script.closes, 0);
    CHECK_EQ(script.abandons, 1);
}

static void an_end_amid_a_flush(void **state)
{
    stage s;

    (void)state;
    ledger_reset();
    script.hangs = true;
    stage_open(&s, relaxed, 2 * MS);
    stage_start(&s);
    CHECK_EQ(ask(&s, 3), RATION_GRANTED);
    run(&s, 20 * MS);
    CHECK(script.flushing);
    script.flushing = false; /* puts of the last word go into the next batch */
    stage_close(&s, RATION_OK);
    CHECK_EQ(script.pending, 0);
    CHECK_EQ(script.closes, 1);
}

/* A start that came to nothing, and a death, leave the mark as it was, or as a kill does. */
static void who_closes_and_who_abandons(void **state)
{
    static const struct {
        const char *why;
        bool unclean, starts, dies;
        size_t closes;
        int want;
    } rows[] = {
        {"a start that fails, after a stop in order", false, false, false, 1, RATION_OK},
        {"a start that fails, after a kill", true, false, false, 0, RATION_OK},
        {"a life after a kill that ends in order", true, true, false, 1, RATION_OK},
        {"a kill", false, true, true, 0, RATION_ERR_IO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        ledger_reset();
        script.unclean = rows[i].unclean;
        stage_open(&s, relaxed, 1000 * MS);
        if (rows[i].starts)
            stage_start(&s);
        if (rows[i].dies)
            rn_keeper_abandon(s.keeper);
        stage_close(&s, rows[i].want);
        CHECK_EQ(script.closes, rows[i].closes);
        CHECK_EQ(script.closes + script.abandons, 1);
    }
}

/* ---- strict */

static void a_mark_is_written_before_it_is_reached(void **state)
{
    stage s;
    int granted = 0;

    (void)state;
    ledger_reset();
    stage_open(&s, strict, 60000 * MS);
    stage_start(&s);
    CHECK_ROW("the first half of a block needs nothing");
    for (int i = 0; i < 4; i++)
        CHECK_EQ(ask(&s, 1), RATION_GRANTED);
    CHECK_EQ(script.flushes, 0);
    CHECK_ROW("then the next mark is written, and nobody waits for it");
    CHECK_EQ(ask(&s, 1), RATION_GRANTED);
    CHECK_EQ(script.flushes, 1);
    run(&s, 20 * MS);
    CHECK_EQ(s.kept_calls, 1);
    CHECK_EQ(script.last_used, 5 * UNIT);

    CHECK_ROW("without a round that was written nothing goes above it");
    script.done_err = RATION_ERR_IO;
    while (ask(&s, 1) == RATION_GRANTED)
        granted++;
    CHECK_EQ(granted, 10);
    run(&s, 20 * MS);
    CHECK_EQ(events_take(&s), 0);
    CHECK_EQ(s.kept_calls, 1);
    CHECK_ROW("and then who waited goes");
    script.done_err = RATION_OK;
    run(&s, 1000 * MS);
    CHECK_EQ(events_take(&s), 1);
    CHECK_EQ(s.kept_calls, 2);
    stage_close(&s, RATION_OK);
}

static void on_kept(rn_keeper_waiter *waiter)
{
    told++;
    CHECK(waiter->in == NULL);
}

static void whoever_must_not_be_told_waits(void **state)
{
    rn_keeper_waiter waiter = {.kept = on_kept}, gone = {.kept = on_kept};
    stage s;

    (void)state;
    ledger_reset();
    told = 0;
    stage_open(&s, strict, 60000 * MS);
    stage_start(&s);
    CHECK_ROW("below the mark there is nothing to wait for");
    CHECK_EQ(ask(&s, 1), RATION_GRANTED);
    settle(&s, s.lease, 2);
    CHECK(!rn_keeper_hold(s.keeper, &waiter));

    CHECK_ROW("above it whoever asks is told after the next round that is written, and whoever has gone is not");
    CHECK_EQ(ask(&s, 1), RATION_GRANTED);
    settle(&s, s.lease, 500);
    CHECK(rn_keeper_hold(s.keeper, &waiter));
    CHECK(rn_keeper_hold(s.keeper, &gone));
    rn_keeper_forget(s.keeper, &gone);
    rn_keeper_forget(s.keeper, &gone);
    script.done_err = RATION_ERR_IO;
    rn_keeper_look(s.keeper);
    run(&s, 20 * MS);
    CHECK_EQ(told, 0);
    script.done_err = RATION_OK;
    run(&s, 400 * MS);
    CHECK_EQ(told, 1);
    CHECK_EQ(script.last_used, 502 * UNIT);
    stage_close(&s, RATION_OK);
}

/* Settled while a flush is under way, which has saved already: its end is not enough. */
static void settled_amid_a_round(void **state)
{
    rn_keeper_waiter waiter = {.kept = on_kept};
    ration_lease leases[2];
    stage s;

    (void)state;
    ledger_reset();
    told = 0;
    stage_open(&s, strict, 60000 * MS);
    stage_start(&s);
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(ask(&s, 1), RATION_GRANTED);
        leases[i] = s.lease;
    }
    script.hangs = true;
    settle(&s, leases[0], 100);
    rn_keeper_look(s.keeper);
    CHECK(script.flushing);
    settle(&s, leases[1], 300);
    CHECK(rn_keeper_hold(s.keeper, &waiter));
    flush_end(RATION_OK);
    CHECK_EQ(told, 0);
    run(&s, 5 * MS);
    CHECK(script.flushing);
    flush_end(RATION_OK);
    CHECK_EQ(told, 1);
    CHECK_EQ(script.last_used, 400 * UNIT);
    script.hangs = false;
    stage_close(&s, RATION_OK);
}

/* Where nothing is strict nobody waits, whatever is on its way. */
static void relaxed_tells_at_once(void **state)
{
    rn_keeper_waiter waiter = {.kept = on_kept};
    stage s;

    (void)state;
    ledger_reset();
    stage_open(&s, relaxed, 2 * MS);
    stage_start(&s);
    script.hangs = true;
    CHECK_EQ(ask(&s, 1), RATION_GRANTED);
    run(&s, 10 * MS);
    CHECK(script.flushing);
    settle(&s, s.lease, 500);
    CHECK(!rn_keeper_hold(s.keeper, &waiter));
    flush_end(RATION_OK);
    script.hangs = false;
    stage_close(&s, RATION_OK);
}

/* ---- the start */

static ration_record penalty_at(int64_t at_us, const char *key)
{
    return (ration_record){.type = RATION_RECORD_PENALTY,
                           .provider = ration_text_of("p"),
                           .limit = ration_text_of("q"),
                           .key = ration_text_of(key),
                           .at = {at_us},
                           .u.penalty = {{at_us}, {at_us + HOUR}, 0, 1}};
}

static void what_was_kept_comes_in_portions(void **state)
{
    static ration_part parts[1000];
    static ration_record records[400];
    stage s;

    (void)state;
    ledger_reset();
    stage_open(&s, relaxed, 1000 * MS);
    const int64_t now_us = rn_loop_now(s.loop).us;
    for (int64_t i = 0; i < 1000; i++)
        parts[i] = (ration_part){{now_us - HOUR + i}, UNIT};
    for (size_t i = 0; i < 400; i++) {
        records[i] = penalty_at(now_us, "a");
        records[i].type = RATION_RECORD_QUOTA;
        records[i].u.quota = (ration_quota_record){.max = RATION_UNSET,
                                                   .mark = RATION_UNSET,
                                                   .remaining_until = {RATION_NEVER_US},
                                                   .exhausted_until = {RATION_NEVER_US},
                                                   .parts = parts,
                                                   .part_count = 1000};
    }
    script.records = records;
    script.record_count = 400;
    script.unclean = true;
    stage_start(&s);
    CHECK(s.load_calls > 4 && s.load_calls < 40);
    CHECK(s.loaded.unclean);
    stage_close(&s, RATION_OK);
}

static void even_nothing_is_a_state(void **state)
{
    stage s;

    (void)state;
    ledger_reset();
    stage_open(&s, relaxed, 1000 * MS);
    stage_start(&s);
    CHECK_EQ(s.load_calls, 1);
    CHECK_EQ(s.loaded.count, 0);
    stage_close(&s, RATION_OK);
}

static void a_record_that_cannot_be(void **state)
{
    rn_net_error error = {""};
    ration_record record = penalty_at(0, "a");
    stage s;

    (void)state;
    ledger_reset();
    stage_open(&s, relaxed, 1000 * MS);
    record.u.penalty.until.us = -5;
    record.key = (ration_text){NULL, 0};
    script.records = &record;
    script.record_count = 1;
    CHECK_EQ(rn_keeper_load(s.keeper, s.engine, &error), RATION_ERR_IO);
    CHECK(strstr(error.text, "ledger: a record") != NULL);
    stage_close(&s, RATION_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_writes_what_has_changed),
        cmocka_unit_test(a_failed_round_comes_again),
        cmocka_unit_test(what_was_not_put_is_given_again),
        cmocka_unit_test(an_end_that_is_not_written_is_as_a_kill),
        cmocka_unit_test(an_end_amid_a_flush),
        cmocka_unit_test(who_closes_and_who_abandons),
        cmocka_unit_test(a_mark_is_written_before_it_is_reached),
        cmocka_unit_test(whoever_must_not_be_told_waits),
        cmocka_unit_test(settled_amid_a_round),
        cmocka_unit_test(relaxed_tells_at_once),
        cmocka_unit_test(what_was_kept_comes_in_portions),
        cmocka_unit_test(even_nothing_is_a_state),
        cmocka_unit_test(a_record_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
