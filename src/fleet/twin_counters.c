/* SPDX-License-Identifier: MIT */
/*
 * What engine and fleet tell of counters: as reports have it, compared as text.
 */
#include "fleet/twin_counters.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "fleet/figures.h"
#include "fleet/twin_tenants.h"

#define ROW_SIZE 640

static const char *describe(const ration_counter_report *report, char *buffer)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {" paused ", report->paused},
        {" waiting ", (int64_t)report->waiting},
        {" available ", report->available},
        {" max ", report->max},
        {" held ", report->held},
        {" current ", report->current},
        {" usable ", report->usable},
        {" reserve ", report->reserve},
        {" used ", report->used},
        {" external ", report->external},
        {" extra ", report->extra},
        {" remaining ", report->remaining},
        {" from ", report->window_start.us},
        {" to ", report->window_end.us},
        {" rolling ", report->rolling_us},
        {" unit ", report->unit_us},
    };
    rn_builder b;

    rn_builder_init(&b, buffer, ROW_SIZE);
    rn_builder_str(&b, report->limit);
    rn_builder_char(&b, ' ');
    rn_builder_text(&b, report->key);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].value == 0)
            continue;
        rn_builder_str(&b, numbers[i].name);
        rn_builder_int(&b, numbers[i].value);
    }
    for (size_t i = 0; i < report->class_count; i++) {
        rn_builder_str(&b, " class held ");
        rn_builder_int(&b, report->classes[i].held);
        rn_builder_str(&b, " of ");
        rn_builder_int(&b, report->classes[i].reserved);
    }
    return buffer;
}

void rn_twin_differ(rn_twin_comparison *c, const char *core, const char *store)
{
    (void)snprintf(c->text, c->text_size, "core: %s; store: %s", core, store);
    c->err = RATION_ERR_INVALID;
}

static void compare_figures(rn_twin_comparison *c, const ration_counter_name *name, const ration_counter_report *core)
{
    ration_class_report classes[RN_CLASSES_MAX];
    char said[ROW_SIZE];
    char told[ROW_SIZE] = "nothing";
    ration_counter_report store;
    rn_call_counter at;
    rn_figures figures;

    c->err = rn_fleet_rules_counter(&c->fleet->rules, name, &at);
    if (c->err == RATION_OK)
        c->err = rn_fleet_inspect(c->fleet, c->now, &(rn_call_inspection){.counters = &at, .count = 1});
    if (c->err != RATION_OK)
        return;
    if (rn_figures_read(c->fleet->reply, 0, at.counter.limit, &figures)) {
        rn_figures_report(&figures, at.counter.limit, core->key, classes, &store);
        (void)describe(&store, told);
    }
    (*c->compared)++;
    if (strcmp(describe(core, said), told) != 0)
        rn_twin_differ(c, said, told);
}

static void compare_counter(void *ctx, const ration_counter_report *core)
{
    rn_twin_comparison *const c = ctx;
    const ration_counter_name name = {
        .provider = ration_text_of(core->provider),
        .limit = ration_text_of(core->limit),
        .key = core->key,
    };

    if (c->err != RATION_OK)
        return;
    if (core->kind == RATION_KIND_SHARE) {
        rn_twin_tenants(c, &name, core);
    } else {
        compare_figures(c, &name, core);
    }
}

int rn_twin_counters(rn_twin_comparison *c, rn_decider *engine)
{
    const ration_reporter reporter = {.ctx = c, .counter = compare_counter};
    const int err = engine->ops->report(engine, c->now, RATION_REPORT_STATS, &reporter);

    return err == RATION_OK ? c->err : err;
}
