# SPDX-License-Identifier: MIT
"""Jobs of a running gateway: their runs, the plan and when it changes, projections, and a runner in shell."""

import json
import os
import subprocess
import threading
import time

import pytest

from api import Api, Bodies, is_valid
from house import ROOT, a_day, one_provider, until
from simulated import Client as SimulatedClient
from simulated import simulator
from test_events import Stream

URL = "http://127.0.0.1:9"  # nobody is asked
DAY = {"name": "daily", "kind": "quota", "max": 2400, "window": {"rolling": "24h"}, "scope": {"by": ["account"]}}


def job(name, interval="1h", **more):
    return {"name": name, "account": "a", "endpoint": "GET /x", "interval": interval, **more}


def planned(url, *jobs, limits=(DAY,), settings=None, **provider):
    config = one_provider(url, limits, settings=settings, **{"endpoints": ["/x"], **provider})
    return {**config, "jobs": list(jobs)}


def hello(_, connection):
    connection.reply(200, body=b"fine")


def call(gw, name, target="/a/x", **fields):
    return gw.call("GET", target, {"Ration-Job": name, **{k.replace("_", "-"): v for k, v in fields.items()}})


def runs(gw):
    return gw.status()["plan"]["runs"]


def job_of(gw, name):
    answer = gw.control(f"/v1/plan/jobs/{name}")
    assert answer.status == 200, answer.body
    return answer.json()


# ---- runs that are counted


def test_a_run_is_counted_by_its_requests(provider, gateway):
    gw = gateway(planned(provider(hello).url, job("tick", "6s")))
    for _ in range(3):
        assert call(gw, "tick").status == 200
    assert call(gw, "tick", Ration_Retry="true").status == 200
    gw.until(lambda s: s["plan"]["runs"]["counted"] == 1, "a second and a half of quiet has ended it")
    assert runs(gw) == {"counted": 1, "cut": 0, "reported": 0}
    for _ in range(2):
        assert call(gw, "tick").status == 200
    gw.until(lambda s: s["plan"]["runs"]["counted"] == 2, "so it did the next one")
    assert gw.metrics()['ration_runs_total{source="counted"}'] == 2


def test_a_run_of_which_a_request_was_not_sent_teaches_nothing(provider, gateway):
    rate = {"name": "rate", "kind": "rate", "rate": "1/h", "burst": 2, "margin": 0, "scope": {"by": ["account"]}}
    gw = gateway(planned(provider(hello).url, job("tick", "6s"), limits=[rate]))
    assert [call(gw, "tick", Ration_Timeout="0").status for _ in range(3)] == [200, 200, 429]
    gw.until(lambda s: s["plan"]["runs"]["cut"] == 1, "it has ended")
    assert runs(gw) == {"counted": 0, "cut": 1, "reported": 0}


def test_a_run_lasts_as_long_as_its_requests_do(provider, gateway):
    go = threading.Event()

    def slow(_, connection):
        assert go.wait(20)
        connection.reply(200, body=b"fine")

    gw = gateway(planned(provider(slow).url, job("tick", "1s")))
    with gw.client() as client:
        client.ask("GET", "/a/x", {"Ration-Job": "tick"})
        gw.until(lambda s: s["held"] == 1, "it runs")
        time.sleep(1.5)  # more than a tick and than a quarter of the interval
        assert runs(gw)["counted"] == 0
        go.set()
        assert client.answer().status == 200
    gw.until(lambda s: s["plan"]["runs"]["counted"] == 1, "now it is over")


def test_what_a_job_says_holds_for_its_requests(provider, gateway):
    one = {"name": "slots", "kind": "concurrency", "max": 1, "scope": {"by": ["account"]}}
    go = threading.Event()

    def slow(_, connection):
        assert go.wait(20)
        connection.reply(200, body=b"fine")

    config = planned(provider(slow).url, job("tick", priority="high", tenant="t", cost=2.5), limits=[one])
    gw = gateway({**config, "tenants": {"t": 1, "u": 1}})
    with gw.client() as first, gw.client() as second, gw.client() as third:
        first.ask("GET", "/a/x")
        gw.until(lambda s: s["held"] == 1, "it runs")
        second.ask("GET", "/a/x", {"Ration-Job": "tick"})
        gw.until(lambda s: s["waiting"] == 1, "it waits")
        third.ask("GET", "/a/x", {"Ration-Job": "tick", "Ration-Tenant": "u", "Ration-Priority": "low",
                                  "Ration-Cost": "1"})
        gw.until(lambda s: s["waiting"] == 2, "both do")
        rows = gw.control("/v1/waiters").json()["waiters"]
        go.set()
        for client in (first, second, third):
            assert client.answer().status == 200
    said = [(row["tenant"], row["priority"], row["cost"]) for row in rows]
    assert said == [("t", "high", 2.5), ("u", "low", 1)]


@pytest.mark.parametrize("name, why", [("tik", "the config has no job"), ("other", "another account")])
def test_a_job_that_the_account_does_not_have(provider, gateway, name, why):
    up = provider(hello)
    config = planned(up.url, job("tick"), job("other", account="b"))
    config["accounts"].append({"name": "b", "provider": "p"})
    gw = gateway(config)
    answer = call(gw, name)
    assert answer.status == 400
    assert answer.json()["field"] == "Ration-Job" and why in answer.json()["detail"]
    assert up.requests == []
    assert call(gw, "other", "/b/x").status == 200


# ---- the plan over HTTP


def test_the_plan_and_its_jobs(gateway):
    """2400 a day less a tenth: 90 an hour. The high one wants 60 and 5 % for retries, so the low one gets 27."""
    gw = gateway(planned(URL, job("a b/é", "1m", priority="high"), job("low", "1m", priority="low")))
    api = Api(gw)
    plan = api.get("plan").json()
    assert plan["feasible"] is True
    high, low = api.get("plan/jobs/a%20b%2F%C3%A9").json(), api.get("plan/jobs/low").json()
    assert [row["name"] for row in plan["jobs"]] == ["a b/é", "low"] == [high["name"], low["name"]]
    assert high["effectiveMs"] == 60000 < low["effectiveMs"]
    now = gw.status()["now"]
    assert now - 30000 < high["nextRunAt"] <= now + 60000
    for name, near in (("loww", "(low?)"), ("zzzzzz", None)):
        answer = api.get(f"plan/jobs/{name}")
        assert answer.status == 404 and answer.json()["type"].endswith("unknown_job")
        assert (near or "no job of this name") in answer.json()["detail"]
    assert api.get("plan/jobs/%").status == 400


def test_a_config_without_jobs(gateway):
    api = Api(gateway(one_provider(URL, [DAY])))
    assert api.get("plan").json()["jobs"] == []
    assert "plan" not in api.gateway.status()
    assert api.get("plan/jobs/x").status == 404
    assert api.post("runs", {"job": "x", "requests": 1}).status == 404
    assert api.gateway.metrics()["ration_plan_feasible"] == 1


def test_the_next_run_is_counted_from_the_last_ones_begin(provider, gateway):
    gw = gateway(planned(provider(hello).url, job("tick", "10m")))
    assert call(gw, "tick").status == 200
    now = gw.status()["now"]
    first = job_of(gw, "tick")["nextRunAt"]
    assert now + 590000 < first <= now + 600000
    assert call(gw, "tick").status == 200
    assert job_of(gw, "tick")["nextRunAt"] == first, "the same run"


# ---- runs that are reported


def test_a_reported_run_is_learned(gateway):
    api = Api(gateway(planned(URL, job("tick", "10m"), settings={"budget": {"replanInterval": "1s"}})))
    assert api.post("runs", {"job": "tick", "requests": 40, "retries": 10, "took": 60000}).json() == {"result": "noted"}
    now = api.gateway.status()["now"]
    assert now + 530000 < job_of(api.gateway, "tick")["nextRunAt"] <= now + 540000
    until(lambda: job_of(api.gateway, "tick")["calls"] == 50, "the next plan knows it")
    assert runs(api.gateway) == {"counted": 0, "cut": 0, "reported": 1}


def test_a_report_takes_the_place_of_what_was_counted(provider, gateway):
    api = Api(gateway(planned(provider(hello).url, job("tick", "6s"))))
    assert call(api.gateway, "tick").status == 200
    assert api.post("runs", {"job": "tick", "requests": 7}).status == 200
    time.sleep(3)  # more than a tick and than a quarter of the interval
    assert runs(api.gateway) == {"counted": 0, "cut": 0, "reported": 1}


def test_runs_outlive_the_process(gateway, tmp_path):
    settings = {"ledger": {"path": str(tmp_path / "ration.db"), "flush": "1s"}}
    gw = gateway(planned(URL, job("tick", "10m"), settings=settings))
    assert Api(gw).post("runs", {"job": "tick", "requests": 40, "took": 1000}).status == 200
    due = job_of(gw, "tick")["nextRunAt"]
    assert gw.stop() == 0
    again = job_of(gateway(planned(URL, job("tick", "10m"), settings=settings)), "tick")
    assert again["calls"] == 40
    # The interval is another one now that its runs are known; it is still counted from that run's begin.
    assert again["nextRunAt"] == pytest.approx(due - 600000 + again["effectiveMs"], abs=1)


def test_an_inventory_brings_about_a_plan(gateway):
    """90 an hour: 2 children of 40 requests fit, 20 do not."""
    fan = {"name": "orgs", "estimate": 2}
    gw = gateway(planned(URL, job("tick", fanOut=fan), job("tock", priority="low", fanOut=fan)))
    api = Api(gw)
    events = Stream(gw)
    plans = gw.status()["plan"]["plans"]
    assert job_of(gw, "tick")["effectiveMs"] == 3600000
    assert api.post("runs", {"job": "tick", "requests": 2000, "fanOut": 50}).status == 200
    status = gw.until(lambda s: s["plan"]["plans"] == plans + 1, "it plans anew")
    assert status["plan"]["changes"] == 2 and status["plan"]["stretched"] == 2
    assert job_of(gw, "tick")["effectiveMs"] > 3600000
    assert gw.metrics()["ration_plan_changes_total"] == 2
    gw.line(r'msg="a job\'s interval has changed" job=tick from="1 h" to=".*" limit=daily')
    told = [events.next("interval"), events.next("interval")]
    assert [(event["job"], event["beforeMs"], event["limit"]) for event in told] == [
        ("tick", 3600000, "daily"), ("tock", 3600000, "daily")]
    assert told[0]["effectiveMs"] == job_of(gw, "tick")["effectiveMs"]
    # Nothing to do: back to what was wanted.
    assert api.post("runs", {"job": "tick", "requests": 0, "fanOut": 0}).status == 200
    until(lambda: job_of(gw, "tick")["effectiveMs"] == 3600000, "no children, no calls")
    assert gw.status()["plan"]["changes"] == 4
    assert "limit" not in events.next("interval")
    events.socket.close()


RUNS = [
    ({"job": "tik", "requests": 1}, 404, "job", "(tick?)"),
    ({"job": "tick", "requests": 1, "fanOut": 2}, 400, "fanOut", "no fanOut"),
    ({"job": "tick", "requests": 1, "fanOut": 0}, 400, "fanOut", "no fanOut"),
    ({"job": "fan", "requests": 1, "fanOut": 0}, 400, "requests", "nothing to run"),
    ({"job": "fan", "requests": 1, "fanOut": 1e12}, 400, "fanOut", "too large"),
    ({"job": "tick", "requests": 1, "pages": 2}, 400, "pages", "no member"),
    ({"job": "tick", "requests": 1, "retrys": 2}, 400, "retrys", "(retries?)"),
    ({"job": "tick"}, 400, "requests", 'without "requests"'),
    ({"job": "tick", "requests": True}, 400, "requests", "true where a number should be"),
]


def test_runs_that_make_no_sense(gateway):
    api = Api(gateway(planned(URL, job("tick"), job("fan", fanOut={"name": "orgs"}))))
    for body, status, field, why in RUNS:
        answer = api.post("runs", body)
        assert (answer.status, answer.json()["field"]) == (status, field), body
        assert why in answer.json()["detail"], body
    assert api.post("runs", {"job": "tick", "requests": 1, "fanOut": 1}).status == 200
    assert runs(api.gateway)["reported"] == 1


def test_runs_by_chance(gateway):
    api = Api(gateway(planned(URL, job("tick", fanOut={"name": "orgs"}))))
    bodies, client = Bodies(11, ["tick", "tock"]), api.client()
    statuses = set()
    for _ in range(300):
        good = bodies.good("Run")
        assert is_valid("Run", good)
        answer = api.post("runs", good, client=client)
        empty = good.get("fanOut") == 0 and (good["requests"] or good.get("retries"))
        assert answer.status != 400 or empty, (good, answer.body)
        statuses.add(answer.status)
        bad, member = bodies.bad("Run")
        answer = api.post("runs", bad, client=client)
        assert answer.status == 400, (bad, answer.body)
        assert member is None or answer.json()["field"] == member, (bad, answer.body)
    client.close()
    assert {200, 404} <= statuses
    assert api.get("plan").status == 200


# ---- what makes a plan another one


def test_another_maximum_brings_about_a_plan(provider, gateway):
    """The provider says 240 a day where the config says 2400."""

    def handler(_, connection):
        connection.reply(200, {"X-Limit": "240", "X-Left": "200"}, b"fine")

    limit = {**DAY, "sync": {"limitHeader": "X-Limit", "remainingHeader": "X-Left"}}
    gw = gateway(planned(provider(handler).url, job("tick", "1m"), limits=[limit]))
    before = job_of(gw, "tick")["effectiveMs"]
    assert call(gw, "tick").status == 200
    gw.until(lambda s: s["plan"]["changes"] == 1, "it plans anew")
    assert job_of(gw, "tick")["effectiveMs"] > 5 * before
    gw.line(r'level=warn msg="a provider\'s maximum is not the declared one" provider=p limit=daily key=a told=240 '
            r"declared=2400")
    labels = 'provider="p",limit="daily",key="a"'
    metrics = gw.metrics()
    assert metrics[f"ration_limit_disagreement{{{labels}}}"] == -2160
    assert metrics[f"ration_budget_used{{{labels}}}"] == 1
    assert metrics[f"ration_budget_external_usage{{{labels}}}"] == 39


@pytest.mark.parametrize("told", [50, 200])
def test_a_disagreement_is_logged_once_in_a_window(provider, gateway, told):
    """Below and above; also without jobs, and again in the next window."""
    up = provider(lambda _, connection: connection.reply(200, {"X-Limit": str(told)}, b"fine"))
    limit = {"name": "daily", "kind": "quota", "max": 100, "window": {"rolling": "2s"}, "scope": {"by": ["account"]},
             "sync": {"limitHeader": "X-Limit"}}
    gw = gateway(one_provider(up.url, [limit]))
    line = f"told={told} declared=100"

    def lines():
        return sum(line in text for text in gw.lines)

    began = gw.status()["now"]
    assert gw.call("GET", "/a/x").status == 200
    assert gw.metrics()['ration_limit_disagreement{provider="p",limit="daily",key="a"}'] == told - 100
    until(lambda: gw.call("GET", "/a/x") and lines() >= 2, "told anew in the next window")
    # Every two seconds at most.
    assert lines() <= 1 + (gw.status()["now"] - began) // 2000


def test_a_plan_that_becomes_infeasible_is_an_event(gateway):
    gw = gateway(planned(URL, job("tick", "10m", priority="critical", fanOut={"name": "orgs"})))
    events = Stream(gw)
    for children, feasible in ((100, False), (1, True)):
        assert Api(gw).post("runs", {"job": "tick", "requests": children, "fanOut": children}).status == 200
        assert events.next("plan")["feasible"] is feasible
        assert gw.status()["plan"]["feasible"] is feasible
    events.socket.close()
    gw.line(r'level=info msg="the plan is feasible again"')


def test_a_plan_that_is_not_feasible_is_loud(gateway):
    gw = gateway(planned(URL, job("tick", "10s", priority="critical"), job("low", priority="low")))
    gw.line(r'level=warn msg="the plan is not feasible: [^"]*" limit=daily key=a budget=\d')
    plan = gw.status()["plan"]
    assert plan["feasible"] is False
    (scope,) = plan["infeasible"]
    assert (scope["limit"], scope["key"]) == ("daily", "a") and scope["projected"] > scope["budget"]
    assert gw.metrics()["ration_plan_feasible"] == 0
    assert job_of(gw, "tick")["effectiveMs"] == 10000
    assert gw.control("/v1/plan").json()["feasible"] is False


# ---- where a quota will end


def test_paces_and_the_timeline(provider, gateway):
    day = {**DAY, "max": 100, "window": a_day()}
    gw = gateway(planned(provider(hello).url, limits=[day], settings={"budget": {"retryReserve": 0}}))
    api = Api(gw)
    for _ in range(6):
        assert gw.call("GET", "/a/x").status == 200
    (row,) = api.get("limits/daily/a").json()["limits"]
    timeline = row["timeline"]
    assert timeline["widthMs"] == 60000 and timeline["start"] % 60000 == 0
    assert sum(timeline["units"]) == 6 and len(timeline["units"]) <= 2880
    assert row["recent"]["spent"] == 6 and row["recent"]["spanMs"] <= 900000
    assert row["recent"]["perHour"] == pytest.approx(6 * 3600000 / row["recent"]["spanMs"], abs=0.01)
    elapsed = gw.status()["now"] - row["windowStart"]
    assert row["average"]["spanMs"] == pytest.approx(elapsed, abs=5000)
    assert row["average"]["atEnd"] >= 6
    (row,) = [row for row in gw.status()["limits"] if row["limit"] == "daily"]
    assert "timeline" not in row and row["recent"]["spent"] == 6
    labels = 'provider="p",limit="daily",key="a"'
    metrics = gw.metrics()
    assert metrics[f"ration_budget_used{{{labels}}}"] == 6
    assert metrics[f"ration_budget_remaining{{{labels}}}"] == 94
    assert metrics[f'ration_budget_rate{{{labels},pace="15m"}}'] > 0
    assert metrics[f'ration_budget_projected{{{labels},pace="window"}}'] >= 6
    assert f"ration_limit_disagreement{{{labels}}}" not in metrics
    for _ in range(94):
        assert gw.call("GET", "/a/x").status == 200
    metrics = gw.metrics()
    for pace in ("15m", "window"):
        assert metrics[f'ration_budget_exhaustion_eta_seconds{{{labels},pace="{pace}"}}'] == 0


# ---- a runner in shell


def quota():
    """18 calls within any 4 s, of which the plan keeps half back: calls of a busy machine come late, then together."""
    return {"name": "window", "kind": "quota", "max": 18, "window": {"rolling": "4s"}, "scope": {"by": ["account"]}}


def runner(gw, name, *command, runs, **environment):
    return subprocess.run([ROOT / "examples" / "job-runner.sh", name, *command], timeout=120, capture_output=True,
                          env={**os.environ, "RATION_CONTROL": f"http://127.0.0.1:{gw.control_port}",
                               "RATION_RUNS": str(runs), **environment})


def calls_of(gw, name):
    """A run: three calls, one after the other."""
    return ["curl", "-sS", "--fail", "-o", "/dev/null", "-H", f"Ration-Job: {name}", "-H", "Ration-Timeout: 0",
            *[f"http://127.0.0.1:{gw.port}/a/x"] * 3]


@pytest.fixture
def day(gateway, tmp_path):
    """A provider that keeps its quota, a gateway before it, and a job that wants 30 calls in 4 s."""
    folder = tmp_path / "provider"
    folder.mkdir()
    provider = json.dumps({"providers": one_provider(URL, [quota()], endpoints=["/x"])["providers"]})
    with simulator(folder, provider) as port:
        settings = {"budget": {"replanInterval": "1s", "retryReserve": "50%"}}
        wants = job("tick job", "400ms", estimate={"pagesPerRun": 3})
        gw = gateway(planned(f"http://127.0.0.1:{port}", wants, limits=[quota()], settings=settings))
        yield gw, SimulatedClient(port)


def test_a_runner_that_follows_the_plan_keeps_within_the_quota(day):
    """
    Three windows of 4 s stand for the days: real processes cannot be told that time flies, and the virtual day of
    `ration simulate` has no shell in it. What is shown is that the plan alone does it: nobody waits, and neither the
    gateway nor the provider ever says no.
    """
    gw, sim = day
    began = time.monotonic()
    done = runner(gw, "tick job", *calls_of(gw, "tick job"), runs=8)
    elapsed = time.monotonic() - began
    assert (done.returncode, done.stderr) == (0, b""), done
    status = gw.status()
    assert status["totals"]["refusals"] == {} and status["totals"]["granted"] == 24
    assert sim.counts()["rateLimited"] == 0
    # 3 calls a run, 9 in 4.13 s: a run in 1.37 s.
    assert elapsed > 7 * 1.3
    assert runs(gw)["counted"] >= 7 and runs(gw)["cut"] == 0


def test_the_same_job_without_the_plan_does_not(day):
    gw, _ = day

    def refusals():
        subprocess.run(calls_of(gw, "tick job"), check=False, timeout=30, capture_output=True)
        return gw.status()["totals"]["refusals"].get("quota_exhausted")

    until(refusals, "more is asked for than there is")


def test_the_runner_says_what_is_wrong(gateway):
    gw = gateway(planned(URL, job("tick", "1ms"), settings={"token": "secret"}))
    gw.close = lambda: (gw.stop(), gw.kill())
    done = runner(gw, "tikc", "true", runs=1, RATION_TOKEN="secret")
    assert done.returncode == 1 and b"unknown_job" in done.stderr
    done = runner(gw, "tick", "true", runs=1)
    assert done.returncode == 1 and b"unauthorized" in done.stderr
    done = runner(gw, "tick", "false", runs=2, RATION_TOKEN="secret")
    assert (done.returncode, done.stderr) == (0, b"tick: a run ended with status 1\n" * 2)


def test_the_runner_does_not_race_where_runs_make_no_call(gateway):
    gw = gateway(planned(URL, job("tick", "300ms"), limits=()))
    began = time.monotonic()
    assert runner(gw, "tick", "true", runs=4).returncode == 0
    assert time.monotonic() - began >= 0.9
