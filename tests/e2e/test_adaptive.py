# SPDX-License-Identifier: MIT
"""An adaptive limit in the gateway, before a simulated provider whose ceiling nobody has declared."""
import contextlib
import threading
import time

from house import one_provider, slots
from simulated import Client, simulator

PROVIDER = """
providers:
  - { name: p, baseUrl: http://p.example, limits: [] }
"""
# At the low end for a second, then up to 5 and back. A 429 says when to come back; the gateway obeys.
WORLD = ["--ceiling", "2..5/6s", "--retry-after", "100ms", "--latency", "60ms+-20ms"]
CALLERS = 10
LEARNED = {
    "name": "learned",
    "kind": "adaptive",
    "initialLimit": 2,
    "maxLimit": 50,
    "aimd": {"decreaseFactor": 0.75, "window": "500ms", "cooldown": "1s"},
    "scope": {"by": ["account"]},
}


def drive(port, seconds):
    """Callers that ask again as soon as they are answered; how many were answered with what."""
    end = time.monotonic() + seconds
    answered = {}
    lock = threading.Lock()

    def caller():
        client = Client(port)
        while time.monotonic() < end:
            status = client.call("/a/things").status
            with lock:
                answered[status] = answered.get(status, 0) + 1
        client.connection.close()

    callers = [threading.Thread(target=caller) for _ in range(CALLERS)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    return answered


def limit_row(gateway):
    (row,) = [row for row in gateway.status()["limits"] if row["limit"] == "learned"]
    return row


@contextlib.contextmanager
def world(tmp_path, gateway, *limits):
    with simulator(tmp_path, PROVIDER, *WORLD) as port:
        gw = gateway(one_provider(f"http://127.0.0.1:{port}", limits))
        yield gw, Client(port)
        gw.until_idle()


def test_learns_where_a_guess_runs_into_it(tmp_path, gateway):
    with world(tmp_path, gateway, slots(CALLERS)) as (gw, provider):
        guessed = drive(gw.port, 6)
        told = provider.counts()
    with world(tmp_path, gateway, LEARNED) as (gw, provider):
        learned = drive(gw.port, 6)
        seen = provider.counts()
    assert seen["causes"] == {"ceiling": seen["rateLimited"]}
    assert learned.get(429, 0) == seen["rateLimited"]
    assert seen["rateLimited"] * 3 < told["rateLimited"], (learned, guessed)
    assert learned[200] > guessed[200]
    assert seen["ceiling"]["overCallMs"] <= seen["ceiling"]["usedCallMs"] / 10


def test_what_it_stands_at_is_seen(tmp_path, gateway):
    with world(tmp_path, gateway, LEARNED) as (gw, provider):
        assert gw.call("GET", "/a/things").status == 200
        row = limit_row(gw)
        assert (row["kind"], row["key"], row["current"]) == ("adaptive", "a", 2)
        stood = set()
        done = threading.Event()

        def watch():
            while not done.wait(0.05):
                stood.add(limit_row(gw)["current"])

        watcher = threading.Thread(target=watch)
        watcher.start()
        drive(gw.port, 4)
        done.set()
        watcher.join()
        gw.until_idle()
        assert min(stood) >= 1 and max(stood) >= 3
        metrics = gw.metrics()
        name = 'ration_adaptive_limit{provider="p",limit="learned",key="a"}'
        assert metrics[name] == limit_row(gw)["current"]
        assert provider.counts()["rateLimited"] > 0
