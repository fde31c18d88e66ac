# SPDX-License-Identifier: MIT
"""Reload on SIGHUP and by POST /v1/reload: all of a config or nothing of it, and nobody's call is lost."""

import contextlib
import copy
import json
import signal
import subprocess
import threading

import pytest
from api import Api
from house import DEADLINE, RATION, Client, one_provider, slots, until
from provider import hello
from test_events import Stream
from test_refusals import now, quota, refusal

RATE = {"name": "rate", "kind": "rate", "rate": "1/h", "burst": 3, "margin": 0, "scope": {"by": ["account"]}}
SECRET = "planted-secret-7f3a"


class Gate:
    """A handler that holds calls to /hold until it is opened, and remembers what came."""

    def __init__(self):
        self.open = threading.Event()
        self.credentials = []

    def __call__(self, request, connection):
        request.body()
        self.credentials.append(request["Authorization"])
        if "/hold" in request.target:
            assert self.open.wait(60)
        connection.reply(200, {}, b"" if request.method == "HEAD" else b"fine\n")


def write(gw, config):
    gw.config.write_text(config if isinstance(config, str) else json.dumps(config))


def reload(gw, config):
    """By the API; the answer, which is as openapi.yaml says."""
    write(gw, config)
    return Api(gw).post("reload", {})


def attempts(gw):
    counts = gw.status()["config"]
    return counts["reloads"] + counts["failures"]


def hangup(gw, config):
    """By the signal; the counts afterwards."""
    before = attempts(gw)
    write(gw, config)
    gw.signal(signal.SIGHUP)
    return gw.until(lambda s: s["config"]["reloads"] + s["config"]["failures"] > before, "reloaded")["config"]


def changes(answer):
    assert answer.status == 200, answer.body
    return {"/".join(filter(None, (row["kind"], row.get("provider"), row["name"]))): row["change"]
            for row in answer.json()["changes"]}


def rows(gw):
    """What limits are and have counted."""
    names = ("limit", "key", "kind", "max", "used", "held", "available", "remaining")
    return [{name: row[name] for name in names if name in row} for row in gw.status()["limits"]]


def row_of(gw, limit, key="a"):
    (row,) = [row for row in gw.status()["limits"] if row["limit"] == limit and row["key"] == key]
    return row


# ---- one call after the other


def test_what_has_changed_is_told(provider, gateway):
    config = one_provider(provider(hello).url, [slots(3), quota(5)])
    config["tenants"] = {"x": 1, "y": 2}
    gw = gateway(config)
    stream = Stream(gw)
    assert changes(reload(gw, config)) == {}
    changed = copy.deepcopy(config)
    changed["providers"][0]["limits"] = [slots(4), {**quota(5), "name": "other"}]
    changed["providers"].append({"name": "q", "baseUrl": "http://127.0.0.1:9"})
    changed["accounts"].append({"name": "b", "provider": "q"})
    changed["accounts"][0]["credential"] = {"value": SECRET}
    changed["tenants"] = {"x": 3, "z": 2}
    changed["settings"]["token"] = "t" + SECRET
    assert changes(reload(gw, changed)) == {
        "account/a": "changed", "account/b": "added", "limit/p/daily": "removed", "limit/p/other": "added",
        "limit/p/slots": "changed", "provider/q": "added", "settings/settings": "changed", "tenant/x": "changed",
        "tenant/y": "removed", "tenant/z": "added"}
    assert gw.control("/metrics").status == 401 and gw.call("GET", "/a/x").status == 403
    events = [stream.next("operator") for _ in range(2)]
    assert [(e["did"], e["by"], e["added"], e["removed"], e["changed"]) for e in events] == [
        ("reloaded", "api", 0, 0, 0), ("reloaded", "api", 4, 2, 4)]
    stream.close()
    write(gw, config)
    gw.signal(signal.SIGHUP)
    gw.line('msg="the config was read anew" by=SIGHUP .*added=2 removed=4 changed=4 what="account a changed, account b')
    assert SECRET not in gw.text()
    assert gw.metrics()['ration_config_reloads_total{result="success"}'] == 3


def test_nothing_is_refilled(provider, gateway):
    """Counts and levels go on under another size; what is new is fresh."""
    config = one_provider(provider(hello).url, [RATE, quota(4)])
    gw = gateway(config)
    for _ in range(3):
        assert gw.call("GET", "/a/x", now()).status == 200
    config["providers"][0]["limits"] = [{**RATE, "burst": 5}, quota(9)]
    assert changes(reload(gw, config)) == {"limit/p/rate": "changed", "limit/p/daily": "changed"}
    refusal(gw.call("GET", "/a/x", now()), 429, "rate_limited", "capacity", True, limit="rate")
    assert (row_of(gw, "daily")["used"], row_of(gw, "daily")["max"]) == (3, 9)
    config["providers"][0]["limits"] = [{**RATE, "name": "renamed"}, quota(4)]
    reload(gw, config)
    assert gw.call("GET", "/a/x", now()).status == 200
    refusal(gw.call("GET", "/a/x", now()), 429, "quota_exhausted", "budget", True, limit="daily")
    totals = gw.status()["totals"]
    assert (totals["granted"], totals["refused"]) == (4, 2)


def test_the_log_is_written_otherwise(provider, gateway):
    config = one_provider(provider(hello).url, [slots(3)])
    gw = gateway(config)
    config["settings"]["log"] = {"format": "json"}
    reload(gw, config)
    gw.line('^{"time":.*"msg":"the config was read anew"')
    config["settings"]["log"] = {"level": "error"}
    reload(gw, config)
    reload(gw, "{")
    gw.line("^time=.*level=error .*the config was not read anew")
    assert gw.text().count("the config was read anew") == 1


def test_a_limit_by_credential_goes_on(provider, gateway):
    """The salt of the keys is the process' own, so a key is the same after a reload."""
    limit = {**quota(2), "scope": {"by": ["credential"]}}
    config = one_provider(provider(hello).url, [limit], {"credential": {"value": SECRET}})
    gw = gateway(config)
    assert gw.call("GET", "/a/x").status == 200
    assert changes(reload(gw, config)) == {}
    assert gw.call("GET", "/a/x").status == 200
    assert gw.call("GET", "/a/x", now()).status == 429
    (row,) = rows(gw)
    config["accounts"][0]["credential"]["value"] = "another"
    assert changes(reload(gw, config)) == {"account/a": "changed"}
    assert gw.call("GET", "/a/x").status == 200
    assert {row["key"], *(one["key"] for one in rows(gw))} > {row["key"]}


# ---- calls under way, and calls that wait


@contextlib.contextmanager
def busy(gw, gate, held=2):
    """So many calls are held by the provider, and one waits for them."""
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(gw.client()) for _ in range(held)]
        waiting = stack.enter_context(gw.client())
        for client in running:
            client.ask("GET", "/a/hold")
        gw.until(lambda s: s["held"] == held, "they run")
        waiting.ask("GET", "/a/x")
        gw.until(lambda s: s["waiting"] == 1, "one waits")
        yield running, waiting
        gate.open.set()


def limit_is(*limits):
    def change(config):
        config["providers"][0]["limits"] = list(limits)
    return change


def no_account(config):
    config["accounts"] = [{"name": "b", "provider": "p"}]


def no_provider(config):
    config["providers"] = [{"name": "q", "baseUrl": config["providers"][0]["baseUrl"]}]
    config["accounts"] = [{"name": "b", "provider": "q"}]


def more_accounts(config):
    config["accounts"].append({"name": "b", "provider": "p"})


def other_weights(config):
    config["tenants"] = {"x": 7}


CHANGES = {
    "nothing": (lambda config: None, "waits"),
    "raised": (limit_is(slots(3)), "goes"),
    "lowered": (limit_is(slots(1)), "waits"),
    "renamed": (limit_is({**slots(2), "name": "places"}), "goes"),
    "removed": (limit_is(), "goes"),
    "added": (limit_is(slots(2), quota(9)), "waits"),
    "replaced": (limit_is(quota(2)), "goes"),
    "account-added": (more_accounts, "waits"),
    "account-removed": (no_account, "refused"),
    "provider-removed": (no_provider, "refused"),
    "weights": (other_weights, "waits"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_while_calls_run_and_wait(provider, gateway, kind):
    change, then = CHANGES[kind]
    gate = Gate()
    config = one_provider(provider(gate).url, [slots(2)])
    gw = gateway(config)
    with busy(gw, gate) as (running, waiting):
        change(config)
        assert hangup(gw, config)["failures"] == 0
        if then == "goes":
            assert waiting.answer().status == 200
        elif then == "refused":
            refusal(waiting.answer(), 404, "unknown_account", "caller", False, account="a")
        else:
            status = gw.status()
            assert (status["held"], status["waiting"]) == (2, 1)
            if kind == "lowered":
                assert (row_of(gw, "slots")["held"], row_of(gw, "slots")["max"]) == (2, 1)
        gate.open.set()
        if then == "waits":
            assert waiting.answer().status == 200
        assert [client.answer().status for client in running] == [200, 200]
    status = gw.until_idle()
    assert all(row.get("held", 0) == 0 for row in status["limits"])
    assert gw.call("GET", f"/{config['accounts'][-1]['name']}/x").status == 200


def test_who_waits_goes_by_the_new_account(provider, gateway):
    """Another credential and another base URL: what was sent is not sent again, what waits goes there."""
    old, new = Gate(), Gate()
    config = one_provider(provider(old).url, [slots(2)], {"credential": {"value": "Bearer one"}})
    gw = gateway(config)
    with busy(gw, old) as (running, waiting):
        config["accounts"][0]["credential"]["value"] = "Bearer two"
        config["providers"][0]["baseUrl"] = provider(new).url
        assert hangup(gw, config)["failures"] == 0
        old.open.set()
        assert [client.answer().status for client in [*running, waiting]] == [200] * 3
    assert old.credentials == ["Bearer one"] * 2
    assert new.credentials == ["Bearer two"]


def test_connections_and_their_counts_go_on(provider, gateway):
    one = provider(hello)
    config = one_provider(one.url, [slots(2)])
    gw = gateway(config)
    assert gw.call("GET", "/a/x").status == 200
    config["providers"][0]["limits"] = [slots(5)]
    reload(gw, config)
    assert gw.call("GET", "/a/x").status == 200
    assert one.connections == 1
    config["providers"][0]["timeouts"] = {"idle": "7s"}
    reload(gw, config)
    assert gw.call("GET", "/a/x").status == 200
    assert one.connections == 2
    counts = {name: value for name, value in gw.metrics().items() if name.startswith("ration_upstream_requests_total")}
    assert sorted(counts.values()) == [1, 2]


def test_a_body_that_is_read_for_its_cost(provider, gateway):
    """It is read by the rule that it began with; then its account has gone, or has another rule."""
    counts = {**quota(100), "counts": "cost"}
    config = one_provider(provider(hello).url, [counts], estimate={"pointer": "/n", "default": 7})
    gw = gateway(config)
    config["accounts"].append({"name": "b", "provider": "p"})
    reload(gw, config)
    body = b'{"n": 3, "more": "' + b"x" * 50 + b'"}'
    with gw.client() as stays, gw.client() as goes:
        for client, account in ((stays, "a"), (goes, "b")):
            client.send(f"POST /{account}/x HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n")
            client.send(body[:10])
        gw.until(lambda s: s["exchanges"]["estimating"] == 2, "they are read")
        config["accounts"].pop()
        config["providers"][0]["estimate"] = {"pointer": "/m", "default": 9}
        reload(gw, config)
        for client in (stays, goes):
            client.send(body[10:])
        assert stays.answer("POST").status == 200
        refusal(goes.answer("POST"), 404, "unknown_account", "caller", False)
    assert row_of(gw, "daily")["used"] == 3
    assert gw.call("POST", "/a/x", {}, b"{}").status == 200
    assert row_of(gw, "daily")["used"] == 12


def test_the_next_attempt_goes_by_the_new_config(provider, gateway):
    """It rests between two attempts; then its account is another, or has gone. Its job had a tenant for it."""

    def fails(request, connection):
        request.body()
        connection.reply(503, {"Retry-After": "1"}, b"busy\n")

    config = one_provider(provider(fails).url, [slots(2)], endpoints=["/x"], retries=2)
    config["accounts"].append({"name": "b", "provider": "p"})
    config["jobs"] = [{"name": f"of-{name}", "account": name, "endpoint": "GET /x", "interval": "1h", "tenant": "t"}
                      for name in "ab"]
    gw = gateway(config)
    with gw.client() as stays, gw.client() as goes:
        stays.ask("GET", "/a/x", {"Ration-Job": "of-a"})
        goes.ask("GET", "/b/x", {"Ration-Job": "of-b"})
        gw.until(lambda s: s["exchanges"]["resting"] == 2, "both rest")
        config["accounts"].pop()
        config["jobs"] = []
        config["providers"][0]["baseUrl"] = provider(hello).url
        for _ in range(3):
            reload(gw, config)
        assert stays.answer().status == 200
        answer = goes.answer()
        assert (answer.status, answer.body, answer["Ration-Refused"]) == (503, b"busy\n", None)


def test_leases_of_the_api(provider, gateway):
    """They live on under the names that they have; who waits for one is told what has become of its account."""
    config = one_provider(provider(hello).url, [slots(1)])
    config["accounts"].append({"name": "b", "provider": "p"})
    gw = gateway(config)
    api = Api(gw)
    kept, gone = api.granted({"account": "a"}), api.granted({"account": "b"})
    with api.client() as stays, api.client() as goes:
        api.ask(stays, "/v1/acquire", {"account": "a", "timeout": 20000})
        api.ask(goes, "/v1/acquire", {"account": "b", "timeout": 20000})
        api.until("waiters", lambda rows: len(rows) == 2, "both wait")
        config["accounts"].pop()
        for _ in range(3):
            reload(gw, config)
        answer = api.checked("POST", "/v1/acquire", goes.answer("POST"))
        assert (answer.status, answer.json()["account"]) == (404, "b")
        api.post("renew", {"lease": gone})
        api.release(gone)
        api.release(kept)
        lease = api.checked("POST", "/v1/acquire", stays.answer("POST")).json()["lease"]
    api.release(lease)


# ---- what providers and jobs are


def test_an_endpoint_has_another_template(provider, gateway):
    counts = {**quota(100), "counts": "cost", "scope": {"by": ["account", "var:org"]}}
    config = one_provider(provider(hello).url, [counts],
                          endpoints=[{"path": "/orgs/{org}/**", "cost": 2, "hold": "auto"}])
    gw = gateway(config)
    for _ in range(25):
        assert gw.call("GET", "/a/orgs/7/x").status == 200
    learned = gw.status()["holds"]
    assert learned[0]["samples"] == 25 and learned[0]["p95Ms"] > 0
    config["providers"][0]["endpoints"].append({"path": "/orgs/{org}/dear/**", "cost": 5})
    reload(gw, config)
    assert gw.status()["holds"] == learned
    assert gw.call("GET", "/a/orgs/7/dear/x").status == gw.call("GET", "/a/orgs/7/x").status == 200
    assert row_of(gw, "daily", "a/org=7")["used"] == 25 * 2 + 5 + 2
    config["providers"][0]["endpoints"] = [{"path": "/orgs/{org}/*", "cost": 1, "hold": "auto"}]
    reload(gw, config)
    assert [row.get("samples", 0) for row in gw.status()["holds"]] == [0]
    assert gw.call("GET", "/a/orgs/7/x").status == 200
    assert row_of(gw, "daily", "a/org=7")["used"] == 25 * 2 + 5 + 2 + 1


def test_a_call_under_way_teaches_its_heir(provider, gateway):
    gate = Gate()
    config = one_provider(provider(gate).url, [], hold="auto")
    gw = gateway(config)
    with gw.client() as running:
        running.ask("GET", "/a/hold")
        gw.until(lambda s: s["held"] == 1, "it runs")
        for _ in range(3):
            config["settings"]["drain"] = "7s" if config["settings"].get("drain") != "7s" else "8s"
            reload(gw, config)
        gate.open.set()
        assert running.answer().status == 200
    gw.until_idle()
    assert [row["samples"] for row in gw.status()["holds"]] == [1]


def test_a_circuit_stays_open_and_its_check_is_the_new_one(provider, gateway):
    asked = []

    def handler(request, connection):
        asked.append(request.target)
        connection.reply(200 if request.target == "/new" else 500)

    breaker = {"strategy": "consecutive", "threshold": 2, "recovery": "healthCheck",
               "backoff": {"delay": "300ms"}, "healthCheck": {"path": "/old"}}
    config = one_provider(provider(handler).url, [], breaker=breaker)
    gw = gateway(config)
    for _ in range(2):
        assert gw.call("GET", "/a/x").status == 500
    (circuit,) = gw.status()["breakers"]
    until(lambda: "/old" in asked, "it is asked")
    config["providers"][0]["breaker"] = {**breaker, "threshold": 9, "healthCheck": {"path": "/new"}}
    reload(gw, config)
    (after,) = gw.status()["breakers"]
    assert after["state"] == "closed" or (circuit["state"], after["state"]) == ("open", "open")
    assert "9 failures" not in after["cause"]
    gw.until(lambda s: s["breakers"][0]["state"] == "closed", "the new check has closed it")
    assert "/new" in asked
    assert gw.call("GET", "/a/new").status == 200


def test_jobs(provider, gateway):
    gate = Gate()
    day = {"name": "daily", "kind": "quota", "max": 24, "window": {"rolling": "24h"}, "scope": {"by": ["account"]}}
    config = one_provider(provider(gate).url, [day], endpoints=["/x", "/hold"])
    config["jobs"] = [{"name": name, "account": "a", "endpoint": "GET /x", "interval": "2h"} for name in ("k", "g")]
    gw = gateway(config)
    api = Api(gw)
    assert api.post("runs", {"job": "k", "requests": 4}).status == 200
    with gw.client() as keeps, gw.client() as goes:
        keeps.ask("GET", "/a/hold", {"Ration-Job": "k"})
        goes.ask("GET", "/a/hold", {"Ration-Job": "g"})
        gw.until(lambda s: s["held"] == 2, "they run")
        config["jobs"] = [{"name": "n", "account": "a", "endpoint": "GET /x", "interval": "8h"},
                          {"name": "k", "account": "a", "endpoint": "GET /x", "interval": "1h"}]
        assert changes(reload(gw, config)) == {"job/g": "removed", "job/n": "added", "job/k": "changed"}
        gate.open.set()
        assert keeps.answer().status == goes.answer().status == 200
    job = api.get("plan/jobs/k").json()
    assert (job["desiredMs"], api.get("plan/jobs/n").json()["desiredMs"]) == (3600e3, 8 * 3600e3)
    assert job["effectiveMs"] > 3600e3, "it still knows that a run has four requests"
    assert api.get("plan/jobs/g").status == 404
    assert gw.call("GET", "/a/x", {"Ration-Job": "g"}).status == 400
    assert gw.call("GET", "/a/x", {"Ration-Job": "n"}).status == 200


# ---- nothing, where anything is wrong


def unset(config, folder):
    config["accounts"][0]["credential"] = {"value": "${NO_SUCH_VARIABLE}"}
    return "NO_SUCH_VARIABLE"


def no_secret_file(config, folder):
    config["accounts"][0]["credential"] = {"value": f"${{file:{folder}/none}}"}
    return "none"


def two_faults(config, folder):
    config["accounts"][0]["provider"] = "nobody"
    config["providers"][0]["limits"][0]["maximum"] = 3
    return "maximum"


def no_include(config, folder):
    config["include"] = "nowhere"
    return "include"


def broken_include(config, folder):
    (folder / "more").mkdir(exist_ok=True)
    (folder / "more" / "one.yaml").write_text(
        f"accounts: [{{name: a2, provider: p, credential: {{value: {SECRET}}}, x: 1}}]")
    config["include"] = "more"
    return "more/one.yaml"


def settled(place, value):
    def change(config, folder):
        inner = config["settings"]
        for key in place[:-1]:
            inner = inner.setdefault(key, {})
        inner[place[-1]] = value
        return ".".join(("settings", *place))
    return change


WRONG = {
    "no-yaml": lambda config, folder: "{" + SECRET,
    "empty": lambda config, folder: "",
    "two-faults": two_faults,
    "unset-variable": unset,
    "no-secret-file": no_secret_file,
    "no-include": no_include,
    "broken-include": broken_include,
    "gateway-moved": settled(("listen", "gateway"), "127.0.0.1:7777"),
    "control-moved": settled(("listen", "control"), "unix:control.sock"),
    "ledger-moved": settled(("ledger", "path"), "elsewhere.db"),
    "instance": settled(("instance",), "another"),
}


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    """One gateway for all that changes nothing, with something counted."""
    from house import Gateway
    from provider import Provider
    one = Provider(hello)
    config = one_provider(one.url, [slots(3), quota(50)], {"credential": {"value": SECRET}})
    gw = Gateway(config, tmp_path_factory.mktemp("steady"))
    assert gw.call("GET", "/a/x").status == 200
    yield gw, config
    gw.close()
    one.close()
    assert SECRET not in gw.text()


@pytest.mark.parametrize("wrong", WRONG)
def test_a_broken_file_changes_nothing(steady, wrong):
    gw, config = steady
    before, counts = rows(gw), gw.status()["config"]
    config = copy.deepcopy(config)
    config["providers"][0]["limits"][0]["max"] = 9
    made = WRONG[wrong](config, gw.folder)
    text = made if wrong in ("no-yaml", "empty") else json.dumps(config)
    answer = reload(gw, text)
    assert (answer.status, answer.json()["type"]) == (422, "urn:ration:problem:config_invalid")
    assert SECRET.encode() not in answer.body
    told = answer.json()["faults"]
    assert all(fault["file"].startswith(str(gw.folder)) for fault in told)
    if wrong == "two-faults":
        assert len(told) == 2
    if text == json.dumps(config):
        assert any(made in json.dumps(fault) for fault in told), told
    if wrong != "empty":
        assert all(fault["line"] >= 1 and fault["column"] >= 1 for fault in told), told
    gw.signal(signal.SIGHUP)
    after = gw.until(lambda s: s["config"]["failures"] == counts["failures"] + 2, "tried")["config"]
    assert (after["failing"], after["loadedAt"], after["reloads"]) == (True, counts["loadedAt"], counts["reloads"])
    assert rows(gw) == before
    for fault in told:
        place = ":".join(str(fault[name]) for name in ("file", "line", "column") if name in fault)
        until(lambda: gw.text().count(f"config={place}") >= 2, f"{place} is logged twice")
        assert all("level=error" in line for line in gw.text().splitlines() if f"config={place}" in line)
    assert gw.metrics()["ration_config_last_reload_successful"] == 0


def test_a_strict_limit_without_a_ledger(provider, gateway):
    """The file has a ledger, the command line has none."""
    config = one_provider(provider(hello).url, [slots(3)], settings={"ledger": {"path": "ration.db"}})
    gw = gateway(config, "--ledger", "none")
    assert changes(reload(gw, config)) == {}
    config["providers"][0]["limits"].append({**quota(5), "durability": "strict"})
    (fault,) = reload(gw, config).json()["faults"]
    assert fault == {"file": str(gw.config), "text": "a strict limit needs a ledger, and this process keeps none"}
    assert [row["limit"] for row in rows(gw)] in ([], ["slots"])


def test_a_missing_file(provider, gateway):
    """It is back after that, and so is the gauge."""
    config = one_provider(provider(hello).url, [slots(3)])
    gw = gateway(config)
    gw.config.unlink()
    answer = Api(gw).post("reload", {})
    assert answer.status == 422 and answer.json()["faults"][0]["text"] == "the file cannot be read"
    stream = Stream(gw)
    gw.signal(signal.SIGHUP)
    event = stream.next("operator")
    told = (event["did"], event["by"], event["why"], event["faults"])
    assert told == ("reload_failed", "SIGHUP", "config_invalid", 1)
    stream.close()
    gw.config.mkdir()
    assert Api(gw).post("reload", {}).status == 422
    gw.config.rmdir()
    assert gw.metrics()["ration_config_last_reload_successful"] == 0
    assert changes(reload(gw, config)) == {}
    samples = gw.metrics()
    assert samples["ration_config_last_reload_successful"] == 1
    assert samples["ration_config_loaded_timestamp_seconds"] >= samples["ration_config_failed_timestamp_seconds"] > 0


def test_secrets_and_includes_are_read_anew(provider, gateway):
    gate = Gate()
    config = one_provider(provider(gate).url)
    gw = gateway(config)
    secret = gw.folder / "secret"
    secret.write_text("one")
    config["accounts"][0]["credential"] = {"value": f"Bearer ${{file:{secret}}}"}
    config["include"] = "more"
    (gw.folder / "more").mkdir()
    (gw.folder / "more" / "one.yaml").write_text("accounts: [{name: b, provider: p}]")
    reload(gw, config)
    assert gw.call("GET", "/a/x").status == gw.call("GET", "/b/x").status == 200
    secret.write_text("two")
    (gw.folder / "more" / "one.yaml").write_text("tenants: {x: 3}")
    assert changes(reload(gw, config)) == {
        "account/a": "changed", "account/b": "removed", "tenant/x": "added"}
    assert gw.call("GET", "/a/x").status == 200 and gw.call("GET", "/b/x").status == 404
    assert gate.credentials == ["Bearer one", None, "Bearer two"]


# ---- when


def test_not_while_it_drains(provider, gateway):
    config = one_provider(provider(hello).url, [slots(3)])
    gw = gateway(config)
    api = Api(gw)
    assert api.post("drain", {}).status == 200
    config["providers"][0]["limits"] = [slots(9)]
    answer = reload(gw, config)
    assert (answer.status, answer.json()["type"]) == (409, "urn:ration:problem:draining")
    gw.signal(signal.SIGHUP)
    gw.line('msg="the config was not read anew, nothing has changed" by=SIGHUP .*why="the process is shutting down"')
    assert gw.stop() == 0


def test_a_reload_amid_the_body_of_another(provider, gateway):
    config = one_provider(provider(hello).url, [slots(3)])
    gw = gateway(config)
    with Client(gw.control_port) as slow:
        slow.send("POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{")
        config["accounts"].append({"name": "b", "provider": "p"})
        assert changes(reload(gw, config)) == {"account/b": "added"}
        slow.send("}")
        answer = slow.answer("POST")
        assert (answer.status, answer.json()["changes"]) == (200, [])
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(Api(gw).post("reload", {}).status)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert answers == [200] * 8


class Load:
    """Clients that call again as soon as they are answered, until they are told to stop."""

    def __init__(self, gw, targets, fields=()):
        self.over = False
        self.answers = [[] for _ in targets]
        self.threads = [threading.Thread(target=self.run, args=(gw, target, fields, answers), daemon=True)
                        for target, answers in zip(targets, self.answers)]
        for thread in self.threads:
            thread.start()

    def run(self, gw, target, fields, answers):
        with gw.client() as client:
            while not self.over:
                try:
                    answers.append(client.call("GET", target, fields).status)
                except Exception as fault:  # whatever it is, the test shall show it
                    answers.append(repr(fault))
                    return

    def go_on(self, count=2):
        """Each has been answered so many times more."""
        before = [len(answers) for answers in self.answers]
        until(lambda: all(len(a) >= b + count for a, b in zip(self.answers, before)), "calls go on")

    def stop(self):
        self.over = True
        for thread in self.threads:
            thread.join(DEADLINE)
        return [status for answers in self.answers for status in answers]


def steps(config, other):
    """A config after the other, each with one kind of change more."""
    provider, account = config["providers"][0], config["accounts"][0]
    day = quota(1000000)
    for limits in ([slots(9), day], [slots(1), day], [{**slots(3), "name": "places"}, day],
                   [slots(2), {**slots(4), "name": "places"}, day], [slots(2), day]):
        provider["limits"] = limits
        yield
    account["credential"] = {"value": "Bearer two"}
    yield
    provider["baseUrl"] = other
    yield
    provider["timeouts"] = {"idle": "9s"}
    yield
    provider["endpoints"] = [{"path": "/{what}", "hold": "auto"}]
    yield
    provider["breaker"] = {"strategy": "consecutive", "threshold": 5}
    yield
    config["tenants"] = {"x": 3}
    yield
    config["accounts"].append({"name": "c", "provider": "q"})
    config["providers"].append({"name": "q", "baseUrl": other})
    yield
    config["accounts"].pop()
    config["providers"].pop()
    yield
    config["settings"]["queue"] = {"order": "fifo"}
    yield


def test_under_load(provider, gateway, tmp_path):
    """Every kind of change one after the other, broken files between them: all are answered, nothing is forgotten."""
    record = tmp_path / "record.jsonl"
    config = one_provider(provider(hello).url, [slots(3), quota(1000000)])
    gw = gateway(config, "--record", str(record))
    load = Load(gw, ["/a/x"] * 6)
    load.go_on()
    for _ in steps(config, provider(hello).url):
        assert hangup(gw, "{")["failing"]
        assert hangup(gw, config)["failing"] is False
        load.go_on()
    statuses = load.stop()
    gw.until_idle()
    assert set(statuses) == {200}
    assert row_of(gw, "daily")["used"] == len(statuses) == gw.status()["totals"]["granted"]
    assert gw.status()["totals"]["errors"] == 0
    assert gw.stop() == 0
    done = subprocess.run([RATION, "replay", "--verify", record], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout
    assert sum('"op":"reload"' in line for line in record.read_text().splitlines()) >= 2 * 14


def test_a_storm_of_hangups(provider, gateway):
    config = one_provider(provider(hello).url, [slots(2), quota(1000000)])
    gw = gateway(config)
    load = Load(gw, ["/a/x"] * 4)
    load.go_on()
    for i in range(100):
        config["providers"][0]["limits"][0]["max"] = 1 + i % 3
        fresh = gw.folder / "fresh"
        fresh.write_text(json.dumps(config))
        fresh.rename(gw.config)
        gw.signal(signal.SIGHUP)
    config["providers"][0]["limits"][0]["max"] = 7
    assert hangup(gw, config)["failures"] == 0
    gw.until(lambda s: s["limits"][0]["max"] == 7, "the last one holds")
    load.go_on()
    statuses = load.stop()
    gw.until_idle()
    assert set(statuses) == {200}
    assert row_of(gw, "daily")["used"] == len(statuses)


# ---- what is kept


def test_the_ledger_goes_on(provider, gateway):
    """What was counted before a reload and after it is there after a kill, a strict mark included."""
    strict_day = {**quota(100), "durability": "strict"}
    config = one_provider(provider(hello).url, [quota(50, name="loose")], {"credential": {"value": SECRET}},
                          {"ledger": {"path": "ration.db", "flush": "1h"}})
    gw = gateway(config)
    for _ in range(2):
        assert gw.call("GET", "/a/x").status == 200
    config["providers"][0]["limits"].append(strict_day)
    config["settings"]["ledger"]["flush"] = "10ms"
    reload(gw, config)
    for _ in range(3):
        assert gw.call("GET", "/a/x").status == 200
    asked = gw.status()["now"]
    gw.until(lambda s: s["now"] - s["ledger"]["ageMs"] > asked, "written")
    gw.kill()
    gw.ended = True
    gw = gateway(config)
    assert gw.call("GET", "/a/x").status == 200
    assert row_of(gw, "loose")["used"] == 6
    assert 4 <= row_of(gw, "daily")["used"]
