// SPDX-License-Identifier: MIT
/*
 * What a page knows that has its data in itself: the report of a simulated day. The same to the views as the Store of a
 * server, but that nothing comes later, and nobody can be asked or told.
 */

import { frame } from "./samples.js";

const STEPS = 288; /* looks at a day */

export class Kept {
    constructor({ title, status, history, plan, waits, day }) {
        this.title = title;
        this.status = status;
        this.history = history;
        this.day = day; /* its figures, as the command prints them */
        this.waits = waits; /* by priority, [p50, p99] for each look */
        this.more = { "/v1/plan": plan ?? { error: "the gateway was down at the end" } };
        this.link = "kept";
        this.token = "";
        this.listeners = new Set();
        this.samplers = new Set();
        this.hearers = new Set();
        Object.assign(frame, { spanMs: day.spanMs, binMs: day.spanMs / STEPS, origin: day.startedAt, whole: true });
    }

    need() {}

    start() {
        this.samplers.forEach((sampler) => sampler(this.status, this.history));
        this.listeners.forEach((listener) => listener(this));
    }
}
