/* SPDX-License-Identifier: MIT */

/*
 * The public door to an adaptive limit by itself: an engine with this one limit, for one account.
 *
 * So requests may wait in order, leases that are not renewed are taken back, and what happens comes out as events, by
 * the code that a gateway runs. Two things differ. A throttled call means what the limit makes of it and nothing else:
 * the status that stands for it here is none that penalizes, so there is no pause unless the rule asks for one. And a
 * pause ends when the caller says, however late.
 */
#include <ration/adaptive.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/engine.h"

#define THROTTLED 429
#define NO_STATUS 999 /* none is ever observed */

struct ration_adaptive {
    ration_allocator mem;
    ration_engine *engine;
    rn_aimd_spec spec;
};

static int engine_make(const ration_adaptive_rule *rule, ration_time now, const ration_allocator *mem,
                       ration_engine **out)
{
    static const int none[] = {NO_STATUS};
    static const int throttled[] = {THROTTLED};
    const ration_limit_rule limit = {
        .name = "adaptive",
        .kind = RATION_KIND_ADAPTIVE,
        .counts = RATION_COUNTS_REQUESTS,
        .margin = RATION_UNSET,
        .arrival_us = RATION_UNSET,
        .adaptive = *rule,
    };
    const ration_provider_rule provider = {
        .name = "provider",
        .limits = &limit,
        .limit_count = 1,
        .errors = {.rate_limited = none,
                   .rate_limited_count = 1,
                   .throttled = throttled,
                   .throttled_count = 1,
                   .max_penalty_us = RATION_TIME_MAX_US},
        .defaults = {.hold_us = RATION_UNSET},
    };
    const ration_account_rule account = {.name = "account", .provider = "provider"};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules, .allocator = mem};

    return ration_engine_new(&options, now, out, NULL);
}

int ration_adaptive_new(const ration_adaptive_rule *rule, ration_time now, const ration_allocator *allocator,
                        ration_adaptive **out, ration_fault *fault)
{
    const ration_allocator *const mem = allocator != NULL ? allocator : rn_mem_default();
    ration_fault ignored;
    rn_aimd_spec spec;

    if (rule == NULL || out == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;

    int err = rn_aimd_spec_init(&spec, rule, fault != NULL ? fault : &ignored);

    if (err != RATION_OK)
        return err;

    ration_adaptive *const adaptive = rn_mem_zalloc(mem, 1, sizeof *adaptive);

    if (adaptive == NULL)
        return RATION_ERR_NOMEM;
    adaptive->mem = *mem;
    adaptive->spec = spec;
    err = engine_make(rule, now, mem, &adaptive->engine);
    if (err != RATION_OK) {
        rn_mem_free(mem, adaptive);
        return err;
    }
    *out = adaptive;
    return RATION_OK;
}

void ration_adaptive_free(ration_adaptive *adaptive)
{
    if (adaptive == NULL)
        return;

    const ration_allocator mem = adaptive->mem;

    ration_engine_free(adaptive->engine);
    rn_mem_free(&mem, adaptive);
}

int ration_adaptive_acquire(ration_adaptive *adaptive, ration_time now, const ration_adaptive_request *request,
                            ration_decision *out)
{
    if (adaptive == NULL || request == NULL)
        return RATION_ERR_INVALID;

    ration_request asked = RATION_REQUEST_INIT;

    asked.account = ration_text_of("account");
    asked.class_name = request->class_name;
    asked.priority = request->priority;
    asked.wait_us = request->wait_us;
    asked.hold_us = request->hold_us;
    asked.user = request->user;
    asked.ttl_us = request->ttl_us != RATION_UNSET ? request->ttl_us : adaptive->spec.lease_ttl_us;
    return ration_engine_submit(adaptive->engine, now, &asked, out);
}

/* A throttled call is a response to the engine: only a response can say when to come back. */
static int throttle(ration_engine *engine, ration_time now, ration_lease lease, ration_time retry_at)
{
    const ration_time from = rn_time_max(now, engine->now);
    char wait[32];
    rn_builder value;
    ration_header header = {.name = ration_text_of("retry-after-ms")};
    ration_response response = {.status = THROTTLED};

    rn_builder_init(&value, wait, sizeof wait);
    if (rn_time_known(retry_at) && rn_time_before(from, retry_at)) {
        rn_builder_ms(&value, rn_sub(retry_at.us, from.us));
        header.value = (ration_text){wait, value.used};
        response.headers = &header;
        response.header_count = 1;
    }
    return ration_engine_observe(engine, now, lease, &response);
}

int ration_adaptive_release(ration_adaptive *adaptive, ration_time now, ration_lease lease, ration_outcome outcome,
                            ration_time retry_at)
{
    const ration_completion completion = {.outcome = outcome, .cost = RATION_UNSET};

    if (adaptive == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;
    if (outcome == RATION_OUTCOME_THROTTLED) {
        const int err = throttle(adaptive->engine, now, lease, retry_at);

        if (err != RATION_OK)
            return err;
    }
    return ration_engine_release(adaptive->engine, now, lease, &completion);
}

int ration_adaptive_renew(ration_adaptive *adaptive, ration_time now, ration_lease lease)
{
    return adaptive != NULL ? ration_engine_renew(adaptive->engine, now, lease) : RATION_ERR_INVALID;
}

int ration_adaptive_cancel(ration_adaptive *adaptive, ration_time now, ration_lease lease)
{
    return adaptive != NULL ? ration_engine_cancel(adaptive->engine, now, lease) : RATION_ERR_INVALID;
}

ration_time ration_adaptive_next_deadline(const ration_adaptive *adaptive)
{
    return ration_engine_next_deadline(adaptive != NULL ? adaptive->engine : NULL);
}

int ration_adaptive_advance(ration_adaptive *adaptive, ration_time now)
{
    return adaptive != NULL ? ration_engine_advance(adaptive->engine, now) : RATION_ERR_INVALID;
}

bool ration_adaptive_next_event(ration_adaptive *adaptive, ration_event *out)
{
    return adaptive != NULL && ration_engine_next_event(adaptive->engine, out);
}

/* The one counter; NULL before anybody has asked. */
static const rn_adaptive *state_of(const ration_adaptive *adaptive)
{
    const rn_counter *const counter = TAILQ_FIRST(&adaptive->engine->world->book.providers[0].limits[0]->counters);

    return counter != NULL ? counter->u.adaptive : NULL;
}

int64_t ration_adaptive_limit(const ration_adaptive *adaptive)
{
    if (adaptive == NULL)
        return 0;

    const rn_adaptive *const state = state_of(adaptive);

    return state != NULL ? state->aimd.limit : adaptive->spec.initial;
}

int64_t ration_adaptive_held(const ration_adaptive *adaptive)
{
    const rn_adaptive *const state = adaptive != NULL ? state_of(adaptive) : NULL;

    return state != NULL ? state->held->total / RATION_UNIT : 0;
}
