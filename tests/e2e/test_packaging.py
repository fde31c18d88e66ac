# SPDX-License-Identifier: MIT
"""What a distributor and an operator get beside the binary: unit, manual page, alerts, runbook."""

import os
import pathlib
import re
import signal
import socket
import time
import subprocess

import yaml
from house import DEADLINE, RATION, ROOT, one_provider
from provider import hello

PACKAGING = ROOT / "packaging"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


# ---- the unit


def test_unit_is_sound(tmp_path):
    unit = (PACKAGING / "systemd/ration.service").read_text()
    assert "Type=notify" in unit
    units = [tmp_path / name for name in ("ration.service", "ration.socket", "ration-control.socket")]
    for here in units:
        unit = (PACKAGING / "systemd" / here.name).read_text()
        here.write_text(unit.replace("/usr/bin/ration", RATION).replace("Documentation=man:ration(1)\n", ""))
    done = run("systemd-analyze", "verify", "--man=no", *units)
    assert (done.returncode, done.stderr) == (0, "")


def test_unit_is_shut_in():
    done = run("systemd-analyze", "security", "--offline=true", "--threshold=20", PACKAGING / "systemd/ration.service")
    assert done.returncode == 0, done.stdout


def test_supervisor_hears_of_the_start_and_the_stop(provider, gateway, tmp_path, monkeypatch):
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(DEADLINE)
        gw = gateway(one_provider(provider(hello).url))
        assert manager.recv(100) == b"READY=1"
        assert gw.control("/readyz").status == 200
        gw.signal(signal.SIGHUP)
        began = time.monotonic_ns() // 1000
        assert (told := re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=(\d+)", manager.recv(100)))
        assert abs(int(told[1]) - began) < 60_000_000
        assert manager.recv(100).startswith(b"READY=1\nSTATUS=The config was read anew")
        gw.config.write_text("{")
        gw.signal(signal.SIGHUP)
        assert manager.recv(100).startswith(b"RELOADING=1\n")
        assert manager.recv(100).startswith(b"READY=1\nSTATUS=The config was not read anew")
        gw.signal(signal.SIGTERM)
        assert manager.recv(100) == b"STOPPING=1"
        assert gw.wait() == 0


def test_a_supervisor_that_is_gone_is_a_warning(provider, gateway, tmp_path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    gw = gateway(one_provider(provider(hello).url))
    assert gw.control("/readyz").status == 200
    gw.line("the supervisor does not listen")


def test_no_core_is_written(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    limits = pathlib.Path(f"/proc/{gw.popen.pid}/limits").read_text()
    assert re.search(r"^Max core file size +0 +0 ", limits, re.M)


# ---- the manual page


def test_manual_page_tells_every_command(tmp_path):
    page = tmp_path / "ration.1"
    page.write_text(run(PACKAGING / "man.py", RATION, check=True).stdout)
    shown = run("man", "--warnings", "--local-file", page, env={**os.environ, "MANWIDTH": "120", "LC_ALL": "C.UTF-8"})
    assert (shown.returncode, shown.stderr) == (0, "")
    commands = re.findall(r"^  ([a-z]+) ", run(RATION, "help", check=True).stdout, re.M)
    assert len(commands) > 5
    for command in commands:
        assert re.search(rf"^ +ration {command}\b", shown.stdout, re.M), command


def test_manual_page_tells_every_key(tmp_path):
    page = tmp_path / "ration.yaml.5"
    page.write_text(run(PACKAGING / "man.py", RATION, "config", check=True).stdout)
    shown = run("man", "--warnings", "--local-file", page, env={**os.environ, "MANWIDTH": "120", "LC_ALL": "C.UTF-8"})
    assert (shown.returncode, shown.stderr) == (0, "")
    keys = re.findall(r"^\| `(\w+)` \|", run(RATION, "schema", "--markdown", check=True).stdout, re.M)
    assert len(keys) > 100
    for key in keys:
        assert re.search(rf"^ +{key}\b", shown.stdout, re.M), key


# ---- alerts and the runbook


def reasons():
    text = (ROOT / "include/ration/types.h").read_text()
    return re.findall(r'X\(RATION_REASON_\w+, "(\w+)"', text)


def sections():
    return re.findall(r"^## (\w+)$", (ROOT / "docs/guide/runbook.md").read_text(), re.M)


def test_runbook_has_every_reason():
    assert len(reasons()) > 15
    assert sections() == [*reasons(), "reload", "fleet"]


def test_alerts_ask_for_metrics_that_exist(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    known = set(re.findall(r"^# TYPE (\w+)", gw.control("/metrics").body.decode(), re.M))
    rules = yaml.safe_load((PACKAGING / "prometheus/ration.rules.yaml").read_text())
    asked = set()
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["runbook"] in sections(), rule["alert"]
            asked |= set(re.findall(r"ration_\w+", rule["expr"]))
    assert asked and {name.removesuffix("_bucket") for name in asked} <= known
