/* SPDX-License-Identifier: MIT */
/*
 * A simulated day as one page: tables, and charts as SVG that is drawn here.
 *
 * The page needs nothing else and runs nothing: its policy forbids everything but its one style sheet, which it names
 * by hash. Every text that comes from a config is escaped. Colours follow the reader's scheme.
 *
 * Units: charts are WIDTH by some height in user units; the plot lies right of LEFT.
 */
#include "simulate/day_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "base/units.h"

#define WIDTH 960
#define LEFT 72
#define PLOT (WIDTH - LEFT - 8)
#define QUOTA_HEIGHT 200
#define ROW_HEIGHT 64
#define MARGIN 8
#define AXIS 24
#define HOUR_US (INT64_C(3600) * 1000000)
#define TICKS_MAX 9
#define ROWS_MAX 40 /* charts of jobs, and of quotas */

/* The policy has the hash of what stands between the tags; tests/e2e/test_day.py says what it must be. */
#define STYLE                                                                                                          \
    ":root{color-scheme:light dark;--ink:#1c2127;--soft:#5b6570;--line:#d5dae0;--ground:#ffffff;--ours:#2563b0;"       \
    "--other:#b7791f;--bad:#b42318;--mark:#6b4fa0}"                                                                    \
    "@media (prefers-color-scheme:dark){:root{--ink:#e4e8ec;--soft:#9aa5b1;--line:#39424c;--ground:#14181d;"           \
    "--ours:#6ea8f0;--other:#e0b45c;--bad:#f0796d;--mark:#b39ae0}}"                                                    \
    "body{margin:2rem auto;max-width:64rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);"        \
    "background:var(--ground)}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}p.verdict{font-weight:600}"   \
    "p.bad{color:var(--bad)}.scroll{overflow-x:auto;margin:.8rem "                                                     \
    "0}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"                                              \
    "th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"               \
    "th{color:var(--soft);font-weight:500}th:first-child,td:first-child{text-align:left}"                              \
    "svg{display:block;width:100%;height:auto;margin:.3rem 0}h3{font-size:.95rem;font-weight:500;margin:1rem 0 0}"     \
    "text{fill:var(--soft);font-size:12px}.grid{stroke:var(--line)}.base{stroke:var(--soft)}"                          \
    ".ours{fill:var(--ours)}.other{fill:var(--other)}.bad{fill:var(--bad)}"                                            \
    ".step{fill:none;stroke:var(--ours);stroke-width:2}.bound{stroke:var(--ink);stroke-dasharray:5 4}"                 \
    ".fault{fill:var(--mark);opacity:.55}.key{display:inline-block;margin-right:1.2rem;color:var(--soft)}"             \
    ".key svg{display:inline-block;width:12px;height:12px;margin:0 .35rem 0 0}"

#define STYLE_HASH "sha256-ClAepJotLUK+MYPqBDg1VvL57au0PymBbyfwP3MDQuc="

static void put(rn_output *out, const char *text)
{
    rn_output_raw(out, ration_text_of(text));
}

/* A text of somebody else's, as text of the page. */
static void put_escaped(rn_output *out, const char *text)
{
    static const char *const names[] = {
        ['"'] = "&quot;", ['&'] = "&amp;", ['\''] = "&#39;", ['<'] = "&lt;", ['>'] = "&gt;"};

    for (const char *c = text; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c;

        if (byte < sizeof names / sizeof *names && names[byte] != NULL) {
            put(out, names[byte]);
        } else if (byte < ' ' || byte == 0x7f) {
            put(out, "\xef\xbf\xbd");
        } else {
            rn_output_raw(out, (ration_text){c, 1});
        }
    }
}

static void cell(rn_output *out, const char *text)
{
    put(out, "<td>");
    put_escaped(out, text);
    put(out, "</td>");
}

static void cell_count(rn_output *out, uint64_t count)
{
    rn_day_printf(out, "<td>%" PRIu64 "</td>", count);
}

static void table_open(rn_output *out, const char *const *heads, size_t count)
{
    put(out, "<div class=\"scroll\"><table><thead><tr>");
    for (size_t i = 0; i < count; i++)
        rn_day_printf(out, "<th>%s</th>", heads[i]);
    put(out, "</tr></thead><tbody>\n");
}

static void table_close(rn_output *out)
{
    put(out, "</tbody></table></div>\n");
}

/* ---- tables */

static void classes_table(const rn_day_result *r, rn_output *out)
{
    static const char *const heads[] = {"priority", "wanted", "sent",     "retries", "answered", "refused",
                                        "429s",     "failed", "wait p50", "p99",     "most"};

    put(out, "<h2>Calls by priority</h2>\n");
    table_open(out, heads, sizeof heads / sizeof *heads);
    for (int p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++) {
        const rn_day_class *c = &r->classes[p];
        rn_day_label label = {""};
        uint64_t limited = 0;

        if (!c->present)
            continue;
        for (size_t cause = 0; cause < RN_DAY_CAUSES; cause++)
            limited += c->limited[cause];
        put(out, "<tr>");
        cell(out, ration_priority_name((ration_priority)p));
        cell_count(out, (uint64_t)c->wanted);
        cell_count(out, c->sent);
        cell_count(out, c->retries);
        cell_count(out, c->answered);
        cell_count(out, c->refused);
        cell_count(out, limited);
        cell_count(out, c->failed + c->broken);
        cell(out, rn_day_short(c->wait_p50_us, &label));
        cell(out, rn_day_short(c->wait_p99_us, &label));
        cell(out, rn_day_short(c->wait_max_us, &label));
        put(out, "</tr>\n");
    }
    table_close(out);
}

static void refusals_table(const rn_day_result *r, rn_output *out)
{
    static const char *const heads[] = {"refused by ration", "critical", "high", "normal", "low"};
    bool any = false;

    for (int reason = RATION_REASON_NONE + 1; reason < RATION_REASON_COUNT; reason++) {
        uint64_t all = 0;

        for (int p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++)
            all += r->classes[p].refusals[reason];
        if (all == 0)
            continue;
        if (!any)
            table_open(out, heads, sizeof heads / sizeof *heads);
        any = true;
        put(out, "<tr>");
        cell(out, ration_reason_name((ration_reason)reason));
        for (int p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++)
            cell_count(out, r->classes[p].refusals[reason]);
        put(out, "</tr>\n");
    }
    if (any)
        table_close(out);
}

static void quotas_table(const rn_day_result *r, rn_output *out)
{
    static const char *const heads[] = {
        "quota", "key",      "max",  "U",    "R",        "windows", "spent of U \xe2\x88\x92 R",
        "least", "external", "left", "429s", "overspent"};

    put(out, "<h2>Quotas</h2>\n");
    table_open(out, heads, sizeof heads / sizeof *heads);
    for (size_t i = 0; i < r->quota_count; i++) {
        const rn_day_quota *q = &r->quotas[i];
        rn_day_label label = {""};

        put(out, "<tr>");
        cell(out, q->limit);
        cell(out, q->key);
        cell(out, rn_day_units(q->max, &label));
        cell(out, rn_day_units(q->usable, &label));
        cell(out, rn_day_units(q->reserve, &label));
        if (q->windows > 0) {
            cell_count(out, q->windows);
            cell(out, rn_day_percent(q->spent, rn_day_budget(q), &label));
            cell(out, rn_day_percent(q->least, q->usable - q->reserve, &label));
        } else {
            put(out, q->rolling ? "<td>rolling</td><td>-</td><td>-</td>" : "<td>none</td><td>-</td><td>-</td>");
        }
        cell(out, rn_day_units(q->external, &label));
        cell(out, rn_day_units(q->left, &label));
        cell_count(out, q->refused);
        cell_count(out, q->overspent);
        put(out, "</tr>\n");
    }
    table_close(out);
}

static void jobs_table(const rn_day_result *r, rn_output *out)
{
    static const char *const heads[] = {"job",  "priority", "desired", "at the end", "stretch",
                                        "most", "runs",     "calls",   "bound by"};

    put(out, "<h2>Jobs</h2>\n");
    table_open(out, heads, sizeof heads / sizeof *heads);
    for (size_t i = 0; i < r->job_count; i++) {
        const rn_day_job *j = &r->jobs[i];
        rn_day_label label = {""};

        put(out, "<tr>");
        cell(out, j->job->name);
        cell(out, ration_priority_name(j->job->priority));
        cell(out, rn_day_short(j->job->interval_us, &label));
        cell(out, rn_day_short(rn_day_effective(j), &label));
        cell(out, rn_day_stretch(rn_day_effective(j), j->job->interval_us, &label));
        cell(out, rn_day_stretch(j->stretch_most, RATION_UNIT, &label));
        cell_count(out, j->runs);
        cell_count(out, j->requests + j->retries);
        cell(out, j->limit != NULL ? j->limit : "-");
        put(out, "</tr>\n");
    }
    table_close(out);
}

/* ---- charts */

static int64_t x_of(const rn_day_result *r, int64_t at_us)
{
    return LEFT + rn_mul(rn_min(at_us, r->span_us), PLOT) / r->span_us;
}

/* From the bottom of a plot of that height. */
static int64_t y_of(int64_t value, int64_t top, int64_t height)
{
    return MARGIN + height - rn_mul(rn_min(value / 1000, top / 1000), height) / rn_max(top / 1000, 1);
}

static void chart_open(rn_output *out, int64_t height, const char *what, const char *name)
{
    rn_day_printf(out, "<svg viewBox=\"0 0 %d %" PRId64 "\" role=\"img\" aria-label=\"%s ", WIDTH, height, what);
    put_escaped(out, name);
    put(out, "\">\n");
}

static int64_t tick_us(int64_t span_us)
{
    static const int64_t steps[] = {600 * INT64_C(1000000),
                                    1800 * INT64_C(1000000),
                                    HOUR_US,
                                    3 * HOUR_US,
                                    6 * HOUR_US,
                                    12 * HOUR_US,
                                    24 * HOUR_US,
                                    48 * HOUR_US,
                                    96 * HOUR_US};
    size_t i = 0;

    while (i + 1 < sizeof steps / sizeof *steps && span_us / steps[i] > TICKS_MAX)
        i++;
    return steps[i];
}

/* Hours along the bottom, and in the plot a line for each. */
static void axis(const rn_day_result *r, rn_output *out, int64_t height)
{
    const int64_t step_us = tick_us(r->span_us);

    for (int64_t at_us = 0; at_us <= r->span_us; at_us += step_us) {
        const int64_t x = x_of(r, at_us);
        rn_day_label label = {""};

        rn_day_printf(out, "<line class=\"grid\" x1=\"%" PRId64 "\" x2=\"%" PRId64 "\" y1=\"%d\" y2=\"%" PRId64 "\"/>",
                      x, x, MARGIN, MARGIN + height);
        rn_day_printf(out, "<text x=\"%" PRId64 "\" y=\"%" PRId64 "\" text-anchor=\"%s\">%s</text>", x,
                      MARGIN + height + 18,
                      at_us == 0            ? "start"
                      : at_us == r->span_us ? "end"
                                            : "middle",
                      at_us == 0 ? "0" : rn_day_short(at_us, &label));
    }
    rn_day_printf(out, "<line class=\"base\" x1=\"%d\" x2=\"%d\" y1=\"%" PRId64 "\" y2=\"%" PRId64 "\"/>\n", LEFT,
                  LEFT + PLOT, MARGIN + height, MARGIN + height);
}

/* A strip below the axis' line: when something was wrong. */
static void faults_strip(const rn_day_result *r, rn_output *out, int64_t height)
{
    for (size_t i = 0; i < r->episode_count; i++) {
        const rn_day_episode *e = &r->episodes[i];
        const int64_t x = x_of(r, e->from_us);
        rn_day_label from = {""};

        rn_day_printf(out,
                      "<rect class=\"fault\" x=\"%" PRId64 "\" y=\"%" PRId64 "\" width=\"%" PRId64
                      "\" height=\"5\"><title>%s at %s</title></rect>",
                      x, MARGIN + height + 1, rn_max(x_of(r, e->to_us) - x, 2), rn_day_fault_name(e->kind),
                      rn_day_short(e->from_us, &from));
    }
}

static void level(rn_output *out, const char *name, int64_t value, int64_t top, int64_t height)
{
    const int64_t y = y_of(value, top, height);
    rn_day_label label = {""};

    rn_day_printf(out,
                  "<line class=\"bound\" x1=\"%d\" x2=\"%d\" y1=\"%" PRId64 "\" y2=\"%" PRId64
                  "\"><title>%s: %s</title></line><text x=\"%d\" y=\"%" PRId64 "\" text-anchor=\"end\">%s %s</text>\n",
                  LEFT, LEFT + PLOT, y, y, name, rn_day_units(value, &label), LEFT - 6, y + 4, name, label.text);
}

/* Bars from `low` to `high` of each look, as wide as the time between two. */
static void bars(const rn_day_result *r, rn_output *out, const rn_day_quota *q, const char *class, bool external,
                 int64_t top)
{
    rn_day_printf(out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < q->point_count; i++) {
        const rn_day_point *p = &q->points[i];
        const int64_t to_us = i + 1 < q->point_count ? q->points[i + 1].at_us : r->span_us;
        const int64_t low = external ? p->spent : 0;
        const int64_t high = external ? rn_add(p->spent, p->external) : p->spent;

        if (high == low)
            continue;
        rn_day_printf(out, "M%" PRId64 " %" PRId64 "H%" PRId64 "V%" PRId64 "H%" PRId64 "z", x_of(r, p->at_us),
                      y_of(low, top, QUOTA_HEIGHT), x_of(r, to_us), y_of(high, top, QUOTA_HEIGHT), x_of(r, p->at_us));
    }
    put(out, "\"/>\n");
}

static void key(rn_output *out, const char *class, const char *text)
{
    rn_day_printf(out,
                  "<span class=\"key\"><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"%s\" "
                  "width=\"12\" height=\"12\"/></svg>%s</span>",
                  class, text);
}

static void budgets_charts(const rn_day_result *r, rn_output *out)
{
    put(out, "<h2>Budget against time</h2>\n<p>");
    key(out, "ours", "spent by us");
    key(out, "other", "spent by others");
    key(out, "fault", "something was wrong");
    put(out, "</p>\n");
    for (size_t i = 0; i < r->quota_count && i < ROWS_MAX; i++) {
        const rn_day_quota *q = &r->quotas[i];
        rn_day_label name = {""};

        (void)snprintf(name.text, sizeof name.text, "%s of %s", q->limit, q->key);
        put(out, "<h3>");
        put_escaped(out, name.text);
        put(out, q->rolling ? " (rolling: spent by anybody)</h3>\n" : "</h3>\n");
        chart_open(out, MARGIN + QUOTA_HEIGHT + AXIS, "Budget against time:", name.text);
        axis(r, out, QUOTA_HEIGHT);
        bars(r, out, q, "ours", false, q->max);
        bars(r, out, q, "other", true, q->max);
        level(out, "max", q->max, q->max, QUOTA_HEIGHT);
        if (q->usable - q->reserve < q->max)
            level(out, "U\xe2\x88\x92R", q->usable - q->reserve, q->max, QUOTA_HEIGHT);
        faults_strip(r, out, QUOTA_HEIGHT);
        put(out, "</svg>\n");
    }
}

/* The interval in parts of the desired one, as steps. */
static void stretch_chart(const rn_day_result *r, rn_output *out, const rn_day_job *j)
{
    const int64_t top = rn_max(j->stretch_most, 2 * RATION_UNIT);
    rn_day_label desired = {""}, effective = {""}, most = {""};

    put(out, "<h3>");
    put_escaped(out, j->job->name);
    rn_day_printf(out, " (%s): desired %s, at the end %s</h3>\n", ration_priority_name(j->job->priority),
                  rn_day_short(j->job->interval_us, &desired), rn_day_short(rn_day_effective(j), &effective));
    chart_open(out, MARGIN + ROW_HEIGHT + AXIS, "Stretch over time:", j->job->name);
    axis(r, out, ROW_HEIGHT);
    rn_day_printf(out,
                  "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><text x=\"%d\" y=\"%" PRId64
                  "\" text-anchor=\"end\">1</text><path class=\"step\" d=\"",
                  LEFT - 6, MARGIN + 8, rn_day_stretch(top, RATION_UNIT, &most), LEFT - 6,
                  y_of(RATION_UNIT, top, ROW_HEIGHT) + 4);
    for (size_t i = 0; i < j->interval_count; i++) {
        const int64_t stretch = rn_mul(j->intervals[i].effective_us, 1000) / j->job->interval_us * 1000;
        const int64_t x = x_of(r, j->intervals[i].at_us);
        const int64_t y = y_of(stretch, top, ROW_HEIGHT);

        rn_day_printf(out, i == 0 ? "M%" PRId64 " %" PRId64 : "H%" PRId64 "V%" PRId64, x, y);
    }
    rn_day_printf(out, "H%d\"/>\n</svg>\n", LEFT + PLOT);
}

static void stretch_charts(const rn_day_result *r, rn_output *out)
{
    put(out, "<h2>Stretch over time</h2>\n<p>How many times as long as desired a job's interval is.</p>\n");
    for (size_t i = 0; i < r->job_count && i < ROWS_MAX; i++)
        stretch_chart(r, out, &r->jobs[i]);
    if (r->job_count > ROWS_MAX)
        rn_day_printf(out, "<p>And %zu jobs more; the JSON has them all.</p>\n", r->job_count - ROWS_MAX);
}

static void slot_bars(rn_output *out, const char *class, const uint32_t *low, const uint32_t *high, int64_t top)
{
    rn_day_printf(out, "<path class=\"%s\" d=\"", class);
    for (int i = 0; i < RN_DAY_SLOTS; i++) {
        const int64_t from = LEFT + (int64_t)PLOT * i / RN_DAY_SLOTS;
        const int64_t to = LEFT + (int64_t)PLOT * (i + 1) / RN_DAY_SLOTS - 1;
        const int64_t base = low != NULL ? low[i] : 0;

        if (high[i] == 0)
            continue;
        rn_day_printf(out, "M%" PRId64 " %" PRId64 "H%" PRId64 "V%" PRId64 "H%" PRId64 "z", from,
                      y_of(base * 1000, top * 1000, ROW_HEIGHT), to,
                      y_of((base + high[i]) * 1000, top * 1000, ROW_HEIGHT), from);
    }
    put(out, "\"/>\n");
}

static void calls_charts(const rn_day_result *r, rn_output *out)
{
    put(out, "<h2>Sent and refused by priority</h2>\n<p>");
    key(out, "ours", "sent");
    key(out, "bad", "refused by ration");
    put(out, "</p>\n");
    for (int p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++) {
        const rn_day_class *c = &r->classes[p];
        const char *name = ration_priority_name((ration_priority)p);
        int64_t top = 1;

        if (!c->present)
            continue;
        for (size_t i = 0; i < RN_DAY_SLOTS; i++)
            top = rn_max(top, (int64_t)c->slot_sent[i] + c->slot_refused[i]);
        rn_day_printf(out, "<h3>%s</h3>\n", name);
        chart_open(out, MARGIN + ROW_HEIGHT + AXIS, "Sent and refused:", name);
        axis(r, out, ROW_HEIGHT);
        rn_day_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRId64 "</text>\n", LEFT - 6, MARGIN + 8,
                      top);
        slot_bars(out, "ours", NULL, c->slot_sent, top);
        slot_bars(out, "bad", c->slot_sent, c->slot_refused, top);
        put(out, "</svg>\n");
    }
}

/* ---- the page */

static void head_write(const rn_day_result *r, const char *title, rn_output *out)
{
    rn_day_label span = {""}, start = {""};
    rn_builder b;

    rn_builder_init(&b, start.text, sizeof start.text);
    rn_builder_instant(&b, r->start);
    put(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '" STYLE_HASH
             "'; base-uri 'none'; form-action 'none'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"referrer\" content=\"no-referrer\">\n<title>A simulated day of ");
    put_escaped(out, title);
    put(out, "</title>\n<style>" STYLE "</style>\n</head>\n<body>\n<h1>A simulated day of ");
    put_escaped(out, title);
    rn_day_printf(out, "</h1>\n<p>%s from %s, seed %" PRIu64 ", trace hash %016" PRIx64 ". Faults:",
                  rn_day_short(r->span_us, &span), start.text, r->seed, r->hash);
    for (unsigned i = 0; i < RN_DAY_FAULTS; i++) {
        if ((r->faults & 1u << i) != 0)
            rn_day_printf(out, " %s", rn_day_fault_name((rn_day_fault)(1u << i)));
    }
    rn_day_printf(out, "%s.</p>\n", r->faults == 0 ? " none" : "");
}

static void verdict_write(const rn_day_result *r, rn_output *out)
{
    rn_day_printf(out, "<p class=\"verdict%s\">%s</p>\n<p>429s by what refused:", rn_day_passed(r) ? "" : " bad",
                  rn_day_passed(r)
                      ? "No provider refused a call for a quota\xe2\x80\x99s sake, and no share of one was "
                        "overdrawn."
                      : "A provider refused calls for a quota\xe2\x80\x99s sake, or a share was overdrawn.");
    for (int cause = 0; cause < RN_DAY_CAUSES; cause++)
        rn_day_printf(out, " %s %" PRIu64, rn_day_cause_name((rn_day_cause)cause), r->limited[cause]);
    rn_day_printf(out,
                  ". Plans %" PRIu64 ", of which do not fit %" PRIu64 ". Restarts in order %" PRIu64
                  ", by kill -9 %" PRIu64 ".</p>\n",
                  r->plans, r->infeasible, r->restarts, r->kills);
}

void rn_day_page(const rn_day_result *result, const char *title, rn_output *out)
{
    head_write(result, title, out);
    verdict_write(result, out);
    classes_table(result, out);
    refusals_table(result, out);
    calls_charts(result, out);
    quotas_table(result, out);
    budgets_charts(result, out);
    jobs_table(result, out);
    stretch_charts(result, out);
    put(out, "</body>\n</html>\n");
}
