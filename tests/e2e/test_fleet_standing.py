# SPDX-License-Identifier: MIT
"""RateLimit fields of a gateway in a fleet: those that it would send alone, of what all have spent."""

import contextlib
import json

import pytest

from api import Api
from house import Gateway, a_day, one_provider, until
from provider import hello
from test_fleet_serve import OF_ALL, PATIENT, Gate, Held, fleet, redis, slots  # noqa: F401
from test_ratelimit_fields import COST, NO_RESERVE, RATE, told
from test_reload import reload

DAILY = {"name": "daily", "kind": "quota", "max": 10, "window": a_day(), **OF_ALL}
ROLLING = {**DAILY, "name": "rolling", "window": {"rolling": "24h"}}
NO_WAIT = {"Ration-Timeout": "0"}
BLOCKS = {"prefetch": 10, "prefetchTtl": "1m"}


@pytest.fixture
def start(provider, fleet):  # noqa: F811
    def gateways(limits, count=1, **settings):
        found = fleet(one_provider(provider(hello).url, limits, settings=NO_RESERVE), count, settings=settings)
        return found if count > 1 else [found]

    return gateways


def figures(gw, used):
    """Of the first limit: so much had been spent when the store told last."""
    gw.until(lambda s: s["limits"] and s["limits"][0].get("used") == used, f"{used} used")


def fields(gw, cost=1):
    return told(gw.call("GET", "/a/", {"Ration-Cost": str(cost), **NO_WAIT}))


def test_as_alone(start, provider, gateway):
    rate = {**RATE, "burst": 4}
    limits = [DAILY, slots(5), COST, rate, {**ROLLING, "name": "shadow", "max": 1, "enforce": "shadow"}]
    alone = gateway(one_provider(provider(hello).url, limits, settings=NO_RESERVE))
    one, other = start(limits, 2)
    for gateways in ((one, other), (alone, alone)):
        for gw, cost in zip(gateways, ("400", "1")):
            assert gw.call("GET", "/a/", {"Ration-Cost": cost}).status == 200
        figures(gateways[1], 2)
    for cost in (100, 1, 1):
        want, got = fields(alone, cost), fields(other, cost)
        assert list(got) == list(want)
        for name, numbers in want.items():
            assert abs(numbers.pop("t", 0) - got[name].pop("t", 0)) <= 60, name
        assert got == want


@pytest.mark.parametrize("limit", [DAILY, ROLLING, {**RATE, "burst": 10}], ids=["window", "rolling", "rate"])
def test_each_call_has_its_own(start, limit):
    """Whether the store has told meanwhile or not."""
    (gw,) = start([limit])
    assert gw.call("GET", "/a/").status == 200
    gw.until(lambda s: s["limits"], "told")
    assert [fields(gw)[limit["name"]]["r"] for _ in range(5)] == [8, 7, 6, 5, 4]


@pytest.mark.parametrize("limit", [{**DAILY, "max": 3}, {**ROLLING, "max": 3}, RATE], ids=["window", "rolling", "rate"])
def test_a_refusal_has_nothing_left(start, limit):
    """Though the others have spent it a moment ago."""
    one, other = start([limit], 2)
    assert one.call("GET", "/a/").status == 200
    one.until(lambda s: s["limits"], "told")
    assert [other.call("GET", "/a/", NO_WAIT).status for _ in range(2)] == [200, 200]
    answer = one.call("GET", "/a/", NO_WAIT)
    assert answer.status == 429
    (name, numbers), = told(answer).items()
    assert (name, numbers["r"]) == (limit["name"], 0)
    if "t" in numbers:
        assert abs(numbers["t"] - int(answer["Retry-After"])) <= 1
    one.until(lambda s: s["limits"][0].get("used", 3) == 3, "told")
    assert told(one.call("GET", "/a/", NO_WAIT))[name]["r"] == 0


def test_told_clients_have_figures_asked_for(provider, redis, tmp_path):  # noqa: F811
    """With nearly each heart-beat, though nobody looks at the status; else with each tenth."""
    joined = {"fleet": {"redis": redis.url, **PATIENT}}
    config = one_provider(provider(hello).url, [{**DAILY, "max": 10**6}], settings={**NO_RESERVE, **joined})

    def asked(gw):
        calls = gw.metrics()
        return [calls.get(f'ration_fleet_calls_total{{script="{script}"}}', 0) for script in ("inspect", "beat")]

    with contextlib.closing(Gateway(config, tmp_path)) as gw:
        until(lambda: gw.metrics()["ration_fleet_up"], "up")
        assert gw.call("GET", "/a/").status == 200
        before = asked(gw)
        until(lambda: asked(gw)[1] >= before[1] + 8, "eight beats")
        after = asked(gw)
        assert after[0] - before[0] >= 4, (before, after)
        assert fields(gw)["daily"]["r"] == 10**6 - 2


def test_a_call_under_way_at_a_reload(fleet, provider):  # noqa: F811
    """Its client is told by the rules that it finds, its spending included."""
    gate = Gate()
    gw = fleet(one_provider(provider(gate).url, [slots(5), {**DAILY, "max": 20}], settings=NO_RESERVE))
    call = Held(gw)
    gw.until(lambda s: s["held"] == 1, "it is under way")
    config = json.loads(gw.config.read_text())
    config["providers"][0]["limits"] = [{**RATE, "burst": 4}, DAILY]
    assert reload(gw, config).status == 200
    gw.until(lambda s: [one["used"] for one in s["limits"] if one["limit"] == "daily"] == [1], "told")
    gate.opened.set()
    numbers = told(call.answer())["daily"]
    assert (numbers["q"], numbers["r"]) == (10, 9)


def test_a_pause_leaves_what_is_there(start):
    (gw,) = start([DAILY])
    assert gw.call("GET", "/a/").status == 200
    figures(gw, 1)
    assert Api(gw).post("limits/daily/a/pause", {}).status == 200
    answer = gw.call("GET", "/a/", NO_WAIT)
    assert (answer["Ration-Refused"], told(answer)["daily"]["r"]) == ("paused", 9)


def test_what_blocks_hold_is_spent(start):
    (gw,) = start([{**DAILY, "max": 100}], **BLOCKS)
    assert gw.call("GET", "/a/").status == 200
    figures(gw, 10)
    assert [fields(gw)["daily"]["r"] for _ in range(10)] == [90] * 9 + [80]


def test_nobody_knows_while_redis_is_away(start, redis):  # noqa: F811
    (gw,) = start([DAILY], onUnavailable={"localLimit": 2})
    assert gw.call("GET", "/a/").status == 200
    figures(gw, 1)
    redis.kill()
    gw.until(lambda s: s["fleet"]["state"] == "degraded", "degraded")
    answer = gw.call("GET", "/a/")
    assert answer.status == 200 and told(answer) == {}
