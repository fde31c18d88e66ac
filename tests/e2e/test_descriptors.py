# SPDX-License-Identifier: MIT
"""A gateway that may open no more descriptors, at any moment: it says so or waits, and all comes back."""

import contextlib
import os
import resource
import threading

import pytest
from house import Client, one_provider, slots, until
from provider import hello
from smuggling import SHAPES


def descriptors(gw):
    return len(os.listdir(f"/proc/{gw.popen.pid}/fd"))


def cpu_seconds(gw):
    with open(f"/proc/{gw.popen.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def at_most(gw, count):
    """Beyond `count` descriptors the kernel says no."""
    usual = resource.prlimit(gw.popen.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(gw.popen.pid, resource.RLIMIT_NOFILE, (count, usual[1]))
    try:
        yield
    finally:
        resource.prlimit(gw.popen.pid, resource.RLIMIT_NOFILE, usual)


def quiet(gw):
    """What is open when nothing runs and nothing is kept. The status came over a connection that is closing yet."""
    gw.until_idle()
    gw.until(lambda s: s["connections"]["open"] == 0, "no client is left")
    counts = []

    def settled():
        counts.append(descriptors(gw))
        return len(counts) >= 10 and len(set(counts[-10:])) == 1

    until(settled, "the last connection is closed")
    return counts[-1]


def test_none_for_the_provider(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [slots(1)]))
    before = quiet(gw)
    for more in range(1, 8):
        with gw.client() as client:
            gw.until(lambda s: s["connections"]["open"] == 1, "the client is in")
            with at_most(gw, before + more):
                answer = client.call("GET", "/a/", {"Connection": "close"})
            assert answer.status in (200, 502), answer.body
            if answer.status == 502:
                assert answer.json()["type"] == "urn:ration:problem:upstream_connect"
                assert answer.json()["detail"]
            else:
                break
        assert quiet(gw) == before
    assert answer.status == 200, "seven are enough for one connection"
    assert gw.metrics()['ration_upstream_errors_total{kind="upstream_connect"}'] >= 1


def test_none_for_a_client(provider, gateway):
    """Accepting pauses, without spinning, and goes on when there is room."""
    gw = gateway(one_provider(provider(hello).url, [slots(1)]))
    before = quiet(gw)
    with at_most(gw, before):
        with gw.client() as client:
            client.ask("GET", "/a/")
            spent = cpu_seconds(gw)
            client.socket.settimeout(1)
            with pytest.raises(TimeoutError):
                client.socket.recv(1)
            assert cpu_seconds(gw) - spent < 0.5
    assert gw.call("GET", "/a/").status == 200
    assert gw.status()["connections"]["turnedAway"] >= 1


@pytest.mark.parametrize("room", [1, 2, 3, 5, 8, 13, 21])
def test_a_storm_in_little_room(provider, gateway, room):
    up = provider(hello)
    gw = gateway(one_provider(up.url, [slots(4)]))
    before = quiet(gw)
    statuses = []

    def call():
        with contextlib.suppress(EOFError, OSError):
            with Client(gw.port, 10) as client:
                statuses.append(client.call("POST", "/a/", {}, b"x" * 1000).status)

    with at_most(gw, before + room):
        threads = [threading.Thread(target=call) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(statuses) <= {200, 502, 503}
    until(lambda: gw.call("GET", "/a/").status == 200, "it serves again")
    gw.until_idle()
    # What is kept for the provider may stay; nothing else does.
    gw.until(lambda s: descriptors(gw) <= before + s["upstream"]["open"] + 1, "nothing leaks")


def test_malformed_requests_leave_nothing_open(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [slots(4)]))
    gw.call("GET", "/a/")
    before = quiet(gw)
    for shape in SHAPES:
        if len(shape.data) > 2000:
            continue
        with gw.client() as client, contextlib.suppress(OSError):
            client.send(shape.data)
            if len(shape.name) % 2:
                client.reset()
    gw.until(lambda s: descriptors(gw) <= before + s["upstream"]["open"] + 1, "nothing leaks")
