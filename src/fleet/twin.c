/* SPDX-License-Identifier: MIT */
/*
 * The engine and a fleet asked the same.
 *
 * The engine is asked first and its answer is given; the store is told the same instant and must come to the same:
 * result, reason, limit, key, time to retry and the numbers behind it. Leases are named in the store as the engine
 * names them.
 *
 * The engine takes back a lost lease when its time comes, the scripts before the next call that could notice. So it is
 * at each call at a provider that both must have lost the same ones there, at the same instants.
 *
 * Invariant: `lost_count` leases are `lost`; those and the held ones have a route.
 */
#include "fleet/twin.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "fleet/answer_share.h"
#include "fleet/twin_counters.h"

#define ID_SIZE 32

static rn_twin *twin_of(rn_decider *d)
{
    return (rn_twin *)(void *)d;
}

/* ---- what differs ---- */

__attribute__((format(printf, 2, 3))) static int differ(rn_twin *twin, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)vsnprintf(twin->text, sizeof twin->text, format, values);
    va_end(values);
    twin->differs = true;
    return RATION_ERR_INVALID;
}

static int unsupported(rn_twin *twin, const char *what)
{
    (void)snprintf(twin->text, sizeof twin->text, "%s is for an engine alone", what);
    return RATION_ERR_INVALID;
}

/* An error of the store. */
static int failed(rn_twin *twin, int err)
{
    (void)snprintf(twin->text, sizeof twin->text, "%s",
                   twin->fleet.text[0] != '\0' ? twin->fleet.text : ration_err_text(err));
    return err;
}

static void say_time(rn_builder *b, const char *name, ration_time at)
{
    rn_builder_str(b, name);
    if (rn_time_known(at)) {
        rn_builder_ms(b, at.us);
    } else {
        rn_builder_str(b, "unknown");
    }
}

static void describe_share(rn_builder *b, const ration_facts *facts)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {" guarantee ", facts->guarantee}, {" own ", facts->own},      {" lent ", facts->lent},
        {" pool ", facts->pool},           {" hold ", facts->hold_us}, {" horizon ", facts->horizon_us},
    };

    rn_builder_str(b, " tenant ");
    rn_builder_text(b, facts->tenant);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        rn_builder_str(b, numbers[i].name);
        rn_builder_int(b, numbers[i].value);
    }
}

static const char *describe(const ration_decision *decision, char *buffer, size_t size)
{
    static const char *const results[] = {[RATION_REFUSED] = "refused",
                                          [RATION_GRANTED] = "granted",
                                          [RATION_QUEUED] = "queued",
                                          [RATION_PENDING] = "pending"};
    rn_builder b;

    rn_builder_init(&b, buffer, size);
    rn_builder_str(&b, results[decision->result]);
    if (decision->result != RATION_REFUSED)
        return buffer;
    rn_builder_str(&b, " ");
    rn_builder_str(&b, ration_reason_name(decision->reason));
    rn_builder_str(&b, " limit ");
    rn_builder_str(&b, decision->limit != NULL ? decision->limit : "none");
    rn_builder_str(&b, " key ");
    rn_builder_text(&b, decision->key);
    say_time(&b, " retry ", decision->retry_at);
    rn_builder_str(&b, decision->estimate ? " estimate" : "");
    rn_builder_str(&b, " charge ");
    rn_builder_int(&b, decision->facts.charge);
    rn_builder_str(&b, " available ");
    rn_builder_int(&b, decision->facts.available);
    rn_builder_str(&b, " capacity ");
    rn_builder_int(&b, decision->facts.capacity);
    if (decision->facts.tenant.data != NULL)
        describe_share(&b, &decision->facts);
    return buffer;
}

static int compare_decisions(rn_twin *twin, const ration_decision *core, const ration_decision *store)
{
    char said[480];
    char told[480];

    twin->compared++;
    if (strcmp(describe(core, said, sizeof said), describe(store, told, sizeof told)) == 0 &&
        rn_text_eq(core->key, store->key) && core->at.us == store->at.us && core->facts.ahead == store->facts.ahead)
        return RATION_OK;
    return differ(twin, "core: %s; store: %s", said, told);
}

static int compare_answers(rn_twin *twin, int core, int store)
{
    twin->compared++;
    if (core == store)
        return RATION_OK;
    return differ(twin, "core: %s; store: %s", ration_err_text(core), ration_err_text(store));
}

/* ---- leases ---- */

static ration_text id_of(ration_lease lease, char *buffer)
{
    const int size = snprintf(buffer, ID_SIZE, "%" PRIu32 ".%" PRIu32, lease.index, lease.generation);

    return (ration_text){buffer, (size_t)size};
}

/* The leases in the way, in the same order. */
static int compare_blocking(rn_twin *twin, const ration_decision *core)
{
    const size_t wanted = core->result == RATION_REFUSED ? core->blocking_count : 0;
    ration_text told = {"", 0};
    char id[ID_SIZE];
    size_t count = 0;

    if (twin->fleet.reply != NULL)
        count = rn_answer_blocking(twin->fleet.reply, 0, &told);
    if (count != wanted)
        return differ(twin, "core: %zu leases block; store: %zu", wanted, count);
    for (size_t i = 0; i < count; i++) {
        (void)rn_answer_blocking(twin->fleet.reply, i, &told);
        if (!rn_text_eq(id_of(core->blocking[i], id), told))
            return differ(twin, "core: lease %s blocks; store: %s", id, told.data);
    }
    return RATION_OK;
}

static rn_twin_lease *lease_at(const rn_twin *twin, ration_lease lease)
{
    for (size_t i = 0; i < twin->lease_count; i++) {
        if (twin->leases[i].handle.index == lease.index && twin->leases[i].handle.generation == lease.generation)
            return &twin->leases[i];
    }
    return NULL;
}

static int lease_add(rn_twin *twin, ration_lease handle, rn_route *route, const ration_request *request)
{
    if (twin->lease_count == twin->lease_capacity) {
        const size_t capacity = 2 * twin->lease_capacity + 16;
        rn_twin_lease *const grown = rn_mem_resize(&twin->mem, twin->leases, capacity, sizeof *grown);

        if (grown == NULL)
            return RATION_ERR_NOMEM;
        twin->leases = grown;
        twin->lease_capacity = capacity;
    }
    twin->leases[twin->lease_count++] = (rn_twin_lease){
        .handle = handle,
        .route = route,
        .ask = {.cost = rn_request_cost(request, route->endpoint, &route->provider->rule.defaults),
                .hold_us = rn_request_hold(request, route)},
    };
    return RATION_OK;
}

static void lease_drop(rn_twin *twin, rn_twin_lease *lease)
{
    if (lease->lost)
        twin->lost_count--;
    rn_fleet_forget(&twin->fleet, lease->route);
    *lease = twin->leases[--twin->lease_count];
}

/* The lease of a name; none where it is no name. */
static ration_lease handle_of(ration_text id)
{
    ration_lease handle = {0};
    char *end = NULL;
    const unsigned long index = strtoul(id.data, &end, 10);

    if (*end != '.')
        return handle;

    const unsigned long generation = strtoul(end + 1, &end, 10);

    if (*end == '\0' && index <= UINT32_MAX && generation <= UINT32_MAX)
        handle = (ration_lease){(uint32_t)index, (uint32_t)generation};
    return handle;
}

static int check_lost(rn_twin *twin, const rn_fleet_lost *lost)
{
    rn_twin_lease *const lease = lease_at(twin, handle_of(lost->id));

    if (lease == NULL || !lease->lost)
        return differ(twin, "the store has lost lease %s, the core has not", lost->id.data);
    if (lease->lost_at.us != lost->at.us) {
        return differ(twin, "lease %s was lost at %" PRId64 " us in the core, at %" PRId64 " in the store",
                      lost->id.data, lease->lost_at.us, lost->at.us);
    }
    lease_drop(twin, lease);
    return RATION_OK;
}

/* Something has happened to a request that waited; `refusal` NULL: it was granted. */
static int waiter_event(rn_twin *twin, rn_twin_lease *lease, bool by_store, ration_time at,
                        const ration_decision *refusal)
{
    const ration_text provider = lease->route->provider->name;
    char why[480];
    char text[600];

    (void)snprintf(text, sizeof text, "lease %" PRIu32 ".%" PRIu32 " at %" PRId64 " us: %s, ahead %" PRId64,
                   lease->handle.index, lease->handle.generation, at.us,
                   refusal != NULL ? describe(refusal, why, sizeof why) : "granted",
                   refusal != NULL ? refusal->facts.ahead : 0);
    if (refusal != NULL && ++lease->refusals == 2)
        lease_drop(twin, lease);
    return rn_twin_events_add(&twin->events, by_store, provider, text);
}

static int take_event(rn_twin *twin, const rn_fleet_event *event)
{
    const bool granted = rn_text_is(event->what, "granted");
    rn_twin_lease *const lease = lease_at(twin, handle_of(event->key));
    ration_decision decision;

    if (!granted && !rn_text_is(event->what, "refused"))
        return rn_twin_events_told(&twin->events, event);
    if (lease == NULL)
        return differ(twin, "the store tells of lease %s, which does not wait", event->key.data);
    if (!granted)
        rn_answer_refuse(event->why, event->at, lease->route, &lease->ask, &decision);
    return waiter_event(twin, lease, true, event->at, granted ? NULL : &decision);
}

/* What the store's last call has brought about; compared when the engine has told of the same call, too. */
static int take_events(rn_twin *twin)
{
    rn_fleet_event event;
    int err = RATION_OK;

    for (size_t i = 0; err == RATION_OK && rn_fleet_next_event(&twin->fleet, i, &event); i++)
        err = take_event(twin, &event);
    return err;
}

static int compare_events(rn_twin *twin, bool all)
{
    char text[sizeof twin->text];

    if (rn_twin_events_agree(&twin->events, all, &twin->compared, text, sizeof text))
        return RATION_OK;
    return differ(twin, "%s", text);
}

/* After a call at a provider. */
static int compare_lost(rn_twin *twin, ration_text provider)
{
    rn_fleet_lost lost;
    const int taken = take_events(twin);

    if (taken != RATION_OK)
        return taken;
    for (size_t i = 0; rn_fleet_next_lost(&twin->fleet, i, &lost); i++) {
        const int err = check_lost(twin, &lost);

        if (err != RATION_OK)
            return err;
    }
    for (size_t i = 0; twin->lost_count > 0 && i < twin->lease_count; i++) {
        const rn_twin_lease *const lease = &twin->leases[i];

        if (lease->lost && rn_text_eq(lease->route->provider->name, provider)) {
            return differ(twin, "the core has lost lease %" PRIu32 ".%" PRIu32 ", the store has not",
                          lease->handle.index, lease->handle.generation);
        }
    }
    return RATION_OK;
}

/* ---- the seam ---- */

/* What was refused for its names alone never reached the store. */
static bool reached_the_store(const rn_twin *twin)
{
    return twin->fleet.reply != NULL;
}

static int compare_lost_of(rn_twin *twin, const rn_route *route, const ration_request *request)
{
    const rn_account *const account = rn_book_account(&twin->fleet.rules.book, request->account);

    if (!reached_the_store(twin))
        return RATION_OK;
    return compare_lost(twin, route != NULL ? route->provider->name : account->provider->name);
}

static int twin_submit(rn_decider *d, ration_time now, const ration_request *request, ration_decision *out)
{
    rn_twin *const twin = twin_of(d);
    ration_decision decision;
    rn_route *route = NULL;
    char id[ID_SIZE] = "refused";
    int err = twin->engine->ops->submit(twin->engine, now, request, out);

    twin->now = now;
    if (err != RATION_OK)
        return err;

    const ration_text name = out->result != RATION_REFUSED ? id_of(out->lease, id) : (ration_text){id, strlen(id)};

    err = rn_fleet_submit(&twin->fleet, now, request, name, &decision, &route);
    if (err != RATION_OK)
        return failed(twin, err);
    err = compare_decisions(twin, out, &decision);
    if (err == RATION_OK)
        err = compare_blocking(twin, out);
    if (err == RATION_OK && route != NULL)
        err = lease_add(twin, out->lease, route, request);
    if (err != RATION_OK) {
        if (route != NULL)
            rn_fleet_forget(&twin->fleet, route);
        return err;
    }
    return compare_lost_of(twin, route, request);
}

static int twin_check(rn_decider *d, ration_time now, const ration_request *request, ration_check_mode mode,
                      ration_decision *out)
{
    rn_twin *const twin = twin_of(d);
    ration_decision decision;
    int err = twin->engine->ops->check(twin->engine, now, request, mode, out);

    twin->now = now;
    if (err != RATION_OK)
        return err;
    err = rn_fleet_check(&twin->fleet, now, request, mode, &decision);
    if (err != RATION_OK)
        return failed(twin, err);
    err = compare_decisions(twin, out, &decision);
    if (err == RATION_OK)
        err = compare_blocking(twin, out);
    return err == RATION_OK ? compare_lost_of(twin, NULL, request) : err;
}

/* The end of a call about a lease, to which the engine has said `core` and the store `store`. */
static int lease_answered(rn_twin *twin, const rn_twin_lease *lease, int core, int store)
{
    if (store != RATION_OK && store != RATION_ERR_UNKNOWN)
        return failed(twin, store);

    const ration_text provider = lease->route->provider->name;
    const int err = compare_answers(twin, core, store);

    return err == RATION_OK ? compare_lost(twin, provider) : err;
}

/* The lease has ended in both, if it has not been dropped already. */
static void lease_gone(rn_twin *twin, ration_lease handle)
{
    rn_twin_lease *const lease = lease_at(twin, handle);

    if (lease != NULL)
        lease_drop(twin, lease);
}

static int twin_release(rn_decider *d, ration_time now, ration_lease handle, const ration_completion *completion)
{
    rn_twin *const twin = twin_of(d);
    char id[ID_SIZE];
    const int core = twin->engine->ops->release(twin->engine, now, handle, completion);
    const rn_twin_lease *const lease = lease_at(twin, handle);

    twin->now = now;
    if (lease == NULL || (core != RATION_OK && core != RATION_ERR_UNKNOWN))
        return core;

    const int store = rn_fleet_release(&twin->fleet, now, lease->route, id_of(handle, id), completion);
    const int err = lease_answered(twin, lease, core, store);

    if (core == RATION_OK)
        lease_gone(twin, handle);
    return err == RATION_OK ? core : err;
}

static int twin_observe(rn_decider *d, ration_time now, ration_lease handle, const ration_response *response)
{
    rn_twin *const twin = twin_of(d);
    char id[ID_SIZE];
    const int core = twin->engine->ops->observe(twin->engine, now, handle, response);
    const rn_twin_lease *const lease = lease_at(twin, handle);

    twin->now = now;
    if (lease == NULL || (core != RATION_OK && core != RATION_ERR_UNKNOWN))
        return core;

    const int store = rn_fleet_observe(&twin->fleet, now, lease->route, id_of(handle, id), response);
    const int err = lease_answered(twin, lease, core, store);

    return err == RATION_OK ? core : err;
}

static int twin_renew(rn_decider *d, ration_time now, ration_lease handle)
{
    rn_twin *const twin = twin_of(d);
    char id[ID_SIZE];
    const int core = twin->engine->ops->renew(twin->engine, now, handle);
    const rn_twin_lease *const lease = lease_at(twin, handle);

    twin->now = now;
    if (lease == NULL || (core != RATION_OK && core != RATION_ERR_UNKNOWN))
        return core;

    const int store = rn_fleet_renew(&twin->fleet, now, lease->route, id_of(handle, id));
    const int err = lease_answered(twin, lease, core, store);

    return err == RATION_OK ? core : err;
}

static int twin_cancel(rn_decider *d, ration_time now, ration_lease handle)
{
    rn_twin *const twin = twin_of(d);
    char id[ID_SIZE];
    const int core = twin->engine->ops->cancel(twin->engine, now, handle);
    const rn_twin_lease *const lease = lease_at(twin, handle);

    twin->now = now;
    if (lease == NULL || (core != RATION_OK && core != RATION_ERR_UNKNOWN))
        return core;

    const int store = rn_fleet_cancel(&twin->fleet, now, lease->route, id_of(handle, id));
    const int err = lease_answered(twin, lease, core, store);

    if (core == RATION_OK)
        lease_gone(twin, handle);
    return err == RATION_OK ? core : err;
}

static int twin_health(rn_decider *d, ration_time now, ration_text account, bool ok)
{
    rn_twin *const twin = twin_of(d);
    const int core = twin->engine->ops->health(twin->engine, now, account, ok);
    const int store = rn_fleet_health(&twin->fleet, now, account, ok);

    twin->now = now;
    if (store != RATION_OK && store != RATION_ERR_UNKNOWN)
        return failed(twin, store);

    int err = compare_answers(twin, core, store);

    if (err == RATION_OK && store == RATION_OK)
        err = compare_lost(twin, rn_book_account(&twin->fleet.rules.book, account)->provider->name);
    return err == RATION_OK ? core : err;
}

static int twin_operate(rn_decider *d, ration_time now, ration_op op, const ration_counter_name *counter, int64_t units)
{
    rn_twin *const twin = twin_of(d);
    rn_call_counter at;

    if (op == RATION_OP_DRAIN)
        return unsupported(twin, "a drain");

    const int core = twin->engine->ops->operate(twin->engine, now, op, counter, units);
    const int store = rn_fleet_operate(&twin->fleet, now, op, counter, units);

    twin->now = now;
    if (store == RATION_ERR_IO || store == RATION_ERR_NOMEM)
        return failed(twin, store);

    int err = compare_answers(twin, core, store);

    if (err == RATION_OK && reached_the_store(twin) &&
        rn_fleet_rules_counter(&twin->fleet.rules, counter, &at) == RATION_OK)
        err = compare_lost(twin, ration_text_of(at.counter.limit->provider));
    return err == RATION_OK ? core : err;
}

static int twin_advance(rn_decider *d, ration_time now)
{
    rn_twin *const twin = twin_of(d);
    const int err = compare_events(twin, false);

    twin->now = now;
    return err == RATION_OK ? twin->engine->ops->advance(twin->engine, now) : err;
}

static ration_time twin_next_deadline(const rn_decider *d)
{
    const rn_decider *const engine = ((const rn_twin *)(const void *)d)->engine;

    return engine->ops->next_deadline(engine);
}

static bool twin_next_event(rn_decider *d, ration_event *out)
{
    rn_twin *const twin = twin_of(d);

    if (!twin->engine->ops->next_event(twin->engine, out))
        return false;

    rn_twin_lease *const lease = lease_at(twin, out->lease);

    if (lease != NULL && out->type == RATION_EVENT_LOST) {
        lease->lost = true;
        lease->lost_at = out->at;
        twin->lost_count++;
    }
    if (lease != NULL && out->type == RATION_EVENT_REFUSED)
        (void)waiter_event(twin, lease, false, out->at, &out->decision);
    if (lease != NULL && out->type == RATION_EVENT_GRANTED)
        (void)waiter_event(twin, lease, false, out->at, NULL);
    rn_twin_events_said(&twin->events, out);
    return true;
}

/* Let the store come to where the engine is. */
static int stores_advance(rn_twin *twin)
{
    for (size_t i = 0; i < twin->fleet.rules.book.provider_count; i++) {
        const ration_text name = twin->fleet.rules.book.providers[i].name;
        int err = rn_fleet_advance(&twin->fleet, twin->now, name);

        if (err != RATION_OK)
            return failed(twin, err);
        err = compare_lost(twin, name);
        if (err != RATION_OK)
            return err;
    }
    return RATION_OK;
}

/* What all counters tell of themselves. */
static int compare_reports(rn_twin *twin, ration_time now)
{
    rn_twin_comparison comparison = {.fleet = &twin->fleet,
                                     .now = now,
                                     .text = twin->text,
                                     .text_size = sizeof twin->text,
                                     .compared = &twin->compared};
    const int err = rn_twin_counters(&comparison, twin->engine);

    twin->differs = twin->differs || err == RATION_ERR_INVALID;
    return err == RATION_OK || err == RATION_ERR_INVALID ? err : failed(twin, err);
}

static int twin_report(rn_decider *d, ration_time now, ration_report_kind kind, const ration_reporter *reporter)
{
    rn_twin *const twin = twin_of(d);
    int err = twin->engine->ops->report(twin->engine, now, kind, reporter);

    twin->now = now;
    if (err != RATION_OK || kind != RATION_REPORT_STATS)
        return err;
    err = stores_advance(twin);
    return err == RATION_OK ? compare_reports(twin, now) : err;
}

static void twin_totals(const rn_decider *d, ration_totals *out)
{
    const rn_decider *const engine = ((const rn_twin *)(const void *)d)->engine;

    engine->ops->totals(engine, out);
}

static const rn_decider_ops twin_ops = {
    .submit = twin_submit,
    .check = twin_check,
    .release = twin_release,
    .observe = twin_observe,
    .renew = twin_renew,
    .cancel = twin_cancel,
    .health = twin_health,
    .operate = twin_operate,
    .advance = twin_advance,
    .next_deadline = twin_next_deadline,
    .next_event = twin_next_event,
    .report = twin_report,
    .totals = twin_totals,
};

/* ---- life ---- */

int rn_twin_init(rn_twin *twin, const rn_twin_options *options, rn_decider *engine, const ration_rules *rules,
                 ration_time start)
{
    uint64_t random = 0;
    char name[40];

    *twin = (rn_twin){.base = {&twin_ops}, .engine = engine, .now = start};
    twin->mem = options->allocator != NULL ? *options->allocator : *rn_mem_default();
    rn_twin_events_init(&twin->events, &twin->mem);
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return RATION_ERR_IO;
    (void)snprintf(name, sizeof name, "replay-%016" PRIx64, random);

    const rn_fleet_options fleet = {
        .rules = rules,
        .allocator = options->allocator,
        .name = name,
        .redis = options->redis,
        .tells_time = true,
    };
    const int err = rn_fleet_init(&twin->fleet, &fleet, start);

    return err == RATION_OK ? err : failed(twin, err);
}

void rn_twin_fini(rn_twin *twin)
{
    while (twin->lease_count > 0)
        lease_drop(twin, &twin->leases[0]);
    if (twin->fleet.redis.store != NULL)
        (void)rn_fleet_erase(&twin->fleet);
    rn_fleet_fini(&twin->fleet);
    rn_mem_free(&twin->mem, twin->leases);
    rn_twin_events_fini(&twin->events);
}

int rn_twin_finish(rn_twin *twin)
{
    int err = stores_advance(twin);

    if (err == RATION_OK)
        err = compare_events(twin, true);
    return err == RATION_OK ? compare_reports(twin, twin->now) : err;
}
