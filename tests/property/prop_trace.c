/* SPDX-License-Identifier: MIT */
/*
 * A recording misses nothing: whatever calls an engine gets, its recording replays line for line, byte for byte.
 *
 * The calls are drawn: requests that are granted, wait, or are refused for every reason that these limits know; leases
 * that are released, lost, renewed, observed with headers that teach, with 429s and with what opens a breaker; tenants
 * that borrow and ask for what is theirs; health checks, of accounts that exist and of others; handles that are long
 * dead; names that are not UTF-8; a clock that runs back; looks at the engine in between.
 */
#include "support/check.h"
#include "support/property.h"

#include "base/mem.h"
#include "base/text.h"
#include "config/config.h"
#include "trace/output.h"
#include "trace/recorder.h"
#include "trace/replay.h"

#define HANDLES 6

static const char config_text[] =
    "{\"settings\":{\"queue\":{\"maxWaiters\":5,\"maxWaitersPerTenant\":3}},\"tenants\":{\"a\":3},\"providers\":["
    "{\"name\":\"p\",\"baseUrl\":\"http://127.0.0.1:1\",\"endpoints\":[{\"path\":\"/slow/"
    "{x}\",\"hold\":\"20ms\",\"cost\":2},"
    "{\"path\":\"/{x}/**\"}],"
    "\"limits\":["
    "{\"name\":\"rate\",\"kind\":\"rate\",\"rate\":\"100/s\",\"burst\":4,\"scope\":{\"by\":[\"account\"]}},"
    "{\"name\":\"slots\",\"kind\":\"concurrency\",\"max\":2,\"scope\":{\"by\":[\"account\",\"var:x\"]}},"
    "{\"name\":\"cost\",\"kind\":\"rate\",\"rate\":\"50/"
    "s\",\"burst\":5,\"counts\":\"cost\",\"scope\":{\"by\":[\"tenant\"]}},"
    "{\"name\":\"minutely\",\"kind\":\"quota\",\"max\":30,\"window\":{\"period\":\"minute\"},\"scope\":{\"by\":["
    "\"account\"]},"
    "\"sync\":{\"limitHeader\":\"X-Limit\",\"remainingHeader\":\"X-Remaining\",\"resetHeader\":\"X-Reset\"}}],"
    "\"errors\":{\"rateLimited\":{\"statuses\":[429,503],\"bodyContains\":\"slow\",\"defaultPenalty\":\"30ms\"}},"
    "\"breaker\":{\"strategy\":\"count\",\"size\":4,\"minimumCalls\":2,\"recovery\":\"healthCheck\","
    "\"healthCheck\":{\"path\":\"/health\"},\"backoff\":{\"delay\":\"40ms\"},\"idleProbe\":{\"interval\":\"90ms\"}}},"
    "{\"name\":\"q\",\"baseUrl\":\"http://127.0.0.1:1\",\"limits\":["
    "{\"name\":\"tokens\",\"kind\":\"share\",\"ceiling\":6,\"counts\":\"cost\",\"tenants\":{\"a\":2,\"b\":1},"
    "\"reclaimHorizon\":\"40001us\",\"idleAfter\":\"45ms\",\"scope\":{\"by\":[\"account\"]}},"
    "{\"name\":\"flow\",\"kind\":\"adaptive\",\"initialLimit\":2,\"maxLimit\":5,"
    "\"aimd\":{\"window\":\"50ms\",\"cooldown\":\"30ms\"},"
    "\"classes\":{\"x\":{\"reservedShare\":\"30%\"},\"y\":{}},\"scope\":{\"by\":[\"account\"]}},"
    "{\"name\":\"kept\",\"kind\":\"quota\",\"counts\":\"cost\",\"max\":300,\"window\":{\"period\":\"minute\"},"
    "\"durability\":\"strict\",\"scope\":{\"by\":[\"account\"]}}],"
    "\"errors\":{\"rateLimited\":{\"defaultPenalty\":\"5ms\"}},"
    "\"breaker\":{\"strategy\":\"consecutive\",\"threshold\":2,\"recovery\":\"probe\",\"probe\":{\"n\":2},"
    "\"backoff\":{\"initial\":\"20ms\",\"multiplier\":2,\"max\":\"60ms\"}}}],"
    "\"accounts\":[{\"name\":\"acc\",\"provider\":\"p\"},{\"name\":\"half\",\"provider\":\"p\",\"budget\":{\"share\":"
    "\"50%\"}},{\"name\":\"fair\",\"provider\":\"q\"}]}";

typedef struct world {
    choices *c;
    ration_engine *engine;
    ration_time now;
    ration_lease handles[HANDLES];
    rn_output file;
} world;

static int world_write(void *ctx, const char *data, size_t size)
{
    world *const w = ctx;

    rn_output_raw(&w->file, (ration_text){data, size});
    return 0;
}

static ration_text draw_text(world *w, const char *const *texts, size_t count)
{
    return ration_text_of(texts[choose(w->c, count - 1)]);
}

static const char *const accounts[] = {"fair", "acc", "fair", "half", "fair", "acc", "fair", "fair", "nobody", NULL};
#define ACCOUNTS (sizeof accounts / sizeof accounts[0])

static int64_t draw_cost(world *w)
{
    switch (choose(w->c, 2)) {
    case 0:
        return RATION_UNSET;
    case 1:
        return choose_from(w->c, 1, 5) * RATION_UNIT;
    default:
        return (int64_t)choose_wide(w->c, 6000000);
    }
}

static void act_submit(world *w)
{
    static const char *const tenants[] = {"a", "b", "a", "b", "a", "b", NULL, "b\"\n", "\xff"};
    static const char *const classes[] = {NULL, "x", "y", NULL, "x", "y", "z"};
    static const char *const paths[] = {"/net/1", "/slow/7", "/\xc3\xa9/%2F", "", NULL};
    static const int64_t spans[] = {RATION_UNSET, 0, 5000, 40001, RATION_FOREVER_US};
    const ration_var var = {ration_text_of("x"), ration_text_of("7")};
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;

    request.account = draw_text(w, accounts, ACCOUNTS);
    request.tenant = draw_text(w, tenants, sizeof tenants / sizeof tenants[0]);
    request.class_name = draw_text(w, classes, sizeof classes / sizeof classes[0]);
    request.path = draw_text(w, paths, 5);
    request.method = ration_text_of("GET");
    request.vars = &var;
    request.var_count = (size_t)choose(w->c, 1);
    request.priority = (ration_priority)choose(w->c, RATION_PRIORITY_LOW);
    request.retry = choose(w->c, 3) == 1;
    request.health = choose(w->c, 9) == 1;
    request.cost = draw_cost(w);
    request.hold_us = spans[choose(w->c, 4)];
    request.wait_us = choose(w->c, 1) == 0 ? 0 : spans[choose_from(w->c, 1, 4)];
    request.ttl_us = choose(w->c, 3) == 1 ? spans[choose(w->c, 4)] : RATION_UNSET;

    /* A ttl of 0 is out of range: the call fails, and stands in no recording. */
    if (ration_engine_submit(w->engine, w->now, &request, &decision) == RATION_OK && decision.result != RATION_REFUSED)
        w->handles[choose(w->c, HANDLES - 1)] = decision.lease;
}

static void act_observe(world *w, ration_lease lease)
{
    static const int statuses[] = {200, 429, 0, 503, 500, -7};
    static const char *const values[] = {"1", "0", "25", "x", "2.5", "-1"};
    static const char *const bodies[] = {NULL, "slow", "\xff slow \x01"};
    static const char *const names[] = {"X-Limit", "x-remaining", "X-Reset", "Retry-After", "Retry-After-Ms", "Cookie"};
    ration_header headers[4];
    ration_response response = {
        .status = statuses[choose(w->c, 5)], .headers = headers, .body = draw_text(w, bodies, 3)};

    response.header_count = (size_t)choose(w->c, 4);
    for (size_t i = 0; i < response.header_count; i++)
        headers[i] = (ration_header){draw_text(w, names, 6), draw_text(w, values, 6)};
    (void)ration_engine_observe(w->engine, w->now, lease, &response);
}

static void act_release(world *w, ration_lease lease)
{
    const ration_completion completion = {
        .outcome = (ration_outcome)choose(w->c, RATION_OUTCOME_CANCELLED),
        .cost = choose(w->c, 1) == 0 ? RATION_UNSET : (int64_t)choose_wide(w->c, 9000000),
    };

    (void)ration_engine_release(w->engine, w->now, lease, choose(w->c, 3) == 1 ? NULL : &completion);
}

static void act_look(world *w)
{
    const ration_reporter nobody = {0};
    ration_event event;

    (void)ration_engine_report(w->engine, w->now, RATION_REPORT_STATS, &nobody);
    while (ration_engine_next_event(w->engine, &event))
        continue;
}

static void forget(void *ctx, const ration_record *record)
{
    (void)ctx;
    (void)record;
}

static void act(world *w, uint64_t what)
{
    const ration_lease lease = w->handles[choose(w->c, HANDLES - 1)];

    w->now.us += (int64_t)choose_wide(w->c, 100000) - (choose(w->c, 20) == 1 ? 1000 : 0);
    switch (what) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        act_submit(w);
        break;
    case 5:
        act_release(w, lease);
        break;
    case 6:
        act_observe(w, lease);
        break;
    case 7:
        (void)ration_engine_renew(w->engine, w->now, lease);
        break;
    case 8:
        (void)ration_engine_cancel(w->engine, w->now, lease);
        break;
    case 9:
        (void)ration_engine_advance(w->engine, w->now);
        break;
    case 10:
        (void)ration_engine_health(w->engine, w->now, draw_text(w, accounts, ACCOUNTS), choose(w->c, 1) == 0);
        break;
    case 11:
        HOLDS(w->c, ration_engine_save(w->engine, w->now, choose(w->c, 1) == 0, NULL, forget) == RATION_OK);
        break;
    case 12:
        HOLDS(w->c, ration_engine_kept(w->engine, w->now) == RATION_OK);
        break;
    default:
        act_look(w);
        break;
    }
}

/* What a replay gives, next to what was recorded. */
typedef struct comparison {
    world *w;
    size_t at; /* in the recording */
} comparison;

static bool is_output(ration_text line)
{
    size_t at;

    return rn_text_find(line, ration_text_of("\"result\":"), &at) ||
           rn_text_find(line, ration_text_of("\"event\":"), &at);
}

/* The next recorded output; absent at the end. */
static ration_text next_recorded(comparison *it)
{
    const rn_output *const file = &it->w->file;

    while (it->at < file->size) {
        const char *const start = file->data + it->at;
        const size_t size = (size_t)((const char *)memchr(start, '\n', file->size - it->at) - start) + 1;

        it->at += size;
        if (is_output((ration_text){start, size}))
            return (ration_text){start, size};
    }
    return (ration_text){NULL, 0};
}

static int compare_line(void *ctx, const char *line, size_t size)
{
    comparison *const it = ctx;
    const ration_text recorded = next_recorded(it);

    NOTE(it->w->c, "recorded %.*sreplayed %.*s", (int)recorded.size, recorded.data, (int)size, line);
    HOLDS(it->w->c, rn_text_eq(recorded, (ration_text){line, size}));
    return 0;
}

static void replay_pieces(world *w, const rn_replay_options *options)
{
    const size_t piece = (size_t)choose_from(w->c, 1, 5000);
    rn_replay *replay = NULL;
    int err = rn_replay_new(options, &replay);

    for (size_t at = 0; at < w->file.size && err == RATION_OK; at += piece)
        err = rn_replay_feed(replay, w->file.data + at, piece < w->file.size - at ? piece : w->file.size - at);
    err = err == RATION_OK ? rn_replay_finish(replay) : err;
    if (err == RATION_ERR_SYNTAX) {
        NOTE(w->c, "%zu:%zu: %s", rn_replay_fault(replay)->line, rn_replay_fault(replay)->column,
             rn_replay_fault(replay)->text);
    }
    HOLDS(w->c, err == RATION_OK);
    HOLDS(w->c, rn_replay_difference(replay) == NULL);
    rn_replay_free(replay);
}

static void replay_recording(world *w)
{
    comparison it = {w, 0};
    const rn_replay_options verifying = {.verify = true};
    const rn_replay_options comparing = {.write = compare_line, .ctx = &it};

    NOTE(w->c, "%.*s", (int)w->file.size, w->file.data);
    replay_pieces(w, &comparing);
    HOLDS(w->c, next_recorded(&it).data == NULL);
    replay_pieces(w, &verifying);
}

static void recording_replays(choices *c, void *context)
{
    world w = {.c = c, .now = {(int64_t)choose_wide(c, 1000000000)}};
    const ration_config_options config_options = {.recording = true};
    ration_config_faults faults = {0};
    ration_config *config = NULL;
    rn_recorder *recorder = NULL;
    char *json = NULL;
    size_t json_size = 0;

    (void)context;
    rn_output_init(&w.file, rn_mem_default(), SIZE_MAX / 2);
    HOLDS(c,
          ration_config_parse(ration_text_of(config_text), "config", &config_options, &config, &faults) == RATION_OK);
    HOLDS(c, rn_config_json(config, &json, &json_size) == RATION_OK);

    const rn_recorder_options recorder_options = {.config = {json, json_size},
                                                  .rules = ration_config_rules(config),
                                                  .started_at = w.now,
                                                  .write = world_write,
                                                  .ctx = &w};

    HOLDS(c, rn_recorder_new(&recorder_options, &recorder) == RATION_OK);

    const ration_engine_options options = {.rules = ration_config_rules(config), .sink = rn_recorder_sink(recorder)};

    HOLDS(c, ration_engine_new(&options, w.now, &w.engine, NULL) == RATION_OK);
    w.now.us += (int64_t)choose(c, 2) * 50000; /* long enough for a tenant to lend */
    while (choose(c, 80) != 0)
        act(&w, choose(c, 13));
    ration_engine_free(w.engine);
    rn_recorder_free(recorder);
    replay_recording(&w);

    rn_output_fini(&w.file);
    rn_mem_free(rn_mem_default(), json);
    ration_config_free(config);
    ration_config_faults_fini(&faults);
}

static void recordings_replay_byte_for_byte(void **state)
{
    (void)state;
    property_check("a recording replays", recording_replays, NULL, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings_replay_byte_for_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
