# SPDX-License-Identifier: MIT
"""Sockets that a service manager has opened: a launcher does what systemd does, without it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from house import RATION, Client, Process, one_provider
from provider import hello

# As the manager's child: descriptors from 3 on, and a variable that names this very process.
LAUNCHER = """
import fcntl, os, sys
names, held, shift, *command = sys.argv[1:]
high = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in held.split(",")]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid() + int(shift)), LISTEN_FDNAMES=names, LISTEN_FDS=str(len(high)))
os.execv(command[0], command)
"""


def arguments(sockets, names, folder, config, shift=0):
    """What to run, and how: the sockets become 3, 4 and so on."""
    file = folder / "ration.yaml"
    file.write_text(json.dumps(config))
    held = [one.fileno() for one in sockets]
    command = [sys.executable, "-c", LAUNCHER, names, ",".join(map(str, held)), str(shift), RATION, "serve", str(file)]
    return command, {"pass_fds": held, "cwd": folder}


def listening(host="127.0.0.1", kind=socket.SOCK_STREAM):
    one = socket.socket(socket.AF_INET, kind)
    one.bind((host, 0))
    if kind == socket.SOCK_STREAM:
        one.listen()
    return one


def call(port, target):
    with Client(port) as client:
        return client.call("GET", target)


def test_both_listeners_are_given(provider, tmp_path):
    """By their names, in any order; whoever connected before the process was there is served."""
    # A port that nobody may take shows that the config's addresses are not tried.
    listen = {"gateway": "127.0.0.1:1", "control": "127.0.0.1:2"}
    config = one_provider(provider(hello).url, settings={"listen": listen})
    with listening() as gateway, listening() as control:
        ports = [one.getsockname()[1] for one in (gateway, control)]
        early = Client(ports[0]).ask("GET", "/a/")
        command, options = arguments([control, gateway], "control:gateway", tmp_path, config)
        process = Process(command, **options)
        try:
            said = process.line(r"msg=listening gateway=127.0.0.1:(\d+) control=127.0.0.1:(\d+)")
            assert [int(said[1]), int(said[2])] == ports
            assert early.answer().body == b"hello\n"
            early.close()
            assert call(ports[0], "/a/").body == b"hello\n"
            assert call(ports[1], "/healthz").body == b"ok\n"
            process.signal(signal.SIGTERM)
            assert process.wait() == 0, process.text()
        finally:
            process.kill()


def test_one_is_given_and_one_is_opened(provider, tmp_path):
    listen = {"gateway": "127.0.0.1:1", "control": "127.0.0.1:0"}
    config = one_provider(provider(hello).url, settings={"listen": listen})
    path = str(tmp_path / "gateway.sock")
    with socket.socket(socket.AF_UNIX) as gateway, listening() as other:
        gateway.bind(path)
        gateway.listen()
        command, options = arguments([other, gateway], "other:gateway", tmp_path, config)
        process = Process(command, **options)
        try:
            said = process.line(r"msg=listening gateway=unix:(\S+) control=127.0.0.1:(\d+)")
            assert said[1] == path
            process.line('msg="a socket is not used"')
            assert call(int(said[2]), "/healthz").status == 200
            process.signal(signal.SIGTERM)
            assert process.wait() == 0, process.text()
            assert os.path.exists(path), "it is the manager's"
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("why", "sockets", "names", "words"),
    [
        ("two of a name", [listening, listening], "gateway:gateway", "two of that name"),
        ("no stream", [lambda: listening(kind=socket.SOCK_DGRAM)], "control", "no stream socket that listens"),
        ("for others", [lambda: listening("0.0.0.0")], "gateway", r"0\.0\.0\.0:\d+: others can .* settings.token"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value and len(value) < 15 else "",
)
def test_sockets_that_end_the_start(tmp_path, why, sockets, names, words):
    made = [make() for make in sockets]
    listen = {"gateway": "127.0.0.1:0", "control": "127.0.0.1:0"}
    command, options = arguments(made, names, tmp_path, one_provider("http://127.0.0.1:1", settings={"listen": listen}))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)
    assert done.returncode == 2 and re.search(words, done.stderr), (why, done)
    for one in made:
        one.close()


def test_variables_of_another_process(provider, tmp_path):
    """A child that inherits them, but not the sockets, opens its own."""
    listen = {"gateway": "127.0.0.1:0", "control": "127.0.0.1:0"}
    config = one_provider(provider(hello).url, settings={"listen": listen})
    with listening() as gateway:
        command, options = arguments([gateway], "gateway", tmp_path, config, shift=1)
        process = Process(command, **options)
        try:
            said = process.line(r"msg=listening gateway=127.0.0.1:(\d+)")
            assert int(said[1]) != gateway.getsockname()[1]
            process.signal(signal.SIGTERM)
            assert process.wait() == 0, process.text()
        finally:
            process.kill()
