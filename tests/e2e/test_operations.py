# SPDX-License-Identifier: MIT
"""The control port, recordings, starting and stopping."""

import json
import os
import re
import signal
import socket
import subprocess
import threading

import exposition
import pytest
from house import RATION, Client, Gateway, Process, a_day, one_provider, slots, until
from provider import hello


# ---- the control port


def test_health(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    for page in ("/healthz", "/readyz"):
        assert gw.control(page).status == 200
        assert gw.control(page, "HEAD").body == b""
    assert gw.control("/readyz?verbose").status == 200


def test_pages_that_are_not_there(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    for page in ("/ui", "/v1", "/metrics/", "/v1/status/x", "//metrics"):
        answer = gw.control(page)
        assert (answer.status, answer["Content-Type"]) == (404, "application/problem+json")
    answer = gw.control("/metrics", "POST")
    assert (answer.status, answer["Allow"]) == (405, "GET, HEAD")


def test_what_the_control_port_does_not_read(provider, gateway):
    """As the gateway, and before a token is looked for: heads without bounds, and other protocols."""
    gw = gateway(one_provider(provider(hello).url))
    for data, status in ((b"X: " + b"x" * 70000 + b"\r\n", 431), (b"X: 1\r\n" * 300, 431),
                         (b"Connection: upgrade\r\nUpgrade: websocket\r\n", 501), (b"X : 1\r\n", 400)):
        with Client(gw.control_port) as client:
            answer = client.send(b"GET /v1/status HTTP/1.1\r\nHost: g\r\n" + data + b"\r\n").answer()
            assert answer.status == status
    with Client(gw.control_port) as client:
        assert client.send(b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\nHost: g\r\n\r\n").answer().status == 414


def test_status(provider, gateway):
    up = provider(hello)
    limits = [
        slots(7),
        {"name": "rate", "kind": "rate", "rate": "10/h", "burst": 10, "scope": {"by": ["account"]}},
        {"name": "daily", "kind": "quota", "max": 100, "window": {"rolling": "1h"}, "scope": {"by": ["account"]}},
    ]
    gw = gateway(one_provider(up.url, limits))
    assert gw.call("GET", "/a/").status == 200
    status = gw.until_idle()
    assert status["version"] == subprocess.check_output([RATION, "version"], text=True).split()[1]
    assert status["uptimeMs"] == pytest.approx(status["now"] - status["startedAt"], abs=0.001)
    assert status["draining"] is False
    assert status["totals"]["granted"] == status["totals"]["released"] == 1
    assert status["upstream"]["open"] == status["upstream"]["idle"] == 1
    assert "recording" not in status
    assert status["penalties"] == []
    held, rate, daily = status["limits"]
    assert (held["limit"], held["kind"], held["key"], held["max"], held["held"]) == ("slots", "concurrency", "a", 7, 0)
    assert (rate["limit"], rate["kind"]) == ("rate", "rate") and 9 <= rate["available"] < 9.1
    assert (daily["limit"], daily["max"], daily["used"], daily["remaining"]) == ("daily", 100, 1, 99)


def test_status_shows_penalties(provider, gateway):
    up = provider(lambda request, connection: connection.reply(429, {"Retry-After": "60"}))
    gw = gateway(one_provider(up.url, [slots(7)]))
    gw.call("GET", "/a/")
    (penalty,) = gw.until_idle()["penalties"]
    assert (penalty["penalty"], penalty["limit"], penalty["events"]) == ("a", "slots", 1)


def test_a_long_penalty_is_told_to_the_operator(provider, gateway):
    up = provider(lambda request, connection: connection.reply(429, {"Retry-After": "7200"}))
    gw = gateway(one_provider(up.url, [slots(7)]))
    gw.call("GET", "/a/")
    gw.line('level=warn msg="a long penalty" limit=slots key=a until=')


def test_lines_in_json(provider, gateway):
    """Whatever a client puts into a name, each line is one object."""
    up = provider(lambda request, connection: connection.reply(429, {"Retry-After": "7200"}))
    limit = {"name": "by-x", "kind": "concurrency", "max": 9, "scope": {"by": ["var:x"]}}
    config = one_provider(up.url, [limit], endpoints=["/{x}"], settings={"log": {"format": "json"}})
    gw = gateway(config)
    assert gw.call("GET", "/a/%22%5C%0A%1B%5B2J%C2%9B%C3%A9%FF").status == 429
    gw.line("a long penalty")
    assert gw.stop() == 0
    said = [json.loads(line, parse_constant=pytest.fail) for line in gw.lines if line is not None]
    assert {line["msg"] for line in said} >= {"listening", "a long penalty", "draining", "stopped"}
    for line in said:
        assert list(line)[:3] == ["time", "level", "msg"]
        assert line["level"] in ("info", "warn", "error")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", line["time"])


def test_metrics_are_well_formed(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [slots(7)]))
    for _ in range(3):
        gw.call("GET", "/a/")
    answer = gw.control("/metrics")
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    exposition.read(answer.body.decode())
    samples = gw.metrics()
    assert samples["ration_grants_total"] == 3
    assert samples["ration_wait_seconds_count"] == samples['ration_wait_seconds_bucket{le="+Inf"}'] == 3
    assert samples['ration_responses_total{class="2xx"}'] == 3
    assert samples["ration_requests_total"] == 3


def test_the_control_port_asks_for_the_token(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, settings={"token": "s3cret"}))
    for page in ("/metrics", "/v1/status", "/nothing"):
        for value in (None, "Bearer", "Bearer wrong", "Basic s3cret", "s3cret"):
            answer = gw.control(page, fields={} if value is None else {"Authorization": value})
            assert (answer.status, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert gw.control("/healthz").status == 200
    for value in ("Bearer s3cret", "bearer  s3cret"):
        assert gw.control("/v1/status", fields={"Authorization": value}).status == 200
    gw.status = lambda: gw.control("/v1/status", fields={"Authorization": "Bearer s3cret"}).json()
    assert b"s3cret" not in gw.control("/v1/status", fields={"Authorization": "Bearer s3cret"}).body


def test_unix_sockets(provider, gateway, tmp_path):
    listen = {"gateway": f"unix:{tmp_path}/gateway.sock", "control": f"unix:{tmp_path}/control.sock"}
    config = one_provider(provider(hello).url, settings={"listen": listen})
    config_file = tmp_path / "ration.yaml"
    config_file.write_text(json.dumps(config))
    process = Process([RATION, "serve", "--config", str(config_file)])
    try:
        process.line("msg=listening")
        for path, target, body in (("gateway", "/a/", b"hello\n"), ("control", "/healthz", b"ok\n")):
            client = Client.__new__(Client)
            client.socket = socket.socket(socket.AF_UNIX)
            client.socket.settimeout(30)
            client.socket.connect(f"{tmp_path}/{path}.sock")
            client.file = client.socket.makefile("rb")
            with client:
                assert client.call("GET", target).body == body
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
        assert not os.path.exists(tmp_path / "gateway.sock")
    finally:
        process.kill()


# ---- starting


def fails(folder, config, status, words):
    file = folder / "ration.yaml"
    file.write_text(config if isinstance(config, str) else json.dumps(config))
    done = subprocess.run([RATION, "serve", "--config", str(file)], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (status, ""), done
    assert re.search(words, done.stderr), done.stderr


def test_a_listener_for_others_needs_a_token(tmp_path):
    listen = {"gateway": "0.0.0.0:0", "control": "127.0.0.1:0"}
    config = one_provider("http://127.0.0.1:1", settings={"listen": listen})
    file = tmp_path / "ration.yaml"
    file.write_text(json.dumps(config))
    done = subprocess.run([RATION, "serve", "--config", str(file)], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "token" in done.stderr


def test_an_address_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = {"gateway": f"127.0.0.1:{taken.getsockname()[1]}", "control": "127.0.0.1:0"}
        fails(tmp_path, one_provider("http://127.0.0.1:1", settings={"listen": listen}), 2, "in use")


def test_a_broken_config(tmp_path):
    fails(tmp_path, "providers: [{nmae: p}]", 1, r"ration\.yaml:1:\d+: .*nmae")


def test_no_config(tmp_path):
    done = subprocess.run([RATION, "serve"], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "ration.yaml" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--config"], ["--nope"], ["x", "y"], ["x", "--config", "y"], [""], ["--record"]]
)
def test_arguments(tmp_path, arguments):
    done = subprocess.run([RATION, "serve", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "usage: ration serve" in done.stderr


def test_a_recording_that_cannot_be_written(tmp_path):
    file = tmp_path / "ration.yaml"
    file.write_text(json.dumps(one_provider("http://127.0.0.1:1")))
    arguments = [RATION, "serve", "--config", str(file), "--record", str(tmp_path / "no" / "such")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr


# ---- stopping


def test_a_running_call_ends_before_the_process_does(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.chunk("first")
        assert go.wait(60)
        connection.chunk("last")
        connection.send("0\r\n\r\n")

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    idle = gw.client()
    assert idle.call("GET", "/nobody/").status == 404
    with gw.client() as running, gw.client() as waiting:
        running.ask("GET", "/a/1")
        assert running.head()[0] == 200
        assert running.chunk() == b"first"
        waiting.ask("GET", "/a/2")
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
        gw.signal(signal.SIGTERM)
        gw.line("msg=draining")
        assert idle.is_closed()
        until(lambda: gw.control("/readyz").status == 503, "it says that it is not ready")
        assert gw.control("/healthz").status == 200
        with pytest.raises(ConnectionError):
            gw.client()
        answer = waiting.answer()
        assert (answer.status, answer["Ration-Refused"]) == (503, "draining"), "who waits may go elsewhere"
        assert float(answer["Ration-Waited"]) >= 0 and answer["Retry-After"] is None
        go.set()
        assert running.chunk() == b"last"
    gw.ended = True
    assert gw.wait() == 0


@pytest.mark.parametrize("how", ["SIGTERM", "operator"])
def test_who_still_sends_a_body_is_refused(provider, gateway, how):
    """Nothing was decided on it yet, so it holds nothing up, and hears at once where it stands."""
    go = threading.Event()

    def handler(request, connection):
        assert go.wait(60)
        connection.reply()

    gw = gateway(one_provider(provider(handler).url, [slots(5)], estimate={"pointer": "/n", "default": 1},
                              settings={"drain": "1h"}))
    with gw.client() as running, gw.client() as told, gw.client() as chunked:
        running.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the call runs")
        told.ask("POST", "/a/2", {"Content-Length": "100"}).send(b'{"n":')
        chunked.ask("POST", "/a/3", {"Transfer-Encoding": "chunked"}).send(b'5\r\n{"n":\r\n')
        gw.until(lambda s: s["exchanges"]["estimating"] == 2, "their bodies are read")
        if how == "SIGTERM":
            gw.signal(signal.SIGTERM)
        else:
            assert gw.control("/v1/drain", "POST", {"Content-Type": "application/json"}, b"{}").status == 200
        for client in (told, chunked):
            answer = client.answer()
            assert (answer.status, answer["Ration-Refused"]) == (503, "draining")
        go.set()
        assert running.answer().status == 200
    assert (gw.wait() if how == "SIGTERM" else gw.stop()) == 0
    gw.ended = True


def test_a_request_that_comes_too_late_is_refused(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        assert go.wait(60)
        connection.reply()

    gw = gateway(one_provider(provider(handler).url, [slots(5)]))
    with gw.client() as running, gw.client() as late:
        running.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the call runs")
        late.send("GET /a/2 HTTP/1.1\r\n")
        gw.until(lambda s: s["connections"]["open"] == 2, "both are connected")
        gw.signal(signal.SIGTERM)
        gw.line("msg=draining")
        try:
            answer = late.send("Host: g\r\n\r\n").answer()
            assert (answer.status, answer["Ration-Refused"], answer["Retry-After"]) == (503, "draining", None)
        except (EOFError, ConnectionError):
            pass  # closed as idle: a client sends it again elsewhere
        go.set()
        assert running.answer().status == 200
    gw.ended = True
    assert gw.wait() == 0


@pytest.mark.parametrize("drain", ["100ms", "0s"])
def test_the_drain_time_is_a_bound(provider, gateway, drain):
    up = provider(lambda request, connection: connection.closed())
    gw = gateway(one_provider(up.url, [slots(1)], settings={"drain": drain}))
    with gw.client() as running, gw.client() as waiting:
        running.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the call runs")
        waiting.ask("GET", "/a/2")
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
        assert gw.stop() == 0
        assert running.is_closed()
        assert waiting.answer()["Ration-Refused"] == "draining", "it is told, and not cut off"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(provider, gateway, number):
    up = provider(lambda request, connection: connection.closed())
    gw = gateway(one_provider(up.url, [slots(1)]))
    with gw.client() as running:
        running.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the call runs")
        gw.signal(number)
        gw.line("msg=draining")
        gw.signal(number)
        gw.ended = True
        assert gw.wait() == 1
        assert running.is_closed()
    assert "broken=1" in gw.text()


def test_what_a_limit_has_to_say(provider, gateway):
    """Whose it is, who waits for it, and what a shadow limit would have done."""
    shadow = {"name": "tried", "kind": "rate", "rate": "1/h", "enforce": "shadow", "scope": {"by": ["account"]}}
    go = threading.Event()

    def handler(request, connection):
        go.wait(60)
        connection.reply(200, {}, "x")

    gw = gateway(one_provider(provider(handler).url, [slots(1), shadow]))
    with gw.client() as running, gw.client() as waiting:
        running.ask("GET", "/a/")
        gw.until(lambda s: s["held"] == 1, "the first runs")
        waiting.ask("GET", "/a/")
        rows = gw.until(lambda s: s["waiting"] == 1, "the second waits")["limits"]
        told = [(row["limit"], row["provider"], row["waiting"]) for row in rows]
        assert told == [("slots", "p", 1), ("tried", "p", 0)]
        go.set()
        assert running.answer().status == waiting.answer().status == 200
    status = gw.status()
    assert "shadowed" not in status["limits"][0]
    assert status["limits"][1]["shadowed"] == status["totals"]["shadowed"] == 1
    assert gw.metrics()["ration_shadowed_total"] == 1


# ---- the clock

STEPPED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at)
{
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    const int status = real(id, at);
    FILE *file = id == CLOCK_REALTIME ? fopen(getenv("STEP_FILE"), "r") : NULL;
    long seconds = 0;
    if (file != NULL && fscanf(file, "%ld", &seconds) == 1)
        at->tv_sec += seconds;
    if (file != NULL)
        fclose(file);
    return status;
}
"""


@pytest.mark.skipif("asan" in RATION, reason="the sanitizer wants to be loaded first")
def test_steps_of_the_wall_clock(provider, tmp_path, monkeypatch):
    """An hour forward and back again: limits hold, nothing freezes, both are told, and it replays.

    A window goes by the wall clock, so it is another one after the step. A bucket earns nothing for time that did not
    pass.
    """
    source, library, step = tmp_path / "step.c", tmp_path / "step.so", tmp_path / "step"
    source.write_text(STEPPED)
    step.write_text("0")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("STEP_FILE", str(step))
    limits = [{"name": "calls", "kind": "rate", "rate": "1/m", "burst": 2, "margin": 0, "scope": {"by": ["account"]}},
              {"name": "daily", "kind": "quota", "max": 9, "window": a_day(), "arrival": 0,
               "scope": {"by": ["account"]}}]
    file = tmp_path / "calls.jsonl"
    gw = Gateway(one_provider(provider(hello).url, limits), tmp_path, "--record", str(file))
    monkeypatch.delenv("LD_PRELOAD")
    try:
        assert [gw.call("GET", "/a/", {"Ration-Timeout": "0"}).status for _ in range(3)] == [200, 200, 429]
        before = gw.status()["limits"][1]
        assert before["used"] == 2
        step.write_text("86400")
        gw.line('msg="the wall clock was set" direction=forward')
        after = gw.status()["limits"][1]
        assert after["used"] == 0 and after["windowStart"] >= before["windowStart"] + 86400_000
        answer = gw.call("GET", "/a/", {"Ration-Timeout": "0"})
        assert answer.status == 429 and 0 < int(answer["Retry-After"]) <= 60
        step.write_text("0")
        until(lambda: gw.metrics()['ration_clock_steps_total{direction="backward"}'] == 1, "the step back is seen")
        answer = gw.call("GET", "/a/", {"Ration-Timeout": "0"})
        assert answer.status == 429 and int(answer["Retry-After"]) <= 60
        gw.line('msg="the wall clock was set" direction=backward')
    finally:
        gw.close()
    assert replay(file).returncode == 0


# ---- recordings


def replay(path):
    return subprocess.run([RATION, "replay", "--verify", str(path)], capture_output=True, text=True, timeout=60)


TINY = """
{"op":"config","startedAt":0,"providers":[{"name":"p","limits":[{"name":"s","kind":"concurrency","max":1}]}],\
"accounts":[{"name":"a","provider":"p"}]}
{"at":1,"op":"acquire","id":"x","account":"a"}
{"at":1,"op":"acquire","id":"x","result":"granted"}
{"at":2,"op":"release","id":"x","outcome":"success"}
{"at":2,"op":"release","id":"x","result":"released"}
"""[1:].replace("\\\n", "").splitlines(keepends=True)


@pytest.mark.parametrize("text, status, words", [
    ("", 2, "no answer stands in it to be verified: it is empty, or has been cut"),
    ("\n\n", 2, "no answer stands in it"),
    (TINY[0], 2, "no answer stands in it"),
    ("".join(TINY[:2]), 1, "recorded: nothing"),
    ("".join(TINY[:4]), 1, "recorded: nothing"),
    ("".join(TINY)[:-2], 2, ":5:"),
    ("".join(TINY)[:-20], 2, ":5:"),
    ("".join(TINY[:3]), 0, "1 lines come out as recorded"),
    ("".join(TINY)[:-1], 0, "2 lines come out as recorded"),
    ("".join(TINY), 0, "2 lines come out as recorded"),
], ids=["empty", "blank", "only a config", "no answers", "no last answer", "cut", "cut more", "shorter", "no line feed",
        "whole"])
def test_verify_of_what_is_not_whole(tmp_path, text, status, words):
    file = tmp_path / "calls.jsonl"
    file.write_text(text)
    done = replay(file)
    assert (done.returncode, words in done.stdout + done.stderr) == (status, True), (done.stdout, done.stderr)


def test_a_recording_replays(provider, gateway, tmp_path):
    """Grants, waits, refusals, 429s, quota headers, clients that leave: decided again as they were."""
    count = iter(range(1000))

    def handler(request, connection):
        request.body()
        n = next(count)
        if n % 7 == 6:
            connection.reply(429, {"retry-after-ms": "30"}, "x")
        else:
            connection.reply(200, {"X-Limit": "100", "X-Left": str(90 - n)}, "x")

    limits = [
        slots(3),
        {"name": "rate", "kind": "rate", "rate": "100/s", "burst": 3, "scope": {"by": ["account"]}},
        {
            "name": "daily",
            "kind": "quota",
            "max": 100,
            "window": a_day("America/New_York"),
            "scope": {"by": ["account"]},
            "sync": {"limitHeader": "X-Limit", "remainingHeader": "X-Left"},
        },
    ]
    file = tmp_path / "calls.jsonl"
    credential = {"header": "Authorization", "value": "Bearer hidden-value"}
    config = one_provider(provider(handler).url, limits, account={"credential": credential})
    gw = gateway(config, "--record", str(file))

    def call(i):
        fields = {"Ration-Tenant": f"t{i % 3}", "Ration-Timeout": "0" if i % 5 == 0 else "5s"}
        with gw.client() as client:
            client.ask("GET", f"/a/{i}", fields)
            if i % 11 == 0:
                client.reset()
            else:
                client.answer()

    threads = [threading.Thread(target=call, args=(i,)) for i in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    gw.until_idle()
    recording = gw.status()["recording"]
    assert recording["file"] == str(file) and "error" not in recording
    assert gw.stop() == 0
    done = replay(file)
    assert done.returncode == 0, done
    text = file.read_text()
    assert "hidden-value" not in text
    assert text.count('"op":"acquire"') >= 60


def test_a_recording_survives_a_second_signal(provider, gateway, tmp_path):
    file = tmp_path / "calls.jsonl"
    up = provider(lambda request, connection: connection.closed())
    gw = gateway(one_provider(up.url, [slots(1)]), "--record", str(file))
    with gw.client() as running:
        running.ask("GET", "/a/1")
        gw.until(lambda s: s["held"] == 1, "the call runs")
        gw.signal(signal.SIGTERM)
        gw.line("msg=draining")
        gw.signal(signal.SIGTERM)
        gw.ended = True
        assert gw.wait() == 1
    assert replay(file).returncode == 0
    assert '"op":"acquire"' in file.read_text()


def test_the_recording_of_an_earlier_run_is_kept(provider, tmp_path):
    file = tmp_path / "calls.jsonl"
    up = provider(hello)
    for _ in range(2):
        gw = Gateway(one_provider(up.url), tmp_path, "--record", str(file))
        gw.call("GET", "/a/")
        gw.close()
    assert replay(file).returncode == replay(f"{file}.old").returncode == 0


def test_a_start_that_fails_leaves_recordings_alone(provider, gateway, tmp_path):
    file = tmp_path / "calls.jsonl"
    old = tmp_path / "calls.jsonl.old"
    up = provider(hello)
    for _ in range(2):
        gw = Gateway(one_provider(up.url), tmp_path, "--record", str(file))
        gw.call("GET", "/a/")
        gw.close()
    before = file.read_bytes(), old.read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = {"gateway": "127.0.0.1:0", "control": f"127.0.0.1:{taken.getsockname()[1]}"}
        config = tmp_path / "taken.json"
        config.write_text(json.dumps(one_provider(up.url, settings={"listen": listen})))
        done = subprocess.run([RATION, "serve", str(config), "--record", str(file)], capture_output=True, timeout=30)
    assert done.returncode == 2 and b"Address already in use" in done.stderr
    assert (file.read_bytes(), old.read_bytes()) == before
    gw = gateway(one_provider(up.url), "--record", str(file))
    done = subprocess.run([RATION, "serve", str(gw.config), "--record", str(file)], capture_output=True, timeout=30)
    assert done.returncode == 2 and b"another process records into it" in done.stderr


def test_a_full_disk_ends_the_recording_only(provider, gateway):
    gw = gateway(one_provider(provider(hello).url), "--record", "/dev/full")
    assert gw.call("GET", "/a/").status == 200
    status = gw.until(lambda s: "error" in s["recording"], "the fault shows")
    assert "No space left" in status["recording"]["error"]
    assert gw.call("GET", "/a/").status == 200
    gw.line("level=error msg=\"the recording has ended\"")
    assert gw.text().count("recording has ended") == 1


# ---- too much


def test_more_connections_than_descriptors(provider, tmp_path):
    """Beyond its bound the gateway says so at once, and serves those that it has."""
    up = provider(hello)
    script = 'ulimit -n 200; exec "$0" "$@"'
    config = one_provider(up.url, [slots(5)])
    config["settings"]["listen"] = {"gateway": "127.0.0.1:0", "control": "127.0.0.1:0"}
    file = tmp_path / "ration.yaml"
    file.write_text(json.dumps(config))
    process = Process(["bash", "-c", script, RATION, "serve", "--config", str(file)])
    try:
        found = process.line(r"msg=listening gateway=127\.0\.0\.1:(\d+) control=127\.0\.0\.1:(\d+)")
        clients = [Client(int(found[1])) for _ in range(150)]
        refused = 0
        for client in clients:
            try:
                answer = client.call("GET", "/a/")
                assert answer.status in (200, 503)
                refused += answer.status == 503
            except (EOFError, ConnectionError):
                refused += 1
        assert 0 < refused < 150
        with Client(int(found[2])) as control:
            assert control.call("GET", "/healthz").status == 200
        for client in clients:
            client.close()
        until(lambda: usable(int(found[1])), "there is room again")
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    finally:
        process.kill()


def usable(port):
    try:
        with Client(port) as client:
            return client.call("GET", "/a/").status == 200
    except (EOFError, ConnectionError):
        return False


@pytest.mark.parametrize("level, lines", [("info", 2), ("warn", 1), ("error", 1)])
def test_where_it_listens_is_told_at_every_level(provider, gateway, level, lines):
    """The fixture waits for that line. What else informs (of the ledger that was read) goes by the level."""
    settings = {"log": {"level": level}, "ledger": {"path": "kept.db"}}
    gw = gateway(one_provider(provider(hello).url, settings=settings))
    assert gw.call("GET", "/a/x").status == 200
    assert gw.stop() == 0
    assert len([line for line in gw.lines if line and re.search("ledger read|listening", line)]) == lines


def test_a_log_does_not_flood(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    with gw.client() as client:
        for _ in range(500):
            assert client.call("GET", "/nobody/").status == 404
    gw.call("GET", "/a/", {"Ration-Cost": "x"})
    gw.line("msg=rejected")
    assert gw.text().count("reason=unknown_account") < 10
