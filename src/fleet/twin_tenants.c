/* SPDX-License-Identifier: MIT */
/*
 * What engine and fleet tell of a share limit's tenants.
 *
 * Compared as text, so that a difference can be read. A counter that the store does not know must be one at which
 * nothing has happened.
 */
#include "fleet/twin_tenants.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "fleet/answer_share.h"

#define ROW_SIZE 640

static const char *describe(const ration_tenant_report *tenant, char *buffer)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {" guarantee ", tenant->guarantee},
        {" held ", tenant->held},
        {" own ", tenant->own},
        {" lent ", tenant->lent},
        {" borrowed ", tenant->borrowed},
        {" want ", tenant->want},
        {" idle ", tenant->idle},
        {" waiting ", (int64_t)tenant->waiting},
        {" deficit ", tenant->deficit_unit_ms},
        {" rest ", tenant->deficit_rest},
        {" reclaims ", (int64_t)tenant->reclaims},
        {" worst ", tenant->worst_reclaim_us},
        {" granted ", (int64_t)tenant->granted},
        {" cost ", tenant->granted_cost},
    };
    rn_builder b;

    rn_builder_init(&b, buffer, ROW_SIZE);
    rn_builder_text(&b, tenant->name);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        rn_builder_str(&b, numbers[i].name);
        rn_builder_int(&b, numbers[i].value);
    }
    for (unsigned i = 0; i < RATION_REASON_COUNT; i++) {
        if (tenant->refused[i] == 0)
            continue;
        rn_builder_char(&b, ' ');
        rn_builder_str(&b, ration_reason_name((ration_reason)i));
        rn_builder_char(&b, ' ');
        rn_builder_int(&b, (int64_t)tenant->refused[i]);
    }
    return buffer;
}

static void compare_tenant(rn_twin_comparison *c, const ration_counter_report *core, size_t index)
{
    char said[ROW_SIZE];
    char told[ROW_SIZE] = "no such tenant";
    ration_tenant_report tenant;
    int64_t weight;

    (*c->compared)++;
    if (rn_answer_tenant(c->fleet->reply, index, &tenant, &weight))
        (void)describe(&tenant, told);
    if (strcmp(describe(&core->tenants[index], said), told) != 0)
        rn_twin_differ(c, said, told);
}

static void compare_whole(rn_twin_comparison *c, const ration_counter_report *core, const rn_answer_share *store)
{
    char said[ROW_SIZE];
    char told[ROW_SIZE];
    const long long numbers[] = {core->max, core->held, core->draining, (long long)core->overrun_count};
    const long long theirs[] = {store->size, store->held, store->draining, (long long)store->overrun_count};
    static const char format[] = "%s size %lld held %lld draining %lld overrun %lld";

    (void)snprintf(said, sizeof said, format, core->limit, numbers[0], numbers[1], numbers[2], numbers[3]);
    (void)snprintf(told, sizeof told, format, core->limit, theirs[0], theirs[1], theirs[2], theirs[3]);
    if (strcmp(said, told) != 0)
        rn_twin_differ(c, said, told);
    for (size_t i = 0; c->err == RATION_OK && i < core->tenant_count; i++)
        compare_tenant(c, core, i);
}

static bool nothing_happened(const ration_counter_report *core)
{
    for (size_t i = 0; i < core->tenant_count; i++) {
        if (core->tenants[i].granted > 0 || core->tenants[i].want > 0)
            return false;
    }
    return true;
}

/* The limit may be one that an account has of its own: its key tells the account, so no other has it. */
static int ask(const rn_twin_comparison *c, const ration_counter_name *name)
{
    const rn_book *const book = &c->fleet->rules.book;
    int err = rn_fleet_tenants(c->fleet, c->now, name, (ration_text){NULL, 0});

    for (size_t i = 0; i < book->account_count && err == RATION_ERR_UNKNOWN; i++)
        err = rn_fleet_tenants(c->fleet, c->now, name, book->accounts[i].name);
    return err;
}

void rn_twin_tenants(rn_twin_comparison *c, const ration_counter_name *name, const ration_counter_report *core)
{
    rn_answer_share store;
    const int err = ask(c, name);

    if (err == RATION_ERR_UNKNOWN && nothing_happened(core))
        return;
    if (err == RATION_OK && rn_answer_ceiling(c->fleet->reply, &store)) {
        compare_whole(c, core, &store);
    } else if (err == RATION_OK || err == RATION_ERR_UNKNOWN) {
        rn_twin_differ(c, core->limit, "no such counter");
    } else {
        c->err = err;
    }
}
