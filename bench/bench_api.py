#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The decision API next to a responder that only parses and answers, over TCP and over a Unix socket, in one run.

The server has cpu0 to itself, the load cpu1. Rounds are interleaved (A B A B), so that what disturbs the machine
disturbs both; the ratio is the median of the rounds' own ratios. A call is an acquire or a release: whoever acquires
releases.

usage: bench_api.py RATION LOAD BARE [--rounds N] [--seconds N] [--connections N] [--leases N]
"""

import argparse
import contextlib
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """settings:
  listen: {{ gateway: 127.0.0.1:0, control: {control} }}
providers:
  - name: bench
    baseUrl: http://localhost:9
    limits:
      - {{ name: rate, kind: rate, rate: 1000000/s, burst: 1000000, scope: {{ by: [account] }} }}
      - {{ name: slots, kind: concurrency, max: 10000, scope: {{ by: [account] }} }}
accounts:
  - {{ name: bench, provider: bench }}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def server(*command):
    process = subprocess.Popen(["taskset", "-c", "0", *map(str, command)], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def answers(address):
    """Wait until somebody listens there."""
    local = address.startswith("/")
    family, where = (socket.AF_UNIX, address) if local else (socket.AF_INET, ("127.0.0.1", int(address)))
    for _ in range(500):
        with socket.socket(family) as s, contextlib.suppress(OSError):
            s.connect(where)
            return
        time.sleep(0.01)
    sys.exit(f"nobody listens at {address}")


def load(binary, address, options, seconds=None):
    command = ["taskset", "-c", "1", binary, address, options.connections, seconds or options.seconds]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("the load has failed")
    rate, p50, p99, worst, failed = (int(word) for word in done.stdout.split())
    if failed:
        sys.exit(f"{failed} answers were not 200")
    return {"rate": rate, "p50": p50, "p99": p99, "worst": worst}


def resident_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def compare(options, folder, way):
    local = way == "Unix socket"
    addresses = {name: f"{folder}/{name}.sock" if local else str(free_port()) for name in ("ration", "bare")}
    control = f"unix:{addresses['ration']}" if local else f"127.0.0.1:{addresses['ration']}"
    config = folder / f"{way.split()[0]}.yaml"
    config.write_text(CONFIG.format(control=control))
    rounds = {"ration": [], "bare": []}
    with server(options.ration, "serve", config) as ration, server(options.bare, addresses["bare"]):
        for address in addresses.values():
            answers(address)
        for _ in range(options.rounds):
            for name, taken in rounds.items():
                taken.append(load(options.load, addresses[name], options))
        memory = flatness(options, addresses["ration"], ration.pid) if way == "TCP" else None

    def middle(name, what):
        return statistics.median(one[what] for one in rounds[name])

    ratio = statistics.median(r["rate"] / b["rate"] for r, b in zip(rounds["ration"], rounds["bare"]))
    for name in ("bare", "ration"):
        print(f"{way:12} {name:8} {middle(name, 'rate'):9.0f} calls/s   p50 {middle(name, 'p50'):5.0f} us   "
              f"p99 {middle(name, 'p99'):5.0f} us")
    print(f"{way:12} ration / bare {ratio:.2f}   (aim 0.70)")
    if memory:
        print(memory)


def flatness(options, address, pid):
    """A million leases, one after the other: what the process holds before and after."""
    before = resident_kib(pid)
    calls = 0
    while calls < 2 * options.leases:
        calls += load(options.load, address, options, 2)["rate"] * 2
    return f"memory after {calls // 2} more leases: {resident_kib(pid)} KiB, {before} KiB before"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ration")
    parser.add_argument("load")
    parser.add_argument("bare")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--leases", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for way in ("TCP", "Unix socket"):
            compare(options, pathlib.Path(folder), way)


if __name__ == "__main__":
    main()
