/* SPDX-License-Identifier: MIT */
/*
 * A simulated day as the dashboard shows it.
 *
 * The page is that of the control port, put into one file by scripts/bundle-web. It reads what it shows from a block of
 * JSON in itself, of the same forms: the status at the day's end, a history with a sample for each look at the day, and
 * the plan; beside them the figures that `--json` prints. Counts are those of the day as a whole, not of the last of
 * its gateways, so that they are what the command prints.
 *
 * Invariant: no byte of the data can end its block or begin a tag, since none of them is "<": scope keys and names of
 * files may hold anything.
 */
#include "cli/day_page.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "serve/history.h"
#include "serve/status.h"
#include "serve/web.h"
#include "simulate/summary.h"

#define DATA_MAX ((size_t)64 << 20)
#define MOVES 4096 /* of adaptive limits; beyond that the last ones are shown */

struct rn_day_page {
    rn_history *history;
    rn_history_counts counts;
    size_t waits_seen[RN_DAY_PRIORITIES];
    rn_output
        waits[RN_DAY_PRIORITIES]; /* by look: what half of the calls, and all but one in a hundred, waited at most */
    uint64_t looks;
    rn_output status, plan; /* at the end; the plan is empty where there is none */
};

int rn_day_page_new(rn_day_page **out)
{
    rn_day_page *page = rn_mem_zalloc(rn_mem_default(), 1, sizeof *page);
    const int err = page != NULL ? rn_history_new(RN_DAY_SAMPLES + 2, MOVES, &page->history) : RATION_ERR_NOMEM;

    if (err != RATION_OK) {
        rn_mem_free(rn_mem_default(), page);
        return err;
    }
    rn_output_init(&page->status, rn_mem_default(), RN_STATUS_MAX);
    rn_output_init(&page->plan, rn_mem_default(), RN_STATUS_MAX);
    for (size_t p = 0; p < RN_DAY_PRIORITIES; p++)
        rn_output_init(&page->waits[p], rn_mem_default(), RN_STATUS_MAX);
    *out = page;
    return RATION_OK;
}

void rn_day_page_free(rn_day_page *page)
{
    if (page == NULL)
        return;
    rn_output_fini(&page->status);
    rn_output_fini(&page->plan);
    for (size_t p = 0; p < RN_DAY_PRIORITIES; p++)
        rn_output_fini(&page->waits[p]);
    rn_history_free(page->history);
    rn_mem_free(rn_mem_default(), page);
}

/* ---- while the day is played */

/* The waits of a priority since the look before: exact, where a histogram would tell the bounds of its buckets. */
static int waits_take(rn_day_page *page, size_t p, const int64_t *us, size_t count)
{
    rn_output *out = &page->waits[p];
    int64_t *sorted = count > 0 ? rn_mem_alloc(rn_mem_default(), count * sizeof *us) : NULL;

    if (count == 0) {
        rn_output_null(out, NULL);
        return RATION_OK;
    }
    if (sorted == NULL)
        return RATION_ERR_NOMEM;
    memcpy(sorted, us, count * sizeof *us);
    for (size_t i = 0; i < count; i++)
        rn_histogram_add(&page->counts.waits[p], us[i]);
    rn_output_open(out, NULL, '[');
    rn_output_ms(out, NULL, rn_percentile(sorted, count, 50));
    rn_output_ms(out, NULL, rn_percentile(sorted, count, 99));
    rn_output_close(out, ']');
    rn_mem_free(rn_mem_default(), sorted);
    return out->err;
}

static int counts_take(rn_day_page *page, const rn_day_look *look)
{
    rn_history_counts *counts = &page->counts;
    int err = RATION_OK;

    memset(counts->refusals, 0, sizeof counts->refusals);
    memset(counts->outcomes, 0, sizeof counts->outcomes);
    for (size_t p = RATION_PRIORITY_CRITICAL; p < RN_DAY_PRIORITIES && err == RATION_OK; p++) {
        const rn_day_class *class = &look->counted->classes[p];
        const size_t seen = page->waits_seen[p];

        page->waits_seen[p] = look->waits[p].count;
        err = waits_take(page, p, look->waits[p].us + seen, look->waits[p].count - seen);
        for (size_t reason = 0; reason < RATION_REASON_COUNT; reason++)
            counts->refusals[reason] += class->refusals[reason];
        for (size_t cause = 0; cause < RN_DAY_CAUSES; cause++)
            counts->outcomes[RATION_OUTCOME_THROTTLED] += class->limited[cause];
        counts->outcomes[RATION_OUTCOME_SUCCESS] += class->answered;
        counts->outcomes[RATION_OUTCOME_FAILURE] += class->failed;
        counts->outcomes[RATION_OUTCOME_CANCELLED] += class->broken;
    }
    return err;
}

static int limits_take(const rn_day_look *look, rn_output *out)
{
    ration_totals totals = {.held = 0};

    if (look->decider != NULL) {
        look->decider->ops->totals(look->decider, &totals);
        rn_output_int(out, "held", (int64_t)totals.held);
        rn_output_int(out, "waiting", (int64_t)totals.waiting);
        return rn_status_limits_write(look->decider, look->believed, NULL, out);
    }
    rn_output_int(out, "held", 0);
    rn_output_int(out, "waiting", 0);
    rn_output_bool(out, "down", true);
    for (const char *const *list = (const char *const[]){"limits", "penalties", "breakers", "overruns", NULL};
         *list != NULL; list++) {
        rn_output_open(out, *list, '[');
        rn_output_close(out, ']');
    }
    return RATION_OK;
}

/* The members of `/v1/status` that the page reads. */
static int status_take(rn_day_page *page, const rn_day_look *look)
{
    const rn_day_result *day = look->counted;
    rn_output *out = &page->status;
    int64_t granted = 0;

    for (size_t p = 0; p < RN_DAY_PRIORITIES; p++)
        granted += (int64_t)look->waits[p].count;
    rn_output_open(out, NULL, '{');
    rn_output_int(out, "snapshot", (int64_t)page->looks);
    rn_output_str(out, "version", RATION_VERSION);
    rn_output_ms(out, "startedAt", day->start.us);
    rn_output_ms(out, "now", look->at.us);
    rn_output_ms(out, "uptimeMs", day->span_us);
    rn_output_bool(out, "draining", false);
    rn_output_open(out, "totals", '{');
    rn_output_int(out, "granted", granted);
    rn_history_refusals_write(&page->counts, out);
    rn_history_outcomes_write(&page->counts, out);
    rn_output_close(out, '}');
    rn_history_waits_write(&page->counts, out);
    const int err = limits_take(look, out);
    rn_output_close(out, '}');
    return err != RATION_OK ? err : out->err;
}

static int page_look(void *ctx, const rn_day_look *look)
{
    rn_day_page *page = ctx;

    page->looks++;
    const int err = counts_take(page, look);
    rn_history_add(page->history, look->at, &page->counts, look->decider, look->believed);
    if (err != RATION_OK || !look->last)
        return err;
    if (look->jobs != NULL && rn_jobs_planned(look->jobs) != NULL)
        rn_jobs_json(look->jobs, look->believed, &page->plan);
    return page->plan.err != RATION_OK ? page->plan.err : status_take(page, look);
}

static void page_event(void *ctx, const ration_event *event)
{
    rn_day_page *page = ctx;

    rn_history_hear(page->history, event);
}

rn_day_watcher rn_day_page_watcher(rn_day_page *page)
{
    return (rn_day_watcher){.ctx = page, .look = page_look, .event = page_event};
}

/* ---- the page */

static void part_write(rn_output *out, const char *name, const rn_output *json)
{
    rn_output_key(out, ration_text_of(name));
    rn_output_element(out, (ration_text){json->data, json->size});
}

static void data_write(const rn_day_page *page, const char *title, const rn_day_result *result, rn_output *out)
{
    rn_output part;

    rn_output_init(&part, rn_mem_default(), DATA_MAX);
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "title", title);
    part_write(out, "status", &page->status);
    rn_history_write(page->history, result->start, &part);
    part_write(out, "history", &part);
    if (page->plan.size > 0)
        part_write(out, "plan", &page->plan);
    rn_output_open(out, "waits", '{');
    for (int p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++) {
        rn_output_open(out, ration_priority_name((ration_priority)p), '[');
        rn_output_element(out, (ration_text){page->waits[p].data, page->waits[p].size});
        rn_output_close(out, ']');
    }
    rn_output_close(out, '}');
    if (part.err == RATION_OK)
        rn_output_clear(&part);
    rn_day_json(result, &part);
    part_write(out, "day", &part);
    rn_output_close(out, '}');
    if (out->err == RATION_OK)
        out->err = part.err;
    rn_output_fini(&part);
}

/* JSON as the inside of a script element. What is changed stands inside of texts only, and means the same. */
static void inline_write(ration_text json, rn_output *out)
{
    size_t from = 0;

    for (size_t i = 0; i < json.size; i++) {
        const bool less = json.data[i] == '<';

        if (!less && json.data[i] != '>')
            continue;
        rn_output_raw(out, rn_text_slice(json, from, i));
        rn_output_raw(out, ration_text_of(less ? "\\u003c" : "\\u003e"));
        from = i + 1;
    }
    rn_output_raw(out, rn_text_slice(json, from, json.size));
}

void rn_day_page_write(const rn_day_page *page, const char *title, const rn_day_result *result, rn_output *out)
{
    rn_output data;

    rn_output_init(&data, rn_mem_default(), DATA_MAX);
    data_write(page, title, result, &data);
    rn_output_raw(out, ration_text_of(rn_web_report_head));
    inline_write((ration_text){data.data, data.size}, out);
    rn_output_raw(out, ration_text_of(rn_web_report_tail));
    if (out->err == RATION_OK)
        out->err = data.err;
    rn_output_fini(&data);
}
