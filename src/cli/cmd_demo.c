/* SPDX-License-Identifier: MIT */
/*
 * `ration demo`: the same traffic to the same provider, with and without ration, at the same time.
 *
 * Two fake providers with the same seed, a gateway in front of one of them, and two clients that play one schedule.
 * All of it runs on one loop in this process, over real sockets on loopback: no network, no key, and no file but the
 * gateway's ledger in a folder that is removed again. Sharing a loop also means that a machine that is busy elsewhere
 * delays both ends of a call alike.
 *
 * The schedule asks for about three times what the provider allows, in bursts, so that straight calls are refused by
 * all kinds of limit. The quota is wide enough never to run out: waiting for its window would take longer than
 * anybody watches.
 *
 * Half-way the gateway dies as by `kill -9`: its ledger gets no last word, its connections break. Another one begins
 * at once on the same ports, from what the ledger has; its client makes the calls that broke off again.
 */
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ration/config.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/demo_report.h"
#include "net/connection.h"
#include "net/loop.h"
#include "serve/service.h"
#include "simulate/behaviour.h"
#include "simulate/load.h"

#define SPAN_US INT64_C(8000000)
#define WAIT_US INT64_C(60000000)
#define KILL_US (SPAN_US / 2)
#define AGAIN_US INT64_C(100000)
#define LEDGER_US INT64_C(1000000)
#define CONFIG_MAX 4096
#define CREDENTIAL "Bearer demo"

/* Filled in with the ports of the gateway, the control port and the provider. */
static const char config_text[] =
    "settings:\n"
    "  listen: { gateway: \"127.0.0.1:%u\", control: \"127.0.0.1:%u\" }\n"
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
    "        durability: strict\n"
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
    char folder[256]; /* of the ledger; "": there is none */
    char ledger[300];
    rn_loop *loop;
    rn_upstream_pool *pool;
    ration_config *configs[2]; /* the providers', and the gateway's with the port of its provider */
    rn_schedule schedule;
    demo_way straight;
    demo_way through;
    rn_log log;
    rn_keeper *keeper;
    rn_service *service;
    rn_timer kill;
    ration_counter_report counted; /* the texts in it are dead */
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

/* The ports of the gateway and of the provider that a config names. */
typedef struct demo_ports {
    unsigned gateway, control, provider;
} demo_ports;

static int config_make(demo_ports ports, ration_config **out)
{
    const ration_config_options options = {.allocator = NULL};
    ration_config_faults faults = {.count = 0};
    char text[CONFIG_MAX];

    const int size = snprintf(text, sizeof text, config_text, ports.gateway, ports.control, ports.provider);
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

static int folder_make(demo *d)
{
    const char *base = getenv("TMPDIR");
    const int size =
        snprintf(d->folder, sizeof d->folder, "%s/ration-demo-XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp");

    if (size < 0 || (size_t)size >= sizeof d->folder || mkdtemp(d->folder) == NULL) {
        (void)complain("a folder for its ledger", RATION_ERR_IO, d->folder);
        d->folder[0] = '\0';
        return RATION_ERR_IO;
    }
    (void)snprintf(d->ledger, sizeof d->ledger, "%s/ration.db", d->folder);
    return 0;
}

static void folder_remove(const char *path)
{
    DIR *folder = path[0] != '\0' ? opendir(path) : NULL;
    const struct dirent *entry;

    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL)
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    (void)closedir(folder);
    (void)rmdir(path);
}

/* With ports 0 on any that are free. */
static int gateway_start(demo *d, demo_ports ports)
{
    const rn_keeper_options keeper = {.loop = d->loop, .log = &d->log, .path = d->ledger, .flush_us = LEDGER_US};
    rn_net_error error = {.text = ""};

    ports.provider = rn_simulator_port(d->through.sim);
    int err = config_make(ports, &d->configs[1]);
    if (err == 0)
        err = rn_keeper_open(&keeper, &d->keeper, &error);
    if (err == 0)
        err = rn_config_resalt(d->configs[1], rn_keeper_salt(d->keeper));
    if (err != 0)
        return complain("the gateway", err, error.text);

    const rn_service_options options = {
        .loop = d->loop,
        .config = d->configs[1],
        .log = &d->log,
        .record = d->options.record,
        .keeper = d->keeper,
    };
    err = rn_service_new(&options, &d->service, &error);
    return err == 0 ? 0 : complain("the gateway", err, error.text);
}

/* ---- the restart */

static void on_counter(void *ctx, const ration_counter_report *counter)
{
    demo *d = ctx;

    if (strcmp(counter->limit, "per-minute") == 0)
        d->counted = *counter;
}

/* What the gateway has counted of this minute. Asking brings in what was kept of a scope that nobody has asked for. */
static void counter_read(demo *d)
{
    static const ration_text account = {"demo", 4}, method = {"GET", 3}, path = {"/search", 7};
    const ration_request request = {.account = account,
                                    .method = method,
                                    .path = path,
                                    .cost = RATION_UNSET,
                                    .hold_us = RATION_UNSET,
                                    .ttl_us = RATION_UNSET};
    const ration_reporter reporter = {.ctx = d, .counter = on_counter};
    rn_decider *decider = rn_service_decider(d->service);
    const ration_time now = rn_loop_now(d->loop);
    ration_decision decision;

    d->counted = (ration_counter_report){.used = 0};
    d->err = decider->ops->check(decider, now, &request, RATION_CHECK_ACQUIRE, &decision);
    if (d->err == 0)
        d->err = decider->ops->report(decider, now, RATION_REPORT_LIMITS, &reporter);
    rn_service_touch(d->service);
}

static void gateway_end(demo *d)
{
    rn_service_free(d->service);
    (void)rn_keeper_close(d->keeper);
    ration_config_free(d->configs[1]);
    d->service = NULL;
    d->keeper = NULL;
    d->configs[1] = NULL;
}

static void on_kill(void *user, ration_time now)
{
    demo *d = user;
    rn_demo_restart *restart = &d->result.restart;
    const demo_ports ports = {.gateway = rn_service_gateway_port(d->service),
                              .control = rn_service_control_port(d->service)};

    (void)now;
    counter_read(d);
    restart->before = d->counted.used;
    const ration_time window_end = d->counted.window_end;
    rn_keeper_abandon(d->keeper);
    gateway_end(d);
    if (d->err == 0)
        d->err = gateway_start(d, ports);
    if (d->err == 0)
        counter_read(d);
    if (d->err != 0) {
        rn_loop_stop(d->loop);
        return;
    }
    restart->after = d->counted.used;
    restart->same_window = window_end.us == d->counted.window_end.us;
    restart->at_us = KILL_US;
}

/* ---- clients */

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
        .again_us = through ? AGAIN_US : 0,
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
        rn_timer_init(&d->kill, d->loop, on_kill, d);
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
    return config_make((demo_ports){.provider = 1}, &d->configs[0]);
}

static int demo_start(demo *d)
{
    int err = demo_prepare(d);

    if (err == 0)
        err = provider_start(d, &d->straight, &d->result.straight);
    if (err == 0)
        err = provider_start(d, &d->through, &d->result.through);
    if (err == 0)
        err = folder_make(d);
    if (err == 0)
        err = gateway_start(d, (demo_ports){.gateway = 0});
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
    return rn_timer_set(&d->kill, rn_time_add(rn_loop_now(d->loop), KILL_US));
}

static void demo_end(demo *d)
{
    if (d->loop != NULL)
        rn_timer_stop(&d->kill);
    rn_load_free(d->straight.load);
    rn_load_free(d->through.load);
    gateway_end(d);
    folder_remove(d->folder);
    rn_simulator_free(d->straight.sim);
    rn_simulator_free(d->through.sim);
    rn_upstream_pool_free(d->pool);
    rn_signal_free(d->signals[0]);
    rn_signal_free(d->signals[1]);
    rn_schedule_fini(&d->schedule);
    if (d->loop != NULL)
        rn_loop_free(d->loop);
    ration_config_free(d->configs[0]);
}

/* ---- running */

static void introduce(const demo *d)
{
    (void)printf(
        "A fake provider on this machine allows 10 calls a second (20 at once after a pause), 6 in flight and "
        "1000 a minute.\n"
        "Three tenants send it the same %zu calls in %" PRId64 " s twice: straight, and through ration.\n"
        "web asks with high priority, batch asks for most. After %" PRId64 " s ration is killed and started again.\n\n"
        "  provider  http://127.0.0.1:%u\n"
        "  gateway   http://127.0.0.1:%u/demo  (to a second provider like it)\n"
        "  control   %s/v1/status  (look while it runs: about 25 s)\n",
        d->schedule.count, d->schedule.span_us / 1000000, KILL_US / 1000000,
        (unsigned)rn_simulator_port(d->straight.sim), (unsigned)rn_service_gateway_port(d->service), d->control);
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
