/* SPDX-License-Identifier: MIT */
/*
 * The parts of `ration serve`, put together in the order in which they depend on each other and taken apart in the
 * opposite one: recording, engine, what was kept, jobs, gateway, control port.
 */
#include "serve/service_parts.h"

#include <sys/random.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define FLUSH_US INT64_C(1000000)

static void error_set(rn_net_error *error, const char *what, const char *between, const char *more)
{
    rn_builder b;

    rn_builder_init(&b, error->text, sizeof error->text);
    rn_builder_str(&b, what);
    rn_builder_str(&b, between);
    rn_builder_str(&b, more);
}

bool rn_service_guarded(const ration_config *config)
{
    size_t clients = 0;

    (void)rn_config_clients(config, &clients);
    return clients > 0 || rn_config_settings(config)->token != NULL;
}

/* A socket that was given is asked itself; the address that the config has in its place means nothing then. */
static int addresses_check(const rn_service_options *options, rn_net_error *error)
{
    const rn_settings *settings = rn_config_settings(options->config);
    const rn_address *const addresses[] = {&settings->gateway, &settings->control};
    const rn_given_socket *const given[] = {&options->gateway, &options->control};

    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        const bool is_given = given[i]->descriptor != 0;

        if ((is_given ? given[i]->local : addresses[i]->local) || rn_service_guarded(options->config))
            continue;
        error_set(error, is_given ? given[i]->text : addresses[i]->text, ": ",
                  "others can reach this listener, so settings.token or clients are needed");
        return RATION_ERR_CONFIG;
    }
    return RATION_OK;
}

static void on_flush(void *user, ration_time now)
{
    rn_service *s = user;

    rn_recorder_flush(s->recorder);
    (void)rn_timer_set(&s->flush, rn_time_add(now, FLUSH_US));
}

static int recording_make(rn_service *s, const ration_config *config, const char *path, rn_net_error *error)
{
    const rn_recording_options options = {.loop = s->loop, .log = s->log, .path = path};
    rn_recorder_options recorder = {.rules = ration_config_rules(config),
                                    .started_at = rn_loop_now(s->loop),
                                    .write = rn_recording_write,
                                    .failed = rn_recording_failed};
    char *json = NULL;

    int err = rn_recording_open(&options, &s->recording, error);
    if (err == RATION_OK)
        err = rn_config_json(config, &json, &recorder.config.size);
    if (err != RATION_OK)
        return err;
    recorder.config.data = json;
    recorder.ctx = s->recording;
    err = rn_recorder_new(&recorder, &s->recorder);
    rn_mem_free(rn_mem_default(), json);
    return err == RATION_OK ? rn_timer_set(&s->flush, rn_time_add(rn_loop_now(s->loop), FLUSH_US)) : err;
}

static void on_step(void *user, ration_time now, int64_t by_us)
{
    rn_service *s = user;

    (void)ration_engine_step(s->engine, now, by_us);
    if (s->gateway != NULL)
        rn_gateway_touch(s->gateway);
}

/*
 * An API's client may release a lease that it got from an earlier run: the names of this one begin elsewhere, with room
 * for 2^31 lives of each place. Without randomness they begin at 1.
 */
static uint32_t first_generation(void)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = 0;
    return (random & INT32_MAX) + 1;
}

static int engine_make(rn_service *s, const ration_config *config, rn_net_error *error)
{
    const ration_engine_options options = {.rules = ration_config_rules(config),
                                           .sink = s->recorder != NULL ? rn_recorder_sink(s->recorder) : NULL,
                                           .keeps = s->keeper != NULL && rn_keeper_keeps(s->keeper),
                                           .first_generation = first_generation()};
    ration_fault fault = {"", ""};
    const int err = ration_engine_new(&options, rn_loop_now(s->loop), &s->engine, &fault);

    if (err == RATION_ERR_CONFIG)
        error_set(error, fault.path, ": ", fault.text);
    if (err != RATION_OK)
        return err;
    s->decider = rn_engine_decider_init(&s->engine_decider, s->engine);
    rn_loop_on_step(s->loop, on_step, s);
    return s->keeper != NULL ? rn_keeper_load(s->keeper, s->engine, error) : RATION_OK;
}

static void on_woken(void *ctx)
{
    const rn_service *s = ctx;

    if (s->gateway != NULL)
        rn_gateway_touch(s->gateway);
}

static void on_member(void *ctx, rn_member_state state, const char *text)
{
    const rn_service *s = ctx;

    rn_fleet_tell(s->log, s->bulletin, rn_loop_now(s->loop), state, text);
}

static void on_member_failed(void *ctx, const char *text)
{
    rn_service *s = ctx;

    rn_log_gated(s->log, &s->member_gate, rn_loop_now(s->loop), "warn",
                 "the fleet's store did not do what it was asked", "words", text, NULL);
}

static void on_salt(void *ctx, ration_text salt)
{
    const rn_service *s = ctx;

    rn_fleet_rekey(s->member, rn_gateway_config(s->gateway), salt);
}

rn_fleet_options rn_service_fleet(rn_service *s, const ration_config *config)
{
    return (rn_fleet_options){.loop = s->loop,
                              .config = config,
                              .first_generation = first_generation(),
                              .woken = on_woken,
                              .changed = on_member,
                              .failed = on_member_failed,
                              .salt_known = on_salt,
                              .ctx = s};
}

static int member_make(rn_service *s, const rn_service_options *options, rn_net_error *error)
{
    const rn_fleet_options fleet = rn_service_fleet(s, options->config);

    if (options->record != NULL) {
        error_set(error, options->record, ": ", "a recording is of limits in memory, and these are in a store");
        return RATION_ERR_CONFIG;
    }

    const int err = rn_fleet_join(&fleet, &s->member, error);

    if (err == RATION_OK)
        s->decider = rn_member_decider(s->member);
    return err;
}

/* The decider was called; what strict quotas need now may be more than before. */
static void on_settled(void *user)
{
    rn_service *s = user;

    if (s->keeper != NULL)
        rn_keeper_look(s->keeper);
}

static void on_touched(void *user)
{
    rn_service *s = user;

    rn_gateway_touch(s->gateway);
}

/* Without memory the next process knows of a run less: no reason to lose this one. */
static void on_ran(void *ctx, ration_time begun, ration_text job, const ration_run *run)
{
    rn_service *s = ctx;
    const rn_ledger_run kept = {.job = job, .at = begun, .run = *run};

    if (s->keeper != NULL && rn_keeper_ledger(s->keeper) != NULL)
        (void)rn_ledger_put_run(rn_keeper_ledger(s->keeper), &kept);
}

/* What the process before knew of runs; of jobs that are no more it is left out. */
static int runs_restore(rn_service *s, rn_net_error *error)
{
    const rn_ledger_run *runs = NULL;
    rn_ledger_error fault = {""};
    size_t count = 0;

    const int err = rn_ledger_load_runs(rn_keeper_ledger(s->keeper), &runs, &count, &fault);
    if (err != RATION_OK) {
        error_set(error, fault.text, "", "");
        return err;
    }
    for (size_t i = 0; i < count; i++)
        (void)rn_planning_restore(s->planning, runs[i].job, runs[i].at, &runs[i].run);
    return RATION_OK;
}

static int jobs_make(rn_service *s, const ration_config *config, rn_net_error *error)
{
    const rn_planning_options options = {
        .loop = s->loop, .decider = s->decider, .config = config, .log = s->log, .ctx = s, .ran = on_ran};
    const int err = rn_planning_new(&options, &s->planning);

    return err == RATION_OK && s->keeper != NULL ? runs_restore(s, error) : err;
}

static int ports_make(rn_service *s, const rn_service_options *options, rn_net_error *error)
{
    int err = rn_bulletin_new(s->loop, &s->bulletin);
    if (err == RATION_OK)
        err = rn_refusals_new(&s->refusals);
    if (err != RATION_OK)
        return err;

    const rn_gateway_options gateway = {.loop = s->loop,
                                        .decider = s->decider,
                                        .config = options->config,
                                        .log = s->log,
                                        .planning = s->planning,
                                        .bulletin = s->bulletin,
                                        .refusals = s->refusals,
                                        .settled = on_settled,
                                        .user = s,
                                        .descriptor = options->gateway.descriptor};
    err = rn_gateway_new(&gateway, &s->gateway, error);
    if (err != RATION_OK)
        return err;

    const rn_control_options control = {.loop = s->loop,
                                        .decider = s->decider,
                                        .gateway = s->gateway,
                                        .planning = s->planning,
                                        .recording = s->recording,
                                        .keeper = s->keeper,
                                        .member = s->member,
                                        .reloader = &s->reloader,
                                        .reloads = &s->reloads,
                                        .descriptor = options->control.descriptor};
    return rn_control_new(&control, &s->control, error);
}

static int decider_make(rn_service *s, const rn_service_options *options, rn_net_error *error)
{
    int err = RATION_OK;

    if (rn_fleet_is(options->config))
        return member_make(s, options, error);
    if (options->record != NULL)
        err = recording_make(s, options->config, options->record, error);
    return err == RATION_OK ? engine_make(s, options->config, error) : err;
}

static void on_reload(void *user, const char *by, rn_reload *out)
{
    rn_service_reload(user, by, out);
}

static void on_drain_over(void *user, ration_time now)
{
    rn_service *s = user;

    rn_log_line(s->log, now, "warn", "drain time is over, breaking what still runs", NULL);
    rn_gateway_abort(s->gateway);
}

int rn_service_new(const rn_service_options *options, rn_service **out, rn_net_error *error)
{
    const ration_config *config = options->config;
    rn_service *s = rn_mem_zalloc(rn_mem_default(), 1, sizeof *s);

    if (s == NULL)
        return RATION_ERR_NOMEM;
    s->loop = options->loop;
    s->log = options->log;
    s->config_file = options->config_file;
    s->keeper = options->keeper;
    s->reloader = (rn_api_reloader){on_reload, s};
    s->reloads = (rn_reload_counts){.well = 1, .loaded_at = rn_loop_now(s->loop)};
    rn_timer_init(&s->drain, s->loop, on_drain_over, s);
    rn_timer_init(&s->flush, s->loop, on_flush, s);

    s->exposed = (options->gateway.descriptor != 0 && !options->gateway.local) ||
                 (options->control.descriptor != 0 && !options->control.local);

    int err = addresses_check(options, error);
    if (err == RATION_OK)
        err = decider_make(s, options, error);
    if (err == RATION_OK)
        err = jobs_make(s, config, error);
    if (err == RATION_OK)
        err = ports_make(s, options, error);
    if (err == RATION_OK && s->keeper != NULL && s->engine != NULL)
        err = rn_keeper_start(s->keeper, s->engine, ration_config_rules(config), on_touched, s);
    if (err == RATION_OK && s->recording != NULL) {
        err = rn_recording_begin(s->recording);
        if (err != RATION_OK)
            error_set(error, options->record, ": ", "cannot be set in the place of an earlier recording");
    }
    if (err != RATION_OK) {
        rn_service_free(s);
        return err;
    }
    rn_planning_start(s->planning, s->gateway);
    *out = s;
    return RATION_OK;
}

uint16_t rn_service_gateway_port(const rn_service *s)
{
    return rn_gateway_port(s->gateway);
}

uint16_t rn_service_control_port(const rn_service *s)
{
    return rn_control_port(s->control);
}

static void on_left(void *user)
{
    const rn_service *s = user;

    s->on_drained(s->drained_user);
}

/* Those who listen have heard of the last call; a fleet is yet to hear of its end. */
static void on_calls_ended(void *user)
{
    rn_service *s = user;

    rn_bulletin_close(s->bulletin);
    if (s->member != NULL) {
        rn_member_leave(s->member, on_left, s);
    } else {
        on_left(s);
    }
}

/* Those who wait hear of it before anything is closed, however many they are. */
static void waiters_refuse(rn_service *s)
{
    const ration_counter_name none = {.provider = {NULL, 0}};
    rn_decider *d = s->decider;

    if (d->ops->operate(d, rn_loop_now(s->loop), RATION_OP_DRAIN, &none, 0) == RATION_OK)
        rn_gateway_settle(s->gateway);
}

void rn_service_drain(rn_service *s, void (*on_drained)(void *user), void *user)
{
    const int64_t drain_us = rn_config_settings(rn_gateway_config(s->gateway))->drain_us;

    s->on_drained = on_drained;
    s->drained_user = user;
    waiters_refuse(s);
    /* Without a timer nothing would end a drain: then it ends now. */
    if (rn_timer_set(&s->drain, rn_time_add(rn_loop_now(s->loop), drain_us)) != RATION_OK) {
        rn_gateway_close(s->gateway, on_calls_ended, s);
        rn_gateway_abort(s->gateway);
        return;
    }
    rn_gateway_close(s->gateway, on_calls_ended, s);
}

rn_decider *rn_service_decider(rn_service *s)
{
    return s->decider;
}

void rn_service_touch(rn_service *s)
{
    rn_gateway_touch(s->gateway);
}

size_t rn_service_calls(const rn_service *s)
{
    size_t calls = 0;

    for (size_t i = 0; i < RN_EXCHANGE_LEAVING; i++)
        calls += rn_gateway_in_state(s->gateway, (rn_exchange_state)i);
    return calls;
}

void rn_service_free(rn_service *s)
{
    if (s == NULL)
        return;
    rn_timer_stop(&s->drain);
    rn_timer_stop(&s->flush);
    if (s->bulletin != NULL)
        rn_bulletin_close(s->bulletin);
    rn_control_free(s->control);
    rn_gateway_free(s->gateway);
    rn_planning_free(s->planning);
    rn_bulletin_free(s->bulletin);
    rn_refusals_free(s->refusals);
    if (s->keeper != NULL)
        rn_keeper_stop(s->keeper);
    rn_loop_on_step(s->loop, NULL, NULL);
    rn_member_free(s->member);
    ration_engine_free(s->engine);
    rn_recorder_free(s->recorder);
    rn_recording_close(s->recording);
    ration_config_free(s->owned);
    rn_mem_free(rn_mem_default(), s);
}
