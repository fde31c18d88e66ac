# SPDX-License-Identifier: MIT
"""Every shape of `smuggling` through the gateway: what it answers, what the provider gets, and who gets which answer.

One gateway and one provider for all, so that every shape travels over the pooled connections that the ones before it
have used. After each, an honest call on a connection of its own must get its own answer.
"""

import contextlib
import itertools
import json
import os
import socket
from random import Random

import pytest
from house import Client, Gateway, one_provider, slots
from recorder import Recorder
from smuggling import SHAPES, get

KEY = b"s3cret-of-the-account"
honest_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def recorder():
    one = Recorder()
    yield one
    one.close()


def gateway_to(recorder, directory):
    account = {"credential": {"header": "X-Key", "value": KEY.decode()}}
    return Gateway(one_provider(recorder.url, [slots(100)], account=account), directory)


@pytest.fixture(scope="module")
def gw(recorder, tmp_path_factory):
    one = gateway_to(recorder, tmp_path_factory.mktemp("smuggling"))
    yield one
    one.close()


def send(client, shape):
    """A refusal may come, and the connection end, before the last byte is sent."""
    with contextlib.suppress(ConnectionError):
        if shape.slowly:
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in shape.data:
                client.send(bytes([byte]))
        else:
            client.send(shape.data)
        if shape.half_closed:
            client.socket.shutdown(socket.SHUT_WR)


def methods(shape):
    """The methods of what is answered, as far as it matters: the answer to HEAD has no body."""
    return [method for method, _, _ in shape.sent] + ["GET"] * len(shape.answers)


def honest(gw, client):
    """A call like any other. Its answer must be to it."""
    target = f"/honest/{next(honest_numbers)}"
    answer = client.call("POST", "/a" + target, {"X-Mine": "1"}, b"hello")
    assert answer.status == 200, answer.body
    assert answer.json() == {"method": "POST", "target": target, "bytes": 5}
    return target


def read_answers(client, shape):
    answers = [client.answer(method) for method, _ in zip(methods(shape), shape.answers, strict=False)]
    assert tuple(answer.status for answer in answers) == shape.answers, [answer.body for answer in answers]
    for answer, (method, target, body) in zip([a for a in answers if a.status == 200], shape.sent, strict=True):
        if method != "HEAD":
            assert answer.json() == {"method": method, "target": target, "bytes": len(body)}
    return answers


def clean(requests):
    """What the provider may see of the gateway's business: the account's credential, and nothing else."""
    for request in requests:
        assert request.all("x-key") == [KEY]
        assert not [name for name, _ in request.fields if name.startswith("ration-")]
        assert [name for name, _ in request.trailers if name not in ("x", "t")] == []


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if not shape.half_closed], ids=lambda shape: shape.name)
def test_shape(gw, recorder, shape):
    recorder.take()
    targets = []
    with Client(gw.port) as client:
        send(client, shape)
        read_answers(client, shape)
        if shape.closes:
            assert client.is_closed()
        else:
            targets.append(honest(gw, client))
    with gw.client() as client:
        targets.append(honest(gw, client))

    gw.until_idle()
    requests, unfinished = recorder.take()
    assert len(unfinished) <= int(shape.begun)
    seen = [request.what for request in requests]
    assert seen == [*shape.sent, *(("POST", target, b"hello") for target in targets)]
    clean(requests)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.half_closed], ids=lambda shape: shape.name)
def test_half_closed_shape(tmp_path, shape):
    """Nobody waits for the answer any more, so a call of it may reach the provider, late, or not at all: a gateway of
    its own, lest it come into another shape's look."""
    recorder = Recorder()
    with contextlib.closing(recorder), contextlib.closing(gateway_to(recorder, tmp_path)) as gw:
        with Client(gw.port) as client:
            send(client, shape)
            with contextlib.suppress(ConnectionError):  # an answer may be quicker than the news that nobody waits
                client.file.read()
            assert client.is_closed()
        with gw.client() as client:
            target = honest(gw, client)
        gw.until_idle()
        requests, unfinished = recorder.take()
    assert len(unfinished) <= int(shape.begun)
    seen = [request.what for request in requests]
    assert seen.count(("POST", target, b"hello")) == 1
    assert [what for what in seen if what[0] != "POST"] in ([], [("GET", "/x", b"")])
    assert len(seen) <= 2
    clean(requests)


LINES = [b"Content-Length: 3", b"Transfer-Encoding: chunked", b"Connection: close", b"GET /a/z HTTP/1.1", b"0\r\n"]
SPLICES = [line + b"\r\n" for line in LINES] + [bytes([byte]) for byte in b"\r\n \t:,;\0\xff"] + [b"\r\n", b"HTTP/1.1"]


def mutant(random):
    """Two shapes with a few bytes taken away, doubled, changed, or put between."""
    small = [shape for shape in SHAPES if len(shape.data) < 600]
    good = [shape for shape in small if shape.sent and not shape.closes]
    data = bytearray(random.choice(good).data + random.choice(small).data)
    for _ in range(random.randint(1, 2)):
        at = random.randrange(len(data))
        end = at + random.randint(1, 8)
        how = random.randrange(4)
        if how == 0:
            del data[at:end]
        elif how == 1:
            data[at:at] = data[at:end]
        elif how == 2:
            data[at : at + 1] = bytes([random.randrange(256)])
        else:
            data[at:at] = random.choice(SPLICES)
        data = data or bytearray(b"\r\n")
    return bytes(data)


def test_mutants(gw, recorder):
    """Whatever is made of the shapes: the provider reads each request in one way, and nobody gets another's answer."""
    seed = os.environ.get("MUTANTS_SEED", "1")
    random = Random(seed)
    for number in range(int(os.environ.get("MUTANTS", "400"))):
        data = mutant(random)
        with Client(gw.port, 0.03) as client, contextlib.suppress(OSError):
            client.send(data + get(b"/a/last", b"Connection: close"))
            while client.socket.recv(65536):
                pass
        if number % 8 == 0:
            with gw.client() as client:
                honest(gw, client)
        requests, _ = recorder.take()
        for request in requests:
            assert request.all("x-key") == [KEY], (seed, number, data)
    gw.until_idle()


def test_refusals_are_told_in_words(gw):
    """Whoever sends rubbish by mistake learns what is wrong with it."""
    for data, words in (
        (b"GET /a/x HTTP/1.1\r\n\r\n", b"no Host\n"),
        (b"POST /a/x HTTP/1.1\r\nHost: g\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"two ways"),
        (b"POST /a/x HTTP/1.1\r\nHost: g\r\nContent-Length: 9223372036854775808\r\n\r\n", b"Content-Length"),
        (b"\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03", b"no HTTP"),
    ):
        with gw.client() as client:
            answer = client.send(data).answer()
            assert words in answer.body
            assert answer["Connection"] == "close"


def test_the_control_port_is_no_softer(gw):
    """The same listener, other handlers: no shape may be answered with more than one response, or left unanswered."""
    for shape in SHAPES:
        if shape.slowly or shape.half_closed or len(shape.answers) != 1 or shape.answers[0] not in (400, 431, 501, 505):
            continue
        if not shape.closes or shape.begun:
            continue
        with Client(gw.control_port) as client:
            send(client, shape)
            assert client.answer().status == shape.answers[0], shape.name
            assert client.is_closed()
    assert json.loads(gw.control("/v1/status").body)["held"] == 0
