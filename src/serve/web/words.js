// SPDX-License-Identifier: MIT
/* What the numbers of a limit mean, in words. One place, so that every view says the same of it. */

import { instant, number, span } from "./format.js";

export const KINDS = { rate: "rate", concurrency: "at once", quota: "quota", share: "share", adaptive: "adaptive" };
export const PRIORITIES = ["critical", "high", "normal", "low"];

const REASONS = {
    rate_limited: "the rate had no room",
    concurrency_full: "as many calls ran as may",
    adaptive_full: "the adaptive limit was full",
    quota_exhausted: "the quota was spent",
    penalized: "the provider had said “too many”",
    circuit_open: "the provider was failing",
    guarantee_on_loan: "the tenant's guarantee was on loan",
    hold_exceeds_reclaim_horizon: "the call would keep a loan too long",
    nothing_to_borrow: "there was nothing to borrow",
    cost_exceeds_limit: "the call costs more than the limit holds",
    unknown_tenant: "no such tenant",
    unknown_class: "no such class",
    unknown_account: "no such account",
    unknown_provider: "no such provider",
    deadline: "its time was over",
    cancelled: "its client had gone",
    draining: "the process was draining",
    queue_full: "too many were waiting",
    too_many_keys: "there were too many scope keys",
    paused: "an operator had paused it",
    not_permitted: "it was not permitted",
    store_unavailable: "the store did not answer",
};

export function reason(name) {
    return REASONS[name] ?? name;
}

/** The name of a counter in addresses of this page and in lists. */
export function rowKey(row) {
    return [row.provider, row.limit, row.key].map(encodeURIComponent).join("/");
}

const USED = {
    rate: (row) => ({ used: Math.max(0, row.burst - row.available), of: row.burst }),
    concurrency: (row) => ({ used: row.held, of: row.max }),
    share: (row) => ({ used: row.held, of: row.max }),
    adaptive: (row) => ({ used: row.held, of: row.current }),
    quota: (row) => ({ used: Math.max(0, row.usable - row.remaining), of: row.usable }),
};

/** How much of a counter is taken: `used`, `of`, and their ratio from 0 to 1. */
export function taken(row) {
    const { used, of } = USED[row.kind](row);
    return { used, of, fill: of > 0 ? Math.min(1, Math.max(0, used / of)) : 1 };
}

const FULL = {
    rate: (row) => row.available - row.margin < 1,
    concurrency: (row) => row.held >= row.max,
    share: (row) => row.held >= row.max,
    adaptive: (row) => row.held >= row.current,
    quota: (row) => row.remaining <= row.reserve,
};

function all(count, one, end) {
    return count === 1 ? `its only ${one} ${end.replace("are", "is")}` : `all ${number(count)} ${one}s ${end}`;
}

const CAUSES = {
    rate: () => "its rate is used up",
    concurrency: (row) => all(row.max, "place", "are taken"),
    share: (row) => all(row.max, "unit", "are held"),
    adaptive: (row) => `${all(row.current, "place", "are taken")}: more the provider does not bear now`,
    quota: (row) => (row.reserve > 0 ? "all but its reserve is spent" : "it is spent"),
};

const EASES = {
    rate: (row, now) => at(now + Math.max(0, 1 + row.margin - row.available) * row.unitMs, now),
    concurrency: () => ({ text: "as soon as a call ends" }),
    share: () => ({ text: "as soon as a call ends" }),
    adaptive: () => ({ text: "as soon as a call ends" }),
    quota: (row, now) =>
        row.windowEnd === undefined ? { text: "as old calls leave its window" } : at(row.windowEnd, now),
};

function at(instantMs, now) {
    const left = instantMs - now;
    return {
        at: instantMs,
        text: left > 60000 ? `in ${span(left)}, at ${instant(instantMs, now)}` : `in ${span(left)}`,
    };
}

/**
 * What holds calls back at a counter: `level` is "paused", "penalty", "waiting" (it is full, and calls wait), "full",
 * "queued" (calls wait, though there is room) or "free"; `why` in words; `eases` when.
 */
export function standing(row, status) {
    const penalty = status.penalties.find((one) => one.limit === row.limit && one.penalty === row.key);
    const full = FULL[row.kind](row);
    if (row.paused) return { level: "paused", why: "an operator has paused it", eases: { text: "when it is resumed" } };
    if (penalty) {
        return { level: "penalty", why: "the provider has said “too many”", eases: at(penalty.until, status.now) };
    }
    if (full) {
        return {
            level: row.waiting > 0 ? "waiting" : "full",
            why: CAUSES[row.kind](row),
            eases: EASES[row.kind](row, status.now),
        };
    }
    if (row.waiting === 0) return { level: "free", why: "there is room" };
    return {
        level: "queued",
        why: "there is room, but those who wait need more than that, or another limit first",
        eases: { text: "with the others" },
    };
}

export const LEVELS = {
    paused: "paused",
    penalty: "penalty",
    waiting: "holding calls back",
    full: "full",
    queued: "has waiters",
    free: "has room",
};
/** The worst first. */
export const ORDER = ["paused", "penalty", "waiting", "queued", "full", "free"];
