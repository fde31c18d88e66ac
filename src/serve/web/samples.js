// SPDX-License-Identifier: MIT
/*
 * The last quarter of an hour, or a whole simulated day, from what the server has kept and the statuses that this page
 * has read since: what was counted in between, by bins.
 *
 * A status has counts since the start of the process, so two of them say what happened in the time between. When the
 * process is another one than before, what was known is of no use any more.
 */

/** What charts are of: so long back, in bins that are counted from an instant on; `whole`: nothing comes after it. */
export const frame = { spanMs: 15 * 60 * 1000, binMs: 10 * 1000, origin: 0, whole: false };
const LEAST_MS = 2 * 60 * 1000; /* that a chart shows, however short the page has been open */
const EXACT = 1e-6; /* of a bin: instants that are whole bins may be off by rounding */
const KEYS = 64; /* counters of a kind that are followed */

let samples = [];
let startedAt = 0;
const moves = []; /* of adaptive limits, by their events */

function followed(rows, kind) {
    const found = rows.filter((row) => row.kind === kind).slice(0, KEYS);
    return new Map(found.map((row) => [rowName(row), row]));
}

function sampled(at, { waits, refusals, outcomes, limits }) {
    return { at, waits, refusals, outcomes, adaptive: followed(limits, "adaptive"), share: followed(limits, "share") };
}

export function rowName(row) {
    return `${row.limit} at ${row.key} (${row.provider})`;
}

/** What the server knows of the time before this page was opened. */
function backfill(past, before) {
    moves.splice(0, moves.length, ...past.moves.filter((one) => one.at < before));
    return past.samples.filter((one) => one.at < before).map((one) => sampled(one.at, one));
}

/** A status has been read; `past` is what the server had counted before, where it is another process than was known. */
export function sample(status, past) {
    if (status.startedAt !== startedAt) samples = [];
    startedAt = status.startedAt;
    if (past?.startedAt === startedAt && samples.length === 0) samples = backfill(past, status.now);
    const { waits, limits, totals } = status;
    samples.push(sampled(status.now, { waits, limits, refusals: totals.refusals, outcomes: totals.outcomes }));
    while (samples.length > 0 && samples[0].at < status.now - frame.spanMs - frame.binMs) samples.shift();
}

/** An adaptive limit has moved, as its event says. */
export function moved(event) {
    moves.push(event);
    while (moves.length > 1000 || (moves.length > 0 && moves[0].at < event.at - frame.spanMs)) moves.shift();
}

/** Since when something is known. */
export function since() {
    return samples[0]?.at;
}

/** What a chart shows, from and to, in seconds. */
export function range(status) {
    const end = frame.origin + Math.ceil((status.now - frame.origin) / frame.binMs - EXACT) * frame.binMs;
    const begin = Math.min(since() ?? end, end - LEAST_MS);
    return [Math.max(end - frame.spanMs, begin) / 1000, end / 1000];
}

/** What is in the samples, one point each: [times in seconds, ...values of each of `picks`]. */
export function lines(picks) {
    return [samples.map((one) => one.at / 1000), ...picks.map((pick) => samples.map((one) => pick(one) ?? null))];
}

/** The first sample, where counting begins, and the last one of each bin. */
function edges() {
    const found = [];
    for (const one of samples) {
        const bin = Math.ceil((one.at - frame.origin) / frame.binMs - EXACT) - 1;
        if (found.length === 0) found.push({ bin: bin - 1, sample: one });
        else if (found[found.length - 1].bin === bin) found[found.length - 1].sample = one;
        else found.push({ bin, sample: one });
    }
    return found;
}

/** What happened in each bin: [ends in seconds, ...`of(before, after)` by bin]. */
function bins(of) {
    const all = edges();
    return all.slice(1).map(({ bin, sample: after }, at) => ({
        at: (frame.origin + (bin + 1) * frame.binMs) / 1000,
        value: of(all[at].sample, after),
    }));
}

/** Counts by name in each bin: the names in order of their counts, and a row of numbers for each. */
export function counts(member, known = []) {
    const all = bins((before, after) => {
        const names = Object.keys(after[member]);
        return Object.fromEntries(names.map((name) => [name, after[member][name] - (before[member][name] ?? 0)]));
    });
    const sums = new Map(known.map((name) => [name, 0]));
    for (const { value } of all) {
        for (const [name, count] of Object.entries(value)) sums.set(name, (sums.get(name) ?? 0) + count);
    }
    const names =
        known.length > 0
            ? known
            : [...sums.keys()].filter((name) => sums.get(name) > 0).sort((a, b) => sums.get(b) - sums.get(a));
    return {
        names,
        times: all.map((one) => one.at),
        rows: names.map((name) => all.map((one) => one.value[name] ?? 0)),
    };
}

/** The wait below which `part` of the calls stayed, in milliseconds; null without calls. */
export function quantile(counted, bounds, part) {
    const total = counted.reduce((sum, count) => sum + count, 0);
    let left = total * part;
    if (total === 0) return null;
    for (let i = 0; i < bounds.length; i++) {
        const low = i === 0 ? 0 : bounds[i - 1];
        if (left <= counted[i])
            return i === 0 ? bounds[0] * (left / counted[i]) : low + (bounds[i] - low) * (left / counted[i]);
        left -= counted[i];
    }
    return bounds[bounds.length - 1];
}

/** Waits of a priority in each bin. */
export function waits(priority, part) {
    const all = bins((before, after) =>
        quantile(
            after.waits[priority].map((count, i) => count - before.waits[priority][i]),
            after.waits.boundsMs,
            part,
        ),
    );
    return { times: all.map((one) => one.at), values: all.map((one) => one.value) };
}

/** Where an adaptive limit went down because the provider throttled. */
export function throttles(row) {
    return moves.filter((one) => one.limit === row.limit && one.key === row.key && one.current < one.before);
}
