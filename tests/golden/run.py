#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replay every golden trace and compare what comes out with what was worked out by hand.

usage: run.py RATION FOLDER [NAME...]

Each NAME.trace.jsonl goes through `ration replay`, with NAME.yaml as its config where there is one; NAME.expect.jsonl
must come out, as JSON, line by line. What is not binding is left out of the comparison: the members in FREE, and the
order of events within one instant.
"""

import decimal
import itertools
import json
import pathlib
import subprocess
import sys

FREE = {"explanation", "estimate", "generation"}


def binding(value):
    if isinstance(value, dict):
        return {key: binding(inner) for key, inner in value.items() if key not in FREE}
    if isinstance(value, list):
        return [binding(inner) for inner in value]
    return value


def canonical(text):
    """The binding part of the lines: within an instant the answers in their order, then the events in one order."""
    lines = [binding(json.loads(line, parse_float=decimal.Decimal)) for line in text.splitlines() if line.strip()]
    ordered = []
    for _, instant in itertools.groupby(lines, key=lambda line: line["at"]):
        instant = list(instant)
        ordered += [line for line in instant if "event" not in line]
        ordered += sorted((line for line in instant if "event" in line), key=show)
    return ordered


def show(line):
    return json.dumps(line, sort_keys=True, default=str)


def difference(ration, trace):
    """None if the trace comes out as expected, else what to tell."""
    expect = trace.with_name(trace.name.replace(".trace.", ".expect."))
    config = trace.with_name(trace.name.replace(".trace.jsonl", ".yaml"))
    given = ["--config", str(config)] if config.exists() else []
    command = [ration, "replay", *given, str(trace)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if run.returncode != 0:
        return f"exit {run.returncode}: {run.stderr.strip()}"
    pairs = itertools.zip_longest(canonical(run.stdout), canonical(expect.read_text()))
    for number, (got, want) in enumerate(pairs, 1):
        if got != want:
            tell = [show(line) if line is not None else "nothing" for line in (got, want)]
            return f"decision {number}\n  got  {tell[0]}\n  want {tell[1]}"
    return None


def main():
    ration, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    traces = [folder / f"{name}.trace.jsonl" for name in names] or sorted(folder.glob("*.trace.jsonl"))
    failed = 0
    print(f"1..{len(traces)}")
    for number, trace in enumerate(traces, 1):
        try:
            told = difference(ration, trace)
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            told = f"{type(error).__name__}: {error}"
        failed += told is not None
        print(f"{'not ok' if told else 'ok'} {number} - {trace.name.removesuffix('.trace.jsonl')}")
        for line in (told or "").splitlines():
            print(f"# {line}")
    return 1 if failed or not traces else 0


if __name__ == "__main__":
    sys.exit(main())
