#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Instructions of a round of bench_engine, by callgrind.

Each bench runs twice with different numbers of rounds. The difference of the two counts, divided by the difference of
the rounds, is what a round executes: making the engine, warming up and filling queues drop out.

usage: bench_instructions.py BENCH_ENGINE
"""

import re
import shutil
import subprocess
import sys

BENCHES = ["none", "one", "three", "six", "keys", "refused", "queue10", "queue1k", "queue100k"]
ROUNDS = (20000, 40000)


def instructions(engine, name, rounds):
    told = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", engine, name, str(rounds)],
        check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Collected : (\d+)", told)[1])


def main():
    if shutil.which("valgrind") is None:
        sys.exit("install valgrind first (./dev deps bench)")
    few, many = ROUNDS
    for name in BENCHES:
        spent = instructions(sys.argv[1], name, many) - instructions(sys.argv[1], name, few)
        print(f"{name:9} {spent / (many - few):7.0f} instructions", flush=True)


if __name__ == "__main__":
    main()
