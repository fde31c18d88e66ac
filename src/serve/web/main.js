// SPDX-License-Identifier: MIT
/*
 * The frame around the views: where one is, whether what is shown is true, and light or dark.
 *
 * A view is a module with `title`, `needs(args)` (paths that it reads beside the status) and `view(store, args)` (its
 * elements). The address after # says which, so that a view can be kept as a bookmark and the browser goes back.
 */

import { h, render } from "./dom.js";
import { instant, span, zone } from "./format.js";
import { Kept } from "./kept.js";
import { Store } from "./store.js";
import * as charts from "./charts.js";
import * as day from "./day.js";
import { attach } from "./plot.js";
import { moved, sample } from "./samples.js";
import * as key from "./key.js";
import * as limits from "./limits.js";
import * as now from "./now.js";
import * as plan from "./plan.js";

/* A page that has its data in itself is the report of a simulated day. */
const data = document.getElementById("data");
const store = data ? new Kept(JSON.parse(data.textContent)) : new Store();

const TABS = [
    data ? ["day", "Day", day] : ["now", "Now", now],
    ["limits", "Limits", limits],
    ["charts", "Charts", charts],
    ["plan", "Plan", plan],
];
const VIEWS = { ...Object.fromEntries(TABS.map(([name, , module]) => [name, module])), limit: key };
const THEME = "ration-theme";
const DARK = window.matchMedia("(prefers-color-scheme: dark)");

const app = document.getElementById("app");
let shown = "";

function route() {
    const [name, ...args] = location.hash.replace(/^#\/?/, "").split("/");
    const decoded = args.map((arg) => {
        try {
            return decodeURIComponent(arg);
        } catch {
            return arg;
        }
    });
    return name in VIEWS ? { name, args: decoded } : { name: TABS[0][0], args: [] };
}

/* ---- light and dark */

/* A page from a disk may have no storage, or be forbidden to use it. */
let theme = "auto";
try {
    theme = localStorage.getItem(THEME) ?? theme;
} catch {
    /* it is as the system has it */
}

function choose(one) {
    theme = one;
    try {
        localStorage.setItem(THEME, one);
    } catch {
        /* it holds until the page is closed */
    }
}

function applyTheme() {
    const dark = theme === "dark" || (theme === "auto" && DARK.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    document.dispatchEvent(new Event("theme"));
}

function themeChooser() {
    return h(
        "label",
        { class: "theme" },
        h("span", { class: "quiet" }, "Colours"),
        h(
            "select",
            {
                onchange: (event) => {
                    choose(event.target.value);
                    applyTheme();
                    draw();
                },
            },
            ["auto", "light", "dark"].map((one) => h("option", { value: one, selected: one === theme }, one)),
        ),
    );
}

/* ---- the frame */

function tab([name, title], here) {
    const current = here === name || (name === "limits" && here === "limit");
    return h("a", { href: `#/${name}`, class: "tab", "aria-current": current ? "page" : null }, title);
}

const LINKS = {
    connecting: ["wait", "Connecting"],
    live: ["ok", "Live"],
    lost: ["bad", "No answer"],
    token: ["wait", "Signed out"],
    kept: ["ok", "Simulated"],
};

function link() {
    const [level, text] = LINKS[store.link];
    return h(
        "span",
        { class: `link ${level}`, role: "status", id: "link", "data-link": store.link },
        h("span", { class: "dot", "aria-hidden": "true" }),
        text,
    );
}

function header(here) {
    return h(
        "header",
        { class: "top" },
        h(
            "a",
            { class: "brand", href: `#/${TABS[0][0]}` },
            h("span", { class: "mark", "aria-hidden": "true" }),
            "ration",
        ),
        h(
            "nav",
            { "aria-label": "Views" },
            TABS.map((one) => tab(one, here)),
        ),
        h("span", { class: "grow" }),
        link(),
    );
}

function footer() {
    const status = store.status;
    const parts = status && [
        !data &&
            h("span", null, "Snapshot ", h("b", { id: "snapshot", "data-snapshot": status.snapshot }, status.snapshot)),
        h("span", null, instant(status.now)),
        h("span", null, zone),
        h("span", null, `ration ${status.version}, ${data ? "simulated" : "up"} ${span(status.uptimeMs)}`),
    ];
    return h(
        "footer",
        { class: "bottom" },
        parts,
        h("span", { class: "grow" }),
        themeChooser(),
        store.token && h("button", { class: "plain", onclick: () => store.signOut() }, "Sign out"),
    );
}

function lostBanner() {
    return h(
        "div",
        { class: "banner bad", role: "alert", "data-key": "lost" },
        h("strong", null, "The server does not answer. "),
        store.status ? `What is shown is of ${instant(store.status.now)}. ` : "Nothing is known yet. ",
        "It is tried again every second.",
    );
}

function signIn() {
    return h(
        "form",
        {
            class: "card signin",
            onsubmit: (event) => {
                event.preventDefault();
                store.signIn(new FormData(event.target).get("token").trim());
            },
        },
        h("h1", null, "Sign in"),
        h(
            "p",
            null,
            "The control port asks for its token (",
            h("code", null, "settings.token"),
            "). It is kept for this tab only, until it is closed.",
        ),
        h("label", { for: "token" }, "Token"),
        h("input", {
            id: "token",
            name: "token",
            type: "password",
            autocomplete: "off",
            required: true,
            autofocus: true,
        }),
        store.tokenFault && h("p", { class: "fault", role: "alert" }, store.tokenFault),
        h("button", { class: "primary" }, "Sign in"),
    );
}

function inside(here) {
    if (store.link === "token") return signIn();
    if (store.status === null) return h("p", { class: "empty" }, "Waiting for the first answer …");
    return VIEWS[here.name].view(store, here.args);
}

function draw() {
    const here = route();
    store.need(VIEWS[here.name].needs(here.args, store));
    const title = VIEWS[here.name].title(here.args);
    document.title = `${title} · ${data ? `a simulated day of ${store.title}` : "ration"}`;
    render(
        app,
        h("a", { class: "skip", href: "#main", onclick: toMain }, "Skip to the content"),
        header(here.name),
        h("div", { class: "banners" }, store.link === "lost" && lostBanner()),
        h(
            "main",
            { id: "main", tabindex: "-1", class: store.link === "lost" ? "old" : "", "data-view": here.name },
            inside(here),
        ),
        footer(),
    );
    attach();
}

function toMain(event) {
    event.preventDefault();
    document.getElementById("main").focus();
}

function go() {
    const here = route();
    draw();
    if (shown !== "" && shown !== location.hash) {
        window.scrollTo(0, 0);
        document.getElementById("main").focus({ preventScroll: true });
    }
    shown = location.hash || `#/${TABS[0][0]}`;
}

applyTheme();
store.listeners.add(draw);
store.samplers.add(sample);
store.hearers.add((event) => event.type === "limit" && moved(event));
new ResizeObserver(attach).observe(app);
document.addEventListener("theme", attach);
DARK.addEventListener("change", applyTheme);
document.addEventListener("redraw", draw);
window.addEventListener("hashchange", go);
go();
store.start();
