/* SPDX-License-Identifier: MIT */
/*
 * From the engine to the ledger, in rounds: save, put, flush, kept.
 *
 * One round at a time. A round begins when `flush` has passed, when a strict quota needs it, or when one that failed is
 * due again. The engine is told `kept` only after a round of which every record reached the disk: what was not put is
 * lost to the engine's list of changes, so then the next round saves everything.
 *
 * Whoever must not be told before something is durable waits for the next round: the one that is under way has saved
 * already.
 *
 * A ledger that cannot be written costs no call anything: rounds are tried again, with pauses that double up to 5 s,
 * and what is to be written is never more than there is to keep.
 *
 * Invariants: `engine` is set between start and stop; no save between the begin of a flush and its `kept`; a waiter is
 * in at most one list, and `in` says which; `present` is empty unless a flush is under way.
 */
#include "serve/keeper_parts.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define RETRY_FIRST_US INT64_C(100000)
#define RETRY_MAX_US INT64_C(5000000)
#define COMPLAIN_US INT64_C(60000000)

/* ---- opening */

static void on_timer(void *user, ration_time now);

int rn_keeper_open(const rn_keeper_options *options, rn_keeper **out, rn_net_error *error)
{
    const rn_ledger_options ledger = {
        .path = options->path, .now = rn_loop_now(options->loop), .aside = options->aside};
    rn_keeper *k = rn_mem_zalloc(rn_mem_default(), 1, sizeof *k);
    rn_ledger_error fault = {""};

    if (k == NULL)
        return RATION_ERR_NOMEM;
    k->loop = options->loop;
    k->log = options->log;
    k->flush_us = options->flush_us;
    k->written_at = ledger.now;
    rn_timer_init(&k->timer, k->loop, on_timer, k);
    TAILQ_INIT(&k->present);
    TAILQ_INIT(&k->next);
    const int err = rn_ledger_open(&ledger, &k->ledger, &fault);
    if (err != RATION_OK) {
        rn_keeper_error(error, fault.text, NULL);
        rn_mem_free(rn_mem_default(), k);
        return err;
    }
    if (rn_ledger_aside(k->ledger) != NULL) {
        rn_log_line(k->log, ledger.now, "warn", "the ledger could not be read and was put aside", "ledger",
                    options->path, "aside", rn_ledger_aside(k->ledger), NULL);
    }
    *out = k;
    return RATION_OK;
}

const char *rn_keeper_path(const rn_keeper *k)
{
    rn_ledger_status status;

    rn_ledger_look(k->ledger, &status);
    return status.path;
}

void rn_keeper_error(rn_net_error *error, const char *what, const char *more)
{
    rn_builder b;

    rn_builder_init(&b, error->text, sizeof error->text);
    rn_builder_str(&b, what);
    if (more != NULL) {
        rn_builder_str(&b, ": ");
        rn_builder_str(&b, more);
    }
}

bool rn_keeper_keeps(const rn_keeper *k)
{
    return rn_keeper_path(k) != NULL;
}

ration_text rn_keeper_salt(const rn_keeper *k)
{
    return rn_ledger_salt(k->ledger);
}

rn_ledger *rn_keeper_ledger(rn_keeper *k)
{
    return k->ledger;
}

/* ---- rounds */

static void timer_set(rn_keeper *k, int64_t in_us)
{
    /* Without memory rn_keeper_look tries again. */
    (void)rn_timer_set(&k->timer, rn_time_add(rn_loop_now(k->loop), in_us));
}

static void trouble_log(rn_keeper *k, int err, int64_t again_us)
{
    const ration_time now = rn_loop_now(k->loop);
    rn_ledger_status status;
    char again[24];
    rn_builder b;

    if (k->attempts > 1 && rn_sub(now.us, k->complained_at.us) < COMPLAIN_US)
        return;
    k->complained_at = now;
    rn_ledger_look(k->ledger, &status);
    rn_builder_init(&b, again, sizeof again);
    rn_builder_int(&b, again_us / 1000);
    const bool at_end = again_us == RATION_UNSET;
    rn_log_line(k->log, now, "error",
                at_end ? "the ledger could not be written, what was spent last is forgotten"
                       : "the ledger cannot be written",
                "ledger", status.path, "error",
                err == RATION_ERR_IO && status.error[0] != '\0' ? status.error : ration_err_text(err), "again_ms",
                at_end ? NULL : again, NULL);
}

static void round_failed(rn_keeper *k, int err)
{
    int64_t again_us = RETRY_FIRST_US;
    rn_keeper_waiter *waiter;

    for (uint64_t i = 0; i < k->attempts && again_us < RETRY_MAX_US; i++)
        again_us *= 2;
    again_us = rn_min(again_us, RETRY_MAX_US);
    k->attempts++;
    k->troubled = true;
    while ((waiter = TAILQ_LAST(&k->present, rn_keeper_waiters)) != NULL) {
        TAILQ_REMOVE(&k->present, waiter, link);
        TAILQ_INSERT_HEAD(&k->next, waiter, link);
        waiter->in = &k->next;
    }
    trouble_log(k, err, again_us);
    timer_set(k, again_us);
}

static void waiters_tell(rn_keeper *k)
{
    rn_keeper_waiter *waiter;

    while ((waiter = TAILQ_FIRST(&k->present)) != NULL) {
        rn_keeper_forget(k, waiter);
        waiter->kept(waiter);
    }
}

static void round_written(rn_keeper *k)
{
    const ration_time now = rn_loop_now(k->loop);
    const int err = k->owed ? ration_engine_kept(k->engine, now) : RATION_OK;

    k->touched(k->user);
    if (err != RATION_OK) {
        round_failed(k, err);
        return;
    }
    if (k->troubled)
        rn_log_line(k->log, now, "info", "the ledger is written again", "ledger", rn_keeper_path(k), NULL);
    k->written_at = k->round_at;
    k->owed = false;
    k->troubled = false;
    k->attempts = 0;
    waiters_tell(k);
    timer_set(k, TAILQ_EMPTY(&k->next) ? k->flush_us : 0);
}

static void on_flushed(void *user, int err)
{
    rn_keeper *k = user;

    k->flushing = false;
    if (err == RATION_OK) {
        round_written(k);
    } else {
        round_failed(k, err);
    }
}

static void on_record(void *ctx, const ration_record *record)
{
    rn_keeper *k = ctx;

    k->owed = true;
    if (k->whole && rn_ledger_put(k->ledger, record) != RATION_OK)
        k->whole = false;
}

/* Everything that has changed, into the batch. RATION_ERR_NOMEM: not all of it, and the next time it is everything. */
static int changes_take(rn_keeper *k)
{
    k->whole = true;

    const int err = ration_engine_save(k->engine, rn_loop_now(k->loop), k->all, k, on_record);

    k->all = k->all || !k->whole;
    if (err != RATION_OK || !k->whole)
        return err != RATION_OK ? err : RATION_ERR_NOMEM;
    k->all = false;
    return RATION_OK;
}

static void round_begin(rn_keeper *k)
{
    rn_ledger_status status;
    rn_keeper_waiter *waiter;

    k->round_at = rn_loop_now(k->loop);
    TAILQ_FOREACH (waiter, &k->next, link)
        waiter->in = &k->present;
    TAILQ_CONCAT(&k->present, &k->next, link);
    int err = changes_take(k);
    k->touched(k->user);
    if (err != RATION_OK) {
        round_failed(k, err);
        return;
    }
    rn_ledger_look(k->ledger, &status);
    if (status.pending == 0) {
        round_written(k);
        return;
    }
    err = rn_ledger_flush(k->ledger, k->loop, rn_loop_now(k->loop), on_flushed, k);
    if (err != RATION_OK) {
        round_failed(k, err);
        return;
    }
    k->flushing = true;
    rn_timer_stop(&k->timer);
}

static void on_timer(void *user, ration_time now)
{
    rn_keeper *k = user;

    (void)now;
    if (!k->flushing)
        round_begin(k);
}

static bool any_strict(const ration_limit_rule *limits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (limits[i].kind == RATION_KIND_QUOTA && limits[i].durability == RATION_DURABILITY_STRICT)
            return true;
    }
    return false;
}

bool rn_rules_are_strict(const ration_rules *rules)
{
    for (size_t i = 0; i < rules->provider_count; i++) {
        if (any_strict(rules->providers[i].limits, rules->providers[i].limit_count))
            return true;
    }
    for (size_t i = 0; i < rules->account_count; i++) {
        if (any_strict(rules->accounts[i].limits, rules->accounts[i].limit_count))
            return true;
    }
    return false;
}

int rn_keeper_start(rn_keeper *k, ration_engine *engine, const ration_rules *rules, void (*touched)(void *user),
                    void *user)
{
    if (!rn_keeper_keeps(k))
        return RATION_OK;
    k->engine = engine;
    k->began = true;
    k->strict = rn_rules_are_strict(rules);
    k->touched = touched;
    k->user = user;
    return rn_timer_set(&k->timer, rn_time_add(rn_loop_now(k->loop), k->flush_us));
}

void rn_keeper_reloaded(rn_keeper *k, const ration_rules *rules, int64_t flush_us)
{
    if (k->engine == NULL)
        return;
    k->strict = rn_rules_are_strict(rules);
    if (flush_us < k->flush_us && !k->flushing && !k->troubled)
        timer_set(k, flush_us);
    k->flush_us = flush_us;
}

void rn_keeper_look(rn_keeper *k)
{
    if (k->engine == NULL || k->flushing)
        return;
    /* There was no memory to set it. */
    if (!rn_timer_is_set(&k->timer))
        timer_set(k, k->flush_us);
    if (!k->troubled && ration_engine_need(k->engine) != RATION_NEED_NOTHING)
        round_begin(k);
}

/* ---- those who wait to be told */

bool rn_keeper_hold(rn_keeper *k, rn_keeper_waiter *waiter)
{
    if (k->engine == NULL || ration_engine_need(k->engine) != RATION_NEED_SAVE_NOW)
        return false;
    waiter->in = &k->next;
    TAILQ_INSERT_TAIL(&k->next, waiter, link);
    k->waiting++;
    return true;
}

void rn_keeper_forget(rn_keeper *k, rn_keeper_waiter *waiter)
{
    if (waiter->in == NULL)
        return;
    TAILQ_REMOVE(waiter->in, waiter, link);
    waiter->in = NULL;
    k->waiting--;
}

/* ---- how it is, and the end */

void rn_keeper_look_at(rn_keeper *k, rn_keeper_status *out)
{
    const ration_time now = rn_loop_now(k->loop);

    *out = (rn_keeper_status){
        .age_us = rn_max(0, rn_sub(now.us, k->written_at.us)), .waiting = k->waiting, .attempts = k->attempts};
    rn_ledger_look(k->ledger, &out->ledger);
    out->behind = k->strict && k->troubled && k->owed;
    if (k->engine != NULL)
        out->need = ration_engine_need(k->engine);
}

void rn_keeper_stop(rn_keeper *k)
{
    rn_timer_stop(&k->timer);
    if (k->engine == NULL)
        return;

    int err = changes_take(k);
    const int written = rn_ledger_flush_now(k->ledger, rn_loop_now(k->loop));
    err = err != RATION_OK ? err : written;
    k->flushing = false;
    k->engine = NULL;
    k->stopped = err == RATION_OK;
    k->attempts = 0;
    if (err != RATION_OK)
        trouble_log(k, err, RATION_UNSET);
}

void rn_keeper_abandon(rn_keeper *k)
{
    rn_timer_stop(&k->timer);
    k->engine = NULL;
    rn_ledger_abandon(k->ledger);
    k->ledger = NULL;
}

int rn_keeper_close(rn_keeper *k)
{
    rn_ledger_status status = {.unclean = true};

    if (k == NULL)
        return RATION_OK;
    rn_timer_stop(&k->timer);
    if (k->ledger != NULL)
        rn_ledger_look(k->ledger, &status);
    const int err = !k->began || k->stopped ? RATION_OK : RATION_ERR_IO;
    if (k->stopped || (!k->began && !status.unclean)) {
        rn_ledger_close(k->ledger, rn_loop_now(k->loop));
    } else if (k->ledger != NULL) {
        rn_ledger_abandon(k->ledger);
    }
    rn_mem_free(rn_mem_default(), k);
    return err;
}
