# SPDX-License-Identifier: MIT
"""`settings.fleet.prefetch`: units taken at once. Never more of them are used than there are, what is not used comes
back, and whoever dies has used all that it took.
"""

import concurrent.futures
import datetime
import json
import signal
import threading
import time

from api import Api
from house import a_day, one_provider, until
from provider import hello
from test_fleet_serve import HASTY, NO_WAIT, OF_ALL, Held, fleet, redis  # noqa: F401

N = 40
LONG = {"prefetch": N, "prefetchTtl": "60s"}
SHORT = {"prefetch": N, "prefetchTtl": "300ms"}
NO_RESERVE = {"budget": {"retryReserve": "0%"}}


def daily(most, **more):
    return {"name": "daily", "kind": "quota", "max": most, "window": a_day(), **OF_ALL, **more}


class Counting:
    """A provider that counts, and says "too many" to the calls of these numbers."""

    def __init__(self, limited=()):
        self.lock = threading.Lock()
        self.calls = 0
        self.limited = limited

    def __call__(self, request, connection):
        with self.lock:
            self.calls += 1
            limited = self.calls in self.limited
        if limited:
            connection.reply(429, [("Retry-After", "60")])
        else:
            hello(request, connection)


def units(gw):
    return gw.status()["fleet"]["prefetched"]


def call(gw):
    """200, or why not."""
    answer = gw.call("GET", "/a/x", NO_WAIT)
    return answer["Ration-Refused"] or answer.status


def use_up(gw, deadline=30):
    """So many calls until one is refused."""
    end, count = time.monotonic() + deadline, 0
    while (told := call(gw)) == 200:
        count += 1
        assert time.monotonic() < end
    return count, told


def scripts(gw):
    return {name.split('"')[1]: int(count) for name, count in gw.metrics().items()
            if name.startswith("ration_fleet_calls_total")}


def test_one_script_for_many(provider, fleet):  # noqa: F811
    """Admissions, ends, and all successes but the first are nobody's business but the gateway's."""
    gw = fleet(one_provider(provider(hello).url, [daily(1000)]), settings=LONG)
    assert [call(gw) for _ in range(N)] == [200] * N
    assert units(gw) == {"taken": N, "spent": N, "returned": 0, "lost": 0, "held": 0}
    assert gw.status()["totals"]["granted"] == N
    assert call(gw) == 200
    assert units(gw) == {"taken": 2 * N, "spent": N + 1, "returned": 0, "lost": 0, "held": N - 1}
    gw.until(lambda s: {c["name"]: c["calls"] for c in s["fleet"]["scripts"]}.get("release") == 1, "one release")
    assert scripts(gw)["prefetch"] == 2 and scripts(gw)["observe"] <= 2 and "admit" not in scripts(gw)
    metrics = gw.metrics()
    assert metrics['ration_fleet_prefetched_total{what="spent"}'] == N + 1
    assert metrics["ration_fleet_prefetched"] == N - 1


def test_the_limit_and_the_overshoot(provider, fleet):  # noqa: F811
    """Three gateways: a quota is kept to the unit, a rate but for a block a process."""
    counting, burst, a_second, most = Counting(), 60, 60, 160
    config = one_provider(provider(counting).url, [
        {"name": "rate", "kind": "rate", "rate": f"{a_second}/s", "burst": burst, **OF_ALL}, daily(most)],
        settings=NO_RESERVE)
    gateways = fleet(config, 3, SHORT)
    began = time.monotonic()

    def client(number):
        """As often as it takes until the quota is used up and no block is held any more."""
        while True:
            told = call(gateways[number % 3])
            held = sum(units(gw)["held"] for gw in gateways)
            bound = burst + a_second * (time.monotonic() - began) + 3 * N
            assert counting.calls <= min(bound, most)
            if told == "quota_exhausted" and held == 0 and call(gateways[number % 3]) == "quota_exhausted":
                return

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(client, range(6)))
    assert counting.calls == most
    totals = [units(gw) for gw in gateways]
    assert sum(one["taken"] for one in totals) > 0
    for one in totals:
        assert one["taken"] == one["spent"] + one["returned"] and (one["lost"], one["held"]) == (0, 0)


def test_unused_units_come_back(provider, fleet):  # noqa: F811
    """Another gateway gets all of them but the one that was used."""
    counting = Counting()
    one, two = fleet(one_provider(provider(counting).url, [daily(100)], settings=NO_RESERVE), 2, SHORT)
    assert call(one) == 200
    assert units(one)["taken"] == N
    got = 0

    def rest():
        nonlocal got
        got += use_up(two)[0]
        return got >= 99

    until(rest, "the other 99")
    assert (got, counting.calls) == (99, 100)
    assert units(one) == {"taken": N, "spent": 1, "returned": N - 1, "lost": 0, "held": 0}
    assert (call(one), call(two)) == ("quota_exhausted", "quota_exhausted")


def test_a_dead_process_has_used_its_block(provider, fleet, redis):  # noqa: F811
    """Counted too high by no more than a block, and never too low."""
    counting = Counting()
    one, two = fleet(one_provider(provider(counting).url, [daily(100)], settings=NO_RESERVE), 2,
                     {**LONG, "leaseTtl": "1s"})
    assert call(one) == 200
    one.signal(signal.SIGKILL)
    one.wait()
    assert use_up(two) == (100 - N, "quota_exhausted")
    leases = ("ZCOUNT", "ration:1:{default/p}:leases", "-inf", "(inf")
    until(lambda: call(two) == 200 or redis.ask(*leases).strip() == b"0", "its lease has lapsed")
    assert call(two) == "quota_exhausted"
    assert counting.calls == 1 + 100 - N


def test_too_many(provider, fleet):  # noqa: F811
    """The block goes back at once, the store has the penalty, and other gateways keep it."""
    counting = Counting(limited=(3,))
    one, two = fleet(one_provider(provider(counting).url, [daily(1000)]), 2, LONG)
    assert [call(one) for _ in range(3)] == [200, 200, 429]
    assert units(one) == {"taken": N, "spent": 3, "returned": N - 3, "lost": 0, "held": 0}
    until(lambda: call(two) == "penalized", "the other one knows")
    assert call(one) == "penalized"
    assert counting.calls == 3 or units(two)["spent"] == counting.calls - 3


def test_not_beyond_the_end_of_a_window(provider, fleet):  # noqa: F811
    """By the store's clock, and so early that what is sent last arrives before it: then a block goes back."""
    config = one_provider(provider(hello).url, [daily(1000, window={"period": "hour"})])
    gw = fleet(config, settings=LONG)
    api = Api(gw)

    def taken():
        """A block, in an hour whose last call may leave in 2 s."""
        now = datetime.datetime.now(datetime.timezone.utc)
        left = 3600 - 60 * now.minute - now.second - 2
        written = json.loads(gw.config.read_text())
        written["providers"][0]["limits"][0]["arrival"] = f"{max(left, 0)}s"
        gw.config.write_text(json.dumps(written))
        assert api.post("reload", {}).status == 200
        return left > 0 and call(gw) == 200 and units(gw)["held"] > 0

    until(taken, "a block")
    gw.until(lambda s: s["fleet"]["prefetched"]["held"] == 0, "it is back long before its own time")

    def by_itself():
        before = units(gw)["taken"]
        return call(gw) == 200 and units(gw)["taken"] == before

    until(by_itself, "a call without a block, once the store's clock says so, too")


def test_who_waits_comes_first(provider, fleet):  # noqa: F811
    """While somebody waits at the provider nobody takes more than one unit."""
    rate = {"name": "rate", "kind": "rate", "rate": "1000/s", "burst": 1000, **OF_ALL}
    config = one_provider(provider(hello).url, [daily(1000), rate])
    config["accounts"].append({"name": "b", "provider": "p", "limits": [{**rate, "rate": "1/h", "burst": 1}]})
    one, two = fleet(config, 2, {"prefetch": N, "prefetchTtl": "10ms"})
    assert two.call("GET", "/b/x", NO_WAIT).status == 200
    waits = Held(two, {"Ration-Timeout": "2h"}, "/b/x")
    two.until(lambda s: s["totals"]["queued"] == 1, "a waiter")
    assert [call(one) for _ in range(3)] == [200] * 3
    assert units(one)["taken"] == 0
    waits.client.close()
    two.until(lambda s: s["waiting"] == 0, "nobody waits")
    until(lambda: call(one) == 200 and units(one)["taken"] > 0, "a block")


def test_the_actual_cost_of_a_block(provider, fleet):  # noqa: F811
    """Declared at 2 and actually 1 or 3: what was used counts, once the calls have ended."""
    config = one_provider(provider(hello).url, [daily(100, counts="cost")], settings=NO_RESERVE)
    one, two = map(Api, fleet(config, 2, {"prefetch": 10, "prefetchTtl": "3s"}))

    def lease(api, cost):
        return api.post("acquire", {"account": "a", "timeout": 0, "ttl": 600_000, "cost": cost})

    cheap, dear, unknown = (lease(one, 2).json()["lease"] for _ in range(3))
    assert units(one.gateway)["taken"] == 10
    assert one.post("release", {"lease": cheap, "cost": 1}).status == 200
    one.gateway.until(lambda s: s["fleet"]["prefetched"]["held"] == 0, "what was not used is back")
    until(lambda: lease(two, 96)["Ration-Refused"] == "quota_exhausted", "5 are used: 1, 2 and 2")
    assert one.post("release", {"lease": dear, "cost": 3}).status == 200
    assert one.post("release", {"lease": unknown}).status == 200
    until(lambda: lease(two, 95)["Ration-Refused"] == "quota_exhausted", "6 are used")
    last = lease(two, 94)
    assert two.post("release", {"lease": last.json()["lease"]}).status == 200


def test_spent_while_redis_is_away(provider, fleet, redis):  # noqa: F811
    """What is held is used up, and nothing more; a store that forgot everything knows what was used."""
    counting = Counting()
    gw = fleet(one_provider(provider(counting).url, [daily(N * 3)], settings=NO_RESERVE), settings={**LONG, **HASTY})
    until(lambda: call(gw) == 200, "a block")
    left = units(gw)["held"]
    redis.kill()
    gw.until(lambda s: s["fleet"]["state"] == "down", "down")
    assert use_up(gw) == (left, "store_unavailable")
    redis.start()
    gw.until(lambda s: s["fleet"]["state"] == "up" and s["fleet"]["toldLate"] == 0, "up")
    until(lambda: call(gw) == 200, "a call")


def test_other_rules_return_a_block(provider, fleet):  # noqa: F811
    gw = fleet(one_provider(provider(hello).url, [daily(1000)]), settings=LONG)
    assert call(gw) == 200 and units(gw)["held"] == N - 1
    written = json.loads(gw.config.read_text())
    written["settings"]["fleet"]["prefetch"] = 1
    gw.config.write_text(json.dumps(written))
    assert Api(gw).post("reload", {}).status == 200
    assert units(gw) == {"taken": N, "spent": 1, "returned": N - 1, "lost": 0, "held": 0}
    assert call(gw) == 200 and units(gw)["taken"] == N


def test_who_takes_leave_returns_its_block(provider, fleet):  # noqa: F811
    counting = Counting()
    one, two = fleet(one_provider(provider(counting).url, [daily(100)], settings=NO_RESERVE), 2, LONG)
    assert call(one) == 200
    one.close()
    assert use_up(two) == (99, "quota_exhausted")


def test_what_is_not_prefetched(provider, fleet):  # noqa: F811
    """Another kind of limit, a breaker, a quota that headers correct: each call asks."""
    learns = daily(1000, sync={"remainingHeader": "X-Left"})
    for more in ({"limits": [learns]}, {"breaker": {"strategy": "consecutive", "threshold": 5}},
                 {"limits": [daily(1000), {"name": "slots", "kind": "concurrency", "max": 9}]}):
        config = one_provider(provider(hello).url, [daily(1000)])
        config["providers"][0].update(more)
        gw = fleet(config, settings=LONG)
        gw = gw[-1] if isinstance(gw, list) else gw
        assert call(gw) == 200
        assert units(gw)["taken"] == 0
