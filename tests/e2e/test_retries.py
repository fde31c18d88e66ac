# SPDX-License-Identifier: MIT
"""Calls that the gateway makes again: which, when, how often, out of what, and what their clients get to see."""

import concurrent.futures
import contextlib
import json
import os
import random
import subprocess
import threading
import time

import pytest
from house import RATION, Gateway, a_day, one_provider, slots, until
from provider import hello, server_context
from simulated import Client as Simulated
from simulated import simulator
from test_costs import chunks
from test_events import Stream

SOON = {"Retry-After": "0.2"}


def quota(most, reserve):
    """Calls in a day, and how many of them are kept for retries."""
    limit = {"name": "daily", "kind": "quota", "max": most, "window": a_day(), "arrival": 0,
             "scope": {"by": ["account"]}}
    return [limit], {"budget": {"retryReserve": f"{reserve}/{most}"}}


def samples(gw, family, label):
    """Those of a family that are not 0."""
    prefix = f'{family}{{{label}="'
    found = {name[len(prefix):-2]: value for name, value in gw.metrics().items() if name.startswith(prefix)}
    return {name: value for name, value in found.items() if value}


def retries(gw):
    return samples(gw, "ration_retries_total", "outcome")


def withheld(gw):
    return samples(gw, "ration_retries_withheld_total", "reason")


class Says:
    """A provider that answers what it is told to, one after the other, then 200. It keeps bodies and times."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.bodies = []
        self.times = []

    def __call__(self, request, connection):
        self.times.append(time.monotonic())
        self.bodies.append(request.body())
        if not self.answers:
            connection.reply(200, {"X-Cost": "5"}, b"" if request.method == "HEAD" else b"hello\n")
            return None
        status, fields = self.answers.pop(0)
        if status is None:
            return False
        connection.reply(status, {"X-Mine": "1", **fields}, b"" if request.method == "HEAD" else b"busy\n")
        return None


# ---- which


KEY = {"Idempotency-Key": "k"}
ROWS = [
    ("GET", 429, {}, True),
    ("HEAD", 503, {}, True),
    ("PUT", 500, {}, True),
    ("DELETE", 502, {}, True),
    ("OPTIONS", 504, {}, True),
    ("GET", None, {}, True),
    ("GET", 501, {}, False),
    ("POST", 429, {}, True),
    ("POST", 503, {}, False),
    ("POST", None, {}, False),
    ("PATCH", 500, {}, False),
    ("POST", 503, KEY, True),
    ("PATCH", None, KEY, True),
]


def test_what_is_sent_again(provider, gateway):
    says = {f"/{i}?y=1": Says((row[1], SOON)) for i, row in enumerate(ROWS)}
    up = provider(lambda request, connection: says[request.target](request, connection))
    gw = gateway(one_provider(up.url, retries=2))

    def one(i):
        body = b"abcdef" if ROWS[i][0] in ("PUT", "POST", "PATCH") else None
        return gw.call(ROWS[i][0], f"/a/{i}?y=1", ROWS[i][2], body)

    with concurrent.futures.ThreadPoolExecutor(len(ROWS)) as pool:
        answers = list(pool.map(one, range(len(ROWS))))
    for i, (method, status, fields, again) in enumerate(ROWS):
        seen = [(r.method, r["Idempotency-Key"]) for r in up.requests if r.target == f"/{i}?y=1"]
        assert seen == [(method, fields.get("Idempotency-Key"))] * (2 if again else 1), ROWS[i]
        body = b"abcdef" if method in ("PUT", "POST", "PATCH") else b""
        assert says[f"/{i}?y=1"].bodies == [body] * len(seen), ROWS[i]
        assert answers[i].status == (200 if again else status or 502), ROWS[i]
        assert answers[i]["X-Mine"] == ("1" if status and not again else None), ROWS[i]
    # A kept connection that breaks under a request without a body is replaced by net itself, and that is no retry.
    again = sum(row[3] for row in ROWS) - gw.metrics()["ration_upstream_stale_total"]
    assert retries(gw) == {"success": again} and withheld(gw) == {"unsafe": 3}
    assert gw.status()["totals"]["retries"] == again


def test_no_connection_is_tried_again(provider, gateway):
    up = provider(hello)
    up.close()
    gw = gateway(one_provider(up.url, retries=1))
    assert gw.call("POST", "/a/x", body=b"abc").json()["type"] == "urn:ration:problem:upstream_connect"
    assert retries(gw) == {"failure": 1} and withheld(gw) == {"spent": 1}
    assert gw.status()["totals"]["upstreamErrors"] == {"upstream_connect": 2}


def test_a_certificate_is_not_asked_twice(provider, gateway, ca):
    gw = gateway(one_provider(provider(hello, tls=server_context(ca)).url, retries=2))
    assert gw.call("GET", "/a/x").json()["type"] == "urn:ration:problem:upstream_tls"
    assert retries(gw) == {}


@pytest.mark.parametrize("whole", [True, False], ids=["length", "chunks"])
def test_a_body_that_is_too_long_goes_once_and_whole(provider, gateway, whole):
    says = Says((429, SOON))
    gw = gateway(one_provider(provider(says).url, retries=2, replayBody="64KiB"))
    body = bytes(range(256)) * 1200
    with gw.client() as client:
        client.ask("POST", "/a/x", {} if whole else {"Transfer-Encoding": "chunked"}, body if whole else None)
        if not whole:
            client.send(chunks(body, 10000))
        answer = client.answer()
    assert (answer.status, answer["X-Mine"], answer.body) == (429, "1", b"busy\n")
    assert says.bodies == [body] and withheld(gw) == {"body": 1}


def test_a_body_in_chunks_goes_again_as_it_came(provider, gateway):
    says = Says((429, SOON), (429, SOON))
    up = provider(says)
    gw = gateway(one_provider(up.url, retries=2))
    body = b"0123456789" * 20000
    with gw.client() as client:
        interim = []
        client.ask("POST", "/a/x", {"Transfer-Encoding": "chunked", "Expect": "100-continue"})
        assert client.head()[0] == 100
        client.send(chunks(body, 5000)[:-2] + b"X-Trailer: t\r\n\r\n")
        assert client.answer(interim=interim).status == 200
    assert interim == [] and says.bodies == [body] * 3
    assert [r.trailers for r in up.requests] == [[("X-Trailer", "t")]] * 3
    assert [r["Expect"] for r in up.requests] == [None] * 3


def test_a_body_that_was_half_read_goes_on(provider, gateway):
    """The provider says "too many" before it has read all; the client goes on as if nothing had been."""
    bodies = []

    def handler(request, connection):
        if not bodies:
            bodies.append(connection.file.read(3))
            connection.reply(429, SOON, b"busy\n")
            return False
        bodies.append(request.body())
        connection.reply(200, body=b"hello\n")
        return None

    gw = gateway(one_provider(provider(handler).url, retries=1))
    with gw.client() as client:
        client.send("POST /a/x HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc")
        gw.until(lambda s: s["totals"]["rateLimited"] == 1, "it was said")
        client.send("def")
        assert client.answer().status == 200
    assert bodies == [b"abc", b"abcdef"]


# ---- when, and out of what


def test_after_the_penalty_as_a_retry_with_a_lease_of_its_own(provider, gateway):
    says = Says((429, {"Retry-After": "0.4"}))
    gw = gateway(one_provider(provider(says).url, [slots(1)], retries=2))
    events = Stream(gw)
    answer = gw.call("GET", "/a/x")
    assert answer.status == 200
    assert says.times[1] - says.times[0] >= 0.4
    assert float(answer["Ration-Waited"]) >= 390
    call = events.next("call")
    events.close()
    assert (call["attempts"], call["outcome"], call["status"]) == (2, "success", 200)
    assert call["waitedMs"] == float(answer["Ration-Waited"])
    totals = gw.status()["totals"]
    assert (totals["granted"], totals["released"], totals["rateLimited"]) == (2, 2, 1)


def test_a_transient_failure_rests_first(provider, gateway):
    says = Says((503, {}), (503, {"Retry-After": "0.7"}))
    gw = gateway(one_provider(provider(says).url, retries=2))
    assert gw.call("GET", "/a/x").status == 200
    first, second, third = says.times
    assert second - first >= 0.25 and third - second >= 0.7


def test_only_before_the_deadline(provider, gateway):
    gw = gateway(one_provider(provider(Says(*[(429, {"Retry-After": "5"})] * 9, (503, {}))).url, retries=2))
    for fields in ({"Ration-Timeout": "0"}, {"Ration-Timeout": "4s"}):
        answer = gw.call("GET", "/a/x", fields)
        assert (answer.status, answer["Retry-After"], answer["Ration-Refused"]) == (429, "5", None) or (
            answer["Ration-Refused"] == "penalized")
    assert withheld(gw) == {"deadline": 1}


def test_the_client_keeps_the_providers_answer(provider, gateway):
    """The reserve is empty: the second attempt is refused, and nobody but the metrics hears of that."""
    limits, settings = quota(4, 1)
    up = provider(Says(*[(429, {"Retry-After": "0.1"})] * 9))
    gw = gateway(one_provider(up.url, limits, settings=settings, retries=9))
    answer = gw.call("GET", "/a/x", {"Ration-Priority": "low"})
    assert (answer.status, answer["X-Mine"], answer.body, answer["Ration-Refused"]) == (429, "1", b"busy\n", None)
    assert len(up.requests) == 4
    assert retries(gw) == {"throttled": 3} and withheld(gw) == {"refused": 1}
    assert gw.call("GET", "/a/x")["Ration-Refused"] == "quota_exhausted"


def test_the_reserve_is_for_retries_and_nothing_beyond_it(provider, gateway):
    """Fifteen calls that all fail, with five units kept: each is sent, and five are sent again."""
    limits, settings = quota(20, 5)
    barrier = []

    def handler(request, connection):
        request.body()
        barrier.append(1)
        until(lambda: len(barrier) >= 15, "all first attempts are here")
        connection.reply(503, {}, b"busy\n")

    up = provider(handler)
    gw = gateway(one_provider(up.url, limits, settings=settings, retries=2))
    with concurrent.futures.ThreadPoolExecutor(15) as pool:
        answers = list(pool.map(lambda _: gw.call("GET", "/a/x"), range(15)))
    assert [a.status for a in answers] == [503] * 15 and not any(a["Ration-Refused"] for a in answers)
    assert len(up.requests) == 20
    (row,) = [limit for limit in gw.status()["limits"] if limit["limit"] == "daily"]
    assert (row["used"], row["remaining"]) == (20, 0)
    assert retries(gw) == {"failure": 5}


def test_an_open_circuit_ends_it(provider, gateway):
    up = provider(Says(*[(500, {})] * 9))
    breaker = {"strategy": "consecutive", "threshold": 2, "recovery": "probe", "backoff": {"delay": "60s"}}
    gw = gateway(one_provider(up.url, breaker=breaker, retries=5))
    answer = gw.call("GET", "/a/x")
    assert (answer.status, answer.body, answer["Ration-Refused"]) == (500, b"busy\n", None)
    assert len(up.requests) == 2 and withheld(gw) == {"refused": 1}
    assert gw.call("GET", "/a/x")["Ration-Refused"] == "circuit_open"


def test_each_attempt_is_settled(provider, gateway):
    tokens = {"name": "tokens", "kind": "quota", "counts": "cost", "max": 1000, "window": a_day(),
              "arrival": 0, "scope": {"by": ["account"]}}
    gw = gateway(one_provider(provider(Says((429, {**SOON, "X-Cost": "1"}))).url, [tokens], retries=1, estimate=50,
                              actual={"header": "X-Cost"}))
    events = Stream(gw)
    assert gw.call("GET", "/a/x").status == 200
    assert events.next("call")["cost"] == 6
    events.close()
    (row,) = [limit for limit in gw.status()["limits"] if limit["limit"] == "tokens"]
    assert row["used"] == 6


def test_a_jobs_retries_are_counted_as_such(provider, gateway):
    config = one_provider(provider(Says((429, SOON))).url, quota(1000, 10)[0], retries=1,
                          settings={"budget": {"replanInterval": "1s"}})
    config["jobs"] = [{"name": "tick", "account": "a", "endpoint": "/x", "interval": "2s"}]
    gw = gateway(config)
    assert gw.call("GET", "/a/x", {"Ration-Job": "tick"}).status == 200
    gw.until(lambda s: s["plan"]["runs"]["counted"] == 1, "its run is over")
    until(lambda: gw.control("/v1/plan/jobs/tick").json()["calls"] == 2, "a call, and as many retries")


def test_the_smaller_of_endpoint_and_account(provider, gateway):
    up = provider(Says(*[(429, {"Retry-After": "0.01"})] * 40))
    endpoints = ["/p", {"path": "/none", "retries": 0}, {"path": "/e", "retries": 3}]
    config = one_provider(up.url, retries=1, endpoints=endpoints)
    config["accounts"].append({"name": "b", "provider": "p", "retries": 2})
    gw = gateway(config)
    sent = {}
    for target in ("/a/p", "/a/none", "/a/e", "/b/p", "/b/none", "/b/e"):
        before = len(up.requests)
        assert gw.call("GET", target).status == 429
        sent[target] = len(up.requests) - before
    assert sent == {"/a/p": 2, "/a/none": 1, "/a/e": 4, "/b/p": 3, "/b/none": 1, "/b/e": 3}


# ---- how it ends


@pytest.mark.parametrize("status", [429, 503])
def test_a_client_that_leaves_meanwhile(provider, gateway, status):
    up = provider(Says((status, {"Retry-After": "20"})))
    gw = gateway(one_provider(up.url, [slots(1)], retries=2))
    with gw.client() as client:
        client.ask("PUT", "/a/x", {}, b"abc" * 1000)
        state = "waiting" if status == 429 else "resting"
        gw.until(lambda s: s["exchanges"][state] == 1, "it is between two attempts")
        assert gw.status()["held"] == 0
    gw.until_idle()
    assert gw.status()["totals"]["clientsGoneWaiting"] == 1 and len(up.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_drain_gives_what_there_is(provider, gateway, status):
    up = provider(Says((status, {"Retry-After": "20"}), (status, {})))
    gw = gateway(one_provider(up.url, retries=2))
    with gw.client() as client, concurrent.futures.ThreadPoolExecutor(1) as pool:
        client.ask("GET", "/a/x")
        state = "waiting" if status == 429 else "resting"
        gw.until(lambda s: s["exchanges"][state] == 1, "it is between two attempts")
        ending = pool.submit(gw.stop)
        answer = client.answer()
        assert (answer.status, answer["X-Mine"], answer.body) == (status, "1", b"busy\n")
        assert ending.result() == 0
    assert len(up.requests) == 1


def test_it_replays(provider, tmp_path):
    limits, settings = quota(30, 6)
    record = tmp_path / "calls.jsonl"
    answers = [(429, SOON), (503, {}), (429, {"Retry-After": "0.1"}), (None, {}), (500, {})] * 3
    up = provider(Says(*answers))
    gw = Gateway(one_provider(up.url, limits, settings=settings, retries=2), tmp_path, "--record", str(record))
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: gw.call("GET", "/a/x").status, range(16)))
    finally:
        gw.close()
    asked = [json.loads(line) for line in record.read_text().splitlines() if '"acquire"' in line]
    assert any(line.get("retry") for line in asked)
    done = subprocess.run([RATION, "replay", "--verify", str(record)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_any_mixture_ends_clean_and_replays(provider, tmp_path):
    """Providers that fail in every way, clients that leave anywhere: no more is sent than there is, nothing is kept."""
    seed = int(os.environ.get("SEED", "1"))
    dice = random.Random(seed)
    lock = threading.Lock()

    def handler(request, connection):
        with lock:
            how, early = dice.choice((200, 200, 429, 503, None)), dice.random() < 0.2
            wait = dice.choice(("0.02", "0.1"))
        if not early:
            request.body()
        if how is None:
            return False
        connection.reply(how, {"Retry-After": wait}, b"" if request.method == "HEAD" else b"x" * 2000)
        return not early

    limits, settings = quota(170, 40)
    breaker = {"strategy": "consecutive", "threshold": 9, "recovery": "probe", "backoff": {"delay": "50ms"}}
    record = tmp_path / "calls.jsonl"
    up = provider(handler)
    gw = Gateway(one_provider(up.url, [*limits, slots(6)], settings=settings, retries=3, replayBody="8KiB",
                              breaker=breaker), tmp_path, "--record", str(record))

    def one(number):
        mine = random.Random(seed * 1000 + number)
        method = mine.choice(("GET", "PUT", "POST", "HEAD"))
        body = b"b" * mine.choice((0, 1, 5000, 20000)) if method in ("PUT", "POST") else None
        with gw.client() as client, contextlib.suppress(OSError, EOFError):
            client.ask(method, "/a/x", {"Ration-Timeout": mine.choice(("0", "300ms", "2s"))}, body)
            if mine.random() < 0.25:
                time.sleep(mine.random() * 0.2)
                return None
            return client.answer(method).status
        return None

    try:
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            statuses = set(pool.map(one, range(150)))
        gw.until_idle()
        assert {200, 429} <= statuses <= {200, 429, 502, 503, None}
        assert gw.status()["totals"]["granted"] <= 170 and retries(gw)
    finally:
        gw.close()
    done = subprocess.run([RATION, "replay", "--verify", str(record)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_provider_that_fails_now_and_then(gateway, tmp_path):
    """Every fifth answer is an error: without retries as many calls fail, with them one in a hundred."""
    limits, settings = quota(1000, 300)
    shop = {"name": "p", "limits": limits}
    config = json.dumps({"providers": [shop], "accounts": [{"name": "a", "provider": "p"}]})
    with simulator(tmp_path, config.replace('"limits"', '"baseUrl": "http://x", "limits"'), "--errors", "20%",
                   "--seed", "7") as port:
        failed = {}
        for count in (0, 3):
            gw = gateway(one_provider(f"http://127.0.0.1:{port}", limits, settings=dict(settings), retries=count,
                                      account={"credential": {"header": "Authorization", "value": "Bearer secret-1"}}))
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                statuses = list(pool.map(lambda _, gw=gw: gw.call("GET", "/a/x").status, range(64)))
            failed[count] = sum(status >= 500 for status in statuses)
            assert set(statuses) <= {200, 500, 502, 503, 504}, statuses
            sent = gw.status()["totals"]["granted"]
            assert sent <= 700 + 300
            gw.until_idle()
        assert failed[0] >= 4 and failed[3] < failed[0] and failed[3] <= 3
        assert Simulated(port).counts()
