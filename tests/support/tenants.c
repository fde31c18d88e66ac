/* SPDX-License-Identifier: MIT */
#include "support/tenants.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#include "base/text.h"
#include "base/units.h"

static const ration_tenant_share two[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 1}};

ration_ceiling_options tenants_two(void)
{
    return (ration_ceiling_options){
        .rule =
            {
                .ceiling = 100 * RATION_UNIT,
                .tenants = two,
                .tenant_count = 2,
                .reclaim_horizon_us = 100000,
                .idle_after_us = 200000,
            },
        .counts = RATION_COUNTS_COST,
        .started_at = {-1000000},
    };
}

void tenants_init(tenants *t, const ration_ceiling_options *options)
{
    ration_fault fault = {.path = ""};

    memset(t, 0, sizeof *t);
    if (ration_ceiling_new(options, &t->ceiling, &fault) != RATION_OK) {
        print_error("%s: %s\n", fault.path, fault.text);
        abort();
    }
}

void tenants_fini(tenants *t)
{
    ration_ceiling_free(t->ceiling);
}

/* ---- texts ---- */

static void put(tenants *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(tenants *t, const char *format, ...)
{
    const size_t used = strlen(t->text);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(t->text + used, sizeof t->text - used, format, args);
    va_end(args);
}

static void put_micro(tenants *t, const char *label, int64_t micro)
{
    char text[64];
    rn_builder b;

    rn_builder_init(&b, text, sizeof text);
    rn_builder_micro(&b, micro);
    put(t, "%s%s", label, text);
}

static void put_ms(tenants *t, const char *label, int64_t us)
{
    char text[64];
    rn_builder b;

    rn_builder_init(&b, text, sizeof text);
    rn_builder_ms(&b, us);
    put(t, "%s%s", label, text);
}

static void put_name(tenants *t, uint64_t serial)
{
    for (size_t i = t->count; i-- > 0;) {
        if (t->leases[i].serial == serial) {
            put(t, " %s", t->leases[i].name);
            return;
        }
    }
    put(t, " ?");
}

static void put_blocking(tenants *t, ration_lease lease)
{
    for (size_t i = t->count; i-- > 0;) {
        if (t->leases[i].lease.index == lease.index && t->leases[i].lease.generation == lease.generation) {
            put(t, " %s", t->leases[i].name);
            return;
        }
    }
    put(t, " ?");
}

/* ---- reports ---- */

static void on_state(void *ctx, const ration_counter_report *report)
{
    tenants *const t = ctx;

    for (size_t i = 0; i < report->tenant_count; i++) {
        const ration_tenant_report *const row = &report->tenants[i];

        if (!rn_text_is(row->name, t->asked_of))
            continue;
        put_micro(t, "guarantee ", row->guarantee);
        put_micro(t, " held ", row->held);
        put_micro(t, " own ", row->own);
        put_micro(t, " lent ", row->lent);
        put_micro(t, " borrowed ", row->borrowed);
        put_micro(t, " want ", row->want);
        put(t, row->idle ? " idle" : " busy");
    }
}

static void on_toll(void *ctx, const ration_counter_report *report)
{
    tenants *const t = ctx;

    for (size_t i = 0; i < report->tenant_count; i++) {
        const ration_tenant_report *const row = &report->tenants[i];

        if (!rn_text_is(row->name, t->asked_of))
            continue;
        put(t, "deficit %" PRId64, row->deficit_unit_ms);
        if (row->deficit_rest != 0)
            put(t, ".%09" PRId64, row->deficit_rest);
        put(t, " reclaims %" PRIu64, row->reclaims);
        put_ms(t, " worst ", row->worst_reclaim_us);
        put(t, " granted %" PRIu64 " refused", row->granted);
        for (int r = 0; r < RATION_REASON_COUNT; r++) {
            if (row->refused[r] > 0)
                put(t, " %s:%" PRIu64, ration_reason_name((ration_reason)r), row->refused[r]);
        }
    }
}

static void on_total(void *ctx, const ration_counter_report *report)
{
    tenants *const t = ctx;

    put_micro(t, "", report->held);
    put_micro(t, " of ", report->max);
    put_micro(t, " draining ", report->draining);
    put(t, " overrun");
    for (size_t i = 0; i < report->overrun_count; i++)
        put_name(t, report->overrun[i]);
}

static void on_targets(void *ctx, const ration_share_report *report)
{
    tenants *const t = ctx;

    for (size_t i = 0; i < report->tenant_count; i++) {
        put(t, "%s%.*s", i > 0 ? " " : "", (int)report->tenants[i].name.size, report->tenants[i].name.data);
        put_micro(t, ":", report->tenants[i].target);
    }
}

static void on_fairness(void *ctx, const ration_share_report *report)
{
    tenants *const t = ctx;

    for (size_t i = 0; i < report->tenant_count; i++) {
        const ration_tenant_report *const row = &report->tenants[i];

        put(t, "%.*s", (int)row->name.size, row->name.data);
        put_micro(t, " ", row->configured_share);
        put_micro(t, " ", row->cost_share);
        put_micro(t, " ", row->request_share);
        put_micro(t, " ", row->cost_skew);
        put_micro(t, " ", row->request_skew);
        put(t, "; ");
    }
    put(t, report->units_disagree ? "disagree" : "agree");
}

/* ---- calls ---- */

static void acquire(tenants *t, ration_time now, const char *name, const char *tenant, const char *cost,
                    const char *hold)
{
    int64_t cost_micro = 0;
    int64_t hold_us = RATION_UNSET;

    if (rn_parse_micro(ration_text_of(cost), &cost_micro) != RATION_OK ||
        (strcmp(hold, "-") != 0 && rn_parse_ms(ration_text_of(hold), &hold_us) != RATION_OK))
        abort();
    t->err = ration_ceiling_acquire(t->ceiling, now, ration_text_of(tenant), cost_micro, hold_us, &t->last);
    if (t->err != RATION_OK) {
        put(t, "error %d", t->err);
        return;
    }
    if (t->last.result == RATION_GRANTED) {
        if (t->count == TENANTS_LEASES)
            abort();
        (void)snprintf(t->leases[t->count].name, sizeof t->leases[0].name, "%s", name);
        t->leases[t->count].lease = t->last.lease;
        t->leases[t->count++].serial = t->last.serial;
        put(t, "granted");
        return;
    }
    put(t, "%s", ration_reason_name(t->last.reason));
    if (t->last.retry_at.us == RATION_NEVER_US) {
        put(t, " -");
    } else {
        put_ms(t, " ", t->last.retry_at.us - t->last.at.us);
    }
    for (size_t i = 0; i < t->last.blocking_count; i++)
        put_blocking(t, t->last.blocking[i]);
}

static void release(tenants *t, ration_time now, const char *name)
{
    for (size_t i = t->count; i-- > 0;) {
        if (strcmp(t->leases[i].name, name) == 0) {
            t->err = ration_ceiling_release(t->ceiling, now, t->leases[i].lease);
            put(t, t->err == RATION_OK ? "released" : "unknown");
            return;
        }
    }
    abort();
}

static void report(tenants *t, ration_time now, const char *what, const char *tenant)
{
    const ration_reporter shares = {.ctx = t, .share = strcmp(what, "targets") == 0 ? on_targets : on_fairness};
    ration_reporter stats = {.ctx = t, .counter = on_total};

    t->asked_of = tenant;
    if (strcmp(what, "state") == 0)
        stats.counter = on_state;
    if (strcmp(what, "toll") == 0)
        stats.counter = on_toll;
    if (strcmp(what, "targets") == 0) {
        t->err = ration_ceiling_allocation(t->ceiling, now, &shares);
    } else if (strcmp(what, "fairness") == 0) {
        t->err = ration_ceiling_fairness(t->ceiling, now, &shares);
    } else {
        t->err = ration_ceiling_stats(t->ceiling, now, &stats);
    }
}

const char *tenants_call(tenants *t, int64_t at_us, const char *call)
{
    char words[5][32] = {"", "", "", "", ""};
    const ration_time now = ration_time_of(at_us);

    (void)sscanf(call, "%31s %31s %31s %31s %31s", words[0], words[1], words[2], words[3], words[4]);
    t->text[0] = '\0';
    if (strcmp(words[0], "acquire") == 0) {
        acquire(t, now, words[1], words[2], words[3], words[4]);
    } else if (strcmp(words[0], "release") == 0) {
        release(t, now, words[1]);
    } else {
        report(t, now, words[0], words[1]);
    }
    return t->text;
}

void tenants_run(const ration_ceiling_options *options, const tenants_step *steps, size_t count)
{
    tenants t;

    tenants_init(&t, options);
    for (size_t i = 0; i < count; i++) {
        const char *const got = tenants_call(&t, steps[i].at_us, steps[i].call);

        if (strcmp(got, steps[i].want) != 0)
            print_error("row: %s (%s)\n", steps[i].why, steps[i].call);
        CHECK_STR(got, steps[i].want);
    }
    tenants_fini(&t);
}
