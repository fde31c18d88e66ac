# SPDX-License-Identifier: MIT
"""A simulator as a child process, and a plain HTTP client for it."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATION = os.environ.get("RATION", str(ROOT / "build" / "ration"))


@contextlib.contextmanager
def simulator(tmp_path, config, *options):
    """`ration simulate` on any free port; yields its port."""
    path = tmp_path / "provider.yaml"
    path.write_text(config)
    process = subprocess.Popen([RATION, "simulate", str(path), "--listen", "127.0.0.1:0", *options],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert match, line + process.stderr.read()
        yield int(match.group(1))
    finally:
        process.terminate()
        out, err = process.communicate(timeout=10)
        assert process.returncode == 0, (process.returncode, err)
        assert err == ""


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Client:
    """One connection, one call after the other."""

    def __init__(self, port, key="secret-1"):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self.headers = {} if key is None else {"Authorization": "Bearer " + key}

    def send(self, path="/", method="GET", body=None, **headers):
        fields = dict(self.headers, **{name.replace("_", "-"): value for name, value in headers.items()})
        self.connection.request(method, path, body=body, headers=fields)

    def receive(self):
        return Answer(self.connection.getresponse())

    def call(self, *args, **kwargs):
        self.send(*args, **kwargs)
        return self.receive()

    def counts(self):
        return self.call("/__ration/counts").json()


def wait_until(condition, seconds=10):
    """Look again and again until it holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
