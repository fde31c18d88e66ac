# SPDX-License-Identifier: MIT
"""What operators do to a fleet: at any of its gateways, for all of them."""

import pytest

from api import Api
from house import a_day, one_provider, until
from provider import hello
from test_events import Stream
from test_fleet_serve import HASTY, OF_ALL, fleet, redis, slots  # noqa: F401
from test_operate import NOW, act

DAILY = {"name": "daily", "kind": "quota", "max": 2, "window": a_day(), **OF_ALL}
RATE = {"name": "rate", "kind": "rate", "rate": "1/h", "burst": 2, "margin": 0, **OF_ALL}
LEARNING = {"name": "learning", "kind": "adaptive", "initialLimit": 4, "minLimit": 1, "maxLimit": 8, **OF_ALL}


@pytest.fixture
def three(provider, fleet):  # noqa: F811
    def start(*limits, **more):
        gateways = fleet(one_provider(provider(hello).url, list(limits),
                                      settings={"budget": {"retryReserve": "0%"}}), 3, **more)
        return gateways, [Api(gw) for gw in gateways]

    return start


def statuses(gateways):
    return [gw.call("GET", "/a/x", NOW).status for gw in gateways]


def test_a_pause_holds_for_all(three):
    """Who waits at another gateway hears of its end."""
    gateways, apis = three(slots(3))
    assert statuses(gateways) == [200] * 3
    assert act(apis[0], "pause", limit="slots").json() == {"result": "paused"}
    for gw in gateways:
        answer = gw.call("GET", "/a/x", NOW)
        assert (answer.status, answer["Ration-Refused"], answer["Retry-After"]) == (503, "paused", None)
    with gateways[1].client() as client:
        client.ask("GET", "/a/x")
        gateways[1].until(lambda s: s["waiting"] == 1, "it waits")
        assert act(apis[2], "pause", limit="slots").status == act(apis[2], "reset", limit="slots").status == 200
        assert gateways[0].call("GET", "/a/x", NOW)["Ration-Refused"] == "paused"
        assert act(apis[2], "resume", limit="slots").json() == {"result": "resumed"}
        assert client.answer("GET").status == 200
    assert act(apis[1], "resume", limit="slots").status == 200
    assert statuses(gateways) == [200] * 3
    gateways[0].line('msg="an operator acted" did=paused limit=slots key=a')


def test_a_pause_outlives_those_who_know_of_it(three, redis):  # noqa: F811
    gateways, apis = three(slots(3), DAILY)
    assert statuses(gateways[:1]) == [200]
    assert act(apis[0], "pause", limit="slots").status == 200
    keys = [key.decode() for key in redis.ask("KEYS", "ration:*").split()]
    lives = {name: int(redis.ask("PTTL", next(key for key in keys if name in key))) / (86400 * 1000)
             for name in ("}:head", ":limit:slots:", ":limit:daily:")}
    assert lives["}:head"] > lives[":limit:slots:"] > 3600 and lives[":limit:daily:"] < 2, lives
    assert gateways[0].stop() == 0
    gateways[0].ended = True
    assert gateways[1].call("GET", "/a/x", NOW)["Ration-Refused"] == "paused"
    assert act(apis[2], "resume", limit="slots").status == 200
    assert not [key for key in redis.ask("KEYS", "ration:*").split() if b":limit:slots:" in key]


def test_reset_and_grant(three):
    gateways, apis = three(DAILY, RATE)
    assert statuses(gateways) == [200, 200, 429]
    assert act(apis[0], "grant", {"units": 1}).json() == {"result": "granted"}
    assert act(apis[2], "grant", {"units": 1}, limit="rate").status == 200
    assert statuses(gateways) == [200, 429, 429]
    assert act(apis[1], "reset").json() == {"result": "reset"}
    assert act(apis[1], "reset", limit="rate").status == 200
    assert statuses(gateways) == [200, 200, 429]


def test_a_limit_that_has_learned(three, provider):
    """It is told as any of its moves is."""
    gateways, apis = three(LEARNING)
    lease = apis[1].granted({"account": "a"})
    assert apis[1].post("release", {"lease": lease, "outcome": "throttled"}).status == 200
    stream = Stream(gateways[0])
    until(lambda: apis[2].post("check", {"account": "a"}).json()["result"] == "granted", "the penalty is over")
    assert act(apis[0], "reset", limit="learning").status == 200
    event = stream.next("limit")
    assert (event["limit"], event["key"], event["current"], event["cause"]) == (
        "learning", "a", 4, "reset by an operator")
    stream.close()


@pytest.mark.parametrize("verb, limit, key, body, status, name", [
    ("pause", "daily", "b", {}, 404, "unknown_key"),
    ("pause", "nothing", "a", {}, 404, "unknown_key"),
    ("pause", "slots", "a%2Fa", {}, 404, "unknown_key"),
    ("pause", "daily", "a", {"provider": "q"}, 404, "unknown_key"),
    ("grant", "daily", "a", {"units": 0.5}, 400, "bad_request"),
    ("grant", "daily", "a", {"units": 9007199254}, 400, "bad_request"),
    ("grant", "slots", "a", {"units": 1}, 422, "not_grantable"),
])
def test_what_cannot_be_done(three, verb, limit, key, body, status, name):
    gateways, apis = three(DAILY, slots(3))
    assert statuses(gateways[:1]) == [200]
    assert act(apis[1], "grant", {"units": 1}).status == 200
    answer = act(apis[1], verb, body, limit, key)
    assert (answer.status, answer.json()["type"]) == (status, f"urn:ration:problem:{name}"), answer.json()
    assert statuses(gateways) == [200, 200, 429]


def test_the_store_is_away(three, redis):  # noqa: F811
    gateways, apis = three(slots(3), settings=HASTY)
    assert statuses(gateways) == [200] * 3
    redis.kill()
    gateways[0].until(lambda s: s["fleet"]["state"] == "down", "down")
    answer = act(apis[0], "pause", limit="slots")
    assert (answer.status, answer.json()["type"]) == (503, "urn:ration:problem:store_away")
