# SPDX-License-Identifier: MIT
"""A fleet's store and everything that can be wrong with a Redis: each call is answered once, in time, by its own
answer or by words that say what happened; and what can heal heals by itself.
"""

import contextlib
import os
import socket
import subprocess
import threading

import pytest

from house import RATION, ROOT, free_port, until
from redis_house import LOOPBACK, Certificates, Client, Cluster, Proxy, Redis, Sentinel, has_tls, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no {missing()}")
PATIENT = {"connect_ms": 20000, "command_ms": 20000}
CLOSED = "the connection was closed"


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis")) as one:
        yield one


@pytest.fixture
def proxy(redis):
    with contextlib.closing(Proxy(redis.port)) as one:
        yield one


@pytest.fixture(autouse=True)
def empty(request):
    if "redis" in request.fixturenames or "proxy" in request.fixturenames:
        request.getfixturevalue("redis").ask("FLUSHALL")


class Scripted:
    """Takes connections, says PONG to a PING, and to anything else what is next in a list; the last for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0
        self.listener = socket.create_server((LOOPBACK, 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"redis://{LOOPBACK}:{self.port}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def words(file):
        count = int(file.readline()[1:])
        words = []
        for _ in range(count):
            size = int(file.readline()[1:])
            words.append(file.read(size + 2)[:-2])
        return words

    def serve(self, near):
        with near, near.makefile("rb") as file, contextlib.suppress(OSError, ValueError):
            while words := self.words(file):
                if words == [b"PING"]:
                    near.sendall(b"+PONG\r\n")
                    continue
                self.asked += 1
                near.sendall(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


# ---- calls


@pytest.mark.parametrize("way", ["tcp", "unix"])
def test_calls_of_a_turn_go_out_together(redis, way):
    with Client(redis.url if way == "tcp" else f"unix:{redis.path}", **PATIENT).until_up() as client:
        before = client.stats()
        client.tell("many 100 n INCR x")
        assert client.heard("n", 100) == [f"ok {i}" for i in range(1, 101)]
        after = client.stats()
    assert after["writes"] - before["writes"] == 1
    assert after["calls"] == 100 and after["failures"] == after["outstanding"] == 0


def test_calls_wait_for_the_first_connection(redis):
    with Client(redis.url, **PATIENT) as client:
        client.tell("do a SET x 1", "do b GET x", "do c GET nothing", "do d HGET x y")
        assert client.heard("b") == ["ok 1"] and client.heard("c") == ["ok nil"]
        assert client.heard("d")[0].startswith("io WRONGTYPE")


def test_more_calls_than_the_bound(redis):
    with Client(redis.url, max_calls=3, **PATIENT).until_up() as client:
        client.tell("many 5 n INCR x")
        assert sorted(client.heard("n", 5)) == ["full", "full", "ok 1", "ok 2", "ok 3"]
        assert client.ask("INCR", "x") == "ok 4"


def test_what_is_outstanding_is_answered_before_the_end(proxy):
    with Client(proxy.url, **PATIENT).until_up() as client:
        proxy.mute()
        client.tell("many 3 n INCR x", "close")
        assert client.heard("n", 3) == ["io the store was closed"] * 3
        assert client.heard("closed") == [""]
        proxy.unmute()


def test_a_loop_that_was_busy_before_it_sent_takes_nothing_for_late(redis):
    with Client(redis.url, connect_ms=20000, command_ms=100).until_up() as client:
        def answered():
            tag = f"t{len(client.lines)}"
            client.tell(f"do {tag} GET nothing", "stall 300")
            return client.heard(tag) == ["ok nil"]

        until(answered, "an answer in time")


def test_a_loop_that_was_busy_when_the_answer_came_takes_nothing_for_late(redis):
    with Client(redis.url, connect_ms=20000, command_ms=100).until_up() as client:
        def answered():
            tag = f"t{len(client.lines)}"
            naps = client.lines.count("napping")
            redis.pause()
            try:
                client.tell(f"do {tag} GET nothing", "nap 400")
                until(lambda: client.lines.count("napping") > naps, "a nap")
            finally:
                redis.go_on()
            return client.heard(tag) == ["ok nil"]

        until(answered, "an answer that came in time")


# ---- scripts


def test_a_script_is_loaded_when_it_is_not_known(redis):
    redis.ask("SCRIPT", "FLUSH")
    with Client(redis.url, **PATIENT).until_up() as client:
        client.tell("admit a i", "admit b i", "admit c j")
        assert client.heard("a") + client.heard("b") + client.heard("c") == ["ok granted", "ok granted", "ok refused"]
        assert client.stats()["loads"] == 1
        assert b"OK" in redis.ask("SCRIPT", "FLUSH")
        assert client.admit("i") == "ok granted"
        stats = client.stats()
    assert stats["loads"] == 2 and stats["failures"] == 0


def test_who_may_not_load_a_script_hears_of_it(redis):
    redis.ask("SCRIPT", "FLUSH")
    redis.ask("ACL", "SETUSER", "runner", "on", ">x", "~*", "&*", "+@all", "-script")
    with Client(redis.url, user="runner", password="x", **PATIENT).until_up() as client:
        assert "SCRIPT LOAD: NOPERM" in client.admit("i")


# ---- what goes wrong on the way


def test_a_server_that_dies_and_comes_back(tmp_path):
    with Redis(tmp_path) as mortal, Client(mortal.url, **PATIENT).until_up() as client:
        assert client.ask("SET", "x", "1") == "ok OK"
        mortal.kill()
        client.until_down()
        refused = f"{LOOPBACK}:{mortal.port}: Connection refused"
        until(lambda: client.ask("GET", "x") == f"io {refused}" and client.state()[0] == "down", refused)
        mortal.start()
        client.until_up()
        assert client.ask("SET", "x", "2") == "ok OK"


def test_a_server_that_is_not_there_yet(tmp_path):
    port = free_port()
    with Client(f"redis://{LOOPBACK}:{port}", **PATIENT) as client:
        assert client.until_down() == f"{LOOPBACK}:{port}: Connection refused"
        with Redis(tmp_path, port=port):
            client.until_up()


def test_a_partition_and_its_end(proxy):
    """Bytes go nowhere: the first call waits for its time-out, and those after it do not wait at all."""
    late = f"{LOOPBACK}:{proxy.port}: no answer within 250 ms"
    with Client(proxy.url).until_up() as client:
        until(lambda: client.ask("SET", "x", "1") == "ok OK", "a call")
        proxy.mute()
        until(lambda: client.ask("GET", "x") == f"io {late}", "a call that is not answered")
        until(lambda: client.state() == ("down", late), "a connection on which nothing is said")
        before = client.stats()["timeouts"]
        assert before >= 1
        assert client.ask("GET", "x") == f"io {late}"
        assert client.stats()["timeouts"] == before
        proxy.unmute()
        until(lambda: client.ask("GET", "x") == "ok 1", "an answer again")


def test_a_listener_that_accepts_nobody():
    with socket.create_server((LOOPBACK, 0), backlog=0) as full:
        port = full.getsockname()[1]
        others = []
        for _ in range(3):
            other = socket.socket()
            other.setblocking(False)
            other.connect_ex((LOOPBACK, port))
            others.append(other)
        with Client(f"redis://{LOOPBACK}:{port}") as client:
            assert client.until_down() == f"{LOOPBACK}:{port}: no connection within 250 ms"
        for other in others:
            other.close()


def test_a_late_answer_is_nobodys(redis):
    """The server is held up for longer than the time-out: what it says then to the first call is not for the second."""
    redis.ask("MSET", "x", "old", "y", "new")
    with Client(redis.url).until_up() as client:
        until(lambda: client.ask("GET", "x") == "ok old", "an answer")
        redis.pause()
        try:
            client.tell("do a GET x")
            assert "no answer within 250 ms" in client.heard("a")[0]
        finally:
            redis.go_on()
        answer = until(lambda: next(iter(a for a in [client.ask("GET", "y")] if a.startswith("ok")), None), "an answer")
        assert answer == "ok new"


def test_an_answer_lost_after_execution(proxy, redis):
    with Client(proxy.url, **PATIENT).until_up() as client:
        proxy.deaf_after(0)
        assert client.ask("INCR", "n") == f"io {LOOPBACK}:{proxy.port}: {CLOSED}"
        assert redis.get("n") == "1"


def test_an_admission_repeated_after_a_lost_answer_counts_once(proxy):
    with Client(proxy.url, **PATIENT).until_up() as client:
        assert client.admit("warm") == "ok granted"
        proxy.deaf_after(0)
        assert client.admit("warm").endswith(CLOSED)
        client.until_up()
        assert client.admit("warm") == "ok granted"
        assert client.admit("other") == "ok refused"


@pytest.mark.parametrize("count", [1, 5, 90])
def test_an_answer_that_is_cut(proxy, redis, count):
    redis.ask("SET", "x", "v" * 100)
    with Client(proxy.url, **PATIENT).until_up() as client:
        assert client.ask("GET", "nothing") == "ok nil"
        proxy.deaf_after(count)
        assert client.ask("GET", "x") == f"io {LOOPBACK}:{proxy.port}: {CLOSED}"
        # It waits for the next connection, which is made at once.
        assert client.ask("GET", "x") == "ok " + "v" * 100


def test_a_connection_that_breaks_while_idle(proxy):
    with Client(proxy.url, **PATIENT).until_up() as client:
        assert client.ask("SET", "x", "1") == "ok OK"
        proxy.cut()
        until(lambda: proxy.taken == 2, "a new connection")
        client.until_up()
        assert client.ask("GET", "x") == "ok 1"


@pytest.mark.parametrize("words, told", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", 'an answer that is not Redis\': Protocol error, got "H" as reply type byte'),
    (b"\0\0\0\0", "an answer that is not Redis': Protocol error, got \"\\x00\" as reply type byte"),
    (b":12x\r\n", "an answer that is not Redis': "),
    (b"$-7\r\n", "an answer that is not Redis': "),
    (b"*1000000000\r\n", "an answer that is not Redis': too many parts"),
    (b"*65537\r\n", "an answer that is not Redis': too many parts"),
    (b"*1\r\n" * 12, "an answer that is not Redis': "),
    (b"$9000000\r\n" + b"x" * 9000000, "an answer that is not Redis': more than 8 MiB"),
    (b"+PONG\r\n+PONG\r\n", "an answer that nobody has asked for"),
    (b"-ERR max number of clients reached\r\n", "ERR max number of clients reached"),
], ids=["http", "zeros", "number", "length", "array", "array just over", "depth", "long", "unasked", "full"])
def test_answers_that_are_none(words, told):
    proxy = Proxy(1)
    proxy.words = words
    with contextlib.closing(proxy), Client(proxy.url, connect_ms=20000) as client:
        until(lambda: any(f"{LOOPBACK}:{proxy.port}: {told}" in line for line in client.lines), told)


# ---- servers that are not ready


@pytest.mark.parametrize("error", [
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-BUSY Redis is busy running a script\r\n",
    b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    b"-CLUSTERDOWN The cluster is down\r\n",
    b"-READONLY You can't write against a read only replica.\r\n",
    b"-MASTERDOWN Link with MASTER is down\r\n",
    b"-ERR Error running script: @user_script:1: -READONLY You can't write against a read only replica.\r\n",
], ids=lambda error: error[1:].split()[0].decode() if isinstance(error, bytes) else None)
def test_a_server_that_is_not_ready_yet(error):
    """It is asked again, until it is."""
    with contextlib.closing(Scripted(error, error, b"+done\r\n")) as server, Client(server.url, **PATIENT) as client:
        assert client.ask("SET", "x", "1") == "ok done"
        assert server.asked == 3


def test_a_server_that_does_not_get_ready():
    loading = b"-LOADING Redis is loading the dataset in memory\r\n"
    with contextlib.closing(Scripted(loading)) as server, Client(server.url, connect_ms=20000).until_up() as client:
        late = "io not done within 250 ms: LOADING Redis is loading the dataset in memory"
        until(lambda: client.ask("GET", "x") == late, "an error that says why")
        assert server.asked > 2


def test_the_one_of_two_that_takes_writes(tmp_path):
    with Redis(tmp_path / "m", "--repl-diskless-sync-delay", "0") as master, \
            Redis(tmp_path / "r", "--replicaof", LOOPBACK, str(master.port)) as replica, \
            Client(f"redis://{LOOPBACK}:1,{LOOPBACK}:{replica.port},{LOOPBACK}:{master.port}", **PATIENT) as client:
        assert client.ask("SET", "x", "1") == "ok OK"
        assert master.get("x") == "1"


# ---- who may


def test_users_and_passwords(tmp_path):
    user = ["--user", "app", "on", ">wrong-horse", "~*", "&*", "+@all"]
    with Redis(tmp_path, "--requirepass", "open-sesame", *user) as guarded:
        with Client(guarded.url, **PATIENT) as client:
            assert "NOAUTH" in client.until_down()
            assert "NOAUTH" in client.ask("GET", "x")
        with Client(guarded.url, password="shut-barley", **PATIENT) as client:
            assert "WRONGPASS" in client.until_down()
            assert "WRONGPASS" in client.ask("GET", "x")
            assert not any("barley" in line for line in client.lines)
        with Client(guarded.url, password="open-sesame", **PATIENT).until_up() as client:
            assert "WRONGTYPE" not in client.ask("GET", "x")
        with Client(guarded.url, user="app", password="wrong-horse", **PATIENT).until_up() as client:
            assert client.ask("ACL", "WHOAMI") == "ok app"
            guarded.ask("--pass", "open-sesame", "ACL", "SETUSER", "app", "resetpass", ">new")
            guarded.ask("--pass", "open-sesame", "CLIENT", "KILL", "USER", "app")
            assert "WRONGPASS" in client.until_down()


def test_the_rights_that_are_enough(redis):
    """Those that docs/internals/fleet.md names."""
    lines = (ROOT / "docs" / "internals" / "fleet.md").read_text().split("* **Rights.** `", 1)[1]
    redis.ask("SCRIPT", "FLUSH")
    assert b"OK" in redis.ask("ACL", "SETUSER", "lean", "on", ">x", *lines.split("`", 1)[0].split())
    with Client(redis.url, user="lean", password="x", **PATIENT).until_up() as client:
        assert client.admit("i") == "ok granted"
        client.tell("hear ration:ch")
        until(lambda: redis.ask("PUBLISH", "ration:ch", "1").strip() == b"1", "a listener")
        assert client.ask("CONFIG", "GET", "x").startswith("io NOPERM")


# ---- TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    if not has_tls():
        pytest.skip("a server without TLS")
    return Certificates(tmp_path_factory.mktemp("certificates"))


def over_tls(folder, certificates, name, **options):
    port = free_port()
    one = Redis(folder, *certificates.options(name, port, **options))
    one.url = f"rediss://{LOOPBACK}:{port}"
    return one


def test_tls(tmp_path, certificates):
    with over_tls(tmp_path, certificates, "right") as safe:
        with Client(safe.url, ca=certificates.ca, **PATIENT).until_up() as client:
            assert client.ask("SET", "x", "v" * 50000) == "ok OK"
            assert client.ask("GET", "x") == "ok " + "v" * 50000
            client.tell("many 200 n GET x", "admit a i", "hear ch")
            assert client.heard("n", 200) == ["ok " + "v" * 50000] * 200
            assert client.heard("a") == ["ok granted"]
            until(lambda: safe.ask("PUBLISH", "ch", "hello").strip() == b"1", "a listener")
            assert client.heard("message") == ["ch hello"]
        with Client(safe.url, ca=certificates.other_ca, connect_ms=20000) as client:
            assert "SSL certificate problem" in client.until_down()
            assert "SSL certificate problem" in client.ask("GET", "x")
        with Client(safe.url, connect_ms=20000) as client:
            assert "SSL certificate problem" in client.until_down()
        with Client(safe.url, ca="/nowhere.pem", connect_ms=20000) as client:
            assert "/nowhere.pem" in client.until_down()
        with Client(safe.url.replace("rediss", "redis"), connect_ms=20000) as client:
            client.until_down()
        with Client(f"rediss://{LOOPBACK}:{safe.port}", ca=certificates.ca) as client:
            assert client.until_down() == f"{LOOPBACK}:{safe.port}: no connection within 250 ms"


@pytest.mark.parametrize("name, told", [("wrong", "no alternative certificate subject name matches"),
                                        ("expired", "certificate has expired")])
def test_tls_of_somebody_else(tmp_path, certificates, name, told):
    with over_tls(tmp_path, certificates, name) as other, \
            Client(other.url, ca=certificates.ca, connect_ms=20000) as client:
        assert told in client.until_down()
        assert told in client.ask("SET", "x", "1")
        assert other.get("x") == ""


def test_tls_with_a_certificate_to_show(tmp_path, certificates):
    with over_tls(tmp_path, certificates, "right", clients="yes") as strict:
        with Client(strict.url, ca=certificates.ca, connect_ms=20000) as client:
            client.until_down()
        with Client(strict.url, ca=certificates.ca, cert=str(certificates.folder / "right.pem"),
                    key=str(certificates.folder / "right.key"), **PATIENT).until_up() as client:
            assert client.ask("SET", "x", "1") == "ok OK"


# ---- channels


def test_what_is_published_is_heard(redis):
    with Client(redis.url, **PATIENT).until_up() as client:
        client.tell("hear one", "hear two")
        until(lambda: redis.ask("PUBLISH", "one", "hello").strip() == b"1", "a listener")
        until(lambda: redis.ask("PUBLISH", "two", "there").strip() == b"1", "a listener")
        assert client.heard("message", 2) == ["one hello", "two there"]
        client.tell("hear three")
        until(lambda: redis.ask("PUBLISH", "three", "again").strip() == b"1", "a listener")
        assert client.heard("message", 3)[-1] == "three again"


def test_channels_are_heard_again_after_a_break(tmp_path):
    with Redis(tmp_path) as mortal, Client(mortal.url, **PATIENT).until_up() as client:
        client.tell("hear ch")
        until(lambda: mortal.ask("PUBLISH", "ch", "1").strip() == b"1", "a listener")
        mortal.kill()
        client.until_down()
        mortal.start()
        until(lambda: mortal.ask("PUBLISH", "ch", "2").strip() == b"1", "a listener")
        assert client.heard("message", 2)[-1] == "ch 2"


def test_a_silent_connection_for_channels_is_made_anew(proxy, redis):
    """Nothing breaks, nothing comes: it is asked every second."""
    with Client(proxy.url).until_up() as client:
        client.tell("hear ch")
        until(lambda: redis.ask("PUBLISH", "ch", "1").strip() == b"1", "a listener")
        before = proxy.taken
        proxy.mute()
        until(lambda: proxy.taken > before, "another connection")
        proxy.unmute()
        until(lambda: redis.ask("PUBLISH", "ch", "2") and "message ch 2" in list(client.lines), "it is heard again")


# ---- a cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with contextlib.closing(Cluster(tmp_path_factory.mktemp("cluster"))) as one:
        yield one


def test_a_cluster(cluster):
    with Client(cluster.url, **PATIENT).until_up() as client:
        for i in range(30):
            assert client.ask("SET", f"key{i}", str(i)) == "ok OK"
        for i in range(30):
            assert cluster.of(f"key{i}")[1].get(f"key{i}") == str(i)
        client.tell("admit a i", "admit b i", "admit c j", "hear ch")
        assert client.heard("a") + client.heard("b") + client.heard("c") == ["ok granted", "ok granted", "ok refused"]
        assert client.stats()["redirects"] == 0
        until(lambda: [cluster.nodes[2].ask("PUBLISH", "ch", "hello")] and
              [line for line in client.lines if line == "message ch hello"], "a message from another member")


def test_a_slot_that_moves(cluster):
    slot, old = cluster.of("{moving}1")
    new = cluster.nodes[(cluster.nodes.index(old) + 1) % 3]
    names = cluster.names(old)
    with Client(cluster.url, **PATIENT).until_up() as client:
        assert client.ask("SET", "{moving}1", "one") == "ok OK"
        assert client.ask("SET", "{moving}2", "two") == "ok OK"
        new.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[old.port])
        old.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[new.port])
        assert b"OK" in old.ask("MIGRATE", LOOPBACK, new.port, "{moving}1", 0, 5000)
        assert client.ask("GET", "{moving}1") == "ok one"
        assert client.stats()["redirects"] == 1  # ASK
        client.tell("do both MGET {moving}1 {moving}2")  # TRYAGAIN
        assert client.ask("GET", "{moving}2") == "ok two"
        assert b"OK" in old.ask("MIGRATE", LOOPBACK, new.port, "{moving}2", 0, 5000)
        assert client.heard("both") == ["ok one two"]
        for node in (new, old, *cluster.nodes):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", names[new.port])
        before = client.stats()["redirects"]
        assert client.ask("GET", "{moving}1") == "ok one"
        assert client.ask("GET", "{moving}1") == "ok one"
        assert client.stats()["redirects"] <= before + 1  # MOVED, once
    with Client(cluster.url, **PATIENT).until_up() as client:
        assert client.ask("GET", "{moving}1") == "ok one"
        assert client.stats()["redirects"] == 0


def test_a_member_of_the_cluster_that_dies(cluster):
    keys = {}
    for i in range(100):
        keys.setdefault(cluster.of(f"key{i}")[1].port, f"key{i}")
    victim = cluster.nodes[2]
    with Client(cluster.url, connect_ms=5000, command_ms=5000).until_up() as client:
        for key in keys.values():
            assert client.ask("SET", key, "1") == "ok OK"
        victim.kill()
        until(lambda: "Connection refused" in client.ask("GET", keys[victim.port]), "an error in words")
        for port, key in keys.items():
            if port != victim.port:
                assert client.ask("GET", key) == "ok 1"
        assert client.state()[0] == "up"
        victim.start()
        until(lambda: client.ask("SET", keys[victim.port], "2") == "ok OK", "the member is back")


def test_who_is_no_cluster_and_who_is(cluster, redis):
    with Client(redis.url.replace("redis:", "redis+cluster:"), connect_ms=20000) as client:
        assert "cluster support disabled" in client.until_down()
        assert "cluster support disabled" in client.ask("GET", "x")
    wrong = next(node for node in cluster.nodes if node is not cluster.of("x")[1])
    with Client(wrong.url, **PATIENT).until_up() as client:
        assert client.ask("GET", "x") == "io the store is a cluster; its URL is redis+cluster://"
    with Client(f"redis+cluster://{LOOPBACK}:1,{LOOPBACK}:{wrong.port}", **PATIENT).until_up() as client:
        assert client.ask("SET", "x", "1") == "ok OK"


# ---- Sentinel


@pytest.fixture
def house(tmp_path):
    with contextlib.closing(Sentinel(tmp_path)) as one:
        yield one


def test_a_grant_waits_for_replicas(house):
    with Client(house.url, wait=1, **PATIENT).until_up() as client:
        assert client.admit("i") == "ok granted"
        assert b"lease:i" in house.replica.ask("KEYS", "*")
        assert client.stats()["unreplicated"] == 0


def test_sentinel_and_a_fail_over(house):
    """What the replica has holds; no replica is left to wait for, which is counted and ends nothing."""
    dead_first = house.url.replace("://", f"://{LOOPBACK}:1,")
    with Client(dead_first, wait=1, connect_ms=20000, command_ms=2000).until_up() as client:
        client.tell("hear ch")
        until(lambda: client.admit("i") == "ok granted", "a grant")
        until(lambda: b"lease:i" in house.replica.ask("KEYS", "*"), "the replica has it")
        house.master.kill()
        until(lambda: client.ask("SET", "x", "2") == "ok OK", "the replica is the master now")
        assert house.replica.get("x") == "2"
        until(lambda: client.admit("i") == "ok granted", "the same grant")
        until(lambda: client.admit("j") == "ok refused", "and no other")
        assert client.stats()["unreplicated"] >= 2
        until(lambda: house.replica.ask("PUBLISH", "ch", "here").strip() == b"1", "a listener there")


def test_a_master_that_no_sentinel_knows(house):
    with Client(house.url.replace("/house", "/hut"), **PATIENT) as client:
        assert client.until_down() == f"Sentinel {LOOPBACK}:{house.port}: knows no master 'hut'"
        assert "knows no master" in client.ask("GET", "x")


def test_a_master_that_says_it_is_none(tmp_path):
    """Sentinel's word is old: nothing is written there."""
    with Redis(tmp_path, "--replicaof", LOOPBACK, "1") as replica:
        named = f"*2\r\n$9\r\n{LOOPBACK}\r\n$5\r\n{replica.port}\r\n".encode()
        with contextlib.closing(Scripted(named)) as sentinel, \
                Client(f"redis+sentinel://{LOOPBACK}:{sentinel.port}/house", **PATIENT) as client:
            told = f"{LOOPBACK}:{replica.port}: is not the master that the Sentinels take it for"
            assert client.until_down() == told
            assert client.ask("SET", "x", "1") == f"io {told}"


# ---- a replay, which waits for its answers


@pytest.mark.parametrize("where", ["tls", "cluster", "sentinel"])
def test_a_replay_on_any_store(where, request, tmp_path):
    trace = ROOT / "tests" / "golden" / "all-or-none.trace.jsonl"
    with contextlib.ExitStack() as stack:
        names = {}
        if where == "tls":
            certificates = request.getfixturevalue("certificates")
            url = stack.enter_context(over_tls(tmp_path / "tls", certificates, "right")).url
            names["RATION_STORE_CA_FILE"] = certificates.ca
        else:
            url = request.getfixturevalue("cluster" if where == "cluster" else "house").url
        done = subprocess.run([RATION, "replay", "--store", url, str(trace)], capture_output=True, text=True,
                              timeout=120, env={**os.environ, **names})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "answers of the store are the core's" in done.stdout
