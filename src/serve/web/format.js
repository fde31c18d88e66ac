// SPDX-License-Identifier: MIT
/* Numbers, spans and instants for people: the reader's own zone and customs of writing. */

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });
const short = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function number(value) {
    if (value === undefined || value === null) return "–";
    return Number.isInteger(value) || Math.abs(value) >= 1000 ? whole.format(value) : fine.format(value);
}

/** What is nearly all is not shown as all of it. */
export function percent(part) {
    const rounded = Math.round(part * 100);
    return `${rounded === 100 && part < 1 ? fine.format(Math.floor(part * 1000) / 10) : whole.format(rounded)} %`;
}

/** A span in the two largest units that matter. */
export function span(ms) {
    if (ms === undefined || ms === null) return "–";
    const s = Math.max(0, ms) / 1000;
    if (s < 0.001) return "0 s";
    if (s < 1) return `${Math.ceil(s * 1000)} ms`;
    if (s < 10) return `${(Math.ceil(s * 10) / 10).toFixed(1)} s`;
    const whole = Math.ceil(s);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return two(whole, 60, "min", "s");
    if (whole < 86400) return two(Math.ceil(s / 60), 60, "h", "min");
    return two(Math.ceil(s / 3600), 24, "d", "h");
}

function two(count, size, large, small) {
    const rest = count % size;
    return rest === 0
        ? `${Math.floor(count / size)} ${large}`
        : `${Math.floor(count / size)} ${large} ${rest} ${small}`;
}

/** An instant: the time, and the day where it is another one. */
export function instant(ms, now = Date.now()) {
    const sameDay = new Date(ms).toDateString() === new Date(now).toDateString();
    return sameDay ? clock.format(ms) : `${day.format(ms)}, ${short.format(ms)}`;
}

/** An instant with its year, for what may be read long after. */
export function date(ms) {
    return full.format(ms);
}

/** An instant in another zone than the reader's, with that zone's name; "" where they agree or it is unknown. */
export function instantIn(ms, name) {
    if (!name || name === zone) return "";
    try {
        const there = new Intl.DateTimeFormat(undefined, {
            timeZone: name,
            weekday: "short",
            hour: "2-digit",
            minute: "2-digit",
        });
        return `${there.format(ms)} ${name}`;
    } catch {
        return name;
    }
}

export function plural(count, one, many = `${one}s`) {
    return `${number(count)} ${count === 1 ? one : many}`;
}
