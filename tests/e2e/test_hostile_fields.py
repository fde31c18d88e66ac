# SPDX-License-Identifier: MIT
"""Words that mean ill, from either side: nothing of them is believed that is not so, and none breaks a document."""

import json
import subprocess

import pytest
from house import RATION, a_day, one_provider, until

SYNC = {"limitHeader": "X-Limit", "remainingHeader": "X-Remaining", "resetHeader": "X-Reset"}
QUOTA = {"name": "quota", "kind": "quota", "max": 1000000, "window": a_day(), "scope": {"by": ["account"]}}
HUGE = b"9" * 5000

HOSTILE = [
    b"",
    b"-1",
    b"-9223372036854775809",
    b"9223372036854775808",
    b"99999999999999999999999999",
    b"NaN",
    b"Infinity",
    b"1e308",
    b"0x10",
    b"1,000",
    b"12 34",
    b"+5",
    b"\xff\xfe\x80",
    "\u0665".encode(),
    b'"5"',
    b"5;5;5",
    b"%s%n%x",
    b"Thu, 99 Foo 9999 99:99:99 GMT",
    b"1970-01-01T00:00:00Z",
    b"9999999-01-01T00:00:00Z",
    b"P9999999999Y",
    HUGE,
    b"-" + HUGE,
    b"0." + HUGE,
    b'"' + HUGE,
    b",".join([b'"p";r=5;t=9'] * 500),
]


def reply(connection, *fields, status=b"200 OK"):
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in fields)
    connection.send(b"HTTP/1.1 " + status + b"\r\n" + lines + b"Content-Length: 2\r\n\r\nok")


def verified(file):
    done = subprocess.run([RATION, "replay", "--verify", str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "names",
    [
        (b"X-Limit",),
        (b"X-Remaining", b"X-Reset"),
        (b"RateLimit", b"RateLimit-Policy"),
        (b"Retry-After", b"Date", b"X-Reset"),
    ],
    ids=lambda names: names[0].decode(),
)
def test_quota_fields(provider, gateway, tmp_path, names):
    """The client gets them as they are; the quota goes on; the recording says the same again."""

    def handler(request, connection):
        value = HOSTILE[int(request.target[1:])]
        reply(connection, *[(name, value) for name in names], *[(name, value) for name in reversed(names)])

    limits = [
        {**QUOTA, "max": "auto", "initialMax": 1000000, "sync": SYNC},
        {**QUOTA, "name": "standard", "sync": {"standard": True}},
    ]
    gw = gateway(one_provider(provider(handler).url, limits), "--record", str(tmp_path / "calls.jsonl"))
    for at, value in enumerate(HOSTILE):
        answer = gw.call("GET", f"/a/{at}", {"Ration-Timeout": "0"})
        assert answer.status == 200, (value[:50], answer.body)
        assert answer.all(names[0].decode())[0].encode("latin-1") == value.strip()
    for limit in gw.status()["limits"]:
        assert 0 <= limit.get("used", 0) <= 1000000, limit
    assert gw.stop() == 0
    verified(tmp_path / "calls.jsonl")


def test_a_wait_without_an_end(provider, gateway):
    """`maxPenalty` bounds what a provider can do to us with one field."""
    told = iter(HOSTILE + [None] * 1000)

    def handler(request, connection):
        value = next(told)
        if value is None:
            reply(connection)
        else:
            reply(connection, (b"Retry-After", value), status=b"429 Too Many Requests")

    gw = gateway(one_provider(provider(handler).url, errors={"rateLimited": {"maxPenalty": "50ms"}}))
    statuses = []

    def settled():
        answer = gw.call("GET", "/a/x", {"Ration-Timeout": "5s"})
        statuses.append(answer.status)
        assert answer.status in (200, 429)
        return answer.status == 200

    until(settled, "all penalties are over")
    assert statuses.count(429) >= len(HOSTILE)


PER_ORG = {**QUOTA, "name": "per-org", "max": 1, "scope": {"by": ["var:org"]}}


@pytest.mark.parametrize(
    "org",
    ["%ff%fe", "%00", "%22%5c", "%0d%0aSet-Cookie:x", "%1b[2J", "%c0%ae", "%ed%a0%80", "%zz%", "a%", "%f0%9f%92%a9",
     "%e2%80%ae", "<script>", "{org}", "x" * 2000],
    ids=lambda org: org[:12],
)  # fmt: skip
def test_variables_in_paths(provider, gateway, tmp_path, org):
    """What stands in a key is shown in documents, logs and recordings, whatever it is."""
    up = provider(lambda request, connection: reply(connection))
    config = one_provider(up.url, [PER_ORG], endpoints=["/orgs/{org}/**"])
    gw = gateway(config, "--record", str(tmp_path / "calls.jsonl"))
    fields = {"Ration-Timeout": "0"}
    first = gw.call("GET", f"/a/orgs/{org}/x", fields)
    assert first.status in (200, 400, 414), first.body
    if first.status == 200:
        answer = gw.call("GET", f"/a/orgs/{org}/y", fields)
        assert answer.status == 429
        document = json.loads(answer.body.decode("utf-8"))
        assert document["key"].startswith("org=")
        assert len(up.requests) == 1
    gw.status()
    gw.metrics()
    assert not [c for c in gw.text() if ord(c) < 32 and c != "\n"]
    assert gw.stop() == 0
    for line in (tmp_path / "calls.jsonl").read_bytes().splitlines():
        json.loads(line.decode("utf-8"))
    verified(tmp_path / "calls.jsonl")


@pytest.mark.parametrize(
    "name, value",
    [
        ("Ration-Tenant", "\xff\xfe"),
        ("Ration-Tenant", "x" * 257),
        ("Ration-Class", "\xed\xa0\x80"),
        ("Ration-Cost", "-1"),
        ("Ration-Cost", "1e400"),
        ("Ration-Cost", "NaN"),
        ("Ration-Cost", "0.0000001"),
        ("Ration-Cost", "99999999999999999999"),
        ("Ration-Cost", "\u0661".encode().decode("latin-1")),
        ("Ration-Hold", "99999999999999999999"),
        ("Ration-Hold", "-1s"),
        ("Ration-Timeout", "1e9"),
        ("Ration-Timeout", "0x10"),
        ("Ration-Retry", "TRUE"),
        ("Ration-Priority", "critical\t"),
        ("Ration-", "x"),
    ],
)
def test_directives(provider, gateway, name, value):
    up = provider(lambda request, connection: reply(connection))
    gw = gateway(one_provider(up.url, [QUOTA]))
    answer = gw.call("GET", "/a/", {name: value})
    if value == "critical\t":
        assert answer.status == 200
        return
    assert answer.status == 400
    assert json.loads(answer.body.decode("utf-8"))["title"]
    assert up.requests == []
    assert gw.status()["totals"]["errors"] == 0


def test_quota_fields_of_a_kept_answer_do_not_leak(provider, gateway):
    """A field of one answer is never read into another call of the same connection."""

    def handler(request, connection):
        reply(connection, *([(b"X-Limit", b"7"), (b"X-Remaining", b"0")] if request.target == "/full" else []))

    other = {**QUOTA, "sync": SYNC, "scope": {"by": ["endpoint"]}}
    gw = gateway(one_provider(provider(handler).url, [other], endpoints=["/full", "/free"]))
    assert gw.call("GET", "/a/full").status == 200
    assert gw.call("GET", "/a/free").status == 200
    assert gw.call("GET", "/a/free", {"Ration-Timeout": "0"}).status == 200
    assert gw.call("GET", "/a/full", {"Ration-Timeout": "0"}).status == 429
