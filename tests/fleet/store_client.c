/* SPDX-License-Identifier: MIT */
/*
 * usage: store_client URL [NAME=VALUE...]
 *
 * A store on a loop, told by lines what to do; it says what came of that, a line each:
 *
 *   do TAG WORD...           a command; the key is its second word       TAG ok REPLY | TAG io TEXT | TAG full
 *   many COUNT TAG WORD...   so often
 *   admit TAG ID             by the script, under a limit of one         TAG ok granted | TAG ok refused
 *   hear CHANNEL                                                         message CHANNEL PAYLOAD
 *   stall MS                 the loop does nothing, at once              stalled
 *   nap MS                   the same once what was asked is sent        napping, stalled
 *   stats                                                                stats NAME=NUMBER...
 *   close                    also the end of input                       closed
 *
 * and of itself: state up|down|connecting TEXT. Options: connect_ms, command_ms, max_calls, wait, user, password, ca,
 * cert, key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ration/config.h>
#include <uv.h>

#include "base/mem.h"
#include "fleet/answer.h"
#include "fleet/rules.h"
#include "fleet/store.h"

#define WORDS_MAX 16
#define LINE_MAX_BYTES 65536
#define TAG_MAX 32

typedef struct call {
    char tag[TAG_MAX];
    bool admits;
} call;

static uv_loop_t loop;
static uv_pipe_t input;
static uv_check_t napper;
static uv_idle_t sleepless; /* the loop does not wait for what it will hear */
static unsigned naps_in;    /* turns */
static long nap_ms;
static rn_store *store;
static ration_config *config;
static rn_fleet_rules rules;
static char line[LINE_MAX_BYTES];
static size_t line_size;

static const char limits[] = "providers:\n"
                             "  - name: p\n"
                             "    baseUrl: http://127.0.0.1:1\n"
                             "    limits: [ { name: slots, kind: concurrency, max: 1 } ]\n"
                             "accounts: [ { name: a, provider: p } ]\n";

static void die(const char *what)
{
    (void)fprintf(stderr, "store_client: %s\n", what);
    exit(2);
}

/* ---- what is said ---- */

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than hiredis reads */
static void say_reply(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        (void)printf(" %lld", reply->integer);
        break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
        (void)printf(" %.*s", (int)reply->len, reply->str);
        break;
    case REDIS_REPLY_NIL:
        (void)printf(" nil");
        break;
    default:
        for (size_t i = 0; i < reply->elements; i++)
            say_reply(reply->element[i]);
        break;
    }
}

static void answered(void *ctx, int err, const redisReply *reply, const char *text)
{
    call *const one = ctx;

    if (err != RATION_OK) {
        (void)printf("%s io %s", one->tag, text);
    } else if (one->admits) {
        (void)printf("%s ok %s", one->tag,
                     rn_answer_is(reply) && rn_answer_result(reply) == RN_ANSWER_GRANTED ? "granted" : "refused");
    } else {
        (void)printf("%s ok", one->tag);
        say_reply(reply);
    }
    (void)putchar('\n');
    (void)fflush(stdout);
    free(one);
}

static void heard(void *ctx, ration_text channel, ration_text payload)
{
    (void)ctx;
    (void)printf("message %.*s %.*s\n", (int)channel.size, channel.data, (int)payload.size, payload.data);
    (void)fflush(stdout);
}

static void changed(void *ctx, rn_store_state state, const char *text)
{
    static const char *const names[] = {"connecting", "up", "down"};

    (void)ctx;
    (void)printf("state %s %s\n", names[state], text);
    (void)fflush(stdout);
}

static void closed(void *ctx)
{
    (void)ctx;
    (void)puts("closed");
}

static void say_stats(void)
{
    rn_store_stats stats;

    rn_store_stats_of(store, &stats);
    (void)printf("stats outstanding=%zu calls=%llu failures=%llu timeouts=%llu connects=%llu redirects=%llu loads=%llu "
                 "writes=%llu unreplicated=%llu\n",
                 stats.outstanding, (unsigned long long)stats.calls, (unsigned long long)stats.failures,
                 (unsigned long long)stats.timeouts, (unsigned long long)stats.connects,
                 (unsigned long long)stats.redirects, (unsigned long long)stats.loads, (unsigned long long)stats.writes,
                 (unsigned long long)stats.unreplicated);
    (void)fflush(stdout);
}

/* ---- what is done ---- */

static call *call_new(const char *tag)
{
    call *const one = calloc(1, sizeof *one);

    if (one == NULL)
        die("out of memory");
    (void)snprintf(one->tag, sizeof one->tag, "%s", tag);
    return one;
}

static void refused(call *one, int err)
{
    (void)printf("%s %s\n", one->tag, err == RATION_ERR_FULL ? "full" : ration_err_text(err));
    (void)fflush(stdout);
    free(one);
}

static void do_command(const char *tag, size_t count, const ration_text *words)
{
    call *const one = call_new(tag);
    const ration_text key = count > 1 ? words[1] : (ration_text){"", 0};
    const int err = rn_store_command(store, key, count, words, answered, one);

    if (err != RATION_OK)
        refused(one, err);
}

static void do_admit(const char *tag, ration_text id)
{
    ration_request request = RATION_REQUEST_INIT;
    rn_call_ask ask = {.id = id};
    ration_text keys[RN_CALL_KEYS_MAX];
    ration_decision decision;
    rn_route *route = NULL;
    rn_call argument;
    call *const one = call_new(tag);

    request.account = ration_text_of("a");
    request.provider = ration_text_of("p");
    if (rn_fleet_rules_ask(&rules, ration_time_of(0), &request, &ask, &route, &decision) != RATION_OK || route == NULL)
        die("no route");
    rn_call_init(&argument, rn_mem_default(), &rules.book, rules.name, false);
    if (rn_call_admit(&argument, route, &ask) != RATION_OK)
        die("no call");
    rn_call_keys(&argument, keys);
    one->admits = true;

    const rn_store_script script = {
        .name = RN_SCRIPT_ADMIT,
        .keys = keys,
        .key_count = argument.key_count,
        .argument = {argument.argument.data, argument.argument.size},
        .brief = {argument.brief.data, argument.brief.size},
    };
    const int err = rn_store_run(store, &script, answered, one);

    if (err != RATION_OK)
        refused(one, err);
    rn_call_fini(&argument);
    rn_fleet_rules_forget(&rules, route);
}

static void stall(long ms)
{
    (void)usleep((useconds_t)ms * 1000);
    (void)puts("stalled");
    (void)fflush(stdout);
}

static void turn_on(uv_idle_t *idle)
{
    (void)idle;
}

/* This turn has heard of it, the next one sends, and looks once. */
static void turn_over(uv_check_t *check)
{
    if (--naps_in > 0)
        return;
    (void)uv_check_stop(check);
    (void)uv_idle_stop(&sleepless);
    (void)puts("napping");
    (void)fflush(stdout);
    stall(nap_ms);
}

static void end(void)
{
    if (store == NULL)
        return;
    rn_store_close(store, closed, NULL);
    store = NULL;
    uv_close((uv_handle_t *)&input, NULL);
    uv_close((uv_handle_t *)&napper, NULL);
    uv_close((uv_handle_t *)&sleepless, NULL);
}

static void obey(size_t count, const ration_text *words, char **texts)
{
    if (strcmp(texts[0], "do") == 0 && count > 2) {
        do_command(texts[1], count - 2, words + 2);
    } else if (strcmp(texts[0], "many") == 0 && count > 3) {
        for (long i = strtol(texts[1], NULL, 10); i > 0; i--)
            do_command(texts[2], count - 3, words + 3);
    } else if (strcmp(texts[0], "admit") == 0 && count == 3) {
        do_admit(texts[1], words[2]);
    } else if (strcmp(texts[0], "hear") == 0 && count == 2) {
        if (rn_store_subscribe(store, words[1], heard, NULL) != RATION_OK)
            die("cannot subscribe");
    } else if (strcmp(texts[0], "stall") == 0 && count == 2) {
        stall(strtol(texts[1], NULL, 10));
    } else if (strcmp(texts[0], "nap") == 0 && count == 2) {
        nap_ms = strtol(texts[1], NULL, 10);
        naps_in = 2;
        (void)uv_check_start(&napper, turn_over);
        (void)uv_idle_start(&sleepless, turn_on);
    } else if (strcmp(texts[0], "stats") == 0) {
        say_stats();
    } else if (strcmp(texts[0], "close") == 0) {
        end();
    } else {
        die("what?");
    }
}

static void obey_line(char *text)
{
    ration_text words[WORDS_MAX];
    char *texts[WORDS_MAX];
    char *rest = NULL;
    size_t count = 0;

    for (char *word = strtok_r(text, " ", &rest); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        texts[count] = word;
        words[count++] = ration_text_of(word);
    }
    if (count > 0 && store != NULL)
        obey(count, words, texts);
}

static void room(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
    (void)handle;
    (void)wanted;
    if (line_size == sizeof line)
        die("a line too long");
    *out = uv_buf_init(line + line_size, (unsigned)(sizeof line - line_size));
}

static void told(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    char *begin = line;
    char *stop;

    (void)stream;
    (void)buffer;
    if (size < 0) {
        end();
        return;
    }
    line_size += (size_t)size;
    while ((stop = memchr(begin, '\n', line_size - (size_t)(begin - line))) != NULL) {
        *stop = '\0';
        obey_line(begin);
        begin = stop + 1;
    }
    line_size -= (size_t)(begin - line);
    memmove(line, begin, line_size);
}

/* ---- life ---- */

static void option_read(rn_store_options *options, const char *text)
{
    const char *const equals = strchr(text, '=');
    const size_t size = equals != NULL ? (size_t)(equals - text) : 0;
    const struct {
        const char *name;
        const char **to;
    } texts[] = {
        {"user", &options->user},      {"password", &options->password}, {"ca", &options->ca_file},
        {"cert", &options->cert_file}, {"key", &options->key_file},
    };

    if (equals == NULL)
        die("NAME=VALUE");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strlen(texts[i].name) == size && strncmp(text, texts[i].name, size) == 0) {
            *texts[i].to = equals + 1;
            return;
        }
    }

    const long number = strtol(equals + 1, NULL, 10);

    if (strncmp(text, "connect_ms=", size + 1) == 0) {
        options->connect_timeout_us = number * INT64_C(1000);
    } else if (strncmp(text, "command_ms=", size + 1) == 0) {
        options->command_timeout_us = number * INT64_C(1000);
    } else if (strncmp(text, "max_calls=", size + 1) == 0) {
        options->max_calls = (size_t)number;
    } else if (strncmp(text, "wait=", size + 1) == 0) {
        options->wait = (unsigned)number;
    } else {
        die("no such option");
    }
}

int main(int argc, char **argv)
{
    rn_store_options options = {.changed = changed};
    ration_config_faults faults = {0};
    char fault[RN_STORE_TEXT] = "";

    if (argc < 2)
        die("usage: store_client URL [NAME=VALUE...]");
    options.url = argv[1];
    for (int i = 2; i < argc; i++)
        option_read(&options, argv[i]);
    if (ration_config_parse(ration_text_of(limits), "f", NULL, &config, &faults) != RATION_OK ||
        rn_fleet_rules_init(&rules, rn_mem_default(), "store", ration_config_rules(config), ration_time_of(0)) !=
            RATION_OK)
        die("the rules");
    ration_config_faults_fini(&faults);
    if (uv_loop_init(&loop) != 0 || uv_pipe_init(&loop, &input, 0) != 0 || uv_pipe_open(&input, STDIN_FILENO) != 0)
        die("no loop");
    if (rn_store_open(&loop, &options, &store, fault) != RATION_OK)
        die(fault);
    (void)uv_check_init(&loop, &napper);
    (void)uv_idle_init(&loop, &sleepless);
    (void)uv_read_start((uv_stream_t *)&input, room, told);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0)
        die("something is left in the loop");
    rn_fleet_rules_fini(&rules);
    ration_config_free(config);
    return 0;
}
