/* SPDX-License-Identifier: MIT */
/*
 * `ration simulate`: a fake provider in the foreground, until a signal; with `--for` a day of jobs in virtual time.
 *
 * Options are one table for both, with what each belongs to: one that would do nothing is refused. The line that tells
 * the provider's address is the first on standard output and is written when it already listens, so that a script can
 * wait for it; with port 0 it is the only way to learn the port.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <ration/config.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/simulate_day.h"
#include "net/loop.h"
#include "simulate/provider.h"

#define DEFAULT_PORT 7700
/* How long a call takes in a simulated day, where nobody says. */
#define DAY_LATENCY_US 150000
#define DAY_SPREAD_US 50000

typedef struct simulate_options {
    const char *file;
    rn_day_command day; /* `span_us` 0: a provider on a port */
    bool has_latency;
    const char *provider; /* NULL: the only one */
    char host[256];
    uint16_t port;
    rn_shape shape;
    rn_behaviour behaviour;
} simulate_options;

static int read_provider(ration_text value, simulate_options *o)
{
    o->provider = value.data;
    return value.size > 0 ? 0 : RATION_ERR_SYNTAX;
}

/* "7700", "127.0.0.1:7700", "[::1]:7700"; port 0 is any free one. */
static int read_listen(ration_text value, simulate_options *o)
{
    ration_text host = ration_text_of("127.0.0.1");
    ration_text port = value;
    int64_t number;

    for (size_t i = value.size; i > 0; i--) {
        if (value.data[i - 1] != ':')
            continue;
        host = rn_text_slice(value, 0, i - 1);
        port = rn_text_slice(value, i, value.size);
        break;
    }
    if (host.size >= 2 && host.data[0] == '[' && host.data[host.size - 1] == ']')
        host = rn_text_slice(host, 1, host.size - 1);
    if (host.size == 0 || host.size >= sizeof o->host)
        return RATION_ERR_SYNTAX;

    const int err = rn_parse_int(port, &number);
    if (err != 0)
        return err;
    if (number < 0 || number > UINT16_MAX)
        return RATION_ERR_RANGE;
    memcpy(o->host, host.data, host.size);
    o->host[host.size] = '\0';
    o->port = (uint16_t)number;
    return 0;
}

static int read_seed(ration_text value, simulate_options *o)
{
    return rn_seed_parse(value, &o->behaviour.seed);
}

static int read_latency(ration_text value, simulate_options *o)
{
    o->has_latency = true;
    return rn_latency_parse(value, &o->behaviour.latency);
}

static int read_errors(ration_text value, simulate_options *o)
{
    return rn_parse_ratio(value, &o->behaviour.errors);
}

static int read_external(ration_text value, simulate_options *o)
{
    return rn_external_parse(value, &o->behaviour.external);
}

static int read_ceiling(ration_text value, simulate_options *o)
{
    return rn_capacity_parse(value, &o->behaviour.ceiling);
}

static int read_retry_after(ration_text value, simulate_options *o)
{
    return rn_retry_parse(value, &o->behaviour.retry_us);
}

static int read_shape(ration_text value, simulate_options *o)
{
    const bool openai = rn_text_is(value, "openai");

    o->shape = openai ? RN_SHAPE_OPENAI : RN_SHAPE_PLAIN;
    return openai || rn_text_is(value, "plain") ? RATION_OK : RATION_ERR_SYNTAX;
}

static int read_for(ration_text value, simulate_options *o)
{
    int64_t span_us;
    const int err = rn_parse_duration(value, &span_us);

    if (err != 0)
        return err;
    if (span_us < RN_DAY_SPAN_MIN_US || span_us > RN_DAY_SPAN_MAX_US)
        return RATION_ERR_RANGE;
    o->day.span_us = span_us;
    return 0;
}

static int read_fault(ration_text value, simulate_options *o)
{
    return rn_day_faults_parse(value, &o->day.faults);
}

static int read_report(ration_text value, simulate_options *o)
{
    o->day.report = value.data;
    return value.size > 0 ? 0 : RATION_ERR_SYNTAX;
}

static int read_record(ration_text value, simulate_options *o)
{
    o->day.record = value.data;
    return value.size > 0 ? 0 : RATION_ERR_SYNTAX;
}

/* What an option belongs to. */
typedef enum option_mode {
    MODE_BOTH = 0,
    MODE_PROVIDER,
    MODE_DAY,
} option_mode;

typedef struct simulate_option {
    const char *name;
    int (*read)(ration_text value, simulate_options *o);
    const char *want;
    option_mode mode;
} simulate_option;

static const simulate_option option_table[] = {
    {"--provider", read_provider, "the name of a provider in FILE", MODE_PROVIDER},
    {"--listen", read_listen, "an address such as 127.0.0.1:7700", MODE_PROVIDER},
    {"--shape", read_shape, "plain, or openai: chat completions with tokens and streams", MODE_PROVIDER},
    {"--seed", read_seed, "a whole number, not negative", MODE_BOTH},
    {"--latency", read_latency, "a duration and its spread such as 50ms+-20ms, the spread at most the duration",
     MODE_BOTH},
    {"--errors", read_errors, "a ratio such as 1%", MODE_BOTH},
    {"--external", read_external, "a rate such as 100/h, at most 10000/s", MODE_BOTH},
    {"--ceiling", read_ceiling,
     "a count of calls such as 30, or a range and a period such as 20..40/60s: 1 to 1000000 calls, the smaller first, "
     "a period of at most 7d with a millisecond for each step up and down",
     MODE_BOTH},
    {"--retry-after", read_retry_after, "a duration such as 2s, from 1ms to 1d, that a refusal by --ceiling tells",
     MODE_BOTH},
    {"--for", read_for, "a duration from 1m to 31d, such as 24h", MODE_DAY},
    {"--fault", read_fault,
     "faults with commas between them: latency, errors, clock, restart, kill, external, or all, or none", MODE_DAY},
    {"--report", read_report, "the name of a file", MODE_DAY},
    {"--record", read_record, "the name of a file", MODE_DAY},
};
enum { OPTION_COUNT = sizeof option_table / sizeof option_table[0] };

/* Options by mode, as bits, that were given: to say which of them do nothing. */
typedef struct given_options {
    const char *of_mode[3];
} given_options;

/* Take the option at `*i` and its value, "--name value" or "--name=value". */
static int option_take(const rn_command *self, int argc, char **argv, int *i, simulate_options *o, given_options *given)
{
    const char *word = argv[*i];
    const char *equals = strchr(word, '=');
    const ration_text name = {word, equals != NULL ? (size_t)(equals - word) : strlen(word)};

    if (strcmp(word, "--json") == 0) {
        o->day.json = true;
        given->of_mode[MODE_DAY] = "--json";
        return RN_EXIT_OK;
    }
    for (size_t k = 0; k < OPTION_COUNT; k++) {
        const simulate_option *option = &option_table[k];

        if (!rn_text_is(name, option->name))
            continue;
        if (equals == NULL && ++*i == argc)
            return rn_usage_error(self, "%s wants %s", option->name, option->want);
        const char *value = equals != NULL ? equals + 1 : argv[*i];
        if (option->read(ration_text_of(value), o) != 0)
            return rn_usage_error(self, "%s %s: want %s", option->name, value, option->want);
        given->of_mode[option->mode] = option->name;
        return RN_EXIT_OK;
    }
    return rn_usage_error(self, "unknown option '%s'", word);
}

static int options_check(const rn_command *self, const simulate_options *o, const given_options *given)
{
    if (o->file == NULL)
        return rn_usage_error(self, "which file?");
    if (o->behaviour.retry_us > 0 && o->behaviour.ceiling.low == 0)
        return rn_usage_error(self, "--retry-after is what a refusal by --ceiling tells, and there is no --ceiling");
    if (o->day.span_us == 0 && given->of_mode[MODE_DAY] != NULL)
        return rn_usage_error(self, "%s is for a simulated day: give --for too", given->of_mode[MODE_DAY]);
    if (o->day.span_us > 0 && given->of_mode[MODE_PROVIDER] != NULL) {
        return rn_usage_error(self, "%s has no part in a simulated day: all of FILE's jobs run, and nothing listens",
                              given->of_mode[MODE_PROVIDER]);
    }
    if (o->day.record != NULL && (o->day.faults & (RN_DAY_RESTART | RN_DAY_KILL)) != 0)
        return rn_usage_error(self, "--record writes the trace of one engine: not with the faults restart and kill");
    return RN_EXIT_OK;
}

static int options_read(const rn_command *self, int argc, char **argv, simulate_options *o)
{
    given_options given = {{NULL}};

    for (int i = 1; i < argc; i++) {
        int status = RN_EXIT_OK;

        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            status = option_take(self, argc, argv, &i, o, &given);
        } else if (o->file != NULL) {
            status = rn_usage_error(self, "one FILE, not also %s", argv[i]);
        } else {
            o->file = argv[i];
        }
        if (status != RN_EXIT_OK)
            return status;
    }
    return options_check(self, o, &given);
}

/* The index of the provider that was asked for; -1 with a message. */
static long provider_find(const ration_rules *rules, const simulate_options *o)
{
    if (o->provider == NULL && rules->provider_count == 1)
        return 0;
    for (size_t i = 0; o->provider != NULL && i < rules->provider_count; i++) {
        if (strcmp(rules->providers[i].name, o->provider) == 0)
            return (long)i;
    }

    if (rules->provider_count == 0) {
        (void)fprintf(stderr, "ration simulate: %s has no provider\n", o->file);
    } else if (o->provider == NULL) {
        (void)fprintf(stderr, "ration simulate: %s has several providers; choose one with --provider:\n", o->file);
    } else {
        (void)fprintf(stderr, "ration simulate: %s has no provider '%s'%s\n", o->file, o->provider, "; there are:");
    }
    for (size_t i = 0; i < rules->provider_count; i++)
        (void)fprintf(stderr, "  %s\n", rules->providers[i].name);
    return -1;
}

static void on_signal(void *user, int signum)
{
    (void)signum;
    rn_loop_stop(user);
}

/* Announce, and run until SIGINT or SIGTERM. */
static int serve(rn_loop *loop, const rn_simulator *sim, const char *provider, const char *host)
{
    rn_signal *interrupt = NULL;
    rn_signal *terminate = NULL;
    const bool v6 = strchr(host, ':') != NULL;
    int status = RN_EXIT_USAGE;

    if (rn_signal_new(loop, SIGINT, on_signal, loop, &interrupt) != 0 ||
        rn_signal_new(loop, SIGTERM, on_signal, loop, &terminate) != 0) {
        (void)fputs("ration simulate: cannot listen for signals\n", stderr);
    } else {
        (void)printf("%s at http://%s%s%s:%u, counts at /__ration/counts\n", provider, v6 ? "[" : "", host,
                     v6 ? "]" : "", (unsigned)rn_simulator_port(sim));
        status = rn_finish_output(RN_EXIT_OK);
        if (status == RN_EXIT_OK)
            rn_loop_run(loop);
    }
    rn_signal_free(interrupt);
    rn_signal_free(terminate);
    return status;
}

static int simulate(const ration_config *config, size_t provider, const simulate_options *o)
{
    const rn_simulator_options options = {
        .config = config,
        .provider = provider,
        .host = o->host,
        .port = o->port,
        .shape = o->shape,
        .behaviour = o->behaviour,
    };
    rn_loop *loop = NULL;
    rn_simulator *sim = NULL;
    rn_net_error error = {.text = ""};
    int status = RN_EXIT_USAGE;

    (void)rn_process_prepare();
    int err = rn_loop_new(&loop);
    if (err == 0)
        err = rn_simulator_new(loop, &options, &sim, &error);
    if (err == 0) {
        status = serve(loop, sim, ration_config_rules(config)->providers[provider].name, o->host);
    } else {
        (void)fprintf(stderr, "ration simulate: %s\n", error.text[0] != '\0' ? error.text : ration_err_text(err));
    }
    rn_simulator_free(sim);
    if (loop != NULL)
        rn_loop_free(loop);
    return status;
}

int rn_cmd_simulate(const rn_command *self, int argc, char **argv)
{
    simulate_options o = {.host = "127.0.0.1", .port = DEFAULT_PORT, .behaviour = {.seed = 1}};
    const ration_config_options load = {.allocator = NULL};
    ration_config *config = NULL;
    ration_config_faults faults = {.count = 0};

    const int usage = options_read(self, argc, argv, &o);
    if (usage != RN_EXIT_OK)
        return usage;
    if (!o.has_latency && o.day.span_us > 0)
        o.behaviour.latency = (rn_latency){DAY_LATENCY_US, DAY_SPREAD_US};

    int status = RN_EXIT_USAGE;
    const int err = ration_config_load(o.file, &load, &config, &faults);
    rn_faults_print(&faults, stderr);
    if (err == 0 && o.day.span_us > 0) {
        o.day.behaviour = o.behaviour;
        status = rn_day_command_run(&o.day, o.file, config);
    } else if (err == 0) {
        const long provider = provider_find(ration_config_rules(config), &o);

        if (provider >= 0)
            status = simulate(config, (size_t)provider, &o);
    } else if (faults.count == 0) {
        (void)fprintf(stderr, "ration simulate: %s: %s\n", o.file, ration_err_text(err));
    }
    ration_config_free(config);
    ration_config_faults_fini(&faults);
    return status;
}
