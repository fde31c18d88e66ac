/* SPDX-License-Identifier: MIT */
/*
 * `ration demo`: the same traffic to the same provider, with and without ration, at the same time.
 *
 * Two fake providers with the same seed, a gateway in front of one of them, and two clients that play one schedule.
 * All of it runs on one loop in this process, over real sockets on loopback: no file, no network, no key. Sharing a
 * loop also means that a machine that is busy elsewhere delays both ends of a call alike.
 *
 * The schedule asks for about three times what the provider allows, in bursts, so that straight calls are refused by
 * all kinds of limit. The quota is wide enough never to run out: waiting for its window would take longer than
 * anybody watches.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <ration/config.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/demo_report.h"
#include "net/connection.h"
#include "net/loop.h"
#include "serve/service.h"
#include "simulate/behaviour.h"
#include "simulate/load.h"

#define SPAN_US INT64_C(8000000)
#define WAIT_US INT64_C(60000000)
#define CONFIG_MAX 4096
#define CREDENTIAL "Bearer demo"

/* Filled in with the provider's port. */
static const char config_text[] =
    "settings:\n"
    "  listen: { gateway: \"127.0.0.1:0\", control: \"127.0.0.1:0\" }\n"
    "  instance: demo\n"
    "tenants: { web: 2, reports: 1, batch: 1 }\n"
    "providers:\n"
    "  - name: demo\n"
    "    baseUrl: http://127.0.0.1:%u\n"
    "    endpoints: [/search, \"/reports/{reportId}\", \"/items/{itemId}\"]\n"
    "    limits:\n"
    "      - { name: calls, kind: rate, rate: 10/s, burst: 20, scope: { by: [account] } }\n"
    "      - { name: at-once, kind: concurrency, max: 6, scope: { by: [account] } }\n"
    "      - name: per-minute\n"
    "        kind: quota\n"
    "        max: 1000\n"
    "        window: { period: minute }\n"
    "        scope: { by: [account] }\n"
    "        whenExhausted: wait\n"
    "        sync: { limitHeader: X-RateLimit-Limit, remainingHeader: X-RateLimit-Remaining,\n"
    "                resetHeader: X-RateLimit-Reset, resetFormat: epoch }\n"
    "accounts:\n"
    "  - { name: demo, provider: demo, credential: { header: Authorization, value: \"" CREDENTIAL "\" } }\n";

static const rn_stream_spec streams[] = {
    {"web", RATION_PRIORITY_HIGH, 60, 2, "/search"},
    {"reports", RATION_PRIORITY_NORMAL, 60, 10, "/reports/7"},
    {"batch", RATION_PRIORITY_NORMAL, 90, 5, "/items/42"},
    {"batch", RATION_PRIORITY_LOW, 30, 5, "/items/backfill"},
};

typedef struct demo_options {
    bool json;
    bool keep;
    uint64_t seed;
    const char *record;
} demo_options;

typedef struct demo demo;

/* One way to the provider: its own provider, and the client that goes there. */
typedef struct demo_way {
    demo *demo;
    rn_simulator *sim;
    rn_load *load;
    rn_demo_side *result;
} demo_way;

struct demo {
    demo_options options;
    rn_demo_result result;
    char control[64];
    rn_loop *loop;
    rn_upstream_pool *pool;
    ration_config *configs[2]; /* the providers', and the gateway's with the port of its provider */
    rn_schedule schedule;
    demo_way straight;
    demo_way through;
    rn_log log;
    rn_service *service;
    rn_signal *signals[2];
    int running; /* clients that have not finished */
    bool interrupted;
    int err;
};

/* ---- starting */

static int complain(const char *what, int err, const char *text)
{
    (void)fprintf(stderr, "ration demo: %s: %s\n", what, text != NULL && text[0] != '\0' ? text : ration_err_text(err));
    return err;
}

static int config_make(unsigned port, ration_config **out)
{
    const ration_config_options options = {.allocator = NULL};
    ration_config_faults faults = {.count = 0};
    char text[CONFIG_MAX];

    const int size = snprintf(text, sizeof text, config_text, port);
    const int err = ration_config_parse((ration_text){text, (size_t)size}, "demo", &options, out, &faults);
    if (err != 0) {
        char line[512] = "";

        if (faults.count > 0)
            (void)ration_config_fault_text(&faults.items[0], line, sizeof line);
        (void)complain("its own config", err, line);
    }
    ration_config_faults_fini(&faults);
    return err;
}

static int provider_start(demo *d, demo_way *way, rn_demo_side *result)
{
    const rn_simulator_options options = {
        .config = d->configs[0],
        .behaviour = {.seed = d->options.seed, .latency = {.mean_us = 250000, .spread_us = 150000}},
    };
    rn_net_error error = {.text = ""};

    way->demo = d;
    way->result = result;
    const int err = rn_simulator_new(d->loop, &options, &way->sim, &error);
    return err == 0 ? 0 : complain("the provider", err, error.text);
}

static int gateway_start(demo *d)
{
    rn_net_error error = {.text = ""};

    int err = config_make(rn_simulator_port(d->through.sim), &d->configs[1]);
    if (err != 0)
        return err;

    const rn_service_options options = {
        .loop = d->loop,
        .config = d->configs[1],
        .log = &d->log,
        .record = d->options.record,
    };
    err = rn_service_new(&options, &d->service, &error);
    return err == 0 ? 0 : complain("the gateway", err, error.text);
}

/* The last answer to a client: what its provider counted until now is the result. */
static void on_done(void *user, rn_load *load)
{
    demo_way *way = user;
    demo *d = way->demo;

    way->result->counted = *rn_simulator_counts_of(way->sim);
    const int err = rn_summary_make(&d->schedule, rn_load_results(load), &way->result->summary);
    if (err != 0)
        d->err = err;
    if (--d->running == 0)
        rn_loop_stop(d->loop);
}

static int client_start(demo *d, demo_way *way, bool through)
{
    const rn_load_options options = {
        .loop = d->loop,
        .pool = d->pool,
        .host = "127.0.0.1",
        .port = through ? rn_service_gateway_port(d->service) : rn_simulator_port(way->sim),
        .prefix = through ? "/demo" : "",
        .authorization = through ? NULL : CREDENTIAL,
        .ration_fields = through,
        .wait_us = WAIT_US,
        .schedule = &d->schedule,
        .on_done = on_done,
        .user = way,
    };
    const int err = rn_load_new(&options, &way->load);

    if (err != 0)
        return complain("the client", err, NULL);
    d->running++;
    return 0;
}

static void on_signal(void *user, int signum)
{
    demo *d = user;

    (void)signum;
    d->interrupted = true;
    rn_loop_stop(d->loop);
}

static int demo_prepare(demo *d)
{
    const rn_upstream_options pool = {.first_byte_timeout_us = 2 * WAIT_US};

    (void)rn_process_prepare();
    int err = rn_loop_new(&d->loop);
    if (err == 0)
        err = rn_signal_new(d->loop, SIGINT, on_signal, d, &d->signals[0]);
    if (err == 0)
        err = rn_signal_new(d->loop, SIGTERM, on_signal, d, &d->signals[1]);
    if (err == 0)
        err = rn_upstream_pool_new(d->loop, &pool, &d->pool);
    if (err == 0) {
        err = rn_schedule_init(&d->schedule, rn_mem_default(), streams, sizeof streams / sizeof streams[0], SPAN_US,
                               d->options.seed);
    }
    if (err != 0)
        return complain("it cannot start", err, NULL);
    return config_make(1, &d->configs[0]);
}

static int demo_start(demo *d)
{
    int err = demo_prepare(d);

    if (err == 0)
        err = provider_start(d, &d->straight, &d->result.straight);
    if (err == 0)
        err = provider_start(d, &d->through, &d->result.through);
    if (err == 0)
        err = gateway_start(d);
    if (err == 0)
        err = client_start(d, &d->straight, false);
    if (err == 0)
        err = client_start(d, &d->through, true);
    if (err != 0)
        return err;

    (void)snprintf(d->control, sizeof d->control, "http://127.0.0.1:%u", (unsigned)rn_service_control_port(d->service));
    d->result.seed = d->options.seed;
    d->result.control = d->control;
    d->result.record = d->options.record;
    d->result.schedule = &d->schedule;
    return 0;
}

static void demo_end(demo *d)
{
    rn_load_free(d->straight.load);
    rn_load_free(d->through.load);
    rn_service_free(d->service);
    rn_simulator_free(d->straight.sim);
    rn_simulator_free(d->through.sim);
    rn_upstream_pool_free(d->pool);
    rn_signal_free(d->signals[0]);
    rn_signal_free(d->signals[1]);
    rn_schedule_fini(&d->schedule);
    if (d->loop != NULL)
        rn_loop_free(d->loop);
    ration_config_free(d->configs[0]);
    ration_config_free(d->configs[1]);
}

/* ---- running */

static void introduce(const demo *d)
{
    (void)printf("A fake provider on this machine allows 10 calls a second (20 at once after a pause), 6 in flight and "
                 "1000 a minute.\n"
                 "Three tenants send it the same %zu calls in %" PRId64 " s twice: straight, and through ration.\n"
                 "web asks with high priority, batch asks for most.\n\n"
                 "  provider  http://127.0.0.1:%u\n"
                 "  gateway   http://127.0.0.1:%u/demo  (to a second provider like it)\n"
                 "  control   %s/v1/status  (look while it runs: about 25 s)\n",
                 d->schedule.count, d->schedule.span_us / 1000000, (unsigned)rn_simulator_port(d->straight.sim),
                 (unsigned)rn_service_gateway_port(d->service), d->control);
    (void)fflush(stdout);
}

/* Everything stays as it is until a signal. */
static void keep(demo *d)
{
    if (d->options.json)
        (void)fflush(stdout);
    (void)fprintf(stderr, "\nStill running, gateway http://127.0.0.1:%u/demo, control %s; Ctrl-C ends it.\n",
                  (unsigned)rn_service_gateway_port(d->service), d->control);
    rn_loop_run(d->loop);
}

static int demo_run(demo *d)
{
    if (!d->options.json)
        introduce(d);
    rn_loop_run(d->loop);
    if (d->interrupted) {
        (void)fputs("ration demo: interrupted\n", stderr);
        return RN_EXIT_USAGE;
    }
    if (d->err == 0 && d->options.json)
        d->err = rn_demo_print_json(&d->result);
    if (d->err != 0) {
        (void)complain("the report", d->err, NULL);
        return RN_EXIT_USAGE;
    }
    if (!d->options.json)
        rn_demo_print_text(&d->result);
    const int status = rn_finish_output(rn_demo_passed(&d->result) ? RN_EXIT_OK : RN_EXIT_FAULTS);
    if (d->options.keep)
        keep(d);
    return status;
}

static int options_read(const rn_command *self, int argc, char **argv, demo_options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
        } else if (strcmp(argv[i], "--keep") == 0) {
            o->keep = true;
        } else if (strcmp(argv[i], "--seed") == 0) {
            if (++i == argc || rn_seed_parse(ration_text_of(argv[i]), &o->seed) != 0)
                return rn_usage_error(self, "--seed wants a whole number, not negative");
        } else if (strcmp(argv[i], "--record") == 0) {
            if (++i == argc || argv[i][0] == '\0')
                return rn_usage_error(self, "--record wants a file");
            o->record = argv[i];
        } else {
            return rn_usage_error(self, "unknown option '%s'", argv[i]);
        }
    }
    return RN_EXIT_OK;
}

int rn_cmd_demo(const rn_command *self, int argc, char **argv)
{
    demo d = {.options = {.seed = 1}, .log = {.descriptor = -1}};

    int status = options_read(self, argc, argv, &d.options);
    if (status != RN_EXIT_OK)
        return status;
    status = demo_start(&d) == 0 ? demo_run(&d) : RN_EXIT_USAGE;
    demo_end(&d);
    return status;
}
