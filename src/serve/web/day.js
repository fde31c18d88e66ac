// SPDX-License-Identifier: MIT
/* A simulated day: what it was, what came of it, and the charts that only a whole day has. */

import { h } from "./dom.js";
import { date, instant, instantIn, number, percent, plural, span, zone } from "./format.js";
import { plot, stacked } from "./plot.js";
import { range } from "./samples.js";
import { PRIORITIES, reason } from "./words.js";
import { table } from "./table.js";

const LINES = 8; /* jobs that the chart of intervals has */
const CAUSES = { quota: "a quota", rate: "a rate", concurrency: "places at once", other: "something else" };
const FAULTS = {
    latency: "answers took twenty times as long",
    errors: "half of the calls failed",
    clock: "the machine's clock was wrong",
    restart: "the gateway stopped in order, and came back",
    kill: "the gateway was killed, and came back",
    external: "another client used the quotas too",
};

export const title = () => "Day";
export const needs = () => [];

function sum(values) {
    return values.reduce((all, one) => all + one, 0);
}

function limited(one) {
    return sum(Object.values(one.rateLimited));
}

/* ---- what this is */

function when(ms, name) {
    const there = instantIn(ms, name);
    return `${date(ms)}${there ? ` (${there})` : ""}`;
}

function about({ title: file, day }) {
    const end = day.startedAt + day.spanMs;
    return h(
        "section",
        { class: "card wide", "aria-labelledby": "about" },
        h("h2", { id: "about" }, "A simulated day"),
        h(
            "p",
            null,
            "Nobody was called. The jobs of ",
            h("code", { id: "file" }, file),
            " were played against its own providers, in a time that only exists in the program: planner, limits and ",
            "the providers' judgement are the real ones.",
        ),
        h(
            "dl",
            { class: "facts" },
            [
                ["From", when(day.startedAt, day.zone)],
                ["To", when(end, day.zone)],
                ["That is", span(day.spanMs)],
                ["Times are in", day.zone === zone ? zone : `${zone}; the quotas' own zone is ${day.zone}`],
                ["Seed", `${day.seed}: the same file, options and seed give the same day, to the byte`],
                [
                    "Faults",
                    day.played.length > 0 ? day.played.map((one) => `${one}: ${FAULTS[one]}`).join("; ") : "none",
                ],
                ["Hash of all decisions", h("code", { id: "hash" }, day.hash)],
            ].map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
        ),
    );
}

/* ---- what came of it */

function tiles(day) {
    const of = (pick) => sum(day.priorities.map(pick));
    const causes = Object.entries(day.rateLimited).filter(([, count]) => count > 0);
    return h(
        "dl",
        { class: "tiles" },
        [
            ["Wanted", of((one) => one.wanted), "calls, at the intervals that jobs ask for"],
            ["Sent", of((one) => one.sent), `${number(of((one) => one.retries))} of them once more`],
            ["Answered", of((one) => one.answered), "with success"],
            ["Refused", of((one) => one.refused), "by ration, before they left"],
            [
                "429s received",
                sum(Object.values(day.rateLimited)),
                causes.length > 0
                    ? causes.map(([name, count]) => `${CAUSES[name]} ${number(count)}`).join(", ")
                    : "none",
            ],
            ["Failed", of((one) => one.failed + one.broken), "by the provider, or broken off"],
        ].map(([name, value, note]) =>
            h(
                "div",
                { class: "tile" },
                h("dt", null, name),
                h("dd", { "data-value": name }, number(value)),
                h("dd", { class: "note" }, note),
            ),
        ),
    );
}

function classes(day) {
    return table(
        "classes",
        "Calls by priority",
        [
            ["Priority"],
            ...["Wanted", "Sent", "Again", "Answered", "Refused", "429s", "Failed", "Wait, half below"].map((name) => [
                name,
                true,
            ]),
            ["99 of 100 below", true],
            ["Longest wait", true],
        ],
        day.priorities.map((one) => [
            one.priority,
            number(one.wanted),
            number(one.sent),
            number(one.retries),
            number(one.answered),
            number(one.refused),
            number(limited(one)),
            number(one.failed + one.broken),
            span(one.waitP50Ms),
            span(one.waitP99Ms),
            span(one.waitMaxMs),
        ]),
    );
}

function refusals(day) {
    const names = [...new Set(day.priorities.flatMap((one) => Object.keys(one.refusals)))];
    return table(
        "refusals",
        "Refused by ration",
        [["Because"], ...day.priorities.map((one) => [one.priority, true])],
        names.map((name) => [reason(name), ...day.priorities.map((one) => number(one.refusals[name] ?? 0))]),
        "Nobody has been refused.",
    );
}

function quotas(day) {
    return table(
        "quotas",
        "Quotas, as their providers counted",
        [
            ["Quota"],
            ["Scope key"],
            ...["Maximum", "Usable", "Reserve", "Windows", "Spent of what may be planned", "By others"].map((name) => [
                name,
                true,
            ]),
            ["Left", true],
            ["429s", true],
            ["Overspent", true],
        ],
        day.quotas.map((one) => [
            one.limit,
            h("code", null, one.key),
            number(one.max),
            number(one.usable),
            number(one.reserve),
            one.windows > 0 ? number(one.windows) : one.rolling ? "rolling" : "none whole",
            one.windows > 0 ? percent(one.spentShare) : "–",
            number(one.external),
            number(one.left),
            number(one.refused),
            number(one.overspent),
        ]),
    );
}

function by(ms) {
    return ms ? ` by ${ms > 0 ? "+" : "−"}${span(Math.abs(ms))}` : "";
}

function episodes({ day, status }) {
    return table(
        "episodes",
        "What went wrong, and when",
        [["From"], ["For", true], ["What"]],
        [...day.faults]
            .sort((a, b) => a.fromMs - b.fromMs)
            .map((one) => [
                instant(day.startedAt + one.fromMs, status.now),
                one.toMs > one.fromMs ? span(one.toMs - one.fromMs) : "–",
                `${one.kind}: ${FAULTS[one.kind]}${by(one.byMs)}`,
            ]),
        "Nothing: every provider answered, and the gateway ran all day.",
    );
}

export function view(store) {
    const { day } = store;
    return h(
        "div",
        { class: "view" },
        h(
            "h1",
            { class: `headline ${day.passed ? "ok" : "bad"}` },
            day.passed
                ? "No provider refused a call for a quota's sake, and no share of one was overdrawn."
                : "A provider refused calls for a quota's sake, or a share was overdrawn.",
        ),
        tiles(day),
        h("div", { class: "grid" }, about(store), classes(day), refusals(day), quotas(day), episodes(store)),
    );
}

/* ---- charts */

export function quotaName(one) {
    return `${one.limit} at ${one.key} (${one.provider})`;
}

/** What a quota had spent at each look, against what may be spent; with the places where something went wrong. */
export function dayBudget(store, quota, ...above) {
    const { day, status } = store;
    const times = quota.points.map((one) => (day.startedAt + one.atMs) / 1000);
    const flat = (value) => times.map(() => value);
    const wrong = times.map((at, i) => {
        const from = i > 0 ? times[i - 1] : -Infinity;
        const found = day.faults.some((one) => {
            const begin = (day.startedAt + one.fromMs) / 1000;
            return begin <= at && (day.startedAt + one.toMs) / 1000 > from;
        });
        return found ? 0 : null;
    });
    const kept = quota.usable - quota.reserve;
    const series = [
        {
            name: quota.rolling ? "Spent by anybody" : "Spent by us",
            fill: true,
            dash: [],
            values: quota.points.map((one) => one.spent),
        },
        !quota.rolling && { name: "By others", values: quota.points.map((one) => one.external) },
        { name: "Usable but for the reserve", width: 1.5, dash: [12, 4], values: flat(kept) },
        { name: "Maximum", width: 1.5, dash: [], values: flat(quota.max) },
        wrong.some((one) => one === 0) && {
            name: "Something went wrong",
            points: true,
            silent: true,
            colour: "--bad",
            values: wrong,
        },
    ].filter(Boolean);
    return plot(
        {
            id: "budget",
            wide: true,
            name: `Budget: ${quota.limit} at ${quota.key}`,
            series: series.map(({ values, ...one }, index) => ({ colour: `--series-${index + 1}`, ...one })),
            current: { data: [times, ...series.map((one) => one.values)], range: range(status) },
            empty: "Nothing was spent.",
        },
        above,
    );
}

function slots(store, id, name, member, empty) {
    const { day, status } = store;
    const shown = PRIORITIES.map((priority) => day.priorities.find((one) => one.priority === priority)).filter(
        (one) => one && sum(one[member]) > 0,
    );
    const width = day.spanMs / (shown[0]?.[member].length ?? 1);
    const rows = shown.map((one) => one[member]);
    const series = shown.map((one) => ({
        name: one.priority,
        bars: true,
        colour: `--series-${PRIORITIES.indexOf(one.priority) + 1}`,
    }));
    return plot({
        id,
        name,
        series: series.reverse(),
        current: {
            data: [(rows[0] ?? []).map((_, at) => (day.startedAt + (at + 1) * width) / 1000), ...stacked(rows)],
            plain: [...rows].reverse(),
            range: range(status),
        },
        empty,
    });
}

export function callsByPriority(store) {
    return [
        slots(store, "sent", "Calls sent, by priority", "sentBySlot", "No call was sent."),
        slots(
            store,
            "turned-away",
            "Calls refused by ration, by priority",
            "refusedBySlot",
            "Nobody has been refused.",
        ),
    ];
}

/* ---- the plan */

/** How many times as long as desired the intervals of jobs were: those that were stretched most. */
function stretches(store) {
    const { day, status } = store;
    const shown = [...day.jobs].sort((a, b) => b.stretchMost - a.stretchMost).slice(0, LINES);
    const times = [...new Set([...shown.flatMap((one) => one.intervals.map((at) => at.atMs)), day.spanMs])].sort(
        (a, b) => a - b,
    );
    const columns = shown.map((one) => {
        let at = 0;
        return times.map((ms) => {
            while (at + 1 < one.intervals.length && one.intervals[at + 1].atMs <= ms) at++;
            return (one.intervals[at]?.effectiveMs ?? one.desiredMs) / one.desiredMs;
        });
    });
    return plot({
        id: "stretches",
        wide: true,
        name: "How many times as long as desired intervals were",
        series: shown.map((one) => ({ name: one.name, steps: true })),
        current: { data: [times.map((ms) => (day.startedAt + ms) / 1000), ...columns], range: range(status) },
        empty: "There are no jobs.",
        least: 2,
    });
}

export function jobsOfTheDay(store) {
    const { day } = store;
    return [
        table(
            "day-jobs",
            "Jobs over the whole day",
            [
                ["Job"],
                ["Priority"],
                ["Desired", true],
                ["At the end", true],
                ["Stretched most", true],
                ["Runs", true],
            ].concat([["Calls", true], ["Bound by"]]),
            day.jobs.map((one) => [
                one.name,
                one.priority,
                span(one.desiredMs),
                span(one.effectiveMs),
                one.stretchMost > 1 ? `× ${number(one.stretchMost)}` : "never",
                number(one.runs),
                number(one.requests + one.retries),
                one.boundBy ?? "nothing",
            ]),
        ),
        stretches(store),
        plural(day.plans, "plan") && h("p", { class: "caption" }, plansMade(day)),
    ];
}

function plansMade(day) {
    return (
        `${plural(day.plans, "plan was", "plans were")} made, of which ${number(day.infeasiblePlans)} did not fit; ` +
        `the gateway stopped in order ${plural(day.restarts, "time")} and was killed ${plural(day.kills, "time")}.`
    );
}
