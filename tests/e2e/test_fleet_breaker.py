# SPDX-License-Identifier: MIT
"""A circuit of several gateways: it opens for all of them, and one of them finds out that the provider is well."""

import threading
import time

from house import one_provider, until
from test_breaker import breaker, fail, is_state
from test_fleet_serve import fleet, redis, slots  # noqa: F401
from test_refusals import now

DELAY_S = 1


class Patient:
    """A provider that is ill until it is told to be well; it counts who looks after it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.well = False
        self.looks = 0

    def __call__(self, request, connection):
        with self.lock:
            self.looks += request.target == "/ping"
            well = self.well
        connection.reply(200 if well else 503)


def is_barred(gw):
    return gw.call("GET", "/a/", now())["Ration-Refused"] == "circuit_open"


def checks(gateways):
    return sum(sum(gw.status()["totals"]["healthChecks"].values()) for gw in gateways)


def test_open_for_all_and_checked_by_one(provider, fleet):  # noqa: F811
    patient = Patient()
    policy = breaker(3, recovery="healthCheck", healthCheck={"path": "/ping"})
    first, second = fleet(one_provider(provider(patient).url, [slots(4)], breaker=policy), 2)
    began = time.monotonic()
    fail(first, 1, 503)
    fail(second, 1, 503)
    fail(first, 1, 503)
    for gw in (first, second):
        until(lambda gw=gw: is_barred(gw), "open")
    until(lambda: patient.looks >= 3, "it is looked at again and again")
    assert patient.looks <= (time.monotonic() - began) / DELAY_S + 1, "each time by one of them"
    assert is_barred(second)
    patient.well = True
    until(lambda: second.call("GET", "/a/", now()).status == 200, "closed by whoever looked")
    assert first.call("GET", "/a/", now()).status == 200
    until(lambda: checks((first, second)) == patient.looks, "all checks are over")
    for change in ('msg="circuit open"', 'msg="circuit closed"'):
        until(lambda change=change: change in first.text() + second.text(), change)
        assert (first.text() + second.text()).count(change) == 1, "a change stands in one log"


def test_quorum(provider, fleet):  # noqa: F811
    """However often one of them fails, the circuit opens when another has seen a failure, too."""
    policy = breaker(2, quorum=2)
    first, second = fleet(one_provider(provider(Patient()).url, [slots(4)], breaker=policy), 2)
    fail(first, 6, 503)
    assert not is_barred(first) and not is_barred(first)
    fail(second, 1, 503)
    for gw in (first, second):
        until(lambda gw=gw: is_barred(gw), "open")


def test_a_probe_of_one_is_a_probe_of_all(provider, fleet):  # noqa: F811
    """Half-open, one request of all gateways together may try, and another a back-off later; all else is refused."""
    patient = Patient()
    go = threading.Event()
    inside, refused = [], []

    def handler(request, connection):
        if patient.well:
            inside.append(request.target)
            go.wait(60)
        patient(request, connection)

    gateways = fleet(one_provider(provider(handler).url, [slots(4)], breaker=breaker(1)), 2)
    fail(gateways[0], 1, 503)
    until(lambda: all(is_barred(gw) for gw in gateways), "open")
    patient.well = True

    def knock(gw):
        while not go.is_set():
            if is_barred(gw):
                refused.append(gw)

    began = time.monotonic()
    threads = [threading.Thread(target=knock, args=(gw,)) for gw in gateways * 2]
    for thread in threads:
        thread.start()
    try:
        until(lambda: inside, "a probe is let through")
        until(lambda: len(set(refused)) == 2 and len(refused) > 20, "others are refused")
        assert len(inside) <= (time.monotonic() - began) / DELAY_S + 1
    finally:
        go.set()
        for thread in threads:
            thread.join()
    for gw in gateways:
        until(lambda gw=gw: gw.call("GET", "/a/", now()).status == 200, "closed for all")


def test_what_all_tell_of_it(provider, gateway, fleet):  # noqa: F811
    """Status and metrics say of the circuit what a gateway alone does, whoever has opened it."""
    patient = Patient()
    policy = breaker(2, backoff={"delay": "30s"})
    config = one_provider(provider(patient).url, [slots(4)], breaker=policy)
    first, second = fleet(config, 2)
    alone = gateway(config)
    patient.well = True
    for gw in (alone, first, second):
        assert gw.call("GET", "/a/", now()).status == 200
        gw.until(is_state("closed"), "closed")
    closed = [gw.status()["breakers"] for gw in (alone, first, second)]
    assert closed[0] == closed[1] == closed[2] == [
        {"provider": "p", "breaker": "a", "state": "closed", "generation": 1}]
    patient.well = False
    for gw in (alone, first):
        fail(gw, 2, 503)
    opened = [gw.until(is_state("open"), "open")["breakers"][0] for gw in (alone, first, second)]
    assert all(one.pop("retryAt") > 0 for one in opened)
    assert opened[0] == opened[1] == opened[2] and opened[0]["cause"]
    assert second.metrics()['ration_breaker_state{provider="p",key="a"}'] == 2


def test_breakers_that_are_told_of(provider, fleet):  # noqa: F811
    """Those that requests have gone through here, and no more than a page takes; none without a breaker."""
    config = one_provider(provider(Patient()).url, [slots(4)], breaker=breaker(2))
    config["accounts"] = [{"name": f"a{i}", "provider": "p"} for i in range(70)]
    gw, other = fleet(config, 2)
    for i in range(70):
        assert gw.call("GET", f"/a{i}/", now()).status == 503
    gw.until(lambda s: len(s["breakers"]) == 64, "the last of them")
    names = [one["breaker"] for one in gw.status()["breakers"]]
    assert names == sorted(f"a{i}" for i in range(6, 70))
    assert other.status()["breakers"] == []
    assert gw.call("GET", "/a0/", now()).status == 503
    gw.until(lambda s: "a0" in [one["breaker"] for one in s["breakers"]], "asked for again")
    assert "a6" not in [one["breaker"] for one in gw.status()["breakers"]]
