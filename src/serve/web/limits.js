// SPDX-License-Identifier: MIT
/*
 * Every scope key. Only the rows in sight are in the page: thousands of keys cost as much as thirty.
 *
 * What one has searched, sorted and scrolled stays while the numbers move.
 */

import { h, redraw } from "./dom.js";
import { instant, number, percent, plural } from "./format.js";
import { KINDS, LEVELS, ORDER, rowKey, standing, taken } from "./words.js";

const ROW = 44; /* pixels, as the style sheet has it */
const AROUND = 8; /* rows beyond those in sight */

const chosen = { text: "", kind: "", limited: false, sort: "fill", down: true, top: 0, height: 600 };

export const title = () => "Limits";
export const needs = () => [];

const COLUMNS = [
    { name: "limit", text: "Limit", of: (one) => one.row.limit },
    { name: "key", text: "Scope key", of: (one) => one.row.key },
    { name: "provider", text: "Provider", of: (one) => one.row.provider, wide: true },
    { name: "kind", text: "Kind", of: (one) => KINDS[one.row.kind], wide: true },
    { name: "fill", text: "Taken", of: (one) => one.fill },
    { name: "waiting", text: "Waiting", of: (one) => one.row.waiting, numeric: true },
    { name: "level", text: "State", of: (one) => -ORDER.indexOf(one.standing.level) },
];

function compare(a, b) {
    if (typeof a === "number") return a - b;
    return a < b ? -1 : Number(a > b);
}

function rows(status) {
    const text = chosen.text.toLowerCase();
    const column = COLUMNS.find((one) => one.name === chosen.sort);
    const sign = chosen.down ? -1 : 1;
    return status.limits
        .filter(
            (row) =>
                (!chosen.kind || row.kind === chosen.kind) &&
                (!text || `${row.limit} ${row.key} ${row.provider}`.toLowerCase().includes(text)),
        )
        .map((row) => ({ row, ...taken(row), standing: standing(row, status) }))
        .filter((one) => !chosen.limited || one.standing.level !== "free")
        .map((one, at) => ({ ...one, at }))
        .sort((a, b) => sign * compare(column.of(a), column.of(b)) || a.at - b.at);
}

/* ---- above the table */

function choose(more) {
    Object.assign(chosen, more, { top: 0 });
    const scroller = document.getElementById("keys");
    if (scroller) scroller.scrollTop = 0;
    redraw();
}

function tools(found, all) {
    return h(
        "div",
        { class: "tools" },
        h(
            "label",
            null,
            h("span", { class: "quiet" }, "Search"),
            h("input", {
                type: "search",
                id: "search",
                value: chosen.text,
                placeholder: "limit, key or provider",
                oninput: (event) => choose({ text: event.target.value }),
            }),
        ),
        h(
            "label",
            null,
            h("span", { class: "quiet" }, "Kind"),
            h(
                "select",
                { onchange: (event) => choose({ kind: event.target.value }) },
                h("option", { value: "" }, "all"),
                Object.entries(KINDS).map(([value, text]) =>
                    h("option", { value, selected: value === chosen.kind }, text),
                ),
            ),
        ),
        h(
            "label",
            { class: "check" },
            h("input", {
                type: "checkbox",
                checked: chosen.limited,
                onchange: (event) => choose({ limited: event.target.checked }),
            }),
            "only what is limited",
        ),
        h("span", { class: "grow" }),
        h(
            "span",
            { class: "quiet", id: "found", role: "status" },
            found === all ? plural(all, "key") : `${number(found)} of ${plural(all, "key")}`,
        ),
    );
}

/* ---- the table */

function heading(column) {
    const current = chosen.sort === column.name;
    const sorted = chosen.down ? "descending" : "ascending";
    return h(
        "th",
        {
            scope: "col",
            class: `${column.numeric ? "num" : ""} ${column.wide ? "wide-only" : ""}`,
            "aria-sort": current ? sorted : null,
        },
        h(
            "button",
            { class: "sort", onclick: () => choose({ sort: column.name, down: current ? !chosen.down : true }) },
            column.text,
            h("span", { "aria-hidden": "true", class: "arrow" }, current ? (chosen.down ? "▾" : "▴") : ""),
        ),
    );
}

export function bar({ used, of, fill }, level) {
    return h(
        "div",
        { class: `fill ${level}`, vars: { "--fill": `${fill * 100}%` } },
        h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "value" })),
        h("span", { class: "figures" }, `${number(used)} / ${number(of)}`),
        h("span", { class: "part" }, percent(fill)),
    );
}

function line(one, index) {
    const { row, standing: s } = one;
    return h(
        "tr",
        { "aria-rowindex": index + 2, "data-row": rowKey(row) },
        h("td", null, h("a", { href: `#/limit/${rowKey(row)}` }, row.limit)),
        h("td", null, h("code", { title: row.key }, row.key)),
        h("td", { class: "wide-only" }, row.provider),
        h("td", { class: "wide-only" }, KINDS[row.kind]),
        h("td", null, bar(one, s.level)),
        h("td", { class: "num" }, number(row.waiting)),
        h("td", null, h("span", { class: `badge ${s.level}` }, LEVELS[s.level])),
    );
}

function gap(rowsAbove) {
    return h(
        "tr",
        { class: "gap", "aria-hidden": "true", vars: { height: `${rowsAbove * ROW}px` } },
        h("td", { colspan: 7 }),
    );
}

function table(all) {
    const first = Math.max(0, Math.min(all.length, Math.floor(chosen.top / ROW)) - AROUND);
    const last = Math.min(all.length, Math.ceil((chosen.top + chosen.height) / ROW) + AROUND);
    return h(
        "div",
        {
            id: "keys",
            class: "card keys",
            tabindex: "0",
            role: "region",
            "aria-label": "Scope keys",
            onscroll: (event) => {
                const { scrollTop, clientHeight } = event.target;
                const moved = Math.abs(scrollTop - chosen.top) > ROW * (AROUND / 2) || clientHeight !== chosen.height;
                if (moved) {
                    Object.assign(chosen, { top: scrollTop, height: clientHeight });
                    redraw();
                }
            },
        },
        h(
            "table",
            { "aria-rowcount": all.length + 1 },
            h("thead", null, h("tr", { "aria-rowindex": 1 }, COLUMNS.map(heading))),
            h(
                "tbody",
                null,
                gap(first),
                all.slice(first, last).map((one, at) => line(one, first + at)),
                gap(all.length - last),
            ),
        ),
    );
}

/** Of a simulated day, what the rows are of. */
export function atTheEnd(status) {
    return status.down
        ? `At the end of the day, ${instant(status.now, status.now)}, the gateway was down, stopped or killed.`
        : `As the gateway had them at the end of the day, ${instant(status.now, status.now)}.`;
}

export function view(store, args) {
    const { status } = store;
    if (args[0] === "limited" && !chosen.limited && !chosen.arrived) chosen.limited = chosen.arrived = true;
    const all = rows(status);
    return h(
        "div",
        { class: "view" },
        h("h1", null, "Limits"),
        store.day && h("p", { class: "quiet" }, atTheEnd(status)),
        tools(all.length, status.limits.length),
        status.limitsOmitted &&
            h(
                "p",
                { class: "banner" },
                `Those that matter most: paused, with waiters, full. ${number(status.limitsOmitted)} more keys ` +
                    "have room, or are less full than these; `/v1/limits/NAME/KEY` has each.",
            ),
        all.length === 0
            ? h(
                  "p",
                  { class: "card empty" },
                  status.limits.length === 0
                      ? "Nothing is counted yet: a limit has a row for each scope key from its first call on."
                      : "No key matches.",
              )
            : table(all),
    );
}
