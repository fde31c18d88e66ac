# SPDX-License-Identifier: MIT
"""The official `openai` client before the gateway, a provider in the shape of that API behind it.

Only the client's base URL is changed. `scripts/deps test` installs it, in the version that tests/clients pins.
"""

import json
import os
import shutil
import subprocess

import pytest
from house import DEADLINE, ROOT
from simulated import Client, simulator

PACKAGE = ROOT / ".cache" / "npm" / "node_modules" / "openai"
WORKERS = 50
KEY = "sk-the-accounts-real-one"

# 50 workers with answers in 0.3 s would make 165 calls of some 10 000 tokens a second: three times as many as may be.
# What the bursts leave in hand is how long a busy machine may hold a granted call up on its way.
PACED = [
    {"name": "requests", "initialMax": 100000},
    {"name": "tokens", "initialMax": 100000000},
    {"name": "rpm", "kind": "rate", "rate": "50/s", "burst": 150, "margin": 100, "scope": {"by": ["account"]}},
    {"name": "tpm", "kind": "rate", "counts": "cost", "rate": "3300/s", "burst": 8000, "margin": 5500,
     "scope": {"by": ["account"]}},
]
# The same by the provider file's own windows of a minute.
BY_MINUTES = [{"name": "requests", "initialMax": 3000}, {"name": "tokens", "initialMax": 200000}]
# However slow the client's machine is, 300 calls are too many for this.
SCARCE = [*PACED[:2], {**PACED[2], "rate": "1/s", "burst": 20, "margin": 0}, {**PACED[3], "rate": "100/s", "margin": 0}]

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (PACKAGE / "package.json").exists(),
    reason="no openai client: scripts/deps test installs it",
)


def config(url, limits):
    return {
        "settings": {"queue": {"wait": "10m"}},
        "providers": [{"use": "openai", "baseUrl": f"{url}/v1", "limits": limits}],
        "accounts": [{"name": "a", "provider": "openai",
                      "credential": {"header": "Authorization", "value": f"Bearer {KEY}"}}],
    }


def provider(folder, limits):
    options = ("--shape", "openai", "--latency", "300ms+-100ms")
    return simulator(folder, json.dumps(config("http://provider.example", limits)), *options)


def client(url, workers, calls, retries, key="sk-the-clients-own"):
    """What came of it."""
    script = ROOT / "tests" / "e2e" / "openai_client.mjs"
    arguments = [str(argument) for argument in ("node", script, PACKAGE, url, key, workers, calls, retries)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=20 * DEADLINE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("limits,calls", [
    pytest.param(PACED, 6, id="paced"),
    pytest.param(BY_MINUTES, 160, id="by-minutes", marks=pytest.mark.skipif(
        os.environ.get("MINUTES") != "1", reason="takes three minutes of the clock: MINUTES=1")),
])
def test_it_is_never_told_to_slow_down(tmp_path, gateway, limits, calls):
    spent = {"name": "spent", "kind": "quota", "counts": "cost", "max": 100000000, "window": {"rolling": "24h"},
             "scope": {"by": ["account"]}}
    with provider(tmp_path, limits) as port:
        gw = gateway(config(f"http://127.0.0.1:{port}", [*limits, spent]))
        told = client(f"http://127.0.0.1:{gw.port}/a", WORKERS, calls, 2)
        counts = Client(port, None).counts()
        status = gw.until_idle()
    assert told["failures"] == []
    assert (told["calls"], told["streams"]) == (WORKERS * calls, WORKERS * calls // 2)
    assert told["words"] == told["completionTokens"]
    # Each call was made once, by the account's credential, and let in.
    assert (counts["requests"], counts["ok"], counts["rateLimited"]) == (WORKERS * calls, WORKERS * calls, 0)
    assert list(counts["credentials"]) == ["client-1"] and counts["rejected"] == 0
    # To the token: what the answers told, what the provider counted, what the quota has.
    used = {limit["limit"]: limit["used"] for limit in status["limits"] if "used" in limit}["spent"]
    assert used == counts["usage"]["totalTokens"] == told["tokens"]
    metrics = gw.metrics()
    assert metrics['ration_costs_settled_total{source="pointer"}'] == WORKERS * calls
    # They did wait: without that the limits were never reached.
    assert metrics["ration_wait_seconds_sum"] > 10


def test_without_a_gateway_it_is(tmp_path):
    """The same client straight to the same provider: what the test above shows is the gateway's doing."""
    with provider(tmp_path, SCARCE) as port:
        url = f"http://127.0.0.1:{port}/v1"
        told = client(url, 3, 1, 0)
        assert [failure["status"] for failure in told["failures"]] == [401] * 3
        told = client(url, WORKERS, 6, 0, KEY)
        counts = Client(port, None).counts()
    refused = [failure for failure in told["failures"] if failure["status"] == 429]
    assert len(refused) == counts["rateLimited"] > 0
    assert {failure["type"] for failure in refused} <= {"requests", "tokens"}
    assert told["tokens"] == counts["usage"]["totalTokens"]
