#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a gateway in a fleet admits a second, alone with its Redis, one by one and with `prefetch`; and how soon one who
waits at one gateway has what another gateway gives back.

Rounds are interleaved, and a ratio is the median of the rounds' own ratios. An admission is an acquire and a release
over a Unix socket; nobody is called. The gateway has cpu0 to itself, Redis and the load share cpu1. Waking is timed by
the client, from its release at the one gateway to its answer from the other.

usage: bench_fleet_serve.py RATION LOAD [--rounds N] [--seconds N] [--connections N] [--wakes N]
"""

import argparse
import contextlib
import json
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

from bench_api import answers, load, server

CONFIG = """settings:
  listen: {{ gateway: 127.0.0.1:0, control: "unix:{control}" }}
  fleet: {{ redis: "unix:{redis}", name: {name}, prefetch: {prefetch} }}
providers:
  - name: bench
    baseUrl: http://localhost:9
    limits:
{limits}
accounts:
  - {{ name: bench, provider: bench }}
"""
MANY = """      - { name: rate, kind: rate, rate: 1000000/s, burst: 1000000, scope: { by: [account] } }
      - { name: daily, kind: quota, max: 9000000000, window: { period: day }, scope: { by: [account] } }"""
ONE = "      - { name: slot, kind: concurrency, max: 1, scope: { by: [account] } }"


@contextlib.contextmanager
def redis(path):
    command = ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", ""]
    process = subprocess.Popen(["taskset", "-c", "1", *command], stdout=subprocess.DEVNULL)
    try:
        answers(str(path))
        yield path
    finally:
        process.terminate()
        process.wait()


class Gateway:
    """Its decision API, a call at a time."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(address)

    def ask(self, path, body):
        text = json.dumps(body)
        self.socket.sendall(f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
                            f"Content-Length: {len(text)}\r\n\r\n{text}".encode())

    def answer(self):
        text = b""
        while b"\r\n\r\n" not in text:
            text += self.socket.recv(65536)
        head, _, body = text.partition(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-len"))
        while len(body) < size:
            body += self.socket.recv(65536)
        return json.loads(body)


def is_up(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(address)
        s.sendall(b"GET /v1/status HTTP/1.0\r\nHost: bench\r\n\r\n")
        text = b""
        while part := s.recv(65536):
            text += part
    return b'"fleet":{"state":"up"' in text


@contextlib.contextmanager
def gateway(options, folder, **how):
    control = f"{folder}/{how['name']}-{len(list(folder.iterdir()))}.sock"
    config = pathlib.Path(control + ".yaml")
    config.write_text(CONFIG.format(control=control, redis=f"{folder}/redis.sock", **how))
    with server(options.ration, "serve", config):
        answers(control)
        while not is_up(control):
            time.sleep(0.01)
        yield control


def admissions(options, folder):
    taken = {1: [], 100: []}
    with contextlib.ExitStack() as stack:
        at = {size: stack.enter_context(gateway(options, folder, name=f"n{size}", prefetch=size, limits=MANY))
              for size in taken}
        for _ in range(options.rounds):
            for size, rounds in taken.items():
                rounds.append(load(options.load, at[size], options))
    for size, rounds in taken.items():
        print(f"prefetch {size:3}: {statistics.median(one['rate'] for one in rounds) / 2:9.0f} admissions/s   "
              f"p50 {statistics.median(one['p50'] for one in rounds):5.0f} us   "
              f"p99 {statistics.median(one['p99'] for one in rounds):5.0f} us")
    ratios = [many["rate"] / single["rate"] for single, many in zip(taken[1], taken[100])]
    print(f"prefetch 100 / 1: {statistics.median(ratios):.1f}   (aim 10)")


def wakes(options, folder):
    spans = []
    acquire = {"account": "bench", "method": "GET", "path": "/orders/7", "timeout": 10000}
    with gateway(options, folder, name="wake", prefetch=1, limits=ONE) as one, \
            gateway(options, folder, name="wake", prefetch=1, limits=ONE) as other:
        holder, waiter = Gateway(one), Gateway(other)
        holder.ask("/v1/acquire", acquire)
        lease = holder.answer()["lease"]
        for _ in range(options.wakes):
            waiter.ask("/v1/acquire", acquire)
            time.sleep(0.005)  # it waits by then, or the round is no worse for it
            begun = time.perf_counter_ns()
            holder.ask("/v1/release", {"lease": lease, "outcome": "success"})
            lease = waiter.answer()["lease"]
            spans.append((time.perf_counter_ns() - begun) / 1000)
            holder.answer()
            holder, waiter = waiter, holder
    cuts = statistics.quantiles(spans, n=100, method="inclusive")
    print(f"woken by another gateway: p50 {cuts[49]:.0f} us   p99 {cuts[98]:.0f} us   worst {max(spans):.0f} us")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ration")
    parser.add_argument("load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--wakes", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, redis(pathlib.Path(name) / "redis.sock"):
        admissions(options, pathlib.Path(name))
        wakes(options, pathlib.Path(name))


if __name__ == "__main__":
    main()
