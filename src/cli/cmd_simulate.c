/* SPDX-License-Identifier: MIT */
/*
 * `ration simulate`: a fake provider in the foreground, until a signal.
 *
 * The line that tells its address is the first on standard output and is written when it already listens, so that a
 * script can wait for it; with port 0 it is the only way to learn the port.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <ration/config.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "net/loop.h"
#include "simulate/provider.h"

#define DEFAULT_PORT 7700

typedef struct simulate_options {
    const char *file;
    const char *provider; /* NULL: the only one */
    char host[256];
    uint16_t port;
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

static const struct {
    const char *name;
    int (*read)(ration_text value, simulate_options *o);
    const char *want;
} option_table[] = {
    {"--provider", read_provider, "the name of a provider in FILE"},
    {"--listen", read_listen, "an address such as 127.0.0.1:7700"},
    {"--seed", read_seed, "a whole number, not negative"},
    {"--latency", read_latency, "a duration and its spread such as 50ms+-20ms, the spread at most the duration"},
    {"--errors", read_errors, "a ratio such as 1%"},
    {"--external", read_external, "a rate such as 100/h, at most 10000/s"},
    {"--ceiling", read_ceiling,
     "a count of calls such as 30, or a range and a period such as 20..40/60s: 1 to 1000000 calls, the smaller first, "
     "a period of at most 7d with a millisecond for each step up and down"},
    {"--retry-after", read_retry_after, "a duration such as 2s, from 1ms to 1d, that a refusal by --ceiling tells"},
};
enum { OPTION_COUNT = sizeof option_table / sizeof option_table[0] };

/* Take the option at `*i` and its value, "--name value" or "--name=value". */
static int option_take(const rn_command *self, int argc, char **argv, int *i, simulate_options *o)
{
    const char *word = argv[*i];
    const char *equals = strchr(word, '=');
    const ration_text name = {word, equals != NULL ? (size_t)(equals - word) : strlen(word)};

    for (size_t k = 0; k < OPTION_COUNT; k++) {
        if (!rn_text_is(name, option_table[k].name))
            continue;
        if (equals == NULL && ++*i == argc)
            return rn_usage_error(self, "%s wants %s", option_table[k].name, option_table[k].want);
        const char *value = equals != NULL ? equals + 1 : argv[*i];
        if (option_table[k].read(ration_text_of(value), o) != 0)
            return rn_usage_error(self, "%s %s: want %s", option_table[k].name, value, option_table[k].want);
        return RN_EXIT_OK;
    }
    if (rn_text_is(name, "--for") || rn_text_is(name, "--report"))
        return rn_usage_error(self, "%.*s is not supported yet", (int)name.size, name.data);
    return rn_usage_error(self, "unknown option '%s'", word);
}

static int options_read(const rn_command *self, int argc, char **argv, simulate_options *o)
{
    for (int i = 1; i < argc; i++) {
        int status = RN_EXIT_OK;

        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            status = option_take(self, argc, argv, &i, o);
        } else if (o->file != NULL) {
            status = rn_usage_error(self, "one FILE, not also %s", argv[i]);
        } else {
            o->file = argv[i];
        }
        if (status != RN_EXIT_OK)
            return status;
    }
    if (o->file == NULL)
        return rn_usage_error(self, "which file?");
    if (o->behaviour.retry_us > 0 && o->behaviour.ceiling.low == 0)
        return rn_usage_error(self, "--retry-after is what a refusal by --ceiling tells, and there is no --ceiling");
    return RN_EXIT_OK;
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

    int status = RN_EXIT_USAGE;
    const int err = ration_config_load(o.file, &load, &config, &faults);
    rn_faults_print(&faults, stderr);
    if (err == 0) {
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
