# SPDX-License-Identifier: MIT
"""Circuit breakers: nginx stopped and started again, what opens a circuit and what does not, health checks."""

import contextlib
import select
import socket
import subprocess
import threading
import time

import pytest
from house import DEADLINE, free_port, one_provider, slots, until
from provider import hello
from test_outside import NGINX, listens
from test_refusals import now, quota, refusal

DELAY_MS = 1000
SLACK_MS = 10000  # of a busy machine


def breaker(threshold=3, **more):
    return {"strategy": "consecutive", "threshold": threshold, "backoff": {"delay": f"{DELAY_MS}ms"}, **more}


CHECKED = {"recovery": "healthCheck", "healthCheck": {"path": "/ping"}}


def circuit(gw):
    (one,) = gw.status()["breakers"]
    return one


def is_state(state):
    return lambda status: [one["state"] for one in status["breakers"]] == [state]


def fail(gw, count, status):
    for _ in range(count):
        assert gw.call("GET", "/a/").status == status


# ---- nginx, stopped and started

CONF = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 256; }}
http {{
    access_log {folder}/access.log; client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 "well"; }} location /ping {{ return 204; }} }}
}}
"""


class Nginx:
    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        (folder / "nginx.conf").write_text(CONF.format(folder=folder, port=self.port))

    def start(self):
        self.process = subprocess.Popen(
            [NGINX, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), "-g", "user root;"],
            stderr=subprocess.DEVNULL,
        )
        until(lambda: listens(self.port), "nginx listens")

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(DEADLINE)
            self.process = None

    def asked(self, path):
        return sum(f" {path} " in line for line in (self.folder / "access.log").read_text().splitlines())


@pytest.fixture
def nginx(tmp_path):
    if NGINX is None:
        pytest.skip("no nginx")
    one = Nginx(tmp_path)
    one.start()
    yield one
    one.stop()


def open_it(gw, nginx):
    """nginx is stopped; three calls find out, the fourth is refused at once."""
    assert gw.call("GET", "/a/").body == b"well"
    assert circuit(gw)["state"] == "closed"
    nginx.stop()
    fail(gw, 3, 502)
    connects = gw.status()["upstream"]["connects"]
    began = time.monotonic()
    answer = gw.call("GET", "/a/", {"Ration-Timeout": "30s"})
    took_ms = (time.monotonic() - began) * 1000
    problem = refusal(answer, 503, "circuit_open", "provider", True, key="a", account="a")
    assert "limit" not in problem
    assert 0 < problem["retryAfterMs"] <= DELAY_MS and answer["Retry-After"] == "1"
    assert took_ms < SLACK_MS, f"refused after {took_ms} ms, although it may wait"
    return connects


def well_after(gw, nginx):
    """nginx is back: milliseconds until a call succeeds, and what was answered until then."""
    nginx.start()
    began = time.monotonic()
    answers = []
    while True:
        answer = gw.call("GET", "/a/")
        if answer.status == 200:
            return (time.monotonic() - began) * 1000, answers
        answers.append(answer["Ration-Refused"])
        assert time.monotonic() - began < DEADLINE, answers
        time.sleep(0.02)


def check_the_log(gw, states):
    """One line for each change, in order."""
    lines = [line for line in gw.text().splitlines() if "msg=\"circuit" in line]
    assert [line.partition('msg="circuit ')[2].partition('"')[0] for line in lines] == states, lines
    assert all("key=a" in line for line in lines)


def test_recovery_by_a_probe(nginx, gateway):
    gw = gateway(one_provider(nginx.url, [slots(4)], breaker=breaker()))
    connects = open_it(gw, nginx)
    for _ in range(3):
        time.sleep(DELAY_MS / 1000)
        gw.until(is_state("half-open"), "a probe may go")
        assert gw.call("GET", "/a/").status == 502, "the probe fails"
        assert circuit(gw)["state"] == "open"
        assert gw.call("GET", "/a/").status == 503
    assert gw.status()["upstream"]["connects"] == connects + 3, "one probe each time, and nothing else"
    took_ms, answers = well_after(gw, nginx)
    assert took_ms <= DELAY_MS + SLACK_MS, f"{took_ms} ms after nginx was back; {answers}"
    assert set(answers) <= {"circuit_open"}
    status = gw.until(is_state("closed"), "closed")
    assert "retryAt" not in status["breakers"][0]
    assert gw.metrics()['ration_breaker_state{provider="p",key="a"}'] == 0
    check_the_log(gw, ["open", *["half-open", "open"] * 3, "half-open", "closed"])


def test_recovery_by_a_health_check(nginx, gateway):
    """Nobody calls while the circuit is open; the gateway itself finds out."""
    gw = gateway(one_provider(nginx.url, [slots(4)], breaker=breaker(**CHECKED)))
    open_it(gw, nginx)
    gw.until(lambda s: s["totals"]["healthChecks"]["unhealthy"] >= 2, "it looks again and again")
    assert circuit(gw)["state"] == "open"
    assert gw.metrics()['ration_breaker_state{provider="p",key="a"}'] == 2
    nginx.start()
    began = time.monotonic()
    gw.until(is_state("closed"), "closed")
    took_ms = (time.monotonic() - began) * 1000
    assert took_ms <= DELAY_MS + SLACK_MS, f"{took_ms} ms after nginx was back"
    assert nginx.asked("/ping") == 1
    assert gw.call("GET", "/a/").status == 200
    check_the_log(gw, ["open", "closed"])
    assert "a health check failed" in gw.text()


def test_the_back_off_grows(provider, gateway):
    up = provider(lambda request, connection: connection.reply(500))
    policy = breaker(1, backoff={"initial": "500ms", "multiplier": 3, "max": "1s"})
    gw = gateway(one_provider(up.url, [slots(4)], breaker=policy))
    for want_ms in (500, 1000, 1000):
        fail(gw, 1, 500)
        problem = refusal(gw.call("GET", "/a/"), 503, "circuit_open", "provider", True)
        assert want_ms - 450 < problem["retryAfterMs"] <= want_ms
        gw.until(is_state("half-open"), "a probe may go")


# ---- what opens a circuit, and what does not


def test_saturation_opens_nothing(provider, gateway):
    """Our own refusals, time-outs while waiting, clients that leave, 429s of the provider: none is a failure."""
    go = threading.Event()
    status = [429]

    def handler(request, connection):
        if request.target == "/hold":
            go.wait(60)
            connection.reply(200)
        else:
            connection.reply(status[0])

    errors = {"rateLimited": {"defaultPenalty": "1ms", "maxPenalty": "1ms"}}
    gw = gateway(one_provider(provider(handler).url, [slots(1)], breaker=breaker(1), errors=errors))
    with gw.client() as client:
        client.ask("GET", "/a/hold")
        gw.until(lambda s: s["held"] == 1, "the slot is taken")
        for _ in range(20):
            assert gw.call("GET", "/a/", now())["Ration-Refused"] == "concurrency_full"
            assert gw.call("GET", "/a/", {"Ration-Timeout": "1ms"})["Ration-Refused"] == "deadline"
        go.set()
        assert client.answer().status == 200
    go.clear()
    leaver = gw.client().ask("GET", "/a/hold")
    gw.until(lambda s: s["held"] == 1, "it runs")
    leaver.close()
    gw.until_idle()
    go.set()
    for _ in range(20):
        answer = gw.call("GET", "/a/")
        assert (answer.status, answer["Ration-Refused"]) == (429, None)
    assert circuit(gw)["state"] == "closed"
    assert circuit(gw)["generation"] == 1
    assert "circuit" not in gw.text()
    status[0] = 500
    fail(gw, 1, 500)
    assert circuit(gw)["state"] == "open", "and a failure is one"


def test_an_outcome_of_ones_own(provider, gateway):
    """`outcome` says what is a failure: 404 here, and 500 is none."""
    status = [500]
    up = provider(lambda request, connection: connection.reply(status[0]))
    gw = gateway(one_provider(up.url, [slots(1)], breaker=breaker(1), outcome={"failure": [404]}))
    fail(gw, 3, 500)
    assert circuit(gw)["state"] == "closed"
    status[0] = 404
    fail(gw, 1, 404)
    assert circuit(gw)["state"] == "open"


def test_time_outs_are_failures(provider, gateway):
    go = threading.Event()
    up = provider(lambda request, connection: go.wait(60) and False)
    gw = gateway(one_provider(up.url, [slots(4)], breaker=breaker(2), timeouts={"firstByte": "100ms"}))
    fail(gw, 2, 504)
    refusal(gw.call("GET", "/a/"), 503, "circuit_open", "provider", True)
    go.set()


def test_those_who_wait_are_refused_when_it_opens(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        go.wait(60)
        connection.reply(500)

    gw = gateway(one_provider(provider(handler).url, [slots(1)], breaker=breaker(1)))
    clients = [gw.client().ask("GET", "/a/")]
    gw.until(lambda s: s["held"] == 1, "the first call runs")
    clients += [gw.client().ask("GET", "/a/") for _ in range(5)]
    gw.until(lambda s: s["waiting"] == 5, "the others wait")
    go.set()
    assert clients[0].answer().status == 500
    for client in clients[1:]:
        refusal(client.answer(), 503, "circuit_open", "provider", True)
        client.close()
    clients[0].close()


# ---- health checks


def test_idle_probes(provider, gateway):
    """Nobody calls. 429 is no result, 503 is; two in a row open the circuit, one that is well closes it."""
    status = [200]
    seen = []

    def handler(request, connection):
        seen.append((request.method, request.target, request["X-Key"], request["User-Agent"]))
        connection.reply(status[0] if request.target != "/v1/" else 200)

    policy = breaker(
        1,
        recovery="healthCheck",
        healthCheck={"method": "HEAD", "path": "/ping?deep=1", "expect": [200, 204]},
        idleProbe={"interval": "100ms", "failures": 2},
    )
    credential = {"credential": {"header": "X-Key", "value": "secret"}}
    gw = gateway(one_provider(provider(handler).url + "/v1", [slots(4)], credential, breaker=policy))
    assert gw.call("GET", "/a/").status == 200
    gw.until(lambda s: s["totals"]["healthChecks"]["healthy"] >= 3, "it is looked at")
    method, target, key, agent = seen[-1]
    assert (method, target, key) == ("HEAD", "/v1/ping?deep=1", "secret") and agent.startswith("ration/")
    status[0] = 429
    none = gw.status()["totals"]["healthChecks"]["none"]
    gw.until(lambda s: s["totals"]["healthChecks"]["none"] >= none + 3, "it says too many")
    assert circuit(gw)["state"] == "closed"
    status[0] = 503
    gw.until(is_state("open"), "two failures in a row")
    answer = gw.call("GET", "/a/", now())
    assert answer["Ration-Refused"] == "circuit_open"
    status[0] = 204
    gw.until(is_state("closed"), "one that is well")
    assert gw.metrics()['ration_health_checks_total{result="unhealthy"}'] >= 2
    assert "secret" not in gw.text()


def test_limits_apply_to_health_checks(provider, gateway):
    """A quota is used up: the provider is not asked, which is no result."""
    status = [500]
    up = provider(lambda request, connection: connection.reply(status[0]))
    policy = breaker(1, **{**CHECKED, "backoff": {"delay": "100ms"}})
    gw = gateway(one_provider(up.url, [quota(3, window={"rolling": "1h"})], breaker=policy,
                              errors={"rateLimited": {"statuses": [418]}}))  # fmt: skip
    fail(gw, 1, 500)
    gw.until(lambda s: s["totals"]["healthChecks"]["none"] >= 3, "the quota is used up")
    checks = gw.status()["totals"]["healthChecks"]
    assert (checks["healthy"], checks["unhealthy"]) == (0, len(up.requests) - 1)
    assert len(up.requests) <= 3
    assert circuit(gw)["state"] == "open"
    gw.line('msg="a health check was not made" account=a words=quota_exhausted')


def test_one_check_at_a_time_and_a_clean_end(provider, gateway):
    """A check that hangs is given up when the next would be due; one that is out does not hold up the end."""
    running, most, out = [0], [0], []
    lock = threading.Lock()

    def is_open(connection):
        """Not given up, whether or not the thread that waits for it has been told so yet."""
        if not select.select([connection.socket], [], [], 0)[0]:
            return True
        with contextlib.suppress(OSError):
            return connection.socket.recv(1, socket.MSG_PEEK) != b""
        return False

    def handler(request, connection):
        if request.target != "/ping":
            connection.reply(500)
            return True
        with lock:
            out.append(connection)
            running[0] += 1
            most[0] = max(most[0], sum(is_open(one) for one in out))
        connection.closed()
        with lock:
            out.remove(connection)
            running[0] -= 1
        return False

    policy = breaker(1, **{**CHECKED, "backoff": {"delay": "300ms"}})
    gw = gateway(one_provider(provider(handler).url, [slots(4)], breaker=policy))
    fail(gw, 1, 500)
    gw.until(lambda s: s["totals"]["healthChecks"]["unhealthy"] >= 3, "each is given up")
    gw.line('msg="a health check failed" account=a words="no answer in time"')
    until(lambda: running[0] == 1, "one is out")
    began = time.monotonic()
    assert gw.stop() == 0, gw.text()
    assert time.monotonic() - began < DEADLINE / 2
    until(lambda: running[0] == 0, "the provider is told, too")
    assert most[0] == 1


def test_a_health_check_with_nobody_there(gateway):
    policy = breaker(1, **{**CHECKED, "backoff": {"delay": "50ms"}})
    gw = gateway(one_provider(f"http://127.0.0.1:{free_port()}", breaker=policy))
    fail(gw, 1, 502)
    gw.until(lambda s: s["totals"]["healthChecks"]["unhealthy"] >= 5, "again and again")
    assert circuit(gw)["state"] == "open"


def test_two_accounts_have_two_circuits(provider, gateway):
    def handler(request, connection):
        connection.reply(500 if request["Authorization"] == "bad" else 200)

    config = one_provider(provider(handler).url, breaker=breaker(1))
    config["accounts"] = [
        {"name": name, "provider": "p", "credential": {"header": "Authorization", "value": name}}
        for name in ("bad", "good")
    ]
    gw = gateway(config)
    assert gw.call("GET", "/bad/").status == 500
    assert gw.call("GET", "/good/").status == 200
    assert gw.call("GET", "/bad/")["Ration-Refused"] == "circuit_open"
    assert gw.call("GET", "/good/").status == 200
    states = {one["breaker"]: one["state"] for one in gw.status()["breakers"]}
    assert states == {"bad": "open", "good": "closed"}
    assert {one["provider"] for one in gw.status()["breakers"]} == {"p"}


def test_without_a_breaker(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    assert gw.call("GET", "/a/").status == 200
    assert gw.status()["breakers"] == []
