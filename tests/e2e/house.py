# SPDX-License-Identifier: MIT
"""What the tests share: a gateway process, raw clients, and waiting for what must happen by a deadline."""

import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import subprocess
import termios
import threading
import time
import zoneinfo

import planted

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATION = os.environ.get("RATION", str(ROOT / "build" / "ration"))
# In logfmt and in JSON.
LISTENING = r'msg"?[=:]"?listening"?[ ,]"?gateway"?[=:]"?([^"\s,]+)"?[ ,]"?control"?[=:]"?([^"\s,]+)'
DEADLINE = float(os.environ.get("DEADLINE", "30"))


def until(holds, what, deadline=DEADLINE):
    """Ask again until it holds; the answer that held."""
    end = time.monotonic() + deadline
    while True:
        answer = holds()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what}")
        time.sleep(0.01)


held_ports = []


def free_port():
    """A port on which nothing listens, for who cannot be given port 0. It is this process's until that ends: nobody is
    given it by the kernel, whose ports are higher, nor by this function, for its name among the sockets is taken."""
    while True:
        port = random.randrange(10000, 30000)
        with socket.socket() as listener:
            name = socket.socket(socket.AF_UNIX)
            try:
                name.bind(f"\0ration-test-{port}")
                listener.bind(("127.0.0.1", port))
            except OSError:
                name.close()
                continue
        held_ports.append(name)
        return port


class Answer:
    """A response, read from a socket to its end."""

    def __init__(self, status, reason, fields, body, trailers):
        self.status = status
        self.reason = reason
        self.fields = fields
        self.body = body
        self.trailers = trailers

    def __getitem__(self, name):
        values = self.all(name)
        return values[0] if values else None

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def json(self):
        return json.loads(self.body)


class Client:
    """A raw HTTP/1.1 client: it sends what it is told to, right or wrong."""

    def __init__(self, port, deadline=DEADLINE):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=deadline)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.file.close()
        self.socket.close()

    def reset(self):
        """Close as a process that is killed does: unread bytes make it a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
        return self

    def ask(self, method, target, fields=(), body=None):
        head = [f"{method} {target} HTTP/1.1", "Host: gateway"]
        head += [f"{name}: {value}" for name, value in dict(fields).items()]
        if body is not None:
            head.append(f"Content-Length: {len(body)}")
        return self.send("\r\n".join(head) + "\r\n\r\n").send(body or b"")

    def head(self):
        """Status, reason and fields of the next response."""
        line = self.file.readline()
        if not line:
            raise EOFError("closed before a response")
        planted.look("a status line", line)
        match = re.fullmatch(rb"HTTP/1\.1 (\d{3}) (.*)\r\n", line)
        assert match, line
        return int(match[1]), match[2].decode(), self.section()

    def section(self):
        fields = []
        while (line := self.file.readline()) != b"\r\n":
            assert line.endswith(b"\r\n"), line
            planted.look("a field", line)
            name, _, value = line.decode("latin-1").partition(":")
            fields.append((name, value.strip()))
        return fields

    def chunk(self):
        """The next piece of a chunked body; b"" at its end."""
        line = self.file.readline()
        if not line:
            raise EOFError("closed amid the body")
        size = int(line.split(b";")[0], 16)
        data = self.file.read(size)
        if size > 0:
            assert self.file.readline() == b"\r\n"
        return data

    def answer(self, method="GET", interim=None):
        status, reason, fields = self.head()
        while status < 200:
            if interim is not None:
                interim.append(status)
            status, reason, fields = self.head()
        found = {name.lower(): value for name, value in fields}
        body, trailers = b"", []
        if method == "HEAD" or status in (204, 304):
            pass
        elif "chunked" in found.get("transfer-encoding", ""):
            while piece := self.chunk():
                body += piece
            trailers = self.section()
        elif "content-length" in found:
            body = self.file.read(int(found["content-length"]))
            if len(body) != int(found["content-length"]):
                raise EOFError("the body is shorter than told")
        else:
            body = self.file.read()
        planted.look("a body", body)
        return Answer(status, reason, fields, body, trailers)

    def call(self, method, target, fields=(), body=None):
        return self.ask(method, target, fields, body).answer(method)

    def is_closed(self):
        """The other side has closed, or does so by the deadline."""
        try:
            return self.file.read(1) == b""
        except ConnectionError:
            return True


class Process:
    """A process whose lines on standard error are kept. They are read under the lock: whoever has that and finds
    nothing unread has heard all of them."""

    def __init__(self, arguments, **options):
        self.lines = []
        self.changed = threading.Condition()
        self.popen = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        pipe, rest, data = self.popen.stderr.fileno(), b"", True
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while data:
            poll.poll()
            with self.changed:
                data = os.read(pipe, 65536)
                *lines, rest = (rest + data).split(b"\n")
                if not data and rest:
                    lines.append(rest)
                self.lines += [line.decode(errors="replace") for line in lines]
                if not data:
                    self.lines.append(None)
                self.changed.notify_all()

    def line(self, pattern, deadline=DEADLINE):
        """The first line that matches, as it comes."""
        end = time.monotonic() + deadline
        at = 0
        with self.changed:
            while True:
                for line in self.lines[at:]:
                    if line is None:
                        raise AssertionError(f"ended without {pattern!r}: {self.lines}")
                    if match := re.search(pattern, line):
                        return match
                at = len(self.lines)
                if not self.changed.wait(max(0, end - time.monotonic())):
                    raise AssertionError(f"no {pattern!r} in {self.lines}")

    def heard(self):
        """The lines that it has written until now."""

        def lines():
            with self.changed:
                unread = fcntl.ioctl(self.popen.stderr, termios.FIONREAD, bytes(4))
                return None if any(unread) else [[line for line in self.lines if line is not None]]

        return until(lines, "all is read")[0]

    def text(self):
        return "\n".join(self.heard())

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, deadline=DEADLINE):
        status = self.popen.wait(deadline)
        self.reader.join(deadline)
        return status

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()


class Gateway(Process):
    """`ration serve` with a config, on ports of its own."""

    def __init__(self, config, folder, *arguments, **options):
        settings = config.setdefault("settings", {})
        settings.setdefault("listen", {"gateway": "127.0.0.1:0", "control": "127.0.0.1:0"})
        settings.setdefault("ledger", {"path": "none"})
        operators = [client["token"] for client in config.get("clients", []) if client.get("operator")]
        self.token = settings.get("token", *operators[:1])
        self.planted = planted.Planted(config)
        self.folder = folder
        self.config = folder / "ration.yaml"
        self.config.write_text(json.dumps(config))
        super().__init__([RATION, "serve", "--config", str(self.config), *arguments], cwd=folder, **options)
        self.ended = False
        try:
            found = self.line(LISTENING)
        except AssertionError:
            self.kill()
            raise
        self.port = int(found[1].rpartition(":")[2])
        self.control_address = found[2]
        port = found[2].rpartition(":")[2]
        self.control_port = int(port) if port.isdigit() else None

    def client(self):
        return Client(self.port)

    def call(self, method, target, fields=(), body=None):
        with self.client() as client:
            return client.call(method, target, fields, body)

    def control(self, target, method="GET", fields=(), body=None):
        with Client(self.control_port) as client:
            return client.call(method, target, fields, body)

    def status(self):
        answer = self.control("/v1/status")
        assert answer.status == 200, answer.body
        return answer.json()

    def metrics(self):
        """Every sample by its name with its labels."""
        samples = {}
        for line in self.control("/metrics").body.decode().splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                assert name not in samples, name
                samples[name] = float(value)
        return samples

    def until(self, holds, what, deadline=DEADLINE):
        """The status that held."""

        def ask():
            status = self.status()
            return status if holds(status) else None

        return until(ask, what, deadline)

    def until_idle(self):
        """Nothing is held, nobody waits, no call is left."""
        return self.until(
            lambda s: s["held"] == 0 and s["waiting"] == 0 and s["keptBytes"] == 0 and not any(s["exchanges"].values()),
            "nothing held",
        )

    def stop(self, deadline=DEADLINE):
        self.signal(signal.SIGTERM)
        self.ended = True
        return self.wait(deadline)

    def close(self):
        try:
            if not self.ended and self.popen.poll() is None:
                self.until_idle()
                assert self.status()["totals"]["errors"] == 0
                self.look_for_secrets()
                assert self.stop() == 0, self.text()
        finally:
            self.kill()
            self.planted.forget()
        self.planted.look("the log", self.text().encode())
        self.planted.look_below(self.folder)

    def look_for_secrets(self):
        """On every page; an answer is searched as it is read."""
        if self.control_port is None:
            return
        fields = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with Client(self.control_port) as client:
            for page in planted.PAGES:
                assert client.call("GET", page, fields).status != 500


def a_day(zone=None):
    """A window of a day that ends twelve hours from now: no test meets its end, whenever it runs."""
    there = datetime.datetime.now(zoneinfo.ZoneInfo(zone or "UTC")) + datetime.timedelta(hours=12)
    return {"period": "day", "resetAt": there.strftime("%H:%M"), **({"timezone": zone} if zone else {})}


def one_provider(url, limits=(), account=None, settings=None, **provider):
    """A config with one provider `p` behind one account `a`, without retries unless they are given."""
    return {
        "settings": {"ledger": {"path": "none"}, **(settings or {})},
        "providers": [{"name": "p", "baseUrl": url, "limits": list(limits), "retries": 0, **provider}],
        "accounts": [{"name": "a", "provider": "p", **(account or {})}],
    }


def slots(count, **more):
    return {"name": "slots", "kind": "concurrency", "max": count, "scope": {"by": ["account"]}, **more}
