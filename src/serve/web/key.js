// SPDX-License-Identifier: MIT
/* One scope key: what it stands at, what it has spent, who holds it, who waits, and what an operator may do. */

import { h } from "./dom.js";
import { instant, instantIn, number, plural, span } from "./format.js";
import { atTheEnd, bar } from "./limits.js";
import { budget } from "./charts.js";
import { dayBudget } from "./day.js";
import { table } from "./table.js";
import { KINDS, LEVELS, standing, taken } from "./words.js";

export const title = ([, limit, key]) => `${limit} at ${key}`;
export const needs = ([, limit, key]) => Object.values(paths(limit, key));

function paths(limit, key) {
    const query = new URLSearchParams({ limit, key }).toString().replaceAll("+", "%20");
    return {
        counter: `/v1/limits/${encodeURIComponent(limit)}/${encodeURIComponent(key)}`,
        leases: `/v1/leases?${query}`,
        waiters: `/v1/waiters?${query}`,
    };
}

/* ---- an operator's acts */

const ACTS = {
    pause: { text: "Pause", ask: "Nothing more is granted here until it is resumed. Calls that may wait, wait." },
    resume: { text: "Resume", ask: "Calls are granted again, those that wait first." },
    reset: {
        text: "Reset",
        ask: "What was spent and learned here is forgotten, and a penalty ends. Held leases stay held.",
    },
    grant: {
        text: "Grant more",
        ask: "Once, so many units more: of a quota for this window, of a rate up to its burst.",
    },
};

function act(store, row, verb, result) {
    const dialog = document.getElementById("confirm");
    const { text, ask } = ACTS[verb];
    const units = h("input", {
        id: "units",
        name: "units",
        type: "number",
        min: "0.000001",
        step: "any",
        required: true,
        value: "1",
    });
    const fault = h("p", { class: "fault", role: "alert" });
    const run = async (event) => {
        event.preventDefault();
        const body = { provider: row.provider };
        if (verb === "grant") body.units = Number(units.value);
        try {
            await store.operate(`${paths(row.limit, row.key).counter}/${verb}`, body);
            dialog.close();
            result(`${text}: done.`);
        } catch (error) {
            fault.textContent = error.message;
        }
    };
    dialog.replaceChildren(
        h(
            "form",
            { onsubmit: run },
            h("h2", { id: "confirm-title" }, `${text} ${row.limit}?`),
            h("p", null, "At ", h("code", null, row.key), ` of ${row.provider}. `, ask),
            verb === "grant" && h("label", { for: "units" }, "Units"),
            verb === "grant" && units,
            fault,
            h(
                "div",
                { class: "actions" },
                h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
                h("button", { class: "primary", id: "confirm-yes" }, text),
            ),
        ),
    );
    dialog.showModal();
}

function actions(store, row) {
    const verbs = [row.paused ? "resume" : "pause", "reset"];
    if (row.kind === "rate" || row.kind === "quota") verbs.push("grant");
    const said = (text) => {
        const place = document.getElementById("done");
        if (place) place.textContent = text;
    };
    return h(
        "div",
        { class: "actions" },
        verbs.map((verb) =>
            h(
                "button",
                { "data-act": verb, "data-key": verb, onclick: () => act(store, row, verb, said) },
                ACTS[verb].text,
            ),
        ),
        h("span", { id: "done", role: "status", class: "quiet", "data-keep": "" }),
    );
}

/* ---- facts */

function facts(row, status) {
    const rows = {
        rate: () => [
            ["Free now", number(row.available)],
            ["Burst", number(row.burst)],
            ["Of that, kept free as margin", number(row.margin)],
            ["One unit comes back in", span(row.unitMs)],
        ],
        concurrency: () => [
            ["Held", number(row.held)],
            ["Most at once", number(row.max)],
        ],
        share: () => [
            ["Held", number(row.held)],
            ["Ceiling", number(row.max)],
            ...(row.draining ? [["Draining", number(row.draining)]] : []),
        ],
        adaptive: () => [
            ["Held", number(row.held)],
            ["Stands at", number(row.current)],
            ...Object.entries(row.classes).map(([name, one]) => [
                `Class ${name}`,
                `${number(one.held)} held, ${number(one.reserved)} reserved`,
            ]),
        ],
        quota: () => quotaFacts(row, status),
    }[row.kind]();
    if (row.shadowed !== undefined) rows.push(["Would have been held back", number(row.shadowed)]);
    return h(
        "dl",
        { class: "facts" },
        rows.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
    );
}

function quotaFacts(row, status) {
    const found = [
        ["Spent here", number(row.used)],
        ["Spent by others", number(row.external)],
        ["Left", number(row.remaining)],
        ["Of that, reserve", number(row.reserve)],
        ["Usable", number(row.usable)],
        ["Maximum", number(row.max)],
    ];
    if (row.extra) found.push(["Granted by operators", number(row.extra)]);
    if (row.windowEnd) {
        const there = instantIn(row.windowEnd, row.timeZone);
        found.push([
            "Window ends",
            `${instant(row.windowEnd, status.now)}${there ? ` (${there})` : ""}, in ` +
                span(row.windowEnd - status.now),
        ]);
    }
    for (const [name, pace] of [
        ["At the pace of the last 15 min", row.recent],
        ["At the pace of its window", row.average],
    ]) {
        if (pace?.atEnd === undefined) continue;
        const end = pace.exhaustedAt ? `spent at ${instant(pace.exhaustedAt, status.now)}` : "not spent before its end";
        found.push([name, `${number(pace.perHour)} an hour, ${number(pace.atEnd)} at its end: ${end}`]);
    }
    return found;
}

/* ---- tenants, leases, waiters */

function cells(values, extra) {
    return h(
        "tr",
        extra,
        values.map(([value, numeric]) => h("td", { class: numeric ? "num" : "" }, value)),
    );
}

function tenants(row) {
    if (row.kind !== "share") return null;
    const rows = Object.entries(row.tenants).map(([name, one]) =>
        cells(
            [
                [name],
                [number(one.guarantee), true],
                [number(one.held), true],
                [number(one.own), true],
                [number(one.lent), true],
                [number(one.borrowed), true],
                [number(one.target), true],
                [span(one.worstReclaimMs), true],
            ],
            { "data-tenant": name },
        ),
    );
    return table(
        "tenants",
        "Tenants",
        [
            ["Tenant"],
            ["Guarantee", true],
            ["Held", true],
            ["Own", true],
            ["Lent", true],
            ["Borrowed", true],
            ["Fair part now", true],
            ["Longest reclaim", true],
        ],
        rows,
        "No tenant has asked.",
    );
}

function leases(list, status) {
    const rows = (list?.leases ?? []).map((one) =>
        cells(
            [
                [one.id],
                [one.tenant ?? one.account ?? "–"],
                [one.class ?? "–"],
                [one.priority],
                [number(one.cost), true],
                [span(status.now - one.grantedAt), true],
                [one.endsAt ? instant(one.endsAt, status.now) : "not declared", true],
                [one.overrun ? h("span", { class: "badge waiting" }, `over by ${span(status.now - one.endsAt)}`) : ""],
            ],
            { "data-lease": one.id },
        ),
    );
    return table(
        "leases",
        `Held: ${plural(rows.length, "lease")}`,
        [
            ["Lease"],
            ["Tenant or account"],
            ["Class"],
            ["Priority"],
            ["Cost", true],
            ["Age", true],
            ["Declared end", true],
            ["Overrun"],
        ],
        rows,
        "Nobody holds it now.",
    );
}

function waiters(list, status) {
    const rows = (list?.waiters ?? []).map((one) =>
        cells(
            [
                [one.id],
                [one.tenant ?? one.account ?? "–"],
                [one.class ?? "–"],
                [one.priority],
                [number(one.cost), true],
                [span(status.now - one.waitsSince), true],
                [one.deadline ? `in ${span(one.deadline - status.now)}` : "–", true],
            ],
            { "data-waiter": one.id },
        ),
    );
    return table(
        "waiters",
        `Waiting: ${plural(rows.length, "call")}`,
        [
            ["Request"],
            ["Tenant or account"],
            ["Class"],
            ["Priority"],
            ["Cost", true],
            ["Waits for", true],
            ["Gives up", true],
        ],
        rows,
        "Nobody waits for it.",
    );
}

export function view(store, [provider, limit, key]) {
    const at = paths(limit, key);
    const same = (one) => one.provider === provider && one.limit === limit && one.key === key;
    const { status } = store;
    const row = status.limits.find(same) ?? store.more[at.counter]?.limits?.find(same);
    const back = h("p", { class: "back" }, h("a", { href: "#/limits" }, "‹ All limits"));
    if (!row) {
        return h(
            "div",
            { class: "view" },
            back,
            h("h1", null, limit),
            h(
                "p",
                { class: "card empty" },
                "Nothing is counted at this key now: nothing has been asked there yet, or nothing is left of it.",
            ),
        );
    }
    const s = standing(row, status);
    const timeline = store.more[at.counter]?.limits?.find(same);
    return h(
        "div",
        { class: "view" },
        back,
        h(
            "div",
            { class: "title" },
            h("h1", null, row.limit, h("span", { class: "quiet" }, " at "), h("code", null, row.key)),
            h("span", { class: `badge ${s.level}` }, LEVELS[s.level]),
        ),
        h("p", { class: "quiet" }, `${row.provider}, ${KINDS[row.kind]}. `, store.day && atTheEnd(status)),
        h(
            "div",
            { class: "grid" },
            h(
                "section",
                { class: "card wide", "aria-labelledby": "stands" },
                h("h2", { id: "stands" }, "What it stands at"),
                bar(taken(row), s.level),
                h(
                    "p",
                    null,
                    s.level === "free"
                        ? "There is room."
                        : `${s.why[0].toUpperCase()}${s.why.slice(1)}; it eases ${s.eases.text}.`,
                ),
                facts(row, status),
                store.day ? null : actions(store, row),
            ),
            row.kind === "quota" && timeline && budget(timeline, status),
            store.day?.quotas.filter(same).map((quota) => dayBudget(store, quota)),
            tenants(row),
            !store.day && [leases(store.more[at.leases], status), waiters(store.more[at.waiters], status)],
        ),
        h("dialog", { id: "confirm", "aria-labelledby": "confirm-title", "data-keep": "" }),
    );
}
