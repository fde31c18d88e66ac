/* SPDX-License-Identifier: MIT */

/*
 * What outlives the process: records out of an engine, and back into the next one.
 *
 * Whatever changes a counter so that it should be kept puts it into a list; a save goes through that list alone, so it
 * costs what has changed. What was kept comes back before the first request, but counters and circuits are made when
 * somebody asks for them: until then a record waits under their name. A limit that some account replaces may be reached
 * by either of two limits, and is kept for both; a key leads to one of them only.
 *
 * Invariant: a record that waits is in its ranges, so giving it to a counter cannot fail.
 */

#include "core/engine.h"

#include <string.h>

#include "base/mem.h"

/* Records that wait for one name. */
typedef struct kept_entry {
    rn_map_node node;
    bool has_penalty;
    bool paused;
    bool has_state; /* of its kind, or of the circuit */
    ration_record penalty;
    ration_record state;
    ration_part *parts;
    size_t name_size;
    char name[];
} kept_entry;

void rn_kept_init(rn_kept *kept, const ration_allocator *mem)
{
    *kept = (rn_kept){.mem = mem};
    rn_map_init(&kept->counters, mem);
    rn_map_init(&kept->circuits, mem);
}

static void entry_free(rn_kept *kept, rn_map *map, kept_entry *entry)
{
    rn_map_remove(map, &entry->node);
    rn_mem_free(kept->mem, entry->parts);
    rn_mem_free(kept->mem, entry);
}

static void map_empty(rn_kept *kept, rn_map *map)
{
    rn_map_node *node;

    while ((node = rn_map_first(map)) != NULL)
        entry_free(kept, map, (kept_entry *)(void *)node);
    rn_map_fini(map);
}

void rn_kept_fini(rn_kept *kept)
{
    map_empty(kept, &kept->counters);
    map_empty(kept, &kept->circuits);
}

static kept_entry *entry_make(rn_kept *kept, rn_map *map, ration_text name)
{
    kept_entry *entry = (kept_entry *)(void *)rn_map_find(map, name.data, name.size);

    if (entry != NULL)
        return entry;
    entry = rn_mem_zalloc(kept->mem, 1, sizeof *entry + name.size);
    if (entry == NULL)
        return NULL;
    entry->name_size = name.size;
    memcpy(entry->name, name.data, name.size);
    if (rn_map_add(map, &entry->node, entry->name, entry->name_size) != RATION_OK) {
        rn_mem_free(kept->mem, entry);
        return NULL;
    }
    return entry;
}

int rn_kept_put(rn_kept *kept, rn_map *map, ration_text name, const ration_record *record)
{
    const ration_quota_record *quota = record->type == RATION_RECORD_QUOTA ? &record->u.quota : NULL;
    const size_t count = quota == NULL ? 0 : quota->part_count + quota->timeline_count;
    kept_entry *entry = entry_make(kept, map, name);

    if (entry == NULL)
        return RATION_ERR_NOMEM;
    if (record->type == RATION_RECORD_PAUSE) {
        entry->paused = record->u.paused;
        return RATION_OK;
    }
    if (record->type == RATION_RECORD_PENALTY) {
        entry->penalty = *record;
        entry->has_penalty = true;
        return RATION_OK;
    }

    ration_part *parts = count > 0 ? rn_mem_alloc(kept->mem, count * sizeof *parts) : NULL;

    if (count > 0 && parts == NULL)
        return RATION_ERR_NOMEM;
    rn_mem_free(kept->mem, entry->parts);
    entry->parts = parts;
    entry->state = *record;
    entry->has_state = true;
    if (quota == NULL || parts == NULL)
        return RATION_OK;
    if (quota->part_count > 0)
        memcpy(parts, quota->parts, quota->part_count * sizeof *parts);
    if (quota->timeline_count > 0)
        memcpy(parts + quota->part_count, quota->timeline, quota->timeline_count * sizeof *parts);
    entry->state.u.quota.parts = parts;
    entry->state.u.quota.timeline = parts + quota->part_count;
    return RATION_OK;
}

/* One entry under another number. */
static int entry_copy(rn_kept *kept, rn_map *map, const kept_entry *entry, uint32_t number)
{
    const ration_record paused = {.type = RATION_RECORD_PAUSE, .u.paused = true};
    char name[8192];
    const ration_text named = {name, entry->name_size};
    int err = RATION_OK;

    if (entry->name_size > sizeof name)
        return RATION_OK;
    memcpy(name, entry->name, entry->name_size);
    memcpy(name, &number, sizeof number);
    if (entry->has_penalty)
        err = rn_kept_put(kept, map, named, &entry->penalty);
    if (err == RATION_OK && entry->has_state)
        err = rn_kept_put(kept, map, named, &entry->state);
    return err == RATION_OK && entry->paused ? rn_kept_put(kept, map, named, &paused) : err;
}

static int map_copy(rn_kept *kept, bool circuits, const rn_kept *from,
                    bool (*number)(void *ctx, bool circuits, uint32_t was, ration_text key, uint32_t *out), void *ctx)
{
    const rn_map *map = circuits ? &from->circuits : &from->counters;
    int err = RATION_OK;

    for (rn_map_node *node = rn_map_first(map); node != NULL && err == RATION_OK; node = rn_map_next(node)) {
        const kept_entry *entry = (const kept_entry *)(const void *)node;
        const ration_text key = {entry->name + sizeof(uint32_t), entry->name_size - sizeof(uint32_t)};
        uint32_t was;
        uint32_t now;

        memcpy(&was, entry->name, sizeof was);
        if (number(ctx, circuits, was, key, &now))
            err = entry_copy(kept, circuits ? &kept->circuits : &kept->counters, entry, now);
    }
    return err;
}

int rn_kept_copy(rn_kept *kept, const rn_kept *from,
                 bool (*number)(void *ctx, bool circuits, uint32_t was, ration_text key, uint32_t *out), void *ctx)
{
    const int err = map_copy(kept, false, from, number, ctx);

    return err == RATION_OK ? map_copy(kept, true, from, number, ctx) : err;
}

void rn_penalty_save(const rn_penalty *penalty, ration_record *out)
{
    out->type = RATION_RECORD_PENALTY;
    out->u.penalty = (ration_penalty_record){penalty->began, penalty->until, penalty->doublings, penalty->events};
}

void rn_penalty_load(rn_penalty *penalty, const ration_record *record)
{
    const ration_penalty_record *kept = &record->u.penalty;

    *penalty = (rn_penalty){
        .any = true, .began = kept->began, .until = kept->until, .doublings = kept->doublings, .events = kept->events};
}

/* A record of a kind that the limit no longer has is of no use. */
static bool is_of_kind(ration_record_type type, ration_kind kind)
{
    return (type == RATION_RECORD_QUOTA && kind == RATION_KIND_QUOTA) ||
           (type == RATION_RECORD_BUCKET && kind == RATION_KIND_RATE) ||
           (type == RATION_RECORD_ADAPTIVE && kind == RATION_KIND_ADAPTIVE);
}

/* `entry` NULL: nothing was kept. */
static void counter_load(const kept_entry *entry, rn_counter *counter, ration_time now)
{
    const rn_kind *kind = counter->limit->kind;

    if (entry != NULL && entry->has_penalty)
        rn_penalty_load(&counter->penalty, &entry->penalty);
    if (entry != NULL)
        counter->paused = counter->was_paused = entry->paused;
    if (entry != NULL && entry->has_state && is_of_kind(entry->state.type, counter->limit->rule->kind)) {
        kind->load(counter, now, &entry->state);
    } else if (kind->lose != NULL) {
        kind->lose(counter, now);
    }
}

void rn_kept_give(rn_kept *kept, rn_counter *counter, ration_time now)
{
    kept_entry *entry = (kept_entry *)(void *)rn_map_find(&kept->counters, counter->name, counter->name_size);

    counter_load(entry, counter, now);
    if (entry != NULL)
        entry_free(kept, &kept->counters, entry);
}

ration_text rn_kept_name(const rn_map_node *node)
{
    const kept_entry *entry = (const kept_entry *)(const void *)node;

    return (ration_text){entry->name, entry->name_size};
}

void rn_kept_lend(const rn_map_node *node, rn_counter *counter, ration_time now)
{
    counter_load((const kept_entry *)(const void *)node, counter, now);
}

void rn_kept_lend_circuit(const rn_map_node *node, rn_circuit *circuit, ration_time now)
{
    const kept_entry *entry = (const kept_entry *)(const void *)node;

    if (entry->has_state)
        rn_breaker_restore(&circuit->breaker, now, &entry->state.u.breaker);
}

void rn_kept_give_circuit(rn_kept *kept, rn_circuit *circuit, ration_time now)
{
    kept_entry *entry = (kept_entry *)(void *)rn_map_find(&kept->circuits, circuit->name, circuit->name_size);

    if (entry == NULL)
        return;
    if (entry->has_state)
        rn_breaker_restore(&circuit->breaker, now, &entry->state.u.breaker);
    entry_free(kept, &kept->circuits, entry);
}

/* ---- loading ---- */

static bool is_units(int64_t units)
{
    return units >= -RATION_UNITS_MAX && units <= RATION_UNITS_MAX;
}

static bool is_end(ration_time t)
{
    return rn_time_is_valid(t) || !rn_time_known(t);
}

static bool parts_are_valid(const ration_part *parts, size_t count, ration_time at)
{
    if (parts == NULL && count > 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!rn_time_is_valid(parts[i].last) || rn_time_before(at, parts[i].last) || parts[i].units < 0 ||
            !is_units(parts[i].units) || (i > 0 && !rn_time_before(parts[i - 1].last, parts[i].last)))
            return false;
    }
    return true;
}

static bool quota_is_valid(const ration_quota_record *q, ration_time at)
{
    if (q->used < 0 || !is_units(q->used) || q->carried < 0 || !is_units(q->carried) || q->in_flight < 0 ||
        !is_units(q->in_flight) || !is_units(q->remaining) ||
        (q->max != RATION_UNSET && (q->max < 1 || !is_units(q->max))) || !is_units(q->external) || q->external < 0 ||
        !is_end(q->remaining_until) || !is_end(q->exhausted_until) || !is_end(q->dipped_at) || !is_end(q->moved_at) ||
        !rn_time_is_valid(q->window_start) || !rn_time_is_valid(q->window_end) ||
        !rn_time_is_valid(ration_time_of(q->offset_us)) ||
        (q->mark != RATION_UNSET && (q->mark < 0 || !is_units(q->mark))))
        return false;
    return parts_are_valid(q->parts, q->part_count, at) && parts_are_valid(q->timeline, q->timeline_count, at);
}

static bool adaptive_is_valid(const ration_adaptive_record *a, ration_time at)
{
    return a->limit >= 1 && a->limit <= RATION_UNITS_MAX && a->stride >= 0 && is_units(a->stride) && a->climb_to >= 0 &&
           is_units(a->climb_to) && rn_time_is_valid(a->grown_at) && !rn_time_before(at, a->grown_at) &&
           (!a->throttled || (rn_time_is_valid(a->throttled_at) && !rn_time_before(at, a->throttled_at))) &&
           (!a->decreased || (rn_time_is_valid(a->decreased_at) && !rn_time_before(at, a->decreased_at)));
}

bool rn_record_is_valid(const ration_record *r, ration_time now)
{
    const ration_text texts[] = {r->provider, r->limit, r->key};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].data == NULL && texts[i].size > 0)
            return false;
    }
    if (!rn_time_is_valid(r->at) || rn_time_before(now, r->at) || r->key.data == NULL)
        return false;
    switch (r->type) {
    case RATION_RECORD_QUOTA:
        return quota_is_valid(&r->u.quota, r->at);
    case RATION_RECORD_BUCKET:
        return is_units(r->u.available);
    case RATION_RECORD_ADAPTIVE:
        return adaptive_is_valid(&r->u.adaptive, r->at);
    case RATION_RECORD_PENALTY:
        return rn_time_is_valid(r->u.penalty.began) && rn_time_is_valid(r->u.penalty.until);
    case RATION_RECORD_BREAKER:
        return (unsigned)r->u.breaker.state <= RATION_BREAKER_HALF_OPEN && is_end(r->u.breaker.until) &&
               r->u.breaker.generation < UINT64_MAX / 2 && r->u.breaker.delay_us >= 0 &&
               r->u.breaker.delay_us <= RATION_TIME_MAX_US;
    case RATION_RECORD_PAUSE:
        return r->limit.data != NULL;
    }
    return false;
}

/* The name of a counter or circuit: a number, then the scope key. */
static int kept_named(ration_engine *engine, rn_map *map, uint32_t number, const ration_record *record)
{
    char name[8192];
    const size_t size = sizeof number + record->key.size;

    if (size > sizeof name)
        return RATION_OK; /* no key is as long */
    memcpy(name, &number, sizeof number);
    if (record->key.size > 0)
        memcpy(name + sizeof number, record->key.data, record->key.size);
    return rn_kept_put(&engine->world->routes.kept, map, (ration_text){name, size}, record);
}

/* For the limit of that name, and those of accounts that replace it. */
static int load_limit(ration_engine *engine, const rn_provider *provider, const ration_record *record, bool *known)
{
    rn_map *counters = &engine->world->routes.kept.counters;

    for (size_t i = 0; i < provider->limit_count; i++) {
        const rn_limit *limit = provider->limits[i];

        if (!rn_text_is(record->limit, limit->rule->name))
            continue;

        int err = kept_named(engine, counters, limit->uid, record);

        for (size_t k = 0; k < engine->world->book.account_count && err == RATION_OK; k++) {
            const rn_account *account = &engine->world->book.accounts[k];

            if (account->provider == provider && account->limits[i] != limit)
                err = kept_named(engine, counters, account->limits[i]->uid, record);
        }
        *known = true;
        return err;
    }
    return RATION_OK;
}

static int load_record(ration_engine *engine, const ration_record *record, bool *known)
{
    const rn_provider *provider = rn_book_provider(&engine->world->book, record->provider);

    *known = false;
    if (provider == NULL)
        return RATION_OK;
    if (record->type == RATION_RECORD_BREAKER) {
        *known = provider->circuit != NULL;
        return *known ? kept_named(engine, &engine->world->routes.kept.circuits, provider->index, record) : RATION_OK;
    }
    if (record->limit.data != NULL)
        return load_limit(engine, provider, record, known);

    rn_account *account = rn_book_account(&engine->world->book, record->key);

    *known = account != NULL && account->provider == provider && record->type == RATION_RECORD_PENALTY;
    if (*known)
        rn_penalty_load(&account->penalty, record);
    return RATION_OK;
}

static int load_all(ration_engine *engine, const ration_state *state, size_t *unknown)
{
    for (size_t i = 0; i < state->count; i++) {
        bool known;
        const int err = load_record(engine, &state->records[i], &known);

        if (err != RATION_OK)
            return err;
        *unknown += known ? 0 : 1;
    }
    return RATION_OK;
}

int ration_engine_load(ration_engine *engine, ration_time now, const ration_state *state, size_t *unknown)
{
    size_t left_out = 0;

    if (engine == NULL || state == NULL || !rn_time_is_valid(now) || (state->records == NULL && state->count > 0) ||
        engine->serial > 0)
        return RATION_ERR_INVALID;

    const ration_call call = {.op = RATION_OP_LOAD, .at = rn_clock_clamp(engine, now), .state = state};
    const bool lost_before = state->unclean_at.us != 0;

    if (!rn_time_is_valid(state->unclean_at) || rn_time_before(call.at, state->unclean_at))
        return RATION_ERR_INVALID;
    for (size_t i = 0; i < state->count; i++) {
        if (!rn_record_is_valid(&state->records[i], call.at))
            return RATION_ERR_INVALID;
    }
    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);
    engine->world->routes.unclean = state->unclean;
    if (state->unclean || lost_before)
        engine->world->routes.lost_at = state->unclean ? call.at : state->unclean_at;
    engine->world->routes.started_at = call.at;

    const int err = load_all(engine, state, &left_out);

    if (unknown != NULL)
        *unknown = left_out;
    rn_sink_answer(engine, &call, err, NULL);
    return err;
}

/* ---- saving ---- */

void rn_keep(ration_engine *engine, rn_counter *counter)
{
    if (engine->keeps && !counter->changed) {
        counter->changed = true;
        TAILQ_INSERT_TAIL(&engine->changed, counter, in_changed);
    }
    rn_strict_changed(engine, counter);
}

typedef struct saving {
    ration_engine *engine;
    ration_part *parts;
    void *ctx;
    void (*record)(void *ctx, const ration_record *record);
} saving;

static rn_counter *counter_of(rn_map_node *node)
{
    return node == NULL ? NULL : (rn_counter *)(void *)((char *)node - offsetof(rn_counter, node));
}

static size_t parts_most(size_t most, const rn_counter *counter)
{
    const size_t needed = counter->limit->rule->kind == RATION_KIND_QUOTA ? rn_quota_parts_max(counter) : 0;

    return needed > most ? needed : most;
}

/* Room for the parts of each, before the first is given out: a mark that is given out binds. */
static int parts_reserve(saving *s, bool all)
{
    ration_engine *engine = s->engine;
    const rn_counter *counter;
    size_t most = 0;

    if (all) {
        for (rn_map_node *node = rn_map_first(&engine->world->routes.counters); node != NULL; node = rn_map_next(node))
            most = parts_most(most, counter_of(node));
    }
    TAILQ_FOREACH (counter, &engine->changed, in_changed)
        most = parts_most(most, counter);
    s->parts = rn_mem_zalloc(&engine->mem, most + 1, sizeof *s->parts);
    return s->parts == NULL ? RATION_ERR_NOMEM : RATION_OK;
}

static void save_counter(const saving *s, rn_counter *counter)
{
    const rn_kind *kind = counter->limit->kind;
    ration_record record = {
        .provider = ration_text_of(counter->limit->provider),
        .limit = ration_text_of(counter->limit->rule->name),
        .key = counter->key,
        .at = s->engine->now,
    };

    if (kind->save != NULL && kind->save(counter, s->engine->now, s->parts, &record))
        s->record(s->ctx, &record);
    if (counter->penalty.any) {
        rn_penalty_save(&counter->penalty, &record);
        s->record(s->ctx, &record);
    }
    if (counter->was_paused) {
        record.type = RATION_RECORD_PAUSE;
        record.u.paused = counter->paused;
        s->record(s->ctx, &record);
    }
    if (rn_limit_is_strict(counter->limit))
        rn_strict_given(s->engine, counter);
}

static void save_account(const saving *s, const rn_account *account)
{
    ration_record record = {.provider = account->provider->name, .key = account->name, .at = s->engine->now};

    if (!account->penalty.any)
        return;
    rn_penalty_save(&account->penalty, &record);
    s->record(s->ctx, &record);
}

static void save_circuit(const saving *s, const rn_circuit *circuit)
{
    const rn_breaker *breaker = &circuit->breaker;
    const ration_record record = {
        .type = RATION_RECORD_BREAKER,
        .provider = circuit->provider->name,
        .key = circuit->key,
        .at = s->engine->now,
        .u.breaker = {breaker->state, breaker->generation, breaker->until, breaker->delay_us},
    };

    s->record(s->ctx, &record);
}

static void save_counters(const saving *s, bool all)
{
    ration_engine *engine = s->engine;
    struct rn_counter_list changed = TAILQ_HEAD_INITIALIZER(changed);
    rn_counter *counter;

    /* One that needs another save right after this one is among those that have changed again. */
    TAILQ_CONCAT(&changed, &engine->changed, in_changed);
    while ((counter = TAILQ_FIRST(&changed)) != NULL) {
        TAILQ_REMOVE(&changed, counter, in_changed);
        counter->changed = false;
        if (!all)
            save_counter(s, counter);
    }
    for (rn_map_node *node = all ? rn_map_first(&engine->world->routes.counters) : NULL; node != NULL;
         node = rn_map_next(node))
        save_counter(s, counter_of(node));
}

static void save_all(const saving *s, bool all)
{
    ration_engine *engine = s->engine;
    rn_circuit *circuit;

    save_counters(s, all);
    for (size_t i = 0; i < engine->world->book.account_count; i++) {
        rn_account *account = &engine->world->book.accounts[i];

        if (all || account->changed)
            save_account(s, account);
        account->changed = false;
    }
    TAILQ_FOREACH (circuit, &engine->world->routes.circuits.all, next) {
        if (all || circuit->changed)
            save_circuit(s, circuit);
        circuit->changed = false;
    }
}

int ration_engine_save(ration_engine *engine, ration_time now, bool all, void *ctx,
                       void (*record)(void *ctx, const ration_record *record))
{
    if (engine == NULL || record == NULL || !rn_time_is_valid(now) || !engine->keeps)
        return RATION_ERR_INVALID;

    const ration_call call = {.op = RATION_OP_SAVE, .at = rn_clock_clamp(engine, now), .all = all};
    saving s = {.engine = engine, .ctx = ctx, .record = record};

    if (engine->world->book.strict)
        rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);

    const int err = parts_reserve(&s, all);

    if (err == RATION_OK)
        save_all(&s, all);
    rn_mem_free(&engine->mem, s.parts);
    if (engine->world->book.strict)
        rn_sink_answer(engine, &call, err, NULL);
    return err;
}
