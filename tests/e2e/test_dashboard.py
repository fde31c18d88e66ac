# SPDX-License-Identifier: MIT
"""The dashboard: what is served, and what a browser shows of it."""

import gzip
import http.client
import json
import os
import pathlib
import re
import threading
import time

import pytest
import world
from api import Api
from browsing import browser  # noqa: F401 (a fixture)
from house import Client, Gateway, a_day, one_provider, slots, until
from provider import hello

FILES = {
    "/": "text/html",
    "/ui/main.js": "text/javascript",
    "/ui/style.css": "text/css",
    "/ui/icon.svg": "image/svg+xml",
}
WEIGHT = 150_000


def get(gw, path, method="GET", **fields):
    """Status, fields and body as they were sent."""
    connection = http.client.HTTPConnection("127.0.0.1", gw.control_port, timeout=30)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in fields.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def url(gw, hash=""):
    return f"http://127.0.0.1:{gw.control_port}/{hash}"


@pytest.fixture
def quiet(gateway):
    """A gateway that nobody calls."""
    return gateway(one_provider("http://127.0.0.1:9", [slots(2)]))


@pytest.fixture
def busy(provider, tmp_path):
    """The whole world with its traffic; its provider says "too many" now and then."""
    gw = Gateway(world.config(provider(world.Moody(40)).url), tmp_path)
    gw.traffic = world.Traffic(gw)
    yield gw
    gw.traffic.stop()
    gw.close()


# ---- what is served


def test_files_are_served_plain_and_packed(quiet):
    for path, kind in FILES.items():
        status, fields, body = get(quiet, path)
        assert (status, fields["content-type"].split(";")[0]) == (200, kind), path
        assert "content-encoding" not in fields
        status, packed_fields, packed = get(quiet, path, Accept_Encoding="br, gzip")
        assert (status, packed_fields["content-encoding"]) == (200, "gzip")
        assert gzip.decompress(packed) == body
        assert fields["etag"] != packed_fields["etag"] and fields["vary"] == "Accept-Encoding"
        assert get(quiet, path, If_None_Match=f'"x", {fields["etag"]}')[::2] == (304, b"")
        assert get(quiet, path, If_None_Match='"x"')[0] == 200
        head = get(quiet, path, "HEAD")
        assert head[::2] == (200, b"") and head[1]["content-length"] == str(len(body))


def test_every_file_says_what_a_browser_may_do(quiet):
    for path in FILES:
        _, fields, _ = get(quiet, path)
        policy = dict(part.strip().split(" ", 1) for part in fields["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert fields["x-content-type-options"] == "nosniff"
        assert fields["referrer-policy"] == "no-referrer"
        assert fields["cache-control"] == "no-cache"


def test_what_is_not_there(quiet):
    for path in ("/ui/", "/ui/nothing.js", "/ui/../index.html", "/index.html", "/ui"):
        assert get(quiet, path)[0] == 404, path
    status, fields, _ = get(quiet, "/", "POST")
    assert (status, fields["allow"]) == (405, "GET, HEAD")
    assert get(quiet, "/?from=somewhere")[0] == 200


def test_it_is_light(quiet):
    """All that the page loads, as it goes over the wire."""
    index = get(quiet, "/")[2].decode()
    paths, found = ["/"], set()
    while paths:
        path = paths.pop()
        if path in found:
            continue
        found.add(path)
        status, _, body = get(quiet, path)
        assert status == 200, path
        text = body.decode()
        folder = path.rpartition("/")[0]
        paths += re.findall(r'(?:src|href)="(/ui/[^"]+)"', text) if path == "/" else []
        paths += [f"{folder}/{name}" for name in re.findall(r'from "\./([^"]+)"', text)]
    assert "<style" not in index and "<script>" not in index and " style=" not in index
    assert len(found) > 10
    weight = sum(len(get(quiet, path, Accept_Encoding="gzip")[2]) for path in found)
    assert weight < WEIGHT, weight


def test_what_the_charts_are_drawn_from(provider, gateway):
    """Snapshots are numbered; waits by priority and outcomes are counted where a call was sent."""
    rate = {"name": "calls", "kind": "rate", "rate": "2/1m", "burst": 5, "margin": 1, "scope": {"by": ["account"]}}
    day = {"name": "day", "kind": "quota", "max": 9, "scope": {"by": ["account"]},
           "window": a_day("Asia/Tokyo")}
    answers = iter([200, 500, 429])
    config = one_provider(provider(lambda r, c: c.reply(next(answers), {}, b"x")).url, [rate, day], endpoints=["/high"])
    config["providers"][0]["endpoints"] = [{"path": "/high", "priority": "high"}]
    gw = gateway(config)
    for path, asked in (("/high", {}), ("/x", {"Ration-Priority": "low"}), ("/x", {})):
        gw.call("GET", f"/a{path}", asked)
    before, after = gw.until_idle(), gw.status()
    assert after["snapshot"] == before["snapshot"] + 1
    waits = dict(after["waits"])
    bounds = waits.pop("boundsMs")
    assert bounds == sorted(bounds) and all(len(counts) == len(bounds) + 1 for counts in waits.values())
    assert {name: sum(counts) for name, counts in waits.items()} == {"critical": 0, "high": 1, "normal": 1, "low": 1}
    assert after["totals"]["outcomes"] == {"success": 1, "throttled": 1, "failure": 1, "cancelled": 0}
    rows = {row["limit"]: row for row in after["limits"]}
    assert [rows["calls"][name] for name in ("burst", "margin", "unitMs")] == [5, 1, 30000]
    assert rows["day"]["timeZone"] == "Asia/Tokyo"


# ---- what is shown


def number(text):
    return float(text.replace(",", ""))


def bodies_of(browser, path):
    """What the page has got from there; the driver may get to know it a little later than the page."""
    return [one["body"] for one in browser.seen()["answers"] if one["path"] == path and one["body"]]


def snapshot(browser, code):
    """What `code` finds in the page, with the status whose id the page names at that instant."""
    found = browser.evaluate(
        code=f"(() => ({{ id: Number(document.getElementById('snapshot').dataset.snapshot), found: {code} }}))()"
    )

    def status():
        bodies = bodies_of(browser, "/v1/status")
        return next((one for one in bodies if one["snapshot"] == found["id"]), None)

    return found["found"], until(status, f"the driver has kept snapshot {found['id']}")


def test_now_shows_its_snapshot(browser, busy):
    browser.open(url=url(busy))
    browser.until(code="document.querySelector('[data-value]')")
    busy.until(lambda s: s["totals"]["granted"] > 50, "there is traffic")
    browser.until(code="Number(document.querySelector('[data-value=Granted]').textContent) > 50")
    tiles, status = snapshot(
        browser,
        "Object.fromEntries([...document.querySelectorAll('[data-value]')]"
        ".map((e) => [e.dataset.value, e.textContent]))",
    )
    totals = status["totals"]
    assert {name: number(text) for name, text in tiles.items()} == {
        "In flight": status["held"],
        "Waiting": status["waiting"],
        "Granted": totals["granted"],
        "Refused": sum(totals["refusals"].values()),
        "429s received": totals["rateLimited"],
    }
    assert browser.seen()["errors"] == []


ROWS = """[...document.querySelectorAll('#keys tr[data-row]')].map((e) => [decodeURIComponent(e.dataset.row),
          ...e.querySelector('.figures').textContent.split(' / '), e.querySelector('td.num').textContent])"""
TAKEN = {
    "rate": lambda row: (max(0, row["burst"] - row["available"]), row["burst"]),
    "quota": lambda row: (row["usable"] - row["remaining"], row["usable"]),
    "adaptive": lambda row: (row["held"], row["current"]),
    "concurrency": lambda row: (row["held"], row["max"]),
    "share": lambda row: (row["held"], row["max"]),
}


def test_limits_shows_its_snapshot(browser, busy):
    busy.until(lambda s: len(s["limits"]) == 14, "every counter is there")
    browser.open(url=url(busy, "#/limits"))
    browser.until(code="document.querySelectorAll('#keys tr[data-row]').length === 14")
    rows, status = snapshot(browser, ROWS)
    want = {"/".join((one["provider"], one["limit"], one["key"])): one for one in status["limits"]}
    assert {name for name, *_ in rows} == set(want)
    for name, used, of, waiting in rows:
        row = want[name]
        assert (number(used), number(of)) == pytest.approx(TAKEN[row["kind"]](row), abs=0.0051), name
        assert number(waiting) == row["waiting"]


def column(browser, chart):
    """What a chart is drawn from: by series, the texts of its table."""
    table = f"document.querySelector('[aria-labelledby={chart}-name] table')"
    names = browser.evaluate(code=f"[...{table}.querySelectorAll('thead th')].map((th) => th.textContent)")
    rows = browser.evaluate(code=f"[...{table}.querySelectorAll('tbody tr')]"
                                 ".map((row) => [...row.children].map((cell) => cell.textContent))")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


MANY, BATCH = 5000, 100


def acquiring(key):
    """A request for a lease that is lost at once; its counter stays."""
    asked = {"account": "a", "endpoint": "/things/{id}", "vars": {"id": f"{key:04}"}, "ttl": 1}
    body = json.dumps(asked)
    head = "POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}"


@pytest.fixture
def crowded(gateway):
    """As many scope keys as that; asked for in batches, each of one segment or few."""
    limit = {**slots(1), "scope": {"by": ["account", "var:id"]}}
    gw = gateway(one_provider("http://127.0.0.1:9", [limit], endpoints=["/things/{id}"]))
    with Client(gw.control_port) as client:
        for first in range(0, MANY, BATCH):
            client.send("".join(acquiring(first + at) for at in range(BATCH)))
            assert {client.answer().status for _ in range(BATCH)} == {200}
    return gw


def shown_keys(browser):
    return browser.evaluate(code="[...document.querySelectorAll('#keys tr[data-row] code')].map((e) => e.textContent)")


def test_thousands_of_keys(browser, crowded):
    """Only what is in sight is in the page; search, sort and scroll reach all of them, with the keyboard too."""
    browser.open(url=url(crowded, "#/limits"))
    browser.until_text("#found", "5,000 keys")
    assert 10 < len(shown_keys(browser)) < 60
    browser.evaluate(code="document.getElementById('keys').focus()")
    browser.press(key="End")
    browser.until(code="[...document.querySelectorAll('#keys code')].some((e) => e.textContent.includes('4999'))")
    assert len(shown_keys(browser)) < 60
    browser.evaluate(code="document.getElementById('search').focus()")
    browser.type(text="123")
    browser.until_text("#found", "of 5,000 keys")
    want = sorted(f"{at:04}" for at in range(MANY) if "123" in f"{at:04}")
    assert browser.evaluate(code="document.activeElement.id") == "search"
    browser.click(selector="th:nth-child(2) button")
    browser.click(selector="th:nth-child(2) button")
    browser.until(code="document.querySelector('th:nth-child(2)').getAttribute('aria-sort') === 'ascending'")
    assert [key.rpartition("/")[2].rpartition("=")[2] for key in shown_keys(browser)] == want


def test_nobody_has_called_yet(browser, quiet):
    browser.open(url=url(quiet, "#/limits"))
    browser.until_text("main", "Nothing is counted yet")
    browser.go(hash="#/plan")
    browser.until_text("main", "The config has no jobs")
    browser.go(hash="#/limit/p/slots/nobody")
    browser.until_text("main", "Nothing is counted at this key now")


def test_charts_show_their_snapshot(browser, busy):
    browser.open(url=url(busy, "#/charts"))
    browser.until(code="document.querySelectorAll('[data-plot] canvas').length >= 4")
    found, status = snapshot(
        browser,
        "[...document.querySelectorAll('[data-tenant]')].map((e) => [e.dataset.tenant, Number(e.querySelector("
        "'[data-held]').dataset.held), e.querySelectorAll('td.num')[1].textContent])",
    )
    shares = [row["tenants"] for row in status["limits"] if row["kind"] == "share"]
    assert {name: (held, number(guarantee)) for name, held, guarantee in found} in [
        {name: (one["held"], one["guarantee"]) for name, one in tenants.items()} for tenants in shares
    ]
    assert browser.seen()["errors"] == []


def test_charts_know_of_the_time_before(browser, provider, gateway):
    """What happened before the page was opened: the server has it, from its start on."""
    gw = gateway(one_provider(provider(hello).url, [slots(1)]))
    first = json.loads(get(gw, "/v1/history")[2])
    assert first["startedAt"] == gw.status()["startedAt"] and len(first["samples"]) >= 1
    assert first["samples"][0]["outcomes"] == {"success": 0, "throttled": 0, "failure": 0, "cancelled": 0}
    assert gw.call("GET", "/a/x").status == 200
    gw.until(lambda s: s["totals"]["outcomes"]["success"] == 1, "it has ended")
    browser.open(url=url(gw, "#/charts"))
    counts = "[...document.querySelectorAll('[aria-labelledby=outcomes-name] tbody td:last-child')]"
    assert browser.until(code=f"{counts}.reduce((sum, cell) => sum + Number(cell.textContent), 0)") == 1
    assert browser.text("[aria-labelledby=outcomes-name] thead th:last-child") == "success"
    assert browser.seen()["errors"] == []


ROW = {"provider": "p", "limit": "width", "key": "a", "kind": "adaptive"}
TENANTS = {"lender": {"held": 0, "lent": 2, "borrowed": 0, "deficitUnitMs": 0},
           "borrower": {"held": 3, "lent": 0, "borrowed": 2, "deficitUnitMs": 4500}}


def test_adaptive_limits_and_tenants_of_the_time_before(browser, provider, gateway):
    """A limit that went down is marked, whenever; what it and tenants stood at is drawn from the server's samples."""
    share = {"name": "shared", "kind": "share", "ceiling": 4, "counts": "requests", "reclaimHorizon": "1s",
             "idleAfter": "2s", "tenants": {"lender": 2, "borrower": 2}, "scope": {"by": ["account"]}}
    width = {"name": "width", "kind": "adaptive", "initialLimit": 8, "scope": {"by": ["account"]}}
    gw = gateway(one_provider(provider(lambda r, c: c.reply(429, {"Retry-After": "1"}, b"x")).url, [share, width]))
    assert gw.call("GET", "/a/x", {"Ration-Tenant": "borrower"}).status == 429
    gw.until(lambda s: s["totals"]["outcomes"]["throttled"] == 1, "it has ended")
    past = json.loads(get(gw, "/v1/history")[2])
    down, = past["moves"]
    assert (down["limit"], down["key"], down["before"], down["current"] < 8) == ("width", "a", 8, True)
    limits = [{**ROW, "held": 5, "current": 8},
              {**ROW, "limit": "shared", "kind": "share", "held": 3, "tenants": TENANTS}]
    earlier = {**past["samples"][0], "at": past["samples"][0]["at"] - 300_000, "limits": limits}
    browser.open(url=url(gw, "#/charts"), patches={"/v1/history": {"samples": [earlier, *past["samples"]]}})
    browser.until(code="document.querySelectorAll('[data-plot] canvas').length >= 2")
    columns = {name: shown for chart in ("adaptive", "tenants") for name, shown in column(browser, chart).items()}
    assert columns["Stands at"][0] == "8" and columns["Stands at"][-1] == str(down["current"])
    assert columns["Held"][0] == "5"
    assert [text for text in columns["Went down"] if text != "–"] == [str(down["current"])]
    assert (columns["lender"][0], columns["borrower"][0]) == ("0", "3")
    for measure, want in (("borrowed", "2"), ("deficit", "4.5")):
        choose = f"((e) => {{ e.value = '{measure}'; e.onchange({{ target: e }}) }})"
        browser.evaluate(code=f"{choose}(document.getElementById('measure'))")
        assert column(browser, "tenants")["borrower"][0] == want
    assert browser.seen()["errors"] == []
    # The server's own samples have them too, from the next one on.
    until(lambda: json.loads(get(gw, "/v1/history")[2])["samples"][-1]["limits"], "a sample with limits")
    rows = {row["limit"]: row for row in json.loads(get(gw, "/v1/history")[2])["samples"][-1]["limits"]}
    assert set(rows) == {"shared", "width"} and set(rows["shared"]["tenants"]) == {"lender", "borrower"}


def test_loans_are_drawn(browser, gateway):
    """A tenant holds more than its guarantee while the other is idle: who lends, who borrows, how much."""
    share = {"name": "shared", "kind": "share", "ceiling": 4, "counts": "requests", "reclaimHorizon": "300ms",
             "idleAfter": "400ms", "tenants": {"lender": 1, "borrower": 1}, "scope": {"by": ["account"]}}
    gw = gateway(one_provider("http://127.0.0.1:9", [share]))
    api = Api(gw)
    asked = {"account": "a", "tenant": "borrower", "hold": 200, "ttl": 60000}
    leases = [api.granted({**asked, "timeout": 20000}) for _ in range(4)]
    browser.open(url=url(gw, "#/charts"))
    browser.until(code="document.querySelector('.loans svg')")
    assert browser.evaluate(code="document.querySelector('.loans svg').getAttribute('aria-label')") == (
        "lender lends 2; borrower borrows 2"
    )
    assert browser.evaluate(code="document.querySelectorAll('.loans path').length") == 2
    for lease in leases:
        api.release(lease)
    browser.until_text("main", "Nothing is on loan.")


def test_the_plan_is_the_servers(browser, busy):
    browser.open(url=url(busy, "#/plan"))
    browser.until(code="document.querySelectorAll('[data-job]').length === 3")
    found = browser.evaluate(
        code="Object.fromEntries([...document.querySelectorAll('[data-job]')].map((e) => [e.dataset.job,"
        " Number(e.querySelector('[data-effective]').dataset.effective)]))"
    )

    def plans():
        return [{job["name"]: job["effectiveMs"] for job in plan["jobs"]} for plan in bodies_of(browser, "/v1/plan")]

    until(lambda: found in plans(), f"{found} is a plan that was read")


def test_the_keyboard_is_enough(browser, busy):
    """From the top: skip the head, go through the tabs, open a key, and no step loses the focus while numbers move."""
    browser.open(url=url(busy, "#/limits"))
    browser.until(code="document.querySelectorAll('#keys tr[data-row]').length > 5")
    browser.press(key="Tab")
    assert browser.evaluate(code="document.activeElement.className") == "skip"
    browser.press(key="Enter")
    assert browser.evaluate(code="document.activeElement.id") == "main"
    browser.press(key="Tab")
    assert browser.evaluate(code="document.activeElement.id") == "search"
    browser.type(text="daily")
    browser.until(code="document.querySelectorAll('#keys tr[data-row]').length === 2")
    browser.evaluate(code="document.querySelector('#keys tr[data-row] a').focus()")
    before = browser.evaluate(code="Number(document.getElementById('snapshot').dataset.snapshot)")
    browser.until(code=f"Number(document.getElementById('snapshot').dataset.snapshot) > {before + 1}")
    assert browser.evaluate(code="document.activeElement.textContent") == "daily"
    browser.press(key="Enter")
    browser.until_text("h1", "daily at")
    assert browser.evaluate(code="document.activeElement.id") == "main"


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_everybody_can_use_it(browser, busy, scheme, width):
    """Contrast, names, roles: what axe-core can see, on each view."""
    busy.until(lambda s: s["totals"]["refusals"], "somebody was refused")
    busy.traffic.stop()
    browser.open(url=url(busy), scheme=scheme, width=width, csp=False)
    for view in ("now", "limits", "limit/storefront/in-flight/shop", "charts", "plan"):
        browser.go(hash=f"#/{view}")
        browser.until(code=f"document.getElementById('main').dataset.view === '{view.partition('/')[0]}'")
        browser.until(code="document.querySelector('main h1')")
        faults = [one for one in browser.axe() if one["impact"] in ("serious", "critical")]
        assert faults == [], view


FLEET = {
    "state": "up", "since": 1767571200000, "configDiffers": False, "localLeases": 0, "localLimit": 4, "unavailable": 0,
    "failed": 0, "toldLate": 0, "toldNever": 0, "unreplicated": 0,
    "members": [
        {"id": "1", "instance": "east", "config": "c0ffee", "heardMs": 0, "self": True},
        {"id": "2", "instance": "<b>west", "config": "decade", "heardMs": 2500, "self": False},
    ],
    "scripts": [{"name": "admit", "calls": 1234, "p50Us": 250, "p99Us": 1500}],
}


@pytest.mark.parametrize(("more", "headline", "words"), [
    ({}, "Nothing is limited", ["up since", "shared by 2 gateways"]),
    ({"state": "degraded", "localLeases": 3, "lastError": "<i>gone"}, "Nothing is limited",
     ["this gateway grants some leases by itself", "3 of at most 4", "<i>gone"]),
    ({"state": "down"}, "no lease is granted until it does", ["0 of at most 4"]),
    ({"configDiffers": True}, "Nothing is limited", ["goes by other rules than this one"]),
], ids=["up", "degraded", "down", "roll-out"])
def test_a_fleet_is_shown(browser, quiet, more, headline, words):
    browser.open(url=url(quiet), csp=bool(more), patches={"/v1/status": {"fleet": {**FLEET, **more}}})
    browser.until_text("h1", headline)
    page = browser.text("main")
    for text in words:
        assert text in page, text
    assert "east (this one)" in page and "2.5 s ago" in page and "<b>west" in page
    assert browser.text("[data-script=admit]") == "admit1,234250 µs1,500 µs"
    faults = browser.axe() if not more else []
    assert [one for one in faults if one["impact"] in ("serious", "critical")] == []


def test_without_a_fleet_none_is_shown(browser, quiet):
    browser.open(url=url(quiet))
    browser.until_text("h1", "Nothing is limited")
    assert browser.evaluate(code="document.querySelector('[data-fleet]')") is None


def test_a_limit_that_binds_appears(browser, provider, gateway):
    go = threading.Event()

    def slow(request, connection):
        request.body()
        assert go.wait(60)
        connection.reply(200, {}, b"x")

    gw = gateway(one_provider(provider(slow).url, [slots(1)]))
    browser.open(url=url(gw))
    browser.until_text("h1", "Nothing is limited")
    with gw.client() as first, gw.client() as second:
        first.ask("GET", "/a/x")
        gw.until(lambda s: s["held"] == 1, "one runs")
        second.ask("GET", "/a/x")
        browser.until_text("h1", "1 limit holds calls back; 1 call waits.")
        assert "its only place is taken. 1 call waits" in browser.text(".items .item").lower()
        go.set()
        assert first.answer().status == second.answer().status == 200
    browser.until_text("h1", "Nothing is limited")


def test_operators_are_asked_first(browser, provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [slots(3)]))
    assert gw.call("GET", "/a/x").status == 200
    browser.open(url=url(gw, "#/limit/p/slots/a"))
    browser.click(selector="[data-act=pause]")
    browser.until_text("dialog[open]", "Pause slots?")
    browser.press(key="Escape")
    browser.until(code="!document.querySelector('dialog[open]')")
    assert "paused" not in gw.status()["limits"][0]
    browser.click(selector="[data-act=pause]")
    browser.click(selector="#confirm-yes")
    browser.until_text(".title .badge", "paused")
    assert gw.status()["limits"][0]["paused"] is True
    browser.click(selector="[data-act=resume]")
    browser.click(selector="#confirm-yes")
    browser.until_text(".title .badge", "has room")
    assert "paused" not in gw.status()["limits"][0]


def test_a_server_that_stops_and_comes_back(browser, tmp_path):
    config = one_provider("http://127.0.0.1:9", [slots(2)])
    gw = Gateway(config, tmp_path)
    config["settings"]["listen"] = {"gateway": "127.0.0.1:0", "control": f"127.0.0.1:{gw.control_port}"}
    browser.open(url=url(gw))
    browser.until_text("#link", "Live")
    gw.kill()
    browser.until_text("#link", "No answer")
    browser.until_text(".banner", "The server does not answer.")
    again = Gateway(config, tmp_path)
    try:
        browser.until_text("#link", "Live")
        assert browser.text(".banner") is None
    finally:
        again.close()


HOSTILE = "<img src=x onerror=alert(1)>\"'&amp;</script><b>"


def test_names_are_never_markup(browser, provider, gateway):
    config = one_provider(provider(hello).url, [{**slots(1), "scope": {"by": ["account", "tenant"]}}])
    config["tenants"] = {HOSTILE: 1}
    gw = gateway(config)
    assert gw.call("GET", "/a/x", {"Ration-Tenant": HOSTILE}).status == 200
    key = gw.status()["limits"][0]["key"]
    assert "<img" in key
    browser.open(url=url(gw, "#/limits"))
    browser.until(code="document.querySelector('#keys tr[data-row] code')")
    assert browser.text("#keys tr[data-row] code") == key
    browser.click(selector="#keys tr[data-row] a")
    browser.until_text("h1", key)
    browser.go(hash="#/limit/%3Cimg%20src=x%20onerror=alert(1)%3E/%3Cb%3E/%3Cb%3E")
    browser.until_text("h1", "<b>")
    seen = browser.seen()
    assert seen["dialogs"] == 0 and seen["errors"] == []
    assert browser.evaluate(code="document.querySelectorAll('img, b:not(#snapshot), script:not([src])').length") == 0


def test_nothing_is_asked_of_anybody_else(browser, busy):
    browser.open(url=url(busy))
    for view in ("limits", "charts", "plan", "limit/storefront/daily/shop", "now"):
        browser.go(hash=f"#/{view}")
        name = view.partition("/")[0]
        browser.until(code=f"document.getElementById('main').dataset.view === '{name}'")
        browser.until(code="document.querySelector('main h1')")
    seen = browser.seen()
    assert seen["errors"] == []
    assert {one[: len(url(busy))] for one in seen["requests"]} == {url(busy)}
    inline = "const s = document.createElement('script'); s.append('window.ran = 1'); document.body.append(s)"
    browser.evaluate(code=f"(() => {{ try {{ {inline} }} catch {{}} }})()")
    assert browser.evaluate(code="window.ran ?? 0") == 0


@pytest.fixture
def closed(tmp_path):
    """A gateway whose control port needs a token."""
    gw = Gateway(one_provider("http://127.0.0.1:9", [slots(2)], settings={"token": "sesame"}), tmp_path)
    yield gw
    try:
        assert gw.stop() == 0, gw.text()
    finally:
        gw.kill()


def test_a_token_is_asked_for_and_kept_for_the_tab(browser, closed):
    gw = closed
    browser.open(url=url(gw))
    browser.until_text("h1", "Sign in")
    browser.fill(selector="#token", text="wrong")
    browser.press(key="Enter")
    browser.until_text(".fault", "That is not the token")
    browser.fill(selector="#token", text="sesame")
    browser.press(key="Enter")
    browser.until_text("#link", "Live")
    assert browser.evaluate(code="Object.values(localStorage).length") == 0
    assert browser.evaluate(code="location.href").endswith(":%d/" % gw.control_port)


def governed_row(gw):
    return json.loads(get(gw, "/v1/status", Authorization="Bearer sesame")[2])["limits"][0]


@pytest.fixture
def governed(tmp_path):
    """A client that may only call, and one that may only look."""
    config = one_provider("http://127.0.0.1:9", [slots(2)], settings={"token": "sesame"})
    config["clients"] = [{"name": "billing", "token": "penny", "accounts": ["a"]},
                         {"name": "watch", "token": "look", "accounts": [], "view": True}]
    gw = Gateway(config, tmp_path)
    yield gw
    try:
        assert gw.stop() == 0, gw.text()
    finally:
        gw.kill()


def test_what_a_token_may_not(browser, governed):
    """Who may not look is told so when it signs in, in the server's words; who may only look, when it acts."""
    assert governed.call("GET", "/a/x", {"Ration-Token": "penny"}).status == 502
    browser.open(url=url(governed))
    for token, says in (("penny", "This token does not do: "), ("look", None)):
        browser.until_text("h1", "Sign in")
        browser.fill(selector="#token", text=token)
        browser.press(key="Enter")
        if says:
            browser.until_text(".fault", says)
            assert "billing" in browser.text(".fault")
    browser.until_text("#link", "Live")
    browser.go(hash="#/limit/p/slots/a")
    browser.click(selector="[data-act=pause]")
    browser.click(selector="#confirm-yes")
    assert "watch" in browser.until_text("dialog .fault", "may")
    assert governed_row(governed)["key"] == "a" and "paused" not in governed_row(governed)


SHOTS = {"now": "light", "limit/storefront/in-flight/shop": "light", "charts": "dark"}


def test_screenshots_of_the_guide(browser, busy, tmp_path):
    """Into the folder SCREENSHOTS, where that is set: those in docs/guide/images were made so."""
    folder = pathlib.Path(os.environ.get("SCREENSHOTS", tmp_path))
    busy.until(lambda s: s["totals"]["refusals"], "there is something to see")
    for view, scheme in SHOTS.items():
        browser.open(url=url(busy, f"#/{view}"), scheme=scheme)
        browser.until(code="document.querySelector('main h1')")
        if view == "charts":
            browser.until(code="document.querySelectorAll('[data-plot] canvas').length >= 4")
            time.sleep(float(os.environ.get("SECONDS_OF_CHARTS", "0")))
        path = folder / f"dashboard-{view.partition('/')[0]}.png"
        browser.shot(path=str(path), whole=view == "charts")
        assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000
