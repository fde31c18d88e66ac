# SPDX-License-Identifier: MIT
"""`ration simulate FILE --for SPAN`: what it prints, the JSON, what it refuses. Its page: test_day_page.py."""
import json
import re
import subprocess

import pytest

from simulated import RATION, ROOT

DAY = str(ROOT / "examples" / "day.yaml")


def simulate(*arguments, code=0):
    done = subprocess.run([RATION, "simulate", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    return done


def figures(*arguments, code=0):
    return json.loads(simulate(*arguments, "--json", code=code).stdout)


def test_a_day_for_people():
    text = simulate(DAY, "--for", "24h").stdout
    assert text.startswith("1 d from 2026-01-05T00:00:00Z, seed 1, faults: none\n")
    assert re.search(r"^critical +1440 +1440 +0 +1440 +0 +0 ", text, re.M)
    assert re.search(r"^daily my-fleet +8000 +7200 +1 +9\d\.\d % ", text, re.M)
    assert re.search(r"^inventory +low +5 min +1 h +12\.00 ", text, re.M)
    assert "429s by what refused: quota 0 rate 0 concurrency 0 other 0\n" in text
    assert re.search(r"^trace hash [0-9a-f]{16}$", text, re.M)


def test_a_day_for_programs():
    day = figures(DAY, "--for", "24h", "--seed", "3")
    assert day["passed"] and day["seed"] == 3 and day["spanMs"] == 86400000
    classes = {c["priority"]: c for c in day["priorities"]}
    assert [classes[p]["wanted"] for p in ("critical", "high", "normal", "low")] == [1440, 8640, 5760, 5184]
    for c in classes.values():
        assert sum(c["sentBySlot"]) == c["sent"] == c["answered"] + c["failed"] + c["broken"] + sum(
            c["rateLimited"].values())
        assert sum(c["refusals"].values()) == c["refused"] == sum(c["refusedBySlot"])
        assert 0 <= c["waitP50Ms"] <= c["waitP99Ms"] <= c["waitMaxMs"] <= 30000
    quota, = day["quotas"]
    assert quota["spent"] == sum(c["sent"] for c in classes.values())
    assert 0.95 <= quota["spentShare"] <= 1 and quota["left"] == 8000 - quota["spent"]
    assert [p["spent"] for p in quota["points"]] == sorted(p["spent"] for p in quota["points"])
    assert quota["points"][-1]["spent"] == quota["spent"]
    jobs = {j["name"]: j for j in day["jobs"]}
    assert jobs["heartbeat"]["stretchMost"] == 1 and jobs["heartbeat"]["runs"] == 1440
    assert jobs["inventory"]["intervals"][0] == {"atMs": 0, "effectiveMs": 3600000}


def test_same_seed_same_day():
    one, again, other = (figures(DAY, "--for", "6h", "--fault", "all", "--seed", seed) for seed in ("1", "1", "2"))
    assert one == again
    assert one["hash"] != other["hash"]


def test_every_fault_happens():
    day = figures(DAY, "--for", "24h", "--fault", "latency,errors,clock", "--fault", "restart,kill,external")
    kinds = [fault["kind"] for fault in day["faults"]]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "latency": 6, "errors": 4, "clock": 6, "restart": 3, "kill": 6}
    assert all(3000 <= abs(f["byMs"]) <= 60000 for f in day["faults"] if f["kind"] == "clock")
    assert sorted(day["played"]) == ["clock", "errors", "external", "kill", "latency", "restart"]
    assert day["zone"] == "UTC"
    assert 7 <= day["restarts"] + day["kills"] <= 9
    assert sum(c["failed"] for c in day["priorities"]) > 20
    assert day["quotas"][0]["external"] > 700
    assert max(c["waitMaxMs"] for c in day["priorities"]) > 0


def test_errors_and_another_client_without_a_fault():
    quiet = figures(DAY, "--for", "2h")
    day = figures(DAY, "--for", "2h", "--errors", "10%", "--external", "30/h", "--latency", "1s")
    assert sum(c["failed"] for c in quiet["priorities"]) == 0
    assert sum(c["failed"] for c in day["priorities"]) > 10
    assert day["quotas"][0]["external"] == 59  # the first after two minutes, the last not at the very end
    assert day["faults"] == day["played"] == []


def test_a_recording_replays(tmp_path):
    trace = tmp_path / "day.jsonl"
    simulate(DAY, "--for", "3h", "--fault", "latency,errors,clock,external", "--record", str(trace))
    done = subprocess.run([RATION, "replay", "--verify", str(trace)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "come out as recorded" in done.stdout


@pytest.mark.parametrize("options, words", [
    (["--for", "0"], "--for 0: want a duration from 1m to 31d"),
    (["--for", "-1h"], "want a duration from 1m to 31d"),
    (["--for", "59s"], "want a duration from 1m to 31d"),
    (["--for", "32d"], "want a duration from 1m to 31d"),
    (["--for", "a day"], "want a duration from 1m to 31d"),
    (["--for"], "--for wants a duration"),
    (["--for", "1h", "--fault", "flood"], "--fault flood: want faults with commas between them: latency, errors"),
    (["--for", "1h", "--fault", "kill,"], "want faults with commas"),
    (["--for", "1h", "--report", ""], "want the name of a file"),
    (["--for", "1h", "--listen", "7700"], "--listen has no part in a simulated day"),
    (["--for", "1h", "--provider", "fleet"], "--provider has no part in a simulated day"),
    (["--json"], "--json is for a simulated day: give --for too"),
    (["--fault", "all"], "--fault is for a simulated day"),
    (["--for", "1h", "--fault", "kill", "--record", "x"], "not with the faults restart and kill"),
    (["--for", "1h", "--record", "/nowhere/x"], "/nowhere/x: No such file or directory"),
])
def test_options_that_cannot_be(options, words):
    done = simulate(DAY, *options, code=2)
    assert words in done.stderr
    assert done.stdout == ""


def test_a_report_that_cannot_be_written():
    done = simulate(DAY, "--for", "1h", "--report", "/nowhere/x", code=2)
    assert "/nowhere/x: No such file or directory" in done.stderr


@pytest.mark.parametrize("change, words", [
    (("jobs:", "x-jobs:"), "x-jobs: unknown key"),
    (("provider: fleet", "provider: flee"), "there is no provider of this name (did you mean 'fleet'?)"),
    (("interval: 60s", "interval: 1ms"), "calls in that time, and a simulated day takes 5000000 at most"),
])
def test_configs_that_cannot_be(tmp_path, change, words):
    file = tmp_path / "day.yaml"
    file.write_text((ROOT / "examples" / "day.yaml").read_text().replace(*change))
    done = subprocess.run([RATION, "simulate", str(file), "--for", "24h"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_config_without_jobs_or_quotas(tmp_path):
    done = simulate(str(ROOT / "examples" / "minimal.yaml"), "--for", "1h", code=2)
    assert "the config has no jobs" in done.stderr
    file = tmp_path / "rate.yaml"
    file.write_text((ROOT / "examples" / "minimal.yaml").read_text() +
                    'jobs: [ { name: j, account: example, endpoint: "GET /x", interval: 60s } ]\n')
    assert "no provider has a quota" in simulate(str(file), "--for", "1h", code=2).stderr


def test_a_quota_that_is_not_ours_alone_fails_the_day(tmp_path):
    """The other client takes what headers never tell of: our calls are refused, and the command says so."""
    file = tmp_path / "day.yaml"
    text = (ROOT / "examples" / "day.yaml").read_text()
    file.write_text(re.sub(r"\n +sync: .*", "", text))
    done = simulate(str(file), "--for", "24h", "--external", "200/h", code=1)
    assert "FAILED: a provider refused calls for a quota's sake" in done.stdout
    assert figures(str(file), "--for", "24h", "--external", "200/h", code=1)["passed"] is False
