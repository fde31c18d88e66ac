# SPDX-License-Identifier: MIT
"""Every way in which the gateway says no, with its status, its fields and its document."""

import threading

from api import Api
from house import a_day, one_provider, slots
from provider import hello

DAY = a_day()


def refusal(answer, status, reason, category, retryable, **members):
    """Check what all refusals have in common; the document."""
    assert answer.status == status, answer.body
    assert answer["Ration-Refused"] == reason
    assert answer["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:ration:problem:{reason}"
    assert problem["requestId"] == answer["Ration-Request-Id"]
    assert problem["title"] and problem["detail"]
    want = {"status": status, "reason": reason, "category": category, "retryable": retryable, **members}
    assert {name: problem.get(name) for name in want} == want
    retry_ms = problem.get("retryAfterMs")
    after = answer["Retry-After"]
    if retry_ms is None:
        assert after is None
    else:
        assert int(after) == max(1, -(-int(retry_ms) // 1000)) or int(after) - retry_ms / 1000 <= 1
    return problem


def now(**more):
    return {"Ration-Timeout": "0", **more}


def quota(maximum, **more):
    return {"name": "daily", "kind": "quota", "max": maximum, "window": DAY, "scope": {"by": ["account"]}, **more}


def test_rate_limited(provider, gateway):
    limit = {"name": "rate", "kind": "rate", "rate": "1/m", "burst": 1, "margin": 0, "scope": {"by": ["account"]}}
    gw = gateway(one_provider(provider(hello).url, [limit]))
    assert gw.call("GET", "/a/", now()).status == 200
    problem = refusal(
        gw.call("GET", "/a/", now()), 429, "rate_limited", "capacity", True, limit="rate", key="a", account="a"
    )
    assert 50000 < problem["retryAfterMs"] <= 60000


def test_concurrency_full(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        go.wait(60)
        connection.reply()

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    with gw.client() as first:
        first.ask("GET", "/a/", {"Ration-Hold": "30s"})
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        problem = refusal(
            gw.call("GET", "/a/", now()), 429, "concurrency_full", "capacity", True, limit="slots", estimate=True
        )
        assert 20000 < problem["retryAfterMs"] <= 30000
        go.set()
        assert first.answer().status == 200


def test_quota_exhausted(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [quota(1)]))
    assert gw.call("GET", "/a/").status == 200
    problem = refusal(gw.call("GET", "/a/"), 429, "quota_exhausted", "budget", True, limit="daily")
    assert 0 < problem["retryAfterMs"] <= 86400000


def test_penalized(provider, gateway):
    up = provider(lambda request, connection: connection.reply(429, {"Retry-After": "120"}, "slow down"))
    gw = gateway(one_provider(up.url, [slots(5)]))
    answer = gw.call("GET", "/a/")
    assert (answer.status, answer["Retry-After"], answer.body) == (429, "120", b"slow down")
    assert answer["Ration-Refused"] is None
    problem = refusal(gw.call("GET", "/a/", now()), 429, "penalized", "provider", True)
    assert 100000 < problem["retryAfterMs"] <= 120000
    assert len(up.requests) == 1


def test_cost_exceeds_limit(provider, gateway):
    limit = quota(5, counts="cost")
    gw = gateway(one_provider(provider(hello).url, [limit]))
    refusal(gw.call("GET", "/a/", {"Ration-Cost": "6"}), 422, "cost_exceeds_limit", "caller", False, limit="daily")


def test_deadline_beyond_the_next_token(provider, gateway):
    limit = {"name": "rate", "kind": "rate", "rate": "1/m", "burst": 1, "margin": 0, "scope": {"by": ["account"]}}
    gw = gateway(one_provider(provider(hello).url, [limit]))
    assert gw.call("GET", "/a/").status == 200
    problem = refusal(gw.call("GET", "/a/", {"Ration-Timeout": "1s"}), 429, "deadline", "caller", True, limit="rate")
    assert problem["retryAfterMs"] > 50000


def test_queue_full(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        go.wait(60)
        connection.reply()

    config = one_provider(provider(handler).url, [slots(1)], settings={"queue": {"maxWaiters": 1}})
    gw = gateway(config)
    with gw.client() as first, gw.client() as second:
        first.ask("GET", "/a/")
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        second.ask("GET", "/a/")
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
        refusal(gw.call("GET", "/a/"), 503, "queue_full", "capacity", True)
        go.set()
        assert first.answer().status == 200
        assert second.answer().status == 200


def test_queue_full_of_one_tenant(provider, gateway):
    """Its own bound stops no other tenant; and the API's waiters and the gateway's stand in one queue."""
    go = threading.Event()

    def handler(request, connection):
        go.wait(60)
        connection.reply()

    queue = {"maxWaiters": 2, "maxWaitersPerTenant": 1}
    gw = gateway(one_provider(provider(handler).url, [slots(1)], settings={"queue": queue}))
    api = Api(gw)
    with gw.client() as first, gw.client() as second, gw.client() as third:
        first.ask("GET", "/a/")
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        second.ask("GET", "/a/", {"Ration-Tenant": "t"})
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
        refusal(gw.call("GET", "/a/", {"Ration-Tenant": "t"}), 503, "queue_full", "capacity", True)
        answer = api.post("acquire", {"account": "a", "tenant": "t", "timeout": 20000})
        assert (answer.status, answer["Ration-Refused"]) == (503, "queue_full")
        third.ask("GET", "/a/", {"Ration-Tenant": "u"})
        gw.until(lambda s: s["waiting"] == 2, "the third one waits")
        answer = api.post("acquire", {"account": "a", "tenant": "v", "timeout": 20000})
        assert (answer.status, answer["Ration-Refused"]) == (503, "queue_full")
        go.set()
        assert [client.answer().status for client in (first, second, third)] == [200] * 3


def test_too_many_keys(provider, gateway):
    limit = quota(5, maxKeys=1, scope={"by": ["tenant"]})
    gw = gateway(one_provider(provider(hello).url, [limit]))
    assert gw.call("GET", "/a/", {"Ration-Tenant": "t1"}).status == 200
    refusal(gw.call("GET", "/a/", {"Ration-Tenant": "t2"}), 503, "too_many_keys", "capacity", True, limit="daily")


def test_unknown_account(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    refusal(gw.call("GET", "/nobody/x"), 404, "unknown_account", "caller", False)


def test_not_permitted(provider, gateway):
    up = provider(hello)
    gw = gateway(one_provider(up.url, settings={"token": "s3cret"}))
    gw.status = lambda: gw.control("/v1/status", fields={"Authorization": "Bearer s3cret"}).json()
    refusal(gw.call("GET", "/a/"), 403, "not_permitted", "caller", False)
    refusal(gw.call("GET", "/a/", {"Ration-Token": "s3cre"}), 403, "not_permitted", "caller", False)
    refusal(gw.call("GET", "/a/", {"Ration-Token": "s3crets"}), 403, "not_permitted", "caller", False)
    assert up.requests == []
    assert gw.call("GET", "/a/", {"Ration-Token": "s3cret"}).status == 200
    assert up.requests[0]["Ration-Token"] is None
    assert "s3cret" not in gw.text()


def test_a_waiter_is_refused_when_the_quota_is_gone(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        go.wait(60)
        connection.reply()

    gw = gateway(one_provider(provider(handler).url, [slots(1), quota(1)]))
    with gw.client() as first:
        first.ask("GET", "/a/")
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        refusal(gw.call("GET", "/a/"), 429, "quota_exhausted", "budget", True)
        go.set()
        assert first.answer().status == 200


def test_refusals_are_counted(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [quota(1)]))
    for target in ("/a/", "/a/", "/a/", "/nobody/"):
        gw.call("GET", target)
    assert gw.status()["totals"]["refusals"] == {"quota_exhausted": 2, "unknown_account": 1}
    metrics = gw.metrics()
    assert metrics['ration_refusals_total{reason="quota_exhausted"}'] == 2
    assert metrics['ration_refusals_total{reason="unknown_account"}'] == 1
    assert metrics['ration_refusals_total{reason="penalized"}'] == 0


# ---- what providers say is fed back


def test_quota_headers_are_fed_back(provider, gateway):
    sync = {"limitHeader": "X-Limit", "remainingHeader": "X-Left"}
    up = provider(lambda request, connection: connection.reply(200, {"X-Limit": "100", "X-Left": "1"}, "x"))
    gw = gateway(one_provider(up.url, [quota(100, sync=sync)], settings={"budget": {"retryReserve": "0%"}}))
    answer = gw.call("GET", "/a/")
    assert (answer["X-Limit"], answer["X-Left"]) == ("100", "1")
    (row,) = gw.status()["limits"]
    assert (row["limit"], row["remaining"], row["external"]) == ("daily", 1, 98)


def test_429_with_nothing_left_exhausts(provider, gateway):
    sync = {"limitHeader": "X-Limit", "remainingHeader": "X-Left"}
    up = provider(
        lambda request, connection: connection.reply(429, {"X-Limit": "100", "X-Left": "0", "retry-after-ms": "1"}, "x")
    )
    gw = gateway(one_provider(up.url, [quota(100, sync=sync)]))
    assert gw.call("GET", "/a/").status == 429
    refusal(gw.call("GET", "/a/"), 429, "quota_exhausted", "budget", True)
    assert gw.status()["totals"]["rateLimited"] == 1
    assert gw.metrics()['ration_rate_limited_total{provider="p",limit="daily"}'] == 1


def test_a_body_tells_which_status_means_wait(provider, gateway):
    bodies = iter([b"forbidden", b"x" * 20000 + b"quota", b"over your quota", b"over your quota"])
    up = provider(lambda request, connection: connection.reply(403, {}, next(bodies)))
    errors = {"rateLimited": {"statuses": [403], "bodyContains": "quota", "defaultPenalty": "1m"}}
    gw = gateway(one_provider(up.url, [slots(5)], errors=errors))
    assert gw.call("GET", "/a/").body == b"forbidden"
    assert len(gw.call("GET", "/a/").body) == 20005
    assert gw.status()["totals"]["rateLimited"] == 0, "only the beginning of a body is looked at"
    assert gw.call("GET", "/a/").body == b"over your quota"
    refusal(gw.call("GET", "/a/", now()), 429, "penalized", "provider", True)
    assert len(up.requests) == 3
