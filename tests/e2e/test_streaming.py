# SPDX-License-Identifier: MIT
"""Bodies that run: piece by piece, in both directions, and no faster than their reader reads."""

import hashlib
import socket
import threading
import time

from house import one_provider, slots, until


def test_events_arrive_as_they_are_sent(provider, gateway):
    """The provider sends an event only when the client has confirmed the one before."""
    seen = threading.Semaphore(0)

    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(60):
            connection.chunk(f"data: {i}\n\n")
            assert seen.acquire(timeout=30)
        connection.send("0\r\n\r\n")

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    with gw.client() as client:
        client.ask("GET", "/a/events")
        assert client.head()[0] == 200
        for i in range(60):
            assert client.chunk() == b"data: %d\n\n" % i
            seen.release()
        assert client.chunk() == b""


def test_uploads_arrive_as_they_are_sent(provider, gateway):
    pieces = []
    came = threading.Semaphore(0)

    def handler(request, connection):
        for piece in request.pieces():
            pieces.append(piece)
            came.release()
        connection.reply()

    gw = gateway(one_provider(provider(handler).url))
    with gw.client() as client:
        client.send("PUT /a/ HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(30):
            client.send(b"2\r\n%02d\r\n" % i)
            assert came.acquire(timeout=30)
        client.send("0\r\n\r\n")
        assert client.answer().status == 200
    assert b"".join(pieces) == b"".join(b"%02d" % i for i in range(30))


def test_continue_is_said_when_the_lease_is_granted(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        request.body()
        if request.target == "/1":
            assert go.wait(60)
        connection.reply()

    up = provider(handler)
    gw = gateway(one_provider(up.url, [slots(1)]))
    with gw.client() as first, gw.client() as second:
        first.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the first call runs")
        second.send("POST /a/2 HTTP/1.1\r\nHost: g\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
        second.socket.settimeout(0.2)
        try:
            assert second.socket.recv(1) == b"", "no byte before the lease"
            raise AssertionError("closed")
        except socket.timeout:
            second.socket.settimeout(30)
        go.set()
        assert second.file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert second.file.readline() == b"\r\n"
        assert second.send("body").answer().status == 200
        assert first.answer().status == 200
    assert up.requests[1]["Expect"] is None


def test_a_refusal_comes_instead_of_continue(provider, gateway):
    gw = gateway(one_provider(provider(lambda request, connection: connection.reply()).url))
    with gw.client() as client:
        client.send("POST /nobody/ HTTP/1.1\r\nHost: g\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        interim = []
        assert client.answer(interim=interim).status == 404
        assert interim == []


def memory(gw):
    with open(f"/proc/{gw.popen.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


BIG = 200 << 20


def test_a_slow_reader_slows_the_provider(provider, gateway):
    """200 MiB towards a client that does not read: the provider is held up, and the gateway does not grow."""
    sent = []
    piece = bytes(range(256)) * 4096

    def handler(request, connection):
        connection.send(f"HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n")
        for _ in range(BIG // len(piece)):
            connection.send(piece)
            sent.append(len(piece))

    gw = gateway(one_provider(provider(handler).url))
    before = memory(gw)
    with gw.client() as client:
        client.ask("GET", "/a/")
        assert client.head()[0] == 200
        stalled(sent)
        assert sum(sent) < BIG // 2
        assert memory(gw) - before < 32 << 20
        got = hashlib.sha256()
        left = BIG
        while left > 0:
            part = client.file.read1(1 << 20)
            assert part
            got.update(part)
            left -= len(part)
    assert got.digest() == hashlib.sha256(piece * (BIG // len(piece))).digest()


def stalled(sent):
    """Nothing more is sent for a while."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < 0.3:
        if len(sent) != last:
            last, since = len(sent), time.monotonic()
        time.sleep(0.01)


def test_a_slow_provider_slows_the_client(provider, gateway):
    """An upload that the provider does not read yet: the client is held up, and the gateway does not grow."""
    go = threading.Event()
    bodies = []

    def handler(request, connection):
        assert go.wait(60)
        bodies.append(hashlib.sha256(request.body()).digest())
        connection.reply()

    gw = gateway(one_provider(provider(handler).url))
    before = memory(gw)
    piece = bytes(range(256)) * 4096
    sent, digest = [], hashlib.sha256()
    with gw.client() as client:

        def upload():
            client.send(f"POST /a/ HTTP/1.1\r\nHost: g\r\nContent-Length: {BIG}\r\n\r\n")
            for _ in range(BIG // len(piece)):
                client.send(piece)
                digest.update(piece)
                sent.append(len(piece))

        thread = threading.Thread(target=upload, daemon=True)
        thread.start()
        stalled(sent)
        assert sum(sent) < BIG // 2
        assert memory(gw) - before < 32 << 20
        go.set()
        thread.join(60)
        assert client.answer().status == 200
    assert bodies == [digest.digest()]


def test_the_lease_is_held_until_the_response_has_ended(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        assert go.wait(60)
        connection.send("cd")

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    with gw.client() as client:
        client.ask("GET", "/a/")
        assert client.head()[0] == 200
        assert client.file.read(2) == b"ab"
        status = gw.status()
        assert (status["held"], status["exchanges"]["responding"]) == (1, 1)
        go.set()
        assert client.file.read(2) == b"cd"
    gw.until_idle()


def test_a_trickle_is_passed_on(provider, gateway):
    """One byte at a time, head included."""

    def handler(request, connection):
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n":
            connection.send(bytes([byte]))
            time.sleep(0.001)

    gw = gateway(one_provider(provider(handler).url))
    with gw.client() as client:
        for byte in b"GET /a/ HTTP/1.1\r\nHost: g\r\n\r\n":
            client.send(bytes([byte]))
        answer = client.answer()
    assert (answer.body, answer.trailers) == (b"abc", [("X-T", "1")])


def test_many_calls_at_once(provider, gateway):
    """Two hundred streams side by side, each with its own bytes."""

    def handler(request, connection):
        piece = request.target.encode() * 200
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(50):
            connection.chunk(piece)
        connection.send("0\r\n\r\n")

    gw = gateway(one_provider(provider(handler).url))
    answers = {}

    def call(i):
        answers[i] = gw.call("GET", f"/a/{i:04}").body

    threads = [threading.Thread(target=call, args=(i,)) for i in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(answers[i] == f"/{i:04}".encode() * 200 * 50 for i in range(200))
    until(lambda: gw.status()["totals"]["released"] == 200, "all leases are back")
