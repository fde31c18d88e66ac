/* SPDX-License-Identifier: MIT */
/*
 * The last quarter of an hour as samples of counts that only grow, with what adaptive and shared limits stood at.
 *
 * A sample has what the status has at that instant, under the same names: a reader subtracts two of them, and needs to
 * know one form only. Nothing is averaged or rounded here. Rows of limits are kept as the JSON that they will be, so
 * that their number of tenants and the length of their keys cost what they take and no more.
 *
 * Invariants: the sample number n, for all that are kept, stands at n % most, and so it is with moves; the rows of a
 * sample are whole.
 */
#include "serve/history.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

typedef struct sample {
    ration_time at;
    rn_history_counts counts;
    char *rows; /* of adaptive and shared limits, elements of an array; NULL: none */
    size_t rows_size;
} sample;

/* An adaptive limit has become another one. */
typedef struct move {
    ration_time at;
    char limit[RN_HISTORY_KEY], key[RN_HISTORY_KEY];
    int64_t before, current;
} move;

struct rn_history {
    uint64_t added, moved;
    size_t most_moves;
    move *moves;
    size_t most;
    sample ring[];
};

int rn_history_new(size_t most, size_t moves, rn_history **out)
{
    rn_history *history = rn_mem_zalloc(rn_mem_default(), 1, sizeof *history + most * sizeof(sample));

    if (history == NULL)
        return RATION_ERR_NOMEM;
    history->most = most;
    history->most_moves = moves;
    history->moves = rn_mem_zalloc(rn_mem_default(), moves, sizeof *history->moves);
    if (history->moves == NULL) {
        rn_mem_free(rn_mem_default(), history);
        return RATION_ERR_NOMEM;
    }
    *out = history;
    return RATION_OK;
}

void rn_history_free(rn_history *history)
{
    if (history == NULL)
        return;
    for (size_t i = 0; i < history->most; i++)
        rn_mem_free(rn_mem_default(), history->ring[i].rows);
    rn_mem_free(rn_mem_default(), history->moves);
    rn_mem_free(rn_mem_default(), history);
}

/* ---- what limits stand at */

typedef struct rows {
    rn_output all, one;
    size_t count;
} rows;

static void tenants_write(rn_output *out, const ration_counter_report *counter)
{
    rn_output_open(out, "tenants", '{');
    for (size_t i = 0; i < counter->tenant_count && i < RN_HISTORY_TENANTS; i++) {
        const ration_tenant_report *tenant = &counter->tenants[i];

        rn_output_key(out, tenant->name);
        rn_output_open(out, NULL, '{');
        rn_output_micro(out, "held", tenant->held);
        rn_output_micro(out, "lent", tenant->lent);
        rn_output_micro(out, "borrowed", tenant->borrowed);
        rn_output_nano(out, "deficitUnitMs", tenant->deficit_unit_ms, tenant->deficit_rest);
        rn_output_close(out, '}');
    }
    rn_output_close(out, '}');
}

/* A row that does not fit as a whole stays away. */
static void on_counter(void *ctx, const ration_counter_report *counter)
{
    rows *r = ctx;
    rn_output *out = &r->one;

    if (r->count == RN_HISTORY_ROWS)
        return;
    rn_output_clear(out);
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "provider", counter->provider);
    rn_output_str(out, "limit", counter->limit);
    rn_output_text(out, "key", counter->key);
    rn_output_str(out, "kind", counter->kind == RATION_KIND_ADAPTIVE ? "adaptive" : "share");
    rn_output_micro(out, "held", counter->held);
    if (counter->kind == RATION_KIND_ADAPTIVE) {
        rn_output_micro(out, "current", counter->current);
    } else {
        tenants_write(out, counter);
    }
    rn_output_close(out, '}');
    if (out->err != RATION_OK || r->all.size + out->size + 1 > RN_HISTORY_ROWS_BYTES)
        return;
    rn_output_element(&r->all, (ration_text){out->data, out->size});
    r->count++;
}

static void rows_take(sample *into, ration_time at, rn_decider *decider)
{
    rows r = {.count = 0};
    const ration_reporter reporter = {.ctx = &r,
                                      .kinds = 1u << RATION_KIND_ADAPTIVE | 1u << RATION_KIND_SHARE,
                                      .most = RN_HISTORY_ROWS,
                                      .counter = on_counter};

    rn_output_init(&r.all, rn_mem_default(), RN_HISTORY_ROWS_BYTES);
    rn_output_init(&r.one, rn_mem_default(), RN_HISTORY_ROWS_BYTES);
    if (decider->ops->report(decider, at, RATION_REPORT_STATS, &reporter) == RATION_OK && r.all.err == RATION_OK &&
        r.all.size > 0) {
        into->rows = rn_mem_textdup(rn_mem_default(), (ration_text){r.all.data, r.all.size});
        into->rows_size = into->rows != NULL ? r.all.size : 0;
    }
    rn_output_fini(&r.one);
    rn_output_fini(&r.all);
}

void rn_history_add(rn_history *history, ration_time at, const rn_history_counts *counts, rn_decider *decider,
                    ration_time believed)
{
    sample *into = &history->ring[history->added % history->most];

    rn_mem_free(rn_mem_default(), into->rows);
    *into = (sample){.at = at, .counts = *counts};
    if (decider != NULL)
        rows_take(into, believed, decider);
    history->added++;
}

void rn_history_hear(rn_history *history, const ration_event *event)
{
    const ration_text limit = ration_text_of(event->decision.limit), key = event->decision.key;
    move *into = &history->moves[history->moved % history->most_moves];

    if (event->type != RATION_EVENT_LIMIT || limit.size >= RN_HISTORY_KEY || key.size >= RN_HISTORY_KEY)
        return;
    *into = (move){.at = event->at, .before = event->before, .current = event->value};
    memcpy(into->limit, limit.data, limit.size);
    memcpy(into->key, key.data, key.size);
    history->moved++;
}

/* ---- the page */

/* How long granted calls had waited, by priority: counts below each bound. Two of them tell of the time between. */
void rn_history_waits_write(const rn_history_counts *counts, rn_output *out)
{
    rn_output_open(out, "waits", '{');
    rn_output_open(out, "boundsMs", '[');
    for (size_t i = 0; i < RN_HISTOGRAM_BUCKETS; i++)
        rn_output_ms(out, NULL, rn_histogram_bound(i));
    rn_output_close(out, ']');
    for (int i = RATION_PRIORITY_CRITICAL; i <= RATION_PRIORITY_LOW; i++) {
        rn_output_open(out, ration_priority_name((ration_priority)i), '[');
        for (size_t j = 0; j <= RN_HISTOGRAM_BUCKETS; j++)
            rn_output_int(out, NULL, (int64_t)counts->waits[i].counts[j]);
        rn_output_close(out, ']');
    }
    rn_output_close(out, '}');
}

void rn_history_refusals_write(const rn_history_counts *counts, rn_output *out)
{
    rn_output_open(out, "refusals", '{');
    for (int i = RATION_REASON_NONE + 1; i < RATION_REASON_COUNT; i++) {
        if (counts->refusals[i] > 0)
            rn_output_int(out, ration_reason_name((ration_reason)i), (int64_t)counts->refusals[i]);
    }
    rn_output_close(out, '}');
}

void rn_history_outcomes_write(const rn_history_counts *counts, rn_output *out)
{
    rn_output_open(out, "outcomes", '{');
    for (int i = 0; i < RN_OUTCOMES; i++)
        rn_output_int(out, ration_outcome_name((ration_outcome)i), (int64_t)counts->outcomes[i]);
    rn_output_close(out, '}');
}

static void moves_write(const rn_history *history, rn_output *out)
{
    const uint64_t oldest = history->moved > history->most_moves ? history->moved - history->most_moves : 0;

    rn_output_open(out, "moves", '[');
    for (uint64_t i = oldest; i < history->moved; i++) {
        const move *one = &history->moves[i % history->most_moves];

        rn_output_open(out, NULL, '{');
        rn_output_ms(out, "at", one->at.us);
        rn_output_str(out, "limit", one->limit);
        rn_output_str(out, "key", one->key);
        rn_output_micro(out, "before", one->before);
        rn_output_micro(out, "current", one->current);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
}

void rn_history_write(const rn_history *history, ration_time started_at, rn_output *out)
{
    const uint64_t oldest = history->added > history->most ? history->added - history->most : 0;

    rn_output_open(out, NULL, '{');
    rn_output_ms(out, "startedAt", started_at.us);
    rn_output_open(out, "samples", '[');
    for (uint64_t i = oldest; i < history->added; i++) {
        const sample *one = &history->ring[i % history->most];

        rn_output_open(out, NULL, '{');
        rn_output_ms(out, "at", one->at.us);
        rn_history_waits_write(&one->counts, out);
        rn_history_refusals_write(&one->counts, out);
        rn_history_outcomes_write(&one->counts, out);
        rn_output_open(out, "limits", '[');
        if (one->rows != NULL)
            rn_output_element(out, (ration_text){one->rows, one->rows_size});
        rn_output_close(out, ']');
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
    moves_write(history, out);
    rn_output_close(out, '}');
    rn_output_newline(out);
}
