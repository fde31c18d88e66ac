# SPDX-License-Identifier: MIT
"""Providers that break: what the client gets, and that the lease goes back."""

import contextlib
import socket
import threading

import pytest
from house import free_port, one_provider, slots
from provider import hello, server_context


def broken(answer, status, kind):
    assert answer.status == status, answer.body
    assert answer["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:ration:problem:{kind}"
    assert problem["detail"]
    assert problem["account"] == "a"
    assert problem["requestId"] == answer["Ration-Request-Id"]
    return problem["detail"]


def test_refused(gateway):
    gw = gateway(one_provider(f"http://127.0.0.1:{free_port()}", [slots(1)]))
    with gw.client() as client:
        for _ in range(2):
            broken(client.call("GET", "/a/"), 502, "upstream_connect")
    gw.until_idle()
    assert gw.metrics()['ration_upstream_errors_total{kind="upstream_connect"}'] == 2


def test_a_name_that_does_not_exist(gateway):
    gw = gateway(one_provider("http://no-such-host.invalid", [slots(1)]))
    assert "no-such-host.invalid" in broken(gw.call("GET", "/a/"), 502, "upstream_connect")


def test_refused_with_a_body_on_its_way(gateway):
    gw = gateway(one_provider(f"http://127.0.0.1:{free_port()}", [slots(1)]))
    with gw.client() as client:
        client.send("POST /a/ HTTP/1.1\r\nHost: g\r\nContent-Length: 100000\r\n\r\n" + "x" * 1000)
        broken(client.answer(), 502, "upstream_connect")
    gw.until_idle()


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"rubbish\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_no_http(provider, gateway, reply):
    def handler(request, connection):
        connection.send(reply)
        return False

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    broken(gw.call("GET", "/a/"), 502, "upstream_broken")
    gw.until_idle()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot all",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
    ],
)
def test_a_body_that_breaks_off_does_not_look_complete(provider, gateway, reply):
    def handler(request, connection):
        connection.send(reply)
        return False

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    with gw.client() as client:
        with pytest.raises((EOFError, ValueError, ConnectionError)):
            answer = client.call("GET", "/a/")
            raise AssertionError(f"looks complete: {answer.body}")
    gw.until_idle()
    assert gw.status()["totals"]["upstreamErrors"] == {"upstream_broken": 1}


def test_no_first_byte(provider, gateway):
    up = provider(lambda request, connection: connection.closed())
    gw = gateway(one_provider(up.url, [slots(1)], timeouts={"firstByte": "100ms"}))
    broken(gw.call("GET", "/a/"), 504, "upstream_timeout")
    gw.until_idle()


def test_silence_amid_the_body(provider, gateway):
    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        connection.closed()

    gw = gateway(one_provider(provider(handler).url, [slots(1)], timeouts={"idle": "100ms"}))
    with gw.client() as client:
        client.ask("GET", "/a/")
        assert client.head()[0] == 200
        assert client.file.read(3) == b"abc"
        assert client.is_closed()
    gw.until_idle()
    assert gw.status()["totals"]["upstreamErrors"] == {"upstream_timeout": 1}


def test_a_host_that_does_not_answer(gateway):
    """A listener whose queue is full drops what comes: the connection is never made."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        gw = gateway(one_provider(f"http://127.0.0.1:{port}", [slots(1)], timeouts={"connect": "200ms"}))
        broken(gw.call("GET", "/a/"), 504, "upstream_timeout")
        gw.until_idle()
        for filler in fillers:
            filler.close()


def test_half_closed(provider, gateway):
    """The provider says that it will send no more, then does not close."""

    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        connection.socket.shutdown(socket.SHUT_WR)
        connection.closed()

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    with gw.client() as client:
        client.ask("GET", "/a/")
        assert client.head()[0] == 200
        assert client.file.read(3) == b"abc"
        assert client.is_closed()
    gw.until_idle()


def test_failures_count_as_failures_and_are_passed_on(provider, gateway):
    up = provider(lambda request, connection: connection.reply(503, {"Retry-After": "7"}, "down"))
    gw = gateway(one_provider(up.url, [slots(1)]))
    answer = gw.call("GET", "/a/")
    assert (answer.status, answer["Retry-After"], answer.body) == (503, "7", b"down")
    assert answer["Ration-Refused"] is None


# ---- TLS


def test_tls(provider, gateway, ca):
    up = provider(hello, tls=server_context(ca))
    gw = gateway(one_provider(up.url, [slots(1)], tls={"ca": str(ca / "ca.pem")}))
    with gw.client() as client:
        for _ in range(3):
            assert client.call("POST", "/a/", {}, b"x" * 100000).body == b"hello\n"
    assert up.connections == 1


def test_tls_with_an_unknown_ca(provider, gateway, ca):
    up = provider(hello, tls=server_context(ca))
    gw = gateway(one_provider(up.url, [slots(1)], retries=2))
    assert "certificate" in broken(gw.call("GET", "/a/"), 502, "upstream_tls")
    assert up.requests == []
    assert gw.status()["totals"]["retries"] == 0, "a certificate does not change by being asked for again"
    gw.until_idle()


def test_tls_with_another_name(provider, gateway, ca):
    up = provider(hello, tls=server_context(ca, "other"))
    gw = gateway(one_provider(up.url, [slots(1)], tls={"ca": str(ca / "ca.pem")}))
    assert "certificate" in broken(gw.call("GET", "/a/"), 502, "upstream_tls")
    assert up.requests == []


def test_tls_towards_a_plain_server(gateway, ca):
    def answer():
        # All is read before the end, or that would be a reset, which takes the answer with it.
        sock, _ = listener.accept()
        sock.recv(65536)
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while sock.recv(65536):
                pass
        sock.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, daemon=True).start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        gw = gateway(one_provider(url, [slots(1)], tls={"ca": str(ca / "ca.pem")}))
        broken(gw.call("GET", "/a/"), 502, "upstream_tls")
        gw.until_idle()


def test_plain_towards_a_tls_server(provider, gateway, ca):
    up = provider(hello, tls=server_context(ca))
    gw = gateway(one_provider(up.url.replace("https:", "http:"), [slots(1)]))
    broken(gw.call("GET", "/a/"), 502, "upstream_broken")
    gw.until_idle()


def test_a_handshake_that_never_ends(gateway):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted = []
        threading.Thread(target=lambda: accepted.append(listener.accept()), daemon=True).start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        gw = gateway(one_provider(url, [slots(1)], timeouts={"connect": "200ms"}))
        broken(gw.call("GET", "/a/"), 504, "upstream_timeout")
        gw.until_idle()
        for sock, _ in accepted:
            sock.close()
