# SPDX-License-Identifier: MIT
"""`ration demo`: the promise in figures, and a recording that replays byte for byte."""
import json
import os
import re
import signal
import subprocess
import urllib.request

from simulated import RATION


def run(*arguments):
    return subprocess.run([RATION, *arguments], capture_output=True, text=True, timeout=110)


def test_figures_and_recording(tmp_path):
    recording = str(tmp_path / "demo.jsonl")
    done = run("demo", "--json", "--seed", "7", "--record", recording)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    straight, through = figures["straight"], figures["through"]

    assert figures["passed"] is True and figures["seed"] == 7
    assert straight["sent"] == through["sent"] == 240
    assert straight["provider"]["rateLimited"] >= 100
    assert straight["rateLimited"] == straight["provider"]["rateLimited"]
    assert straight["answered"] + straight["rateLimited"] == 240 and straight["failed"] == 0
    assert straight["waitP99Ms"] == 0

    assert through["provider"]["rateLimited"] == 0
    # What the kill broke off arrived once more.
    assert through["answered"] == through["provider"]["requests"] - through["provider"]["gone"] == 240
    assert through["rateLimited"] == through["failed"] == 0
    assert 0 < through["waitP50Ms"] <= through["waitP99Ms"] < 60000

    tenants = through["tenants"]
    assert set(tenants) == {"web", "reports", "batch"}
    assert abs(sum(t["share"] for t in tenants.values()) - 1) < 1e-5
    assert tenants["web"]["waitP50Ms"] < tenants["batch"]["waitP50Ms"]
    assert through["tookMs"] < 60000

    replay = run("replay", "--verify", recording)
    assert replay.returncode == 0, replay.stdout[-2000:] + replay.stderr
    replay = run("replay", "--verify", recording + ".old")
    assert replay.returncode == 0, replay.stdout[-2000:] + replay.stderr


def test_restart(tmp_path):
    """Killed amid its calls it remembers what it had let through, and at most a block of 1 % more."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([RATION, "demo", "--json"], capture_output=True, text=True, timeout=110, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    restart = json.loads(done.stdout)["restart"]
    assert restart["atMs"] == 4000 and json.loads(done.stdout)["through"]["repeated"] > 0
    if restart["sameWindow"]:
        assert 20 < restart["usedBefore"] <= restart["usedAfter"] <= restart["usedBefore"] + 10
    assert not list(tmp_path.iterdir())


def test_report_for_people_and_keep():
    process = subprocess.Popen([RATION, "demo", "--keep"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        intro = "".join(iter(lambda: process.stdout.readline(), "\n"))
        intro += "".join(iter(lambda: process.stdout.readline(), "\n"))
        control = re.search(r"control\s+(http://127\.0\.0\.1:\d+/v1/status)", intro).group(1)
        assert json.load(urllib.request.urlopen(control, timeout=10))

        lines = []
        while not lines or "FAILED" not in lines[-1] and "refused none" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1] != "", "".join(lines)
        report = "".join(lines)
        straight, through = re.search(r"429s from the provider\s+(\d+)\s+(\d+)", report).groups()
        assert int(straight) >= 100 and int(through) == 0
        assert json.load(urllib.request.urlopen(control, timeout=10))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_interrupted():
    process = subprocess.Popen([RATION, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "interrupted" in err


def test_usage():
    for arguments, words in ((["--seed"], "--seed wants"), (["--seed", "x"], "--seed wants"),
                             (["--record"], "--record wants"), (["now"], "unknown option 'now'")):
        done = run("demo", *arguments)
        assert done.returncode == 2 and words in done.stderr
    done = run("demo", "--record", "/nonexistent/demo.jsonl")
    assert done.returncode == 2 and "/nonexistent/demo.jsonl" in done.stderr
