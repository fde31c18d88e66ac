/* SPDX-License-Identifier: MIT */
/*
 * `ration serve`: the gateway and the control port until a signal comes.
 *
 * The config names the ledger, and the ledger has the salt under which the config's credentials have their keys: so the
 * config is read, then the ledger is opened, then the keys are made anew.
 *
 * The first SIGTERM or SIGINT drains: no more is accepted, calls end, status 0. The second one ends at once. Either way
 * recording and ledger are written to their ends. A SIGHUP reads the config anew, once a turn, however many come.
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "net/clock.h"
#include "net/notify.h"
#include "serve/service.h"

#define CONFIG_DEFAULT "ration.yaml"

typedef struct serve_run {
    rn_loop *loop;
    rn_log log;
    ration_config *config;
    rn_keeper *keeper;
    rn_service *service;
    rn_signal *signals[3];
    rn_deferred reload;
    rn_given_socket sockets[2]; /* the gateway's and the control port's, from the service manager */
    bool draining;
    int status;
} serve_run;

typedef struct serve_arguments {
    const char *config;
    const char *record;
    const char *ledger; /* NULL: as the config says */
    bool aside;
} serve_arguments;

/* A supervisor that waits to be told is told; none is no fault. */
static void tell_supervisor(const serve_run *run, const char *state)
{
    const char *address = getenv("NOTIFY_SOCKET");

    if (address != NULL && rn_notify(address, state) != RATION_OK) {
        rn_log_line(&run->log, rn_loop_now(run->loop), "warn", "the supervisor does not listen", "address", address,
                    NULL);
    }
}

static void on_drained(void *user)
{
    serve_run *run = user;

    rn_log_line(&run->log, rn_loop_now(run->loop), "info", "stopped", NULL);
    rn_loop_stop(run->loop);
}

/* The service manager is told when it began, by its own clock. */
static void on_reload(rn_deferred *work)
{
    serve_run *run = (serve_run *)(void *)((char *)work - offsetof(serve_run, reload));
    char began[64];
    rn_reload reload;
    rn_builder b;

    rn_builder_init(&b, began, sizeof began);
    rn_builder_str(&b, "RELOADING=1\nMONOTONIC_USEC=");
    rn_builder_int(&b, rn_clock_ticks());
    if (!run->draining)
        tell_supervisor(run, began);
    rn_reload_init(&reload);
    rn_service_reload(run->service, "SIGHUP", &reload);
    if (!run->draining) {
        tell_supervisor(run, reload.result == RN_RELOADED
                                 ? "READY=1\nSTATUS=The config was read anew."
                                 : "READY=1\nSTATUS=The config was not read anew: see the log.");
    }
    rn_reload_fini(&reload);
}

static void on_signal(void *user, int signum)
{
    serve_run *run = user;
    char calls[24];
    rn_builder b;

    if (signum == SIGHUP) {
        rn_loop_defer(run->loop, &run->reload);
        return;
    }
    rn_builder_init(&b, calls, sizeof calls);
    rn_builder_int(&b, (int64_t)rn_service_calls(run->service));
    if (run->draining) {
        rn_log_line(&run->log, rn_loop_now(run->loop), "warn", "stopping at once", "broken", calls, NULL);
        run->status = RN_EXIT_FAULTS;
        rn_loop_stop(run->loop);
        return;
    }
    run->draining = true;
    rn_log_line(&run->log, rn_loop_now(run->loop), "info", "draining", "signal",
                signum == SIGINT ? "SIGINT" : "SIGTERM", "calls", calls, NULL);
    tell_supervisor(run, "STOPPING=1");
    rn_service_drain(run->service, on_drained, run);
}

/* An address as a client would write it: with the port that was bound in the end. */
static const char *address_text(const rn_address *address, const rn_given_socket *given, uint16_t port, char *buffer,
                                size_t size)
{
    rn_builder b;

    if (given->descriptor != 0)
        return given->text;
    if (address->path != NULL)
        return address->text;
    const bool brackets = strchr(address->host, ':') != NULL;
    rn_builder_init(&b, buffer, size);
    rn_builder_str(&b, brackets ? "[" : "");
    rn_builder_str(&b, address->host);
    rn_builder_str(&b, brackets ? "]:" : ":");
    rn_builder_int(&b, port);
    return buffer;
}

/* Whatever `log.level` is: with port 0 nobody else knows where, and scripts wait for this line. */
static void listening_log(const serve_run *run, const char *record)
{
    const rn_log always = {.descriptor = run->log.descriptor, .format = run->log.format, .level = RN_LOG_INFO};
    const rn_settings *settings = rn_config_settings(run->config);
    rn_ledger_status ledger;
    char gateway[128], control[128];

    rn_ledger_look(rn_keeper_ledger(run->keeper), &ledger);
    rn_log_line(&always, rn_loop_now(run->loop), "info", "listening", "gateway",
                address_text(&settings->gateway, &run->sockets[0], rn_service_gateway_port(run->service), gateway,
                             sizeof gateway),
                "control",
                address_text(&settings->control, &run->sockets[1], rn_service_control_port(run->service), control,
                             sizeof control),
                "recording", record, "ledger", ledger.path != NULL ? ledger.path : "none", "version", RATION_VERSION,
                NULL);
}

/* What is allowed and probably not meant stands in the log, where somebody may look. */
static void warnings_log(const serve_run *run)
{
    size_t count = 0;
    const ration_config_fault *warnings = ration_config_warnings(run->config, &count);

    rn_log_config_faults(&run->log, rn_loop_now(run->loop), warnings, count);
}

static int signals_listen(serve_run *run)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    int err = RATION_OK;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && err == RATION_OK; i++)
        err = rn_signal_new(run->loop, numbers[i], on_signal, run, &run->signals[i]);
    return err;
}

static void complain(int err, const char *text)
{
    (void)fprintf(stderr, "ration serve: %s\n", text[0] != '\0' ? text : ration_err_text(err));
}

static int ledger_open(serve_run *run, const serve_arguments *arguments)
{
    const rn_settings *settings = rn_config_settings(run->config);
    const bool told = arguments->ledger != NULL;
    const bool fleet = rn_fleet_is(run->config); /* whose store has it all */
    const bool none = fleet || (told && strcmp(arguments->ledger, "none") == 0);
    const rn_keeper_options options = {.loop = run->loop,
                                       .log = &run->log,
                                       .path = none   ? NULL
                                               : told ? arguments->ledger
                                                      : settings->ledger,
                                       .aside = arguments->aside,
                                       .flush_us = settings->ledger_flush_us};
    rn_net_error error = {""};

    if (none && !fleet && rn_rules_are_strict(ration_config_rules(run->config))) {
        complain(RATION_ERR_CONFIG, "--ledger none: a strict limit needs a ledger that its mark is kept in");
        return RATION_ERR_CONFIG;
    }
    int err = rn_keeper_open(&options, &run->keeper, &error);
    if (err == RATION_OK)
        err = rn_config_resalt(run->config, rn_keeper_salt(run->keeper));
    if (err != RATION_OK)
        complain(err, error.text);
    return err;
}

/* Sockets of a socket unit, by their names. */
static int sockets_take(serve_run *run, rn_net_error *error)
{
    static const char *const names[] = {"gateway", "control", NULL};
    const rn_activation activation = {getenv("LISTEN_PID"), getenv("LISTEN_FDS"), getenv("LISTEN_FDNAMES")};
    int err = RATION_OK;

    for (size_t i = 0; names[i] != NULL && err == RATION_OK; i++)
        err = rn_activation_take(&activation, getpid(), names[i], &run->sockets[i], error);
    if (err == RATION_OK && rn_activation_unknown(&activation, getpid(), names) > 0) {
        rn_log_line(&run->log, rn_loop_now(run->loop), "warn", "a socket is not used", "hint",
                    "FileDescriptorName= is gateway or control", NULL);
    }
    return err;
}

static int serve(serve_run *run, const serve_arguments *arguments)
{
    const rn_service_options options = {.loop = run->loop,
                                        .config = run->config,
                                        .config_file = arguments->config,
                                        .log = &run->log,
                                        .record = arguments->record,
                                        .keeper = run->keeper,
                                        .gateway = run->sockets[0],
                                        .control = run->sockets[1]};
    rn_net_error error = {""};
    int err = rn_service_new(&options, &run->service, &error);

    if (err == RATION_OK)
        err = signals_listen(run);
    if (err == RATION_OK) {
        warnings_log(run);
        listening_log(run, arguments->record);
        tell_supervisor(run, "READY=1");
        rn_loop_run(run->loop);
        rn_process_deafen();
    } else {
        complain(err, error.text);
        run->status = RN_EXIT_USAGE;
    }
    rn_loop_forget(run->loop, &run->reload);
    rn_service_free(run->service);
    for (size_t i = 0; i < sizeof run->signals / sizeof run->signals[0]; i++)
        rn_signal_free(run->signals[i]);
    return run->status;
}

/* The option's value, or NULL: it is none that has one. */
static const char **value_of(serve_arguments *arguments, const char *option)
{
    const struct {
        const char *option;
        const char **value;
    } options[] = {
        {"--config", &arguments->config}, {"--record", &arguments->record}, {"--ledger", &arguments->ledger}};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(option, options[i].option) == 0)
            return options[i].value;
    }
    return NULL;
}

/* False: the usage was printed. */
static bool arguments_read(const rn_command *self, int argc, char **argv, serve_arguments *out)
{
    *out = (serve_arguments){0};
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        const char **value = value_of(out, argument);
        const bool named = value != NULL;

        if (strcmp(argument, "--ledger-aside") == 0) {
            out->aside = true;
            continue;
        }
        if (!named && argument[0] != '-' && argument[0] != '\0')
            value = &out->config;
        if (value == NULL) {
            (void)rn_usage_error(self, "unknown argument '%s'", argument);
            return false;
        }
        if (named && ++i == argc) {
            (void)rn_usage_error(self, "%s needs a file", argument);
            return false;
        }
        if (*value != NULL) {
            (void)rn_usage_error(self, "%s is given twice", named ? argument : "the config");
            return false;
        }
        *value = argv[i];
    }
    if (out->config == NULL)
        out->config = CONFIG_DEFAULT;
    return true;
}

static int config_read(const char *path, ration_config **out)
{
    ration_config_faults faults = {.count = 0};

    const int err = ration_config_load(path, NULL, out, &faults);
    rn_faults_print(&faults, stderr);
    if (err != RATION_OK && faults.count == 0)
        (void)fprintf(stderr, "ration serve: %s: %s\n", path, ration_err_text(err));
    ration_config_faults_fini(&faults);
    if (err == RATION_OK)
        return RN_EXIT_OK;
    return err == RATION_ERR_CONFIG ? RN_EXIT_FAULTS : RN_EXIT_USAGE;
}

/* With a loop: from the ledger to the end. */
static int run_all(serve_run *run, const serve_arguments *arguments)
{
    rn_net_error error = {""};

    if (sockets_take(run, &error) != RATION_OK) {
        complain(RATION_ERR_CONFIG, error.text);
        run->status = RN_EXIT_USAGE;
        return run->status;
    }
    run->status = ledger_open(run, arguments) == RATION_OK ? serve(run, arguments) : RN_EXIT_USAGE;
    if (rn_keeper_close(run->keeper) != RATION_OK && run->status == RN_EXIT_OK)
        run->status = RN_EXIT_FAULTS;
    return run->status;
}

int rn_cmd_serve(const rn_command *self, int argc, char **argv)
{
    serve_run run = {.log = {.descriptor = STDERR_FILENO}, .reload = {.fn = on_reload}, .status = RN_EXIT_OK};
    serve_arguments arguments;

    if (!arguments_read(self, argc, argv, &arguments))
        return RN_EXIT_USAGE;
    const int status = config_read(arguments.config, &run.config);
    if (status != RN_EXIT_OK)
        return status;
    run.log.format = rn_config_settings(run.config)->log_format;
    run.log.level = rn_config_settings(run.config)->log_level;
    (void)rn_process_prepare();
    if (rn_loop_new(&run.loop) != RATION_OK) {
        (void)fprintf(stderr, "ration serve: no event loop: out of descriptors or memory\n");
        ration_config_free(run.config);
        return RN_EXIT_USAGE;
    }
    (void)run_all(&run, &arguments);
    rn_loop_free(run.loop);
    ration_config_free(run.config);
    return run.status;
}
