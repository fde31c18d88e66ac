#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the dashboard costs: first paint, and the server's CPU with three of them open. By hand: it wants a browser.

First paint is that of a new browser profile each time, next to that of a page of two letters (/healthz), by turns:
what disturbs the machine disturbs both. CPU is the server's own time (/proc), with three dashboards (Now, Charts,
Limits) and with none, by turns; a status' is that of its requests one after the other.

usage: bench_dashboard.py RATION [--opens N] [--rounds N] [--seconds N] [--keys N ...]
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VIEWS = ("now", "charts", "limits")
BATCH = 100
STATUSES = 10
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def load():
    return f"{os.getloadavg()[0]:.1f}"


def cpu_of(pid):
    """Seconds of a process since it began."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fill(gw, client_of, keys):
    """So many scope keys, each asked for once."""
    with client_of(gw.control_port) as client:
        for first in range(0, keys, BATCH):
            asked = {"account": "a", "endpoint": "/things/{id}", "ttl": 1}
            bodies = [json.dumps({**asked, "vars": {"id": str(first + at)}}) for at in range(BATCH)]
            client.send("".join(f"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                f"Content-Length: {len(body)}\r\n\r\n{body}" for body in bodies))
            for _ in range(BATCH):
                assert client.answer().status == 200


def painted(browser, url):
    browser.open(url=url)
    return browser.until(code=PAINTED)


def first_paint(browser, gw, opens):
    base = f"http://127.0.0.1:{gw.control_port}"
    times, bare, ratios = [], [], []
    for at in range(opens + 1):
        pair = painted(browser, f"{base}/#/{VIEWS[at % len(VIEWS)]}"), painted(browser, f"{base}/healthz")
        if at == 0:
            print(f"  the first of a browser       {pair[0]:6.0f} ms, the bare page's {pair[1]:.0f} ms")
            continue
        times.append(pair[0])
        bare.append(pair[1])
        ratios.append(pair[0] / pair[1])
    print(f"  first paint                  {statistics.median(times):6.0f} ms (median of {opens}, "
          f"{min(times):.0f} to {max(times):.0f}); a bare page {statistics.median(bare):.0f} ms, "
          f"ratio {statistics.median(ratios):.2f}")


def share_of_a_core(gw, seconds):
    begin, at = cpu_of(gw.popen.pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_of(gw.popen.pid) - begin) / (time.monotonic() - at)


def three_open(browsers, gw, rounds, seconds):
    alone, watched = [], []
    for _ in range(rounds):
        for browser in browsers:
            browser.open(url="about:blank")
        alone.append(share_of_a_core(gw, seconds))
        for browser, view in zip(browsers, VIEWS):
            browser.open(url=f"http://127.0.0.1:{gw.control_port}/#/{view}")
            browser.until(code="document.querySelector('main h1')")
        time.sleep(2)
        watched.append(share_of_a_core(gw, seconds))
    print(f"  the server, three open       {statistics.median(watched):6.2f} % of a core, "
          f"none open {statistics.median(alone):.2f} % (medians of {rounds})")


def statuses(gw):
    connection = http.client.HTTPConnection("127.0.0.1", gw.control_port)
    begin, size = cpu_of(gw.popen.pid), 0
    for _ in range(STATUSES):
        connection.request("GET", "/v1/status")
        size = len(connection.getresponse().read())
    print(f"  a status                     {1000 * (cpu_of(gw.popen.pid) - begin) / STATUSES:6.0f} ms of the server, "
          f"{size / 1000:.0f} kB")


def measure(keys, args):
    from browsing import Browser
    from house import Client, Gateway, one_provider, slots
    import world

    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if keys > 0:
            limit = {**slots(1), "scope": {"by": ["account", "var:id"]}}
            config = one_provider("http://127.0.0.1:9", [limit], endpoints=["/things/{id}"])
        else:
            config = world.config("http://127.0.0.1:9")
        gw = Gateway(config, folder)
        stack.callback(gw.kill)
        if keys > 0:
            fill(gw, Client, keys)
        else:
            for account, tenant, _, path, _ in world.Traffic.STREAMS:
                gw.call("GET", f"/{account}{path}", {"Ration-Tenant": tenant})
        print(f"{len(gw.status()['limits'])} keys in the status{f' of {keys}' if keys else ''}, load {load()}")
        statuses(gw)
        browsers = [Browser() for _ in VIEWS]
        for browser in browsers:
            stack.callback(browser.close)
        first_paint(browsers[0], gw, args.opens)
        three_open(browsers, gw, args.rounds, args.seconds)
        print(f"  load now {load()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ration", type=pathlib.Path)
    parser.add_argument("--opens", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--keys", type=int, nargs="*", default=[0, 5000, 200_000])
    args = parser.parse_args()
    os.environ["RATION"] = str(args.ration.resolve())
    sys.path.insert(0, str(ROOT / "tests" / "e2e"))
    for keys in args.keys:
        measure(keys, args)


if __name__ == "__main__":
    main()
