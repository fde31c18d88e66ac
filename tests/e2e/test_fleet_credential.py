# SPDX-License-Identifier: MIT
"""Limits by credential in a fleet: all gateways know a credential by one key, whose salt Redis has."""

import json

import pytest

from api import Api
from house import Gateway, one_provider, until
from provider import hello
from redis_house import Redis, missing
from test_fleet_serve import NO_WAIT, PATIENT, Gate, Held

SALT = "ration:1:{default}:salt"


@pytest.fixture
def redis(tmp_path):
    if missing():
        pytest.skip(f"no {missing()}")
    with Redis(tmp_path / "redis") as one:
        yield one


@pytest.fixture
def member(tmp_path, redis):
    """member(url, ...): a gateway with three accounts, two of which have one credential; it may go by those alone."""
    started = []

    def start(url, breaker=None, **settings):
        folder = tmp_path / f"g{len(started)}"
        folder.mkdir()
        slots = {"name": "slots", "kind": "concurrency", "max": 1, "scope": {"by": ["credential"]}}
        config = one_provider(url, [] if breaker else [slots],
                              settings={"instance": folder.name,
                                        "fleet": {"redis": redis.url, **PATIENT, **settings}})
        if breaker:
            config["providers"][0]["breaker"] = breaker
        config["accounts"] = [{"name": name, "provider": "p", "credential": {"header": "X-Key", "value": value}}
                              for name, value in (("a", "secret-one"), ("b", "secret-one"), ("c", "secret-two"))]
        started.append(Gateway(config, folder))
        return started[-1]

    yield start
    for one in started:
        one.close()


def up(*gateways):
    for one in gateways:
        one.until(lambda s: s["fleet"]["state"] == "up" and s["fleet"]["localLeases"] == 0, "up")


def take(gw, account):
    told = Api(gw).post("acquire", {"account": account, "timeout": 0})
    return told.json()


def salt_of(redis):
    """As text that redis-cli shows it, for it is bytes."""
    return redis.ask("--no-raw", "GET", SALT).strip()


def test_one_key_for_all(provider, redis, member):
    """Accounts of one credential share a limit, at whatever gateway; others have their own; nothing tells the salt."""
    url = provider(hello).url
    gateways = [member(url) for _ in range(2)]
    up(*gateways)
    one, two = gateways
    lease = take(one, "a")["lease"]
    refused = [take(gw, account) for gw in gateways for account in "ab"]
    assert {told["reason"] for told in refused} == {"concurrency_full"}
    (key,) = {told["key"] for told in refused}
    assert len(key) == 16 and set(key) <= set("0123456789abcdef")
    other = take(two, "c")["lease"]
    assert take(one, "c")["key"] not in (None, key)
    assert Api(one).post("release", {"lease": lease}).status == 200
    until(lambda: Api(two).post("check", {"account": "b"}).json()["result"] == "granted", "given back")
    assert Api(two).post("release", {"lease": other}).status == 200

    salt = redis.ask("--raw", "GET", SALT)[:-1]
    assert len(salt) == 32
    for gw in gateways:
        gw.look_for_secrets()
        told = json.dumps(gw.status()) + gw.control("/metrics").body.decode() + gw.text()
        assert salt.hex() not in told and salt.decode("latin-1") not in told
        assert json.dumps(salt.decode("latin-1"))[1:-1] not in told


def test_breakers_know_it_too(provider, redis, member):
    """Without any limit that does."""
    breaker = {"strategy": "consecutive", "threshold": 1, "recovery": "probe", "backoff": {"delay": "10m"},
               "scope": {"by": ["credential"]}}
    url = provider(lambda request, connection: connection.reply(500 if request.target == "/x" else 200, {}, b"")).url
    one, two = member(url, breaker), member(url, breaker)
    up(one, two)
    assert one.call("GET", "/a/x").status == 500
    until(lambda: two.call("GET", "/b/y")["Ration-Refused"] == "circuit_open", "open for all of that credential")
    assert two.call("GET", "/c/y").status == 200


def test_a_reload_goes_by_the_same_key(provider, redis, member):
    gw = member(provider(hello).url)
    up(gw)
    lease = take(gw, "a")["lease"]
    key = take(gw, "b")["key"]
    assert Api(gw).post("reload", {}).status == 200
    assert take(gw, "b")["key"] == key
    assert Api(gw).post("release", {"lease": lease}).status == 200
    until(lambda: Api(gw).post("check", {"account": "b"}).json()["result"] == "granted", "given back")


def test_a_store_that_has_forgotten_it(provider, redis, member):
    """It gets it back, so whoever comes then knows a credential by the same key."""
    url = provider(hello).url
    one = member(url)
    up(one)
    before = salt_of(redis)
    redis.ask("FLUSHALL")
    until(lambda: salt_of(redis) == before, "the same salt")
    two = member(url)
    up(two)
    lease = take(two, "b")["lease"]
    assert take(one, "a")["reason"] == "concurrency_full"
    assert Api(two).post("release", {"lease": lease}).status == 200


def test_before_it_is_known(provider, redis, member):
    """As while the store is away; what was granted meanwhile counts where the others count it."""
    gate = Gate()
    url = provider(gate).url
    redis.kill()
    refusing, serving = member(url), member(url, onUnavailable={"localLimit": 1})
    for gw in (refusing, serving):
        gw.until(lambda s: s["fleet"].get("lastError"), "it has tried")
    assert refusing.call("GET", "/a/x")["Ration-Refused"] == "store_unavailable"
    held = Held(serving)
    until(lambda: gate.inside == 1, "one that is served all the same")
    redis.start()
    up(refusing, serving)
    until(lambda: refusing.call("GET", "/b/x", NO_WAIT)["Ration-Refused"] == "concurrency_full", "it is known")
    gate.opened.set()
    assert held.answer().status == 200
    until(lambda: refusing.call("GET", "/b/x", NO_WAIT).status == 200, "the slot is free")
