// SPDX-License-Identifier: MIT
/*
 * What the page knows, and how it stays true.
 *
 * The status is read once a second, less often where it is large or the page is not looked at, and at once when an
 * event says that something has changed. Without an answer the last status stays, marked as old, and it is tried
 * again until there is one. A token is kept for this tab only.
 */

const TOKEN = "ration-token";
const EVENTS = "penalty,limit,breaker,interval,plan,operator,fleet";
const LARGE = 100000; /* characters of a status that is read every second; a larger one is read less often */
const SLOWEST_MS = 10000;
const SOON_MS = 150;
const TIMEOUT_MS = 10000;

export class NeedsToken extends Error {}

export class Refused extends Error {
    constructor(status, problem) {
        super(problem?.detail ?? problem?.title ?? `the server answered ${status}`);
        this.status = status;
    }
}

export class Store {
    constructor() {
        this.status = null;
        this.more = {}; /* what a view needs beside the status, by path */
        this.needs = []; /* their paths */
        this.link = "connecting"; /* live, lost, token */
        this.since = Date.now(); /* of the link's state */
        this.tokenFault = ""; /* why the last token was not taken */
        this.listeners = new Set();
        this.samplers = new Set(); /* hear of each status */
        this.hearers = new Set(); /* and of each event */
        this.period = 1000;
        this.reading = false;
        this.again = false;
        this.timer = 0;
        this.stream = null;
        document.addEventListener("visibilitychange", () => document.hidden || this.soon());
    }

    get token() {
        return sessionStorage.getItem(TOKEN) ?? "";
    }

    start() {
        this.refresh();
    }

    signIn(token) {
        sessionStorage.setItem(TOKEN, token);
        this.tokenFault = "";
        this.enter("connecting");
        this.refresh();
    }

    signOut() {
        sessionStorage.removeItem(TOKEN);
        this.status = null;
        this.stream?.abort();
        this.stream = null;
        this.refresh();
    }

    need(paths) {
        if (paths.join(" ") === this.needs.join(" ")) return;
        this.needs = paths;
        this.more = {};
        this.soon(0);
    }

    publish() {
        this.listeners.forEach((listener) => listener(this));
    }

    enter(link) {
        if (this.link !== link) this.since = Date.now();
        this.link = link;
    }

    headers(more) {
        return this.token ? { Authorization: `Bearer ${this.token}`, ...more } : { ...more };
    }

    async ask(path, options = {}) {
        const answer = await fetch(path, {
            ...options,
            headers: this.headers(options.headers),
            signal: options.signal ?? AbortSignal.timeout(TIMEOUT_MS),
        });
        if (answer.status === 401) throw new NeedsToken();
        return answer;
    }

    async read(path) {
        const answer = await this.ask(path);
        const text = await answer.text();
        const value = text ? JSON.parse(text) : null;
        if (!answer.ok) throw new Refused(answer.status, value);
        return { value, size: text.length };
    }

    /** An operator's call. Its own words, if it is refused. */
    async operate(path, body) {
        const answer = await this.ask(path, {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify(body),
        });
        const value = await answer.json();
        if (!answer.ok) throw new Refused(answer.status, value);
        this.soon(0);
        return value;
    }

    /** Read once more, shortly: several reasons at once are one reading. */
    soon(after = SOON_MS) {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.refresh(), after);
    }

    async refresh() {
        if (this.reading) {
            this.again = true;
            return;
        }
        clearTimeout(this.timer);
        this.reading = true;
        try {
            await this.readAll();
            this.enter("live");
            if (!this.stream) this.listen();
        } catch (error) {
            if (error instanceof NeedsToken) this.denied(this.token && "That is not the token.");
            else if (error.status === 403) this.denied(`This token does not do: ${error.message}.`);
            else this.enter("lost");
        }
        this.reading = false;
        this.publish();
        this.timer = setTimeout(() => this.refresh(), this.again ? SOON_MS : this.pause());
        this.again = false;
    }

    pause() {
        if (this.link === "token") return 3600000;
        if (document.hidden) return Math.max(this.period, SLOWEST_MS);
        return this.period;
    }

    denied(why) {
        this.tokenFault = why;
        sessionStorage.removeItem(TOKEN);
        this.status = null;
        this.stream?.abort();
        this.stream = null;
        this.enter("token");
    }

    async readAll() {
        const needs = this.needs;
        const { value, size } = await this.read("/v1/status");
        const more = {};
        for (const path of needs) {
            try {
                more[path] = (await this.read(path)).value;
            } catch (error) {
                if (!(error instanceof Refused)) throw error;
                more[path] = { error: error.message, status: error.status };
            }
        }
        const past = value.startedAt === this.status?.startedAt ? null : (await this.read("/v1/history")).value;
        if (needs === this.needs) this.more = more;
        this.status = value;
        this.period = Math.min(SLOWEST_MS, Math.max(1000, (1000 * size) / LARGE));
        this.samplers.forEach((sampler) => sampler(value, past));
    }

    /** The stream of events: each is a reason to read again. It needs a header, so it is not an EventSource. */
    async listen() {
        const stream = new AbortController();
        this.stream = stream;
        try {
            const answer = await this.ask(`/v1/events?types=${EVENTS}`, { signal: stream.signal });
            if (!answer.ok) throw new Refused(answer.status, null);
            await this.follow(answer.body.getReader());
        } catch (error) {
            if (stream.signal.aborted) return;
            if (error instanceof Refused) return; /* too many listen: reading every second goes on */
        }
        if (this.stream === stream) {
            this.stream = null;
            this.soon();
        }
    }

    async follow(reader) {
        const decoder = new TextDecoder();
        let rest = "";
        for (;;) {
            const { value, done } = await reader.read();
            if (done) return;
            const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
            rest = lines.pop();
            const events = lines.filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)));
            events.forEach((event) => this.hearers.forEach((hearer) => hearer(event)));
            if (events.length > 0) this.happened();
        }
    }

    happened() {
        if (!document.hidden && !this.eventful) {
            this.eventful = setTimeout(
                () => {
                    this.eventful = 0;
                    this.refresh();
                },
                Math.max(SOON_MS, this.period / 4),
            );
        }
    }
}
