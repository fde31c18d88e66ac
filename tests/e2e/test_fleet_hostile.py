# SPDX-License-Identifier: MIT
"""A Redis that answers and does not do what it is asked: what becomes of its errors, and that all is well again by
itself, in the gateway that has heard them. The table of docs/guide/fleet.md is this file's.
"""

import contextlib
import pathlib
import re
import socketserver
import threading

import pytest

from house import a_day, one_provider, until
from provider import hello
from redis_house import LOOPBACK
from test_fleet_faults import quota
from test_fleet_serve import NO_WAIT, fleet, redis, slots  # noqa: F401

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "fleet.md"

ERRORS = {  # the first word of the error: what brings it about, and what ends that
    "OOM": ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
    "NOREPLICAS": ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
    "NOPERM": ("ACL SETUSER default -evalsha", "ACL SETUSER default +evalsha"),
}


@pytest.mark.parametrize("word", ERRORS)
def test_an_error_and_its_end(word, provider, fleet, redis):  # noqa: F811
    """Refused as what it is, with the server's words in the status; nothing stays taken, and nothing to be told."""
    begin, end = ERRORS[word]
    server = provider(hello)
    gw = fleet(one_provider(server.url, [quota(99, **a_day()), slots(1)]))
    assert gw.call("GET", "/a/x").status == 200
    assert b"OK" in redis.ask(*begin.split())
    before = len(server.requests)

    def refused():
        answer = gw.call("GET", "/a/x", NO_WAIT)
        assert answer["Ration-Refused"] in (None, "store_unavailable")
        return answer.status == 503

    until(refused, "a refusal")
    assert len(server.requests) - before <= 1
    told = gw.until(lambda s: word in s["fleet"].get("lastError", ""), "the server's words")["fleet"]
    assert (told["state"], told["localLeases"]) == ("up", 0) and told["failed"] > 0
    assert gw.metrics()["ration_fleet_failed_total"] > 0
    gw.line(f"msg=\"the fleet's store did not do what it was asked\".*{word}")
    assert b"OK" in redis.ask(*end.split())
    gw.until(lambda s: s["fleet"]["toldLate"] == 0, "all is told")
    until(lambda: gw.call("GET", "/a/x", NO_WAIT).status == 200, "the slot is free")


class Impostor(socketserver.ThreadingTCPServer):
    """Greets like Redis, and has one answer to all scripts."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, answer):
        super().__init__((LOOPBACK, 0), Impostor.Connection)
        self.said = {b"PING": b"+PONG\r\n", b"EVALSHA": answer,
                     b"SUBSCRIBE": b"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"}
        self.url = f"redis://{LOOPBACK}:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    class Connection(socketserver.StreamRequestHandler):
        def handle(self):
            with contextlib.suppress(ConnectionError):
                while line := self.rfile.readline():
                    words = []
                    for _ in range(int(line[1:])):
                        words.append(self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2])
                    self.wfile.write(self.server.said[words[0]])


@pytest.mark.parametrize("rest", [
    b":0\r\n:1\r\n*0\r\n*0\r\n*0\r\n", b":0\r\n:1\r\n*0\r\n*1\r\n$5\r\nnewer\r\n*0\r\n",
    b":5\r\n:1\r\n*0\r\n*0\r\n*0\r\n",
], ids=["no reason", "a later reason", "waits for ever"])
def test_answers_without_an_end(rest, provider, gateway):
    """Whatever the store says, a caller has an answer, in a time bounded by its own, and the gateway goes on."""
    with contextlib.closing(Impostor(b"*5\r\n" + rest)) as store:
        gw = gateway(one_provider(provider(hello).url, [slots(1)], settings={"fleet": {"redis": store.url}}))
        gw.until(lambda s: s["fleet"]["state"] == "up", "up")
        for _ in range(2):
            assert gw.call("GET", "/a/x", {"Ration-Timeout": "100ms"})["Ration-Refused"] == "store_unavailable"


def test_the_table_of_errors():
    """The guide has a row for each of these."""
    rows = re.findall(r"^\| `([A-Z]+)`", GUIDE.read_text(), re.MULTILINE)
    assert sorted(ERRORS) == sorted(rows)
