#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every zone of this machine against Python's zoneinfo: offsets and calendar windows.

    zones.py ANSWERS [SEED]

ANSWERS is the program built from zone_answers.c. Offsets are compared at and around every change from 1970 on, windows
there and at random instants. The boundaries of windows are made in the obvious way: every local reset time near the
instant, turned into instants as PEP 495 says (fold=0 is the first of two, and moves over a gap).
"""

import datetime
import os
import random
import struct
import subprocess
import sys
import zoneinfo

TZDIR = "/usr/share/zoneinfo"
EPOCH = datetime.datetime(1970, 1, 1)
UTC_EPOCH = EPOCH.replace(tzinfo=datetime.timezone.utc)
FIRST, LAST = 0, 2145916800  # 1970 to 2037
RULE_LAST = 2240524800  # to 2040, by the rule alone
MINUTE, HOUR, DAY, WEEK, MONTH = 1, 2, 3, 4, 5
STEP = {MINUTE: 60, HOUR: 3600}
WINDOWS_EVERYWHERE = 12  # changes of a zone that get all kinds of windows
FAILURES_SHOWN = 10


def zone_files():
    seen = set()
    for folder, folders, names in os.walk(TZDIR):
        folders[:] = sorted(f for f in folders if f not in ("right", "posix"))
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            if data[:4] == b"TZif" and data not in seen:
                seen.add(data)
                yield path, data


def table_changes(data):
    """The instants of the 64-bit table."""
    counts = struct.unpack(">6I", data[20:44])
    utc, std, leap, times, types, chars = counts
    at = 44 + times * 5 + types * 6 + chars + leap * 8 + std + utc
    times = struct.unpack(">I", data[at + 32 : at + 36])[0]
    return struct.unpack(f">{times}q", data[at + 44 : at + 44 + 8 * times])


class Oracle:
    """One zone, as Python sees it."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.tz = zoneinfo.ZoneInfo.from_file(file)

    def offset(self, at):
        local = (UTC_EPOCH + datetime.timedelta(seconds=at)).astimezone(self.tz)
        return round(local.utcoffset().total_seconds())

    def rule_changes(self):
        """Changes after the table, by bisection."""
        month = 28 * 86400
        for low in range(LAST, RULE_LAST, month):
            high = low + month
            before = self.offset(low)
            if before == self.offset(high):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                if self.offset(middle) == before:
                    low = middle
                else:
                    high = middle
            yield high

    def instants(self, local, both):
        """When the local clock shows `local` (seconds as if UTC)."""
        naive = (EPOCH + datetime.timedelta(seconds=local)).replace(tzinfo=self.tz)
        first = round(naive.utcoffset().total_seconds())
        yield local - first
        if both:
            second = round(naive.replace(fold=1).utcoffset().total_seconds())
            if second < first:
                yield local - second

    def window(self, period, reset, week, month_day, at):
        local = at + self.offset(at)
        if period in STEP:
            step = STEP[period]
            jump = abs(self.offset(at + 100000) - self.offset(at - 100000))
            reach = (jump if jump > step else step) // step + 2
            index = local // step
            locals_ = [(index + i) * step for i in range(-reach, reach + 1)]
        else:
            locals_ = [day * 86400 + reset * 60 for day in reset_days(period, week, month_day, local)]
        found = {x for one in locals_ for x in self.instants(one, period in STEP)}
        return max(x for x in found if x <= at), min(x for x in found if x > at)


def reset_days(period, week, month_day, local):
    day = local // 86400
    if period == DAY:
        return range(day - 3, day + 4)
    if period == WEEK:
        return [d for d in range(day - 16, day + 17) if (d + 3) % 7 == week]
    date = (EPOCH + datetime.timedelta(days=day)).date()
    days = []
    for index in range(date.year * 12 + date.month - 4, date.year * 12 + date.month + 3):
        first = datetime.date(index // 12, index % 12 + 1, 1)
        after = datetime.date((index + 1) // 12, (index + 1) % 12 + 1, 1)
        days.append((first - EPOCH.date()).days + min(month_day, (after - first).days) - 1)
    return days


def questions(oracle, data, chance):
    """Pairs of a question and Python's answer."""
    changes = [t for t in table_changes(data) if FIRST <= t < LAST] + list(oracle.rule_changes())
    anywhere = [chance.randrange(FIRST, RULE_LAST) for _ in range(10)]
    for t in changes:
        for at in (t - 1, t, t + 1, t + chance.randrange(-7200, 7200)):
            yield f"offset {at}", str(oracle.offset(at))
    for at in anywhere:
        yield f"offset {at}", str(oracle.offset(at))

    def window(period, at):
        reset, week, month_day = 0, 0, 1
        if period >= DAY:
            reset = chance.choice((0, 0, 90, 150, chance.randrange(1440)))
            week, month_day = chance.randrange(7), chance.randint(1, 31)
        start, end = oracle.window(period, reset, week, month_day, at)
        return f"window {period} {reset} {week} {month_day} {at}", f"{start} {end}"

    for t in changes:
        yield window(DAY, t + chance.randrange(-90000, 90000))
        yield window(HOUR, t + chance.randrange(-5400, 5400))
    for t in chance.sample(changes, min(len(changes), WINDOWS_EVERYWHERE)) + anywhere:
        for period in (MINUTE, HOUR, DAY, WEEK, MONTH):
            for at in (t - 1, t, t + chance.randrange(-200000, 200000)):
                yield window(period, at)


def main():
    if not os.path.isdir(TZDIR):
        print(f"no time zones in {TZDIR}: ./dev deps build")
        return 1 if os.environ.get("CI") == "true" else 77
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    chance = random.Random(seed)
    asked, wanted, names = [], [], []
    for path, data in zone_files():
        oracle = Oracle(path)
        asked.append(f"zone {path}")
        wanted.append("ok")
        names.append(path)
        for question, answer in questions(oracle, data, chance):
            asked.append(question)
            wanted.append(answer)
            names.append(path)
    run = subprocess.run([sys.argv[1]], input="\n".join(asked) + "\n", capture_output=True, text=True, check=True)
    got = run.stdout.splitlines()
    wrong = [i for i in range(len(asked)) if i >= len(got) or got[i] != wanted[i]]
    for i in wrong[:FAILURES_SHOWN]:
        answer = got[i] if i < len(got) else "nothing"
        print(f"# {names[i]}: {asked[i]}: got {answer}, want {wanted[i]}")
    verdict = "not ok" if wrong else "ok"
    print(f"{verdict} 1 - {len(asked)} answers for {len(set(names))} zones, {len(wrong)} wrong, seed {seed}")
    return 1 if wrong or len(got) != len(asked) else 0


if __name__ == "__main__":
    sys.exit(main())
