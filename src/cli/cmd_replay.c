/* SPDX-License-Identifier: MIT */
/*
 * `ration replay`: a trace through a fresh engine, its decisions to standard output.
 *
 * The file is read in pieces and never whole. What is wrong goes to standard error as file:line:column: what. With a
 * store the scripts in it decide beside the engine, and the first decision in which they differ ends the replay.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ration/config.h>

#include "cli/cli.h"
#include "fleet/twin.h"
#include "trace/replay.h"

#define STORE_TIMEOUT_US (5 * INT64_C(1000000))

typedef struct replay_arguments {
    const char *config; /* NULL: the trace's own */
    const char *trace;
    const char *store; /* NULL: none */
    bool verify;
} replay_arguments;

/* RN_EXIT_OK, and then there is a trace, or the status after a usage error. */
static int arguments_read(const rn_command *self, int argc, char **argv, replay_arguments *out)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verify") == 0) {
            out->verify = true;
        } else if (strcmp(argv[i], "--config") == 0) {
            if (i + 1 == argc)
                return rn_usage_error(self, "--config needs a file");
            out->config = argv[++i];
        } else if (strcmp(argv[i], "--store") == 0) {
            if (i + 1 == argc)
                return rn_usage_error(self, "--store needs the URL of a Redis, such as redis://127.0.0.1:6379");
            out->store = argv[++i];
        } else if (argv[i][0] == '-' && argv[i][1] != '\0') {
            return rn_usage_error(self, "unknown option '%s'", argv[i]);
        } else if (out->trace != NULL) {
            return rn_usage_error(self, "one trace at a time; `cat` joins the parts of one, and - reads them");
        } else {
            out->trace = argv[i];
        }
    }
    if (out->trace == NULL)
        return rn_usage_error(self, "which trace?");
    if (out->store != NULL && out->verify)
        return rn_usage_error(self, "--store compares with the engine, --verify with what was recorded: one at a time");
    return RN_EXIT_OK;
}

static int line_write(void *ctx, const char *line, size_t size)
{
    (void)ctx;
    return fwrite(line, 1, size, stdout) == size ? 0 : -1;
}

/* What a replay stopped at; its name is `-` for standard input, as it was given. */
static int error_print(const rn_replay *replay, const char *name, int err)
{
    const rn_trace_fault *const fault = rn_replay_fault(replay);

    if (err == RATION_ERR_SYNTAX) {
        (void)fprintf(stderr, "%s:%zu:%zu: %s\n", name, fault->line, fault->column, fault->text);
    } else if (err == RATION_ERR_CONFIG) {
        rn_faults_print(rn_replay_config_faults(replay), stderr);
    } else if (err != RATION_ERR_IO) {
        /* rn_finish_output says what was wrong with the output. */
        (void)fprintf(stderr, "ration replay: %s: %s\n", name, ration_err_text(err));
    }
    return rn_finish_output(RN_EXIT_USAGE);
}

static void side_print(const char *label, ration_text line)
{
    (void)printf("%s ", label);
    if (line.data != NULL) {
        (void)fwrite(line.data, 1, line.size, stdout);
    } else {
        (void)fputs("nothing", stdout);
    }
    (void)putchar('\n');
}

/* Nothing was compared, so nothing is known to be right. */
static int nothing_print(const char *name, const char *what)
{
    (void)fprintf(stderr, "ration replay: %s: %s: it is empty, or has been cut\n", name, what);
    return rn_finish_output(RN_EXIT_USAGE);
}

static int verdict_print(const rn_replay *replay, const char *name)
{
    const rn_verify_difference *const difference = rn_replay_difference(replay);

    if (difference == NULL && rn_replay_matched(replay) == 0)
        return nothing_print(name, "no answer stands in it to be verified");
    if (difference == NULL) {
        (void)printf("%zu lines come out as recorded\n", rn_replay_matched(replay));
        return rn_finish_output(RN_EXIT_OK);
    }
    (void)printf("%s:%zu: differs\n", name, difference->line);
    side_print("recorded:", difference->recorded);
    side_print("replayed:", difference->produced);
    return rn_finish_output(RN_EXIT_FAULTS);
}

/* The scripts beside the engine. */
typedef struct store_twin {
    rn_twin twin;
    rn_twin_options options;
    bool made;
} store_twin;

static int store_decide(void *ctx, rn_decider *engine, const ration_rules *rules, ration_time start, rn_decider **out)
{
    store_twin *const store = ctx;

    store->made = true;
    *out = &store->twin.base;
    return rn_twin_init(&store->twin, &store->options, engine, rules, start);
}

static int store_verdict(const store_twin *store, const replay_arguments *arguments, const rn_replay *replay)
{
    const rn_twin *const twin = &store->twin;

    if (twin->text[0] == '\0' && twin->compared == 0)
        return nothing_print(arguments->trace, "no call stands in it that a store would answer");
    if (twin->text[0] == '\0') {
        (void)printf("%zu answers of the store are the core's\n", twin->compared);
        return rn_finish_output(RN_EXIT_OK);
    }
    if (twin->differs) {
        (void)printf("%s:%zu: differs\n%s\n", arguments->trace, rn_replay_line(replay), twin->text);
        return rn_finish_output(RN_EXIT_FAULTS);
    }
    (void)fprintf(stderr, "%s:%zu: %s\n", arguments->trace, rn_replay_line(replay), twin->text);
    return rn_finish_output(RN_EXIT_USAGE);
}

static int replay_file(const replay_arguments *arguments, const ration_rules *rules, FILE *file)
{
    store_twin store = {.options.redis = {
                            .url = arguments->store,
                            .user = getenv("RATION_STORE_USER"),
                            .password = getenv("RATION_STORE_PASSWORD"),
                            .ca_file = getenv("RATION_STORE_CA_FILE"),
                            .timeout_us = STORE_TIMEOUT_US,
                        }};
    const rn_replay_options options = {
        .decide = arguments->store != NULL ? store_decide : NULL,
        .decide_ctx = &store,
        .name = arguments->trace,
        .rules = rules,
        .verify = arguments->verify,
        .write = arguments->store == NULL ? line_write : NULL,
    };
    static char piece[64 * 1024];
    rn_replay *replay = NULL;
    int err = rn_replay_new(&options, &replay);
    int status = RN_EXIT_USAGE;

    if (err != RATION_OK) {
        (void)fprintf(stderr, "ration replay: %s\n", ration_err_text(err));
        return status;
    }
    while (err == RATION_OK && rn_replay_difference(replay) == NULL) {
        const size_t size = fread(piece, 1, sizeof piece, file);

        if (size == 0)
            break;
        err = rn_replay_feed(replay, piece, size);
    }
    if (err == RATION_OK && ferror(file) == 0)
        err = rn_replay_finish(replay);
    if (err == RATION_OK && store.made)
        err = rn_twin_finish(&store.twin);
    if (ferror(file) != 0) {
        (void)fprintf(stderr, "ration replay: %s: %s\n", arguments->trace, strerror(errno));
    } else if (store.made && (err == RATION_OK || store.twin.text[0] != '\0')) {
        status = store_verdict(&store, arguments, replay);
    } else if (err != RATION_OK) {
        status = error_print(replay, arguments->trace, err);
    } else if (arguments->store != NULL) {
        status = nothing_print(arguments->trace, "no call stands in it that a store would answer");
    } else {
        status = arguments->verify ? verdict_print(replay, arguments->trace) : rn_finish_output(RN_EXIT_OK);
    }
    if (store.made)
        rn_twin_fini(&store.twin);
    rn_replay_free(replay);
    return status;
}

static int replay_with(const replay_arguments *arguments, const ration_rules *rules)
{
    if (strcmp(arguments->trace, "-") == 0)
        return replay_file(arguments, rules, stdin);

    FILE *const file = fopen(arguments->trace, "rb");

    if (file == NULL) {
        (void)fprintf(stderr, "ration replay: %s: %s\n", arguments->trace, strerror(errno));
        return RN_EXIT_USAGE;
    }

    const int status = replay_file(arguments, rules, file);

    (void)fclose(file);
    return status;
}

int rn_cmd_replay(const rn_command *self, int argc, char **argv)
{
    replay_arguments arguments = {0};
    int status = arguments_read(self, argc, argv, &arguments);

    if (status != RN_EXIT_OK || arguments.trace == NULL)
        return status;
    if (arguments.config == NULL)
        return replay_with(&arguments, NULL);

    /* The same decisions on every machine: its name is not asked for. */
    const ration_config_options options = {.instance = "local"};
    ration_config *config = NULL;
    ration_config_faults faults = {0};
    const int err = ration_config_load(arguments.config, &options, &config, &faults);

    if (err == RATION_OK) {
        status = replay_with(&arguments, ration_config_rules(config));
    } else {
        status = RN_EXIT_USAGE;
        rn_faults_print(&faults, stderr);
        if (faults.count == 0)
            (void)fprintf(stderr, "ration replay: %s: %s\n", arguments.config, ration_err_text(err));
    }
    ration_config_free(config);
    ration_config_faults_fini(&faults);
    return status;
}
