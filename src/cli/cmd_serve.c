/* SPDX-License-Identifier: MIT */
/*
 * `ration serve`: the gateway and the control port until a signal comes.
 *
 * The first SIGTERM or SIGINT drains: no more is accepted, calls end, status 0. The second one ends at once with what
 * is recorded so far on disk. A SIGHUP, which elsewhere reads the config anew, must not end a gateway: it is logged.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "net/notify.h"
#include "serve/service.h"

#define CONFIG_DEFAULT "ration.yaml"

typedef struct serve_run {
    rn_loop *loop;
    rn_log log;
    rn_service *service;
    rn_signal *signals[3];
    bool draining;
    int status;
} serve_run;

typedef struct serve_arguments {
    const char *config;
    const char *record;
} serve_arguments;

/* A supervisor that waits to be told is told; none is no fault. */
static void tell_supervisor(const serve_run *run, const char *state)
{
    const char *address = getenv("NOTIFY_SOCKET");

    if (address != NULL && rn_notify(address, state) != RATION_OK)
        rn_log_line(&run->log, rn_loop_now(run->loop), "warn", "the supervisor does not listen", "address", address,
                    NULL);
}

static void on_drained(void *user)
{
    serve_run *run = user;

    rn_log_line(&run->log, rn_loop_now(run->loop), "info", "stopped", NULL);
    rn_loop_stop(run->loop);
}

static void on_signal(void *user, int signum)
{
    serve_run *run = user;
    char calls[24];
    rn_builder b;

    if (signum == SIGHUP) {
        rn_log_line(&run->log, rn_loop_now(run->loop), "warn", "the config is read at the start only", "signal",
                    "SIGHUP", NULL);
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
static const char *address_text(const rn_address *address, uint16_t port, char *buffer, size_t size)
{
    rn_builder b;

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

static void listening_log(const serve_run *run, const ration_config *config, const char *record)
{
    const rn_settings *settings = rn_config_settings(config);
    char gateway[128], control[128];

    rn_log_line(&run->log, rn_loop_now(run->loop), "info", "listening", "gateway",
                address_text(&settings->gateway, rn_service_gateway_port(run->service), gateway, sizeof gateway),
                "control",
                address_text(&settings->control, rn_service_control_port(run->service), control, sizeof control),
                "recording", record, "version", RATION_VERSION, NULL);
}

/* What is allowed and probably not meant stands in the log, where somebody may look. */
static void warnings_log(const serve_run *run, const ration_config *config)
{
    size_t count = 0;
    const ration_config_fault *warnings = ration_config_warnings(config, &count);

    for (size_t i = 0; i < count; i++) {
        char place[1024];
        rn_builder b;

        rn_builder_init(&b, place, sizeof place);
        rn_builder_str(&b, warnings[i].file);
        rn_builder_char(&b, ':');
        rn_builder_int(&b, warnings[i].line);
        rn_builder_char(&b, ':');
        rn_builder_int(&b, warnings[i].column);
        rn_log_line(&run->log, rn_loop_now(run->loop), "warn", warnings[i].text, "config", place, "path",
                    warnings[i].path, "hint", warnings[i].hint[0] != '\0' ? warnings[i].hint : NULL, NULL);
    }
}

static int signals_listen(serve_run *run)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    int err = RATION_OK;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && err == RATION_OK; i++)
        err = rn_signal_new(run->loop, numbers[i], on_signal, run, &run->signals[i]);
    return err;
}

static int serve(serve_run *run, const ration_config *config, const char *record)
{
    const rn_service_options options = {.loop = run->loop, .config = config, .log = &run->log, .record = record};
    rn_net_error error = {""};
    int err = rn_service_new(&options, &run->service, &error);

    if (err == RATION_OK)
        err = signals_listen(run);
    if (err == RATION_OK) {
        warnings_log(run, config);
        listening_log(run, config, record);
        tell_supervisor(run, "READY=1");
        rn_loop_run(run->loop);
    } else {
        (void)fprintf(stderr, "ration serve: %s\n", error.text[0] != '\0' ? error.text : ration_err_text(err));
        run->status = RN_EXIT_USAGE;
    }
    rn_service_free(run->service);
    for (size_t i = 0; i < sizeof run->signals / sizeof run->signals[0]; i++)
        rn_signal_free(run->signals[i]);
    return run->status;
}

/* False: the usage was printed. */
static bool arguments_read(const rn_command *self, int argc, char **argv, serve_arguments *out)
{
    *out = (serve_arguments){0};
    for (int i = 1; i < argc; i++) {
        const char **value = strcmp(argv[i], "--config") == 0   ? &out->config
                             : strcmp(argv[i], "--record") == 0 ? &out->record
                                                                : NULL;
        const bool named = value != NULL;

        if (!named && argv[i][0] != '-' && argv[i][0] != '\0')
            value = &out->config;
        if (value == NULL) {
            (void)rn_usage_error(self, "unknown argument '%s'", argv[i]);
            return false;
        }
        if (named && ++i == argc) {
            (void)rn_usage_error(self, "%s needs a file", argv[i - 1]);
            return false;
        }
        if (*value != NULL) {
            (void)rn_usage_error(self, "one %s at a time", value == &out->config ? "config" : "recording");
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

int rn_cmd_serve(const rn_command *self, int argc, char **argv)
{
    serve_run run = {.log = {STDERR_FILENO}, .status = RN_EXIT_OK};
    serve_arguments arguments;
    ration_config *config = NULL;

    if (!arguments_read(self, argc, argv, &arguments))
        return RN_EXIT_USAGE;
    const int status = config_read(arguments.config, &config);
    if (status != RN_EXIT_OK)
        return status;
    (void)rn_process_prepare();
    if (rn_loop_new(&run.loop) != RATION_OK) {
        (void)fprintf(stderr, "ration serve: no event loop: out of descriptors or memory\n");
        ration_config_free(config);
        return RN_EXIT_USAGE;
    }
    run.status = serve(&run, config, arguments.record);
    rn_loop_free(run.loop);
    ration_config_free(config);
    return run.status;
}
