# SPDX-License-Identifier: MIT
"""Every shape of `hostile` through the gateway: what the client gets, and that nobody else gets anything of it.

An honest call goes before each shape, so that the shape comes on a connection that was kept; one goes after it, which
must get its own answer, on another connection unless the shape left the first one in step.
"""

import contextlib
import itertools
import os
import socket
import threading
from random import Random

import pytest
from hostile import BROKEN, CUT, OK, SHAPES, TWO_CHUNKS, head, length
from house import Gateway, one_provider, slots
from provider import Provider

numbers = itertools.count(1)


class Villain:
    """Honest to /honest/…; answers /attack with the bytes it is loaded with."""

    def __init__(self):
        self.released = threading.Event()
        self.load(b"")
        self.provider = Provider(self.handle)

    def load(self, data, later=b"", closes=False, resets=False, bytewise=False):
        self.data, self.later = data, later
        self.closes, self.resets, self.bytewise = closes, resets, bytewise
        self.released.clear()

    def handle(self, request, connection):
        request.body()
        if request.target.startswith("/honest/"):
            connection.reply(200, {"Connection-Number": connection.socket.getpeername()[1]}, request.target)
            return None
        for piece in [self.data[i : i + 1] for i in range(len(self.data))] if self.bytewise else [self.data]:
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.send(piece)
        if self.later:
            self.released.wait(30)
            connection.send(self.later)
        if self.resets:
            reset(connection)
        return False if self.closes or self.resets else None


def reset(connection):
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.file.close()
    connection.socket.close()


@pytest.fixture(scope="module")
def villain():
    one = Villain()
    yield one
    one.provider.close()


@pytest.fixture(scope="module")
def gw(villain, tmp_path_factory):
    config = one_provider(villain.provider.url, [slots(20)], timeouts={"firstByte": "5s", "idle": "5s"})
    one = Gateway(config, tmp_path_factory.mktemp("hostile"))
    yield one
    one.close()


def honest(gw):
    """Its own answer, and the number of the connection it came on."""
    target = f"/honest/{next(numbers)}"
    answer = gw.call("GET", "/a" + target)
    assert (answer.status, answer.body) == (200, target.encode())
    return answer["Connection-Number"]


def outcome(gw, method="GET"):
    """What the client makes of the answer: BROKEN, CUT, or the complete answer."""
    with gw.client() as client:
        client.ask(method, "/a/attack")
        try:
            answer = client.answer(method)
        except (EOFError, ValueError, ConnectionError):
            return CUT
    if answer["Content-Type"] == "application/problem+json":
        assert (answer.status, answer.json()["type"]) == (502, "urn:ration:problem:upstream_broken")
        assert answer.json()["detail"]
        return BROKEN
    return answer


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_shape(gw, villain, shape):
    before = honest(gw)
    villain.load(shape.data, shape.later, shape.closes)
    got = outcome(gw, shape.method)
    if isinstance(shape.want, bytes):
        assert got not in (BROKEN, CUT)
        assert got.body == shape.want
        assert got["Ration-Request-Id"] != "forged"
        assert got["X-Hop"] is None
        assert [name for name, _ in got.trailers] in ([], ["X-Sum"])
    elif shape.want == CUT:
        assert got in (CUT, BROKEN)
    else:
        assert got == shape.want
    if shape.later:
        villain.released.set()
        gw.until(lambda s: s["upstream"]["open"] == 0, "the connection that spoke unasked is closed")
    assert (honest(gw) == before) == shape.kept
    gw.until_idle()


def test_split_at_every_byte(gw, villain):
    for data in (OK, TWO_CHUNKS, head(line=b"HTTP/1.1 103 Early Hints") + TWO_CHUNKS):
        before = honest(gw)
        villain.load(data, bytewise=True)
        got = outcome(gw)
        assert got.body == b"ok"
        assert honest(gw) == before


def mutant(random):
    """Two shapes with a few bytes taken away, doubled or changed."""
    small = [shape.data for shape in SHAPES if len(shape.data) < 600]
    data = bytearray(random.choice([OK, TWO_CHUNKS, random.choice(small)]) + random.choice(small))
    for _ in range(random.randint(1, 2)):
        at = random.randrange(len(data))
        how = random.randrange(3)
        if how == 0:
            del data[at : at + random.randint(1, 8)]
        elif how == 1:
            data[at:at] = data[at : at + random.randint(1, 8)]
        else:
            data[at] = random.randrange(256)
        data = data or bytearray(b"H")
    return bytes(data)


def test_mutants(gw, villain):
    """Whatever is made of the shapes: broken, cut or an answer, and the next call gets its own."""
    random = Random(os.environ.get("MUTANTS_SEED", "1"))
    for _ in range(int(os.environ.get("MUTANTS", "300"))):
        villain.load(mutant(random), closes=random.random() < 0.95)
        with gw.client() as client, contextlib.suppress(OSError):
            client.socket.settimeout(0.03)
            client.ask(random.choice(["GET", "HEAD", "POST"]), "/a/attack", {"Connection": "close"}, b"")
            while client.socket.recv(65536):
                pass
        honest(gw)
    gw.until_idle()


@pytest.mark.parametrize("how", ["closes", "resets"])
def test_closed_after_every_byte(gw, villain, how):
    """Never an answer that looks complete and is not; and from the last byte on, the whole of it."""
    until_close = head() + b"ok"
    for data in (OK, TWO_CHUNKS, until_close):
        body = data.index(b"\r\n\r\n") + 4
        for size in range(len(data) + 1):
            villain.load(data[:size], **{how: True})
            got = outcome(gw)
            if size < body:
                assert got == BROKEN, data[:size]
            elif data is until_close and how == "resets":
                assert got in (CUT, BROKEN), data[:size]
            elif data is until_close:
                assert got.body == data[body:size]
            elif size < len(data):
                assert got in (CUT, BROKEN), data[:size]
            else:
                assert got.body == b"ok"
        honest(gw)
    gw.until_idle()


def test_a_reset_is_no_end(gw, villain):
    """A body that goes until the connection closes is not complete when it breaks, and does not look so to anyone."""
    for version in ("HTTP/1.1", "HTTP/1.0"):
        villain.load(head() + b"half of it", later=b" ", resets=True)
        with gw.client() as client:
            client.send(f"GET /a/attack {version}\r\nHost: g\r\n\r\n")
            assert client.head()[0] == 200
            rest = client.chunk if version == "HTTP/1.1" else client.file.read1
            assert rest() == b"half of it"
            villain.released.set()
            with pytest.raises((EOFError, ConnectionError)):
                while rest():
                    pass
                raise AssertionError("looks complete")
    gw.until_idle()


def test_nobody_gets_the_answer_to_another(gw, villain):
    """Many callers share kept connections with a provider that often answers twice."""
    gw.until_idle()
    poisoned = []

    def handle(request, connection):
        number = int(request.target.rpartition("/")[2])
        body = request.target.encode()
        connection.send((head(length(len(body))) + body) * (1 + (number % 3 == 0)))

    def calls():
        with gw.client() as client:
            for _ in range(150):
                target = f"/honest/{next(numbers)}"
                answer = client.call("GET", "/a" + target)
                if (answer.status, answer.body) != (200, target.encode()):
                    poisoned.append((target, answer.status, answer.body))

    usual, villain.provider.handler = villain.provider.handler, handle
    try:
        threads = [threading.Thread(target=calls) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        villain.provider.handler = usual
    assert poisoned == []
    gw.until_idle()


def test_an_answer_that_never_ends_is_bounded_by_the_client(gw, villain):
    """A head that trickles is no reason to hold a lease once the client has gone."""
    villain.load(b"HTTP/1.1 200 OK\r\nX: ", later=b"x")
    with gw.client() as client:
        client.ask("GET", "/a/attack")
        gw.until(lambda s: s["held"] == 1, "the call runs")
    gw.until_idle()
    villain.released.set()
