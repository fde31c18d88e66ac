# SPDX-License-Identifier: MIT
"""Several gateways on one Redis: their limits are one, whoever asks, and whatever becomes of Redis or of one of them.

FLEET_CLIENTS=900 lets so many clients call at once instead of 300.
"""

import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import pytest

from api import Api
from house import RATION, Client, Gateway, a_day, one_provider, until
from provider import hello
from redis_house import Redis, missing
from test_events import Stream

CLIENTS = int(os.environ.get("FLEET_CLIENTS", "300"))
PASSWORD = "hunter2-of-the-store"
NO_WAIT = {"Ration-Timeout": "0"}
PATIENT = {"connectTimeout": "20s", "commandTimeout": "20s"}  # a machine that is busy is no Redis that is away
HASTY = {"commandTimeout": "1s"}


@pytest.fixture
def redis(tmp_path):
    if missing():
        pytest.skip(f"no {missing()}")
    with Redis(tmp_path / "redis") as one:
        yield one


@pytest.fixture
def fleet(tmp_path, redis):
    """fleet(config, count): gateways on that Redis, each with a folder of its own; they end clean unless killed."""
    started = []

    def start(config, count=1, settings=None, **options):
        for _ in range(count):
            folder = tmp_path / f"g{len(started)}"
            folder.mkdir()
            own = json.loads(json.dumps(config))
            own["settings"]["fleet"] = {"redis": redis.url, **PATIENT, **(settings or {})}
            own["settings"]["instance"] = f"g{len(started)}"
            started.append(Gateway(own, folder, **options))
        for one in started:  # with the first heart-beat's answer all is known that the fleet has to tell
            one.until(lambda s: s["fleet"]["state"] == "up" and s["fleet"]["members"], "up")
        return started if count > 1 else started[-1]

    yield start
    for one in started:
        one.close()


OF_ALL = {"scope": {"by": ["account"]}}  # without it each instance has its own


def slots(count, **more):
    return {"name": "slots", "kind": "concurrency", "max": count, **OF_ALL, **more}


class Gate:
    """A provider that answers when it is told to, and counts who is in it."""

    def __init__(self, open_at_once=False):
        self.lock = threading.Lock()
        self.inside = self.most = self.calls = 0
        self.opened = threading.Event()
        if open_at_once:
            self.opened.set()

    def __call__(self, request, connection):
        with self.lock:
            self.calls += 1
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.opened.wait(60)
        with self.lock:
            self.inside -= 1
        hello(request, connection)


class Held:
    """A call that is under way."""

    def __init__(self, gw, fields=(), target="/a/x"):
        self.client = Client(gw.port)
        self.client.ask("GET", target, fields)

    def answer(self):
        answer = self.client.answer()
        self.client.close()
        return answer


# ---- limits of all gateways together


def test_no_limit_is_exceeded(provider, fleet):
    """A quota to the last unit, a rate and slots: what three gateways let through keeps all of them."""
    gate = Gate(open_at_once=True)
    quota, burst, a_second, most = 150, 10, 50, 4
    config = one_provider(provider(gate).url, [
        slots(most), {"name": "rate", "kind": "rate", "rate": f"{a_second}/s", "burst": burst, **OF_ALL},
        {"name": "daily", "kind": "quota", "max": quota, "window": a_day(), **OF_ALL}],
        settings={"budget": {"retryReserve": "0%"}})
    gateways = fleet(config, 3)
    began = time.monotonic()

    def client(number):
        """Two calls: most find the quota used up, the first of them after they have waited."""
        with Client(gateways[number % 3].port) as one:
            return [one.call("GET", "/a/x", {"Ration-Timeout": "60s"}) for _ in range(2)]

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        answers = [answer for some in pool.map(client, range(CLIENTS)) for answer in some]
    took = time.monotonic() - began
    reasons = {answer["Ration-Refused"] for answer in answers if answer.status != 200}
    assert sum(answer.status == 200 for answer in answers) == quota == gate.calls
    assert reasons == {"quota_exhausted"}
    assert gate.most <= most
    assert gate.calls <= burst + a_second * took
    assert sum(gw.status()["totals"]["granted"] for gw in gateways) == quota


def test_a_waiter_gets_what_another_gateway_gives_back(provider, fleet):
    gate = Gate()
    one, two = fleet(one_provider(provider(gate).url, [slots(1)]), 2)
    first = Held(one)
    until(lambda: gate.inside == 1, "the slot is taken")
    assert two.call("GET", "/a/x", NO_WAIT)["Ration-Refused"] == "concurrency_full"
    second = Held(two)
    two.until(lambda s: s["waiting"] == 1, "a waiter")
    gate.opened.set()
    assert (first.answer().status, second.answer().status) == (200, 200)
    assert gate.most == 1


def test_one_script_an_admission(provider, fleet, redis):
    """Whatever the number of limits, and one for each release."""
    limits = [slots(99), {"name": "daily", "kind": "quota", "max": 9999, "window": a_day()}]
    limits += [{"name": f"rate-{n}", "kind": "rate", "rate": f"{1000 + n}/s", "burst": 1000} for n in range(5)]
    api = Api(fleet(one_provider(provider(hello).url, limits)))

    def scripts():
        """Runs of scripts but for the beats, each of which alone reads a hash."""
        told = redis.ask("INFO", "commandstats").decode()
        counts = {line.split(":")[0]: int(line.split("calls=")[1].split(",")[0])
                  for line in told.splitlines() if "calls=" in line}
        return counts["cmdstat_evalsha"] - counts["cmdstat_hgetall"]

    def lease():
        return api.post("acquire", {"account": "a", "timeout": 0}).json()["lease"]

    def release(name):
        assert api.post("release", {"lease": name}).status == 200

    release(lease())  # the scripts are known, and the windows
    until(lambda: redis.ask("EXISTS", "ration:1:{default/p}:head").strip() == b"1", "a head")
    before = scripts()
    names = [lease() for _ in range(20)]
    assert scripts() - before == 20
    for name in names:
        release(name)
    until(lambda: scripts() - before >= 40, "all are released")
    assert scripts() - before == 40


# ---- a gateway that dies


def test_a_dead_holder_loses_its_slot(provider, fleet):
    """Within one time to live, and not while it lives: it renews."""
    gate = Gate()
    one, two = fleet(one_provider(provider(gate).url, [slots(1)]), 2, {"leaseTtl": "3s"})
    held = Held(one)
    until(lambda: gate.inside == 1, "the slot is taken")
    renewed = "ration_fleet_calls_total{script=\"renew\"}"
    until(lambda: one.metrics().get(renewed, 0) >= 1, "it was renewed")
    assert two.call("GET", "/a/x", NO_WAIT)["Ration-Refused"] == "concurrency_full"
    one.signal(signal.SIGKILL)
    one.wait()
    gate.opened.set()
    assert two.call("GET", "/a/x", {"Ration-Timeout": "30s"}).status == 200
    with pytest.raises((EOFError, ConnectionError)):
        held.answer()
    two.until(lambda s: [m["self"] for m in s["fleet"]["members"] if m["heardMs"] < 2000] == [True], "one is left")


def test_a_member_takes_leave(provider, fleet):
    one, two = fleet(one_provider(provider(hello).url, [slots(1)]), 2)
    two.until(lambda s: len(s["fleet"]["members"]) == 2, "two members")
    assert len(Api(two).get("status").json()["fleet"]["members"]) == 2
    one.close()
    two.until(lambda s: len(s["fleet"]["members"]) == 1, "one has left")


# ---- Redis that goes away


def test_refused_while_redis_is_away(provider, fleet, redis):
    """Not as a quota's refusal, and with a time; all is well again by itself."""
    gw = fleet(one_provider(provider(hello).url, [slots(2)]), settings={"backoff": "500ms"})
    stream = Stream(gw)
    redis.kill()
    told = gw.until(lambda s: s["fleet"]["state"] == "down", "down")["fleet"]
    assert told["lastError"] and told["unavailable"] == 1
    answer = gw.call("GET", "/a/x")
    assert (answer.status, answer["Ration-Refused"], answer["Retry-After"]) == (503, "store_unavailable", "1")
    assert answer.json()["category"] == "store" and answer.json()["retryable"]
    assert gw.metrics()["ration_fleet_up"] == 0
    redis.start()
    gw.until(lambda s: s["fleet"]["state"] == "up", "up")
    assert gw.call("GET", "/a/x").status == 200
    events = [stream.next("fleet") for _ in range(2)]
    assert [event["state"] for event in events] == ["down", "up"] and events[0]["error"]
    stream.close()
    assert gw.status()["totals"]["refusals"] == {"store_unavailable": 1}
    assert gw.metrics()["ration_fleet_outages_total"] == 1


def test_redis_that_was_never_there(provider, redis, tmp_path):
    """Whoever starts a gateway beside a Redis that does not let it in reads why, once."""
    redis.kill()
    config = one_provider(provider(hello).url, [slots(2)], settings={"fleet": {"redis": redis.url, "backoff": "50ms"}})
    with contextlib.closing(Gateway(config, tmp_path)) as gw:
        gw.line("the fleet's store is away.*state=down words=.*refused")
        assert gw.call("GET", "/a/x", NO_WAIT)["Ration-Refused"] == "store_unavailable"
        redis.start()
        gw.line("the fleet's store is there")
        assert gw.text().count("store is away") == 1
        assert gw.metrics()["ration_fleet_outages_total"] == 0


def test_no_answer_in_time(provider, fleet, redis):
    """A Redis that hangs costs a caller its time-out, and no more; what it had granted all the same is given back."""
    gw = fleet(one_provider(provider(hello).url, [slots(1)]), settings=HASTY)
    until(lambda: gw.call("GET", "/a/x").status == 200, "a call")
    redis.pause()
    assert gw.call("GET", "/a/x")["Ration-Refused"] == "store_unavailable"
    redis.go_on()
    gw.until(lambda s: s["fleet"]["state"] == "up" and s["fleet"]["toldLate"] == 0, "up, and all is told")
    until(lambda: gw.call("GET", "/a/x", NO_WAIT).status == 200, "the slot is free")


def test_some_leases_without_redis(provider, fleet, redis):
    """As many as the config says, shown as degraded, and entered into Redis when it is back, empty as it is."""
    gate = Gate()
    gw = fleet(one_provider(provider(gate).url, [slots(3)]), settings={"onUnavailable": {"localLimit": 2}})
    before = Held(gw)
    until(lambda: gate.inside == 1, "one from before")
    redis.kill()
    gw.until(lambda s: s["fleet"]["state"] == "degraded", "degraded")
    alone = [Held(gw) for _ in range(2)]
    until(lambda: gate.inside == 3, "two more")
    assert gw.call("GET", "/a/x")["Ration-Refused"] == "store_unavailable"
    fleet_now = gw.status()["fleet"]
    assert (fleet_now["localLeases"], fleet_now["localLimit"]) == (2, 2)
    redis.start()
    gw.until(lambda s: s["fleet"]["state"] == "up" and s["fleet"]["localLeases"] == 0, "entered")
    until(lambda: gw.call("GET", "/a/x", NO_WAIT)["Ration-Refused"] == "concurrency_full", "all three are known")
    gate.opened.set()
    assert [one.answer().status for one in [before, *alone]] == [200] * 3
    until(lambda: gw.call("GET", "/a/x", NO_WAIT).status == 200, "and free")


def test_nothing_to_tell_of_what_redis_never_knew(provider, fleet, redis):
    """Calls that began and ended in an outage leave nothing behind: it may last, and they may be many."""
    gw = fleet(one_provider(provider(hello).url, [slots(2)]), settings={"onUnavailable": {"localLimit": 2}})
    redis.kill()
    gw.until(lambda s: s["fleet"]["state"] == "degraded", "degraded")
    assert [gw.call("GET", "/a/x").status for _ in range(20)] == [200] * 20
    told = gw.until(lambda s: s["held"] == 0, "all have ended")["fleet"]
    assert (told["localLeases"], told["toldLate"], told["toldNever"]) == (0, 0, 0)


def test_what_was_told_meanwhile(provider, fleet, redis):
    """A call that ends while Redis hangs has given its slot back afterwards."""
    gate = Gate()
    gw = fleet(one_provider(provider(gate).url, [slots(1)]), settings=HASTY)
    held = Held(gw)
    until(lambda: gate.inside == 1, "the slot is taken")
    redis.pause()
    gate.opened.set()
    assert held.answer().status == 200
    gw.until(lambda s: s["fleet"]["toldLate"] > 0, "a release that waits")
    redis.go_on()
    until(lambda: gw.call("GET", "/a/x", NO_WAIT).status == 200, "the slot is free")


def test_a_start_without_redis(provider, gateway, redis):
    """It serves as it was told to, and is a member as soon as there is a fleet."""
    redis.kill()
    gw = gateway(one_provider(provider(hello).url, [slots(1)], settings={"fleet": {"redis": redis.url, **PATIENT}}))
    gw.until(lambda s: s["fleet"]["lastError"] if "lastError" in s["fleet"] else None, "it has tried")
    assert gw.call("GET", "/a/x")["Ration-Refused"] == "store_unavailable"
    redis.start()
    gw.until(lambda s: s["fleet"]["state"] == "up", "up")
    assert gw.call("GET", "/a/x").status == 200


# ---- the decision API


def test_checks_and_leases(provider, fleet):
    config = one_provider(provider(hello).url, [slots(1)])
    api = Api(fleet(config))
    assert api.post("check", {"account": "a"}).json() == {"result": "granted"}
    lease = api.post("acquire", {"account": "a", "timeout": 0, "ttl": 600_000}).json()["lease"]
    told = api.post("check", {"account": "a"}).json()
    assert (told["result"], told["reason"], told["limit"]) == ("refused", "concurrency_full", "slots")
    assert api.post("check", {"account": "a", "timeout": 1000}).json()["result"] == "queued"
    assert api.post("check", {"account": "b"}).json()["reason"] == "unknown_account"
    assert api.post("renew", {"lease": lease}).status == 200
    assert api.post("release", {"lease": lease, "outcome": "success"}).status == 200
    assert api.post("release", {"lease": lease}).status == 410
    until(lambda: api.post("check", {"account": "a"}).json()["result"] == "granted", "given back")


def test_a_lease_that_is_not_renewed(provider, fleet):
    """Its client is dead: the API forgets it, and so does Redis."""
    gateways = fleet(one_provider(provider(hello).url, [slots(1)]), 2)
    one, two = map(Api, gateways)
    lease = one.post("acquire", {"account": "a", "timeout": 0, "ttl": 300}).json()["lease"]
    gateways[0].until(lambda s: s["held"] == 0, "lost")
    assert one.post("renew", {"lease": lease}).status == 410
    other = two.post("acquire", {"account": "a", "timeout": 30_000})
    assert two.post("release", {"lease": other.json()["lease"]}).status == 200
    assert gateways[0].status()["totals"]["lost"] == 1


# ---- the config


def test_members_that_differ(provider, fleet):
    """A roll-out: shown while it lasts."""
    config = one_provider(provider(hello).url, [slots(1)])
    one, two = fleet(config, 2)
    seen = one.until(lambda s: len(s["fleet"]["members"]) == 2, "two members")["fleet"]
    assert not seen["configDiffers"] and len({member["config"] for member in seen["members"]}) == 1
    assert {member["instance"] for member in seen["members"]} == {"g0", "g1"}
    assert [member["self"] for member in seen["members"]].count(True) == 1
    written = json.loads(two.config.read_text())
    written["providers"][0]["limits"][0]["max"] = 2
    two.config.write_text(json.dumps(written))
    assert Api(two).post("reload", {}).status == 200
    one.until(lambda s: s["fleet"]["configDiffers"], "they differ")
    assert one.metrics()["ration_fleet_config_differs"] == 1
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert [a.status for a in pool.map(lambda _: two.call("GET", "/a/x", NO_WAIT), range(2))] == [200, 200]


def test_what_takes_a_restart(provider, fleet):
    gw = fleet(one_provider(provider(hello).url, [slots(1)]))
    written = json.loads(gw.config.read_text())
    written["settings"]["fleet"].update({"name": "another", "leaseTtl": "10s"})
    gw.config.write_text(json.dumps(written))
    (fault,) = Api(gw).post("reload", {}).json()["faults"]
    assert fault["path"] == "settings.fleet.name" and "'default'" in fault["text"]
    del written["settings"]["fleet"]["name"]
    gw.config.write_text(json.dumps(written))
    assert Api(gw).post("reload", {}).status == 200


NO_FLEET = {
    "strict": ({"name": "q", "kind": "quota", "max": 1, "window": a_day(), "durability": "strict"},
               "limit 'q' of provider 'p': `durability: strict` is what a ledger promises, and a store may lose what "
               "it has counted"),
}


@pytest.mark.parametrize("which", NO_FLEET)
def test_what_is_not_possible_yet(which, tmp_path):
    limit, words = NO_FLEET[which]
    config = one_provider("http://127.0.0.1:1", [limit], settings={"fleet": {"redis": "redis://127.0.0.1:1"},
                                                                   "ledger": {"path": "l.db"}})
    path = tmp_path / "fleet.yaml"
    path.write_text(json.dumps(config))
    for verb in (["validate"], ["serve", "--config"]):
        done = subprocess.run([RATION, *verb, str(path)], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode != 0 and words in done.stdout + done.stderr


def test_no_recording_of_a_fleet(tmp_path):
    config = one_provider("http://127.0.0.1:1", settings={"fleet": {"redis": "redis://127.0.0.1:1"}})
    path = tmp_path / "fleet.yaml"
    path.write_text(json.dumps(config))
    done = subprocess.run([RATION, "serve", "--config", str(path), "--record", str(tmp_path / "r")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "a recording is of limits in memory" in done.stderr
    assert not (tmp_path / "r").exists()


# ---- secrets


def test_the_password_is_nowhere(provider, fleet, redis, monkeypatch):
    """Not when it is right, not when it is wrong, not when it is not there."""
    redis.ask("CONFIG", "SET", "requirepass", PASSWORD)
    monkeypatch.setenv("STORE_PASSWORD", PASSWORD)
    config = one_provider(provider(hello).url, [slots(1)], account={"credential": {"value": PASSWORD}})
    gw = fleet(config, settings={"passwordEnv": "STORE_PASSWORD"})
    assert gw.call("GET", "/a/x").status == 200
    redis.ask("-a", PASSWORD, "CONFIG", "SET", "requirepass", "another")
    redis.kill()
    redis.options = ("--requirepass", "another-of-the-store")
    redis.start()
    gw.until(lambda s: s["fleet"]["state"] == "down", "it is not let in")
    assert gw.call("GET", "/a/x")["Ration-Refused"] == "store_unavailable"
    gw.look_for_secrets()
    assert gw.stop() == 0
    monkeypatch.delenv("STORE_PASSWORD")
    done = subprocess.run([RATION, "serve", "--config", str(gw.config)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "the environment variable STORE_PASSWORD is not set" in done.stderr and PASSWORD not in done.stderr
