/* SPDX-License-Identifier: MIT */
/*
 * A reload of the same rules changes nothing: an engine to which it happens again and again says to the letter what one
 * says to which it never does, whatever is asked of both. support/stream.h.
 *
 * Reloads of other rules, back and forth, lose no lease and no waiter: each request ends once, what is held is what has
 * been granted and not ended, and when all have ended no counter holds anything.
 */
#include <ration/operate.h>

#include "support/check.h"
#include "support/property.h"
#include "support/stream.h"
#include "support/stream_rules.h"

static uint64_t stream_choose(void *ctx, uint64_t bound)
{
    return choose(ctx, bound);
}

static void stream_hold(void *ctx, bool holds, const char *what, int line)
{
    property_hold(ctx, holds, what, "tests/support/stream.c", line);
}

static void stream_note(void *ctx, const char *line)
{
    property_note(ctx, "%s", line);
}

static void the_same_rules_change_nothing(choices *c, void *context)
{
    const stream_driver driver = {
        .choose = stream_choose, .hold = stream_hold, .note = stream_note, .reloads = true, .ctx = c};

    (void)context;
    (void)stream_play(&driver);
}

static void same_rules(void **state)
{
    (void)state;
    property_check("the same rules change nothing", the_same_rules_change_nothing, NULL, 400);
}

#define REQUESTS 120

typedef enum fate { NEVER = 0, WAITS, HOLDS_ONE, ENDED } fate;

typedef struct run {
    choices *c;
    ration_engine *engine;
    ration_time now;
    struct {
        ration_lease lease;
        fate fate;
    } of[REQUESTS];
    size_t count;
} run;

static void ask(run *r)
{
    const size_t id = r->count++;
    const uint64_t account = choose(r->c, STREAM_ACCOUNTS - 1);
    const uint64_t tenant = choose(r->c, STREAM_TENANTS);
    const uint64_t class = choose(r->c, UINT64_C(2) * STREAM_CLASSES);
    const ration_var x = {ration_text_of("x"), ration_text_of(choose(r->c, 1) == 0 ? "1" : "2")};
    ration_request request = RATION_REQUEST_INIT;
    ration_decision d;

    request.account = ration_text_of(stream_accounts[account]);
    request.tenant = ration_text_of(stream_tenants[tenant]);
    if (class <= STREAM_CLASSES)
        request.class_name = ration_text_of(stream_classes[class]);
    request.vars = &x;
    request.var_count = choose(r->c, 1);
    request.cost = choose_from(r->c, 0, 4) * RATION_UNIT;
    request.hold_us = choose_from(r->c, 0, 3) * 10000 - 1;
    request.wait_us = choose_from(r->c, 0, 3) * 100000;
    request.ttl_us = choose(r->c, 4) == 4 ? 50000 : RATION_UNSET;
    request.priority = (ration_priority)choose(r->c, RATION_PRIORITY_LOW);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, not a place. */
    request.user = (void *)(intptr_t)id;
    if (request.hold_us < 0)
        request.hold_us = RATION_UNSET;
    HOLDS(r->c, ration_engine_submit(r->engine, r->now, &request, &d) == RATION_OK);
    NOTE(r->c, "ask %zu of %s: %d %s", id, stream_accounts[account], d.result, ration_reason_name(d.reason));
    r->of[id].lease = d.lease;
    r->of[id].fate = d.result == RATION_GRANTED ? HOLDS_ONE : d.result == RATION_QUEUED ? WAITS : ENDED;
}

static void hear(run *r)
{
    ration_event event;
    ration_totals totals;
    uint64_t held = 0;
    uint64_t waiting = 0;

    while (ration_engine_next_event(r->engine, &event)) {
        const size_t id = (size_t)(intptr_t)event.user;

        if (event.type > RATION_EVENT_LOST)
            continue;
        NOTE(r->c, "  event %d of %zu", event.type, id);
        HOLDS(r->c, r->of[id].fate == (event.type == RATION_EVENT_LOST ? HOLDS_ONE : WAITS));
        r->of[id].fate = event.type == RATION_EVENT_GRANTED ? HOLDS_ONE : ENDED;
    }
    for (size_t i = 0; i < r->count; i++) {
        held += r->of[i].fate == HOLDS_ONE;
        waiting += r->of[i].fate == WAITS;
    }
    ration_engine_totals(r->engine, &totals);
    HOLDS(r->c, totals.held == held);
    HOLDS(r->c, totals.waiting == waiting);
}

/* A response, then the end; or the end of waiting. */
static void end(run *r, size_t id)
{
    static const int statuses[] = {200, 200, 500, 429};
    const ration_response response = {.status = statuses[choose(r->c, 3)]};
    const ration_completion how = {RATION_OUTCOME_SUCCESS,
                                   choose(r->c, 2) == 0 ? choose_from(r->c, 0, 6) * RATION_UNIT : RATION_UNSET};

    NOTE(r->c, "end %zu", id);
    if (r->of[id].fate == WAITS) {
        HOLDS(r->c, ration_engine_cancel(r->engine, r->now, r->of[id].lease) == RATION_OK);
    } else {
        HOLDS(r->c, ration_engine_observe(r->engine, r->now, r->of[id].lease, &response) == RATION_OK);
        HOLDS(r->c, ration_engine_release(r->engine, r->now, r->of[id].lease, &how) == RATION_OK);
    }
    r->of[id].fate = ENDED;
}

static void end_some(run *r)
{
    if (r->count == 0)
        return;

    const size_t id = choose(r->c, r->count - 1);

    /* What has been lost, or granted, by now is told first. */
    HOLDS(r->c, ration_engine_advance(r->engine, r->now) == RATION_OK);
    hear(r);
    if (r->of[id].fate == WAITS || r->of[id].fate == HOLDS_ONE)
        end(r, id);
}

static void nothing_is_held(void *ctx, const ration_counter_report *row)
{
    run *r = ctx;

    NOTE(r->c, "%s %.*s holds %lld", row->limit, (int)row->key.size, row->key.data, (long long)row->held);
    HOLDS(r->c, row->held == 0);
    HOLDS(r->c, row->waiting == 0);
    for (size_t i = 0; i < row->tenant_count; i++)
        HOLDS(r->c, row->tenants[i].own == 0 && row->tenants[i].lent == 0 && row->tenants[i].held == 0);
}

static uint64_t rules_choose(void *ctx, uint64_t bound)
{
    return choose(ctx, bound);
}

static void nobody_is_lost(choices *c, void *context)
{
    static stream_rules rules[3];
    run r = {.c = c, .now = {INT64_C(1700000000000000)}};
    const ration_reporter reporter = {.ctx = &r, .counter = nothing_is_held};

    (void)context;
    for (size_t i = 0; i < 3; i++)
        stream_rules_draw(&rules[i], rules_choose, c);

    const ration_engine_options options = {.rules = &rules[0].rules, .keeps = true};

    HOLDS(c, ration_engine_new(&options, r.now, &r.engine, NULL) == RATION_OK);
    while (r.count < REQUESTS && choose(c, 150) != 0) {
        r.now.us += (int64_t)choose(c, 3) * 7000;
        switch (choose(c, 6)) {
        case 0:
        case 1:
        case 2:
            ask(&r);
            break;
        case 3:
        case 4:
            end_some(&r);
            break;
        default:
            NOTE(c, "reload");
            HOLDS(c, ration_engine_reload(r.engine, r.now, &rules[choose(c, 2)].rules, NULL) == RATION_OK);
            break;
        }
        hear(&r);
    }
    for (size_t i = 0; i < r.count; i++) {
        if (r.of[i].fate == WAITS || r.of[i].fate == HOLDS_ONE)
            end(&r, i);
        hear(&r);
    }
    HOLDS(c, ration_engine_report(r.engine, r.now, RATION_REPORT_STATS, &reporter) == RATION_OK);
    ration_engine_free(r.engine);
}

static void other_rules(void **state)
{
    (void)state;
    property_check("other rules lose nobody", nobody_is_lost, NULL, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_rules), cmocka_unit_test(other_rules)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
