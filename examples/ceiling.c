/* SPDX-License-Identifier: MIT */
/*
 * One ceiling across two tenants, without an engine and without a config file.
 *
 * Globex lends its half while it is away, and has it back within the horizon: a borrower may not keep what is not its
 * own for longer, and cannot renew a loan once the lender has asked. Time is a number that the program hands over.
 *
 *     cc ceiling.c $(pkg-config --cflags --libs ration)
 */
#include <ration/ration.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MS INT64_C(1000)

static ration_ceiling *ceiling_make(void)
{
    const ration_tenant_share tenants[] = {{.name = "acme", .weight = 1}, {.name = "globex", .weight = 1}};
    ration_ceiling_options options = RATION_CEILING_OPTIONS_INIT;
    ration_ceiling *ceiling = NULL;
    ration_fault fault = {.path = ""};

    options.rule.ceiling = 100 * RATION_UNIT;
    options.rule.tenants = tenants;
    options.rule.tenant_count = sizeof tenants / sizeof tenants[0];
    options.rule.reclaim_horizon_us = 100 * MS;
    options.rule.idle_after_us = 200 * MS;
    options.counts = RATION_COUNTS_COST;
    options.started_at = ration_time_of(-1000 * MS);
    if (ration_ceiling_new(&options, &ceiling, &fault) != RATION_OK) {
        (void)fprintf(stderr, "%s: %s\n", fault.path, fault.text);
        exit(EXIT_FAILURE);
    }
    return ceiling;
}

/* Ask for half of the ceiling and say what came of it. */
static ration_lease ask(ration_ceiling *ceiling, int64_t at_ms, const char *tenant, int64_t hold_ms)
{
    char why[512];
    ration_decision decision;
    const int err = ration_ceiling_acquire(ceiling, ration_time_of(at_ms * MS), ration_text_of(tenant),
                                           50 * RATION_UNIT, hold_ms * MS, &decision);

    if (err != RATION_OK) {
        (void)fprintf(stderr, "%s\n", ration_err_text(err));
        exit(EXIT_FAILURE);
    }
    (void)ration_decision_explain(&decision, why, sizeof why);
    (void)printf("%4" PRId64 " ms  %-6s  %s%s\n", at_ms, tenant,
                 decision.result == RATION_GRANTED ? "granted" : ration_reason_name(decision.reason),
                 decision.blocking_count > 0 ? ", there is a lease in the way" : "");
    if (why[0] != '\0')
        (void)printf("         %s\n", why);
    return decision.lease;
}

static void give_back(ration_ceiling *ceiling, int64_t at_ms, ration_lease lease)
{
    if (ration_ceiling_release(ceiling, ration_time_of(at_ms * MS), lease) != RATION_OK)
        exit(EXIT_FAILURE);
}

static void print_counter(void *ctx, const ration_counter_report *report)
{
    (void)ctx;
    for (size_t i = 0; i < report->tenant_count; i++) {
        const ration_tenant_report *const tenant = &report->tenants[i];

        (void)printf("%.*s: short of its guarantee by %" PRId64 " unit-ms, worst wait for it %" PRId64 " ms\n",
                     (int)tenant->name.size, tenant->name.data, tenant->deficit_unit_ms, tenant->worst_reclaim_us / MS);
    }
}

int main(void)
{
    const ration_reporter reporter = {.counter = print_counter};
    ration_ceiling *ceiling = ceiling_make();
    ration_lease loan;

    (void)ask(ceiling, 0, "acme", 1000); /* its own half, for as long as it likes */
    (void)ask(ceiling, 0, "acme", 1000); /* the other half is not its own */
    loan = ask(ceiling, 0, "acme", 100); /* but may be borrowed for the horizon */
    (void)ask(ceiling, 10, "globex", 50);
    give_back(ceiling, 100, loan);
    (void)ask(ceiling, 100, "acme", 100); /* first to move, and yet too late: globex has asked */
    (void)ask(ceiling, 100, "globex", 50);

    const int err = ration_ceiling_stats(ceiling, ration_time_of(100 * MS), &reporter);

    ration_ceiling_free(ceiling);
    return err == RATION_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
