// SPDX-License-Identifier: MIT
/* Gateways that share their limits through Redis: whether it answers, who they are, how long its scripts take. */

import { h } from "./dom.js";
import { instant, number, plural, span } from "./format.js";
import { table } from "./table.js";

const BADGES = { up: "free", degraded: "waiting", down: "penalty" };

/** What is wrong with it, in words; nothing if it is as it should be. */
export function fleetWarnings({ fleet, now }) {
    if (!fleet) return [];
    const since = `since ${instant(fleet.since, now)}`;
    const found = {
        up: [],
        degraded: [`The fleet's Redis does not answer ${since}: this gateway grants some leases by itself.`],
        down: [`The fleet's Redis does not answer ${since}: no lease is granted until it does.`],
    }[fleet.state];
    if (fleet.configDiffers) {
        found.push(
            "A gateway of the fleet goes by other rules than this one: a roll-out is under way, or was not ended.",
        );
    }
    return found;
}

function member(one) {
    return h(
        "tr",
        { "data-member": one.id },
        h("th", { scope: "row" }, one.instance, one.self && h("span", { class: "quiet" }, " (this one)")),
        h("td", null, h("code", null, one.config)),
        h("td", { class: "num" }, one.self ? "–" : `${span(one.heardMs)} ago`),
    );
}

function script(one) {
    return h(
        "tr",
        { "data-script": one.name },
        h("th", { scope: "row" }, one.name),
        h("td", { class: "num" }, number(one.calls)),
        h("td", { class: "num" }, `${number(one.p50Us)} µs`),
        h("td", { class: "num" }, `${number(one.p99Us)} µs`),
    );
}

function facts(fleet) {
    const rows = [];
    if (fleet.localLeases > 0 || fleet.state !== "up") {
        const most = fleet.localLimit === undefined ? "" : ` of at most ${number(fleet.localLimit)}`;
        rows.push(["Leases granted here that Redis does not know of", `${number(fleet.localLeases)}${most}`]);
    }
    if (fleet.lastError) rows.push(["Last error", fleet.lastError]);
    return (
        rows.length > 0 &&
        h(
            "dl",
            { class: "facts" },
            rows.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
        )
    );
}

/** The cards; none where limits are not shared. */
export function fleetCards({ fleet, now }) {
    if (!fleet) return [];
    const timed = [["Script"], ["Calls", true], ["Half within", true], ["99 of 100 within", true]];
    return [
        h(
            "section",
            { class: "card wide", "aria-labelledby": "fleet", "data-fleet": fleet.state },
            h("h2", { id: "fleet" }, "Fleet"),
            h(
                "p",
                null,
                h("span", { class: `badge ${BADGES[fleet.state]}` }, fleet.state),
                ` since ${instant(fleet.since, now)}. Limits are shared by ${plural(fleet.members.length, "gateway")}.`,
            ),
            facts(fleet),
        ),
        table(
            "members",
            "Gateways of the fleet",
            [["Gateway"], ["Its rules"], ["Heard of", true]],
            fleet.members.map(member),
            "None has been heard of.",
        ),
        fleet.scripts.length > 0 &&
            table("scripts", "What Redis is asked, and how long it takes", timed, fleet.scripts.map(script)),
    ];
}
