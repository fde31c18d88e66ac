/* SPDX-License-Identifier: MIT */
/*
 * The engine with a share limit, an adaptive limit and slots against chapters 1, 2 and 5 as slowly as they can be
 * written: at every microsecond every waiter is looked at, in order, over and over, until nothing changes.
 *
 * Decisions with reasons and times, the events of every instant, and what the ceiling reports of each tenant must be
 * the same. The ceiling itself is `ceiling_model`; the lanes, the classes, the growth and the waiting are in
 * `fair_model`.
 */
#include "support/check.h"
#include "support/fair_model.h"

/* ---- the engine beside it ---- */

static void engine_new(fair *f)
{
    static const int throttled[] = {529};
    const ration_provider_rule provider = {.name = "p",
                                           .limits = f->limits,
                                           .limit_count = LIMITS,
                                           .errors = {.throttled = throttled, .throttled_count = 1}};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};

    HOLDS(f->c, ration_engine_new(&options, ration_time_of(0), &f->engine, NULL) == RATION_OK);
}

static void engine_events(fair *f, char *out, size_t size)
{
    static const char *const names[] = {"granted", "refused", "lost", "penalty", "limit"};
    ration_event event;
    size_t used_now = 0;

    out[0] = '\0';
    while (ration_engine_next_event(f->engine, &event)) {
        const int64_t number =
            event.type == RATION_EVENT_LIMIT ? event.value / UNIT : (int64_t)(intptr_t)event.user - 1;

        HOLDS(f->c, event.at.us <= f->now);
        used_now += (size_t)snprintf(out + used_now, size - used_now, "%s %lld;", names[event.type], (long long)number);
    }
}

static ration_decision engine_ask(fair *f, const request *r)
{
    static const char *const keys[KEYS] = {"0", "1"};
    ration_var vars[LIMITS];
    ration_request ask = RATION_REQUEST_INIT;
    ration_decision d;

    ask.account = ration_text_of("acc");
    ask.tenant = ration_text_of(r->tenant == RN_TENANT_NONE ? "nobody" : tenant_names[r->tenant]);
    ask.class_name = ration_text_of(class_names[r->lane]);
    ask.vars = vars;
    if (r->present[FAIR])
        vars[ask.var_count++] = (ration_var){ration_text_of("f"), ration_text_of("1")};
    if (r->present[SLOT])
        vars[ask.var_count++] = (ration_var){ration_text_of("x"), ration_text_of(keys[r->x])};
    if (r->present[LEARN])
        vars[ask.var_count++] = (ration_var){ration_text_of("l"), ration_text_of("1")};
    ask.cost = r->cost;
    ask.hold_us = r->hold_us;
    ask.priority = r->priority;
    ask.wait_us = r->deadline - f->now;
    ask.ttl_us = r->ttl > 0 ? r->ttl : RATION_UNSET;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, not a place; 0 is nobody. */
    ask.user = (void *)(intptr_t)(r - f->requests + 1);
    HOLDS(f->c, ration_engine_submit(f->engine, ration_time_of(f->now), &ask, &d) == RATION_OK);
    return d;
}

/* ---- what is reported ---- */

static void counter_is(void *ctx, const ration_counter_report *report)
{
    const fair *f = ctx;
    choices *const c = f->c;

    if (report->kind == RATION_KIND_ADAPTIVE) {
        HOLDS(c, report->current == f->limit * UNIT);
        for (int i = 1; i < LANES; i++)
            HOLDS(c, report->classes[i - 1].held == class_held(f, i) * UNIT);
    }
    for (uint32_t i = 0; i < report->tenant_count; i++) {
        const ration_tenant_report *const row = &report->tenants[i];
        const model_tenant *const t = &f->m.tenants[i];

        HOLDS(c, row->guarantee == t->guarantee);
        HOLDS(c, row->own == model_own(&f->m, i));
        HOLDS(c, row->lent == model_lent(&f->m, i));
        HOLDS(c, row->held == model_held(&f->m, i));
        HOLDS(c, f->follows || row->own + row->lent <= row->guarantee);
        HOLDS(c, row->want == t->want);
        HOLDS(c, row->idle == model_is_idle(&f->m, i, f->now));
        HOLDS(c, row->waiting == (uint64_t)t->waiting);
        HOLDS(c, row->deficit_unit_ms == t->deficit / 1000000000 && row->deficit_rest == t->deficit % 1000000000);
        HOLDS(c, f->vague || (row->reclaims == t->reclaims && row->worst_reclaim_us == t->worst_us));
        HOLDS(c, row->granted == t->granted);
    }
}

static void reports_are(fair *f)
{
    const ration_reporter reporter = {.ctx = f, .counter = counter_is};

    HOLDS(f->c, ration_engine_report(f->engine, ration_time_of(f->now), RATION_REPORT_STATS, &reporter) == RATION_OK);
}

/* ---- what happens ---- */

static void rules_draw(fair *f)
{
    choices *const c = f->c;
    const size_t count = (size_t)choose_from(c, 2, 4);

    for (size_t i = 0; i < count; i++)
        f->tenants[i] = (ration_tenant_share){tenant_names[i], choose_from(c, 1, 3), {0, 0}};
    f->limits[FAIR] = (ration_limit_rule){
        .name = "fair",
        .kind = RATION_KIND_SHARE,
        .counts = RATION_COUNTS_COST,
        .scope = by_account,
        .scope_count = 1,
        .requests_with_var = "f",
        .share = {.ceiling = choose_from(c, 1, 30),
                  .tenants = f->tenants,
                  .tenant_count = count,
                  .reclaim_horizon_us = choose_from(c, 1, 8),
                  .freeze_wanted = choose(c, 3) == 3,
                  .cooldown_us = choose(c, 3) == 3 ? choose_from(c, 1, 20) : 0,
                  .lend = choose(c, 3) == 3 ? (ration_ratio){1, 2} : (ration_ratio){0, 0}},
    };
    f->limits[FAIR].share.idle_after_us = f->limits[FAIR].share.reclaim_horizon_us + choose_from(c, 1, 8);
    f->limits[SLOT] = (ration_limit_rule){.name = "slot",
                                          .kind = RATION_KIND_CONCURRENCY,
                                          .scope = by_x,
                                          .scope_count = 1,
                                          .max = choose_from(c, 1, 2) * UNIT};
    f->limits[LEARN] = (ration_limit_rule){
        .name = "learns",
        .kind = RATION_KIND_ADAPTIVE,
        .scope = by_account,
        .scope_count = 1,
        .requests_with_var = "l",
        .adaptive = {.initial_limit = choose_from(c, 1, 4),
                     .max_limit = 8,
                     .window_us = choose_from(c, 1, 9),
                     .cooldown_us = choose_from(c, 1, 20),
                     .classes = classes,
                     .class_count = 2,
                     .lend_horizon_us = choose(c, 1) != 0 ? choose_from(c, 1, 6) : 0},
    };
    if (learns(f)->lend_horizon_us > 0)
        f->limits[LEARN].adaptive.lend_idle_us = learns(f)->lend_horizon_us + choose_from(c, 1, 6);
    f->limit = learns(f)->initial_limit;
    f->follows = choose(c, 3) == 3;
    if (f->follows) {
        f->limits[FAIR].counts = RATION_COUNTS_REQUESTS;
        f->limits[FAIR].share.ceiling = 0;
        f->limits[FAIR].share.follows = "learns";
        f->limits[LEARN].requests_with_var = NULL;
    }
    NOTE(c, "ceiling %lld, %zu tenants, horizon %lld, idle after %lld%s, cooldown %lld",
         (long long)f->limits[FAIR].share.ceiling, count, (long long)f->limits[FAIR].share.reclaim_horizon_us,
         (long long)f->limits[FAIR].share.idle_after_us, f->limits[FAIR].share.freeze_wanted ? ", freeze wanted" : "",
         (long long)f->limits[FAIR].share.cooldown_us);
    NOTE(c, "slots %lld; limit %lld, window %lld, lend %lld idle %lld", (long long)(f->limits[SLOT].max / UNIT),
         (long long)f->limit, (long long)learns(f)->window_us, (long long)learns(f)->lend_horizon_us,
         (long long)learns(f)->lend_idle_us);
}

static void request_draw(fair *f, request *r)
{
    choices *const c = f->c;
    const uint64_t mix = choose(c, 5);
    static const bool mixes[6][LIMITS] = {{true, false, false}, {true, true, false},  {true, true, true},
                                          {true, false, true},  {false, false, true}, {false, true, false}};

    *r = (request){.tenant = (uint32_t)choose(c, f->m.rule->tenant_count - 1), .x = (int)choose(c, KEYS - 1)};
    memcpy(r->present, mixes[mix], sizeof r->present);
    r->present[LEARN] = r->present[LEARN] || f->follows;
    if (choose(c, 30) == 30)
        r->tenant = RN_TENANT_NONE;
    r->lane = (int)choose(c, LANES - 1);
    r->priority = (ration_priority)choose_from(c, RATION_PRIORITY_CRITICAL, RATION_PRIORITY_LOW);
    r->cost = choose_from(c, 0, f->follows ? 3 : f->m.size / 2 + 2);
    r->hold_us = choose(c, 3) == 3 ? RATION_UNSET : choose_from(c, 0, 12);
    r->deadline = f->now + (choose(c, 2) == 2 ? 0 : choose_from(c, 0, 40));
    r->ttl = choose(c, 3) == 3 ? choose_from(c, 1, 30) : 0;
}

static int live_leases(const fair *f)
{
    int live = 0;

    for (int i = 0; i < f->count; i++)
        live += f->requests[i].state == HOLDS_IT || f->requests[i].state == WAITS;
    return live;
}

static void ask(fair *f)
{
    request *r = &f->requests[f->count];
    named want;

    if (f->count == REQUESTS || live_leases(f) == MODEL_LEASES)
        return;
    request_draw(f, r);
    f->count++;

    const char *result = arrive(f, r, &want);
    const ration_decision d = engine_ask(f, r);
    const char *got = d.result == RATION_GRANTED ? "granted" : d.result == RATION_QUEUED ? "queued" : "refused";

    r->lease = d.lease;
    NOTE(f->c,
         "%lld ask %d of %u class %d priority %d cost %lld hold %lld wait %lld ttl %lld, fair %d slot %d learn %d: %s "
         "%s",
         (long long)f->now, f->count - 1, r->tenant, r->lane, (int)r->priority, (long long)r->cost,
         (long long)r->hold_us, (long long)(r->deadline - f->now), (long long)r->ttl, r->present[FAIR],
         r->present[SLOT] ? r->x : -1, r->present[LEARN], got, ration_reason_name(d.reason));
    NOTE(f->c, "  want %s %s at %lld, got %lld", result, ration_reason_name(want.reason), (long long)want.retry_at,
         (long long)d.retry_at.us);
    HOLDS(f->c, strcmp(result, got) == 0);
    if (d.result != RATION_REFUSED)
        return;
    HOLDS(f->c, d.reason == want.reason);
    HOLDS(f->c, d.retry_at.us == (ration_reason_retryable(want.reason) ? want.retry_at : RATION_NEVER_US));
}

static request *pick(fair *f, stage wanted)
{
    const int start = f->count == 0 ? 0 : (int)choose(f->c, (uint64_t)f->count - 1);

    for (int i = 0; i < f->count; i++) {
        request *r = &f->requests[(start + i) % f->count];

        if (r->state == wanted)
            return r;
    }
    return NULL;
}

static void release(fair *f)
{
    request *r = pick(f, HOLDS_IT);
    ration_completion how = RATION_COMPLETION_INIT;

    if (r == NULL)
        return;
    NOTE(f->c, "%lld release %d", (long long)f->now, (int)(r - f->requests));
    how.outcome = RATION_OUTCOME_FAILURE;
    if (choose(f->c, 3) == 3)
        how.cost = choose_from(f->c, 0, 20);
    give_back(f, r);
    HOLDS(f->c, ration_engine_release(f->engine, ration_time_of(f->now), r->lease, &how) == RATION_OK);
}

static void cancel(fair *f)
{
    request *r = pick(f, WAITS);

    if (r == NULL)
        return;
    NOTE(f->c, "%lld cancel %d", (long long)f->now, (int)(r - f->requests));
    leaves(f, r, false);
    forget_if_empty(f, r->priority);
    HOLDS(f->c, ration_engine_cancel(f->engine, ration_time_of(f->now), r->lease) == RATION_OK);
}

static void throttle(fair *f)
{
    const ration_response response = {.status = 529};
    request *r = pick(f, HOLDS_IT);

    if (r == NULL || r->ttl < 0)
        return;
    NOTE(f->c, "%lld throttled %d", (long long)f->now, (int)(r - f->requests));
    r->ttl = -1; /* its status has been seen */
    if (r->present[LEARN])
        limit_throttled(f);
    HOLDS(f->c, ration_engine_observe(f->engine, ration_time_of(f->now), r->lease, &response) == RATION_OK);
}

/* The provider says how long; of scopes as narrow as each other, the limit that is declared first is paused. */
static void pause(fair *f)
{
    char text[32];
    ration_header header = {ration_text_of("Retry-After"), {NULL, 0}};
    ration_response response = {.status = 429, .headers = &header, .header_count = 1};
    request *r = pick(f, HOLDS_IT);
    const int64_t us = choose_from(f->c, 1, 30);

    if (r == NULL || r->ttl < 0)
        return;
    NOTE(f->c, "%lld paused %d for %lld", (long long)f->now, (int)(r - f->requests), (long long)us);
    r->ttl = -1;
    for (int i = 0; i < LIMITS; i++) {
        int64_t *until = &f->paused_until[i][i == SLOT ? r->x : 0];

        if (!r->present[i])
            continue;
        *until = f->now + us > *until ? f->now + us : *until;
        break;
    }
    snprintf(text, sizeof text, "0.%06d", (int)us);
    header.value = ration_text_of(text);
    HOLDS(f->c, ration_engine_observe(f->engine, ration_time_of(f->now), r->lease, &response) == RATION_OK);
}

static void one_step(fair *f)
{
    switch (choose(f->c, 10)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        ask(f);
        break;
    case 5:
    case 6:
        release(f);
        break;
    case 7:
        cancel(f);
        break;
    case 8:
        throttle(f);
        break;
    case 9:
        pause(f);
        break;
    default:
        return;
    }
    settle(f);
}

static void pass(fair *f)
{
    static const int64_t longest[] = {0, 0, 3, 12, 40};
    int64_t pause = (int64_t)choose(f->c, (uint64_t)longest[choose(f->c, 4)]);
    const bool often = choose(f->c, 1) == 1; /* how often time is looked at changes nothing */

    for (; pause > 0; pause--) {
        pass_instant(f);
        if (often)
            HOLDS(f->c, ration_engine_advance(f->engine, ration_time_of(f->now)) == RATION_OK);
    }
    HOLDS(f->c, ration_engine_advance(f->engine, ration_time_of(f->now)) == RATION_OK);
}

/* Over all runs. */
static struct {
    uint64_t runs, vague;
} seen;

static void the_engine_is_fair_as_the_slow_one_is(choices *c, void *context)
{
    char got[4096];
    fair *f = calloc(1, sizeof *f);

    (void)context;
    if (f == NULL)
        abort();
    f->c = c;
    rules_draw(f);
    model_init(&f->m, &f->limits[FAIR].share, 0);
    if (f->follows)
        model_resize(&f->m, f->m.rule, f->limit * UNIT);
    engine_new(f);
    while (choose(c, 120) != 0 && f->now < 1000 && !(f->vague && f->m.rule->cooldown_us > 0)) {
        f->events_used = 0;
        f->events[0] = '\0';
        pass(f);
        one_step(f);
        engine_events(f, got, sizeof got);
        NOTE(c, "%lld events %s| want %s", (long long)f->now, got, f->events);
        HOLDS(c, strcmp(got, f->events) == 0);
        reports_are(f);
    }
    seen.runs++;
    seen.vague += f->vague;
    ration_engine_free(f->engine);
    free(f);
}

static void fairness(void **state)
{
    (void)state;
    property_check("fair", the_engine_is_fair_as_the_slow_one_is, NULL, 3000);
    print_message("# in %" PRIu64 " of %" PRIu64 " runs reclaims were not compared to the end\n", seen.vague,
                  seen.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fairness)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
