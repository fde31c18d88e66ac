# SPDX-License-Identifier: MIT
"""`ration status` and `ration top`: a running gateway as a person looks at it."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import urllib.request

import pyte
import pytest
from house import DEADLINE, RATION, a_day, one_provider, slots, until
from provider import hello


def run(*arguments, **environment):
    return subprocess.run([RATION, *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE,
                          env={**os.environ, **environment})


@pytest.fixture
def limited(provider, gateway):
    """A gateway whose quota is used up, and whose slots are free."""
    daily = {"name": "daily", "kind": "quota", "max": 2, "window": a_day(), "scope": {"by": ["account"]}}
    gw = gateway(one_provider(provider(hello).url, [slots(7), daily]))
    for _ in range(3):
        gw.call("GET", "/a/x", [("Ration-Timeout", "0")])
    return gw


# ---- status


def test_status_says_what_is_limited(limited):
    done = run("status", "--control", limited.control_address)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^ration 0\.1\.0, up .*: 0 calls under way, 0 wait$", done.stdout, re.M)
    assert re.search(r"^Limit daily at a: 0 of 2 left, begins anew in \d.*\.$", done.stdout, re.M)
    assert re.search(r"^! daily +quota +a +100 % +0 +0 of 2 left +in \d", done.stdout, re.M)
    assert re.search(r"^  slots +concurrency +a +0 % +0 +0 of 7 held$", done.stdout, re.M)
    # What is limited stands first.
    assert done.stdout.index("! daily") < done.stdout.index("  slots")


def test_status_of_an_idle_gateway(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    done = run("status", "--control", f"http://{gw.control_address}")
    assert done.returncode == 0 and "Nothing is limited now." in done.stdout


def test_status_says_what_an_operator_has_paused(limited):
    def operate(what):
        page = f"http://{limited.control_address}/v1/limits/slots/a/{what}"
        request = urllib.request.Request(page, b"{}", {"Content-Type": "application/json"})
        assert urllib.request.urlopen(request, timeout=10).status == 200

    operate("pause")
    done = run("status", "--control", limited.control_address)
    assert re.search(r"^Limit slots at a: paused by an operator\.$", done.stdout, re.M)
    assert re.search(r"^! slots +concurrency +a +0 % +0 +paused by an operator$", done.stdout, re.M)
    operate("resume")
    assert "paused" not in run("status", "--control", limited.control_address).stdout


def test_status_as_json(limited):
    done = run("status", "--json", "--control", limited.control_address)
    assert done.returncode == 0
    assert [limit["limit"] for limit in json.loads(done.stdout)["limits"]] == ["slots", "daily"]


def test_status_on_a_socket_and_with_a_token(provider, gateway, tmp_path):
    socket = f"unix:{tmp_path}/control"
    settings = {"listen": {"gateway": "127.0.0.1:0", "control": socket}, "token": "planted-secret"}
    gateway(one_provider(provider(hello).url, settings=settings)).ended = True
    done = run("status", "--control", socket)
    assert done.returncode == 2
    assert done.stderr.endswith("/v1/status: answered 401; RATION_TOKEN names the token of its config\n")
    done = run("status", "--control", socket, RATION_TOKEN="planted-secret")
    assert done.returncode == 0 and "Nothing is limited now." in done.stdout
    done = run("status", "--control", socket, RATION_TOKEN="planted-secre")
    assert done.returncode == 2 and "planted" not in done.stderr + done.stdout


@pytest.mark.parametrize("arguments, said", [
    (["--control", "127.0.0.1:1"], "127.0.0.1:1: "),
    (["--control", "127.0.0.1:1"], "; is `ration serve` running? --control names its control port\n"),
    (["--control", "unix:/nowhere"], "unix:/nowhere: "),
    (["--control"], "--control needs an address"),
    (["--json", "--watch"], "--json is printed once"),
    (["now"], "unknown argument 'now'"),
])
def test_status_that_cannot_be_had(arguments, said):
    done = run("status", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr


def test_status_goes_on(limited):
    with subprocess.Popen([RATION, "status", "--watch", "--control", limited.control_address],
                          stdout=subprocess.PIPE, text=True) as watching:
        heads = 0
        for line in watching.stdout:
            heads += line.startswith("ration 0.1.0")
            if heads == 2:
                break
        watching.kill()
    assert heads == 2


def test_a_page_of_somebody_else(provider):
    up = provider(hello)
    done = run("status", "--control", up.url.removeprefix("http://"))
    assert done.returncode == 2 and "this is no status of ration" in done.stderr


HOSTILE = "k\x1b[31m\x07\x9b2J\x7f\u202eé" + "x" * 300


def hostile_status(_, connection):
    """What nobody should be able to put into names, and a gateway must not be trusted to have kept out."""
    counter = {"limit": HOSTILE, "kind": HOSTILE, "key": HOSTILE, "max": 1, "held": 1, "waiting": 2**62}
    breaker = {"provider": HOSTILE, "breaker": HOSTILE, "state": HOSTILE, "cause": HOSTILE, "retryAt": 1e300}
    penalty = {"penalty": HOSTILE, "limit": HOSTILE, "until": -1e300}
    status = {"version": HOSTILE, "now": 1e18, "limits": [counter, {}], "breakers": [breaker, {}],
              "penalties": [penalty, {}], "plan": {"feasible": False},
              "ledger": {"failing": True, "lastError": HOSTILE}}
    connection.reply(200, body=json.dumps(status).encode())


def test_hostile_names_do_not_reach_the_terminal(provider):
    done = run("status", "--control", provider(hostile_status).url, LC_ALL="C.UTF-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert "k?[31m??2J?\u202eéxxx" in done.stdout
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout)
    assert "The jobs do not fit their quotas" in done.stdout and "The ledger cannot be written: k?[31m" in done.stdout


# ---- top


class Terminal:
    """A program on a terminal of its own, and what stands on its screen."""

    def __init__(self, *arguments, columns=100, lines=24):
        self.seen = ""
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.Stream(self.screen)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="linux", LC_ALL="C.UTF-8")
            os.execv(RATION, [RATION, *arguments])
        self.resize(columns, lines)

    def resize(self, columns, lines):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)
        os.kill(self.pid, signal.SIGWINCH)

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the program has ended
                break
            if not data:
                break
            self.seen += data.decode(errors="replace")
            self.stream.feed(data.decode(errors="replace"))
        return "\n".join(self.screen.display)

    def until(self, what):
        until(lambda: re.search(what, self.read()), f"{what!r} on the screen, which has\n{self.read()}")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def ends(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read()
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("it does not end")


def test_top(limited):
    top = Terminal("top", "--control", limited.control_address)
    top.until(r"Limit daily at a: 0 of 2 left")
    top.until(r"(?s)! daily .*\n  slots ")
    top.until(r"s sort: fill .* 2 rows")
    top.press("ss")
    top.until(r"s sort: name")
    top.press("/slx\x7fo")
    top.until(r"/slo_   Enter")
    top.press("\n")
    top.until(r"filter: slo .* 1 rows")
    assert "! daily" not in top.read()
    top.press("/\x1b")
    top.until(r"/ filter   p pause .* 2 rows")
    top.press("p")
    top.until("p paused")
    top.press("p")
    top.resize(40, 8)
    top.until(r"(?s)^ration 0.1.0, up .*\nLimit daily at a: 0 of 2 left, begins a")
    top.resize(160, 50)
    top.until(r"! daily +quota +a +100 % +0 +0 of 2 left +in ")
    top.press("q")
    assert top.ends() == 0


def test_top_moves(provider, gateway):
    by_path = {"name": "paths", "kind": "concurrency", "max": 9, "scope": {"by": ["var:id"]}}
    gw = gateway(one_provider(provider(hello).url, [by_path], endpoints=["/{id}"]))
    for i in range(40):
        assert gw.call("GET", f"/a/k{i:02}").status == 200
    top = Terminal("top", "--control", gw.control_address, lines=20)
    top.until(r"(?s)k00 .*k01 .*40 rows")
    top.press("jj")
    top.until(r"used.*\n +paths +concurrency +[^ ]*k02 ")
    top.press("\x1b[6~")  # page down
    top.until(r"used.*\n +paths +concurrency +[^ ]*k16 ")
    top.press("\x1b[4~")  # end
    top.until(r"used.*\n +paths +concurrency +[^ ]*k39 ")
    top.press("\x1b[1~")  # home
    top.until(r"used.*\n +paths +concurrency +[^ ]*k00 ")
    top.press("q")
    assert top.ends() == 0


def test_top_outlives_what_it_watches(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    top = Terminal("top", "--control", gw.control_address)
    top.until(r"Nothing is limited now\.")
    gw.stop()
    gw.ended = True
    top.until(r"(?s)^ration 0.1.0.*\n127.0.0.1:\d+: .*connect")
    top.press("q")
    assert top.ends() == 0


def test_top_interrupted_puts_the_terminal_back(limited):
    top = Terminal("top", "--control", limited.control_address)
    top.until("Limit daily")
    assert not termios.tcgetattr(top.fd)[3] & termios.ECHO
    os.kill(top.pid, signal.SIGINT)
    until(lambda: top.read() is not None and termios.tcgetattr(top.fd)[3] & termios.ECHO, "the terminal put back")
    assert top.ends() == -signal.SIGINT


def test_top_without_a_terminal():
    done = run("top")
    assert done.returncode == 2 and "needs a terminal" in done.stderr
