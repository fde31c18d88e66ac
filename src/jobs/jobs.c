/* SPDX-License-Identifier: MIT */
/*
 * The jobs of a config, what their runs have taught, and when the next one is due.
 *
 * What a job uses of which limit is found once, when the config is read; a plan then only needs to know how the quotas
 * stand. Inventories are shared: all jobs that name one have as many children.
 *
 * A run that does not say how many children it had is taken to have had as many as the job has now, so that what is
 * learned of one child stays right when the inventory grows.
 *
 * Invariants: runs[0 .. run_count) are the last ones, the oldest first; `effective_us` is RATION_UNSET until there is a
 * plan, and is that of `plan` ever after.
 */
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "jobs/parts.h"

#define CHILDREN_MAX INT64_C(1000000000) /* as in the config */

static rn_job_state *state_of(rn_map_node *node)
{
    return (rn_job_state *)(void *)node;
}

static rn_inventory *inventory_of(rn_map_node *node)
{
    return (rn_inventory *)(void *)node;
}

/* The inventory that the job names; a new one for the first that does. */
static int inventory_join(rn_jobs *jobs, size_t index)
{
    rn_job_state *state = &jobs->jobs[index];
    const char *name = state->job->fan_out;
    const size_t size = name != NULL ? strlen(name) : 0;
    rn_map_node *node = name != NULL ? rn_map_find(&jobs->inventories, name, size) : NULL;
    rn_inventory *inventory = node != NULL ? inventory_of(node) : NULL;

    state->next = SIZE_MAX;
    if (name == NULL)
        return RATION_OK;
    if (inventory == NULL) {
        inventory = rn_arena_zalloc(&jobs->arena, 1, sizeof *inventory);
        if (inventory == NULL || rn_map_add(&jobs->inventories, &inventory->node, name, size) != RATION_OK)
            return RATION_ERR_NOMEM;
        inventory->first = SIZE_MAX;
    }
    state->inventory = inventory;
    state->next = inventory->first;
    inventory->first = index;
    return RATION_OK;
}

/* What a job calls: a list for each, in the arena. */
typedef struct call_list {
    rn_plan_call *calls;
    size_t count;
} call_list;

/* As the job's calls will ask. */
static int job_ask(rn_jobs *jobs, const rn_job *job, rn_plan_call *out, size_t *count)
{
    ration_request request = RATION_REQUEST_INIT;

    request.method = ration_text_of(job->method);
    request.path = ration_text_of(job->path);
    request.tenant = ration_text_of(job->tenant);
    request.cost = job->cost;
    return rn_plan_keys_of(&jobs->keys, job->account, &request, out, count);
}

static int calls_find(rn_jobs *jobs, rn_arena *work, call_list *lists)
{
    rn_plan_call *calls = rn_arena_zalloc(work, jobs->keys.limits_max, sizeof *calls);

    for (size_t i = 0; calls != NULL && i < jobs->count; i++) {
        call_list *list = &lists[i];
        const int err = job_ask(jobs, jobs->jobs[i].job, calls, &list->count);

        if (err != RATION_OK)
            return err;
        list->calls = rn_arena_zalloc(work, list->count, sizeof *list->calls);
        if (list->calls == NULL)
            return RATION_ERR_NOMEM;
        if (list->count > 0)
            memcpy(list->calls, calls, list->count * sizeof *calls);
    }
    return calls != NULL ? rn_plan_keys_close(&jobs->keys) : RATION_ERR_NOMEM;
}

static bool is_scope(const rn_plan_key *key)
{
    return key->limit->rule->kind == RATION_KIND_QUOTA;
}

/* So many uses of scopes, with those of narrower keys. */
static size_t uses_count(const call_list *list)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        const rn_narrower *narrower;

        if (!is_scope(list->calls[i].key))
            continue;
        count++;
        SLIST_FOREACH (narrower, &list->calls[i].key->narrower, next)
            count++;
    }
    return count;
}

static ration_plan_use use_of(const rn_plan_call *call, const rn_plan_key *key)
{
    return (ration_plan_use){.limit = key->place, .charge = call->charge, .children = call->apart ? 1 : 0};
}

static int uses_make(rn_jobs *jobs, rn_job_state *state, const call_list *list, size_t *total)
{
    const size_t count = uses_count(list);

    *total += count;
    jobs->too_many = jobs->too_many || *total > RATION_PLAN_USES_MAX;
    if (jobs->too_many)
        return RATION_OK;
    state->scopes = rn_arena_zalloc(&jobs->arena, count, sizeof *state->scopes);
    state->rates = rn_arena_zalloc(&jobs->arena, list->count, sizeof *state->rates);
    if (state->scopes == NULL || state->rates == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < list->count; i++) {
        const rn_plan_call *call = &list->calls[i];
        const rn_narrower *narrower;

        if (!is_scope(call->key)) {
            state->rates[state->rate_count++] = use_of(call, call->key);
            continue;
        }
        state->scopes[state->scope_count++] = use_of(call, call->key);
        SLIST_FOREACH (narrower, &call->key->narrower, next)
            state->scopes[state->scope_count++] = use_of(call, narrower->key);
    }
    return RATION_OK;
}

static int jobs_fill(rn_jobs *jobs, rn_arena *work)
{
    call_list *lists = rn_arena_zalloc(work, jobs->count, sizeof *lists);
    size_t total = 0;
    int err = RATION_OK;

    jobs->jobs = rn_arena_zalloc(&jobs->arena, jobs->count, sizeof *jobs->jobs);
    if (lists == NULL || jobs->jobs == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < jobs->count && err == RATION_OK; i++) {
        rn_job_state *state = &jobs->jobs[i];

        state->job = rn_config_job(jobs->config, i);
        state->effective_us = RATION_UNSET;
        err = rn_map_add(&jobs->by_name, &state->node, state->job->name, strlen(state->job->name));
        if (err == RATION_OK)
            err = inventory_join(jobs, i);
    }
    if (err == RATION_OK)
        err = calls_find(jobs, work, lists);
    for (size_t i = 0; i < jobs->count && err == RATION_OK; i++)
        err = uses_make(jobs, &jobs->jobs[i], &lists[i], &total);
    return err;
}

int rn_jobs_new(const ration_config *config, rn_jobs **out)
{
    const ration_allocator *mem = rn_config_allocator(config);
    rn_jobs *jobs = rn_mem_zalloc(mem, 1, sizeof *jobs);
    rn_arena work;

    if (jobs == NULL)
        return RATION_ERR_NOMEM;
    jobs->mem = mem;
    jobs->config = config;
    rn_arena_init(&jobs->arena, mem);
    rn_map_init(&jobs->by_name, mem);
    rn_map_init(&jobs->inventories, mem);
    while (rn_config_job(config, jobs->count) != NULL)
        jobs->count++;
    rn_arena_init(&work, mem);

    int err = rn_plan_keys_init(&jobs->keys, mem, ration_config_rules(config));

    if (err == RATION_OK)
        err = jobs_fill(jobs, &work);
    rn_arena_fini(&work);
    if (err == RATION_OK) {
        *out = jobs;
    } else {
        rn_jobs_free(jobs);
    }
    return err;
}

void rn_jobs_free(rn_jobs *jobs)
{
    if (jobs == NULL)
        return;
    ration_plan_free(jobs->plan);
    rn_plan_keys_fini(&jobs->keys);
    rn_map_fini(&jobs->by_name);
    rn_map_fini(&jobs->inventories);
    rn_arena_fini(&jobs->arena);
    rn_mem_free(jobs->mem, jobs);
}

size_t rn_jobs_count(const rn_jobs *jobs)
{
    return jobs->count;
}

const rn_job *rn_jobs_at(const rn_jobs *jobs, size_t index)
{
    return index < jobs->count ? jobs->jobs[index].job : NULL;
}

size_t rn_jobs_find(const rn_jobs *jobs, ration_text name)
{
    rn_map_node *node = name.data != NULL ? rn_map_find(&jobs->by_name, name.data, name.size) : NULL;

    return node != NULL ? (size_t)(state_of(node) - jobs->jobs) : SIZE_MAX;
}

size_t rn_jobs_runs(const rn_jobs *jobs, size_t index, const ration_run **out)
{
    if (index >= jobs->count)
        return 0;
    *out = jobs->jobs[index].runs;
    return jobs->jobs[index].run_count;
}

int64_t rn_job_children(const rn_job_state *job)
{
    if (job->inventory == NULL)
        return 1;
    return job->inventory->known ? job->inventory->children : job->job->fan_out_estimate;
}

static bool is_count(int64_t n)
{
    return n >= 0 && n <= RATION_UNITS_MAX / RATION_UNIT;
}

/* True if the jobs' children are not as before. */
static bool inventory_set(const rn_jobs *jobs, rn_inventory *inventory, int64_t children)
{
    bool changed = false;

    for (size_t i = inventory->first; i != SIZE_MAX; i = jobs->jobs[i].next)
        changed = changed || rn_job_children(&jobs->jobs[i]) != children;
    inventory->known = true;
    inventory->children = children;
    return changed;
}

int rn_jobs_ran(rn_jobs *jobs, size_t index, const ration_run *run, bool *replan)
{
    bool changed = false;

    if (index >= jobs->count || !is_count(run->requests) || !is_count(run->retries) || run->fan_out < 0 ||
        run->fan_out > CHILDREN_MAX)
        return RATION_ERR_INVALID;

    rn_job_state *state = &jobs->jobs[index];
    ration_run kept = *run;

    if (state->inventory == NULL || run->fan_out == 0)
        kept.fan_out = rn_max(rn_job_children(state), 1);
    if (state->inventory != NULL && run->fan_out > 0)
        changed = inventory_set(jobs, state->inventory, run->fan_out);
    if (state->run_count == RATION_RUNS_MAX) {
        memmove(state->runs, state->runs + 1, (RATION_RUNS_MAX - 1) * sizeof *state->runs);
        state->run_count--;
    }
    state->runs[state->run_count++] = kept;
    if (replan != NULL)
        *replan = changed;
    return RATION_OK;
}

int rn_jobs_inventory(rn_jobs *jobs, ration_text name, int64_t children)
{
    rn_map_node *node = name.data != NULL ? rn_map_find(&jobs->inventories, name.data, name.size) : NULL;

    if (children < 0 || children > CHILDREN_MAX)
        return RATION_ERR_INVALID;
    if (node == NULL)
        return RATION_ERR_UNKNOWN;
    (void)inventory_set(jobs, inventory_of(node), children);
    return RATION_OK;
}

bool rn_jobs_are_same(const rn_jobs *a, size_t i, const rn_jobs *b, size_t k)
{
    const rn_job *x = rn_jobs_at(a, i);
    const rn_job *y = rn_jobs_at(b, k);

    if (x == NULL || y == NULL || strcmp(x->name, y->name) != 0)
        return false;

    const char *account = rn_config_account(a->config, x->account)->name;
    const char *other = rn_config_account(b->config, y->account)->name;

    return strcmp(account, other) == 0 && strcmp(x->method, y->method) == 0 && strcmp(x->path, y->path) == 0;
}

/* A run of another account or path tells nothing. */
void rn_jobs_adopt(rn_jobs *jobs, const rn_jobs *from)
{
    for (rn_map_node *node = rn_map_first(&jobs->inventories); node != NULL; node = rn_map_next(node)) {
        rn_inventory *inventory = inventory_of(node);
        const char *name = jobs->jobs[inventory->first].job->fan_out;
        rn_map_node *old = rn_map_find(&from->inventories, name, strlen(name));

        inventory->known = old != NULL && inventory_of(old)->known;
        inventory->children = inventory->known ? inventory_of(old)->children : 0;
    }
    for (size_t i = 0; i < jobs->count; i++) {
        rn_job_state *state = &jobs->jobs[i];
        const size_t index = rn_jobs_find(from, ration_text_of(state->job->name));

        if (!rn_jobs_are_same(jobs, i, from, index))
            continue;

        const rn_job_state *old = &from->jobs[index];

        memcpy(state->runs, old->runs, sizeof state->runs);
        state->run_count = old->run_count;
        state->effective_us = old->effective_us;
        state->since = old->since;
        state->has_begun = old->has_begun;
        state->begun = old->begun;
    }
}

const ration_plan *rn_jobs_planned(const rn_jobs *jobs)
{
    return jobs->plan;
}

const rn_scope_name *rn_jobs_scope(const rn_jobs *jobs, size_t scope)
{
    return scope < jobs->keys.scope_count ? &jobs->keys.scopes[scope]->name : NULL;
}

const rn_scope_name *rn_jobs_rate(const rn_jobs *jobs, size_t rate)
{
    return rate < jobs->keys.rate_count ? &jobs->keys.rates[rate]->name : NULL;
}

ration_time rn_jobs_next_run(const rn_jobs *jobs, size_t index, ration_time now)
{
    if (index >= jobs->count)
        return ration_time_of(RATION_NEVER_US);

    const rn_job_state *state = &jobs->jobs[index];

    if (state->has_begun) {
        const int64_t every_us = state->effective_us != RATION_UNSET ? state->effective_us : state->job->interval_us;

        return rn_time_max(now, rn_time_add(state->begun, every_us));
    }
    if (state->effective_us == RATION_UNSET || state->since.us >= now.us)
        return now;

    const int64_t runs = rn_div_ceil(rn_sub(now.us, state->since.us), state->effective_us);

    return rn_time_add(state->since, rn_mul(runs, state->effective_us));
}

void rn_jobs_begins(rn_jobs *jobs, size_t index, ration_time now)
{
    if (index >= jobs->count)
        return;

    rn_job_state *state = &jobs->jobs[index];

    state->begun = state->has_begun ? rn_time_max(state->begun, now) : now;
    state->has_begun = true;
}
