// SPDX-License-Identifier: MIT
/*
 * A browser that a test in Python drives: a line of JSON in, { method, args }, is a line of JSON out, { value } or
 * { error }. Every answer of /v1/ that the page has got is kept, so that what it shows can be held against what it
 * read.
 */

import { createRequire } from "node:module";
import readline from "node:readline";

/* Where scripts/deps has put them. */
const { resolve } = createRequire(new URL("../../../.cache/npm/package.json", import.meta.url));
const { chromium } = await import(resolve("playwright-core")).then((all) => all.default ?? all);
const AXE = resolve("axe-core/axe.min.js");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

const root = process.getuid?.() === 0;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: root ? ["--no-sandbox"] : [] });
let context, page, seen;

/* What the server answers, with some of its members in another way. A page may go while it is asked. */
const patch = (members) => async (route) => {
  try {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...members } });
  } catch {
    await route.abort().catch(() => {});
  }
};

const methods = {
  /* A page of its own in a browser that knows nothing yet. */
  async open({ url, scheme = "light", width = 1280, height = 900, csp = true, offline = false, patches = {} }) {
    await context?.close();
    context = await browser.newContext({
      colorScheme: scheme,
      viewport: { width, height },
      locale: "en-GB",
      timezoneId: "Europe/Berlin",
      bypassCSP: !csp,
      offline,
    });
    page = await context.newPage();
    page.setDefaultTimeout(60000);
    seen = { requests: [], answers: [], errors: [], dialogs: 0 };
    const mine = seen;
    page.on("request", (request) => mine.requests.push(request.url()));
    page.on("pageerror", (error) => mine.errors.push(String(error)));
    page.on("console", (line) => line.text().includes("Content Security") && mine.errors.push(line.text()));
    page.on("dialog", (dialog) => (mine.dialogs++, dialog.dismiss()));
    page.on("response", async (response) => {
      const { pathname } = new URL(response.url());
      if (!pathname.startsWith("/v1/") || pathname === "/v1/events") return;
      const body = await response.json().catch(() => null);
      mine.answers.push({ path: pathname, status: response.status(), body });
    });
    for (const [path, members] of Object.entries(patches)) {
      await page.route((at) => at.pathname === path, patch(members));
    }
    await page.goto(url);
  },
  go: ({ hash }) => page.evaluate((to) => void (location.hash = to), hash),
  evaluate: ({ code }) => page.evaluate(code),
  /* Not by waitForFunction, which evaluates inside the page: its policy forbids that. */
  async until({ code, seconds = 60 }) {
    for (const end = Date.now() + 1000 * seconds; ; await page.waitForTimeout(25)) {
      const value = await page.evaluate(code);
      if (value) return value;
      if (Date.now() > end) throw new Error(`not within ${seconds} s; the page says: ${await page.innerText("body")}`);
    }
  },
  click: ({ selector }) => page.click(selector),
  fill: ({ selector, text }) => page.fill(selector, text),
  press: ({ key }) => page.keyboard.press(key),
  type: ({ text }) => page.keyboard.type(text),
  async shot({ path, whole = false }) {
    await page.screenshot({ path, fullPage: whole, animations: "disabled" });
  },
  seen: () => seen,
  async axe() {
    if (!(await page.evaluate("'axe' in window"))) await page.addScriptTag({ path: AXE });
    const { violations } = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
    return violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, where: nodes.map((one) => one.html) }));
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { method, args } = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await methods[method](args)) ?? null };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
