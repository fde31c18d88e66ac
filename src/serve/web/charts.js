// SPDX-License-Identifier: MIT
/* How it came to this, and where it will end: budgets, adaptive limits, tenants, waits, refusals, outcomes. */

import { callsByPriority, dayBudget, quotaName } from "./day.js";
import { h, redraw, svg } from "./dom.js";
import { instant, number, span } from "./format.js";
import { plot, stacked } from "./plot.js";
import { counts, frame, lines, range, rowName, since, throttles, waits } from "./samples.js";
import { PRIORITIES, reason, rowKey, taken } from "./words.js";

const chosen = { quota: "", adaptive: "", share: "", before: false, measure: "held" };
const MEASURES = {
    held: ["Held", "Held by each tenant", (one) => one.held],
    borrowed: ["Borrowed", "Borrowed by each tenant", (one) => one.borrowed],
    lent: ["Lent", "Lent by each tenant", (one) => one.lent],
    deficit: ["Deficit", "Deficit of each tenant, unit-seconds", (one) => one.deficitUnitMs / 1000],
};

export const title = () => "Charts";

export function needs(args, store) {
    const row = store.status && pick(store.status, "quota");
    return row ? [path(row)] : [];
}

function path(row) {
    return `/v1/limits/${encodeURIComponent(row.limit)}/${encodeURIComponent(row.key)}`;
}

/* ---- which key a chart is about */

/** Before anybody has chosen: the one with the least left. */
function pick(status, kind) {
    const rows = status.limits.filter((row) => row.kind === kind);
    const fullest = rows.reduce((best, row) => (best && taken(best).fill >= taken(row).fill ? best : row), null);
    const found = rows.find((row) => rowKey(row) === chosen[kind]);
    if (!found && fullest) chosen[kind] = rowKey(fullest);
    return found ?? fullest;
}

function chooser(status, kind, label) {
    const rows = status.limits.filter((row) => row.kind === kind).slice(0, 500);
    if (rows.length < 2) return null;
    return h(
        "select",
        {
            "aria-label": label,
            onchange: (event) => {
                chosen[kind] = event.target.value;
                redraw();
            },
        },
        rows.map((row) => h("option", { value: rowKey(row), selected: rowKey(row) === chosen[kind] }, rowName(row))),
    );
}

/* ---- a budget against its projection */

/** Sums of the steps of a timeline that lie between two instants: [instant, units] each, from 0 on. */
function sums({ start, widthMs, units }, from, to) {
    const points = [];
    units.forEach((count, at) => {
        const end = start + (at + 1) * widthMs;
        if (end <= from || end - widthMs >= to) return;
        if (points.length === 0) points.push([Math.max(from, end - widthMs), 0]);
        points.push([Math.min(end, to), points[points.length - 1][1] + count]);
    });
    return points;
}

/** From what is spent now, straight to what will be at the window's end. */
function projected(row, pace, now) {
    return pace?.atEnd === undefined || !row.windowEnd
        ? []
        : [
              [now, row.used],
              [row.windowEnd, pace.atEnd],
          ];
}

function merged(columns) {
    const times = [...new Set(columns.flatMap((points) => points.map(([at]) => at)))].sort((a, b) => a - b);
    return [
        times.map((at) => at / 1000),
        ...columns.map((points) => {
            const known = new Map(points);
            return times.map((at) => known.get(at) ?? null);
        }),
    ];
}

function exhaustion(row, status) {
    const ends = [
        ["at the pace of the last 15 minutes", row.recent],
        ["at the pace of its window", row.average],
    ]
        .filter(([, pace]) => pace?.exhaustedAt)
        .map(
            ([name, pace]) =>
                `${name} all but its reserve is spent at ${instant(pace.exhaustedAt, status.now)}, ` +
                `in ${span(pace.exhaustedAt - status.now)}`,
        );
    const left = `${number(Math.max(0, row.remaining - row.reserve))} of ${number(row.usable)} left above the reserve`;
    return ends.length > 0 ? `${left}; ${ends.join("; ")}.` : `${left}; it lasts to the window's end at either pace.`;
}

/** A calendar window: what was spent, both projections, and the lines that they must not cross. */
function windowSeries(row, status) {
    const { timeline, windowStart: first, windowEnd: end } = row;
    const here = sums(timeline, first, status.now);
    if (here.length > 0) here[here.length - 1] = [status.now, row.used];
    const kept = row.usable - row.reserve;
    const from = chosen.before ? timeline.start : first;
    const flat = (value) => [
        [from, value],
        [end, value],
    ];
    const gone = row.recent?.exhaustedAt;
    return [
        { name: "Spent here", fill: true, column: here, dash: [] },
        { name: "In the window before", column: chosen.before ? sums(timeline, timeline.start, first) : [] },
        { name: "At the pace of the last 15 min", column: projected(row, row.recent, status.now), dash: [6, 4] },
        { name: "At the pace of its window", column: projected(row, row.average, status.now), dash: [2, 3] },
        { name: "Usable but for the reserve", column: flat(kept), width: 1.5, dash: [12, 4] },
        { name: "Usable", column: flat(row.usable), width: 1.5, dash: [] },
        { name: "Spent but for the reserve", points: true, colour: "--bad", column: gone <= end ? [[gone, kept]] : [] },
    ]
        .map((one, index) => ({ gaps: true, colour: `--series-${index + 1}`, ...one }))
        .filter((one) => one.column.length > 0);
}

function windowPlot(row, status) {
    const found = windowSeries(row, status);
    const from = chosen.before ? row.timeline.start : row.windowStart;
    return {
        series: found.map(({ column, ...one }) => one),
        most: 1.25 * Math.max(row.usable, row.used),
        current: { data: merged(found.map((one) => one.column)), range: [from / 1000, row.windowEnd / 1000] },
    };
}

/** A rolling window has no end to project to: what was spent in each step. */
function rollingPlot({ timeline: { start, widthMs, units } }, status) {
    const times = units.map((_, at) => (start + (at + 1) * widthMs) / 1000);
    return {
        series: [{ name: `Spent in each ${span(widthMs)}`, bars: true }],
        current: { data: [times, units], range: [start / 1000, Math.max(status.now / 1000, times.at(-1))] },
    };
}

function whetherBefore() {
    return h(
        "label",
        { class: "check" },
        h("input", {
            type: "checkbox",
            checked: chosen.before,
            onchange: (event) => {
                chosen.before = event.target.checked;
                redraw();
            },
        }),
        "with the window before",
    );
}

/** The chart of a quota; `row` is of its own page, which alone has the timeline. */
export function budget(row, status, ...above) {
    const timed = row.timeline !== undefined && row.timeline.units.length > 0;
    const what = !timed ? { series: [], current: { data: [[]] } } : row.windowEnd ? windowPlot : rollingPlot;
    const spec = timed ? what(row, status) : what;
    return h(
        "div",
        { class: "wide budget" },
        plot(
            { id: "budget", name: `Budget: ${row.limit} at ${row.key}`, empty: "Nothing has been spent yet.", ...spec },
            timed && row.windowEnd && whetherBefore(),
            above,
        ),
        timed && h("p", { class: "caption" }, exhaustion(row, status)),
    );
}

function budgets(store) {
    const { status } = store;
    const row = pick(status, "quota");
    if (!row) return empty("budget", "Budget", "No quota is counted.");
    const full = store.more[path(row)]?.limits?.find((one) => rowKey(one) === rowKey(row));
    return budget(full ?? row, status, chooser(status, "quota", "Quota"));
}

/** The quotas of a simulated day; before anybody has chosen, the one that a provider has most of its part spent. */
function dayBudgets(store) {
    const all = store.day.quotas;
    const named = all.find((one) => quotaName(one) === chosen.quota);
    const part = (one) => (one.max - one.left) / Math.max(one.max, 1);
    const shown = named ?? all.reduce((best, one) => (best && part(best) >= part(one) ? best : one), null);
    if (!shown) return empty("budget", "Budget", "No quota is counted.");
    const choose = h(
        "select",
        {
            "aria-label": "Quota",
            onchange: (event) => {
                chosen.quota = event.target.value;
                redraw();
            },
        },
        all.map((one) => h("option", { value: quotaName(one), selected: one === shown }, quotaName(one))),
    );
    return dayBudget(store, shown, all.length > 1 && choose);
}

function empty(id, name, words) {
    return h(
        "section",
        { class: "card chart", "aria-labelledby": `${id}-none` },
        h("h2", { id: `${id}-none` }, name),
        h("p", { class: "empty" }, words),
    );
}

/* ---- an adaptive limit */

function adaptive(status, day) {
    const row = pick(status, "adaptive");
    if (!row) return !day && empty("adaptive", "Adaptive limit", "No limit is adaptive.");
    const name = rowName(row);
    const [times, current, held] = lines([
        (one) => one.adaptive.get(name)?.current,
        (one) => one.adaptive.get(name)?.held,
    ]);
    const marks = merged([times.map((at, i) => [at * 1000, i]), throttles(row).map((one) => [one.at, one.current])]);
    const at = marks[1];
    const carried = (values) => {
        let now = null;
        return at.map((i) => (i === null ? now : (now = values[i])));
    };
    return plot(
        {
            id: "adaptive",
            name: "Adaptive limit, and where it went down",
            series: [
                { name: "Stands at", steps: true },
                { name: "Held", steps: true, fill: true, dash: [] },
                { name: "Went down", points: true, colour: "--bad" },
            ],
            current: { data: [marks[0], carried(current), carried(held), marks[2]], range: range(status) },
            empty: "Nothing is known yet.",
        },
        chooser(status, "adaptive", "Adaptive limit"),
    );
}

/* ---- tenants */

function loans(row) {
    const tenants = Object.entries(row.tenants);
    const lent = tenants.filter(([, one]) => one.lent > 0).map(([name, one]) => ({ name, units: one.lent }));
    const borrowed = tenants
        .filter(([, one]) => one.borrowed > 0)
        .map(([name, one]) => ({ name, units: one.borrowed }));
    if (lent.length === 0) return h("p", { class: "empty" }, "Nothing is on loan.");
    const total = Math.max(...[lent, borrowed].map((side) => side.reduce((sum, one) => sum + one.units, 0)));
    const height = Math.max(60, 28 * Math.max(lent.length, borrowed.length));
    const bands = (side, left) => {
        let y = 0;
        return side.map(({ name, units }, index) => {
            const size = (units / total) * height;
            const [top, middle] = [y, y + size / 2];
            y += size;
            const edge = left ? 130 : 370;
            const path =
                `M${edge} ${top} C${(edge + 250) / 2} ${top} ${(edge + 250) / 2} ${top} 250 ${top} V${top + size} ` +
                `C${(edge + 250) / 2} ${top + size} ${(edge + 250) / 2} ${top + size} ${edge} ${top + size} Z`;
            return [
                svg("path", { d: path, class: `band band-${index % 4} ${left ? "lends" : "borrows"}` }),
                svg(
                    "text",
                    { x: left ? 122 : 378, y: middle + 4, "text-anchor": left ? "end" : "start" },
                    `${name} ${number(units)}`,
                ),
            ];
        });
    };
    const words =
        `${lent.map((one) => `${one.name} lends ${number(one.units)}`).join(", ")}; ` +
        borrowed.map((one) => `${one.name} borrows ${number(one.units)}`).join(", ");
    return h(
        "div",
        { class: "loans" },
        svg(
            "svg",
            { viewBox: `0 0 500 ${height}`, role: "img", "aria-label": words },
            bands(lent, true),
            bands(borrowed, false),
        ),
    );
}

function holding([name, one]) {
    const most = Math.max(one.held, one.guarantee, 1);
    return h(
        "tr",
        { "data-tenant": name },
        h("th", { scope: "row" }, name),
        h(
            "td",
            null,
            h("span", {
                class: "against",
                "aria-hidden": "true",
                vars: { "--held": `${(100 * one.held) / most}%`, "--guarantee": `${(100 * one.guarantee) / most}%` },
            }),
        ),
        h("td", { class: "num", "data-held": one.held }, number(one.held)),
        h("td", { class: "num" }, number(one.guarantee)),
        h("td", { class: "num" }, `${number(one.deficitUnitMs / 1000)}`),
    );
}

function measures() {
    return h(
        "select",
        {
            "aria-label": "What of the tenants",
            id: "measure",
            onchange: (event) => {
                chosen.measure = event.target.value;
                redraw();
            },
        },
        Object.entries(MEASURES).map(([value, [text]]) =>
            h("option", { value, selected: value === chosen.measure }, text),
        ),
    );
}

function tenants(status, day) {
    const row = pick(status, "share");
    if (!row) return !day && empty("tenants", "Tenants", "No ceiling is shared.");
    const name = rowName(row);
    const names = Object.keys(row.tenants).slice(0, 8);
    const [, title, measure] = MEASURES[chosen.measure];
    const of = (one, tenant) => one.share.get(name)?.tenants[tenant];
    return [
        plot(
            {
                id: "tenants",
                name: title,
                series: names.map((tenant) => ({ name: tenant, steps: true })),
                current: {
                    data: lines(
                        names.map((tenant) => (one) => {
                            const found = of(one, tenant);
                            return found ? measure(found) : null;
                        }),
                    ),
                    range: range(status),
                },
                empty: "No tenant has asked.",
            },
            measures(),
            chooser(status, "share", "Shared ceiling"),
        ),
        h(
            "section",
            { class: "card", "aria-labelledby": "guarantees" },
            h("h2", { id: "guarantees" }, "Held against guarantee"),
            h(
                "div",
                { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "guarantees" },
                h(
                    "table",
                    null,
                    h(
                        "thead",
                        null,
                        h(
                            "tr",
                            null,
                            h("th", { scope: "col" }, "Tenant"),
                            h("th", { scope: "col" }, ""),
                            ["Held", "Guarantee", "Deficit, unit-seconds"].map((text) =>
                                h("th", { scope: "col", class: "num" }, text),
                            ),
                        ),
                    ),
                    h("tbody", null, Object.entries(row.tenants).slice(0, 50).map(holding)),
                ),
            ),
            h("h2", { class: "second" }, "Loans now, from lender to borrower"),
            loans(row),
        ),
    ];
}

/* ---- waits, refusals, outcomes */

/** Of a simulated day they are known exactly, look by look. */
function waited(store, priority, part) {
    if (!store.day) return waits(priority, part);
    const values = store.waits[priority].slice(1).map((one) => one?.[part === 0.5 ? 0 : 1] ?? null);
    return { times: lines([])[0].slice(1), values };
}

function waitChart(store) {
    const { status } = store;
    const found = PRIORITIES.flatMap((priority, index) => {
        const colour = `--series-${index + 1}`;
        return [
            { name: `${priority} p50`, colour, dash: [4, 4], width: 1.5, ...waited(store, priority, 0.5) },
            { name: `${priority} p99`, colour, dash: [], ...waited(store, priority, 0.99) },
        ];
    }).filter((one) => one.values.some((value) => value !== null));
    return plot({
        id: "waits",
        name: "Waits by priority",
        series: found.map(({ name, colour, dash, width }) => ({ name, colour, dash, width, gaps: true })),
        current: { data: [found[0]?.times ?? [], ...found.map((one) => one.values)], range: range(status) },
        format: span,
        empty: "No call has been granted meanwhile.",
        least: 10,
    });
}

const COLOURS = { throttled: "--series-2", failure: "--bad", cancelled: "--quiet" };

function bars(id, name, status, found, words, empty) {
    const series = found.names.map((one, index) => ({
        name: words(one),
        bars: true,
        colour: COLOURS[one] ?? `--series-${(index % 8) + 1}`,
    }));
    return plot({
        id,
        name,
        series: series.reverse(),
        current: {
            data: [found.times, ...stacked(found.rows)],
            plain: [...found.rows].reverse(),
            range: range(status),
        },
        empty,
    });
}

export function view(store) {
    const { status, day } = store;
    return h(
        "div",
        { class: "view" },
        h("h1", null, "Charts"),
        h(
            "p",
            { class: "quiet" },
            day
                ? `The whole simulated day, from ${instant(day.startedAt, status.now)} on, in steps of ` +
                      `${span(frame.binMs)}.`
                : `The last 15 minutes in steps of ${span(frame.binMs)}, as far as they are known: since ` +
                      `${instant(since() ?? status.now, status.now)}. Budgets as far back as their window.`,
        ),
        h(
            "div",
            { class: "grid" },
            day ? [dayBudgets(store), callsByPriority(store)] : budgets(store),
            adaptive(status, day),
            waitChart(store),
            tenants(status, day),
            bars(
                "outcomes",
                "Calls by outcome",
                status,
                counts("outcomes", ["success", "throttled", "failure", "cancelled"]),
                (one) => one,
                "No call has ended meanwhile.",
            ),
            bars(
                "refusals",
                "Refusals by reason",
                status,
                counts("refusals"),
                reason,
                "Nobody has been refused meanwhile.",
            ),
        ),
    );
}
