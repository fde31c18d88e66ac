# SPDX-License-Identifier: MIT
"""What happens, as it happens (`/v1/events`), and what happened a while ago (`/v1/refusals`)."""

import contextlib
import json
import socket
import threading

import pytest
from api import Api, pointer, validator
from house import DEADLINE, Client, a_day, one_provider, slots, until
from provider import hello

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ONE_A_DAY = {"name": "daily", "kind": "quota", "max": 1, "window": a_day(), "scope": {"by": ["account"]}}


class Stream:
    """A listener, as a browser's EventSource reads: events by type."""

    def __init__(self, gw, token=None, buffer=None, query=""):
        self.socket = socket.socket()
        self.socket.settimeout(DEADLINE)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect(("127.0.0.1", gw.control_port))
        field = f"Authorization: Bearer {token}\r\n" if token else ""
        self.socket.sendall(f"GET /v1/events{query} HTTP/1.1\r\nHost: x\r\n{field}\r\n".encode())
        self.file = self.socket.makefile("rb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.file.readline()
        self.head = head.decode()
        assert self.head.startswith("HTTP/1.1 200 ") and "text/event-stream" in self.head, self.head
        self.lines = b""

    def piece(self):
        """Of the chunked body; b"" is its end."""
        size = int(self.file.readline(), 16)
        data = self.file.read(size)
        self.file.readline()
        return data

    def next(self, wanted=None):
        """The next event, or the next of a type; None at the end of the stream."""
        while True:
            while b"\n\n" not in self.lines:
                data = self.piece()
                if not data:
                    return None
                self.lines += data
            block, _, self.lines = self.lines.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if not line.startswith(":"))
            if "data" not in fields:
                continue
            event = json.loads(fields["data"])
            validator(pointer("components", "schemas", "Event")).validate(event)
            assert event["type"] == fields["event"]
            if "id" in fields:
                event["id"] = int(fields["id"])
            if wanted is None or event["type"] == wanted:
                return event

    def close(self):
        with contextlib.suppress(OSError):
            self.file.close()
        self.socket.close()


@pytest.fixture
def listen():
    """Start listeners: listen(gateway) -> Stream."""
    started = []

    def start(gw, **options):
        started.append(Stream(gw, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


# ---- the stream


def test_a_call_is_told(provider, gateway, listen):
    up = provider(hello)
    gw = gateway(one_provider(up.url, [slots(7)]))
    stream = listen(gw)
    answer = gw.call("GET", "/a/x?key=planted-secret", [("Ration-Tenant", "web"), ("traceparent", TRACE)])
    assert answer.status == 200
    event = stream.next()
    assert event["type"] == "call" and event["id"] == 1
    assert event["requestId"] == answer["Ration-Request-Id"]
    assert (event["account"], event["tenant"], event["method"]) == ("a", "web", "GET")
    assert (event["status"], event["outcome"], event["waitedMs"]) == (200, "success", 0)
    assert event["traceparent"] == TRACE
    assert (event["traceId"], event["parentId"]) == tuple(TRACE.split("-")[1:3])
    assert 0 <= event["durationMs"] < 60000 and event["startedAt"] <= event["at"]
    assert "limit" not in event and "planted" not in json.dumps(event)
    # The trace goes on to the provider.
    assert up.requests[-1]["traceparent"] == TRACE


def test_who_waited_tells_for_what(provider, gateway, listen):
    go = threading.Event()

    def slow(_, connection):
        assert go.wait(60)
        connection.reply(200, body=b"x")

    gw = gateway(one_provider(provider(slow).url, [slots(1)]))
    stream = listen(gw)
    with gw.client() as first, gw.client() as second:
        first.ask("GET", "/a/1")
        until(lambda: gw.status()["held"] == 1, "the first holds its slot")
        second.ask("GET", "/a/2")
        until(lambda: gw.status()["waiting"] == 1, "the second waits")
        go.set()
        assert first.answer("GET").status == second.answer("GET").status == 200
    assert "limit" not in stream.next("call")
    event = stream.next("call")
    assert event["limit"] == "slots" and event["waitedMs"] > 0


def test_refusals_penalties_and_circuits_are_told(provider, gateway, listen):
    answers = iter([(429, [("Retry-After", "7200")]), (503, []), (503, [])])

    def failing(_, connection):
        status, fields = next(answers)
        connection.reply(status, fields, b"no")

    limit = {"name": "fast", "kind": "rate", "rate": "1000/s", "burst": 100, "scope": {"by": ["var:id"]}}
    breaker = {"strategy": "consecutive", "threshold": 2, "backoff": {"delay": "1h"}}
    gw = gateway(one_provider(provider(failing).url, [limit], endpoints=["/{id}"], breaker=breaker))
    stream = listen(gw)
    gw.call("GET", "/a/1")
    event = stream.next("penalty")
    assert (event["limit"], event["key"]) == ("fast", "id=1")
    assert event["until"] == pytest.approx(event["at"] + 7_200_000, abs=2000)
    gw.call("GET", "/a/2")
    gw.call("GET", "/a/3")
    event = stream.next("breaker")
    assert (event["state"], event["key"], event["cause"]) == ("open", "a", "2 failures in a row")
    assert gw.call("GET", "/a/4").status == 503
    event = stream.next("refused")
    assert (event["reason"], event["key"], event["account"]) == ("circuit_open", "a", "a")
    assert event["explanation"].startswith("The circuit is open")


def test_a_circuit_is_called_as_in_the_status(provider, gateway, listen):
    up = provider(lambda _, connection: connection.reply(503, body=b"no"))
    breaker = {"strategy": "consecutive", "threshold": 1, "backoff": {"delay": "50ms"}}
    gw = gateway(one_provider(up.url, [slots(1)], breaker=breaker))
    stream = listen(gw)
    gw.call("GET", "/a/1")
    assert [stream.next("breaker")["state"] for _ in range(2)] == ["open", "half-open"]
    assert gw.status()["breakers"][0]["state"] == "half-open"


def test_the_api_tells_too(provider, gateway, listen):
    gw = gateway(one_provider(provider(hello).url, [ONE_A_DAY]))
    stream = listen(gw)
    gw.call("GET", "/a/x")
    with Client(gw.control_port) as client:
        body = b'{"account":"a","tenant":"web"}'
        fields = [("Content-Type", "application/json"), ("traceparent", TRACE)]
        assert client.call("POST", "/v1/acquire", fields, body).status == 429
    event = stream.next("refused")
    assert (event["reason"], event["tenant"], event["traceparent"]) == ("quota_exhausted", "web", TRACE)
    assert (event["traceId"], event["parentId"]) == tuple(TRACE.split("-")[1:3])
    assert [one["tenant"] for one in gw.control("/v1/refusals?tenant=web").json()["refusals"]] == ["web"]


def test_who_wants_some_types_gets_no_others(provider, gateway, listen):
    gw = gateway(one_provider(provider(hello).url, [ONE_A_DAY]))
    some, all_of_them = listen(gw, query="?types=refused,operator"), listen(gw)
    assert gw.call("GET", "/a/x").status == 200
    assert gw.call("GET", "/a/x", {"Ration-Timeout": "0"}).status == 429
    assert Api(gw).post("limits/daily/a/pause", {}).status == 200
    assert [all_of_them.next()["type"] for _ in range(3)] == ["call", "refused", "operator"]
    assert [some.next()["type"] for _ in range(2)] == ["refused", "operator"]
    for query in ("?types=", "?types=call,", "?types=none", "?type=call", "?types=call&types=call"):
        answer = gw.control(f"/v1/events{query}")
        assert (answer.status, answer.json()["field"]) == (400, "types"), query


def test_many_listen(provider, gateway, listen):
    gw = gateway(one_provider(provider(hello).url))
    streams = [listen(gw) for _ in range(64)]
    answer = gw.control("/v1/events")
    assert (answer.status, answer["Content-Type"]) == (503, "application/problem+json")
    gw.call("GET", "/a/x")
    assert {stream.next("call")["id"] for stream in streams} == {1}
    streams[0].close()
    until(lambda: gw.call("GET", "/a/x") and listener_fits(gw), "room for another one")


def listener_fits(gw):
    with contextlib.suppress(AssertionError):
        Stream(gw).close()
        return True
    return False


def test_who_reads_too_slowly_is_told_what_is_missing(provider, gateway, listen):
    """Events that are not read fill the socket, then the queue, then are dropped; the order is kept."""
    gw = gateway(one_provider(provider(hello).url, [ONE_A_DAY]))
    slow = listen(gw, buffer=4096)
    with gw.client() as client:
        for _ in range(100):
            client.send(f"GET /a/x HTTP/1.1\r\nHost: x\r\ntraceparent: {TRACE}\r\n\r\n" * 200)
            for _ in range(200):
                client.answer("GET")
            if gw.metrics()["ration_events_dropped_total"] > 0:
                break
        else:
            pytest.fail("nothing was dropped")
    # Whatever comes is in order, and what is missing is told where it is missing.
    last, dropped = 0, 0
    while (event := slow.next())["type"] != "dropped":
        assert event["id"] == last + 1
        last = event["id"]
    gw.call("GET", "/a/x")
    while event["type"] == "dropped":
        dropped += event["count"]
        event = slow.next()
    assert event["id"] == last + dropped + 1


def test_the_stream_ends_with_the_process(provider, gateway, listen):
    gw = gateway(one_provider(provider(hello).url))
    stream = listen(gw)
    assert gw.stop() == 0
    gw.ended = True
    assert stream.next() is None


def test_the_stream_needs_the_token(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, settings={"token": "planted-secret"}))
    gw.ended = True
    assert gw.control("/v1/events").status == 401
    assert gw.control("/v1/refusals").status == 401
    Stream(gw, token="planted-secret").close()


def test_events_are_for_get(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    for method in ("POST", "HEAD"):
        answer = gw.control("/v1/events", method)
        assert (answer.status, answer["Allow"]) == (405, "GET")


# ---- a while ago


def test_why_was_this_refused(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [ONE_A_DAY]))
    gw.call("GET", "/a/x")
    refused = [gw.call("GET", "/a/x", [("Ration-Tenant", tenant)]) for tenant in ("web", "batch")]
    gw.call("GET", "/nobody/x")
    page = Api(gw).get("refusals").json()
    assert [one["reason"] for one in page["refusals"]] == ["unknown_account", "quota_exhausted", "quota_exhausted"]
    assert (page["kept"], page["forgotten"]) == (3, 0)
    page = Api(gw).get("refusals?tenant=web&limit=daily&most=5").json()
    (one,) = page["refusals"]
    assert one["requestId"] == refused[0]["Ration-Request-Id"]
    assert (one["key"], one["tenant"]) == ("a", "web")
    assert one["explanation"] == refused[0].json()["detail"]
    assert gw.control(f"/v1/refusals?since={one['at'] + 3600_000:.0f}").json()["refusals"] == []


@pytest.mark.parametrize("query, field", [
    ("since=yesterday", "since"), ("tenants=a", "tenants"), ("most=0", "most"), ("key=%4", "key"),
    ("reason=late", "reason"),
])
def test_queries_that_mean_nothing(provider, gateway, query, field):
    gw = gateway(one_provider(provider(hello).url))
    answer = Api(gw).get(f"refusals?{query}")
    assert (answer.status, answer.json()["field"]) == (400, field)
