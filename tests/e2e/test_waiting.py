# SPDX-License-Identifier: MIT
"""Waiting for a lease, and clients that do not wait for the end."""

import asyncio
import threading
import time

import pytest
from house import one_provider, slots, until
from provider import hello


class Held:
    """A handler that answers when it is told to."""

    def __init__(self):
        self.go = threading.Event()

    def __call__(self, request, connection):
        request.body()
        assert self.go.wait(60)
        connection.reply(200, {}, "x")


def test_a_waiter_goes_when_a_slot_is_free(provider, gateway):
    held = Held()
    gw = gateway(one_provider(provider(held).url, [slots(1)]))
    with gw.client() as first, gw.client() as second:
        first.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        second.ask("GET", "/a/2")
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
        held.go.set()
        assert first.answer().status == 200
        answer = second.answer()
        assert answer.status == 200
        assert float(answer["Ration-Waited"]) > 0


def test_a_waiter_goes_when_its_token_comes(provider, gateway):
    limit = {"name": "rate", "kind": "rate", "rate": "1/s", "burst": 1, "margin": 0, "scope": {"by": ["account"]}}
    gw = gateway(one_provider(provider(hello).url, [limit]))
    with gw.client() as client:
        assert client.call("GET", "/a/")["Ration-Waited"] == "0"
        began = time.monotonic()
        waited = float(client.call("GET", "/a/")["Ration-Waited"])
        took = (time.monotonic() - began) * 1000
    assert 0 < waited <= 1000 and waited - 1 <= took


def test_deadline(provider, gateway):
    held = Held()
    gw = gateway(one_provider(provider(held).url, [slots(1)]))
    with gw.client() as first, gw.client() as second:
        first.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        answer = second.call("GET", "/a/2", {"Ration-Timeout": "50ms"})
        assert (answer.status, answer["Ration-Refused"]) == (429, "deadline")
        assert answer["Ration-Waited"] == "50" or float(answer["Ration-Waited"]) >= 50
        assert answer.json()["limit"] == "slots"
        held.go.set()
        assert first.answer().status == 200


def test_the_wait_of_the_config_is_the_default(provider, gateway):
    held = Held()
    config = one_provider(provider(held).url, [slots(1)], settings={"queue": {"wait": "20ms"}})
    gw = gateway(config)
    with gw.client() as first:
        first.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        assert gw.call("GET", "/a/2")["Ration-Refused"] == "deadline"
        held.go.set()
        assert first.answer().status == 200


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_client_that_leaves_while_it_waits(provider, gateway, end):
    held = Held()
    up = provider(held)
    gw = gateway(one_provider(up.url, [slots(1)]))
    with gw.client() as first:
        first.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        second = gw.client().ask("POST", "/a/2", {}, b"x" * 1000)
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
        getattr(second, end)()
        status = gw.until(lambda s: s["waiting"] == 0, "its waiter is gone")
        assert status["totals"]["cancelled"] == 1
        assert status["totals"]["clientsGoneWaiting"] == 1
        held.go.set()
        assert first.answer().status == 200
    assert len(up.requests) == 1


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_client_that_leaves_before_the_response(provider, gateway, end):
    gone = threading.Event()

    def handler(request, connection):
        connection.closed()
        gone.set()
        return False

    up = provider(handler)
    gw = gateway(one_provider(up.url, [slots(1)]))
    client = gw.client().ask("GET", "/a/")
    until(lambda: up.requests, "the call runs")
    getattr(client, end)()
    gw.until_idle()
    assert gone.wait(30), "the provider is told, too"


def test_a_client_that_leaves_at_once(provider, gateway):
    """Before there is a connection to the provider, and before its request is complete."""
    gw = gateway(one_provider(provider(hello).url, [slots(1)]))
    for data in (b"GET /a/ HTTP/1.1\r\nHost: g\r\n\r\n", b"GET /a/ HTTP/1.1\r\n", b"", b"POST /a/ HTTP/1.1\r\nHo"):
        for end in ("close", "reset"):
            getattr(gw.client().send(data), end)()
    gw.until_idle()
    until(lambda: gw.status()["connections"]["open"] == 0, "all connections are closed")


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_client_that_leaves_amid_the_response(provider, gateway, end):
    gone = threading.Event()

    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                connection.chunk("x" * 10000)
        except OSError:
            gone.set()
        return False

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    client = gw.client().ask("GET", "/a/")
    assert client.head()[0] == 200
    client.chunk()
    getattr(client, end)()
    gw.until_idle()
    assert gone.wait(30)
    assert gw.status()["totals"]["clientsGoneRunning"] == 1


def test_a_client_that_leaves_amid_its_body(provider, gateway):
    up = provider(hello)
    gw = gateway(one_provider(up.url, [slots(1)]))
    client = gw.client().send("POST /a/ HTTP/1.1\r\nHost: g\r\nContent-Length: 1000\r\n\r\nonly this")
    gw.until(lambda s: s["held"] == 1, "the call runs")
    client.close()
    gw.until_idle()


def test_leaving_makes_room_at_once(provider, gateway):
    held = Held()
    gw = gateway(one_provider(provider(held).url, [slots(1)]))
    first = gw.client().ask("GET", "/a/1")
    gw.until(lambda s: s["held"] == 1, "the first call runs")
    with gw.client() as second:
        second.ask("GET", "/a/2")
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
        first.close()
        gw.until(lambda s: s["waiting"] == 0 and s["held"] == 1, "the second one runs")
        held.go.set()
        assert second.answer().status == 200


async def ask_and_hold(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /a/%d HTTP/1.1\r\nHost: g\r\nRation-Timeout: 60s\r\n\r\n" % number)
    await writer.drain()
    return reader, writer


async def answer_of(pair):
    reader, writer = pair
    line = await reader.readline()
    writer.close()
    return line


WAITERS = 5000


def test_five_thousand_waiters(provider, gateway):
    """They wait, half of them leave, the rest is served."""
    held = Held()
    up = provider(held)
    gw = gateway(one_provider(up.url, [slots(20)]))

    async def run():
        pairs = []
        for at in range(0, WAITERS, 250):
            pairs += await asyncio.gather(*(ask_and_hold(gw.port, at + i) for i in range(250)))
        await asyncio.to_thread(
            gw.until, lambda s: s["held"] == 20 and s["waiting"] == WAITERS - 20, "all of them wait", 60
        )
        leavers, stayers = pairs[20::2], pairs[:20] + pairs[21::2]
        for _, writer in leavers:
            writer.close()
        await asyncio.to_thread(
            gw.until, lambda s: s["waiting"] == WAITERS - 20 - len(leavers), "those who left are gone", 60
        )
        held.go.set()
        lines = await asyncio.gather(*(answer_of(pair) for pair in stayers))
        assert set(lines) == {b"HTTP/1.1 200 OK\r\n"} or set(lines) == {b"HTTP/1.1 200 Fine\r\n"}
        return len(stayers)

    served = asyncio.run(run())
    gw.until_idle()
    assert len(up.requests) == served
    until(lambda: gw.status()["connections"]["open"] == 0, "all connections are closed")


def test_priorities_order_those_who_wait(provider, gateway):
    held = Held()
    up = provider(held)
    gw = gateway(one_provider(up.url, [slots(1)]))
    clients = [gw.client() for _ in range(4)]
    clients[0].ask("GET", "/a/first")
    gw.until(lambda s: s["held"] == 1, "the first call runs")
    for waiting, (client, priority) in enumerate(zip(clients[1:], ("low", "normal", "critical")), 1):
        client.ask("GET", f"/a/{priority}", {"Ration-Priority": priority})
        gw.until(lambda s, n=waiting: s["waiting"] == n, "it waits")
    held.go.set()
    for client in clients:
        assert client.answer().status == 200
        client.close()
    assert [request.target for request in up.requests] == ["/first", "/critical", "/normal", "/low"]
