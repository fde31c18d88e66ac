/* SPDX-License-Identifier: MIT */

/*
 * Reports: everything there is, in an order that depends on the rules and keys alone. They allocate and sort; no
 * decision passes here.
 */

#include "core/engine.h"

#include "base/mem.h"
#include "core/asleep.h"
#include "core/weight.h"

typedef bool less_fn(const void *a, const void *b);

/* Heapsort over pointers: no recursion, no extra memory, and nothing of libc's. */
static void sift(const void **items, size_t size, size_t at, less_fn *less)
{
    for (;;) {
        size_t largest = at;
        const size_t left = 2 * at + 1;

        if (left < size && less(items[largest], items[left]))
            largest = left;
        if (left + 1 < size && less(items[largest], items[left + 1]))
            largest = left + 1;
        if (largest == at)
            return;

        const void *swap = items[at];

        items[at] = items[largest];
        items[largest] = swap;
        at = largest;
    }
}

static void sort(const void **items, size_t size, less_fn *less)
{
    for (size_t i = size / 2; i-- > 0;)
        sift(items, size, i, less);
    for (size_t i = size; i-- > 1;) {
        const void *swap = items[0];

        items[0] = items[i];
        items[i] = swap;
        sift(items, i, 0, less);
    }
}

static uint32_t provider_index(const ration_engine *engine, const rn_limit *limit)
{
    for (size_t i = 0; i < engine->world->book.provider_count; i++) {
        if (engine->world->book.providers[i].name.data == limit->provider)
            return engine->world->book.providers[i].index;
    }
    return 0;
}

/* A counter with what it is sorted by. */
typedef struct row {
    rn_counter *counter;
    uint32_t provider;
    bool asleep;     /* it is the report's own */
    uint64_t weight; /* where only the weightiest are wanted */
} row;

static bool row_less(const void *a, const void *b)
{
    const row *x = a;
    const row *y = b;

    if (x->provider != y->provider)
        return x->provider < y->provider;
    if (x->counter->limit->index != y->counter->limit->index)
        return x->counter->limit->index < y->counter->limit->index;

    const int order = rn_text_compare(x->counter->key, y->counter->key);

    return order != 0 ? order < 0 : x->counter->limit->uid < y->counter->limit->uid;
}

/* What a quota has spent by time. `*units` is the caller's to free. */
static int report_timeline(const ration_engine *engine, rn_counter *counter, int64_t **units, ration_timeline *out)
{
    *units = rn_mem_zalloc(&engine->mem, rn_quota_timeline_count(counter, engine->now), sizeof **units);
    if (*units == NULL)
        return RATION_ERR_NOMEM;
    rn_quota_timeline(counter, engine->now, *units, out);
    return RATION_OK;
}

static int report_counter(const ration_engine *engine, const row *of, const ration_reporter *reporter)
{
    rn_counter *counter = of->counter;
    ration_counter_report report = {
        .provider = counter->limit->provider,
        .limit = counter->limit->rule->name,
        .kind = counter->limit->rule->kind,
        .enforce = counter->limit->rule->enforce,
        .key = counter->key,
        .paused = counter->paused,
        .asleep = of->asleep,
        .waiting = counter->place_count,
        .shadowed = counter->shadowed,
    };
    ration_class_report classes[RN_CLASSES_MAX];

    counter->limit->kind->describe(counter, engine->now, &report);
    if (report.kind == RATION_KIND_SHARE && report.tenants == NULL)
        return RATION_ERR_NOMEM;
    if (report.kind == RATION_KIND_ADAPTIVE) {
        rn_adaptive_classes(counter, classes);
        report.classes = classes;
    }

    const bool timed = report.kind == RATION_KIND_QUOTA && reporter->timelines;
    int64_t *units = NULL;
    const int err = timed ? report_timeline(engine, counter, &units, &report.timeline) : RATION_OK;

    if (err == RATION_OK)
        reporter->counter(reporter->ctx, &report);
    rn_mem_free(&engine->mem, units);
    return err;
}

static void report_penalty(const ration_engine *engine, const rn_penalty *penalty, ration_text key, const char *limit,
                           const ration_reporter *reporter)
{
    const ration_penalty_report report = {key, limit, penalty->until, penalty->events};

    if (rn_penalty_runs(penalty, engine->now))
        reporter->penalty(reporter->ctx, &report);
}

static bool circuit_less(const void *a, const void *b)
{
    const rn_circuit *x = a;
    const rn_circuit *y = b;

    return x->provider != y->provider ? x->provider->index < y->provider->index : rn_text_compare(x->key, y->key) < 0;
}

static void report_circuit(const rn_circuit *circuit, const ration_reporter *reporter)
{
    const ration_breaker_report report = {
        .provider = circuit->provider->name.data,
        .key = circuit->key,
        .state = circuit->breaker.state,
        .generation = circuit->breaker.generation,
        .retry_at = rn_breaker_retry_at(&circuit->breaker),
        .cause = circuit->breaker.cause,
        .asleep = circuit->name == NULL,
    };

    reporter->breaker(reporter->ctx, &report);
}

/* Those that were kept, at the head of `out`, which has room for all. `*count` of them, also on error. */
static int circuits_asleep(const ration_engine *engine, const void **out, size_t *count)
{
    rn_routes *routes = &engine->world->routes;
    int err = RATION_OK;

    for (rn_map_node *node = rn_map_first(&routes->kept.circuits); node != NULL; node = rn_map_next(node)) {
        rn_circuit *circuit;

        err = rn_asleep_circuit(routes, engine->now, node, &circuit);
        if (err != RATION_OK)
            return err;
        if (circuit != NULL)
            out[(*count)++] = circuit;
    }
    return RATION_OK;
}

static int report_circuits(const ration_engine *engine, ration_report_kind kind, const ration_reporter *reporter)
{
    const rn_circuits *circuits = &engine->world->routes.circuits;
    const size_t most = circuits->by_name.size + engine->world->routes.kept.circuits.size;
    const void **sorted = rn_mem_zalloc(&engine->mem, most + 1, sizeof(const void *));
    const rn_circuit *circuit;
    size_t n = 0;

    if (sorted == NULL)
        return RATION_ERR_NOMEM;

    const int err = reporter->asleep ? circuits_asleep(engine, sorted, &n) : RATION_OK;

    if (err != RATION_OK)
        goto out;
    TAILQ_FOREACH (circuit, &circuits->all, next) {
        if (kind == RATION_REPORT_LIMITS || circuit->breaker.state != RATION_BREAKER_CLOSED)
            sorted[n++] = circuit;
    }
    sort(sorted, n, circuit_less);
    for (size_t i = 0; i < n; i++)
        report_circuit(sorted[i], reporter);
out:
    for (size_t i = 0; i < n; i++) {
        circuit = sorted[i];
        if (circuit->name == NULL) {
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is the report's own, only the const goes. */
            rn_asleep_circuit_free(&engine->world->routes, (rn_circuit *)(uintptr_t)circuit);
        }
    }
    rn_mem_free(&engine->mem, (void *)sorted);
    return err;
}

static int report_share(const ration_engine *engine, rn_counter *counter, const ration_reporter *reporter)
{
    ration_share_report report = {
        .provider = counter->limit->provider,
        .limit = counter->limit->rule->name,
        .key = counter->key,
    };
    const int err = rn_share_report(counter, engine->now, &report);

    if (err == RATION_OK)
        reporter->share(reporter->ctx, &report);
    return err;
}

static int report_rows(const ration_engine *engine, const void **sorted, size_t count, const ration_reporter *reporter)
{
    int err = RATION_OK;

    for (size_t i = 0; i < count && err == RATION_OK && reporter->counter != NULL; i++)
        err = report_counter(engine, sorted[i], reporter);
    if (err != RATION_OK)
        return err;
    for (size_t i = 0; i < count && reporter->penalty != NULL; i++) {
        const rn_counter *counter = ((const row *)sorted[i])->counter;

        report_penalty(engine, &counter->penalty, counter->key, counter->limit->rule->name, reporter);
    }

    const bool of_accounts = reporter->penalty != NULL && reporter->limit.data == NULL && reporter->key.data == NULL;

    for (size_t i = 0; i < engine->world->book.account_count && of_accounts; i++) {
        const rn_account *account = &engine->world->book.accounts[i];

        report_penalty(engine, &account->penalty, account->name, NULL, reporter);
    }
    return RATION_OK;
}

/* Also of limits that nobody has used, so that a count that begins can be seen to. */
static void report_throttled(const ration_engine *engine, const ration_reporter *reporter)
{
    const rn_book *book = &engine->world->book;

    for (size_t i = 0; i < book->provider_count; i++) {
        const rn_provider *provider = &book->providers[i];

        for (size_t k = 0; k <= provider->limit_count; k++) {
            const ration_throttled_report report = {
                .provider = provider->rule.name,
                .limit = k < provider->limit_count ? provider->rule.limits[k].name : NULL,
                .count = provider->throttled[k],
            };

            reporter->throttled(reporter->ctx, &report);
        }
    }
}

static int report_sorted(const ration_engine *engine, const void **sorted, size_t count, ration_report_kind kind,
                         const ration_reporter *reporter)
{
    int err = RATION_OK;

    if (kind == RATION_REPORT_FAIRNESS || kind == RATION_REPORT_ALLOCATION) {
        for (size_t i = 0; i < count && err == RATION_OK && reporter->share != NULL; i++)
            err = report_share(engine, ((const row *)sorted[i])->counter, reporter);
        return err;
    }
    err = report_rows(engine, sorted, count, reporter);
    if (err == RATION_OK && reporter->throttled != NULL)
        report_throttled(engine, reporter);
    return err == RATION_OK && reporter->breaker != NULL ? report_circuits(engine, kind, reporter) : err;
}

/* Rows of a report as they are gathered. */
typedef struct rows {
    const ration_reporter *reporter;
    row *items;
    const void **sorted; /* where there were more than `most`: a heap, at whose top the first to go is */
    size_t count;
    size_t most; /* that there is room for */
    bool chosen; /* more may come than that: each is weighed */
} rows;

static bool is_asked_for(const ration_reporter *reporter, const rn_counter *counter)
{
    return (reporter->limit.data == NULL || rn_text_is(reporter->limit, counter->limit->rule->name)) &&
           (reporter->key.data == NULL || rn_text_eq(reporter->key, counter->key));
}

static void rows_put(const ration_engine *engine, rows *all, rn_counter *counter, bool asleep)
{
    all->items[all->count] = (row){counter, provider_index(engine, counter->limit), asleep, 0};
    all->sorted[all->count] = &all->items[all->count];
    all->count++;
}

/* The heavier one; of equals the one that comes first. */
static bool heavier(const void *a, const void *b)
{
    const row *x = a;
    const row *y = b;

    return x->weight != y->weight ? x->weight > y->weight : row_less(a, b);
}

/* One more, or one instead of the lightest. */
static void rows_weigh(const ration_engine *engine, rows *all, rn_counter *counter)
{
    const row fresh = {counter, provider_index(engine, counter->limit), false, rn_counter_weight(counter, engine->now)};

    if (all->count < all->most) {
        all->items[all->count] = fresh;
        all->sorted[all->count] = &all->items[all->count];
        all->count++;
        for (size_t i = all->count / 2; all->count == all->most && i-- > 0;)
            sift(all->sorted, all->count, i, heavier);
    } else if (heavier(&fresh, all->sorted[0])) {
        all->items[(const row *)all->sorted[0] - all->items] = fresh;
        sift(all->sorted, all->count, 0, heavier);
    }
}

static void rows_add(const ration_engine *engine, rows *all, rn_counter *counter)
{
    if (!is_asked_for(all->reporter, counter))
        return;
    if (all->chosen) {
        rows_weigh(engine, all, counter);
    } else {
        rows_put(engine, all, counter, false);
    }
}

static int rows_add_asleep(const ration_engine *engine, rows *all)
{
    rn_routes *routes = &engine->world->routes;

    for (rn_map_node *node = rn_map_first(&routes->kept.counters); node != NULL; node = rn_map_next(node)) {
        rn_counter *counter;
        const int err =
            rn_asleep_counter(routes, engine->now, node, all->reporter->limit, all->reporter->key, &counter);

        if (err != RATION_OK)
            return err;
        if (counter != NULL)
            rows_put(engine, all, counter, true);
    }
    return RATION_OK;
}

static void rows_free(const ration_engine *engine, rows *all)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].asleep)
            rn_asleep_counter_free(&engine->world->routes, all->items[i].counter);
    }
    rn_mem_free(&engine->mem, all->items);
    rn_mem_free(&engine->mem, (void *)all->sorted);
}

/* Which kinds of limits are wanted, a bit for each; 0: all. */
static uint32_t wanted_kinds(ration_report_kind kind, const ration_reporter *reporter)
{
    const bool of_shares = kind == RATION_REPORT_FAIRNESS || kind == RATION_REPORT_ALLOCATION;

    return of_shares ? UINT32_C(1) << RATION_KIND_SHARE : reporter->kinds;
}

/* What is gathered of the counters of some kinds. */
typedef struct kinds_visit {
    const ration_engine *engine;
    uint32_t kinds;
    rows *all; /* NULL: they are counted only */
    size_t count;
} kinds_visit;

static void limit_rows(void *ctx, const rn_limit *limit)
{
    kinds_visit *v = ctx;
    rn_counter *counter;

    if ((v->kinds >> limit->rule->kind & 1) == 0)
        return;
    v->count += (size_t)limit->counter_count;
    if (v->all == NULL)
        return;
    TAILQ_FOREACH (counter, &limit->counters, in_limit)
        rows_add(v->engine, v->all, counter);
}

/* The counters of some kinds, without a look at any other. */
static size_t kinds_rows(const ration_engine *engine, uint32_t kinds, rows *all)
{
    kinds_visit v = {.engine = engine, .kinds = kinds, .all = all};

    rn_book_visit(&engine->world->book, &v, limit_rows);
    return v.count;
}

static void all_rows(const ration_engine *engine, const ration_reporter *reporter, rows *all)
{
    for (rn_map_node *node = rn_map_first(&engine->world->routes.counters); node != NULL; node = rn_map_next(node)) {
        rn_counter *counter = (rn_counter *)(void *)((char *)node - offsetof(rn_counter, node));

        /* What nobody asks for need not be sorted: of many counters few are paused. */
        if (reporter->counter != NULL || rn_penalty_runs(&counter->penalty, engine->now))
            rows_add(engine, all, counter);
    }
}

static int report_limits(const ration_engine *engine, ration_report_kind kind, const ration_reporter *reporter)
{
    const uint32_t kinds = wanted_kinds(kind, reporter);
    const bool none = reporter->counter == NULL && reporter->penalty == NULL && reporter->share == NULL;
    const size_t awake = none ? 0 : kinds == 0 ? engine->world->routes.counters.size : kinds_rows(engine, kinds, NULL);
    const bool chosen = reporter->most > 0 && reporter->counter != NULL && awake > reporter->most;
    const size_t asleep =
        !none && kinds == 0 && reporter->asleep && reporter->most == 0 ? engine->world->routes.kept.counters.size : 0;
    const size_t most = chosen ? reporter->most : awake + asleep;
    rows all = {
        .reporter = reporter,
        .items = rn_mem_resize(&engine->mem, NULL, most + 1, sizeof *all.items),
        .sorted = rn_mem_resize(&engine->mem, NULL, most + 1, sizeof(const void *)),
        .most = most,
        .chosen = chosen,
    };
    int err = RATION_ERR_NOMEM;

    if (all.items == NULL || all.sorted == NULL)
        goto out;
    if (awake > 0 && kinds == 0) {
        all_rows(engine, reporter, &all);
    } else if (awake > 0) {
        (void)kinds_rows(engine, kinds, &all);
    }
    err = asleep > 0 ? rows_add_asleep(engine, &all) : RATION_OK;
    if (err != RATION_OK)
        goto out;
    sort(all.sorted, all.count, row_less);
    err = report_sorted(engine, all.sorted, all.count, kind, reporter);
out:
    rows_free(engine, &all);
    return err;
}

/* A lease holds, or a waiter wants, something of the counters that are asked for. */
static bool is_lease_asked_for(const ration_reporter *reporter, const rn_lease *lease)
{
    bool found = reporter->limit.data == NULL && reporter->key.data == NULL;

    for (size_t i = 0; i < lease->place_count && !found; i++)
        found = is_asked_for(reporter, lease->places[i].counter);
    return found;
}

static bool lease_less(const void *a, const void *b)
{
    return ((const rn_lease *)a)->serial < ((const rn_lease *)b)->serial;
}

static void report_lease(const ration_engine *engine, const rn_lease *lease, const ration_reporter *reporter)
{
    const bool waiting = lease->state == RN_LEASE_WAITING;
    const ration_lease_report report = {
        .serial = lease->serial,
        .lease = rn_lease_handle(lease),
        .waiting = waiting,
        .provider = lease->route->provider->name,
        .account = lease->route->account->name,
        .tenant = lease->route->tenant,
        .class_name = lease->route->class_name,
        .priority = lease->rank.priority,
        .cost = lease->cost,
        .since = lease->since,
        .ends_at = waiting ? lease->deadline : lease->ends_at,
        .ttl_until = {waiting || lease->ttl_us == RATION_UNSET ? RATION_NEVER_US : lease->timer.at.us},
        .overrun = !waiting && rn_time_before(lease->ends_at, engine->now),
    };

    reporter->lease(reporter->ctx, &report);
}

static int report_leases(const ration_engine *engine, const ration_reporter *reporter)
{
    const rn_leases *leases = &engine->leases;
    const void **sorted = rn_mem_zalloc(&engine->mem, (size_t)leases->used + 1, sizeof(const void *));
    size_t n = 0;

    if (sorted == NULL)
        return RATION_ERR_NOMEM;
    for (uint32_t i = 0; i < leases->size; i++) {
        const rn_lease *lease = rn_leases_at(leases, i);

        if (lease->state != RN_LEASE_FREE && is_lease_asked_for(reporter, lease))
            sorted[n++] = lease;
    }
    sort(sorted, n, lease_less);
    for (size_t i = 0; i < n && reporter->lease != NULL; i++)
        report_lease(engine, sorted[i], reporter);
    rn_mem_free(&engine->mem, (void *)sorted);
    return RATION_OK;
}

int rn_report(ration_engine *engine, ration_report_kind kind, const ration_reporter *reporter)
{
    switch (kind) {
    case RATION_REPORT_STATS:
    case RATION_REPORT_LIMITS:
    case RATION_REPORT_FAIRNESS:
    case RATION_REPORT_ALLOCATION:
        return report_limits(engine, kind, reporter);
    case RATION_REPORT_LEASES:
        return report_leases(engine, reporter);
    }
    return RATION_ERR_INVALID;
}
