// SPDX-License-Identifier: MIT
/* What is limited, by what, and how long until it eases: the first thing that one looks at. */

import { h } from "./dom.js";
import { fleetCards, fleetWarnings } from "./fleet.js";
import { instant, number, plural, span } from "./format.js";
import { KINDS, LEVELS, ORDER, PRIORITIES, reason, rowKey, standing } from "./words.js";

const WAITERS = "/v1/waiters";
const REFUSALS = "/v1/refusals?most=8";
const SHOWN = 50;

export const title = () => "Now";
export const needs = () => [WAITERS, REFUSALS];

/* ---- the sentence at the top */

function headline(held, status) {
    const waiting = held.filter((one) => !["full", "queued"].includes(one.standing.level));
    if (status.draining) return ["bad", "This process is draining: it takes no new calls."];
    if (status.fleet?.state === "down") return ["bad", fleetWarnings(status)[0]];
    if (waiting.length > 0) {
        return [
            "wait",
            `${plural(waiting.length, "limit holds", "limits hold")} calls back; ` +
                `${plural(status.waiting, "call")} ${status.waiting === 1 ? "waits" : "wait"}.`,
        ];
    }
    if (status.waiting > 0) return ["ok", `${plural(status.waiting, "call waits", "calls wait")} for its turn.`];
    if (held.length > 0) {
        return ["ok", `Nobody waits. ${plural(held.length, "limit has", "limits have")} no room for another call now.`];
    }
    return ["ok", "Nothing is limited: every limit has room, and nobody waits."];
}

function tile(name, value, note, level) {
    return h(
        "div",
        { class: `tile ${level ?? ""}` },
        h("dt", null, name),
        h("dd", { "data-value": name }, number(value)),
        h("dd", { class: "note" }, note),
    );
}

function tiles(status) {
    const refused = Object.values(status.totals.refusals).reduce((sum, count) => sum + count, 0);
    return h(
        "dl",
        { class: "tiles" },
        tile("In flight", status.held, "leases held now"),
        tile("Waiting", status.waiting, "calls without a lease yet", status.waiting > 0 ? "wait" : ""),
        tile("Granted", status.totals.granted, "since the start"),
        tile("Refused", refused, "since the start"),
        tile(
            "429s received",
            status.totals.rateLimited,
            `${number(status.totals.unexpected429)} of them unexpected`,
            status.totals.unexpected429 > 0 ? "wait" : "",
        ),
    );
}

/* ---- limits that are full */

function limited(status) {
    return status.limits
        .map((row) => ({ row, standing: standing(row, status) }))
        .filter((one) => one.standing.level !== "free")
        .sort(
            (a, b) =>
                ORDER.indexOf(a.standing.level) - ORDER.indexOf(b.standing.level) || b.row.waiting - a.row.waiting,
        );
}

function limitedRow({ row, standing: s }) {
    return h(
        "li",
        { class: "item", "data-key": rowKey(row) },
        h("span", { class: `badge ${s.level}` }, LEVELS[s.level]),
        h(
            "div",
            { class: "words" },
            h("a", { href: `#/limit/${rowKey(row)}` }, h("b", null, row.limit), " at ", h("code", null, row.key)),
            h("span", { class: "quiet" }, ` ${row.provider}, ${KINDS[row.kind]}`),
            h(
                "p",
                null,
                `${s.why[0].toUpperCase()}${s.why.slice(1)}. `,
                row.waiting > 0 && `${plural(row.waiting, "call waits", "calls wait")}. `,
            ),
        ),
        h("span", { class: "ease" }, h("span", { class: "quiet" }, "eases "), s.eases.text),
    );
}

function limitedList(held) {
    return h(
        "section",
        { class: "card wide", "aria-labelledby": "limited" },
        h("h2", { id: "limited" }, "What is limited"),
        held.length === 0 && h("p", { class: "empty" }, "Every limit has room."),
        held.length > 0 && h("ul", { class: "items" }, held.slice(0, SHOWN).map(limitedRow)),
        held.length > SHOWN &&
            h("p", null, h("a", { href: "#/limits/limited" }, `and ${plural(held.length - SHOWN, "more")}`)),
    );
}

/* ---- who waits */

function waiters(list, status) {
    const rows = PRIORITIES.map((priority) => {
        const those = (list?.waiters ?? []).filter((one) => one.priority === priority);
        const first = Math.min(...those.map((one) => one.waitsSince));
        return h(
            "tr",
            null,
            h("th", { scope: "row" }, priority),
            h("td", { class: "num", "data-waiters": priority }, number(those.length)),
            h("td", { class: "num" }, those.length > 0 ? span(status.now - first) : "–"),
        );
    });
    return h(
        "section",
        { class: "card", "aria-labelledby": "waiters" },
        h("h2", { id: "waiters" }, "Waiters by priority"),
        h(
            "table",
            null,
            h(
                "thead",
                null,
                h(
                    "tr",
                    null,
                    h("th", { scope: "col" }, "Priority"),
                    h("th", { scope: "col", class: "num" }, "Waiting"),
                    h("th", { scope: "col", class: "num" }, "Longest"),
                ),
            ),
            h("tbody", null, rows),
        ),
    );
}

/* ---- breakers, penalties, and what else is not as it should be */

const CIRCUIT = { open: "is open: calls are refused", "half-open": "is half-open: a few calls try" };

function circuits(status) {
    return status.breakers
        .filter((one) => one.state !== "closed")
        .map((one) =>
            h(
                "li",
                { class: "item", "data-key": `breaker ${one.breaker}` },
                h("span", { class: "badge penalty" }, "breaker"),
                h(
                    "div",
                    { class: "words" },
                    h("b", null, one.breaker),
                    ` ${CIRCUIT[one.state]}.`,
                    one.cause && h("p", { class: "quiet" }, one.cause),
                ),
                h("span", { class: "ease" }, one.retryAt ? `next try in ${span(one.retryAt - status.now)}` : ""),
            ),
        );
}

function penalties(status) {
    return status.penalties.map((one) =>
        h(
            "li",
            { class: "item", "data-key": `penalty ${one.limit} ${one.penalty}` },
            h("span", { class: "badge penalty" }, "penalty"),
            h(
                "div",
                { class: "words" },
                h("b", null, one.limit ?? "account"),
                " at ",
                h("code", null, one.penalty),
                h("p", { class: "quiet" }, `The provider has said “too many” ${plural(one.events, "time")}.`),
            ),
            h("span", { class: "ease" }, `over in ${span(one.until - status.now)}`),
        ),
    );
}

function warnings(status) {
    const found = [];
    const plan = status.plan ?? status.planning;
    if (status.ledger?.failing)
        found.push(["ledger", `The ledger cannot be written: ${status.ledger.lastError ?? ""}`]);
    if (status.recording?.error) found.push(["recording", `The recording has stopped: ${status.recording.error}`]);
    if (plan && plan.feasible === false) found.push(["plan", "Jobs as planned do not keep within their limits."]);
    if (status.overruns.length > 0) {
        found.push(["leases", `${plural(status.overruns.length, "lease is", "leases are")} past the declared end.`]);
    }
    fleetWarnings(status).forEach((text) => found.push(["fleet", text]));
    return found.map(([name, text]) =>
        h(
            "li",
            { class: "item", "data-key": `warning ${name} ${text}` },
            h("span", { class: "badge waiting" }, name),
            h("div", { class: "words" }, text),
        ),
    );
}

function attention(status) {
    const items = [...warnings(status), ...circuits(status), ...penalties(status)];
    return h(
        "section",
        { class: "card", "aria-labelledby": "attention" },
        h("h2", { id: "attention" }, "Breakers, penalties, warnings"),
        items.length === 0 &&
            h("p", { class: "empty" }, "None: every circuit is closed, and no provider has said “too many”."),
        items.length > 0 && h("ul", { class: "items" }, items),
    );
}

/* ---- who was refused */

function refusals(list) {
    const rows = (list?.refusals ?? []).map((one) =>
        h(
            "tr",
            null,
            h("td", { class: "at" }, instant(one.at)),
            h("td", null, reason(one.reason)),
            h("td", null, one.limit ?? "–"),
            h("td", null, one.tenant ?? one.account ?? "–"),
        ),
    );
    return h(
        "section",
        { class: "card wide", "aria-labelledby": "refusals" },
        h("h2", { id: "refusals" }, "Last refusals"),
        rows.length === 0 && h("p", { class: "empty" }, "Nobody has been refused."),
        rows.length > 0 &&
            h(
                "div",
                { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "refusals" },
                h(
                    "table",
                    null,
                    h(
                        "thead",
                        null,
                        h(
                            "tr",
                            null,
                            ["At", "Because", "Limit", "Tenant or account"].map((name) =>
                                h("th", { scope: "col" }, name),
                            ),
                        ),
                    ),
                    h("tbody", null, rows),
                ),
            ),
    );
}

export function view(store) {
    const { status } = store;
    const held = limited(status);
    const [level, text] = headline(held, status);
    return h(
        "div",
        { class: "view" },
        h("h1", { class: `headline ${level}` }, text),
        tiles(status),
        h(
            "div",
            { class: "grid" },
            limitedList(held),
            waiters(store.more[WAITERS], status),
            attention(status),
            fleetCards(status),
            refusals(store.more[REFUSALS]),
        ),
    );
}
