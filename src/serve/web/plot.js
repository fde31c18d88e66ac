// SPDX-License-Identifier: MIT
/*
 * uPlot inside a page that is drawn again every second.
 *
 * A view says what a plot shows (`plot`), and gets a place for it that `morph` leaves alone; `attach` then makes the
 * plot there, gives it new data, or makes it anew where its series or the colours have changed. What a canvas shows is
 * told once more in words: a legend with the last values, and a table.
 */

import { h, redraw } from "./dom.js";
import { instant, number } from "./format.js";
import { frame } from "./samples.js";

const HEIGHT = 220;
const TABLE = 12; /* last points that the table has, of what goes on */
const DAY = 26 * 3600; /* seconds; more than that needs more than hours */
const DASHES = [[], [6, 4], [2, 3], [9, 4, 2, 4], [12, 4], [1, 3], [6, 2, 2, 2], [3, 6]];

const wanted = new Map(); /* what the view that was drawn last has asked for, by id */
const made = new Map(); /* id: { plot, host, shape } */
const opened = new Set(); /* tables, by id: that of a whole day is long, and made when somebody wants it */

function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(format) {
    return {
        stroke: colour("--quiet"),
        grid: { stroke: colour("--line"), width: 1 },
        ticks: { stroke: colour("--line"), width: 1, size: 4 },
        font: "12px system-ui, sans-serif",
        values: format,
        size: format ? 64 : 32,
    };
}

function clock(u, ticks, space, found, step) {
    const parts = { hour: "2-digit", minute: "2-digit" };
    if (step < 60) parts.second = "2-digit";
    if (u.scales.x.max - u.scales.x.min > DAY) Object.assign(parts, { weekday: "short", day: "numeric" });
    return ticks.map((at) => new Date(at * 1000).toLocaleString(undefined, parts));
}

function series(one, index) {
    const stroke = colour(one.colour ?? `--series-${(index % 8) + 1}`);
    const common = {
        label: one.name,
        stroke,
        width: one.width ?? 2,
        dash: dash(one, index),
        points: { show: false },
        spanGaps: one.gaps ?? false,
    };
    if (one.bars) {
        return { ...common, width: 0, fill: stroke, paths: uPlot.paths.bars({ size: [0.85, 40], align: -1 }) };
    }
    if (one.points)
        return { ...common, width: 0, paths: () => null, points: { show: true, size: 9, fill: stroke, width: 0 } };
    return {
        ...common,
        fill: one.fill ? `${stroke}26` : undefined,
        paths: one.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
    };
}

function options(spec, width) {
    return {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { size: 7 } },
        scales: {
            x: { time: true, range: () => spec.current.range },
            y: {
                range: (u, low, high) => [
                    0,
                    Math.min(spec.most ?? Infinity, Math.max(spec.least ?? 1, (high ?? 1) * 1.1)),
                ],
            },
        },
        axes: [{ ...axis(), values: clock, size: 32, space: 96 }, axis((u, ticks) => ticks.map(spec.format))],
        series: [{}, ...spec.series.map(series)],
        hooks: { setCursor: [(u) => point(spec, u)] },
    };
}

/** The values under the pointer, in the legend; without a pointer, the last ones. */
function point(spec, u) {
    const legend = document.getElementById(`${spec.id}-legend`);
    if (!legend) return;
    const at = u.cursor.idx;
    legend.querySelectorAll("[data-series]").forEach((element, index) => {
        element.textContent = at === null || at === undefined ? last(spec, index) : shownAt(spec, index, at);
    });
}

function shownAt(spec, index, at) {
    if (spec.series[index].silent) return "";
    const value = (spec.current.plain ?? spec.current.data.slice(1))[index]?.[at];
    return value === null || value === undefined ? "–" : spec.format(value);
}

function last(spec, index) {
    const values = (spec.current.plain ?? spec.current.data.slice(1))[index] ?? [];
    for (let at = values.length - 1; at >= 0; at--) {
        if (values[at] !== null && values[at] !== undefined) return shownAt(spec, index, at);
    }
    return "–";
}

/** Bars on top of each other: what uPlot draws are the sums, the highest first. */
export function stacked(rows) {
    const sums = rows.map((row) => [...row]);
    for (let i = 1; i < sums.length; i++) sums[i] = sums[i].map((value, at) => value + sums[i - 1][at]);
    return sums.reverse();
}

function inWords(spec) {
    return `${spec.name}: ${spec.series.map((one, index) => `${one.name} ${last(spec, index)}`).join(", ")}`;
}

function dash(one, index) {
    return one.dash ?? DASHES[one.bars ? 0 : index % 8];
}

function swatch(one, index) {
    const look = one.bars ? "bars" : one.points ? "points" : dash(one, index).length > 0 ? "dashed" : "";
    return h("span", {
        class: `swatch ${look}`,
        "aria-hidden": "true",
        vars: { "--swatch": `var(${one.colour ?? `--series-${(index % 8) + 1}`})` },
    });
}

function legend(spec) {
    return h(
        "ul",
        { class: "legend", id: `${spec.id}-legend` },
        spec.series.map((one, index) =>
            h(
                "li",
                null,
                swatch(one, index),
                `${one.name} `,
                h("b", { "data-series": one.name, "data-keep": made.has(spec.id) ? "" : null }, last(spec, index)),
            ),
        ),
    );
}

function toggle(id, open) {
    if (open === opened.has(id)) return;
    if (open) opened.add(id);
    else opened.delete(id);
    redraw();
}

function table(spec) {
    const rows = spec.current.plain ?? spec.current.data.slice(1);
    const times = spec.current.data[0];
    const from = frame.whole ? 0 : Math.max(0, times.length - TABLE);
    const end = 1000 * spec.current.range[1];
    const shown = frame.whole && !opened.has(spec.id) ? [] : times.slice(from);
    return h(
        "details",
        { class: "as-table", ontoggle: frame.whole ? ({ target }) => toggle(spec.id, target.open) : null },
        h("summary", null, "As a table"),
        h(
            "div",
            { class: "scroll", tabindex: "0", role: "region", "aria-label": `${spec.name}, as a table` },
            h(
                "table",
                null,
                h(
                    "thead",
                    null,
                    h(
                        "tr",
                        null,
                        h("th", { scope: "col" }, "At"),
                        spec.series.map((one) => h("th", { scope: "col", class: "num" }, one.name)),
                    ),
                ),
                h(
                    "tbody",
                    null,
                    shown.map((at, index) =>
                        h(
                            "tr",
                            null,
                            h("th", { scope: "row" }, instant(at * 1000, end)),
                            rows.map((row) =>
                                h(
                                    "td",
                                    { class: "num" },
                                    row[from + index] === null || row[from + index] === undefined
                                        ? "–"
                                        : spec.format(row[from + index]),
                                ),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    );
}

/**
 * A chart: `id`, `name`, `series` ({ name, bars, steps, points, fill, colour, silent: its places say all }), `current`
 * ({ data, range, plain }: as uPlot wants it, and where bars are stacked what each has by itself), `format` of a value,
 * `empty`: the words where there is nothing to draw.
 */
export function plot(spec, ...above) {
    const nothing = spec.series.length === 0 || spec.current.data[0].length === 0;
    if (nothing) wanted.delete(spec.id);
    else wanted.set(spec.id, { format: number, ...spec });
    const whole = wanted.get(spec.id);
    return h(
        "section",
        { class: `card chart ${spec.wide ? "wide" : ""}`, "aria-labelledby": `${spec.id}-name` },
        h("div", { class: "chart-head" }, h("h2", { id: `${spec.id}-name` }, spec.name), above),
        nothing
            ? h("p", { class: "empty" }, spec.empty)
            : [
                  h("div", {
                      class: "plot",
                      "data-plot": spec.id,
                      "data-keep": "",
                      "data-key": `plot ${spec.id}`,
                      role: "img",
                      "aria-label": inWords(whole),
                  }),
                  legend(whole),
                  table(whole),
              ],
    );
}

function drop(id) {
    made.get(id)?.plot.destroy();
    made.delete(id);
}

function update(host, spec) {
    const width = Math.max(200, host.clientWidth);
    const shape = JSON.stringify([spec.series, width, colour("--page")]);
    const before = made.get(spec.id);
    if (before && before.host === host && before.shape === shape) {
        before.spec.current = spec.current;
        before.plot.setData(spec.current.data);
        point(before.spec, before.plot);
        return;
    }
    drop(spec.id);
    const own = { ...spec };
    made.set(spec.id, { host, shape, spec: own, plot: new uPlot(options(own, width), spec.current.data, host) });
}

/** The page has been drawn: its plots are made, or brought up to date. */
export function attach() {
    const here = new Set();
    document.querySelectorAll("[data-plot]").forEach((host) => {
        const spec = wanted.get(host.dataset.plot);
        here.add(host.dataset.plot);
        if (spec && window.uPlot) update(host, spec);
    });
    [...made.keys()].filter((id) => !here.has(id)).forEach(drop);
}
