# SPDX-License-Identifier: MIT
"""Clients that are killed at any moment, and a gateway that is told to stop, both under load.

CLIENT_KILLS: how many connections are dropped, 150 if it does not say.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from house import RATION, ROOT, until
from simulated import Client as Watcher
from simulated import simulator

KILLS = int(os.environ.get("CLIENT_KILLS", "150"))
THREADS = 12
CALLS_A_PROCESS = 12
SLOTS = 6
MOST = 60  # tokens that an answer may have
KEY = "sk-the-accounts-real-one"


def config(url, durability, queues):
    """Fewer slots than callers, so that some wait; what is spent is kept.

    The slots are the gateway's alone: that a client was killed, the provider learns a moment later than the gateway.
    """
    slots = {"name": "slots", "kind": "concurrency", "max": SLOTS, "scope": {"by": ["account"]}}
    limits = [
        {"name": "requests", "initialMax": 1000000},
        {"name": "tokens", "initialMax": 1000000000},
        {"name": "spent", "kind": "quota", "counts": "cost", "max": 10000000, "window": {"rolling": "24h"},
         "durability": durability, "scope": {"by": ["account"]}},
        *([slots] if queues else []),
    ]
    return {
        "settings": {"ledger": {"path": "ration.db", "flush": "100ms"}, "queue": {"wait": "10m"}},
        "providers": [{"use": "openai", "baseUrl": f"{url}/v1", "limits": limits}],
        "accounts": [{"name": "a", "provider": "openai",
                      "credential": {"header": "Authorization", "value": f"Bearer {KEY}"}}],
    }


@pytest.fixture
def scene(tmp_path, gateway):
    """scene(durability, latency) -> a gateway, and a client that asks the provider behind it for its counts."""
    open_ones = []

    def start(durability, latency="40ms+-30ms"):
        file = config("http://provider.example", durability, False)
        provider = simulator(tmp_path, json.dumps(file), "--shape", "openai", "--latency", latency)
        port = provider.__enter__()
        open_ones.append(provider)
        return gateway(config(f"http://127.0.0.1:{port}", durability, True)), Watcher(port, None)

    yield start
    for provider in open_ones:
        provider.__exit__(None, None, None)


def ask(stream=True):
    """The bytes of a call."""
    usage = {"stream_options": {"include_usage": True}} if stream else {}
    asked = {"model": "m", "messages": [{"role": "user", "content": "x" * 40}], "max_completion_tokens": MOST, **usage}
    body = json.dumps({**asked, "stream": stream})
    return f"POST /a/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def in_ledger(folder):
    """What the ledger has of the quota: its count, and the sum of the parts of its window."""
    arguments = [RATION, "ledger", "export", str(folder / "ration.db")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    (row,) = [row for row in rows if row.get("limit") == "spent"]
    return row["used"], round(sum(units for _, units in row["parts"]), 6)


def counted(gw):
    return {limit["limit"]: limit.get("used") for limit in gw.status()["limits"]}["spent"]


# ---- clients that are killed


def killed(gw, chance, moment):
    """A connection that is dropped at that moment."""
    sent = ask(stream=moment == "streaming" or chance.random() < 0.5)
    with gw.client() as client:
        if moment == "uploading":
            sent = sent[:chance.randrange(1, len(sent))]
        client.send(sent)
        if moment == "streaming":
            client.file.read(chance.randrange(1, 1200))  # a stream is longer than that
        else:
            time.sleep(chance.random() * 0.05)
        if chance.random() < 0.5:
            client.reset()


def served(gw):
    with gw.client() as client:
        assert client.send(ask()).answer().status == 200


def kill_many(gw, seed):
    chance = random.Random(seed)
    for i in range(KILLS // THREADS + 1):
        if i % 6 == 5:
            served(gw)
        else:
            killed(gw, chance, chance.choice(["uploading", "waiting", "streaming"]))


def kill_processes(gw, count):
    script = ROOT / "tests" / "e2e" / "killed_client.py"
    chance = random.Random(count)
    for _ in range(count):
        arguments = [sys.executable, "-I", "-S", str(script), str(gw.port), str(CALLS_A_PROCESS)]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"sent\n"
        time.sleep(chance.random() * 0.1)
        process.kill()
        process.wait()
        process.stdout.close()


def together(functions):
    """Run them all; the first that failed fails the test."""
    faults = []

    def run(function):
        try:
            function()
        except Exception as fault:  # noqa: BLE001 - told below, whatever it was
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    if faults:
        raise faults[0]


@pytest.mark.parametrize("durability", ["relaxed", "strict"])
def test_nothing_stays_behind_a_killed_client(scene, tmp_path, durability):
    gw, provider = scene(durability)
    together([lambda seed=seed: kill_many(gw, seed) for seed in range(THREADS)]
             + [lambda: kill_processes(gw, max(3, KILLS // 100))])
    status = gw.until_idle()
    assert gw.control("/v1/leases").json() == {"leases": []}
    assert gw.control("/v1/waiters").json() == {"waiters": []}
    assert {limit["limit"]: limit.get("held") for limit in status["limits"]}["slots"] == 0
    assert status["totals"]["granted"] == status["totals"]["released"]
    until(lambda: provider.counts()["inFlight"] == 0, "the provider has none of them left")
    # They were killed at every stage.
    metrics = gw.metrics()
    assert metrics['ration_clients_gone_total{while="waiting"}'] > 0
    assert metrics['ration_clients_gone_total{while="running"}'] > 0
    used = counted(gw)
    assert used > 0
    until(lambda: in_ledger(tmp_path) == (used, used), "the ledger says what the counter does")
    assert gw.stop() == 0
    assert in_ledger(tmp_path) == (used, used)


# ---- a gateway that is told to stop


class Caller:
    """Calls one after the other until it is told that there is no more; how they ended."""

    def __init__(self, gw):
        self.gw = gw
        self.whole = self.draining = self.cut = 0
        self.tokens = 0

    def __call__(self):
        while self.draining == 0 and self.cut == 0:
            try:
                with self.gw.client() as client:
                    answer = client.send(ask()).answer()
            except (EOFError, ConnectionError):
                self.cut += 1  # not taken any more, for its answer would have been whole
                return
            if answer.status == 503:
                assert answer["Ration-Refused"] == "draining"
                self.draining += 1
                return
            assert answer.status == 200 and answer.body.endswith(b"data: [DONE]\n\n")
            self.whole += 1
            usage = json.loads(answer.body.split(b"\n\n")[-3].removeprefix(b"data: "))["usage"]
            self.tokens += usage["total_tokens"]


@pytest.mark.parametrize("durability", ["relaxed", "strict"])
def test_sigterm_under_load(scene, tmp_path, durability):
    """What was granted ends whole, who waits is told, and the ledger has it to the token."""
    gw, provider = scene(durability)
    callers = [Caller(gw) for _ in range(THREADS)]

    def stop():
        gw.until(lambda s: s["waiting"] > 0 and s["totals"]["granted"] > 30, "a queue, and calls under way")
        gw.signal(signal.SIGTERM)

    together([*callers, stop])
    gw.ended = True
    assert gw.wait() == 0, gw.text()
    counts = provider.counts()
    assert counts["ok"] == sum(caller.whole for caller in callers) > 30
    assert (counts["gone"], counts["inFlight"], counts["rateLimited"]) == (0, 0, 0)
    assert sum(caller.draining for caller in callers) > 0
    tokens = sum(caller.tokens for caller in callers)
    assert in_ledger(tmp_path) == (tokens, tokens) == (counts["usage"]["totalTokens"],) * 2


@pytest.mark.parametrize("durability", ["relaxed", "strict"])
def test_a_second_signal_under_load(scene, tmp_path, durability):
    """It ends at once. Who waited has been told, and what was granted is in the ledger with its estimate."""
    gw, provider = scene(durability, "10m")
    clients = [gw.client().send(ask()) for _ in range(2 * THREADS)]
    gw.until(lambda s: (s["held"], s["waiting"]) == (SLOTS, 2 * THREADS - SLOTS), "a queue, and calls under way")
    gw.signal(signal.SIGTERM)
    gw.line("msg=draining")
    gw.signal(signal.SIGTERM)
    gw.ended = True
    assert gw.wait() == 1
    told = []
    for client in clients:
        try:
            told.append(client.answer()["Ration-Refused"])
        except (EOFError, ConnectionError):
            told.append("cut")
        client.close()
    assert (told.count("draining"), told.count("cut")) == (2 * THREADS - SLOTS, SLOTS)
    until(lambda: provider.counts()["inFlight"] == 0, "the provider has none of them left")
    assert in_ledger(tmp_path) == (SLOTS * MOST, SLOTS * MOST)
