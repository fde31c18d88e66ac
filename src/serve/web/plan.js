// SPDX-License-Identifier: MIT
/* Jobs: how often they want to run, how often they may, and what binds. */

import { jobsOfTheDay } from "./day.js";
import { h } from "./dom.js";
import { instant, number, span } from "./format.js";
import { table } from "./table.js";

const PLAN = "/v1/plan";

export const title = () => "Plan";
export const needs = () => [PLAN];

function job(one, now) {
    const bound = one.boundBy;
    return h(
        "tr",
        { "data-job": one.name },
        h("th", { scope: "row" }, one.name),
        h("td", null, one.account),
        h("td", null, one.priority),
        h("td", { class: "num" }, span(one.desiredMs)),
        h("td", { class: "num", "data-effective": one.effectiveMs }, span(one.effectiveMs)),
        h("td", { class: "num" }, one.stretch > 1 ? `× ${number(one.stretch)}` : "as desired"),
        h("td", { class: "num" }, number(one.calls)),
        h("td", null, bound ? [bound.limit, " at ", h("code", null, bound.key)] : "nothing"),
        h("td", { class: "num" }, instant(one.nextRunAt, now)),
        h("td", null, one.feasible ? "" : h("span", { class: "badge penalty" }, "cannot be kept")),
    );
}

function scope(one, now) {
    return h(
        "tr",
        { "data-scope": one.key },
        h("th", { scope: "row" }, one.limit),
        h("td", null, h("code", null, one.key)),
        h("td", { class: "num" }, number(one.budget)),
        h("td", { class: "num" }, span(one.horizonMs)),
        h("td", { class: "num" }, number(one.wanted)),
        h("td", { class: "num" }, number(one.projected)),
        h("td", { class: "num" }, number(one.others)),
        h("td", { class: "num" }, one.exhaustedAt ? instant(one.exhaustedAt, now) : "not in sight"),
        h("td", null, one.feasible ? "" : h("span", { class: "badge penalty" }, "too small")),
    );
}

export function view(store) {
    const plan = store.more[PLAN];
    const { now } = store.status;
    const empty = (text) =>
        h(
            "div",
            { class: "view" },
            h("h1", null, "Plan"),
            h("p", { class: "card empty" }, text),
            store.day && jobsOfTheDay(store),
        );
    if (!plan) return empty("Reading the plan …");
    if (plan.error) return empty(`There is no plan: ${plan.error}.`);
    if (plan.jobs.length === 0) {
        return empty("The config has no jobs. With jobs, ration plans how often each may run within every quota.");
    }
    return h(
        "div",
        { class: "view" },
        h(
            "h1",
            { class: `headline ${plan.feasible ? "ok" : "bad"}` },
            plan.feasible ? "Every job keeps within its limits as planned." : "Not every job keeps within its limits.",
        ),
        h(
            "p",
            { class: "quiet" },
            `${store.day ? "The last plan of the day, made" : "Made"} at ${instant(plan.madeAt, now)}.`,
        ),
        table(
            "jobs",
            "Jobs",
            [
                ["Job"],
                ["Account"],
                ["Priority"],
                ["Desired", true],
                ["Effective", true],
                ["Stretched", true],
                ["Calls a run", true],
                ["Bound by"],
                ["Next run", true],
                [""],
            ],
            plan.jobs.map((one) => job(one, now)),
        ),
        plan.scopes.length > 0 &&
            table(
                "scopes",
                "Quotas that jobs use",
                [
                    ["Limit"],
                    ["Scope key"],
                    ["Budget", true],
                    ["Within", true],
                    ["Jobs want", true],
                    ["Jobs get", true],
                    ["Others", true],
                    ["Spent at", true],
                    [""],
                ],
                plan.scopes.map((one) => scope(one, now)),
            ),
        store.day && jobsOfTheDay(store),
    );
}
