# SPDX-License-Identifier: MIT
"""What a gateway of a fleet tells of the limits: what Redis has, whoever has spent it."""

import pytest

from api import Api
from house import one_provider
from provider import hello
from test_fleet_operate import DAILY, LEARNING, RATE
from test_fleet_serve import HASTY, OF_ALL, fleet, redis, slots  # noqa: F401
from test_operate import NOW, act

SHARED = {"name": "shared", "kind": "share", "ceiling": 6, "counts": "requests", "tenants": {"t": 1, "u": 2},
          "reclaimHorizon": "1s", "idleAfter": "2s", "unknownTenant": "t", **OF_ALL}
BY_TENANT = {"name": "each", "kind": "concurrency", "max": 5, "scope": {"by": ["tenant"]}}


@pytest.fixture
def two(provider, fleet):  # noqa: F811
    def start(*limits, **more):
        gateways = fleet(one_provider(provider(hello).url, list(limits),
                                      settings={"budget": {"retryReserve": "0%"}}), 2, **more)
        return gateways, [Api(gw) for gw in gateways]

    return start


def by_name(limits):
    return {limit["limit"]: limit for limit in limits}


def test_what_others_have_spent(two):
    """One gateway spends, the other one tells of it."""
    gateways, apis = two(DAILY, RATE, slots(3), LEARNING, SHARED)
    assert gateways[1].call("GET", "/a/x", NOW).status == 200
    leases = [apis[0].granted({"account": "a", "tenant": "u"})]
    told = by_name(apis[1].get("limits").json()["limits"])
    assert list(told) == ["daily", "rate", "slots", "learning", "shared"]
    assert {name: told["daily"][name] for name in ("max", "used", "remaining", "key", "provider")} == {
        "max": 2, "used": 2, "remaining": 0, "key": "a", "provider": "p"}
    assert told["daily"]["timeZone"] == "UTC" and told["daily"]["windowEnd"] > told["daily"]["windowStart"]
    assert told["rate"]["available"] < 1 and told["rate"]["burst"] == 2
    assert (told["slots"]["held"], told["slots"]["max"]) == (1, 3)
    assert (told["learning"]["current"], told["learning"]["held"]) == (4, 1)
    assert (told["shared"]["max"], told["shared"]["held"]) == (6, 1)
    apis[0].release(leases.pop())
    gateways[1].until(lambda s: by_name(s["limits"])["slots"]["held"] == 0, "told of by the status as well")
    assert gateways[1].status()["fleet"]["limitsAgeMs"] >= 0
    metrics = gateways[1].metrics()
    assert metrics['ration_adaptive_limit{provider="p",limit="learning",key="a"}'] == 4, metrics


def test_a_counter_by_name(two):
    gateways, apis = two(slots(3), BY_TENANT)
    lease = apis[0].granted({"account": "a", "tenant": "t"})
    (one,) = apis[1].get("limits/each/t").json()["limits"]
    assert (one["held"], one["max"]) == (1, 5)
    assert apis[1].get("limits/each/nobody").status == 404
    assert apis[1].get("limits/none/t").status == 404
    (idle,) = apis[1].get("limits/slots/a").json()["limits"]
    assert idle["held"] == 1
    assert act(apis[1], "pause", limit="each", key="t").status == 200
    assert act(apis[1], "pause", limit="each", key="nobody").status == 404
    gateways[0].until(lambda s: by_name(s["limits"])["each"].get("paused") is True, "paused")
    apis[0].release(lease)


def test_who_waits_and_a_penalty(two, provider):
    gateways, apis = two(slots(1))
    lease = apis[0].granted({"account": "a"})
    with gateways[0].client() as client:
        client.ask("GET", "/a/x")
        gateways[0].until(lambda s: s["waiting"] == 1, "it waits")
        gateways[1].until(lambda s: [x["waiting"] for x in s["limits"]] in ([], [1]), "told")
        assert [x["waiting"] for x in apis[1].get("limits/slots/a").json()["limits"]] == [1]
        assert apis[0].post("release", {"lease": lease, "outcome": "throttled"}).status == 200
        (penalty,) = apis[1].get("limits/slots/a").json()["penalties"] or gateways[1].until(
            lambda s: s["penalties"], "told")["penalties"]
        assert (penalty["penalty"], penalty["limit"]) == ("a", "slots")
        assert client.answer("GET").status == 200


def test_figures_of_a_store_that_is_away(two, redis):  # noqa: F811
    gateways, apis = two(slots(3), settings=HASTY)
    lease = apis[0].granted({"account": "a"})
    assert apis[0].get("limits").json()["limits"][0]["held"] == 1
    redis.kill()
    gateways[0].until(lambda s: s["fleet"]["state"] == "down", "down")
    assert apis[0].get("limits").json()["limits"][0]["held"] == 1
    before = gateways[0].status()["fleet"]["limitsAgeMs"]
    gateways[0].until(lambda s: s["fleet"]["limitsAgeMs"] > before, "older and older")
    apis[0].release(lease)
