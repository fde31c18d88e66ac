# SPDX-License-Identifier: MIT
"""What operators do: pause, resume, reset, grant, drain, over HTTP."""

import json
import subprocess

import pytest
from api import Api
from house import DEADLINE, RATION, a_day, one_provider, slots, until
from provider import hello
from test_events import Stream

DAILY = {"name": "daily", "kind": "quota", "max": 2, "window": a_day(), "scope": {"by": ["account"]}}
NOW = [("Ration-Timeout", "0")]


@pytest.fixture
def used(provider, gateway):
    """A gateway whose quota is used up."""
    gw = gateway(one_provider(provider(hello).url, [DAILY, slots(3)]))
    while gw.call("GET", "/a/x", NOW).status == 200:
        pass
    return gw, Api(gw)


def spent(gw):
    """What an operator could have changed."""
    names = ("limit", "max", "used", "remaining", "held", "paused", "extra")
    return [{name: limit.get(name) for name in names} for limit in gw.status()["limits"]]


def act(api, verb, body=None, limit="daily", key="a"):
    return api.post(f"limits/{limit}/{key}/{verb}", body or {})


def test_pause_and_resume(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [slots(3)]))
    api = Api(gw)
    assert gw.call("GET", "/a/x").status == 200
    assert act(api, "pause", limit="slots").json() == {"result": "paused"}
    answer = gw.call("GET", "/a/x", NOW)
    assert (answer.status, answer["Ration-Refused"], answer["Retry-After"]) == (503, "paused", None)
    with gw.client() as client:
        client.ask("GET", "/a/x")
        until(lambda: gw.status()["waiting"] == 1, "it waits")
        assert act(api, "resume", limit="slots").json() == {"result": "resumed"}
        assert client.answer("GET").status == 200
    gw.line("msg=\"an operator acted\" did=paused limit=slots key=a")


def test_reset(used):
    gw, api = used
    assert act(api, "reset").json() == {"result": "reset"}
    assert gw.call("GET", "/a/x", NOW).status == 200


def test_grant(used):
    gw, api = used
    assert act(api, "grant", {"units": 1}).json() == {"result": "granted"}
    assert gw.call("GET", "/a/x", NOW).status == 200
    assert gw.call("GET", "/a/x", NOW).status == 429
    most = {"units": 9007199253}
    assert act(api, "grant", most).status == 200
    answer = act(api, "grant", most)
    assert (answer.status, answer.json()["field"]) == (400, "units")


@pytest.mark.parametrize("verb, limit, key, body, status, name", [
    ("pause", "daily", "b", {}, 404, "unknown_key"),
    ("pause", "nothing", "a", {}, 404, "unknown_key"),
    ("pause", "daily", "%", {}, 400, "bad_request"),
    ("pause", "daily", "a", {"units": 1}, 400, "bad_request"),
    ("pause", "daily", "a", {"provider": "q"}, 404, "unknown_key"),
    ("grant", "daily", "a", {}, 400, "bad_request"),
    ("grant", "daily", "a", {"units": 0}, 400, "bad_request"),
    ("grant", "daily", "a", {"units": 0.5}, 400, "bad_request"),
    ("grant", "daily", "a", {"units": -1}, 400, "bad_request"),
    ("grant", "daily", "a", {"units": 1e300}, 400, "bad_request"),
    ("grant", "daily", "a", {"units": 9007199255}, 400, "bad_request"),
    ("grant", "slots", "a", {"units": 1, "provider": "p"}, 422, "not_grantable"),
    ("grant", "slots", "a", {"units": 1}, 422, "not_grantable"),
])
def test_what_cannot_be_done(used, verb, limit, key, body, status, name):
    gw, api = used
    before = spent(gw)
    answer = act(api, verb, body, limit, key)
    assert (answer.status, answer.json()["type"]) == (status, f"urn:ration:problem:{name}"), answer.json()
    assert spent(gw) == before


def test_whose_limit(provider, gateway):
    """Two providers have a limit of that name: it must be said whose."""
    config = one_provider(provider(hello).url, [slots(3)])
    config["providers"].append({"name": "q", "baseUrl": provider(hello).url, "limits": [slots(3)]})
    config["accounts"].append({"name": "b", "provider": "q"})
    gw = gateway(config)
    api = Api(gw)
    assert gw.call("GET", "/a/x").status == gw.call("GET", "/b/x").status == 200
    answer = act(api, "pause", limit="slots")
    assert (answer.status, answer.json()["field"]) == (400, "provider")
    assert act(api, "pause", {"provider": "p"}, limit="slots").status == 200
    assert gw.call("GET", "/a/x", NOW).status == 503 and gw.call("GET", "/b/x", NOW).status == 200


def test_operators_are_heard(used):
    gw, api = used
    stream = Stream(gw)
    act(api, "grant", {"units": 2, "provider": "p"})
    event = stream.next("operator")
    assert {name: event[name] for name in ("did", "limit", "key", "units")} == {
        "did": "granted", "limit": "daily", "key": "a", "units": 2}
    stream.close()


def test_drain(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [slots(3)]))
    api = Api(gw)
    assert gw.call("GET", "/a/x").status == 200
    assert act(api, "pause", limit="slots").status == 200
    with gw.client() as client:
        client.ask("GET", "/a/x")
        until(lambda: gw.status()["waiting"] == 1, "it waits")
        assert api.post("drain", {}).json() == {"result": "draining"}
        assert client.answer("GET")["Ration-Refused"] == "draining"
    assert gw.control("/readyz").status == 503
    answer = gw.call("GET", "/a/x")
    assert (answer.status, answer["Ration-Refused"]) == (503, "draining")
    assert api.post("acquire", {"account": "a"}).status == 503
    assert gw.status()["draining"] is True
    assert api.post("drain", {}).json() == {"result": "draining"}
    assert gw.stop() == 0
    gw.ended = True


def test_all_of_it_stands_in_a_recording(provider, gateway, tmp_path):
    record = tmp_path / "record.jsonl"
    gw = gateway(one_provider(provider(hello).url, [DAILY, slots(3)]), "--record", str(record))
    api = Api(gw)
    gw.call("GET", "/a/x")
    for verb, body in (("pause", {}), ("resume", {}), ("reset", {}), ("grant", {"units": 1})):
        assert act(api, verb, body).status == 200
    api.post("drain", {})
    assert gw.stop() == 0
    gw.ended = True
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    verbs = ("pause", "resume", "reset", "grant", "drain")
    assert [line["op"] for line in lines if line.get("op") in verbs and "result" not in line] == [
        "pause", "resume", "reset", "grant", "drain", "drain"]  # the last is SIGTERM's
    done = subprocess.run([RATION, "replay", "--verify", record], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout
