# SPDX-License-Identifier: MIT
"""`ration plan`, and what `ration validate` says of plans, as a person meets them."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATION = os.environ.get("RATION", str(ROOT / "build" / "ration"))

PLAN = """\
settings: { instance: web-1 }
providers:
  - name: meraki
    baseUrl: https://api.meraki.com/api/v1
    endpoints: [ "/organizations/{organizationId}/**" ]
    limits:
      - { name: org-rate, kind: rate, rate: 10/s, scope: { by: [account, "var:organizationId"] } }
      - name: daily
        kind: quota
        max: 5000
        window: { period: day, timezone: America/Los_Angeles }
        scope: { by: [account] }
accounts:
  - { name: acme, provider: meraki, budget: { share: 80% } }
jobs:
  - name: device-status
    account: acme
    endpoint: "GET /organizations/{organizationId}/devices/statuses"
    interval: 60s
    priority: high
    fanOut: { name: organizations, estimate: 3 }
    estimate: { pagesPerRun: 2 }
"""


def run(*arguments):
    done = subprocess.run([RATION, *arguments], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def config(tmp_path):
    def write(text=PLAN):
        path = tmp_path / "plan.yaml"
        path.write_text(text)
        return str(path)
    return write


def test_table(config):
    code, out, err = run("plan", config())
    assert (code, err) == (0, "")
    # 6.3 calls 1440 times a day are 9072, of 3600: 2.52 times as long; 12599 have 10079 - 1007 = 9072.
    assert "device-status  high         60s   151.2s     2.52          6.3  daily (acme)" in out
    assert "daily (acme)      3600     24h    9072     3600  yes" in out
    assert "device-status at 60s fits when daily (acme) is 12599 or the interval is 151.2s" in out


def test_what_it_says_would_fit_fits(config):
    for old, new in (("max: 5000", "max: 12599"), ("interval: 60s", "interval: 151.2s")):
        code, out, _ = run("plan", config(PLAN.replace(old, new)))
        assert code == 0 and "every job runs as often as wanted" in out
    code, out, _ = run("plan", config(PLAN.replace("max: 5000", "max: 12598")))
    assert "What would have to change" in out


def test_json_and_fan_out(config):
    code, out, err = run("plan", "--json", "--fanout", "organizations=1", config())
    plan = json.loads(out)
    assert (code, err) == (0, "") and plan["feasible"]
    assert plan["jobs"][0]["fanOut"] == 1 and plan["jobs"][0]["calls"] == 2.1
    assert plan["jobs"][0]["effectiveMs"] == 60000 and "boundBy" not in plan["jobs"][0]
    assert plan["scopes"][0]["wanted"] == 3024
    assert plan["jobs"][0]["nextRunAt"] == plan["madeAt"]


def test_an_empty_inventory(config):
    code, out, _ = run("plan", "--json", "--fanout", "organizations=0", config())
    plan = json.loads(out)
    assert code == 0 and plan["jobs"][0]["fanOut"] == 0 and plan["jobs"][0]["calls"] == 0
    assert plan["jobs"][0]["scopes"] == [] and plan["scopes"][0]["wanted"] == 0


def test_the_windows_of_a_day(config):
    """The day on which clocks go forward has 23 hours, and 25 when they go back."""
    for at, hours in (("2027-03-14T12:00:00Z", 23), ("2027-11-07T12:00:00Z", 25), ("2027-06-01", 24),
                      ("2027-03-15T06:59:59Z", 23), ("2027-03-15T07:00:00Z", 24)):
        _, out, _ = run("plan", config(), "--json", "--at", at)
        assert json.loads(out)["scopes"][0]["horizonMs"] == hours * 3600000, at


def test_infeasible(config):
    path = config(PLAN.replace("priority: high", "priority: critical"))
    code, out, err = run("plan", path)
    assert (code, err) == (1, "")
    assert "DOES NOT FIT" in out
    assert "device-status at 60s fits when daily (acme) is 12599 or the interval is 151.2s" in out
    code, out, err = run("plan", "--json", path)
    assert code == 1 and not json.loads(out)["feasible"]
    scope = json.loads(out)["scopes"][0]
    assert scope["critical"] == 9072 and scope["budget"] == 3600 and scope["exhaustedAt"] > 0

    code, out, err = run("validate", path)
    assert (code, err) == (1, "")
    assert out == (f"{path}:16:5: jobs[0]: the plan does not fit: daily (acme) has 3600 for jobs in 24h and they use "
                   "9072, stretched to the utmost; critical ones, which never are, 9072 (device-status at 60s fits "
                   "when daily (acme) is 12599 or the interval is 151.2s)\n")


def test_validate_is_silent_about_a_plan_that_fits(config):
    assert run("validate", config()) == (0, "", "")


def test_a_run_that_takes_longer_than_its_interval(config):
    path = config(PLAN.replace("priority: high", "priority: critical").replace("pagesPerRun: 2", "pagesPerRun: 600")
                  .replace("max: 5000", "max: 5000000"))
    code, out, _ = run("validate", path)
    assert code == 1 and "a run takes 63s, and its interval is 60s" in out


def test_a_job_that_cannot_be_counted(config):
    path = config(PLAN.replace("pagesPerRun: 2", "pagesPerRun: 1000000").replace("estimate: 3", "estimate: 1000000000"))
    for command, where in (("plan", 2), ("validate", 1)):
        code, *streams = run(command, path)
        assert code == 1
        assert streams[where - 1] == (f"{path}:16:5: jobs[0]: a run makes more than 9007199254.740992 calls\n")


def test_faults_of_the_config(config):
    code, out, err = run("plan", config(PLAN.replace("account: acme", "account: acne")))
    assert (code, out) == (1, "")
    assert "jobs[0].account: there is no account of this name (did you mean 'acme'?)" in err


def test_no_jobs(config):
    code, out, _ = run("plan", config(PLAN[:PLAN.index("jobs:")]))
    assert (code, out) == (0, "There are no jobs to plan.\n")
    code, out, _ = run("plan", "--json", config(PLAN[:PLAN.index("jobs:")]))
    assert code == 0 and json.loads(out)["jobs"] == []


@pytest.mark.parametrize("arguments, message", [
    ([], "which file?"),
    (["FILE", "FILE"], "one file at a time"),
    (["FILE", "--yaml"], "unknown option '--yaml'"),
    (["FILE", "--fanout"], "--fanout needs NAME=N"),
    (["FILE", "--fanout", "organizations"], "--fanout needs NAME=N"),
    (["FILE", "--fanout", "organizations=-1"], "--fanout needs NAME=N"),
    (["FILE", "--fanout", "organizations=many"], "--fanout needs NAME=N"),
    (["FILE", "--fanout", "organizations=1000000001"], "at most 1000000000 members"),
    (["FILE", "--fanout", "organisations=1"], "no job fans out over 'organisations'"),
    (["FILE", "--at"], "--at needs a date"),
    (["FILE", "--at", "tomorrow"], "--at needs a date"),
])
def test_usage(config, arguments, message):
    path = config()
    code, out, err = run("plan", *[path if argument == "FILE" else argument for argument in arguments])
    assert (code, out) == (2, "") and message in err


def test_no_file(tmp_path):
    code, out, err = run("plan", str(tmp_path / "none.yaml"))
    assert (code, out) == (2, "") and "cannot be read" in err


def test_many_jobs(config):
    """Of a thousand organizations, each with keys of its own."""
    job = '  - {{ name: j{0}, account: acme, endpoint: "/organizations/{1}/x{0}", interval: {2}s }}\n'
    text = PLAN + "".join(job.format(i, i % 1000, 60 + i % 300) for i in range(20000))
    code, out, _ = run("plan", "--json", config(text))
    assert code == 1 and len(json.loads(out)["jobs"]) == 20001
