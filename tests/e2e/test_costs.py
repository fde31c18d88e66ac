# SPDX-License-Identifier: MIT
"""Costs: told by a request before the call, told by its response after it, and counted in between."""

import concurrent.futures
import contextlib
import datetime
import gzip
import json
import subprocess
import threading
import zlib

import pytest
from api import validator
from house import RATION, a_day, one_provider, until
from test_events import Stream
from test_reload import reload

TOKENS = {"name": "tokens", "kind": "quota", "counts": "cost", "max": 100000, "window": a_day(),
          "arrival": 0, "scope": {"by": ["account"]}}
NO_RESERVE = {"budget": {"retryReserve": 0}}
TO_MAX = {"pointer": "/max_tokens", "default": 1000}
TO_USAGE = {"pointer": "/usage/total_tokens"}


def used(gw, name="tokens"):
    for limit in gw.status()["limits"]:
        if limit["limit"] == name:
            return limit["used"]
    return 0


def costs(gw, family="ration_costs_settled_total", label="source"):
    """The samples of a family that are not 0."""
    prefix = f'{family}{{{label}="'
    found = {name[len(prefix):-2]: value for name, value in gw.metrics().items() if name.startswith(prefix)}
    return {name: value for name, value in found.items() if value}


def estimates(gw):
    return costs(gw, "ration_estimates_total")


def unseen(gw):
    return costs(gw, "ration_usage_unseen_total", "why")


def stream(connection, *pieces, **fields):
    head = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **fields}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    connection.send(f"HTTP/1.1 200 OK\r\n{lines}\r\n")
    for piece in pieces:
        connection.chunk(piece)
    connection.send("0\r\n\r\n")


# ---- before the call


def echo(request, connection):
    connection.reply(200, {"X-Length": request["Content-Length"] or "", "X-Coding": request["Transfer-Encoding"] or ""},
                     b"" if request.method == "HEAD" else request.body())


BODY = b'{"model":"m","max_tokens":40}'
PADDED = b'{"pad":"' + b"x" * 300000 + b'","max_tokens":40}'
CHUNKED = {"Transfer-Encoding": "chunked"}


def chunks(body, size=7):
    parts = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("fields", "body", "cost", "source"),
    [
        ({}, BODY, 40, "pointer"),
        ({}, PADDED, 40, "pointer"),
        ({}, b'{"max_tokens":40,"max_tokens":50}', 50, "pointer"),
        ({}, b'{"max_tokens":0}', 0, "pointer"),
        ({}, b'{"max_tokens":0.0000001}', 0.000001, "pointer"),
        ({}, b'{"max_tokens":40', 1000, "default"),
        ({}, b'{"max_tokens":"40"}', 1000, "default"),
        ({}, b'{"max_tokens":-1}', 1000, "default"),
        ({}, b"max_tokens=40", 1000, "default"),
        ({}, b"", 1000, "default"),
        ({}, None, 1000, "default"),
        ({"X-Size": "7"}, BODY, 7, "header"),
        ({"X-Size": "much"}, BODY, 1000, "default"),
        ({"Ration-Cost": "3"}, BODY, 3, None),
    ],
    # pytest puts the name of a test into the environment of what it starts, where there is no room for a long one.
    ids=lambda value: str(value)[:30],
)
def test_what_a_request_tells(provider, gateway, fields, body, cost, source):
    up = provider(echo)
    estimate = {"header": "X-Size", "default": 1000} if "X-Size" in fields else TO_MAX
    gw = gateway(one_provider(up.url, [TOKENS], estimate=estimate))
    answer = gw.call("POST", "/a/x", fields, body)
    assert (answer.status, answer.body) == (200, body or b"")
    assert answer["X-Length"] == str(len(body)) if body else answer["X-Length"] in ("", "0")
    assert used(gw) == cost
    assert estimates(gw) == ({source: 1} if source else {})


def test_a_body_in_chunks_goes_on_in_chunks(provider, gateway):
    up = provider(echo)
    gw = gateway(one_provider(up.url, [TOKENS], estimate=TO_MAX))
    with gw.client() as client:
        client.ask("POST", "/a/x", CHUNKED)
        for byte in chunks(BODY)[:-2]:
            client.send(bytes([byte]))
        client.send("X-Trailer: t\r\nConnection: no\r\n\r\n")
        answer = client.answer()
        assert (answer.body, answer["X-Coding"]) == (BODY, "chunked")
        assert up.requests[0].trailers == [("X-Trailer", "t")]
        assert used(gw) == 40
        # The connection is good for another.
        assert client.ask("POST", "/a/x", CHUNKED).send(chunks(BODY)).answer().body == BODY
    assert used(gw) == 80


@pytest.mark.parametrize("framing", ["told", "chunked"])
def test_a_long_body_is_not_kept(provider, gateway, framing):
    """Beyond `estimate.body` the default holds, and the body goes on whole and in order."""
    up = provider(echo)
    gw = gateway(one_provider(up.url, [TOKENS], estimate={**TO_MAX, "body": "64KiB"}))
    body = json.dumps({"max_tokens": 40, "list": list(range(200000))}).encode()
    with gw.client() as client:
        sender = threading.Thread(
            target=lambda: client.ask("PUT", "/a/x", {}, body)
            if framing == "told"
            else client.ask("PUT", "/a/x", CHUNKED).send(chunks(body, 5000))
        )
        sender.start()
        assert client.answer().body == body
        sender.join()
    assert (used(gw), estimates(gw)) == (1000, {"default": 1})


@pytest.mark.parametrize("coding, pack", [("gzip", gzip.compress), ("deflate", zlib.compress)], ids=["gzip", "deflate"])
@pytest.mark.parametrize("framing", ["told", "chunked"])
def test_a_compressed_body_tells_nothing(provider, gateway, coding, pack, framing):
    """It is not unpacked: the default holds, and it goes on as it came."""
    up = provider(echo)
    gw = gateway(one_provider(up.url, [TOKENS], estimate=TO_MAX))
    body, fields = pack(BODY), {"Content-Encoding": coding}
    with gw.client() as client:
        if framing == "told":
            client.ask("POST", "/a/x", fields, body)
        else:
            client.ask("POST", "/a/x", {**fields, **CHUNKED}).send(chunks(body))
        assert client.answer().body == body
    assert up.requests[0].all("Content-Encoding") == [coding]
    assert (used(gw), estimates(gw)) == (1000, {"default": 1})


def test_the_largest_body_that_is_kept(provider, gateway):
    up = provider(echo)
    gw = gateway(one_provider(up.url, [TOKENS], estimate={**TO_MAX, "body": len(BODY)}))
    assert gw.call("PUT", "/a/x", {}, BODY).body == BODY
    assert gw.call("PUT", "/a/x", {}, BODY + b" ").body == BODY + b" "
    assert estimates(gw) == {"pointer": 1, "default": 1}


def test_a_kept_body_that_is_larger_than_any_queue(provider, gateway):
    up = provider(echo)
    gw = gateway(one_provider(up.url, [TOKENS], estimate={**TO_MAX, "body": "64MiB"}))
    body = b'{"pad":"' + b"0123456789abcdef" * 800000 + b'","max_tokens":40}'
    with gw.client() as client:
        sender = threading.Thread(target=lambda: client.ask("PUT", "/a/x", {}, body))
        sender.start()
        assert client.answer().body == body
        sender.join()
    assert used(gw) == 40


def test_without_a_default_the_cost_of_the_endpoint_holds(provider, gateway):
    up = provider(echo)
    endpoints = [{"path": "/dear", "cost": 30}, {"path": "/own", "estimate": {"pointer": "/n"}, "cost": 20}]
    gw = gateway(one_provider(up.url, [TOKENS], estimate={"pointer": "/max_tokens"}, cost=5, endpoints=endpoints))
    for path, body, cost in (("dear", b"{}", 30), ("own", BODY, 20), ("own", b'{"n":2}', 2), ("x", b"[]", 5),
                             ("dear", BODY, 40)):
        before = used(gw)
        assert gw.call("POST", f"/a/{path}", {}, body).status == 200
        assert used(gw) - before == cost, (path, body)


def test_too_much_to_count_fits_nowhere(provider, gateway):
    gw = gateway(one_provider(provider(echo).url, [TOKENS], estimate=TO_MAX))
    for number in (b"100001", b"1e300", b"9" * 400):
        answer = gw.call("POST", "/a/x", {}, b'{"max_tokens":%s}' % number)
        assert (answer.status, answer["Ration-Refused"]) == (422, "cost_exceeds_limit")
    assert used(gw) == 0


def test_head_and_expect(provider, gateway):
    up = provider(echo)
    gw = gateway(one_provider(up.url, [TOKENS], estimate=TO_MAX))
    assert gw.call("HEAD", "/a/x").status == 200
    interim = []
    with gw.client() as client:
        client.send(f"POST /a/x HTTP/1.1\r\nHost: g\r\nContent-Length: {len(BODY)}\r\nExpect: 100-continue\r\n\r\n")
        assert client.file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert client.file.readline() == b"\r\n"
        assert client.send(BODY).answer("POST", interim).body == BODY
    assert interim == [] and used(gw) == 1040


def test_it_waits_with_its_body(provider, gateway):
    """The wait begins when the decision is asked for: a slow body takes nothing of it."""
    go = threading.Event()

    def handler(request, connection):
        if request.target == "/first":
            assert go.wait(60)
        echo(request, connection)

    limit = {"name": "slots", "kind": "concurrency", "max": 1, "scope": {"by": ["account"]}}
    gw = gateway(one_provider(provider(handler).url, [limit, TOKENS], estimate=TO_MAX))
    with gw.client() as first, gw.client() as second:
        second.ask("POST", "/a/x", {"Content-Length": len(BODY), "Ration-Timeout": "25s"}).send(BODY[:5])
        gw.until(lambda s: s["exchanges"]["estimating"] == 1, "the body is read")
        assert gw.status()["held"] == 0
        first.ask("GET", "/a/first")
        gw.until(lambda s: s["held"] == 1, "the first runs")
        second.send(BODY[5:])
        gw.until(lambda s: s["waiting"] == 1, "the second waits")
        go.set()
        assert second.answer().body == BODY and first.answer().status == 200
    assert used(gw) == 1040


def test_clients_that_leave_with_half_a_body(provider, gateway):
    up = provider(echo)
    gw = gateway(one_provider(up.url, [TOKENS], estimate=TO_MAX))
    for i in range(20):
        with gw.client() as client:
            client.ask("POST", "/a/x", {"Content-Length": len(BODY)}).send(BODY[:i])
            gw.until(lambda s: s["exchanges"]["estimating"] == 1, "the body is read")
            if i % 2:
                client.reset()
        gw.until_idle()
    with gw.client() as client:
        assert client.ask("POST", "/a/x", CHUNKED).send("zz\r\n").answer().status == 400
    gw.until_idle()
    assert (used(gw), len(up.requests)) == (0, 0)


# ---- after it

CHAT = {"id": "c", "object": "chat.completion", "choices": [{"message": {"content": "Hi \"there\"} ,"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}


@pytest.mark.parametrize(
    ("fields", "body", "cost", "source", "why"),
    [
        ({}, json.dumps(CHAT), 12, "pointer", None),
        ({}, json.dumps(CHAT, indent=2), 12, "pointer", None),
        ({"X-Cost": "2.5"}, json.dumps(CHAT), 2.5, "header", None),
        ({"X-Cost": "NaN"}, json.dumps(CHAT), 40, "estimate", "unusable"),
        ({}, '{"usage":{"total_tokens":0}}', 0, "pointer", None),
        ({}, '{"usage":{"total_tokens":-1}}', 40, "estimate", "unusable"),
        ({}, '{"usage":{"total_tokens":"12"}}', 40, "estimate", "unusable"),
        ({}, '{"usage":{"total_tokens":1e400}}', 40, "estimate", "unusable"),
        ({}, '{"usage":{"total_tokens":NaN}}', 40, "estimate", "absent"),
        ({}, '{"usage":{}}', 40, "estimate", "absent"),
        ({}, '{"usage":{"total_tokens":12', 40, "estimate", "absent"),
        ({"X-Cost": "-3"}, "", 40, "estimate", "unusable"),
        ({"Content-Encoding": "gzip"}, json.dumps(CHAT), 40, "estimate", "encoded"),
    ],
)
def test_what_a_response_tells(provider, gateway, fields, body, cost, source, why):
    up = provider(lambda request, connection: (request.body(), connection.reply(200, fields, body)) and None)
    actual = {"header": "X-Cost"} if "X-Cost" in fields else TO_USAGE
    gw = gateway(one_provider(up.url, [TOKENS], estimate=TO_MAX, actual=actual))
    with contextlib.closing(Stream(gw)) as events:
        answer = gw.call("POST", "/a/x", {"Accept-Encoding": "gzip, br"}, BODY)
        assert (answer.status, answer.body) == (200, body.encode())
        assert events.next("call")["cost"] == cost
    assert up.requests[0].all("Accept-Encoding") == ["gzip, br" if "X-Cost" in fields else "identity"]
    assert used(gw) == cost
    assert (costs(gw), unseen(gw)) == ({source: 1}, {why: 1} if why else {})


def test_where_nothing_is_looked_for_encodings_are_the_clients(provider, gateway):
    up = provider(echo)
    gw = gateway(one_provider(up.url, [TOKENS], actual={"header": "X-Cost"}))
    gw.call("GET", "/a/x", {"Accept-Encoding": "gzip, br"})
    assert up.requests[0].all("Accept-Encoding") == ["gzip, br"]
    errors = {"rateLimited": {"statuses": [400], "bodyContains": "slow down"}}
    gw = gateway(one_provider(up.url, [TOKENS], errors=errors))
    gw.call("GET", "/a/x", {"Accept-Encoding": "gzip, br"})
    assert up.requests[1].all("Accept-Encoding") == ["identity"]


def test_what_has_no_body_is_no_lack_of_usage(provider, gateway):
    up = provider(lambda request, connection: connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"))
    gw = gateway(one_provider(up.url, [TOKENS], cost=8, actual=TO_USAGE))
    assert gw.call("HEAD", "/a/x").status == 200
    assert (used(gw), costs(gw), unseen(gw)) == (8, {"estimate": 1}, {})


def test_errors_are_no_lack_of_usage(provider, gateway):
    up = provider(lambda request, connection: connection.reply(500, body=b'{"error":{}}'))
    gw = gateway(one_provider(up.url, [TOKENS], cost=8, actual=TO_USAGE))
    assert gw.call("GET", "/a/x").status == 500
    assert (used(gw), costs(gw), unseen(gw)) == (8, {"estimate": 1}, {})


EVENTS = (
    'data: {"choices":[{"delta":{"content":"Hi"}}],"usage":null}\n\n'
    'data: {"choices":[],"usage":{"total_tokens":17}}\n\n'
    "data: [DONE]\n\n"
)


def test_a_stream_cut_at_every_byte(provider, gateway):
    cuts = list(range(1, len(EVENTS)))

    def handler(request, connection):
        cut = int(request.target[1:])
        stream(connection, EVENTS[:cut], EVENTS[cut:])

    gw = gateway(one_provider(provider(handler).url, [TOKENS], actual=TO_USAGE))
    with gw.client() as client:
        for cut in cuts:
            assert client.call("GET", f"/a/{cut}").body == EVENTS.encode()
    assert used(gw) == 17 * len(cuts)
    assert costs(gw) == {"pointer": len(cuts)}


def test_a_stream_is_not_delayed(provider, gateway):
    """Each event is with the client before the next is sent; the cost is settled at the end."""
    seen = threading.Semaphore(0)

    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(20):
            connection.chunk('data: {"usage":{"total_tokens":%d}}\n\n' % i)
            assert seen.acquire(timeout=30)
        connection.send("0\r\n\r\n")

    gw = gateway(one_provider(provider(handler).url, [TOKENS], cost=100, actual=TO_USAGE))
    with gw.client() as client:
        client.ask("GET", "/a/x")
        client.head()
        for i in range(20):
            assert client.chunk() == b'data: {"usage":{"total_tokens":%d}}\n\n' % i
            assert used(gw) == 100
            seen.release()
        assert client.chunk() == b""
    gw.until_idle()
    assert used(gw) == 19


@pytest.mark.parametrize("kind", ["json", "events"])
def test_a_provider_that_breaks_off(provider, gateway, kind):
    """What was seen is settled; where nothing was seen, or half of a number, the estimate stands."""
    bodies = {
        "json": {"seen": '{"usage":{"total_tokens":7},"more":', "unseen": '{"choices":[',
                 "amid": '{"usage":{"total_tokens":12'},
        "events": {"seen": 'data: {"usage":{"total_tokens":7}}\n\nda', "unseen": "data: {}\n\nda",
                   "amid": 'data: {"usage":{"total_tokens":12'},
    }

    def handler(request, connection):
        told = bodies[kind][request.target[1:]]
        if kind == "json":
            connection.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n" + told)
        else:
            connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.chunk(told)
        return False

    gw = gateway(one_provider(provider(handler).url, [TOKENS], cost=100, actual=TO_USAGE))
    for path, cost in (("seen", 7), ("unseen", 107), ("amid", 207)):
        with pytest.raises(EOFError):
            gw.call("GET", f"/a/{path}")
        gw.until_idle()
        assert used(gw) == cost
    assert (costs(gw), unseen(gw)) == ({"pointer": 1, "estimate": 2}, {})


def test_the_status_has_estimates_and_costs(provider, gateway):
    """By provider, over those calls alone that told what they cost, and over a reload."""

    def handler(request, connection):
        if request.target == "/none":
            connection.reply(200, body=b"{}")
        else:
            connection.reply(200, body=b'{"usage":{"total_tokens":7.5}}')

    config = one_provider(provider(handler).url, [TOKENS], estimate={"header": "X-Estimate", "default": 10},
                          actual=TO_USAGE)
    gw = gateway(config)
    want = {"provider": "p", "estimates": {"header": 1, "pointer": 0, "default": 2},
            "settled": {"header": 0, "pointer": 2, "estimate": 1}, "unseen": {"absent": 1, "encoded": 0, "unusable": 0},
            "estimated": 14, "actual": 15}
    for path, fields in (("some", {"X-Estimate": "4"}), ("some", {}), ("none", {})):
        assert gw.call("GET", f"/a/{path}", fields).status == 200
    gw.until_idle()
    assert gw.status()["costs"] == [want]
    validator("/components/schemas/Snapshot").validate(gw.status())
    shown = subprocess.run([RATION, "status", "--control", gw.control_address], capture_output=True, text=True,
                           timeout=30).stdout
    assert (
        "Costs at p: 2 calls told theirs, 14 estimated and 15 spent (107 %); 1 went by their estimate, "
        "1 of which succeeded without a usage that can be read.\n"
    ) in shown
    reload(gw, config | {"tenants": {"x": 2}})
    assert gw.status()["costs"] == [want]


def test_clients_killed_amid_the_stream(provider, gateway):
    """Nothing stays held, and the quota has what the clients' streams had told when they left."""

    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.chunk("data: {}\n\n")
        if request.target != "/0":
            connection.chunk('data: {"usage":{"total_tokens":%s}}\n\n' % request.target[1:])
        connection.chunk("data: {}\n\n")
        connection.closed()
        return False

    gw = gateway(one_provider(provider(handler).url, [TOKENS], cost=100, actual=TO_USAGE))
    with contextlib.closing(Stream(gw)) as events:
        told = 0
        for i in range(50):
            with gw.client() as client:
                client.ask("GET", f"/a/{i}").head()
                for _ in range(2 if i == 0 else 3):
                    assert client.chunk()
                client.reset()
            event = events.next("call")
            assert (event["outcome"], event["cost"]) == ("cancelled", i or 100)
            told += event["cost"]
    gw.until_idle()
    assert used(gw) == told == 100 + sum(range(1, 50))
    assert costs(gw) == {"pointer": 49, "estimate": 1}


# ---- against a cap


def storm(gw, count, body):
    """So many calls, 16 at a time; their statuses."""

    def one(i):
        return gw.call("POST", "/a/x", {"Ration-Timeout": "0"}, body(i)).status

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(one, range(count)))


def test_a_cap_is_never_passed_with_estimates_that_hold(provider, gateway):
    lock = threading.Lock()
    spent = []

    def handler(request, connection):
        asked = json.loads(request.body())
        with lock:
            spent.append(asked["spend"])
        connection.reply(200, body=json.dumps({"usage": {"total_tokens": asked["spend"]}}))

    cap = {**TOKENS, "max": 2000}
    gw = gateway(one_provider(provider(handler).url, [cap], settings=NO_RESERVE, estimate=TO_MAX, actual=TO_USAGE))
    statuses = storm(gw, 200, lambda i: json.dumps({"max_tokens": 60, "spend": 1 + i * 37 % 60}).encode())
    gw.until_idle()
    assert set(statuses) == {200, 429}
    assert used(gw) == sum(spent) <= 2000
    # What was given back is used again, until no call fits any more.
    rest = json.dumps({"max_tokens": 60, "spend": 30}).encode()
    while gw.call("POST", "/a/x", {"Ration-Timeout": "0"}, rest).status == 200:
        gw.until_idle()
    assert 2000 - 60 < used(gw) == sum(spent) <= 2000


def test_what_was_underestimated_is_made_up(provider, gateway):
    """The overshoot is what the calls under way had not told, and nothing is granted until it is made up."""
    lock = threading.Lock()
    spent = []

    def handler(request, connection):
        request.body()
        with lock:
            spent.append(90)
        until(lambda: len(spent) >= 12, "so many are under way at once that they pass the cap")
        connection.reply(200, body=b'{"usage":{"total_tokens":90}}')

    cap = {**TOKENS, "max": 1000}
    gw = gateway(one_provider(provider(handler).url, [cap], settings=NO_RESERVE, estimate=TO_MAX, actual=TO_USAGE))
    statuses = storm(gw, 60, lambda i: b'{"max_tokens":50}')
    gw.until_idle()
    over = used(gw) - 1000
    assert used(gw) == sum(spent)
    # At most 16 were under way when the cap was reached, each with 40 that it had not told of.
    assert 0 < over <= 16 * 40
    assert statuses.count(429) == 60 - len(spent) > 0
    assert gw.call("POST", "/a/x", {"Ration-Timeout": "0"}, b'{"max_tokens":0.000001}').status == 429


def test_a_debt_is_paid_before_the_next_grant(provider, gateway):
    bucket = {"name": "tokens", "kind": "rate", "counts": "cost", "rate": "1/s", "burst": 100, "margin": 0,
              "scope": {"by": ["account"]}}
    up = provider(lambda request, connection: connection.reply(200, {"X-Cost": "150"}, b"x"))
    gw = gateway(one_provider(up.url, [bucket], cost=100, actual={"header": "X-Cost"}))
    assert gw.call("GET", "/a/x").status == 200
    answer = gw.call("GET", "/a/x", {"Ration-Timeout": "0"})
    # 50 of debt and 100 of its own, less what came in while the first call ran.
    assert answer.status == 429 and 100000 < answer.json()["retryAfterMs"] <= 150000


# ---- presets


def from_preset(name, url, *limits):
    provider = {"use": name, "baseUrl": url, "limits": [{"name": limit, "initialMax": top} for limit, top in limits]}
    return {"settings": dict(NO_RESERVE), "providers": [provider], "accounts": [{"name": "a", "provider": name}]}


def limit_of(gw, name):
    return next(limit for limit in gw.status()["limits"] if limit["limit"] == name)


def test_openai(provider, gateway):
    left = {"requests": 500, "tokens": 30000}

    def handler(request, connection):
        asked = json.loads(request.body())
        left["requests"] -= 1
        left["tokens"] -= 12
        fields = {
            "x-ratelimit-limit-requests": 500, "x-ratelimit-remaining-requests": left["requests"],
            "x-ratelimit-reset-requests": "120ms", "x-ratelimit-limit-tokens": 30000,
            "x-ratelimit-remaining-tokens": left["tokens"], "x-ratelimit-reset-tokens": "0m48.25s",
        }
        if asked.get("stream"):
            parts = [{"choices": [{"delta": {"content": "Hi"}}], "usage": None},
                     {"choices": [], "usage": CHAT["usage"]}]
            stream(connection, *[f"data: {json.dumps(part)}\n\n" for part in parts], "data: [DONE]\n\n", **fields)
        else:
            connection.reply(200, {"Content-Type": "application/json", **fields}, json.dumps(CHAT))

    up = provider(handler)
    gw = gateway(from_preset("openai", up.url, ("requests", 5), ("tokens", 5000)))
    call = {"model": "m", "max_completion_tokens": 300, "messages": []}
    for i in range(1, 7):
        asked = {**call, "stream": True, "stream_options": {"include_usage": True}} if i % 2 else call
        answer = gw.call("POST", "/a/chat/completions", {"Accept-Encoding": "gzip"}, json.dumps(asked).encode())
        assert answer.status == 200 and answer["x-ratelimit-limit-tokens"] == "30000"
        assert limit_of(gw, "tokens")["max"] == 30000 and limit_of(gw, "requests")["max"] == 500
    assert up.requests[0].target == "/chat/completions"
    assert all(request.all("Accept-Encoding") == ["identity"] for request in up.requests)
    assert (costs(gw), estimates(gw), unseen(gw)) == ({"pointer": 6}, {"pointer": 6}, {})
    now = datetime.datetime.now(datetime.timezone.utc).timestamp() * 1000
    assert limit_of(gw, "tokens")["windowEnd"] == pytest.approx(now + 48250, abs=10000)


def test_anthropic(provider, gateway):
    left = {"requests": 50, "output-tokens": 8000}
    reset = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(seconds=45)

    def handler(request, connection):
        asked = json.loads(request.body())
        left["requests"] -= 1
        left["output-tokens"] -= 25
        fields = {}
        for name, top in (("requests", 50), ("output-tokens", 8000)):
            fields[f"anthropic-ratelimit-{name}-limit"] = top
            fields[f"anthropic-ratelimit-{name}-remaining"] = left[name]
            fields[f"anthropic-ratelimit-{name}-reset"] = reset.strftime("%Y-%m-%dT%H:%M:%SZ")
        if asked.get("stream"):
            parts = [
                {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 25}},
                {"type": "message_stop"},
            ]
            events = [f"event: {part['type']}\ndata: {json.dumps(part)}\n\n" for part in parts]
            stream(connection, *events, **fields)
        else:
            body = {"type": "message", "content": [], "usage": {"input_tokens": 9, "output_tokens": 25}}
            connection.reply(200, {"Content-Type": "application/json", **fields}, json.dumps(body))

    gw = gateway(from_preset("anthropic", provider(handler).url, ("requests", 5), ("output-tokens", 1000)))
    for i in range(6):
        asked = json.dumps({"model": "m", "max_tokens": 400, "stream": bool(i % 2)}).encode()
        assert gw.call("POST", "/a/v1/messages", {"Accept-Encoding": "gzip"}, asked).status == 200
    assert limit_of(gw, "output-tokens")["max"] == 8000 and limit_of(gw, "requests")["max"] == 50
    assert (costs(gw), estimates(gw), unseen(gw)) == ({"pointer": 6}, {"pointer": 6}, {})
    assert limit_of(gw, "output-tokens")["windowEnd"] == pytest.approx(reset.timestamp() * 1000, abs=2000)


def test_usage_is_settled_before_the_next_call(provider, gateway):
    """A client that has its answer finds its cost settled."""
    up = provider(lambda request, connection: connection.reply(200, body=b'{"usage":{"total_tokens":5}}'))
    gw = gateway(one_provider(up.url, [{**TOKENS, "max": 100}], settings=NO_RESERVE, cost=100, actual=TO_USAGE))
    with gw.client() as client:
        assert client.call("GET", "/a/x").status == 200
        until(lambda: used(gw) == 5, "settled")
        assert client.call("GET", "/a/x", {"Ration-Cost": "95", "Ration-Timeout": "0"}).status == 200
