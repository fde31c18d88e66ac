# SPDX-License-Identifier: MIT
"""What a gateway keeps: restarts in order, kills at any moment, ledgers that cannot be read or written.

`KILLS=200 pytest tests/e2e/test_keep.py -k kill` kills as often as that instead of a few times.
"""

import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import threading
import time

import pytest
from api import Api
from house import RATION, Gateway, a_day, one_provider, slots, until
from provider import hello
from test_refusals import now, refusal

KILLS = int(os.environ.get("KILLS", "20"))
ROLLING = {"rolling": "24h"}


def quota(maximum, **more):
    return {"name": "daily", "kind": "quota", "max": maximum, "window": ROLLING, "scope": {"by": ["account"]}, **more}


@pytest.fixture
def keeper(tmp_path):
    """Start gateways with a ledger, one life after the other: keeper(config, *arguments, flush="5s")."""
    lives = []

    def start(config, *arguments, flush="5s"):
        config.setdefault("settings", {})["ledger"] = {"path": "ration.db", "flush": flush}
        lives.append(Life(config, tmp_path, *arguments))
        return lives[-1]

    yield start
    for life in lives:
        life.close()


class Life(Gateway):
    """A gateway that may be killed."""

    def __init__(self, config, folder, *arguments):
        # A file that is too large is an error and no signal, so that a test can make the disk full.
        super().__init__(config, folder, *arguments, preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))

    def die(self):
        self.ended = True
        self.popen.kill()
        self.wait()

    def flushed(self):
        """All that has been until now is in the ledger."""
        asked = self.status()["now"]
        self.until(lambda s: s["now"] - s["ledger"]["ageMs"] > asked, "flushed")

    def full(self, full):
        """No file of the process can grow, or all can."""
        hard = resource.prlimit(self.popen.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self.popen.pid, resource.RLIMIT_FSIZE, (0 if full else hard, hard))

    def limit(self, name):
        rows = [row for row in self.status()["limits"] if row["limit"] == name]
        return rows[0] if rows else None

    def used(self, name="daily"):
        """What it counts, once somebody has asked for it."""
        Api(self).post("check", {"account": "a", "method": "GET", "path": "/"})
        return self.limit(name)["used"]


def spend(gw, count):
    for _ in range(count):
        assert gw.call("GET", "/a/").status == 200


# ---- in order: nothing is forgotten


@pytest.mark.parametrize("durability", ["relaxed", "strict"])
@pytest.mark.parametrize("window", [ROLLING, a_day()], ids=["rolling", "calendar"])
def test_counts(provider, keeper, durability, window):
    config = one_provider(provider(hello).url, [quota(1000, durability=durability, window=window)])
    for life in range(3):
        gw = keeper(config)
        assert gw.used() == life * 5
        spend(gw, 5)
        assert gw.stop() == 0, gw.text()
    assert 'last_stop="in order"' in gw.text()


def test_what_was_kept_is_shown_before_anybody_asks(provider, keeper):
    up = provider(lambda request, connection: connection.reply(500))
    breaker = {"strategy": "consecutive", "threshold": 2, "backoff": {"delay": "1h"}}
    config = one_provider(up.url, [quota(5)], breaker=breaker)
    gw = keeper(config)
    for _ in range(2):
        assert gw.call("GET", "/a/").status == 500
    assert gw.stop() == 0

    def members(page):
        (limit,), (circuit,) = page["limits"], page["breakers"]
        return limit["used"], limit.get("sleeping"), circuit["state"], circuit.get("sleeping")

    gw = keeper(config)
    for path in ("/v1/limits", "/v1/status"):
        assert members(gw.control(path).json()) == (2, True, "open", True)
    assert gw.control("/v1/limits/daily/a").json()["limits"][0]["used"] == 2
    assert gw.control("/v1/limits/daily/b").status == 404
    shown = subprocess.run([RATION, "status", "--control", gw.control_address], capture_output=True, text=True,
                           timeout=30).stdout
    assert "The circuit of p at a is open" in shown and "  3 of 5 left" in shown
    assert gw.call("GET", "/a/", now())["Ration-Refused"] == "circuit_open"
    assert members(gw.control("/v1/limits").json()) == (2, None, "open", None)


def test_penalty(provider, keeper):
    up = provider(lambda request, connection: connection.reply(429, {"Retry-After": "60"}))
    config = one_provider(up.url, [slots(3)])
    gw = keeper(config)
    assert gw.call("GET", "/a/").status == 429
    assert gw.stop() == 0
    gw = keeper(config)
    problem = refusal(gw.call("GET", "/a/", now()), 429, "penalized", "provider", True)
    assert 30000 < problem["retryAfterMs"] <= 60000
    assert len(up.requests) == 1


def test_open_circuit(provider, keeper):
    up = provider(lambda request, connection: connection.reply(500))
    breaker = {"strategy": "consecutive", "threshold": 2, "backoff": {"delay": "1m"}}
    config = one_provider(up.url, breaker=breaker)
    gw = keeper(config)
    for _ in range(2):
        assert gw.call("GET", "/a/").status == 500
    (before,) = gw.status()["breakers"]
    assert gw.stop() == 0
    gw = keeper(config)
    assert gw.call("GET", "/a/", now())["Ration-Refused"] == "circuit_open"
    (after,) = gw.status()["breakers"]
    assert (after["state"], after["retryAt"]) == ("open", before["retryAt"])
    assert len(up.requests) == 2


def test_adaptive_limit(provider, keeper):
    statuses = [429, 200]
    up = provider(lambda request, connection: connection.reply(statuses.pop(0) if statuses else 200))
    width = {"name": "width", "kind": "adaptive", "initialLimit": 16, "scope": {"by": ["account"]}}
    config = one_provider(
        up.url, [width], errors={"rateLimited": {"defaultPenalty": "1ms", "maxPenalty": "1ms"}}
    )
    gw = keeper(config)
    assert gw.call("GET", "/a/").status == 429
    before = gw.limit("width")["current"]
    assert before < 16
    assert gw.stop() == 0
    gw = keeper(config)
    spend(gw, 1)
    assert gw.limit("width")["current"] == before


@pytest.mark.parametrize("end", ["stop", "die"])
def test_slow_bucket(provider, keeper, end):
    rate = {"name": "rate", "kind": "rate", "rate": "3/h", "burst": 3, "margin": 0, "scope": {"by": ["account"]}}
    config = one_provider(provider(hello).url, [rate])
    gw = keeper(config, flush="50ms")
    spend(gw, 3)
    gw.flushed()
    getattr(gw, end)()
    gw = keeper(config)
    problem = refusal(gw.call("GET", "/a/", now()), 429, "rate_limited", "capacity", True, limit="rate", key="a")
    assert problem["retryAfterMs"] > 1000000


def test_quick_bucket_after_a_kill(provider, keeper):
    """It is not kept; after a kill it starts empty, since nobody knows."""
    rate = {"name": "rate", "kind": "rate", "rate": "1/s", "burst": 3, "margin": 0, "scope": {"by": ["account"]}}
    config = one_provider(provider(hello).url, [rate])
    gw = keeper(config)
    gw.die()
    gw = keeper(config)
    refusal(gw.call("GET", "/a/", now()), 429, "rate_limited", "capacity", True, limit="rate", key="a")


def test_a_second_signal(provider, keeper):
    """It does not wait for the call that runs, but the ledger has it."""
    held = threading.Event()

    def hang(request, connection):
        held.wait(30)
        connection.reply(200)

    config = one_provider(provider(hang).url, [quota(1000)])
    gw = keeper(config)
    client = gw.client().ask("GET", "/a/")
    gw.until(lambda s: s["held"] == 1, "under way")
    gw.signal(signal.SIGTERM)
    gw.line("msg=draining")
    gw.signal(signal.SIGTERM)
    gw.ended = True
    assert gw.wait() == 1
    held.set()
    client.close()
    gw = keeper(config)
    gw.line('msg="ledger read".*last_stop="in order"')
    assert gw.used() == 1


def test_a_recording_begins_with_what_was_kept(provider, keeper, tmp_path):
    limits = [quota(300, durability="strict"), slots(2)]
    config = one_provider(provider(hello).url, limits)
    for end in ("stop", "die", "stop"):
        gw = keeper(config, "--record", str(tmp_path / "calls.jsonl"), flush="20ms")
        spend(gw, 7)
        gw.flushed()
        getattr(gw, end)()
    lines = (tmp_path / "calls.jsonl").read_text().splitlines()
    assert '"op":"state"' in lines[1] and '"type":"quota"' in lines[1] and '"unclean":true' in lines[1]
    done = subprocess.run([RATION, "replay", "--verify", str(tmp_path / "calls.jsonl")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


# ---- killed at any moment


class Crowd:
    """Clients that call until they are told to stop, and when each of their answers came."""

    def __init__(self, gw, count):
        self.gw, self.over, self.answered, self.lock = gw, False, [], threading.Lock()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self):
        try:
            with self.gw.client() as client:
                while not self.over:
                    if client.call("GET", "/a/").status == 200:
                        with self.lock:
                            self.answered.append(time.time())
        except (OSError, EOFError, AssertionError):
            pass

    def join(self):
        self.over = True
        for thread in self.threads:
            thread.join(30)


CLIENTS = 3


def killed(gw, moment, look=lambda: None):
    """The answers of a crowd, and what `look` saw shortly before the end."""
    crowd = Crowd(gw, CLIENTS)
    time.sleep(moment)
    seen = look()
    gw.die()
    crowd.join()
    return crowd.answered, seen


@pytest.mark.parametrize("window", [ROLLING, a_day()], ids=["rolling", "calendar"])
def test_kill_strict(provider, keeper, window):
    """The truth is what the provider saw; each kill may add a block, none may take a call away."""
    up = provider(hello)
    maximum, chance = 100000, random.Random(7)
    block = maximum // 100
    config = one_provider(up.url, [quota(maximum, durability="strict", window=window)])
    config["providers"][0]["limits"][0]["max"] = maximum
    kills = max(2, KILLS // 2)
    for kill in range(kills + 1):
        gw = keeper(config, flush="1h")
        used = gw.used()
        assert len(up.requests) <= used <= len(up.requests) + kill * (block + CLIENTS), kill
        if kill < kills:
            killed(gw, chance.uniform(0, 0.3))
    assert len(up.requests) > kills


def test_kill_relaxed(provider, keeper):
    """What was answered before the last flush began is there; nothing is there that was not granted."""
    up = provider(hello)
    chance = random.Random(8)
    config = one_provider(up.url, [quota(1000000)])
    for kill in range(KILLS):
        gw = keeper(config, flush="50ms")
        before, seen = gw.used(), len(up.requests)
        answered, status = killed(gw, chance.uniform(0, 0.3), gw.status)
        gw = keeper(config)
        used = gw.used() - before
        flushed = status["ledger"].get("flushedAt", 0) / 1000 - status["ledger"].get("flushMs", 0) / 1000 - 0.005
        assert sum(at < flushed for at in answered) <= used <= len(up.requests) - seen + CLIENTS, kill
        assert gw.stop() == 0


# ---- ledgers that cannot be read


def refused_start(folder, *arguments):
    done = subprocess.run([RATION, "serve", *arguments], cwd=folder, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_locked(provider, keeper, tmp_path):
    gw = keeper(one_provider(provider(hello).url))
    said = refused_start(tmp_path)
    assert "ration.db" in said and str(gw.popen.pid) in said
    assert gw.call("GET", "/a/").status == 200


def test_corrupt(provider, keeper, tmp_path):
    config = one_provider(provider(hello).url, [quota(1000)])
    gw = keeper(config)
    spend(gw, 3)
    assert gw.stop() == 0
    ledger = tmp_path / "ration.db"
    broken = b"SQLite format 3\0" + b"\x55" * (ledger.stat().st_size - 16)
    ledger.write_bytes(broken)
    assert "ration.db" in refused_start(tmp_path)
    assert ledger.read_bytes() == broken

    gw = keeper(config, "--ledger-aside")
    gw.line('level=warn msg="the ledger could not be read and was put aside" ledger=ration.db aside=\\S+')
    (aside,) = [path for path in tmp_path.glob("ration.db*") if path.read_bytes() == broken]
    assert aside != ledger
    assert gw.used() == 0
    spend(gw, 1)
    assert gw.stop() == 0
    gw = keeper(config)
    assert gw.used() == 1


def test_no_ledger(provider, gateway, tmp_path):
    config = one_provider(provider(hello).url, [quota(1000)])
    gw = gateway(config)
    assert "ledger" not in gw.status()
    assert not [name for name in gw.metrics() if name.startswith("ration_ledger")]
    gw.line("msg=listening .*ledger=none")
    assert [path.name for path in tmp_path.iterdir()] == ["ration.yaml"]


def test_strict_wants_one(provider, tmp_path, keeper):
    config = one_provider(provider(hello).url, [quota(1000, durability="strict")])
    gw = keeper(config)
    assert gw.stop() == 0
    assert "--ledger none: a strict limit needs a ledger" in refused_start(tmp_path, "--ledger", "none")


def test_told_on_the_command_line(provider, keeper, tmp_path):
    gw = keeper(one_provider(provider(hello).url), "--ledger", "elsewhere.db")
    assert gw.status()["ledger"]["path"].endswith("elsewhere.db")
    assert (tmp_path / "elsewhere.db").exists() and not (tmp_path / "ration.db").exists()


def test_a_start_that_fails_leaves_it_in_order(provider, keeper, tmp_path):
    config = one_provider(provider(hello).url, [quota(1000)])
    gw = keeper(config)
    assert gw.stop() == 0
    text = gw.config.read_text()
    taken = provider(hello)
    gw.config.write_text(text.replace("127.0.0.1:0", f"127.0.0.1:{taken.port}", 1))
    assert str(taken.port) in refused_start(tmp_path)
    gw = keeper(config)
    gw.line('last_stop="in order"')


# ---- ledgers that cannot be written


def test_full_costs_no_call(provider, keeper):
    config = one_provider(provider(hello).url, [quota(1000)])
    gw = keeper(config, flush="50ms")
    spend(gw, 1)
    status = gw.until(lambda s: s["ledger"]["flushes"] > 0, "flushed")["ledger"]
    assert status["failing"] is False and status["faults"] == 0 and "lastError" not in status
    gw.full(True)
    spend(gw, 5)
    gw.line('level=error msg="the ledger cannot be written" ledger=\\S*ration.db error=')
    status = gw.until(lambda s: s["ledger"]["failing"], "failing")["ledger"]
    assert status["faults"] > 0 and status["pending"] > 0 and status["lastError"]
    samples = gw.metrics()
    assert samples["ration_ledger_failing"] == 1 and samples["ration_ledger_faults_total"] > 0
    spend(gw, 5)
    gw.full(False)
    gw.line('level=info msg="the ledger is written again"')
    gw.flushed()
    gw.die()
    gw = keeper(config)
    assert gw.used() == 11


def test_full_at_the_end(provider, keeper):
    config = one_provider(provider(hello).url, [quota(1000)])
    gw = keeper(config)
    spend(gw, 1)
    gw.full(True)
    assert gw.stop() == 1
    assert "the ledger could not be written, what was spent last is forgotten" in gw.text()
    gw = keeper(config)
    gw.line("msg=.ledger read.*last_stop=unclean")


def test_strict_waits_while_it_is_full(provider, keeper):
    """And nobody else does."""
    up = provider(hello)
    config = one_provider(up.url, [quota(1000, durability="strict")])
    config["accounts"].append({"name": "b", "provider": "p"})
    config["providers"].append({"name": "q", "baseUrl": up.url, "limits": [quota(1000)]})
    config["accounts"].append({"name": "c", "provider": "q"})
    gw = keeper(config, flush="50ms")
    spend(gw, 1)
    gw.full(True)
    granted = 0
    while gw.call("GET", "/a/", {"Ration-Timeout": "200ms"}).status == 200:
        granted += 1
        assert granted <= 10
    status = gw.status()["ledger"]
    assert status["failing"] is True
    assert gw.call("GET", "/c/").status == 200
    with gw.client() as client:
        client.ask("GET", "/a/")
        gw.until(lambda s: s["waiting"] == 1 and s["ledger"]["strict"] == "unwritten", "waits")
        gw.full(False)
        assert client.answer().status == 200


def test_a_release_above_the_mark_is_told_when_it_is_durable(provider, keeper):
    config = one_provider(provider(hello).url, [quota(1000, durability="strict", counts="cost")])
    gw = keeper(config)
    api = Api(gw)
    lease = api.post("acquire", {"account": "a", "method": "GET", "path": "/", "cost": 1}).json()["lease"]
    low = api.post("acquire", {"account": "a", "method": "GET", "path": "/", "cost": 1}).json()["lease"]
    gw.full(True)
    with api.client() as client:
        api.ask(client, "/v1/release", {"lease": lease, "cost": 500})
        gw.until(lambda s: s["ledger"]["waiting"] == 1 and s["ledger"]["failing"], "waits")
        api.release(low)
        gw.full(False)
        assert client.answer().json() == {"result": "released"}
    gw.die()
    gw = keeper(config)
    assert gw.used() >= 500


# ---- what it says, and does not say


def test_metrics_and_status(provider, keeper):
    gw = keeper(one_provider(provider(hello).url, [quota(1000)]), flush="50ms")
    spend(gw, 2)
    status = gw.until(lambda s: s["ledger"]["flushes"] > 0, "flushed")
    ledger = status["ledger"]
    assert ledger["path"].endswith("ration.db") and ledger["unclean"] is False
    assert status["startedAt"] <= ledger["flushedAt"] <= status["now"]
    assert ledger["rows"] >= 1 and ledger["flushMs"] > 0 and ledger["waiting"] == 0 and ledger["strict"] == "idle"
    samples = gw.metrics()
    assert samples["ration_ledger_flushes_total"] >= 1 and samples["ration_ledger_rows_total"] >= 1
    assert samples["ration_ledger_failing"] == samples["ration_ledger_faults_total"] == 0
    assert samples["ration_ledger_age_seconds"] < 30 and samples["ration_ledger_flush_seconds"] > 0


def test_salt_and_secrets_stay_inside(provider, keeper, tmp_path):
    limit = quota(1000, scope={"by": ["credential"]})
    config = one_provider(
        provider(hello).url, [limit], {"credential": {"header": "X-Key", "value": "s3cr3t-of-the-account"}}
    )
    keys, outputs = set(), []
    for life in range(2):
        gw = keeper(config, "--record", str(tmp_path / "calls.jsonl"))
        assert gw.used() == life
        spend(gw, 1)
        keys.add(gw.limit("daily")["key"])
        outputs += [gw.control(page).body for page in ("/v1/status", "/metrics", "/v1/limits", "/v1/leases")]
        assert gw.stop() == 0
        outputs += [gw.text().encode(), (tmp_path / "calls.jsonl").read_bytes()]
    (key,) = keys
    assert re.fullmatch("[0-9a-f]{16}", key)

    with sqlite3.connect(tmp_path / "ration.db") as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        values = [value for table in tables for row in db.execute(f"SELECT * FROM {table}") for value in row]
    salts = [value for value in values if isinstance(value, bytes) and len(value) == 32]
    assert len(salts) == 1
    for output in outputs:
        assert b"s3cr3t" not in output
        assert salts[0] not in output and salts[0].hex().encode() not in output.lower()
    assert b"s3cr3t" not in b"".join(path.read_bytes() for path in tmp_path.glob("ration.db*"))

    (tmp_path / "ration.db").unlink()
    gw = keeper(config)
    spend(gw, 1)
    assert gw.limit("daily")["key"] != key


def test_signals_without_end(provider, keeper):
    """Whoever cannot wait: the ledger is closed in order all the same, and the process says itself how it ended."""
    config = one_provider(provider(hello).url, [quota(1000)])
    for _ in range(5):
        gw = keeper(config)
        gw.line('msg="ledger read".*last_stop="in order"')
        spend(gw, 1)
        gw.ended = True
        while gw.popen.poll() is None:
            gw.signal(signal.SIGTERM)
        assert gw.wait() in (0, 1), gw.text()
    assert keeper(config).used() == 5


def test_runs_of_jobs(keeper):
    config = one_provider("http://127.0.0.1:9", [quota(2400)], endpoints=["/x"])
    config["jobs"] = [{"name": "tick", "account": "a", "endpoint": "GET /x", "interval": "1h"}]
    gw = keeper(config)
    assert gw.control("/v1/plan/jobs/tick").json()["calls"] < 40
    Api(gw).post("runs", {"job": "tick", "requests": 40, "retries": 10})
    assert gw.stop() == 0
    gw = keeper(config)
    assert gw.control("/v1/plan/jobs/tick").json()["calls"] == 50
