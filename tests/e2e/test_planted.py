# SPDX-License-Identifier: MIT
"""A secret of the config comes out nowhere; and the search that says so finds one that does."""

import base64
import contextlib
import json
import sqlite3
import subprocess
import threading
import urllib.parse

import planted
import pytest
from api import Api
from house import RATION, a_day, one_provider, slots
from provider import hello
from test_events import Stream

NASTY = 'p "w\\/%+ 5ecret-key-of-t3sts'
CORE = NASTY.split()[-1]


# ---- the search itself


@pytest.mark.parametrize("hidden", [
    CORE.encode(),
    b"before" + CORE.encode() + b"behind",
    *(base64.b64encode(b"x" * before + NASTY.encode() + b"y" * behind) for before in range(3) for behind in range(3)),
    base64.urlsafe_b64encode(b"Basic:" + NASTY.encode()),
    NASTY.encode().hex().encode(),
    NASTY.encode().hex().upper().encode(),
    urllib.parse.quote(NASTY, safe="").encode(),
    json.dumps({"x": NASTY}).encode(),
    json.dumps(json.dumps(NASTY)).encode(),
], ids=lambda value: f"form-{value[:12].decode()}")
def test_it_is_found(hidden):
    search = planted.Planted({"accounts": [{"credential": {"header": "X", "value": NASTY}}]})
    search.forget()
    with pytest.raises(AssertionError):
        search.look("here", b"some text " + hidden + b" and more")


def test_what_is_not_found():
    search = planted.Planted({"accounts": [{"name": "a", "credential": {"header": "X", "value": NASTY}}]})
    search.forget()
    search.look("here", b"5ecret-key-of-t3st and others")


def test_what_is_watched():
    config = {
        "settings": {"token": "Bearer of-a-token"},
        "providers": [{"name": "p", "proxy": "http://user:pa-ssword@127.0.0.1"}],
        "accounts": [{"name": "a"},
                     {"name": "b", "credential": {"header": "H-is-no-secret", "value": "Bearer its-own-key"}},
                     {"name": "c", "credential": {"header": "H", "value": "short"}}],
    }
    search = planted.Planted(config)
    search.forget()
    assert config["accounts"][0]["credential"]["value"].endswith(search.core)
    assert search.secrets == {"of-a-token", "pa-ssword", "its-own-key", search.core}


@pytest.mark.parametrize("at", [0, planted.PIECE - 5, planted.PIECE - 1, 3 * planted.PIECE])
def test_it_is_found_in_a_large_file(tmp_path, at):
    search = planted.Planted({"accounts": [{"credential": {"header": "X", "value": NASTY}}]})
    search.forget()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "core.1").write_bytes(b"\0" * at + CORE.encode() + b"\0" * 9)
    with pytest.raises(AssertionError, match="core.1"):
        search.look_below(tmp_path)


# ---- a gateway with everything that it may know and must not tell


def every_way(gw, token):
    """Calls that go well and badly, decisions, refusals, operators."""
    fields = {"Ration-Token": token, "Ration-Tenant": "web", "traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}
    for target in ("/a/fine", "/a/slow-down", "/a/broken", "/a/close", "/proxied/x", "/nobody/x", "/a/%zz"):
        with contextlib.suppress(EOFError, ConnectionError):
            gw.call("GET", target, fields)
    gw.call("GET", "/a/fine", {**fields, "Ration-Token": "wrong" + token[:3]})
    gw.call("GET", "/a/fine", {**fields, "Ration-Cost": "a lot"})
    gw.call("POST", "/a/fine", {**fields, "Ration-Timeout": "0"}, b"body")
    for account in ("a", "proxied"):
        gw.call("GET", f"/{account}/fine", {"Ration-Token": "cl1ent/t0ken+of=billing", "Ration-Priority": "critical"})
    api = Api(gw, token)
    lease = api.granted({"account": "a"})
    api.post("check", {"account": "a"})
    api.release(lease, outcome="failure")
    api.post("acquire", {"account": "b"})
    api.post("limits/slots/a/pause", {})
    api.post("limits/slots/a/resume", {})
    for page in planted.PAGES:
        gw.control(page)
        gw.control(page, fields={"Authorization": "Bearer wrong"})


def test_no_secret_comes_out(provider, gateway, tmp_path):
    seen = []

    def handler(request, connection):
        seen.append(request["X-Api-Key"])
        request.body()
        if request.target == "/broken":
            connection.send("HTTP/1.1 what\r\n\r\n")
            return False
        if request.target == "/close":
            return False
        connection.reply(429 if request.target == "/slow-down" else 200, {"Retry-After-Ms": "1"}, "x")

    token = "the-t0ken/of+the=gateway"
    quota = {"name": "daily", "kind": "quota", "max": 1000, "window": a_day(), "durability": "strict",
             "scope": {"by": ["credential"]}}
    config = one_provider(provider(handler).url, [slots(2), quota], account={
        "credential": {"header": "X-Api-Key", "value": NASTY}}, settings={"token": token})
    config["settings"]["ledger"] = {"path": "ration.db", "flush": "20ms"}
    config["providers"].append({"name": "q", "baseUrl": "http://127.0.0.1:1",
                                "proxy": "http://user:pr0xy-password@127.0.0.1:1"})
    config["accounts"].append({"name": "proxied", "provider": "q"})
    config["clients"] = [{"name": "billing", "token": "cl1ent/t0ken+of=billing", "accounts": ["a"]}]
    gw = gateway(config, "--record", str(tmp_path / "calls.jsonl"))
    gw.status = lambda: gw.control("/v1/status", fields={"Authorization": f"Bearer {token}"}).json()
    heard = b""
    with contextlib.closing(Stream(gw, token)) as events:
        listener = threading.Thread(target=lambda: [None for _ in range(6) if events.next()])
        listener.start()
        every_way(gw, token)
        listener.join(30)
        heard = events.lines
    assert NASTY in seen, "the provider is told"
    assert {CORE, token, "pr0xy-password", "cl1ent/t0ken+of=billing"} <= gw.planted.secrets
    gw.planted.look("the events", heard)
    gw.until(lambda s: s["ledger"]["flushes"] > 0, "it is kept")
    assert gw.stop() == 0
    assert '"op":"acquire"' in (tmp_path / "calls.jsonl").read_text()
    with sqlite3.connect(tmp_path / "ration.db") as ledger:
        assert "daily" in "\n".join(ledger.iterdump())
    for arguments in (["ledger", "show", "ration.db"], ["ledger", "export", "ration.db"],
                      ["replay", "--verify", "calls.jsonl"], ["validate", "ration.yaml"]):
        done = subprocess.run([RATION, *arguments], cwd=tmp_path, capture_output=True, timeout=60)
        assert done.returncode == 0, done
        gw.planted.look(arguments[0], done.stdout + done.stderr)


def test_faults_beside_a_secret_do_not_show_it(tmp_path):
    account = {"credential": {"header": "X-Key", "value": NASTY}, "nmae": "x"}
    config = one_provider("http://127.0.0.1:1", account=account)
    search = planted.Planted(config)
    search.forget()
    file = tmp_path / "ration.yaml"
    file.write_text(json.dumps(config))
    for command in ("validate", "serve", "simulate", "plan"):
        done = subprocess.run([RATION, command, str(file)], capture_output=True, timeout=60)
        shown = done.stdout + done.stderr
        assert done.returncode != 0 and b"nmae" in shown
        search.look(command, shown)
