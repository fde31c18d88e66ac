# SPDX-License-Identifier: MIT
"""What the reference lists is what the code has, and the reverse."""

import re
import subprocess
import threading

import exposition
from house import RATION, ROOT, a_day, one_provider
from provider import hello

METRICS = ROOT / "docs/reference/metrics.md"
# What has no sample while there is nothing to tell.
ABSENT_AT_FIRST = ("ration_budget_rate", "ration_budget_projected", "ration_budget_exhaustion_eta_seconds")


def log_calls():
    """The literals of each call that writes a line, after its level."""
    for file in sorted((ROOT / "src").glob("*/*.c")):
        for call in re.finditer(r"\brn_log_(?:line|gated)\((.*?)\);", file.read_text(), re.S):
            if found := re.findall(r'"((?:[^"\\]|\\.)*)"', call[1]):
                yield file.name, found


def test_fields_of_lines():
    """Each field, and each message that stands where it is written."""
    page = (ROOT / "docs/reference/logs.md").read_text()
    calls = list(log_calls())
    assert len(calls) > 20
    for file, texts in calls:
        for text in texts:
            known = text.isupper() or f"`{text}`" in page or text.split(": ")[0] + ": …`" in page
            assert known, f"{file}: docs/reference/logs.md has no `{text}`"


# ---- metrics

TENANT = 'we"b\\ é}, x="'
BY_X = {"scope": {"by": ["account", "var:x"]}}
EVERY_KIND = [
    {"name": "daily", "kind": "quota", "max": 100, "sync": {"limitHeader": "X-Limit"}, "window": a_day(),
     **BY_X},
    {"name": "slots", "kind": "concurrency", "max": 9, **BY_X},
    {"name": "rate", "kind": "rate", "rate": "99/s", **BY_X},
    {"name": "level", "kind": "adaptive", "initialLimit": 9, **BY_X},
    {"name": "fair", "kind": "share", "ceiling": 9, "counts": "requests", "tenants": {TENANT: 1},
     "reclaimHorizon": "1s", "idleAfter": "9s", **BY_X},
]


def catalogue():
    """(name, type, labels, help) of each row of the page."""
    rows = re.findall(r"^\| `(ration_\w+)` \| (\w+) \| (.*?) ?\| (.+) \|$", METRICS.read_text(), re.M)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels)), text) for name, kind, labels, text in rows}


def test_metrics_are_in_the_catalogue(provider, gateway):
    """The reverse too. The page is what promtool takes, whatever stands in a key."""
    up = provider(lambda _, connection: connection.reply(200, {"X-Limit": "90"}))
    config = one_provider(up.url, EVERY_KIND, endpoints=["/{x}"], tenant=TENANT,
                          settings={"ledger": {"path": "kept.db"}}, breaker={"strategy": "consecutive", "threshold": 5})
    gw = gateway(config)
    assert gw.call("GET", "/a/1").status == 200
    families = exposition.read(gw.control("/metrics").body.decode())
    known = catalogue()
    rows = [f"| `{f.name}` | {f.type} | {f.help} |" for f in families.values() if f.name not in known]
    assert not rows, "docs/reference/metrics.md lacks:\n" + "\n".join(rows)
    assert set(known) == set(families), "no longer told"
    for family in families.values():
        kind, labels, text = known[family.name]
        assert (kind, text) == (family.type, family.help), family.name
        for suffix, sample in family.samples:
            assert {name for name, _ in sample if name != "le"} == labels, f"{family.name}{sample}"
        assert family.samples or family.name in ABSENT_AT_FIRST or "_fleet_" in family.name, family.name
    assert dict(next(iter(families["ration_share_deficit"].samples))[1])["tenant"] == TENANT


def test_five_thousand_keys_are_few_series(provider, gateway):
    """Keys are labels of the largest twenty, and everything is in the sum."""
    gw = gateway(one_provider(provider(hello).url, EVERY_KIND, endpoints=["/{x}"], tenant=TENANT))
    before = len(gw.control("/metrics").body)
    ask = "".join(f"GET /a/{n} HTTP/1.1\r\nHost: x\r\n\r\n" for n in range(5000))
    with gw.client() as client:
        sender = threading.Thread(target=client.send, args=(ask,))
        sender.start()
        assert all(client.answer("GET").status == 200 for _ in range(5000))
        sender.join()
    text = gw.control("/metrics").body.decode()
    used = exposition.read(text)["ration_budget_used"].samples
    assert len(used) == 21 and sum(used.values()) == 5000
    assert max(len(family.samples) for family in exposition.read(text).values()) <= 2 * 21
    assert len(text) < before + 50_000


def test_what_is_ignored_is_told_by_what_it_tells(provider, gateway):
    up = provider(lambda _, connection: connection.reply(429, {"X-Limit": "nan", "Retry-After": "soon"}))
    gw = gateway(one_provider(up.url, EVERY_KIND[:1], endpoints=["/{x}"]))
    assert gw.call("GET", "/a/1").status == 429
    samples = gw.metrics()
    assert samples['ration_sync_rejected_total{what="limit"}'] == 1
    assert samples['ration_sync_rejected_total{what="retry_after"}'] == 1
    assert samples['ration_sync_rejected_total{what="remaining"}'] == 0
    assert samples['ration_rate_limited_total{provider="p",limit="daily"}'] == 1
    assert samples['ration_rate_limited_total{provider="p",limit=""}'] == 0


# ---- versions


def test_versions():
    """What the page says is what the binary says, and what the files are."""
    said = subprocess.run([RATION, "version"], capture_output=True, text=True, check=True).stdout.splitlines()
    page = (ROOT / "docs/reference/versions.md").read_text()
    assert said[0].split()[0] == "ration"
    assert dict(line.split() for line in said[1:]) == dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.M))
    numbers = dict(line.split() for line in said[1:])
    assert f"`libration.so.{numbers['abi']}`" in page
    assert f"`ration:{numbers['redis']}:…`" in page
    assert f"ledger_v{numbers['ledger']}.sql" in page
    assert f"PRAGMA user_version = {numbers['ledger']}" in (ROOT / "tests/e2e/ledger_v1.sql").read_text()
