# SPDX-License-Identifier: MIT
"""Faults of a fleet and what each may cost: gateways that are killed, fail-overs to a replica that lacks something or
whose clock is behind, clocks that are wrong, answers that are lost. What was let through is counted at the provider.
"""

import concurrent.futures
import contextlib
import re
import signal
import time

import pytest

from api import Api
from house import RATION, Client, a_day, one_provider, until
from provider import hello
from redis_house import LOOPBACK, Clock, Proxy, Redis
from test_fleet_serve import HASTY, NO_WAIT, OF_ALL, Gate, Held, fleet, redis, slots  # noqa: F401

PATIENCE = {"Ration-Timeout": "60s"}
HOUR, DAY = 3600, 86400
NO_RESERVE = {"budget": {"retryReserve": "0%"}}


def key(name, provider="p"):
    return f"ration:1:{{default/{provider}}}:{name}"


def quota(most, **window):
    return {"name": "quota", "kind": "quota", "max": most, "window": window, **OF_ALL}


def bucket(rate, burst):
    return {"name": "bucket", "kind": "rate", "rate": rate, "burst": burst, "margin": 0, **OF_ALL}


def providers(url, **limits):
    """A config with a provider and an account for each limit, of its name; calls say in their path whose they are."""
    return {"settings": {"ledger": {"path": "none"}, **NO_RESERVE},
            "providers": [{"name": name, "baseUrl": f"{url}/{name}", "retries": 0, "limits": [limit]}
                          for name, limit in limits.items()],
            "accounts": [{"name": name, "provider": name} for name in limits]}


def count(server, name):
    """How many of its calls a fake provider has seen."""
    return sum(request.target.startswith(f"/{name}/") for request in list(server.requests))


def leases(store, provider="p"):
    """Those with a time to live; last in their set stands what keeps it."""
    return int(store.ask("ZCOUNT", key("leases", provider), "-inf", "(inf"))


def server_time(store):
    second, micros = map(int, store.ask("TIME").split())
    return second + micros / 1e6


class Pair:
    """A master and its replica, which hears of it through a link that can be cut."""

    def __init__(self, folder):
        self.clocks = [Clock(folder / name) for name in ("ahead-a", "ahead-b")]
        self.master = Redis(folder / "a", "--repl-diskless-sync-delay", "0", env=self.clocks[0].env)
        self.link = Proxy(self.master.port)
        self.replica = Redis(folder / "b", "--repl-diskless-sync-delay", "0", "--replicaof", LOOPBACK,
                             str(self.link.port), env=self.clocks[1].env)
        self.url = f"redis://{LOOPBACK}:{self.master.port},{LOOPBACK}:{self.replica.port}"
        until(lambda: b"master_link_status:up" in self.replica.ask("INFO", "replication"), "a replica in step")

    def until_in_step(self):
        """What has been written so far is there as well: as much as when it was looked."""
        def offset(store):
            return int(re.search(rb"master_repl_offset:(\d+)", store.ask("INFO", "replication"))[1])

        written = offset(self.master)
        until(lambda: offset(self.replica) >= written, "the replica has everything")

    def fail_over(self):
        self.master.kill()
        assert b"OK" in self.replica.ask("REPLICAOF", "NO", "ONE")

    def close(self):
        self.master.kill()
        self.replica.kill()
        self.link.close()


@pytest.fixture
def pair(redis, tmp_path):  # noqa: F811
    with contextlib.closing(Pair(tmp_path)) as one:
        yield one


# ---- gateways that die, and the order of those who wait


def test_a_dead_first_waiter(provider, fleet, redis):  # noqa: F811
    """The others go on one waiterTtl later: nobody waits for a time to live, which is ten minutes here."""
    gate = Gate()
    config = one_provider(provider(gate).url, [slots(1)])
    one, two, three = fleet(config, 3, {"leaseTtl": "10m", "waiterTtl": "2s"})
    holder = Held(one)
    until(lambda: gate.inside == 1, "the slot is taken")
    first = Held(two, {"Ration-Priority": "critical", **PATIENCE})
    until(lambda: redis.ask("ZCARD", key("waiters")).strip() == b"1", "the first waiter")
    next_one = Held(three, PATIENCE)
    until(lambda: redis.ask("ZCARD", key("waiters")).strip() == b"2", "another one")
    two.signal(signal.SIGKILL)
    two.wait()
    began = time.monotonic()
    gate.opened.set()
    assert (holder.answer().status, next_one.answer().status) == (200, 200)
    assert time.monotonic() - began < 30
    assert (gate.calls, gate.most) == (2, 1)
    with pytest.raises((EOFError, ConnectionError)):
        first.answer()


class Line(Gate):
    """Says in which order calls came."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __call__(self, request, connection):
        with self.lock:
            self.names.append(request.target.strip("/"))
        super().__call__(request, connection)


def test_the_order_across_gateways(provider, fleet, redis):  # noqa: F811
    """Chapter 1: priority, then turns of the tenants, then age; whoever they wait at, and whoever gives back."""
    line = Line()
    gateways = fleet(one_provider(provider(line).url, [slots(1)]), 3)
    calls = [Held(gateways[0])]
    until(lambda: line.inside == 1, "the slot is taken")
    waiters = [("n1", "normal", "x"), ("n2", "normal", "x"), ("l1", "low", None), ("n3", "normal", "y"),
               ("c1", "critical", None), ("h1", "high", None), ("l2", "low", None), ("c2", "critical", None),
               ("h2", "high", None)]
    for number, (name, priority, tenant) in enumerate(waiters):
        fields = {"Ration-Priority": priority, **({"Ration-Tenant": tenant} if tenant else {}), **PATIENCE}
        calls.append(Held(gateways[number * 2 % 3], fields, f"/a/{name}"))
        until(lambda most=number + 1: redis.ask("ZCARD", key("waiters")).strip() == b"%d" % most, f"{name} waits")
    line.opened.set()
    assert [call.answer().status for call in calls] == [200] * 10
    assert line.names == ["x", "c1", "c2", "h1", "h2", "n1", "n3", "n2", "l1", "l2"]
    assert line.most == 1


# ---- clocks


def test_a_replica_whose_clock_is_behind(provider, fleet, pair):  # noqa: F811
    """Midnight has passed when the fail-over comes, and by the replica's clock it has not: nothing is there twice."""
    server = provider(hello)
    gate = Gate()
    config = providers(server.url, daily=quota(3, period="day"), rolling=quota(3, rolling="1h"),
                       bucket=bucket("1/s", 3))
    config["providers"].append({"name": "slots", "baseUrl": provider(gate).url, "retries": 0, "limits": [slots(1)]})
    config["accounts"].append({"name": "slots", "provider": "slots"})
    one, two = fleet(config, 2, {"redis": pair.url, "leaseTtl": "4s", "backoff": "100ms"})
    past_midnight = DAY + 1 - time.time() % DAY
    pair.clocks[0].set(past_midnight)
    pair.clocks[1].set(past_midnight - 5)

    def drain(name):
        """Calls until one is refused, by turns."""
        for number in range(99):
            answer = (one, two)[number % 2].call("GET", f"/{name}/x", NO_WAIT)
            if answer.status != 200:
                return answer.json()
        raise AssertionError(f"'{name}' has no end")

    began = time.monotonic()
    for name, reason in (("daily", "quota_exhausted"), ("rolling", "quota_exhausted"), ("bucket", "rate_limited")):
        assert drain(name)["reason"] == reason
    held = Held(one, target="/slots/x")
    until(lambda: gate.inside == 1, "the slot is taken")
    pair.until_in_step()
    pair.fail_over()
    for gw in (one, two):
        until(lambda gw=gw: gw.call("GET", "/daily/x", NO_WAIT)["Ration-Refused"] == "quota_exhausted", "up again")
    assert drain("daily")["retryAfterMs"] > (DAY - HOUR) * 1000
    assert drain("rolling")["retryAfterMs"] > HOUR * 900
    assert (count(server, "daily"), count(server, "rolling")) == (3, 3)
    drain("bucket")
    assert count(server, "bucket") <= 3 + time.monotonic() - began
    # Time goes on: a token comes to who waits for it, and what a dead holder held comes back; not before it dies.
    assert two.call("GET", "/bucket/x", PATIENCE).status == 200
    assert count(server, "bucket") <= 3 + time.monotonic() - began
    renewed = "ration_fleet_calls_total{script=\"renew\"}"
    before = one.metrics().get(renewed, 0)
    until(lambda: one.metrics().get(renewed, 0) > before, "it is renewed")
    assert two.call("GET", "/slots/x", NO_WAIT)["Ration-Refused"] == "concurrency_full"
    one.signal(signal.SIGKILL)
    one.wait()
    gate.opened.set()
    assert two.call("GET", "/slots/x", PATIENCE).status == 200
    with pytest.raises((EOFError, ConnectionError)):
        held.answer()


@pytest.mark.skipif("asan" in RATION, reason="the sanitizer wants to be loaded first")
def test_clocks_of_gateways(provider, fleet, redis, tmp_path):  # noqa: F811
    """One is an hour ahead, one an hour behind, and no decision, no time to retry and no end knows it."""
    server = provider(hello)
    clocks = [Clock(tmp_path / f"ahead{hours}", hours * HOUR) for hours in (-1, 1)]
    early_in_the_hour = Clock(tmp_path / "early", 600 - time.time() % HOUR)
    config = providers(server.url, hourly=quota(5, period="hour"), bucket=bucket("1/m", 4), slots=slots(1))
    with Redis(tmp_path / "early-redis", env=early_in_the_hour.env) as store:
        where = {"redis": store.url}
        gateways = [fleet(config, settings=where, env=clock.env) for clock in clocks] + [fleet(config, settings=where)]
        for name, most, reason in (("hourly", 5, "quota_exhausted"), ("bucket", 4, "rate_limited")):
            answers = [gateways[number % 3].call("GET", f"/{name}/x", NO_WAIT) for number in range(3 * most)]
            assert sum(answer.status == 200 for answer in answers) == count(server, name) <= most + (name == "bucket")
            assert {answer["Ration-Refused"] for answer in answers} == {None, reason}
        for gw in gateways:
            told = gw.call("GET", "/hourly/x", NO_WAIT).json()["retryAfterMs"] / 1000
            assert abs(told - (HOUR - server_time(store) % HOUR)) < 60

        def scores(name, begin, span):
            """Of the members of a sorted set that begin so: they are `span` later than now, or a little earlier."""
            listed = store.ask("ZRANGEBYSCORE", key(name, "slots"), "-inf", "(inf", "WITHSCORES").decode().split()
            found = [int(at) / 1e6 for who, at in zip(listed[::2], listed[1::2], strict=True) if who.startswith(begin)]
            return len(found) == 1 and before + span <= found[0] <= server_time(store) + span

        for gw, other in zip(gateways, gateways[1:] + gateways[:1], strict=True):
            before = server_time(store)
            lease = Api(gw).granted({"account": "slots", "ttl": HOUR * 500})
            assert scores("leases", "", HOUR / 2)
            assert other.call("GET", "/slots/x", NO_WAIT)["Ration-Refused"] == "concurrency_full"
            before = server_time(store)
            waiter = Held(other, {"Ration-Timeout": "50s"}, "/slots/x")
            until(lambda: scores("alarms", "d", 50), "a deadline by the store's time")
            Api(gw).release(lease)
            assert waiter.answer().status == 200
            until(lambda: store.ask("EXISTS", key("limit:slots:slots", "slots")).strip() == b"0", "it is given back")


# ---- grants that a replica has not heard of


def drained(gw):
    """Calls until the quota is used up."""
    return until(lambda: gw.call("GET", "/a/x", NO_WAIT)["Ration-Refused"] == "quota_exhausted", "used up")


def test_the_overshoot_of_a_fail_over(provider, fleet, pair):  # noqa: F811
    """As many more calls as there are grants that the replica lacks, and not one more."""
    server = provider(hello)
    gw = fleet(one_provider(server.url, [quota(9, **a_day())], settings=NO_RESERVE), settings={"redis": pair.url})
    for _ in range(3):
        assert gw.call("GET", "/a/x", NO_WAIT).status == 200
    pair.until_in_step()
    pair.link.mute()
    for _ in range(4):
        assert gw.call("GET", "/a/x", NO_WAIT).status == 200
    pair.fail_over()
    drained(gw)
    assert len(server.requests) == 9 + 4


def test_slots_that_a_replica_lacks(provider, fleet, pair):  # noqa: F811
    """Whoever lives enters what it holds: nobody else gets it, though the replica has never heard of it."""
    gate = Gate()
    one, two = fleet(one_provider(provider(gate).url, [slots(2)]), 2, {"redis": pair.url})
    pair.until_in_step()
    pair.link.mute()
    held = [Held(one) for _ in range(2)]
    until(lambda: gate.inside == 2, "both are taken")
    pair.fail_over()
    until(lambda: leases(pair.replica) == 2, "both are entered")
    until(lambda: two.call("GET", "/a/x", NO_WAIT)["Ration-Refused"] == "concurrency_full", "up again")
    gate.opened.set()
    assert [call.answer().status for call in held] == [200, 200]
    assert gate.most == 2


def test_grants_that_wait_for_a_replica(provider, fleet, pair):  # noqa: F811
    """With `wait: 1` nothing is given out before the replica has it, so the fail-over costs nothing."""
    server = provider(hello)
    config = one_provider(server.url, [quota(3, **a_day())], settings=NO_RESERVE)
    one = fleet(config, settings={"redis": pair.url, "wait": 1, "commandTimeout": "60s"})
    two = fleet(config, settings={"redis": pair.url})
    assert one.call("GET", "/a/x", NO_WAIT).status == 200
    until(lambda: leases(pair.master) == 0, "the first is over")
    pair.link.mute()
    second = Held(one, NO_WAIT)
    until(lambda: leases(pair.master) == 1, "the master has granted it")
    assert one.status()["totals"]["granted"] == 1 and len(server.requests) == 1
    pair.link.unmute()
    assert second.answer().status == 200
    pair.fail_over()
    drained(two)
    assert len(server.requests) == 3


def test_replicas_that_are_missing(provider, fleet, redis):  # noqa: F811
    """Nobody is held up for them, and it shows."""
    config = one_provider(provider(hello).url, [quota(3, **a_day())], settings=NO_RESERVE)
    gw = fleet(config, settings={"wait": 1, "commandTimeout": "4s"})
    for _ in range(3):
        assert gw.call("GET", "/a/x", NO_WAIT).status == 200
    gw.until(lambda status: status["fleet"]["unreplicated"] >= 3, "three grants that no replica has")
    assert gw.metrics()["ration_fleet_unreplicated_total"] >= 3


# ---- answers that are lost, and scripts


def test_answers_lost_after_execution(provider, fleet, redis):  # noqa: F811
    """Each call's next answer is cut off: what was asked for is asked for again, and counts once."""
    server = provider(hello)
    calls = 12
    with contextlib.closing(Proxy(redis.port)) as proxy:
        gw = fleet(one_provider(server.url, [quota(calls, **a_day()), slots(1)], settings=NO_RESERVE),
                   settings={"redis": proxy.url, "backoff": "50ms"})
        assert gw.call("GET", "/a/x").status == 200
        admit = re.search(rb"EVALSHA\r\n\$40\r\n([0-9a-f]{40})\r\n\$\d\r\n\d+\r\n\$\d+\r\n" + key("head").encode(),
                          proxy.asked)[1]
        before = proxy.asked.count(admit)
        for _ in range(calls - 1):
            proxy.deaf_after(0)
            assert gw.call("GET", "/a/x", PATIENCE).status == 200
        assert proxy.asked.count(admit) - before > calls - 1, "some were asked for twice"
        assert gw.call("GET", "/a/x", PATIENCE)["Ration-Refused"] == "quota_exhausted"
        assert len(server.requests) == calls
        until(lambda: redis.ask("EXISTS", key("limit:slots:a")).strip() == b"0", "all is given back")


def test_a_partition_and_its_end(provider, fleet, redis):  # noqa: F811
    """One gateway's way to Redis is stopped. What it holds stays its own, and the other goes on; then all is told."""
    gate = Gate()
    config = one_provider(provider(gate).url, [quota(4, **a_day()), slots(2)], settings=NO_RESERVE)
    with contextlib.closing(Proxy(redis.port)) as proxy:
        one = fleet(config, settings={"redis": proxy.url, **HASTY})
        two = fleet(config)
        held = Held(one)
        until(lambda: gate.inside == 1, "a slot is taken")
        proxy.mute()
        assert one.call("GET", "/a/x", PATIENCE)["Ration-Refused"] == "store_unavailable"
        other = Held(two)
        until(lambda: gate.inside == 2, "the other slot is taken")
        assert two.call("GET", "/a/x", NO_WAIT)["Ration-Refused"] == "concurrency_full"
        gate.opened.set()
        assert (held.answer().status, other.answer().status) == (200, 200)
        one.until(lambda s: s["fleet"]["toldLate"] > 0, "a release that waits")
        proxy.unmute()
        one.until(lambda s: s["fleet"]["state"] == "up" and s["fleet"]["toldLate"] == 0, "all is told")
        # One that came late out of the partition is nobody's, and ends with its time to live.
        until(lambda: redis.ask("EXISTS", key("limit:slots:a")).strip() == b"0", "both are given back", 90)
        drained(one)
        assert two.call("GET", "/a/x", NO_WAIT)["Ration-Refused"] == "quota_exhausted"
        # A request that was on its way into the partition may have been counted, and was not sent.
        assert 3 <= gate.calls <= 4 and gate.most == 2


def test_scripts_forgotten_under_load(provider, fleet, redis):  # noqa: F811
    server = provider(hello)
    most, clients = 120, 12
    gateways = fleet(one_provider(server.url, [quota(most, **a_day()), slots(4)], settings=NO_RESERVE), 3)

    def client(number):
        with Client(gateways[number % 3].port) as one:
            return [one.call("GET", "/a/x", PATIENCE) for _ in range(most // clients + 1)]

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(client, number) for number in range(clients)]
        flushed = 0
        while not all(one.done() for one in running):
            assert b"OK" in redis.ask("SCRIPT", "FLUSH")
            flushed += 1
        answers = [answer for one in running for answer in one.result()]
    assert flushed > 1
    assert {answer["Ration-Refused"] for answer in answers} == {None, "quota_exhausted"}
    assert sum(answer.status == 200 for answer in answers) == len(server.requests) == most


# ---- what stays in Redis


LISTED = """local t = redis.call('KEYS', 'ration:*') for i, key in ipairs(t) do
t[i] = key .. ' ' .. redis.call('PTTL', key) end return t"""
MINUTE, WEEK = 60, 7 * DAY
WAIT, TTL, IDLE = 20, 40, 20  # below, in seconds
TOLD = WEEK + 5 * MINUTE  # what headers have taught of a window of a minute: from its end on, and two on each side
GRAIN = 2 * 16.78  # Redis removes a value up to so much later
LIVES = {  # how long a key may live on after the last call, by the beginning of its name, in seconds
    "limit:rate:": 20,
    "limit:minute:": 3 * MINUTE,
    "limit:told:": TOLD,
    "limit:slots:": TTL + MINUTE, "ends:slots:": TTL + MINUTE,
    "limit:width:": WEEK,
    "limit:fair:": 2 * DAY + TTL + 2 * IDLE, "share:fair:": 3 * DAY + TTL + 2 * IDLE,
    "order:fair:": 3 * DAY + TTL + 2 * IDLE, "tenants:": 3 * DAY + TTL + 2 * IDLE,
    "account:": WEEK + 1,
    "circuit:": WEEK + 1, "circuits": TOLD, "results:": WEEK, "samples:": WEEK + MINUTE,
    "lease:": TOLD + DAY, "leases": TTL + 2 * DAY,
    "wait:": WAIT + DAY, "watch:": WAIT + DAY, "places:": WAIT + DAY,
    "queue": TTL + 2 * DAY, "waiters": TTL + 2 * DAY, "lines": TTL + 2 * DAY, "alarms": TTL + 2 * DAY,
    "head": TOLD + 2 * DAY,
    "members": 2 * MINUTE,
    "salt": 400 * DAY,
}


def lives(store, found):
    """The longest of each kind of key that there is, in seconds from now."""
    for line in store.ask("EVAL", LISTED, 0).decode().splitlines():
        name, _, left = line.rpartition(" ")
        name = re.sub(r"ration:1:\{[^}]*\}:", "", name)
        kind = max((kind for kind in LIVES if name.startswith(kind)), key=len, default=name)
        if left == "-2":
            continue  # it has just gone
        assert left != "-1", f"{name} has no end"
        found[kind] = max(found.get(kind, 0), int(left) / 1000)
    return found


def by_shop():
    """Limits with a counter for each value of a variable of the path."""
    scope = {"scope": {"by": ["account", "var:shop"]}}
    return [{"name": "rate", "kind": "rate", "rate": "1/s", "burst": 20, **scope},
            {"name": "minute", "kind": "quota", "max": 1000, "window": {"period": "minute"}, **scope},
            {"name": "slots", "kind": "concurrency", "max": 2, **scope}]


def everything(url):
    """A config with all kinds of limits, and all kinds of breakers."""
    limits = [
        *by_shop(),
        {"name": "told", "kind": "quota", "max": 1000, "window": {"period": "minute"}, **OF_ALL,
         "sync": {"remainingHeader": "X-Left"}},
        {"name": "width", "kind": "adaptive", "initialLimit": 50, **OF_ALL},
        {"name": "fair", "kind": "share", "ceiling": 9, "counts": "requests", "tenants": {"t": 1, "u": 2},
         "reclaimHorizon": "5s", "idleAfter": f"{IDLE}s", **OF_ALL}]
    breakers = {"p": {"strategy": "count", "size": 20}, "q": {"strategy": "sampling", "duration": "60s"},
                "bare": {"strategy": "consecutive", "threshold": 1}}
    return {"settings": {"ledger": {"path": "none"}},
            "providers": [{"name": name, "baseUrl": url, "limits": limits if name != "bare" else [],
                           "breaker": breaker, "tenant": "t", "endpoints": [{"path": "/shops/{shop}"}]}
                          for name, breaker in breakers.items()],
            "accounts": [{"name": name, "provider": name} for name in breakers]}


def asked(account, shop, **more):
    return {"account": account, "endpoint": "/shops/{shop}", "vars": {"shop": shop}, "ttl": TTL * 1000, **more}


def call(api, account, shop, tenant, **told):
    """A call that is over; the lease's end is told, so the next one may come before it."""
    def granted():
        answer = api.post("acquire", asked(account, shop, tenant=tenant))
        return answer.status == 200 and answer.json()["lease"]

    api.release(until(granted, "a slot"), **told)


def test_every_key_has_its_end(provider, fleet, redis, tmp_path):  # noqa: F811
    """No kind of key outlives what is stated of it, and where nobody calls any more nothing is left."""
    clock = Clock(tmp_path / "ahead")
    with Redis(tmp_path / "ahead-redis", env=clock.env) as store:
        gw = fleet(everything(provider(hello).url), settings={"redis": store.url})
        api = Api(gw)
        found = {}
        ill, limited = [api.granted(asked("bare", "x")) for _ in range(2)]
        api.release(ill, status=503)
        api.release(limited, status=429, headers={"Retry-After": "1"})
        for account in ("p", "q"):
            call(api, account, "busy", "t", status=503)
            call(api, account, "told", "u", status=200, headers={"X-Left": "500"})
            held = [api.granted(asked(account, "busy", hold=1000)) for _ in range(2)]
            call(api, account, "other", "u")
            with api.client() as client:
                api.ask(client, "/v1/acquire", asked(account, "busy", hold=1000, timeout=WAIT * 1000))
                until(lambda where=key("waiters", account): store.ask("ZCARD", where).strip() == b"1", "a waiter")
                lives(store, found)
            gw.until(lambda s: s["waiting"] == 0, "it is gone")
            for lease in held:
                api.release(lease)
        assert set(found) == set(LIVES), set(found) ^ set(LIVES)
        assert {kind: left for kind, left in found.items() if left > LIVES[kind] + GRAIN} == {}
        for number in range(100):
            call(api, "p", f"shop-{number}", "u")
        short = {"limit:rate:", "limit:minute:", "limit:slots:", "ends:slots:"}
        clock.set(5 * MINUTE)
        until(lambda: not short & set(lives(store, {})), "short ones are gone")
        assert gw.stop() == 0
        clock.set(60 * WEEK)
        until(lambda: store.ask("DBSIZE").strip() == b"0", "nothing is left")


CLONED = """local count = 0 for i = 1, ARGV[1] do for _, key in ipairs(KEYS) do
redis.call('SET', key .. i, redis.call('GET', key), 'PX', 600000) count = count + 1 end end return count"""


def commands(store):
    """How often those have run that only calls about leases give, or nobody should."""
    told = dict(re.findall(r"cmdstat_(\w+):calls=(\d+)", store.ask("INFO", "commandstats").decode()))
    return {name: int(told.get(name, 0)) for name in ("mget", "get", "set", "del", "zadd", "zrem", "zrange",
                                                      "zrangebyscore", "pexpireat", "keys", "scan")}


def test_many_scope_keys(provider, fleet, redis):  # noqa: F811
    """A call takes as many commands among 100 000 keys as among a few."""
    api = Api(fleet(one_provider(provider(hello).url, by_shop(), endpoints=[{"path": "/shops/{shop}"}])))

    def cost(first):
        """Of calls about new keys and about those that are there."""
        before = commands(redis)
        for lease in [api.granted(asked("a", f"shop-{first + number % 20}")) for number in range(40)]:
            api.release(lease)
        until(lambda: commands(redis)["zrem"] == before["zrem"] + 40, "all are over")
        spent = {name: count - before[name] for name, count in commands(redis).items()}
        return spent

    cost(0)
    few = cost(100)
    counters = [key(f"limit:{limit['name']}:a/shop=shop-0") for limit in by_shop()[:2]]
    assert redis.ask("EVAL", CLONED, 2, *counters, 50_000).strip() == b"100000"
    many = cost(200)
    # Some calls may take the long way, at the end of a minute or after a pause, but not one more of each two.
    assert all(abs(many[name] - few[name]) <= 40 for name in few), (few, many)
    assert few["mget"] >= 80 and many["keys"] == many["scan"] == 0
