# SPDX-License-Identifier: MIT
"""`ration simulate --report`: the dashboard with a day in it, as one file from a disk."""

import base64
import hashlib
import html.parser
import json
import re
import subprocess

import pytest
from browsing import browser  # noqa: F401 (a fixture)
from simulated import RATION, ROOT

DAY = ROOT / "examples" / "day.yaml"
SIZE = 500_000  # bytes of such a day's page; the program itself stops at 64 MiB
VIEWS = ("day", "limits", "limit/store/daily/shop", "charts", "plan")

# A limit of every kind whose standing has a chart, and a provider that bears less than it is asked for.
RICH = """
settings:
  ledger: { path: none }
  queue: { wait: 5s }
providers:
  - name: store
    baseUrl: https://api.example.com
    limits:
      - name: daily
        kind: quota
        max: 6000
        window: { period: day, timezone: America/Los_Angeles }
        scope: { by: [account] }
      - name: shared
        kind: share
        ceiling: 6
        counts: requests
        reclaimHorizon: 5s
        idleAfter: 10s
        tenants: { web: 2, reports: 2, batch: 2 }
        scope: { by: [account] }
      - { name: width, kind: adaptive, initialLimit: 6, maxLimit: 12, scope: { by: [account] } }
accounts: [ { name: shop, provider: store } ]
jobs:
  - { name: prices, account: shop, endpoint: "GET /prices", interval: 1m, tenant: web, priority: critical,
      fanOut: { name: items, estimate: 6 } }
  - { name: sums, account: shop, endpoint: "GET /sums", interval: 2m, tenant: reports,
      fanOut: { name: items, estimate: 8 } }
  - { name: backfill, account: shop, endpoint: "GET /items", interval: 3m, tenant: batch, priority: low,
      fanOut: { name: items, estimate: 8 } }
"""
OPTIONS = ("--for", "6h", "--seed", "7", "--ceiling", "4", "--latency", "2s+-1s")


def simulate(file, *options):
    done = subprocess.run([RATION, "simulate", str(file), *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(file, *options):
    return json.loads(simulate(file, *options, "--json"))


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """The page of a day, and the figures that the command prints of the same day."""
    folder = tmp_path_factory.mktemp("day")
    file, page = folder / "shop.yaml", folder / "day.html"
    file.write_text(RICH)
    return page, json.loads(simulate(file, *OPTIONS, "--json", "--report", page))


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


def number(text):
    return float(text.replace(",", ""))


# ---- the file


def test_same_seed_same_bytes(tmp_path):
    """And who watches a day does not change it, whatever goes wrong in it."""
    options = ("--for", "24h", "--fault", "all", "--seed", "3")
    pages = [tmp_path / name for name in ("one.html", "two.html")]
    days = [figures(DAY, *options, "--report", page) for page in pages]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert days[0] == days[1] == figures(DAY, *options)
    assert pages[0].stat().st_size < SIZE


class Page(html.parser.HTMLParser):
    """Elements with their attributes and the text right inside of them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.inside = [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        self.inside = True

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.elements[-1][2] += data

    def all(self, tag):
        return [(attrs, text) for name, attrs, text in self.elements if name == tag]


def test_the_policy_names_what_may_run(rich):
    page = Page(rich[0].read_text())
    policies = [attrs["content"] for attrs, _ in page.all("meta") if attrs.get("http-equiv")]
    policy = dict(part.strip().split(" ", 1) for part in policies[0].split(";"))

    def digests(texts):
        return [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts]

    scripts = [text for attrs, text in page.all("script") if attrs.get("type") != "application/json"]
    assert len(scripts) == 2 and len(page.all("style")) == 3 and len(policies) == 1
    assert policy["script-src"].split() == digests(scripts)
    assert policy["style-src"].split() == digests(text for _, text in page.all("style"))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    links = [attrs[name] for _, attrs, _ in page.elements for name in ("src", "href") if name in attrs]
    assert len(links) == 1 and links[0].startswith("data:image/svg+xml;base64,")


# ---- what a browser shows of it


def test_it_opens_from_a_disk_alone(browser, rich):
    page, day = rich
    browser.open(url=page.as_uri(), offline=True)
    browser.until_text("h1", "No provider refused a call for a quota's sake")
    assert browser.text("#link") == "Simulated"
    about = browser.text("[aria-labelledby=about]")
    for words in ("Nobody was called", "shop.yaml", "5 January 2026 at 09:00", "00:00 America/Los_Angeles",
                  "Europe/Berlin", f"{day['seed']}: the same file, options and seed", day["hash"], "Faultsnone"):
        assert words in about, words
    for view in VIEWS:
        browser.go(hash=f"#/{view}")
        browser.until(code=f"document.getElementById('main').dataset.view === '{view.partition('/')[0]}'")
        assert browser.evaluate(code="document.querySelectorAll('[data-act], form, dialog[open]').length") == 0
    seen = browser.seen()
    assert (seen["requests"], seen["errors"], seen["dialogs"]) == ([page.as_uri()], [], 0)


def cells(browser, region):
    """The rows of a table, each as the texts of its cells."""
    rows = f"document.querySelectorAll('[aria-labelledby={region}] tbody tr')"
    return browser.evaluate(code=f"[...{rows}].map((row) => [...row.children].map((cell) => cell.textContent))")


def test_its_numbers_are_the_runs(browser, rich):
    page, day = rich
    browser.open(url=page.as_uri())
    browser.until(code="document.querySelector('[data-value=Sent]')")
    tiles = browser.evaluate(code="Object.fromEntries([...document.querySelectorAll('[data-value]')]"
                                  ".map((e) => [e.dataset.value, e.textContent]))")

    def total(name):
        return sum(one[name] for one in day["priorities"])

    assert {name: number(text) for name, text in tiles.items()} == {
        "Wanted": total("wanted"), "Sent": total("sent"), "Answered": total("answered"), "Refused": total("refused"),
        "429s received": sum(day["rateLimited"].values()), "Failed": total("failed") + total("broken"),
    }
    assert total("refused") > 0 and sum(day["rateLimited"].values()) > 0
    want = [[one["priority"], one["wanted"], one["sent"], one["retries"], one["answered"], one["refused"],
             sum(one["rateLimited"].values()), one["failed"] + one["broken"]] for one in day["priorities"]]
    assert [[name, *map(number, row[:7])] for name, *row in cells(browser, "classes")] == want
    refused = {row[0]: [number(text) for text in row[1:]] for row in cells(browser, "refusals")}
    assert refused == {"its time was over": [one["refused"] for one in day["priorities"]]}
    quota, = day["quotas"]
    (name, key, *row), = cells(browser, "quotas")
    assert (name, key, row[0], row[6], row[7]) == ("daily", "shop", "6,000", f"{quota['left']:,}", "0")

    browser.go(hash="#/plan")
    browser.until(code="document.querySelector('[aria-labelledby=day-jobs]')")
    jobs = [[row[0], number(row[5]), number(row[6])] for row in cells(browser, "day-jobs")]
    assert jobs == [[one["name"], one["runs"], one["requests"] + one["retries"]] for one in day["jobs"]]
    planned = {row[0]: row[4] for row in cells(browser, "jobs")}
    assert planned.keys() == {one["name"] for one in day["jobs"]}
    browser.go(hash="#/limits")
    browser.until(code="document.querySelectorAll('#keys tr[data-row]').length === 3")
    used, = (row["used"] for row in data_of(page)["status"]["limits"] if row["limit"] == "daily")
    assert f"{used:,} / 6,000" in browser.text("#keys")


@pytest.mark.parametrize(
    "share, shown", [(0.5, "50 %"), (0.994, "99 %"), (0.9994, "99.9 %"), (1, "100 %"), (1.004, "100 %")]
)
def test_nearly_all_is_not_all(browser, rich, tmp_path, share, shown):
    page = tmp_path / "day.html"
    # Six hours hold no whole window of a day.
    text, edits = re.subn(r'("windows":)0(.*?"spentShare":)[0-9.]+', rf"\g<1>1\g<2>{share}", rich[0].read_text())
    assert edits == 1
    page.write_text(text)
    browser.open(url=page.as_uri())
    browser.until(code="document.querySelector('[aria-labelledby=quotas] tbody')")
    assert shown in cells(browser, "quotas")[0]


def column(browser, chart):
    """What a chart is drawn from: by series, the numbers of its table."""
    table = f"document.querySelector('[aria-labelledby={chart}-name] table')"
    browser.evaluate(code=f"{table}.closest('details').open = true")
    browser.until(code=f"{table}.querySelector('tbody tr')")
    names = browser.evaluate(code=f"[...{table}.querySelectorAll('thead th')].map((th) => th.textContent)")
    rows = browser.evaluate(code=f"[...{table}.querySelectorAll('tbody tr')]"
                                 ".map((row) => [...row.children].map((cell) => cell.textContent))")
    return {name: [None if row[at] in ("–", "") else row[at] for row in rows] for at, name in enumerate(names)}


def test_its_charts_are_of_the_whole_day(browser, rich):
    page, day = rich
    data = data_of(page)
    browser.open(url=f"{page.as_uri()}#/charts")
    browser.until(code="document.querySelectorAll('[data-plot] canvas').length === 8")
    quota, = day["quotas"]
    budget = column(browser, "budget")
    assert list(map(number, budget["Spent by us"])) == [point["spent"] for point in quota["points"]]
    for chart, member in (("sent", "sentBySlot"), ("turned-away", "refusedBySlot")):
        shown = column(browser, chart)
        for one in day["priorities"]:
            assert list(map(number, shown.get(one["priority"], ["0"] * 96))) == one[member], (chart, one["priority"])
    outcomes = {name: sum(map(number, values)) for name, values in column(browser, "outcomes").items() if name != "At"}
    assert outcomes == {
        "success": sum(one["answered"] for one in day["priorities"]), "throttled": sum(day["rateLimited"].values()),
        "failure": 0, "cancelled": 0,
    }
    refusals = column(browser, "refusals")
    assert sum(map(number, refusals["its time was over"])) == sum(one["refused"] for one in day["priorities"])

    moves = [one for one in data["history"]["moves"] if one["current"] < one["before"]]
    adaptive = column(browser, "adaptive")
    assert [number(text) for text in adaptive["Went down"] if text] == [one["current"] for one in moves] != []
    stood = [row["current"] for one in data["history"]["samples"] for row in one["limits"] if row["kind"] == "adaptive"]
    assert len(stood) == 289 and {number(text) for text in adaptive["Stands at"] if text} <= set(stood)
    assert set(column(browser, "tenants")) == {"At", "web", "reports", "batch"}
    waits = column(browser, "waits")
    assert len(waits["critical p99"]) == 288
    assert data["waits"]["critical"][1][1] == pytest.approx(max(data["waits"]["critical"][1]), abs=1)

    browser.go(hash="#/plan")
    browser.until(code="document.querySelector('[data-plot=stretches] canvas')")
    stretches = column(browser, "stretches")
    assert {name: max(map(number, values)) for name, values in stretches.items() if name != "At"} == {
        one["name"]: pytest.approx(one["stretchMost"], abs=0.0051) for one in day["jobs"]
    }


HOSTILE = [
    "</script><script>alert(1)</script>", "</script x", "<!--<script>", "<img src=x onerror=alert(1)>",
    "a & \u2028 b\u2029",
    "'\"</title></style>",
]


def test_names_are_never_markup(browser, tmp_path):
    """Names of jobs, tenants and the file itself."""
    file, page = tmp_path / "<b>&.yaml", tmp_path / "day.html"
    tenants = ", ".join(f"{json.dumps(name)}: 1" for name in HOSTILE)
    jobs = "".join(f'  - {{ name: {json.dumps(name)}, account: shop, endpoint: "GET /prices", interval: 1m, '
                   f"tenant: {json.dumps(name)} }}\n" for name in HOSTILE)
    text = RICH.replace("{ web: 2, reports: 2, batch: 2 }", f"{{ {tenants} }}")
    file.write_text(text[: text.index("jobs:\n")] + "jobs:\n" + jobs)
    simulate(file, "--for", "30m", "--report", page)
    assert len(Page(page.read_text()).all("script")) == 3
    assert [job["name"] for job in data_of(page)["day"]["jobs"]] == HOSTILE
    browser.open(url=f"{page.as_uri()}#/plan")
    browser.until(code="document.querySelector('[data-job]')")
    assert browser.evaluate(code="[...document.querySelectorAll('[data-job]')].map((e) => e.dataset.job)") == HOSTILE
    browser.go(hash="#/charts")
    browser.until(code="document.querySelector('[data-tenant]')")
    found = "[...document.querySelectorAll('[data-tenant]')].map((e) => e.dataset.tenant)"
    assert browser.evaluate(code=found) == HOSTILE
    browser.go(hash="#/day")
    browser.until(code="document.querySelector('#file')")
    assert browser.text("#file") == "<b>&.yaml"
    seen = browser.seen()
    assert seen["dialogs"] == 0 and seen["errors"] == []
    assert browser.evaluate(code="document.querySelectorAll('img, b').length") == 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_everybody_can_use_it(browser, rich, scheme, width):
    browser.open(url=rich[0].as_uri(), scheme=scheme, width=width, csp=False)
    for view in VIEWS:
        browser.go(hash=f"#/{view}")
        browser.until(code=f"document.getElementById('main').dataset.view === '{view.partition('/')[0]}'")
        browser.until(code="document.querySelector('main h1')")
        if view == "charts":
            assert len(column(browser, "budget")["At"]) == len(rich[1]["quotas"][0]["points"])
        faults = [one for one in browser.axe() if one["impact"] in ("serious", "critical")]
        assert faults == [], view
