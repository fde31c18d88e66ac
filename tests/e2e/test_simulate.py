# SPDX-License-Identifier: MIT
"""`ration simulate`: a provider that keeps its limits, on a real port."""
import calendar
import email.utils
import math
import subprocess
import time

import pytest

from simulated import RATION, Client, simulator, wait_until

PROVIDER = """
providers:
  - name: p
    baseUrl: https://api.example.com/v1
    endpoints: ["/things/{id}"]
    limits:
%s
accounts:
  - { name: acc, provider: p, credential: { header: X-Api-Key, value: account-key } }
"""
RATE = PROVIDER % "      - { name: calls, kind: rate, rate: 1/60s, burst: 3, scope: { by: [account] } }"
NONE = PROVIDER % "      - { name: calls, kind: rate, rate: 10000/s, burst: 10000, scope: { by: [account] } }"
SLOTS = PROVIDER % "      - { name: slots, kind: concurrency, max: 2, scope: { by: [instance] } }"


def quota(extra, maximum=5, window="rolling: 1h"):
    return PROVIDER % f"""      - name: hourly
        kind: quota
        max: {maximum}
        window: {{ {window} }}
        scope: {{ by: [credential] }}
        sync: {{ {extra} }}"""


def test_refuses_and_keeps_its_word(tmp_path):
    with simulator(tmp_path, RATE.replace("1/60s", "1/2s")) as port:
        client = Client(port)
        assert [client.call().status for _ in range(4)] == [200, 200, 200, 429]
        refused = client.call("/things/1")
        assert refused.status == 429
        assert refused.headers["Content-Type"] == "application/json"
        assert refused.json()["error"]["code"] == "rate_limited"
        milliseconds = int(refused.headers["Retry-After-Ms"])
        assert 0 < milliseconds <= 2000
        assert int(refused.headers["Retry-After"]) == math.ceil(milliseconds / 1000)
        time.sleep(milliseconds / 1000)
        assert client.call().status == 200


def test_credentials_are_told_apart_and_never_shown(tmp_path):
    with simulator(tmp_path, RATE) as port:
        one, two, nobody = Client(port, "secret-1"), Client(port, "secret-2"), Client(port, None)
        assert [one.call().status for _ in range(4)] == [200, 200, 200, 429]
        assert two.call().status == 200
        assert nobody.call().status == 200
        assert nobody.call(X_Api_Key="account-key").status == 200
        counts = nobody.counts()
        assert counts["requests"] == 7 and counts["ok"] == 6 and counts["rateLimited"] == 1
        assert counts["credentials"]["client-1"] == {"requests": 4, "ok": 3, "rateLimited": 1, "errors": 0, "gone": 0}
        assert counts["credentials"]["client-2"]["ok"] == 1
        assert counts["credentials"]["anonymous"]["ok"] == 1
        assert len(counts["credentials"]) == 4
        for secret in ("secret", "account-key"):
            assert secret not in str(counts)


def test_echo_and_bodies(tmp_path):
    with simulator(tmp_path, NONE) as port:
        client = Client(port)
        big = client.call("/things/7?x=1", "POST", b"x" * 3_000_000)
        assert big.json() == {"method": "POST", "path": "/things/7?x=1", "bodyBytes": 3_000_000}
        chunked = client.call("/things/7", "PUT", iter([b"a" * 1000, b"b" * 500]))
        assert chunked.json()["bodyBytes"] == 1500
        assert client.call("/v1/things/7").json()["path"] == "/things/7"
        assert client.call("/v10").json()["path"] == "/v10"
        head = client.call("/things/7", "HEAD")
        assert head.status == 200 and head.body == b""
        assert client.call("/__ration/nothing").status == 404
        assert client.call("/__ration/counts", "POST").status == 405
        assert client.call("/" + "x" * 20000).status == 500
        assert client.call().status == 200


def test_concurrency(tmp_path):
    with simulator(tmp_path, SLOTS, "--latency", "300ms") as port:
        clients = [Client(port, key) for key in ("a", "b", "c")]
        watcher = Client(port)
        clients[0].send()
        clients[1].send()
        wait_until(lambda: watcher.counts()["inFlight"] == 2)
        refused = clients[2].call()
        assert refused.status == 429 and "Retry-After" not in refused.headers
        assert [clients[i].receive().status for i in (0, 1)] == [200, 200]
        assert clients[2].call().status == 200
        assert watcher.counts()["peakInFlight"] == 2


def test_a_client_that_goes_away_gives_its_slot_back(tmp_path):
    with simulator(tmp_path, SLOTS, "--latency", "10m") as port:
        watcher = Client(port)
        for _ in range(2):
            client = Client(port)
            client.send()
            wait_until(lambda: watcher.counts()["inFlight"] == 1)
            client.connection.close()
            wait_until(lambda: watcher.counts()["inFlight"] == 0)
        assert watcher.counts()["gone"] == 2


RESETS = {
    "epoch": lambda text: int(text),
    "epochMs": lambda text: int(text) / 1000,
    "delta": lambda text: time.time() + int(text),
    "duration": lambda text: time.time() + sum(
        int(part) * unit for part, unit in zip(text.replace("h", " ").replace("m", " ").replace("s", "").split()[::-1],
                                               (1, 60, 3600))),
    "iso8601": lambda text: calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")),
    "httpDate": lambda text: email.utils.parsedate_to_datetime(text).timestamp(),
}


@pytest.mark.parametrize("how", RESETS)
def test_quota_fields(tmp_path, how):
    config = quota(f"limitHeader: X-Limit, remainingHeader: X-Remaining, resetHeader: X-Reset, resetFormat: {how}",
                   window="period: hour")
    with simulator(tmp_path, config) as port:
        client = Client(port)
        hour = time.time() // 3600
        answers = [client.call("/things/1") for _ in range(6)]
        resets = [RESETS[how](a.headers["X-Reset"]) for a in answers]
        if time.time() // 3600 != hour:
            pytest.skip("the hour ended meanwhile")
        assert [a.status for a in answers] == [200] * 5 + [429]
        assert [a.headers["X-Limit"] for a in answers] == ["5"] * 6
        assert [a.headers["X-Remaining"] for a in answers] == ["4", "3", "2", "1", "0", "0"]
        for reset in resets:
            assert (hour + 1) * 3600 - 0.1 <= reset <= (hour + 1) * 3600 + 2
        left = (hour + 1) * 3600 - time.time()
        assert abs(int(answers[5].headers["Retry-After"]) - left) < 3


def test_standard_fields(tmp_path):
    with simulator(tmp_path, quota("standard: true", 50, "period: hour")) as port:
        answer = Client(port).call()
        assert answer.headers["RateLimit-Policy"] == '"hourly";q=50;w=3600'
        assert answer.headers["RateLimit"].startswith('"hourly";r=49;t=')


def test_how_it_says_too_many(tmp_path):
    says = "    errors: { rateLimited: { statuses: [503, 429], bodyContains: 'over \"quota\"' } }\naccounts:"
    with simulator(tmp_path, RATE.replace("accounts:", says)) as port:
        client = Client(port)
        answer = [client.call() for _ in range(4)][3]
        assert answer.status == 503
        assert b'over "quota"' in answer.body


def statuses(tmp_path, count, *options):
    with simulator(tmp_path, NONE, *options) as port:
        client = Client(port)
        return [client.call().status for _ in range(count)]


def test_errors_and_seeds(tmp_path):
    one = statuses(tmp_path, 200, "--errors", "20%", "--seed", "1")
    assert set(one) == {200, 500, 502, 503, 504}
    assert 20 <= sum(status != 200 for status in one) <= 60
    assert statuses(tmp_path, 200, "--errors", "20%", "--seed", "1") == one
    assert statuses(tmp_path, 200, "--errors", "20%", "--seed", "2") != one
    assert set(statuses(tmp_path, 50)) == {200}


def test_latency(tmp_path):
    with simulator(tmp_path, NONE, "--latency", "80ms\u00b130ms") as port:
        client = Client(port)
        took = []
        for _ in range(20):
            begin = time.monotonic()
            assert client.call().status == 200
            took.append(time.monotonic() - begin)
        assert min(took) >= 0.05
        assert max(took) > min(took) + 0.01


def test_external_client_spends_the_quota(tmp_path):
    config = quota("remainingHeader: X-Remaining", 100000)
    with simulator(tmp_path, config, "--external", "50/s") as port:
        client = Client(port)
        first = int(client.call().headers["X-Remaining"])
        before = client.counts()["external"]["spent"]  # before the first call it had no quota of ours to spend
        wait_until(lambda: client.counts()["external"]["spent"] >= before + 20)
        assert int(client.call().headers["X-Remaining"]) <= first - 21


def hold(port, count):
    """So many calls in flight, once they are; the client that sees them, and those that hold them."""
    watcher, clients = Client(port), [Client(port) for _ in range(count)]
    for client in clients:
        client.send()
    wait_until(lambda: watcher.counts()["inFlight"] == count)
    return watcher, clients


@pytest.mark.parametrize("ceiling", ["3", "3..3/60s"])
def test_ceiling(tmp_path, ceiling):
    with simulator(tmp_path, NONE, "--ceiling", ceiling, "--latency", "10m") as port:
        watcher, clients = hold(port, 3)
        refused = watcher.call()
        assert refused.status == 429 and "Retry-After" not in refused.headers
        clients[0].connection.close()
        wait_until(lambda: watcher.counts()["inFlight"] == 2)
        watcher.send()
        wait_until(lambda: Client(port).counts()["inFlight"] == 3)


def test_what_the_ceiling_refuses_spends_nothing(tmp_path):
    with simulator(tmp_path, quota("remainingHeader: X-Remaining"), "--ceiling", "1", "--latency", "10m") as port:
        watcher, _ = hold(port, 1)
        assert [watcher.call().headers["X-Remaining"] for _ in range(8)] == ["4"] * 8
        assert watcher.counts()["causes"] == {"ceiling": 8}


def test_ceiling_that_tells_when(tmp_path):
    with simulator(tmp_path, NONE, "--ceiling", "1", "--retry-after", "1500ms", "--latency", "10m") as port:
        watcher, _ = hold(port, 1)
        refused = watcher.call()
        assert refused.status == 429
        assert refused.headers["Retry-After"] == "2" and refused.headers["Retry-After-Ms"] == "1500"


def test_causes_add_up(tmp_path):
    with simulator(tmp_path, RATE, "--ceiling", "2", "--latency", "10m") as port:
        watcher, clients = hold(port, 2)
        assert watcher.call().status == 429
        for client in clients:
            client.connection.close()
        wait_until(lambda: watcher.counts()["inFlight"] == 0)
        last = Client(port)
        last.send()
        wait_until(lambda: watcher.counts()["inFlight"] == 1)
        assert watcher.call().status == 429
        counts = watcher.counts()
        assert counts["causes"] == {"ceiling": 1, "rate_limited": 1}
        assert counts["rateLimited"] == 2


def test_ceiling_that_moves(tmp_path):
    with simulator(tmp_path, NONE, "--ceiling", "1..6/1s") as port:
        watcher = Client(port)
        seen = set()

        def all_seen():
            seen.add(watcher.counts()["ceiling"]["now"])
            return seen >= {1, 2, 3, 4, 5, 6}

        wait_until(all_seen)
        assert seen == {1, 2, 3, 4, 5, 6}


def test_above_a_ceiling_that_has_come_down(tmp_path):
    with simulator(tmp_path, NONE, "--ceiling", "1..2/2s", "--latency", "10m") as port:
        watcher = Client(port)
        clients = []

        def two_in_flight():
            clients.append(Client(port))
            clients[-1].send()
            return watcher.counts()["inFlight"] == 2

        wait_until(two_in_flight)
        before = watcher.counts()["ceiling"]
        wait_until(lambda: watcher.counts()["ceiling"]["watchedMs"] >= before["watchedMs"] + 4000)
        after = watcher.counts()["ceiling"]
        watched = after["watchedMs"] - before["watchedMs"]
        above = after["aboveMs"] - before["aboveMs"]
        assert abs(above - watched / 2) <= 501
        assert after["overCallMs"] - before["overCallMs"] == pytest.approx(above, abs=2)
        assert after["usedCallMs"] - before["usedCallMs"] == pytest.approx(after["callMs"] - before["callMs"], abs=2)


def test_choosing_a_provider(tmp_path):
    two = RATE.replace("accounts:", "  - { name: q, baseUrl: http://q.example }\naccounts:")
    with simulator(tmp_path, two, "--provider", "q") as port:
        client = Client(port)
        assert [client.call().status for _ in range(10)] == [200] * 10


@pytest.mark.parametrize("options, words", [
    ([], "several providers"),
    (["--provider", "r"], "no provider 'r'"),
    (["--provider", "p", "--for", "24h"], "--provider has no part in a simulated day"),
    (["--report", "r.html"], "--report is for a simulated day"),
    (["--provider", "p", "--latency", "20ms+-30ms"], "--latency 20ms+-30ms: want a duration"),
    (["--provider", "p", "--errors", "101%"], "want a ratio"),
    (["--provider", "p", "--external", "often"], "want a rate"),
    (["--provider", "p", "--ceiling", "40..20/60s"], "want a count of calls such as 30, or a range"),
    (["--provider", "p", "--ceiling", "1..1000/1s"], "a millisecond for each step"),
    (["--provider", "p", "--ceiling", "0"], "1 to 1000000 calls"),
    (["--provider", "p", "--ceiling", "20", "--retry-after", "0"], "--retry-after 0: want a duration"),
    (["--provider", "p", "--retry-after", "2s"], "there is no --ceiling"),
    (["--provider", "p", "--seed", "-1"], "want a whole number"),
    (["--provider", "p", "--listen", "127.0.0.1:65536"], "want an address"),
    (["--provider", "p", "--listen"], "--listen wants an address"),
    (["--provider", "p", "--nonsense"], "unknown option '--nonsense'"),
])
def test_what_it_cannot_do(tmp_path, options, words):
    path = tmp_path / "two.yaml"
    path.write_text(RATE.replace("accounts:", "  - { name: q, baseUrl: http://q.example }\naccounts:"))
    done = subprocess.run([RATION, "simulate", str(path), *options], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""
