#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The gateway next to nginx and HAProxy as reverse proxies, on the same work, in one run.

The proxy under test has cpu0 to itself; the load and the upstream (nginx, one worker, answers of 1 KiB) share cpu1. All
proxies run from the start, and rounds are interleaved (A B C A B C), so that what disturbs the machine disturbs all.
CPU per call is the run time of all threads of the proxy by the scheduler's account, divided by the answers; it is much
steadier than calls per second. Each table shows the median of the rounds, then (min-max); ratios are medians of the
rounds' own ratios to nginx.

usage: bench_proxy.py RATION OPEN_LOOP [--rounds N] [--seconds N] [--rate N] [--only NAME,...]
"""

import argparse
import contextlib
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PROXY_CPU, LOAD_CPU = "0", "1"
PATH = "/bench/data"
BODY = "x" * 1024

NGINX = """daemon off; worker_processes 1; pid {dir}/{name}.pid; error_log {dir}/{name}.log crit;
events {{ worker_connections 2048; }}
http {{
  access_log off; keepalive_requests 1000000000; tcp_nodelay on; client_body_temp_path {dir}/{name}.body;
  proxy_temp_path {dir}/{name}.proxy; fastcgi_temp_path {dir}/{name}.f; uwsgi_temp_path {dir}/{name}.u;
  scgi_temp_path {dir}/{name}.s;
  {servers}
}}
"""

UPSTREAM = """server {{ listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
    location / {{ default_type text/plain; return 200 "{body}"; }} }}"""

NGINX_PLAIN = """upstream plain {{ server 127.0.0.1:{up}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port};
    location / {{ proxy_pass http://plain; proxy_http_version 1.1; proxy_set_header Connection ""; }} }}"""

NGINX_TLS = """upstream tls {{ server 127.0.0.1:{up}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port};
    location / {{ proxy_pass https://tls; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_ssl_trusted_certificate {dir}/cert.pem; proxy_ssl_verify on; proxy_ssl_name localhost; }} }}"""

HAPROXY = """global
  nbthread 1
  maxconn 2000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
listen bench
  bind 127.0.0.1:{port}
  server upstream 127.0.0.1:{up} {options}
"""

RATION = """settings:
  listen: {{ gateway: 127.0.0.1:{port}, control: 127.0.0.1:{control} }}
providers:
  - name: bench
    baseUrl: {scheme}://localhost:{up}
    {tls}
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


def run_time_ns(pid):
    """Time on a CPU of all threads of a process and of its children."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
        for child in (task / "children").read_text().split():
            total += run_time_ns(child)
    return total


class Bench:
    """The upstream and the proxies, each started once."""

    def __init__(self, directory, ration, stack):
        self.dir = pathlib.Path(directory)
        self.ration = ration
        self.stack = stack
        self.ports = {"plain": free_port(), "tls": free_port()}
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", self.dir / "key.pem", "-out", self.dir / "cert.pem"],
            check=True, capture_output=True)
        servers = UPSTREAM.format(dir=self.dir, body=BODY, **self.ports)
        self.nginx("upstream", servers, LOAD_CPU, self.ports["plain"])

    def start(self, name, command, cpu, port):
        log = open(self.dir / f"{name}.out", "wb")  # the process's own, closed when the run ends
        self.stack.callback(log.close)
        process = subprocess.Popen(["taskset", "-c", cpu, *map(str, command)], stdout=log, stderr=log)
        self.stack.callback(self.stop, process)
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return process.pid
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{name} did not start:\n{(self.dir / f'{name}.out').read_text()}")
            time.sleep(0.02)

    @staticmethod
    def stop(process):
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def write(self, name, text):
        (self.dir / name).write_text(text)
        return self.dir / name

    def nginx(self, name, servers, cpu, port):
        config = self.write(f"{name}.conf", NGINX.format(dir=self.dir, name=name, servers=servers))
        return self.start(name, ["nginx", "-p", self.dir, "-e", self.dir / f"{name}.log", "-c", config], cpu, port)

    def proxy(self, kind, way):
        """(port, pid) of a proxy of this kind to the upstream, plain or by TLS."""
        port, up, name = free_port(), self.ports[way], f"{kind}-{way}"
        if kind == "nginx":
            template = NGINX_PLAIN if way == "plain" else NGINX_TLS
            return port, self.nginx(name, template.format(dir=self.dir, up=up, port=port), PROXY_CPU, port)
        if kind == "haproxy":
            tls = f"ssl verify required ca-file {self.dir}/cert.pem verifyhost localhost"
            text = HAPROXY.format(port=port, up=up, options=tls if way == "tls" else "")
            return port, self.start(name, ["haproxy", "-f", self.write(f"{name}.conf", text)], PROXY_CPU, port)
        text = RATION.format(
            port=port, control=free_port(), up=up, scheme="https" if way == "tls" else "http",
            tls=f"tls: {{ ca: {self.dir}/cert.pem }}" if way == "tls" else "")
        command = [self.ration, "serve", self.write(f"{name}.yaml", text)]
        return port, self.start(name, command, PROXY_CPU, port)


def microseconds(text):
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(value) * {"us": 1, "ms": 1000, "s": 1e6}[unit]


def closed_loop(port, pid, seconds):
    """wrk with 64 connections, each of which asks as soon as it is answered."""
    before = run_time_ns(pid) if pid else 0
    out = subprocess.run(
        ["taskset", "-c", LOAD_CPU, "wrk", "-t1", "-c64", f"-d{seconds}s", "--latency",
         f"http://127.0.0.1:{port}{PATH}"], check=True, capture_output=True, text=True).stdout
    spent = run_time_ns(pid) - before if pid else 0
    if "Non-2xx" in out or "Socket errors" in out:
        sys.exit(f"errors under load:\n{out}")
    calls = int(re.search(r"(\d+) requests in", out)[1])
    return {
        "calls/s": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]),
        "CPU us": spent / calls / 1000,
        "c64 p50": microseconds(re.search(r"^ +50% +(\S+)$", out, re.M)[1]),
        "c64 p99": microseconds(re.search(r"^ +99% +(\S+)$", out, re.M)[1]),
    }


def open_loop(client, port, pid, rate, seconds):
    """Calls at a fixed rate; latency from the time at which each was due."""
    before = run_time_ns(pid) if pid else 0
    out = subprocess.run(
        ["taskset", "-c", LOAD_CPU, client, str(port), PATH, str(rate), str(seconds)], check=True,
        capture_output=True, text=True).stdout.split()
    if int(out[1]) != 0:
        sys.exit(f"{out[1]} of {out[0]} calls failed at {rate}/s")
    spent = run_time_ns(pid) - before if pid else 0
    calls, _, p50, p99, p999, _ = (float(word) for word in out)
    return {"p50": p50, "p99": p99, "p99.9": p999, "open CPU us": spent / calls / 1000}


def cell(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def against(rows, base, key):
    """The median of each round's ratio to the base, which shared the round's disturbances."""
    return statistics.median(a[key] / b[key] for a, b in zip(rows, base))


def table(head, rows):
    print(f"\n| {' | '.join(head)} |\n|{'|'.join('---' for _ in head)}|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def report(results, rate):
    closed, opened = [], []
    for name, rows in results.items():
        base = results.get(f"nginx {name.split()[-1]}") if name != "direct" else None
        ratio = (lambda key: f"{against(rows, base, key):.2f}") if base else (lambda _: "")
        closed.append([name, cell([r["CPU us"] for r in rows], 1) if base else "", ratio("CPU us"),
                       cell([r["calls/s"] for r in rows], 0), ratio("calls/s"),
                       cell([r["c64 p50"] for r in rows], 0), cell([r["c64 p99"] for r in rows], 0)])
        added = [statistics.median(r[key] - d[key] for r, d in zip(rows, results["direct"])) for key in ("p50", "p99")]
        opened.append([name, *(cell([r[key] for r in rows], 0) for key in ("p50", "p99", "p99.9")),
                       *(f"{a:.0f}" if base else "" for a in added),
                       cell([r["open CPU us"] for r in rows], 1) if base else ""])
    table(["wrk, 64 connections", "CPU us/call", "x nginx", "calls/s", "x nginx", "p50 us", "p99 us"], closed)
    head = [f"{rate} calls/s, open loop", "p50 us", "p99 us", "p99.9 us", "added p50", "added p99", "CPU us/call"]
    table(head, opened)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ration")
    parser.add_argument("open_loop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--only", default="nginx,haproxy,ration", help="of nginx, haproxy and ration")
    options = parser.parse_args()
    missing = [tool for tool in ("nginx", "haproxy", "wrk", "openssl", "taskset") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"install these first: {' '.join(missing)} (./dev deps bench)")

    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        bench = Bench(directory, options.ration, stack)
        targets = {"direct": (bench.ports["plain"], None)}
        for way in ("plain", "tls"):
            for kind in options.only.split(","):
                targets[f"{kind} {way}"] = bench.proxy(kind, way)
        for port, pid in targets.values():
            closed_loop(port, pid, 1)  # connections, handshakes and memory that later calls reuse
        load = []
        results = {name: [] for name in targets}
        for _ in range(options.rounds):
            for name, (port, pid) in targets.items():
                row = closed_loop(port, pid, options.seconds)
                row.update(open_loop(options.open_loop, port, pid, options.rate, options.seconds))
                results[name].append(row)
            load.append(pathlib.Path("/proc/loadavg").read_text().split()[0])
        report(results, options.rate)
        print(f"\n{options.rounds} rounds of {options.seconds} s; load average after each: {' '.join(load)}")


if __name__ == "__main__":
    main()
