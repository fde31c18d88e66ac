# SPDX-License-Identifier: MIT
"""Clients that are too slow, of each kind, at a gateway that has little patience: told, let go, and nothing is held."""

import socket
import threading

import pytest
from house import Client, one_provider, slots
from provider import hello
from test_reload import reload

LONG = "1h"
PATIENT = {"head": LONG, "idle": LONG, "body": LONG, "write": LONG}


def impatient(kind, **more):
    """Whoever asks for the status has these times, too: a second to send a head, and from one request to the next."""
    return {"settings": {"timeouts": {**PATIENT, kind: "1s" if kind in ("head", "idle") else "300ms"}}, **more}


def closed(client):
    """The gateway has ended the connection, by itself."""
    try:
        return client.socket.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.fixture(params=["gateway", "control"])
def port(request):
    return lambda gw: gw.port if request.param == "gateway" else gw.control_port


def test_a_slow_head(provider, gateway, port):
    gw = gateway(one_provider(provider(hello).url, [slots(1)], **impatient("head")))
    with Client(port(gw)) as client:
        client.send("GET /a/x HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert client.answer().status == 408
        assert closed(client)
    assert gw.status()["held"] == 0


def test_a_connection_without_requests(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [slots(1)], **impatient("idle")))
    with gw.client() as client:
        assert client.call("GET", "/a/x").status == 200
        assert closed(client)


@pytest.mark.parametrize("framing", ["Content-Length: 9\r\n\r\nhel", "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"],
                         ids=["length", "chunked"])
def test_a_slow_body(provider, gateway, framing):
    """The call had its slot and was on its way; it is broken off, and the slot is free."""

    def handler(request, connection):
        request.body()
        connection.reply(200)

    up = provider(handler)
    gw = gateway(one_provider(up.url, [slots(1)], **impatient("body")))
    with gw.client() as client:
        client.send("POST /a/x HTTP/1.1\r\nHost: x\r\n" + framing)
        assert client.answer().status == 408
        assert closed(client)
    gw.until_idle()
    assert gw.call("GET", "/a/y").status == 200


def test_a_slow_body_that_is_read_for_an_estimate(provider, gateway):
    """It holds nothing but its body, and never comes to a decision."""
    up = provider(hello)
    estimate = {"pointer": "/n", "default": 1}
    gw = gateway(one_provider(up.url, [slots(1)], estimate=estimate, **impatient("body")))
    with gw.client() as client:
        client.send("POST /a/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert client.answer().status == 408
        assert closed(client)
    assert gw.status()["totals"]["submitted"] == 0
    assert not up.requests


def test_a_slow_reader(provider, gateway):
    """An answer without an end, of which the client takes nothing: the provider's connection is let go too."""
    gone = threading.Event()

    def endless(_, connection):
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                connection.chunk("x" * 65536)
        except OSError:
            gone.set()
        return False

    gw = gateway(one_provider(provider(endless).url, [slots(1)], **impatient("write")))
    with gw.client() as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.ask("GET", "/a/x")
        gw.until(lambda status: status["totals"]["clientsGoneRunning"] == 1, "it is let go")
    assert gone.wait(30)
    gw.until_idle()


def test_who_waits_for_its_turn_is_not_slow(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        assert request.target != "/first" or go.wait(30)
        connection.reply(200, body=b"fine")

    timeouts = {"head": "1s", "idle": "1s", "body": "50ms", "write": "50ms"}
    gw = gateway(one_provider(provider(handler).url, [slots(1)], settings={"timeouts": timeouts}))
    with gw.client() as first:
        first.ask("GET", "/a/first")
        gw.until(lambda status: status["held"] == 1, "the first holds the slot")
        second = gw.client().ask("GET", "/a/second")
        began = gw.until(lambda status: status["waiting"] == 1, "the second waits")["now"]
        gw.until(lambda status: status["waiting"] == 1 and status["now"] > began + 1200, "for longer than any of these")
        go.set()
        assert first.answer("GET").status == second.answer("GET").status == 200
        second.close()


def test_patience_changes_with_the_config(provider, gateway):
    """Also with those who are waited for already, at both listeners."""
    config = one_provider(provider(hello).url, [slots(1)], settings={"timeouts": PATIENT})
    gw = gateway(config)
    with gw.client() as client, Client(gw.control_port) as other:
        assert client.call("GET", "/a/x").status == other.call("GET", "/healthz").status == 200
        config["settings"]["timeouts"] = {**PATIENT, "idle": "1s"}
        assert reload(gw, config).status == 200
        assert closed(client) and closed(other)
