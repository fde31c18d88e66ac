# SPDX-License-Identifier: MIT
"""Redis in every shape that a store may have: alone, over TLS, with users, a cluster, Sentinel with a replica; and a
proxy that spoils what is between. All on ports and in folders of their own, without a disk but where Redis insists.

REDIS_SERVER=/opt/redis-6.2/redis-server has all tests run that program instead of the installed one.
"""

import contextlib
import functools
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import threading

from house import RATION, free_port, until

CLIENT = pathlib.Path(RATION).parent / "tests" / "fleet" / "store_client"
LOOPBACK = "127.0.0.1"
SERVER = os.environ.get("REDIS_SERVER", "redis-server")


def missing():
    """What is not installed here; None: all is."""
    return next((name for name in (SERVER, "redis-cli") if shutil.which(name) is None), None)


@functools.cache
def version():
    """Of the server, such as (7, 0, 15)."""
    told = subprocess.run([SERVER, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    return tuple(map(int, re.search(r"v=([0-9.]+)", told)[1].split(".")))


@functools.cache
def has_tls():
    """Whether the server was built with it: then it wants a certificate."""
    done = subprocess.run([SERVER, "--port", "0", "--tls-port", str(free_port())], capture_output=True, timeout=30)
    return b"tls-cert-file" in done.stdout + done.stderr


def faked(where):
    """The environment of a process whose clock is that of the machine and so many seconds as the file says. The C
    library comes with it because libfaketime and a server's own allocator each want the other one first."""
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return {**os.environ, "LD_PRELOAD": f"{library}:libc.so.6", "FAKETIME_TIMESTAMP_FILE": str(where),
            "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


class Clock:
    """Of processes that are started with its environment: so many seconds ahead of this machine's."""

    def __init__(self, path, ahead_s=0):
        self.path = path
        self.set(ahead_s)
        self.env = faked(path)

    def set(self, ahead_s):
        """Whole or not at all, for it is read while it is written."""
        new = self.path.with_suffix(".new")
        new.write_text(f"{ahead_s:+}")
        new.replace(self.path)
        self.ahead_s = ahead_s


class Redis:
    """A server on a port and a socket of its own."""

    def __init__(self, folder, *options, port=None, wait=True, env=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "s"
        self.port = port or free_port()
        self.url = f"redis://{LOOPBACK}:{self.port}"
        self.options = options
        self.env = env
        self.process = None
        self.start(wait)

    def command(self):
        return [SERVER, "--port", str(self.port), "--bind", LOOPBACK, "--unixsocket", str(self.path),
                "--save", "", "--appendonly", "no", "--dir", str(self.folder), *self.options]

    def start(self, wait=True):
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, env=self.env)
        if wait:
            until(self.answers, "a store that answers")

    def answers(self):
        told = self.ask("PING")
        return b"PONG" in told or b"NOAUTH" in told

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-s", str(self.path), *map(str, words)], capture_output=True, timeout=30)
        return done.stdout + done.stderr

    def get(self, key):
        return self.ask("GET", key).strip().decode()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    close = kill

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Certificates:
    """A CA, another CA, and certificates of the first: for this host, for another, and one that has expired."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.ca = str(self.folder / "ca.pem")
        self.other_ca = str(self.folder / "other.pem")
        (self.folder / "ca.index").touch()
        (self.folder / "ca.conf").write_text(
            "[ca]\ndefault_ca = one\n[one]\ndatabase = ca.index\nnew_certs_dir = .\nserial = ca.serial\n"
            "default_md = sha256\npolicy = any\nunique_subject = no\n[any]\ncommonName = supplied\n")
        for name in ("ca", "other"):
            self.openssl("req", "-x509", *self.new(name), "-out", f"{name}.pem", "-days", "2", "-subj", "/CN=Test CA")
        self.sign("right", f"IP:{LOOPBACK}", "20000101000000Z", "21000101000000Z")
        self.sign("wrong", "DNS:elsewhere.example", "20000101000000Z", "21000101000000Z")
        self.sign("expired", f"IP:{LOOPBACK}", "20000101000000Z", "20010101000000Z")

    @staticmethod
    def new(name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def sign(self, name, host, begin, end):
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={host}\n")
        self.openssl("req", *self.new(name), "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("ca", "-config", "ca.conf", "-batch", "-notext", "-rand_serial", "-cert", "ca.pem", "-keyfile",
                     "ca.key", "-in", f"{name}.csr", "-out", f"{name}.pem", "-extfile", f"{name}.ext", "-startdate",
                     begin, "-enddate", end)

    def options(self, name, port, clients="no"):
        return ["--tls-port", str(port), "--tls-cert-file", str(self.folder / f"{name}.pem"), "--tls-key-file",
                str(self.folder / f"{name}.key"), "--tls-ca-cert-file", self.ca, "--tls-auth-clients", clients]


class Cluster:
    """Masters with all slots between them."""

    def __init__(self, folder, count=3):
        self.nodes = []
        for i in range(count):
            self.nodes.append(Redis(
                pathlib.Path(folder) / f"n{i}", "--cluster-enabled", "yes", "--cluster-node-timeout", "15000",
                "--cluster-require-full-coverage", "no", *self.bus(), wait=False))
        self.url = "redis+cluster://" + ",".join(f"{LOOPBACK}:{node.port}" for node in self.nodes[:2])
        for i, node in enumerate(self.nodes):
            until(node.answers, "a member that answers")
            first, last = 16384 * i // count, 16384 * (i + 1) // count - 1
            assert b"OK" in node.ask("CLUSTER", "ADDSLOTS", *range(first, last + 1))
            assert b"OK" in node.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in self.nodes[1:]:
            bus = node.options[-1:] if "--cluster-port" in node.options else []
            assert b"OK" in self.nodes[0].ask("CLUSTER", "MEET", LOOPBACK, node.port, *bus)
        until(lambda: all(self.knows_all(node) for node in self.nodes), "a cluster that is whole")

    @staticmethod
    def bus():
        """A port for the members' own talk; before 7.0 it cannot be chosen and is 10 000 above the other."""
        return ["--cluster-port", str(free_port())] if version() >= (7,) else []

    def knows_all(self, node):
        told = node.ask("CLUSTER", "INFO")
        return b"cluster_state:ok" in told and b"cluster_slots_ok:16384" in told and \
            len(self.names(node)) == len(self.nodes)

    @staticmethod
    def names(node):
        """The ids of the members whose addresses it knows, by their ports."""
        lines = [line.split() for line in node.ask("CLUSTER", "NODES").decode().splitlines()]
        return {int(line[1].split("@")[0].split(":")[1]): line[0] for line in lines
                if "handshake" not in line[2] and line[7] == "connected"}

    def of(self, key):
        """The one that has a key's slot."""
        slot = int(self.nodes[0].ask("CLUSTER", "KEYSLOT", key))
        return slot, self.nodes[next(i for i in range(len(self.nodes))
                                     if 16384 * i // len(self.nodes) <= slot < 16384 * (i + 1) // len(self.nodes))]

    def close(self):
        for node in self.nodes:
            node.kill()


class Sentinel:
    """A master, a replica of it, and a Sentinel that watches them."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.master = Redis(folder / "a", "--repl-diskless-sync-delay", "0")
        self.replica = Redis(folder / "b", "--repl-diskless-sync-delay", "0", "--replicaof", LOOPBACK,
                             str(self.master.port), wait=False)
        self.folder = folder / "c"
        self.folder.mkdir()
        self.port = free_port()
        self.url = f"redis+sentinel://{LOOPBACK}:{self.port}/house"
        (self.folder / "conf").write_text(
            f"port {self.port}\nbind {LOOPBACK}\ndir {self.folder}\nsentinel monitor house {LOOPBACK} "
            f"{self.master.port} 1\nsentinel down-after-milliseconds house 2000\n"
            "sentinel failover-timeout house 2000\n")
        until(lambda: b"master_link_status:up" in self.replica.ask("INFO", "replication"), "a replica in step")
        self.process = subprocess.Popen([SERVER, str(self.folder / "conf"), "--sentinel"],
                                        stdout=subprocess.DEVNULL)
        until(lambda: b"num-slaves\n1" in self.ask("SENTINEL", "MASTER", "house"), "a Sentinel that knows the replica")

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-h", LOOPBACK, "-p", str(self.port), *words], capture_output=True,
                              timeout=30)
        return done.stdout + done.stderr

    def close(self):
        self.process.kill()
        self.process.wait()
        self.master.kill()
        self.replica.kill()


class Proxy:
    """Between a store and whom it speaks to: passes everything on until it is told otherwise.

    `mute`: bytes go neither way, connections are taken. `deaf_after(count)`: so many bytes of answers come through,
    then the connection is cut. `refuse`: connections are closed at once. `say`: what it answers by itself.
    """

    def __init__(self, port):
        self.port = free_port()
        self.url = f"redis://{LOOPBACK}:{self.port}"
        self.target = port
        self.muted = threading.Event()
        self.answers_left = None
        self.words = None
        self.taken = 0
        self.asked = b""
        self.pairs = []
        self.lock = threading.Lock()
        self.listener = socket.create_server((LOOPBACK, self.port))
        self.wake, self.waker = socket.socketpair()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def accept(self):
        near, _ = self.listener.accept()
        self.taken += 1
        far = None
        if self.words is None:
            try:
                far = socket.create_connection((LOOPBACK, self.target))
            except OSError:
                near.close()
                return
        self.pairs.append((near, far))

    def drop(self, pair):
        self.pairs.remove(pair)
        for one in pair:
            if one is not None:
                one.close()

    def pass_on(self, pair, one):
        near, far = pair
        data = one.recv(65536)
        if not data:
            self.drop(pair)
        elif one is near:
            self.asked += data
            if self.words is not None:
                near.sendall(self.words)
            else:
                far.sendall(data)
        elif self.answers_left is None:
            near.sendall(data)
        else:
            near.sendall(data[:self.answers_left])
            self.answers_left -= len(data)
            if self.answers_left < 0:
                self.answers_left = None
                self.drop(pair)

    def run(self):
        while True:
            with self.lock:
                flowing = [] if self.muted.is_set() else [one for pair in self.pairs for one in pair if one is not None]
            ready, _, _ = select.select([self.listener, self.wake, *flowing], [], [])
            if self.wake in ready and self.wake.recv(64) == b"":
                return
            for one in ready:
                with self.lock, contextlib.suppress(OSError):
                    if one is self.listener:
                        self.accept()
                        continue
                    pair = next((pair for pair in self.pairs if one in pair), None)
                    if pair is None or self.muted.is_set():
                        continue
                    try:
                        self.pass_on(pair, one)
                    except OSError:
                        self.drop(pair)

    def mute(self):
        self.muted.set()
        self.waker.send(b"x")

    def unmute(self):
        self.muted.clear()
        self.waker.send(b"x")

    def deaf_after(self, count):
        """The next answers come through to so many bytes, and then an end."""
        with self.lock:
            self.answers_left = count

    def cut(self):
        """An end to all connections."""
        with self.lock:
            for pair in list(self.pairs):
                for one in pair:
                    if one is not None:
                        with contextlib.suppress(OSError):
                            one.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.waker.close()
        self.thread.join()
        self.listener.close()
        for pair in list(self.pairs):
            self.drop(pair)
        self.wake.close()


class Client:
    """tests/fleet/store_client: what it has said so far, and what it is to do."""

    def __init__(self, url, **options):
        self.lines = []
        words = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen([str(CLIENT), url, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, "http_proxy": "http://127.0.0.1:1"})
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.append(line.decode().rstrip("\n"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def tell(self, *lines):
        """All in one piece, so that it hears them in one turn."""
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self.process.stdin.flush()
        return self

    def heard(self, tag, count=1):
        """What it said about a call, or of that name, once there are so many."""
        def told():
            lines = [line[len(tag) + 1:] for line in list(self.lines) if line.split(" ", 1)[0] == tag]
            return lines if len(lines) >= count else None
        return until(told, f"{count} of '{tag}' from the client, which has said {self.lines[-5:]}")

    def ask(self, *words):
        """A command and its answer."""
        tag = f"t{len(self.lines)}"
        self.tell(f"do {tag} {' '.join(words)}")
        return self.heard(tag)[0]

    def admit(self, name):
        tag = f"t{len(self.lines)}"
        self.tell(f"admit {tag} {name}")
        return self.heard(tag)[0]

    def until_up(self):
        until(lambda: any(line.startswith("state ") for line in self.lines) and self.state()[0] == "up",
              "a store that is up")
        return self

    def until_down(self):
        until(lambda: any(line.startswith("state ") for line in self.lines) and self.state()[0] == "down",
              "a store that is down")
        return self.state()[1]

    def state(self):
        told = [line for line in list(self.lines) if line.startswith("state ")]
        _, state, text = told[-1].split(" ", 2)
        return state, text

    def stats(self):
        before = len([line for line in list(self.lines) if line.startswith("stats ")])
        self.tell("stats")
        return {name: int(value) for name, value in
                (pair.split("=") for pair in self.heard("stats", before + 1)[-1].split())}

    def close(self):
        """It ends by itself, with nothing left over."""
        if self.process.returncode is not None:
            return
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        status = self.process.wait(timeout=60)
        self.thread.join()
        told = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        assert status == 0 and told == "", f"{status}: {told}"
        assert self.lines[-1] == "closed"
