/* SPDX-License-Identifier: MIT */

/*
 * The public door to a breaker by itself: a clock that never runs back, what is due before each call, and arguments
 * that are looked at. The breaker behind it is the engine's.
 *
 * Here nobody counts every instant as an engine does. What is due happens at the `now` of the call that finds it, which
 * for a breaker is no difference but to the next health check: it comes a delay after this one was seen to be due.
 */
#include <ration/circuit.h>

#include "base/mem.h"
#include "base/units.h"
#include "core/breaker.h"

struct ration_circuit {
    ration_allocator mem;
    rn_breaker_spec spec; /* lists and texts of its rule are gone after `new`: nothing looks at them */
    rn_breaker core;
    ration_time now; /* the newest seen */
};

static bool is_instant(ration_time t)
{
    return t.us >= -RATION_TIME_MAX_US && t.us <= RATION_TIME_MAX_US;
}

int ration_circuit_new(const ration_breaker_rule *rule, ration_time now, const ration_allocator *allocator,
                       ration_circuit **out, ration_fault *fault)
{
    const ration_allocator *const mem = allocator != NULL ? allocator : rn_mem_default();
    ration_fault ignored;

    if (rule == NULL || out == NULL || !is_instant(now))
        return RATION_ERR_INVALID;

    ration_circuit *const breaker = rn_mem_zalloc(mem, 1, sizeof *breaker);

    if (breaker == NULL)
        return RATION_ERR_NOMEM;
    breaker->mem = *mem;
    breaker->now = now;

    int err = rn_breaker_spec_init(&breaker->spec, rule, fault != NULL ? fault : &ignored);

    if (err == RATION_OK)
        err = rn_breaker_init(&breaker->core, &breaker->spec, &breaker->mem, now);
    if (err != RATION_OK) {
        rn_mem_free(mem, breaker);
        return err;
    }
    *out = breaker;
    return RATION_OK;
}

void ration_circuit_free(ration_circuit *breaker)
{
    if (breaker == NULL)
        return;

    const ration_allocator mem = breaker->mem;

    rn_breaker_fini(&breaker->core);
    rn_mem_free(&mem, breaker);
}

/* Does what is due up to `now`. True: a health check is. */
static bool breaker_catch_up(ration_circuit *breaker, ration_time now)
{
    rn_breaker_change change;
    bool check = false;

    breaker->now = rn_time_max(breaker->now, now);
    do {
        change = rn_breaker_advance(&breaker->core, breaker->now);
        check = check || change == RN_BREAKER_CHECK;
    } while (change != RN_BREAKER_SAME);
    return check;
}

static void breaker_tell(const ration_circuit *breaker, ration_circuit_status *out)
{
    *out = (ration_circuit_status){
        .state = breaker->core.state,
        .generation = breaker->core.generation,
        .retry_at = rn_breaker_retry_at(&breaker->core),
        .check_due = breaker->core.check_out,
        .cause = breaker->core.cause,
    };
}

bool ration_circuit_enter(ration_circuit *breaker, ration_time now, ration_circuit_pass *out,
                          ration_circuit_status *status)
{
    if (breaker == NULL || out == NULL || !is_instant(now))
        return false;
    (void)breaker_catch_up(breaker, now);

    const bool lets = rn_breaker_lets(&breaker->core);

    if (lets) {
        const rn_breaker_pass pass = rn_breaker_enter(&breaker->core, breaker->now);

        *out = (ration_circuit_pass){.generation = pass.generation, .probe = pass.probe};
    }
    if (status != NULL)
        breaker_tell(breaker, status);
    return lets;
}

static rn_breaker_pass pass_of(const ration_circuit_pass *pass)
{
    const rn_breaker_pass own = {.generation = pass->generation, .probe = pass->probe};

    return own;
}

bool ration_circuit_result(ration_circuit *breaker, ration_time now, const ration_circuit_pass *pass, bool ok)
{
    if (breaker == NULL || pass == NULL || !is_instant(now))
        return false;

    const ration_circuit_state before = breaker->core.state;
    const rn_breaker_pass own = pass_of(pass);

    (void)breaker_catch_up(breaker, now);
    (void)rn_breaker_result(&breaker->core, breaker->now, &own, ok);
    return breaker->core.state != before;
}

void ration_circuit_leave(ration_circuit *breaker, ration_time now, const ration_circuit_pass *pass)
{
    if (breaker == NULL || pass == NULL || !is_instant(now))
        return;

    const rn_breaker_pass own = pass_of(pass);

    (void)breaker_catch_up(breaker, now);
    rn_breaker_leave(&breaker->core, &own);
}

bool ration_circuit_health(ration_circuit *breaker, ration_time now, bool ok)
{
    if (breaker == NULL || !is_instant(now))
        return false;

    const ration_circuit_state before = breaker->core.state;

    (void)breaker_catch_up(breaker, now);
    (void)rn_breaker_health(&breaker->core, breaker->now, ok);
    return breaker->core.state != before;
}

ration_time ration_circuit_next_deadline(const ration_circuit *breaker)
{
    return breaker != NULL ? rn_breaker_next(&breaker->core) : ration_time_of(RATION_NEVER_US);
}

bool ration_circuit_advance(ration_circuit *breaker, ration_time now)
{
    if (breaker == NULL || !is_instant(now))
        return false;

    const ration_circuit_state before = breaker->core.state;
    const bool check = breaker_catch_up(breaker, now);

    return check || breaker->core.state != before;
}

void ration_circuit_get(ration_circuit *breaker, ration_time now, ration_circuit_status *out)
{
    if (breaker == NULL || out == NULL || !is_instant(now))
        return;
    (void)breaker_catch_up(breaker, now);
    breaker_tell(breaker, out);
}
