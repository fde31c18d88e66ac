# SPDX-License-Identifier: MIT
"""Traces at the ends of whole numbers, and those that tell faults apart which random traces do not: a table.

Each row is what it shows, the limits or the breaker, and the calls in order: op, instant in milliseconds and what
else it has. Only core and scripts are compared; what is right is for the golden traces and the unit tests to say.
"""

from traces import Number, dumps

MOST = 2**53 - 1
MOST_UNITS = Number("9007199254.740991")
YEAR_MS = 365 * 86400 * 1000
LATE_MS = MOST // 1000 - 1000


def limit(kind, **members):
    return {"name": "l", "kind": kind, "scope": {"by": ["account"]}, **members}


def breaker(**members):
    return {"strategy": "consecutive", "threshold": 1, "scope": {"by": ["account"]}, **members}


def call(at, name, **members):
    return ("acquire", at, {"id": name, "account": "a", **members})


def end(at, name, **members):
    return ("release", at, {"id": name, **members})


def fails(at, name, **members):
    return [call(at, name, **members), end(at, name, outcome="failure")]


def health(at, ok):
    return ("health", at, {"account": "a", "ok": ok})


ROOMY = limit("concurrency", max=50)
IDLE = breaker(threshold=50, recovery="healthCheck", healthCheck={"path": "/"}, backoff={"delay": "1s"},
               idleProbe={"interval": "10s", "failures": 2})
GROWING = breaker(recovery="probe", probe={"n": 1}, backoff={"initial": "365d", "multiplier": 1000})
SHORT = breaker(recovery="probe", probe={"n": 1}, backoff={"delay": "1s"})
CHECKED = breaker(recovery="healthCheck", healthCheck={"path": "/"}, backoff={"initial": "1s", "multiplier": 1.5})
QUOTA = limit("quota", max=MOST_UNITS, counts="cost", window={"period": "day"})
LENT = limit("adaptive", initialLimit=4, maxLimit=4, lend={"reclaimHorizon": "1s", "idleAfter": "3s"},
             classes={"k0": {"reservedShare": "50%"}, "k1": {"reservedShare": "0%"}})
ONE_POST = {**limit("concurrency", max=1), "name": "m", "appliesTo": {"methods": ["POST"]}}
ROLLING = limit("quota", max=MOST_UNITS, counts="cost", window={"rolling": "60s"})
HOLDS = limit("concurrency", max=MOST_UNITS, counts="cost")

POST, GET = {"method": "POST", "endpoint": "/x"}, {"method": "GET", "endpoint": "/x"}

# What it shows: limit or limits, breaker, calls.
EDGES = {
    "idle failures are forgotten at a success": (ROOMY, IDLE, [
        call(0, "a"), end(0, "a", outcome="success"), health(10000, False), call(11000, "b"),
        end(11000, "b", outcome="success"), health(21000, False), call(21001, "c"),
        end(21002, "c", outcome="cancelled"), health(31000, False), call(31001, "d"),
        health(32001, True), call(32002, "e"), health(42001, False), call(42002, "f")]),
    "idle failures are not those of calls": (ROOMY, IDLE, [
        call(0, "a"), end(0, "a", outcome="failure"), health(10000, False), call(10001, "b"),
        end(10001, "b", outcome="failure"), health(20001, False), call(20002, "c"), health(30001, False),
        call(30002, "d")]),
    "a back-off ends at the last instant there is": (ROOMY, GROWING, [
        *fails(0, "a"), *fails(YEAR_MS, "b"), *fails(LATE_MS - 9, "c"), call(LATE_MS - 8, "d"), call(LATE_MS, "e")]),
    "a back-off saturates": (ROOMY, breaker(recovery="healthCheck", healthCheck={"path": "/"},
                                            backoff={"initial": "300d", "multiplier": 1000}), [
        *fails(0, "a"), health(1, False), call(2, "b"), health(3, False), health(4, False), call(5, "c"),
        health(6, True), call(7, "d"), end(7, "d", outcome="failure"), call(8, "e")]),
    "a back-off that is no whole multiple": (ROOMY, CHECKED, [
        *fails(0, "a"), *[step for i in range(1, 12) for step in (health(i, False), call(i, f"b{i}"))]]),
    "circuits due in one call, in the order of their instants": (ROOMY, SHORT, [
        *fails(0, "a"), *fails(1, "b", account="b"), call(5000, "c"), call(5001, "d", account="b"),
        call(5002, "e"), end(5003, "c", outcome="failure"), call(7000, "f"), call(7001, "g", account="b")]),
    "a class that nobody has used is idle from the beginning": (LENT, None, [
        call(0, "a", **{"class": "k1"}), call(0, "b", **{"class": "k1"}), call(0, "c", **{"class": "k1"}, hold=500),
        call(Number("2999.999"), "d", **{"class": "k1"}, hold=500), call(3000, "e", **{"class": "k1"}, hold=500)]),
    "a class of which any waits is not idle": ([LENT, ONE_POST], None, [
        call(0, "a", **{"class": "k1"}, **POST), call(0, "b", **{"class": "k1"}, **GET),
        call(1, "c", **{"class": "k0"}, **POST, wait=60000), call(2, "d", **{"class": "k0"}, **POST, wait=60000),
        ("cancel", 1000, {"id": "c"}), call(10000, "e", **{"class": "k1"}, **GET, hold=500),
        ("cancel", 11000, {"id": "d"}), call(Number("13999.999"), "f", **{"class": "k1"}, **GET, hold=500),
        call(14000, "g", **{"class": "k1"}, **GET, hold=500)]),
    "the costs of a window come to what a number holds": (QUOTA, None, [
        call(1, "a", cost=MOST_UNITS), call(2, "b", cost=Number("0.000001")), call(3, "c", cost=0),
        end(4, "a", cost=0), call(5, "d", cost=MOST_UNITS), end(6, "d", cost=MOST_UNITS),
        call(7, "e", cost=Number("0.000001"))]),
    "a call costs more than was left of numbers": (QUOTA, None, [
        call(1, "a", cost=1), call(2, "b", cost=1), end(3, "a", cost=MOST_UNITS), end(4, "b", cost=MOST_UNITS),
        call(5, "c", cost=0), call(6, "d", cost=1), call(86400001, "e", cost=1)]),
    "a rolling window at the ends of numbers": (ROLLING, None, [
        call(1, "a", cost=MOST_UNITS), end(2, "a", cost=MOST_UNITS), call(3, "b", cost=1), call(60001, "c", cost=1),
        call(61002, "d", cost=MOST_UNITS), call(121003, "e", cost=MOST_UNITS)]),
    "places as many as a number holds": (HOLDS, None, [
        call(1, "a", cost=MOST_UNITS), call(2, "b", cost=Number("0.000001")), end(3, "a"),
        call(4, "c", cost=Number("9007199254.740990")), call(5, "d", cost=Number("0.000001")),
        call(6, "e", cost=Number("0.000001")), end(7, "c"), call(8, "f", cost=MOST_UNITS)]),
    "a time to live beyond the last instant": (limit("concurrency", max=2), None, [
        call(1, "a", ttl=Number("0.001")), call(1, "b", ttl=MOST // 1000), call(1, "c", ttl=1), call(2, "d", hold=0),
        call(3, "e", ttl=MOST // 1000, hold=MOST // 1000), ("renew", 4, {"id": "b"}), call(5, "f"), end(6, "b")]),
    "before 1970": (limit("rate", rate="3/s", burst=2), None, [
        call(-MOST // 1000 + 86400000, "a"), call(-86400000, "b"), call(-1, "c"), call(-1, "d"), call(-1, "e"),
        call(Number("-0.001"), "f"), call(0, "g"), call(Number("0.001"), "h")]),
}


def trace(row):
    rule, circuit, calls = row
    provider = {"name": "p", "baseUrl": "http://127.0.0.1:1", "limits": rule if isinstance(rule, list) else [rule]}
    if circuit:
        provider["breaker"] = circuit
    lines = [{"op": "config", "startedAt": calls[0][1], "providers": [provider],
              "accounts": [{"name": "a", "provider": "p"}, {"name": "b", "provider": "p"}],
              "settings": {"budget": {"retryReserve": "0%"}}}]
    for op, at, members in calls:
        provider_of = {"provider": "p"} if op == "acquire" else {}
        lines.append({"at": at, "op": op, **provider_of, **members})
    return "".join(dumps(line) + "\n" for line in lines)
