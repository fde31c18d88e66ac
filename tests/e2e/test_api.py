# SPDX-License-Identifier: MIT
"""The decision API: every operation against openapi.yaml, over TCP and a Unix socket; leases, waiters, keys, times."""

import os
import signal
import subprocess
import threading
import time

import pytest

from api import BODY_MAX, Api, Bodies, is_valid, operations
from house import RATION, ROOT, Gateway, a_day, one_provider, slots

URL = "http://127.0.0.1:9"  # nobody is asked
ASK = {"account": "a"}
HEAD = "POST /v1/acquire HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
RATE = {"name": "rate", "kind": "rate", "rate": "1/h", "burst": 3, "scope": {"by": ["account", "var:org"]}}
SHARE = {"name": "tokens", "kind": "share", "ceiling": 100, "counts": "cost", "tenants": {"t": 3, "u": 1},
         "reclaimHorizon": "250ms", "idleAfter": "1s", "unknownTenant": "u", "scope": {"by": ["account"]}}


@pytest.fixture(params=["tcp", "unix"])
def listen(request, tmp_path):
    """Where the control port is."""
    control = "127.0.0.1:0" if request.param == "tcp" else f"unix:{tmp_path}/control.sock"
    return {"gateway": "127.0.0.1:0", "control": control}


@pytest.fixture
def api(gateway):
    def start(*limits, token=None, listen=None, jobs=(), **provider):
        settings = {**({"token": token} if token else {}), **({"listen": listen} if listen else {})}
        config = one_provider(URL, limits, settings=settings, **provider)
        return Api(gateway({**config, "jobs": list(jobs)} if jobs else config), token)

    return start


@pytest.fixture
def gateway(gateway):
    """Over a socket, or without the token, the fixture cannot look; tests see to it that they leave nothing."""

    def start(config, *arguments):
        made = gateway(config, *arguments)
        if made.control_port is None or "token" in config["settings"]:
            made.close = lambda: (made.ended or made.stop() == 0 or pytest.fail(made.text()), made.kill())
        return made

    return start


# ---- a life


def test_a_lease_from_acquire_to_release(api, listen):
    api = api(slots(1), listen=listen)
    answer = api.post("acquire", ASK)
    assert answer.status == 200
    granted = answer.json()
    assert (granted["result"], granted["waitedMs"], granted["ttlMs"]) == ("granted", 0, 30000)
    lease = granted["lease"]
    (row,) = api.get("leases").json()["leases"]
    assert row["id"] == lease and row["account"] == "a" and row["ttlUntil"] - row["grantedAt"] == pytest.approx(30000)
    refused = api.post("acquire", ASK)
    assert refused.status == 429 and refused["Ration-Refused"] == "concurrency_full"
    assert refused.json()["limit"] == "slots" and refused.json()["key"] == "a"
    assert api.post("renew", {"lease": lease}).json() == {"result": "renewed", "ttlMs": 30000}
    assert api.post("observe", {"lease": lease, "status": 200}).json() == {"result": "observed"}
    api.release(lease)
    assert api.get("leases").json() == {"leases": []}
    again = api.granted(ASK)
    assert again != lease
    api.release(again)


def test_a_name_of_an_earlier_run_means_no_lease(api):
    """Both runs give out their first lease; whoever was not told of the restart cannot end a stranger's."""
    before = api(slots(1))
    early = before.granted(ASK)
    before.release(early)
    after = api(slots(1))
    mine = after.granted(ASK)
    for operation in ("release", "renew", "observe"):
        body = {"lease": early, "status": 200} if operation == "observe" else {"lease": early}
        assert after.post(operation, body).status in (404, 410)
    assert [row["id"] for row in after.get("leases").json()["leases"]] == [mine]
    after.release(mine)


def test_a_waiter_gets_what_is_released(api, listen):
    api = api(slots(1), listen=listen)
    first = api.granted(ASK)
    with api.client() as client:
        api.ask(client, "/v1/acquire", {**ASK, "timeout": 20000, "priority": "high", "cost": 1.5})
        (waiter,) = api.until("waiters", lambda rows: len(rows) == 1, "it waits")
        assert waiter["priority"] == "high" and waiter["cost"] == 1.5
        assert waiter["deadline"] - waiter["waitsSince"] == pytest.approx(20000)
        api.release(first)
        answer = api.checked("POST", "/v1/acquire", client.answer())
        assert answer.status == 200 and answer.json()["waitedMs"] > 0
    # The connection ended, but the lease lives on.
    (row,) = api.get("leases").json()["leases"]
    assert row["id"] == answer.json()["lease"]
    api.release(row["id"])


def test_a_waiter_is_refused_at_its_deadline(api):
    api = api(slots(1))
    first = api.granted(ASK)
    answer = api.post("acquire", {**ASK, "timeout": 50})
    assert answer.status == 429 and answer["Ration-Refused"] == "deadline"
    assert answer.json()["waitedMs"] >= 50
    api.release(first)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_goes_waits_no_more(api, how):
    api = api(slots(1))
    first = api.granted(ASK)
    client = api.client()
    api.ask(client, "/v1/acquire", {**ASK, "timeout": 20000})
    api.until("waiters", lambda rows: len(rows) == 1, "it waits")
    getattr(client, how)()
    api.until("waiters", lambda rows: not rows, "it has been cancelled")
    assert api.gateway.status()["totals"]["cancelled"] == 1
    api.release(first)
    assert api.gateway.status()["held"] == 0


def test_many_that_go_leave_nothing(api):
    """Clients killed at any moment: while they send, wait, or are being granted."""
    api = api(slots(3))
    held = [api.granted(ASK) for _ in range(3)]
    for i in range(60):
        client = api.client()
        api.ask(client, "/v1/acquire", {**ASK, "timeout": 20000, "ttl": 200})
        if i % 3 == 0:
            api.release(held.pop(0))
        client.reset() if i % 2 else client.close()
        if i % 3 == 0:
            held.append(api.post("acquire", {**ASK, "timeout": 20000}).json()["lease"])
    for lease in held:
        api.release(lease)
    api.until("leases", lambda rows: not rows, "what was granted to the dead is lost")
    api.until("waiters", lambda rows: not rows, "nobody waits")


# ---- time to live


def test_what_is_not_renewed_is_taken_back(api):
    api = api(slots(1))
    lease = api.granted({**ASK, "ttl": 100})
    answer = api.post("acquire", {**ASK, "timeout": 20000})
    assert answer.status == 200
    assert api.post("release", {"lease": lease}).status == 410
    assert api.post("renew", {"lease": lease}).status == 410
    assert api.post("observe", {"lease": lease, "status": 200}).status == 410
    assert api.gateway.status()["totals"]["lost"] == 1
    api.release(answer.json()["lease"])


def test_what_is_renewed_lives(api):
    api = api(slots(1))
    body, key = {**ASK, "ttl": 3000}, {"Idempotency-Key": "k"}
    lease = api.granted(body, key)
    end = time.monotonic() + 4.5
    while time.monotonic() < end:
        assert api.post("renew", {"lease": lease}).json() == {"result": "renewed", "ttlMs": 3000}
        time.sleep(0.2)
    assert api.granted(body, key) == lease
    api.release(lease)
    assert api.gateway.status()["totals"]["lost"] == 0


def test_an_adaptive_limit_shortens_the_ttl(api):
    adaptive = {"name": "adaptive", "kind": "adaptive", "initialLimit": 10, "leaseTtl": "5s",
                "scope": {"by": ["account"]}}
    api = api(adaptive)
    assert api.post("acquire", ASK).json()["ttlMs"] == 5000
    assert api.post("acquire", {**ASK, "ttl": 60000}).json()["ttlMs"] == 60000
    for row in api.get("leases").json()["leases"]:
        api.release(row["id"])


# ---- names


def test_names_that_nobody_has(api, listen):
    api = api(slots(5), listen=listen)
    lease = api.granted(ASK)
    index, generation = lease.split("-")
    api.release(lease)
    for operation in ("release", "renew", "observe"):
        assert api.post(operation, {"lease": lease}).status == 410
        for name in (f"{index}-{int(generation) + 1}", "7777-1", f"{index}-0", f"0{index}-{generation}", "x", "-", "1",
                     f"{index}-{generation}x", f" {lease}", f"-{lease}", "4294967296-1", f"{index}-99999999999", "é"):
            answer = api.post(operation, {"lease": name})
            assert answer.status == 404 and answer.json()["type"].endswith("unknown_lease"), name


@pytest.fixture
def slow_call(provider, gateway):
    """A gateway amid a call, and what lets the provider answer it."""
    go = threading.Event()

    def slow(_, connection):
        assert go.wait(20)
        connection.reply(200, body=b"fine")

    gw = gateway(one_provider(provider(slow).url, [slots(2)]))
    with gw.client() as client:
        client.ask("GET", "/a/x")
        gw.until(lambda status: status["held"] == 1, "the call runs")
        yield gw, client, go
        go.set()


def test_the_gateways_leases_are_not_the_apis(slow_call):
    """Whoever guesses the name of a call's lease cannot end it."""
    gw, client, go = slow_call
    api = Api(gw)
    (row,) = api.get("leases").json()["leases"]
    for operation in ("release", "renew", "observe"):
        assert api.post(operation, {"lease": row["id"]}).status == 404
    ours = api.granted(ASK)
    assert len(api.get("leases").json()["leases"]) == 2
    go.set()
    assert client.answer().body == b"fine"
    api.release(ours)


def test_who_is_at_one_counter(slow_call):
    gw, _, go = slow_call
    api = Api(gw)
    (row,) = api.get("leases").json()["leases"]
    (limit,) = gw.status()["limits"]
    counter = f"limit={limit['limit']}&key={limit['key']}"
    assert api.get(f"leases?{counter}").json()["leases"][0]["id"] == row["id"]
    for other in ("limit=none", "key=none", f"{counter}none"):
        assert api.get(f"leases?{other}").json() == {"leases": []}, other
    assert api.get(f"waiters?{counter}").json() == {"waiters": []}
    go.set()


# ---- Idempotency-Key


def test_the_same_key_is_the_same_lease(api, listen):
    api = api(slots(2), listen=listen)
    key = {"Idempotency-Key": "order 7"}
    lease = api.granted(ASK, key)
    answer = api.post("acquire", ASK, key)
    assert answer.json()["lease"] == lease and answer.json()["ttlMs"] <= 30000
    other = api.post("acquire", {**ASK, "cost": 2}, key)
    assert other.status == 422 and other.json()["field"] == "Idempotency-Key"
    assert other["Ration-Refused"] is None
    assert api.granted(ASK, {"Idempotency-Key": "order 8"}) != lease
    assert len(api.get("leases").json()["leases"]) == 2
    # Released, the key is free, for another body too.
    api.release(lease)
    again = api.granted({**ASK, "cost": 2}, key)
    assert again != lease
    for row in api.get("leases").json()["leases"]:
        api.release(row["id"])


def test_a_key_dies_with_its_lease(api):
    api = api(slots(2))
    key = {"Idempotency-Key": "k"}
    lease = api.granted({**ASK, "ttl": 60}, key)
    api.until("leases", lambda rows: not rows, "it is lost")
    again = api.granted({**ASK, "ttl": 60000}, key)
    assert again != lease
    api.release(again)


def test_a_refusal_does_not_use_a_key_up(api):
    api = api(slots(1))
    key = {"Idempotency-Key": "k"}
    first = api.granted(ASK)
    assert api.post("acquire", ASK, key).status == 429
    api.release(first)
    api.release(api.granted(ASK, key))


def test_a_key_that_waits(api):
    api = api(slots(1))
    key = {"Idempotency-Key": "k"}
    first = api.granted(ASK)
    body = {**ASK, "timeout": 20000}
    with api.client() as client:
        api.ask(client, "/v1/acquire", body, key)
        api.until("waiters", lambda rows: len(rows) == 1, "it waits")
        assert api.post("acquire", body, key).status == 409
    api.until("waiters", lambda rows: not rows, "it has gone, and its key with it")
    with api.client() as client:
        api.ask(client, "/v1/acquire", body, key)
        api.until("waiters", lambda rows: len(rows) == 1, "it waits again")
        api.release(first)
        lease = api.checked("POST", "/v1/acquire", client.answer()).json()["lease"]
    assert api.granted(body, key) == lease
    api.release(lease)


@pytest.mark.parametrize("key", ["", "x" * 256, "é", "a\tb"])
def test_keys_that_are_none(api, key):
    api = api(slots(1))
    answer = api.post("acquire", ASK, {"Idempotency-Key": key})
    assert answer.status == 400 and answer.json()["field"] == "Idempotency-Key"
    assert api.get("leases").json() == {"leases": []}


def test_the_longest_key(api):
    api = api(slots(1))
    api.release(api.granted(ASK, {"Idempotency-Key": "x" * 255}))


# ---- what the provider says


def test_a_429_penalizes(api):
    api = api(slots(5))
    lease = api.granted(ASK)
    assert api.post("observe", {"lease": lease, "status": 429, "headers": {"Retry-After": "7"}}).status == 200
    refused = api.post("acquire", ASK)
    assert refused.status == 429 and refused["Ration-Refused"] == "penalized"
    assert 6 <= int(refused["Retry-After"]) <= 7
    (penalty,) = api.get("limits").json()["penalties"]
    assert penalty["events"] == 1
    api.release(lease)


def test_a_release_observes_first(api):
    api = api(slots(5))
    lease = api.granted(ASK)
    api.release(lease, status=429, headers={"Retry-After": ["9"]})
    assert api.post("acquire", ASK)["Ration-Refused"] == "penalized"


@pytest.mark.parametrize("how, opens", [
    ({"status": 500}, True),
    ({"status": 200}, False),
    ({"status": 500, "outcome": "success"}, True),
    ({"status": 200, "outcome": "failure"}, False),
    ({"outcome": "failure"}, True),
    ({"outcome": "cancelled"}, False),
    ({}, False),
])
def test_what_an_outcome_does(api, how, opens):
    """A status tells how the call went, whatever the client thinks; without one its word counts."""
    api = api(breaker={"strategy": "consecutive", "threshold": 1})
    api.release(api.granted(ASK), **how)
    answer = api.post("acquire", ASK)
    assert (answer.status == 503) == opens, answer.body
    if opens:
        assert answer["Ration-Refused"] == "circuit_open"
    else:
        api.release(answer.json()["lease"])


def test_the_status_observed_counts_at_the_release(api):
    api = api(breaker={"strategy": "consecutive", "threshold": 1})
    lease = api.granted(ASK)
    api.post("observe", {"lease": lease, "status": 503})
    api.release(lease)
    assert api.post("acquire", ASK)["Ration-Refused"] == "circuit_open"


def test_the_actual_cost_is_settled(api):
    quota = {"name": "day", "kind": "quota", "max": 100, "counts": "cost", "window": a_day(),
             "scope": {"by": ["account"]}}
    api = api(quota)
    api.release(api.granted({**ASK, "cost": 40}), cost=12.5)
    (row,) = api.get("limits/day/a").json()["limits"]
    assert row["used"] == 12.5
    answer = api.post("acquire", {**ASK, "cost": 1000})
    assert answer.status == 422 and answer["Ration-Refused"] == "cost_exceeds_limit"


# ---- check


def test_a_check_takes_nothing(api, listen):
    api = api(slots(1), listen=listen)
    for _ in range(3):
        assert api.post("check", ASK).json() == {"result": "granted"}
    lease = api.granted(ASK)
    refused = api.post("check", ASK).json()
    assert refused["result"] == "refused" and refused["reason"] == "concurrency_full"
    assert "1" in refused["explanation"]
    assert api.post("check", {**ASK, "timeout": 1000}).json() == {"result": "queued"}
    assert api.get("waiters").json() == {"waiters": []}
    assert api.post("check", {"account": "nobody"}).json()["reason"] == "unknown_account"
    api.release(lease)


def test_an_enforcers_check(api):
    """What the provider would say: the whole burst, where an acquire leaves a margin."""
    api = api({"name": "rate", "kind": "rate", "rate": "1/h", "burst": 10, "margin": 4, "counts": "cost",
               "scope": {"by": ["account"]}})
    body = {**ASK, "cost": 8}
    assert api.post("check", {**body, "mode": "acquire"}).json()["result"] == "refused"
    assert api.post("check", {**body, "mode": "enforcer"}).json()["result"] == "granted"


# ---- pages


def test_limits_by_name_and_key(api, listen):
    api = api(slots(3), RATE, listen=listen, endpoints=["/o/{org}/x"])
    lease = api.granted({**ASK, "path": "/o/7%2F=%25/x?secret", "method": "GET"})
    rows = api.get("limits").json()["limits"]
    assert [row["limit"] for row in rows] == ["slots", "rate"]
    key = rows[1]["key"]
    encoded = "".join(f"%{byte:02X}" for byte in key.encode())
    for target in (f"limits/rate/{encoded}", f"limits/%72ate/{encoded.lower()}?x=y"):
        (row,) = api.get(target).json()["limits"]
        assert {**row, "available": None} == {**rows[1], "available": None}
    assert api.get(f"limits/slots/{encoded}").json()["type"].endswith("unknown_key")
    assert api.get("limits/nothing/a").json()["type"].endswith("unknown_limit")
    assert api.get("limits/rate/%zz").status == 400
    assert api.get("limits/rate/" + "x" * 5000).status == 400
    assert api.get("limits/" + "x" * 300 + "/x").status == 400
    api.release(lease)


def test_one_name_however_it_is_encoded(provider, gateway):
    """Through the gateway, in a path of the API, as a variable of it: one counter, and no way past it."""
    limit = {"name": "by-org", "kind": "quota", "max": 5, "window": a_day(), "scope": {"by": ["var:org"]}}
    up = provider(lambda _, connection: connection.reply(200, body=b"fine"))
    gw = gateway(one_provider(up.url, [limit], endpoints=["/orgs/{org}/x"]))
    api = Api(gw)
    for path in ("/orgs/a%22b/x", "/%6Frgs/%61%22b/x"):
        assert gw.call("GET", f"/a{path}").status == 200
        assert up.requests[-1].target == path  # as the client wrote it
        api.release(api.granted({**ASK, "path": path}))
    api.release(api.granted({**ASK, "endpoint": "/orgs/{org}/x", "vars": {"org": 'a"b'}}))
    assert gw.call("GET", "/a/orgs/a%22%62/x", {"Ration-Timeout": "0"}).status == 429
    (row,) = api.get("limits").json()["limits"]
    assert (row["key"], row["used"]) == ('org=a"b', 5)
    assert api.get("limits/by-org/org%3Da%22b").json()["limits"][0]["key"] == row["key"]


def test_pages_that_there_are_not(api):
    api = api(RATE)
    for page in ("/v1/limits/rate", "/v1/limits//a", "/v1/limits/rate/a/b", "/v1/limits/", "/v1", "/v1/acquire/",
                 "/v1/Leases", "/v1/leasesx"):
        answer = api.gateway.control(page)
        assert answer.status == 404, page


def test_two_providers_with_one_name(gateway):
    config = one_provider(URL, [slots(1)])
    config["providers"].append({"name": "q", "baseUrl": URL, "limits": [slots(2)]})
    config["accounts"].append({"name": "b", "provider": "q"})
    api = Api(gateway(config))
    first, second = api.granted({"account": "a"}), api.granted({"account": "b"})
    assert [row["provider"] for row in api.get("limits").json()["limits"]] == ["p", "q"]
    (row,) = api.get("limits/slots/b").json()["limits"]
    assert row["provider"] == "q" and row["max"] == 2
    api.release(first)
    api.release(second)


def test_shares(api, listen):
    api = api(SHARE, listen=listen)
    leases = [api.granted({**ASK, "tenant": tenant, "cost": cost, "hold": 100})
              for tenant, cost in (("t", 30), ("u", 25))]
    allocation = api.get("allocation").json()["limits"]
    assert allocation == [{"limit": "tokens", "key": "a", "tenants": {"t": 30, "u": 25}}]
    (fairness,) = api.get("fairness").json()["limits"]
    assert fairness["tenants"]["t"]["configuredShare"] == 0.75
    (row,) = api.until("limits", lambda rows: len(rows[0]["overrunLeases"]) == 2, "both are past their end")
    assert row["overrunLeases"] == leases
    refused = api.post("acquire", {**ASK, "tenant": "t", "cost": 80, "hold": 10_000})
    assert refused.status == 422 and refused.json()["reclaimHorizonMs"] == 250
    for lease in leases:
        api.release(lease)


# ---- bodies


def test_bodies_by_chance(api, listen):
    """What the document allows is read, what it does not is 400 with the member's name."""
    api = api(slots(10), {**SHARE, "ceiling": 2000}, listen=listen, endpoints=["/o/{org}/x"])
    seed = 7 if listen["control"].startswith("unix:") else 8
    bodies = Bodies(seed, ["a", "p", "t", "/o/7/x", "/o/{org}/x", "GET", "0-1"])
    schemas = {"acquire": "Acquire", "check": "Check", "release": "Release", "observe": "Observe", "renew": "Renew"}
    statuses, client = set(), api.client()
    for turn in range(75):
        for operation, schema in schemas.items():
            good = bodies.good(schema)
            assert is_valid(schema, good), good
            good.pop("timeout", None)
            if turn % 2 == 0 and "lease" not in good:
                good = {**good, "account": "a", "provider": "p"}
            answer = api.post(operation, good, client=client)
            refused = answer["Ration-Refused"] is not None
            assert answer.status != 400 or refused, (operation, good, answer.body)
            statuses.add((operation, answer.status))
            if answer.status == 200 and operation == "acquire":
                ended = api.post("release", {"lease": answer.json()["lease"]})
                assert ended.status == 200 or good["ttl"] < 10_000
            bad, member = bodies.bad(schema)
            answer = api.post(operation, bad, client=client)
            assert answer.status == 400, (operation, bad, answer.body)
            assert member is None or answer.json()["field"] == member, (bad, answer.body)
    client.close()
    assert {("acquire", 200), ("check", 200), ("acquire", 404), ("release", 404)} <= statuses
    assert api.get("leases").json() == {"leases": []}


MALFORMED = [
    ("nothing", b"", None),
    ("blank", b" \n", None),
    ("no object", b"[]", None),
    ("two values", b"{}{}", None),
    ("a comma too many", b'{"account":"a",}', None),
    ("not UTF-8", b'{"account":"\xff"}', None),
    ("overlong UTF-8", b'{"account":"\xc0\xaf"}', None),
    ("a byte order mark", b'\xef\xbb\xbf{"account":"a"}', None),
    ("half a surrogate pair", b'{"account":"\\ud800"}', None),
    ("a bare control character", b'{"account":"\x01"}', None),
    ("twice", b'{"account":"a","account":"a"}', "account"),
    ("twice, in other words", b'{"account":"a","\\u0061ccount":"a"}', "\\u0061ccount"),
    ("unknown", b'{"acount":"a"}', "acount"),
    ("a line's word", b'{"wait":1}', "wait"),
    ("no text", b'{"account":7}', "account"),
    ("null", b'{"account":null}', "account"),
    ("below zero", b'{"cost":-1}', "cost"),
    ("minus zero is zero", b'{"cost":-0.0000001}', "cost"),
    ("too many places", b'{"cost":1.0000001}', "cost"),
    ("too large", b'{"cost":9007199254.740993}', "cost"),
    ("far too large", b'{"cost":1e400}', "cost"),
    ("an endless exponent", b'{"cost":1e99999999999999999999}', "cost"),
    ("a number with a thousand digits", b'{"cost":' + b"9" * 1000 + b"}", "cost"),
    ("not a number", b'{"cost":NaN}', None),
    ("infinity", b'{"cost":Infinity}', None),
    ("a zero in front", b'{"cost":01}', None),
    ("a number as text", b'{"cost":"1"}', "cost"),
    ("no time to live", b'{"ttl":0}', "ttl"),
    ("a time below zero", b'{"timeout":-0.001}', "timeout"),
    ("part of a microsecond", b'{"timeout":0.0001}', "timeout"),
    ("no word", b'{"priority":"urgent"}', "priority"),
    ("no flag", b'{"retry":1}', "retry"),
    ("vars that are none", b'{"vars":[]}', "vars"),
    ("a var that is none", b'{"vars":{"a":1}}', "vars"),
    ("a var twice", b'{"vars":{"a":"1","a":"2"}}', "vars"),
    ("too deep", b'{"vars":' + b"[" * 100 + b"]" * 100 + b"}", None),
    ("a NUL", b'{"account":"a"}\0', None),
]


@pytest.mark.parametrize("why, body, field", MALFORMED, ids=[row[0] for row in MALFORMED])
def test_malformed_bodies(module_api, why, body, field):
    answer = module_api.post("acquire", body)
    assert answer.status == 400, (why, answer.body)
    assert answer.json().get("field") == field
    assert field is None or answer.json()["detail"].startswith(f"{field}: ")


@pytest.fixture(scope="module")
def module_api(tmp_path_factory):
    made = Gateway(one_provider(URL, [slots(3)]), tmp_path_factory.mktemp("api"))
    yield Api(made)
    made.close()


def test_the_size_of_bodies(module_api):
    """The largest is read whole, one byte more is not; by length or in chunks."""
    padded = b'{"account":"nobody"' + b" " * (BODY_MAX - 20) + b"}"
    assert len(padded) == BODY_MAX
    assert module_api.post("acquire", padded).status == 404
    assert module_api.post("acquire", padded + b" ").status == 413
    head = HEAD + "Transfer-Encoding: chunked\r\n\r\n"
    for data, status in ((padded, 404), (padded + b" ", 413)):
        with module_api.client() as client:
            client.send(head).send(f"{len(data):x}\r\n").send(data).send("\r\n0\r\n\r\n")
            assert module_api.checked("POST", "/v1/acquire", client.answer()).status == status


def test_one_byte_after_the_other(module_api):
    body = b'{"account":"nobody"}'
    with module_api.client() as client:
        client.send(HEAD + f"Content-Length: {len(body)}\r\n\r\n")
        for byte in body:
            client.send(bytes([byte]))
        assert module_api.checked("POST", "/v1/acquire", client.answer()).status == 404


@pytest.mark.parametrize("kind", [None, "text/plain", "application/jsonx", "application/json-patch+json", ""])
def test_other_content_types(module_api, kind):
    fields = {} if kind is None else {"Content-Type": kind}
    answer = module_api.call("POST", "/v1/acquire", fields, b'{"account":"a"}')
    assert answer.status == 415 and answer.json()["field"] == "Content-Type"


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON ; charset=utf-8"])
def test_json_by_any_name(module_api, kind):
    answer = module_api.call("POST", "/v1/acquire", {"Content-Type": kind}, b'{"account":"nobody"}')
    assert answer.status == 404


def test_other_methods(module_api):
    for method, path, _ in operations():
        target = path.replace("{name}", "slots").replace("{key}", "a")
        wrong = ["DELETE", "PUT", "GET" if method == "POST" else "POST"]
        for other in wrong:
            answer = module_api.call(other, target, {}, b"{}")
            assert answer.status == 405 and method in answer["Allow"], (other, target)
        if method == "GET":
            assert module_api.call("HEAD", target).status in (200, 404, 405 if path == "/v1/events" else 0)


def test_requests_one_after_the_other_on_a_connection(module_api):
    with module_api.client() as client:
        for _ in range(3):
            lease = module_api.granted(ASK, client=client)
            assert module_api.post("release", {"lease": lease}, client=client).status == 200
            assert module_api.post("release", {"lease": lease}, client=client).status == 410
            assert module_api.post("acquire", b"{", client=client).status == 400
            assert client.call("GET", "/healthz").body == b"ok\n"


def test_several_requests_at_once_on_a_connection(module_api):
    """Answered in order, also when the first are wrong."""
    with module_api.client() as client:
        for body in (b'{"account":"nobody"}', b"{", b'{"account":"nobody"}'):
            module_api.ask(client, "/v1/acquire", body)
        statuses = [client.answer().status for _ in range(3)]
    assert statuses == [404, 400, 404]


# ---- every answer that the document promises


def test_every_documented_answer(api):
    """Each operation with each status, but 503 where nothing but a lack of memory gives it."""
    limits = slots(1), {"name": "c", "kind": "rate", "rate": "1/h", "burst": 10, "counts": "cost",
                        "scope": {"by": ["account"]}}, {**SHARE, "ceiling": 1000}
    jobs = [{"name": "slots", "account": "a", "endpoint": "GET /x", "interval": "1h"}]
    api = api(*limits, token="secret", jobs=jobs, endpoints=["/x"],
              breaker={"strategy": "consecutive", "threshold": 1})
    lease = api.granted(ASK, {"Idempotency-Key": "k"})
    for method, path, _ in operations():
        target = path.replace("{name}", "slots").replace("{key}", "a")
        assert api.call(method, target, {"Authorization": "Bearer wrong"}, b"{}").status == 401
        assert api.call("PATCH", target).status == 405
        if path == "/v1/events":
            api.seen.add(("events", "200"))  # a stream: test_events reads it
            continue
        if method == "GET":
            assert api.call("GET", target).status == 200
            continue
        name = target.removeprefix("/v1/")
        assert api.post(name, b"{").status == 400
        assert api.post(name, b" " * (BODY_MAX + 1)).status == 413
        assert api.call("POST", target, {}, b"{}").status == 415
    for verb, body in (("pause", {}), ("resume", {}), ("reset", {}), ("grant", {"units": 1})):
        assert api.post(f"limits/slots/b/{verb}", body).status == 404
        assert api.post(f"limits/slots/a/{verb}", body).status == (422 if verb == "grant" else 200)
    assert api.post("limits/c/a/grant", {"units": 0.5}).status == 200
    for page in ("refusals?since=x", "leases?tenant=t", "waiters?limit=a&limit=b", "events?types=x"):
        assert api.get(page).status == 400, page
    assert api.get("limits/slots/%").status == 400
    assert api.get("limits/none/a").status == 404
    assert api.get("plan/jobs/%").status == 400
    assert api.get("plan/jobs/none").status == 404
    assert api.post("runs", {"job": "slots", "requests": 1}).status == 200
    assert api.post("runs", {"job": "none", "requests": 1}).status == 404
    assert api.post("check", ASK).status == 200
    with api.client() as client:
        api.ask(client, "/v1/acquire", {**ASK, "timeout": 20000}, {"Idempotency-Key": "w"})
        api.until("waiters", lambda rows: rows, "it waits")
        assert api.post("acquire", {**ASK, "timeout": 20000}, {"Idempotency-Key": "w"}).status == 409
    api.until("waiters", lambda rows: not rows, "it does not")
    assert api.post("acquire", ASK).status == 429
    assert api.post("acquire", {**ASK, "cost": 11}).status == 422
    assert api.post("acquire", {**ASK, "cost": 2}, {"Idempotency-Key": "k"}).status == 422
    assert api.post("acquire", {"account": "b"}).status == 404
    for name in ("observe", "renew", "release"):
        assert api.post(name, {"lease": lease}).status == 200
    for name in ("observe", "renew", "release"):
        assert api.post(name, {"lease": lease}).status == 410
        assert api.post(name, {"lease": "99-1"}).status == 404
    api.release(api.granted(ASK), outcome="failure")
    assert api.post("acquire", ASK).status == 503
    assert api.post("reload", {}).status == 200
    api.gateway.config.write_text("{")
    assert api.post("reload", {}).status == 422
    assert api.post("drain", {}).status == 200
    assert api.post("reload", {}).status == 409
    promised = {(operation["operationId"], status) for _, _, operation in operations()
                for status in operation["responses"]}
    # 403 is test_clients' own.
    missing = {(name, status) for name, status in promised - api.seen
               if status != "403" and (status != "503" or name == "acquire")}
    assert not missing


# ---- who may, and the end


def test_a_token_is_asked_for(api, listen):
    api = api(slots(1), token="sesame", listen=listen)
    for fields in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "sesame"}):
        with api.client() as client:
            fields = {"Content-Type": "application/json", **fields}
            answer = client.call("POST", "/v1/acquire", fields, b'{"account":"a"}')
            assert answer.status == 401 and answer["WWW-Authenticate"] == "Bearer"
    assert api.get("leases").json() == {"leases": []}
    api.release(api.granted(ASK))


def test_the_socket_is_its_owners(api, tmp_path):
    api = api(slots(1), listen={"gateway": "127.0.0.1:0", "control": f"unix:{tmp_path}/c.sock"})
    assert (tmp_path / "c.sock").stat().st_mode & 0o777 == 0o600
    api.release(api.granted(ASK))
    assert api.gateway.stop() == 0
    assert not (tmp_path / "c.sock").exists()


def test_waiters_hear_of_a_drain(api, listen):
    """Those who wait are refused at once; leases that are held do not hold the process up."""
    api = api(slots(1), listen=listen)
    api.granted(ASK)
    with api.client() as client:
        api.ask(client, "/v1/acquire", {**ASK, "timeout": 20000})
        api.until("waiters", lambda rows: rows, "it waits")
        api.gateway.signal(signal.SIGTERM)
        answer = api.checked("POST", "/v1/acquire", client.answer())
        assert answer.status == 503 and answer["Ration-Refused"] == "draining"
        assert answer.json()["waitedMs"] > 0
    api.gateway.ended = True
    assert api.gateway.wait() == 0, api.gateway.text()


def test_nothing_new_while_it_drains(slow_call):
    """A call of the gateway keeps the process alive: leases can be released, but no more are given."""
    gw, client, go = slow_call
    api = Api(gw)
    lease = api.granted(ASK)
    gw.signal(signal.SIGTERM)
    gw.line("msg=draining")
    assert api.post("acquire", ASK)["Ration-Refused"] == "draining"
    api.release(lease)
    go.set()
    assert client.answer().body == b"fine"
    gw.ended = True
    assert gw.wait() == 0


def test_an_end_amid_everything(gateway):
    """Held, waiting and half-sent requests when the process is told to go at once: it leaves nothing behind."""
    gw = gateway(one_provider(URL, [slots(1)]), "--record", "calls.jsonl")
    api = Api(gw)
    api.granted(ASK)
    with api.client() as waits, api.client() as sends:
        api.ask(waits, "/v1/acquire", {**ASK, "timeout": 20000})
        sends.send(HEAD + "Content-Length: 99\r\n\r\n{")
        api.until("waiters", lambda rows: rows, "it waits")
        assert gw.stop() == 0, gw.text()
    done = subprocess.run([RATION, "replay", "--verify", gw.folder / "calls.jsonl"], capture_output=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    recorded = (gw.folder / "calls.jsonl").read_text()
    assert '"op":"acquire"' in recorded and '"ttl":30000' in recorded


# ---- examples


@pytest.fixture
def governed(provider, gateway):
    """A provider behind an account, and how many of its calls ran at once."""

    def start(*limits, listen=None):
        seen = {"now": 0, "most": 0, "all": 0}
        lock = threading.Lock()

        def handler(_, connection):
            with lock:
                seen["now"] += 1
                seen["all"] += 1
                seen["most"] = max(seen["most"], seen["now"])
            time.sleep(0.02)
            with lock:
                seen["now"] -= 1
            connection.reply(200, body=b"fine")

        url = provider(handler).url
        return gateway(one_provider(url, limits, settings={"listen": listen} if listen else None)), url, seen

    return start


def example(name, *arguments, **environment):
    return subprocess.run([ROOT / "examples" / name, *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


def test_the_example_for_curl(governed, listen):
    gw, url, seen = governed(slots(1), listen=listen)
    if gw.control_port is None:
        done = example("curl-api.sh", "a", f"{url}/x", RATION_SOCKET=gw.control_address.removeprefix("unix:"))
    else:
        done = example("curl-api.sh", "a", f"{url}/x", f"http://{gw.control_address}")
    assert done.returncode == 0 and "200 under lease" in done.stdout, done
    assert seen["all"] == 1
    assert Api(gw).get("leases").json() == {"leases": []}


def test_the_example_for_curl_is_refused(governed):
    gw, url, seen = governed({"name": "none", "kind": "rate", "rate": "1/h", "burst": 1, "scope": {"by": ["account"]}})
    example("curl-api.sh", "a", f"{url}/x", f"http://{gw.control_address}")
    done = example("curl-api.sh", "a", f"{url}/x", f"http://{gw.control_address}")
    assert done.returncode == 1 and '"reason":"deadline"' in done.stderr
    assert seen["all"] == 1


@pytest.fixture(scope="session")
def go_example(tmp_path_factory):
    """Compiled once; as a program of one file it belongs to no module."""
    folder = tmp_path_factory.mktemp("go")
    binary = folder / "api_client"
    subprocess.run(["go", "build", "-o", binary, ROOT / "examples/api_client.go"], check=True, timeout=300,
                   env={**os.environ, "GOFLAGS": "-buildvcs=false"})
    return binary


@pytest.mark.parametrize("language", ["python", "node", "go"])
def test_the_example_for_standard_clients(governed, listen, language, request):
    gw, url, seen = governed(slots(3), listen=listen)
    control = gw.control_address if gw.control_port is None else f"http://{gw.control_address}"
    program = {"python": "api_client.py", "node": "api_client.mjs"}.get(language)
    program = program or request.getfixturevalue("go_example")
    done = example(program, "a", f"{url}/x", "40", control)
    assert done.returncode == 0 and done.stdout == "40 x 200\n", done
    assert seen["all"] == 40 and seen["most"] <= 3
    assert Api(gw).get("leases").json() == {"leases": []}
    done = example(program, "nobody", f"{url}/x", "2", control)
    assert done.stdout == "2 x unknown_account\n", done
