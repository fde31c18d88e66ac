# SPDX-License-Identifier: MIT
"""Random traces: rules of every kind that a store can share, and calls at the instants where they are hard.

`trace(seed)` is the same for the same seed, whatever the machine. Times are whole microseconds, written in
milliseconds; amounts whole micro-units. The calls go by what the rules say: ends of windows, refills, times to live,
and the microsecond before and after each. In about half of the traces some requests may wait.
"""

import json
import random

ZONES = ["UTC", "America/New_York", "Australia/Lord_Howe", "Europe/Paris"]
SECOND, MINUTE, HOUR, DAY = 10**6, 60 * 10**6, 3600 * 10**6, 86400 * 10**6
PERIODS = {"minute": MINUTE, "hour": HOUR, "day": DAY, "week": 7 * DAY, "month": 30 * DAY}
# Before 1970, an ordinary day, both changes of summer time, nearly the last instant there is.
STARTS = [-3 * DAY - 7, 0, 1735689600 * SECOND, 1730604600 * SECOND, 1711846500 * SECOND, 2**53 - 400 * DAY]
SYNC = {"limitHeader": "X-Limit", "remainingHeader": "X-Left", "resetHeader": "X-Reset"}


def ms(us):
    sign, us = "-" if us < 0 else "", abs(us)
    return f"{sign}{us // 1000}" + (f".{us % 1000:03}" if us % 1000 else "")


def units(micro):
    return f"{micro // 10**6}" + (f".{micro % 10**6:06}" if micro % 10**6 else "")


class Number:
    """A number as it is to be written."""

    def __init__(self, text):
        self.text = text


def dumps(value):
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(key) + ":" + dumps(member) for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dumps(member) for member in value) + "]"
    return json.dumps(value)


class Trace:
    PENALTIES = ["1ms", "2s", "7m"]

    def __init__(self, seed, calls):
        self.r = random.Random(seed)
        self.lines = []
        self.spans = [1, 1000, SECOND, 2 * SECOND]  # what may matter from now
        self.marks = []  # instants that may matter
        self.later = []  # what may matter from a result or a probe
        self.ends = []  # instants at which it does
        self.held = []
        self.count = 0
        self.now = self.r.choice(STARTS) + self.r.choice([0, 1, self.r.randrange(HOUR)])
        self.sync = self.r.random() < 0.6
        # What most of the calls are about: anything; leases in flight at a window's end; headers; many holds; adaptive
        # limits; requests that wait; breakers.
        self.focus = self.r.choice(["any", "any", "any", "flight", "flight", "headers", "holds"] + ["adaptive"] * 3
                                   + ["waits"] * 4 + ["breaker"] * 3)
        self.waits = {"waits": 0.75, "adaptive": self.r.choice([0, 0.3, 0.7]), "headers": 0, "flight": 0}.get(
            self.focus, self.r.choice([0, 0.3]))
        self.operated = []  # limits that an operator acts on, as [name, keys, what a grant may be of]
        self.config()
        if self.r.random() < 0.6:
            self.operated = []
        for _ in range(calls):
            self.step()

    def line(self, **members):
        self.lines.append(dumps(members))

    # ---- rules ----

    def rate(self):
        r = self.r
        per = r.choice([("s", SECOND), ("m", MINUTE), ("15m", 15 * MINUTE), ("h", HOUR), ("30d", 30 * DAY)])
        count = r.choice([1, 3, 7, 10, 1000])
        self.spans += [per[1] // count, per[1] // count + 1]
        rule = {"kind": "rate", "rate": f"{count}/{per[0]}", "burst": r.choice([1, 2, 3, 5, 20])}
        if r.random() < 0.3:
            rule["margin"] = 0
        return rule

    def huge_rate(self):
        """Credits near 2^53: 2 592 000 000 000 us an amount that has no factor in common."""
        return {"kind": "rate", "rate": "7/30d", "burst": Number("0.002431"), "margin": 0, "counts": "cost"}

    def concurrency(self):
        return {"kind": "concurrency", "max": self.r.choice([1, 2, 3, 5, 80])}

    def quota(self):
        r = self.r
        rule = {"kind": "quota", "max": r.choice([1, 3, 10, 100, Number("9007199254.740991")])}
        if r.random() < 0.4:
            length = r.choice([SECOND, 60 * SECOND, HOUR, 36 * HOUR])
            rule["window"] = {"rolling": f"{length // SECOND}s"}
            self.spans += [length, length // 60, length + length // 60]
        else:
            period = r.choice(list(PERIODS))
            length = PERIODS[period]
            window = {"period": period, "timezone": r.choice(ZONES)}
            if period not in ("minute", "hour") and r.random() < 0.5:
                window["resetAt"] = r.choice(["01:30", "02:00", "23:59"])
            rule["window"] = window
            self.spans += [length, length // 2]
            self.marks.append((length, 30 * MINUTE if period == "hour" else 0))
        if r.random() < 0.4:
            rule["arrival"] = r.choice(["0s", "100ms", "90s"])
            self.spans.append(90 * SECOND)
        if self.sync and r.random() < 0.7:
            rule["sync"] = dict(SYNC)
            if r.random() < 0.3:
                del rule["sync"]["resetHeader"]
        if r.random() < 0.2:
            rule["whenExhausted"] = "wait"
        return rule

    def flight(self):
        """A short window, and calls that may take as long as it."""
        r = self.r
        arrival = r.choice([2 * SECOND, 90 * SECOND, 2 * SECOND])
        rule = {"kind": "quota", "max": r.choice([6, 10, 30]), "window": {"period": "minute"},
                "arrival": f"{arrival // SECOND}s"}
        self.marks += [(MINUTE, 0), (MINUTE, -arrival % MINUTE)]
        self.spans = [1, 300 * 1000, SECOND, arrival, arrival // 2]
        if self.sync:
            rule["sync"] = dict(SYNC)
        if r.random() < 0.5:
            rule["counts"] = "cost"
        return rule

    def headers_quota(self):
        r = self.r
        rule = {"kind": "quota", "max": r.choice([10, 100]), "sync": dict(SYNC),
                "window": r.choice([{"period": "minute"}, {"period": "hour"}, {"rolling": "60s"}])}
        if r.random() < 0.8:
            rule["counts"] = "cost"
        self.marks += [(MINUTE, 0), (HOUR, 0)]
        self.spans = [1, 400 * 1000, SECOND, 2 * SECOND, 9 * SECOND, MINUTE // 2, MINUTE, HOUR // 2]
        return rule

    def slow_rate(self):
        rule = {"kind": "rate", "rate": self.r.choice(["1/s", "2/s", "7/m", "3/2s"]), "burst": self.r.choice([1, 2, 3])}
        if rule["burst"] > 1 and self.r.random() < 0.5:
            rule["margin"] = 0
        return rule

    def few(self):
        return {"kind": "concurrency", "max": self.r.choice([1, 2, 3])}

    def small_quota(self):
        rule = {"kind": "quota", "max": self.r.choice([2, 3, 5]), "whenExhausted": self.r.choice(["wait", "refuse"])}
        rule["window"] = self.r.choice([{"period": "minute"}, {"rolling": "10s"}, {"period": "hour"}])
        if self.sync and self.r.random() < 0.3:
            rule["sync"] = dict(SYNC)
        self.marks.append((MINUTE, 0))
        return rule

    def roomy(self):
        return {"kind": "concurrency", "max": 80}

    def holds(self):
        counts = self.r.choice(["cost", "requests"])
        return {"kind": "concurrency", "max": self.r.choice([2, 8, 40]), "counts": counts}

    def adaptive(self):
        r = self.r
        low = r.choice([1, 1, 2])
        most = r.choice([low, 3, 5, 12, 1000])
        window, cooldown = r.choice([1000, SECOND, 5 * SECOND]), r.choice([1000, SECOND, 10 * SECOND])
        rule = {"kind": "adaptive", "initialLimit": min(r.choice([1, 2, 4, 10]), most), "minLimit": low,
                "maxLimit": most, "aimd": {"window": f"{window // 1000}ms", "cooldown": f"{cooldown // 1000}ms"}}
        rule["initialLimit"] = max(rule["initialLimit"], low)
        if r.random() < 0.5:
            rule["aimd"]["decreaseFactor"] = r.choice([0.5, "2/3", "99%", "1/1000"])
            rule["aimd"]["increaseStep"] = r.choice([1, 2, 7])
        self.spans += [window, window, cooldown]
        if r.random() < 0.7:
            shares = r.choice([["50%"], ["1/3", "1/3"], ["0.1", "0.9"], ["1/3", "0%", "60%"]])
            rule["classes"] = {f"k{i}": {"reservedShare": share} for i, share in enumerate(shares)}
            if r.random() < 0.5:
                horizon = r.choice([1000, SECOND])
                rule["lend"] = {"reclaimHorizon": f"{horizon // 1000}ms", "idleAfter": f"{3 * horizon // 1000}ms"}
                self.spans += [horizon, 3 * horizon, 3 * horizon]
        if r.random() < 0.4:
            rule["recovery"] = "fast"
        if r.random() < 0.4:
            rule["pauseOnRetryAfter"] = True
        return rule

    def breaker(self):
        """Most of these are seldom tripped, so that results pile up and leave again."""
        r = self.r
        about = self.focus == "breaker"
        self.ill = r.choice([0.1, 0.3, 0.6, 0.9])  # how often a call fails
        rule = {"strategy": r.choice(["consecutive", "count", "count", "sampling", "sampling", "sampling"])}
        if rule["strategy"] == "consecutive":
            rule["threshold"] = r.choice([1, 1, 2, 3])
        else:
            rule["threshold"] = r.choice(["50%", "1/3", "100%", "2/3", "1/1000"])
            rule["minimumCalls"] = r.choice([1, 2, 3, 6] if about else [1, 2, 3])
        if rule["strategy"] == "count":
            rule["size"] = r.choice([3, 4, 9])
            rule["minimumCalls"] = min(rule["minimumCalls"], rule["size"])
        if rule["strategy"] == "sampling":
            duration = r.choice([1000, SECOND, MINUTE])
            rule["duration"] = f"{duration // 1000}ms"
            self.spans += [duration // 3, duration // 7]
            self.later.append(duration)
        checked = about and r.random() < 0.5
        rule["recovery"] = r.choice(["probe", "healthCheck"]) if checked else "probe"
        rule["backoff"] = self.backoff(r.choice([1000, SECOND, 7 * SECOND] + [365 * DAY] * about))
        if rule["recovery"] == "probe":
            rule["probe"] = {"n": r.choice([1, 1, 2, 3])}
        if checked and (rule["recovery"] == "probe" or r.random() < 0.6):
            idle = r.choice([1, SECOND, MINUTE])
            rule["idleProbe"] = {"interval": f"{ms(idle)}ms", "failures": r.choice([1, 2])}
            self.later.append(idle)
        scopes = [["provider"], ["provider"], ["instance"]]
        if rule["recovery"] == "healthCheck" or "idleProbe" in rule:
            rule["healthCheck"] = {"path": "/health"}
        else:
            scopes += [["account", "tenant"], ["var:x"]]
        if r.random() < 0.5:
            rule["scope"] = {"by": r.choice(scopes)}
        return rule

    def backoff(self, first):
        r = self.r
        self.later += [first, first, 2 * first]
        if r.random() < 0.3:
            return {"delay": f"{first // 1000}ms"}
        found = {"initial": f"{first // 1000}ms", "multiplier": r.choice([2, 1.00003, 1.5, 1000])}
        if r.random() < 0.5:
            found["max"] = f"{min(first * r.choice([1, 3, 20]), 365 * DAY) // 1000}ms"
        return found

    def limit(self, name):
        r = self.r
        kinds = {"any": [self.rate, self.rate, self.concurrency, self.quota, self.quota, self.huge_rate, self.adaptive],
                 "flight": [self.flight], "headers": [self.headers_quota], "holds": [self.holds],
                 "adaptive": [self.adaptive] * 3 + [self.concurrency],
                 "waits": [self.slow_rate, self.slow_rate, self.few, self.few, self.small_quota],
                 "breaker": [self.roomy, self.roomy, self.concurrency, self.adaptive]}
        rule = r.choice(kinds[self.focus])()
        rule["name"] = name
        if "counts" not in rule and r.random() < 0.4:
            rule["counts"] = "cost"
        scopes = [["account"], ["provider"], ["account", "tenant"], ["instance"], ["var:x"]]
        wide = self.focus in ("any", "waits")
        rule["scope"] = {"by": r.choice(scopes) if wide else ["provider"]}
        if wide and r.random() < 0.1:
            rule["enforce"] = "shadow"
        if wide and r.random() < 0.2:
            rule["appliesTo"] = {"methods": ["POST"]}
        self.operate_on(rule)
        return rule

    def limits(self):
        most = {"any": [1, 1, 2, 3, 5], "waits": [1, 2, 3, 4]}.get(self.focus, [1, 1, 2])
        return [self.limit(f"l{i}") for i in range(self.r.choice(most))]

    def operate_on(self, rule):
        """Beyond 2^53, where the store counts no further, nothing is granted."""
        keys = {"account": ["a", "b"], "provider": ["p"], "account,tenant": ["a/s", "a/t", "b/s"],
                "var:x": ["x=1", "x=2"]}
        granted = [10**6, 2 * 10**6] + ([1, 333333] if rule.get("counts") == "cost" else [])
        if rule["kind"] not in ("rate", "quota") or isinstance(rule.get("max"), Number):
            granted = []
        self.operated.append([rule["name"], keys.get(",".join(rule["scope"]["by"]), ["nowhere"]), granted])

    def config(self):
        r = self.r
        limits = self.limits()
        errors = {"rateLimited": {"statuses": [429], "penalize": r.choice(["narrowest", "all"])}}
        if r.random() < 0.5:
            errors["rateLimited"]["defaultPenalty"] = r.choice(self.PENALTIES)
        if r.random() < 0.3:
            errors["rateLimited"]["maxPenalty"] = r.choice(["1s", "1h"])
        provider = {"name": "p", "baseUrl": "http://127.0.0.1:1", "limits": limits, "errors": errors}
        if self.focus == "breaker" or (self.focus == "any" and r.random() < 0.2):
            provider["breaker"] = self.breaker()
        if r.random() < 0.2:
            provider["outcome"] = {"throttled": r.choice([[503], [429, 500], [404]])}
        accounts = [{"name": "a", "provider": "p"}, {"name": "b", "provider": "p"}]
        if r.random() < 0.5:
            accounts[0]["budget"] = {"share": r.choice(["50%", "1/3", "0.8"])}
        if r.random() < 0.2 and "account" in limits[0]["scope"]["by"]:
            accounts[1]["limits"] = [{**limits[0], **({"max": 2} if "max" in limits[0] else {})}]
        settings = {"budget": {"retryReserve": r.choice(["0%", "10%", "1/3"])}}
        members = {}
        if self.waits and r.random() < 0.5:
            queue = {"maxWaiters": r.choice([1, 3, 8]), "maxWaitersPerTenant": r.choice([1, 2, 5])}
            settings["queue"] = {key: value for key, value in queue.items() if r.random() < 0.5}
            if r.random() < 0.3:
                settings["queue"]["order"] = "fifo"
        if self.waits and r.random() < 0.5:
            members["tenants"] = {"s": r.choice([1, 2, 10]), "t": r.choice([1, 3, 1000000])}
        self.line(op="config", startedAt=Number(ms(self.now - r.choice([0, 1, DAY]))),
                  providers=[provider], accounts=accounts, settings=settings, **members)
        self.spans += [SECOND, HOUR] if self.focus == "any" else [SECOND]
        if self.focus == "waits":
            self.spans = [1, 1000, 300 * 1000, 500 * 1000, SECOND, SECOND, 1500 * 1000, 2 * SECOND, 5 * SECOND]

    # ---- calls ----

    def pass_time(self):
        r = self.r
        if r.random() < (0.6 if self.focus in ("flight", "headers") else 0.35):
            return
        coming = [end for end in self.ends if end >= self.now - 1][-9:]
        if coming and r.random() < 0.6:
            at = r.choice(coming) + r.choice([-1, 0, 0, 0, 1])
        elif self.marks and r.random() < 0.3:
            length, shift = r.choice(self.marks)
            at = (self.now - shift) // length * length + length + shift
            at += r.choice([-SECOND, -1000, -1, 0, 0, 1, 50 * 1000])
        else:
            at = self.now + r.choice(self.spans) * r.choice([1, 1, 1, 2, 5]) + r.choice([-1, 0, 0, 1])
        self.now = min(max(self.now, at), 2**53 - 100 * DAY)

    def result_comes(self):
        """Or something else that breakers count time from."""
        self.ends += [self.now + span for span in self.later]

    def amount(self):
        r = self.r
        if self.focus == "waits":
            return r.choice([0, 333333, 10**6, 10**6, 1500000, 2 * 10**6, 3 * 10**6])
        pick = [0, 1, 333333, 10**6, 2 * 10**6, 1700000, 5 * 10**6, r.randrange(10**7)]
        return r.choice(pick + ([2**53 - 1, 2**52] if r.random() < 0.05 else []) + ([2431, 600] * 4))

    def request(self):
        r = self.r
        wait = 0
        if r.random() < self.waits:
            wait = r.choice(self.spans) * r.choice([1, 1, 3, 20]) + r.choice([0, 0, -1, 1])
        members = {"provider": "p", "account": r.choice("aab"), "wait": Number(ms(max(wait, 0)))}
        if r.random() < 0.7:
            members["endpoint"] = "/{x}"
            members["method"] = r.choice(["GET", "POST"])
            members["vars"] = {"x": r.choice("12")}
        if r.random() < 0.5:
            members["cost"] = Number(units(self.amount()))
        if r.random() < 0.4:
            members["tenant"] = r.choice("st")
        if r.random() < 0.25:
            members["priority"] = r.choice(["critical", "low"] + ["high"] * (self.focus == "waits"))
        if r.random() < 0.25:
            members["retry"] = True
        if r.random() < (0.6 if self.focus == "adaptive" else 0.1):
            members["class"] = r.choice(["k0", "k0", "k1", "k1", "k2"])
        return members

    def acquire(self):
        r = self.r
        members = self.request()
        if self.focus == "breaker":
            self.result_comes()
        if r.random() < 0.5:
            hold = r.choice(self.spans)
            members["hold"] = Number(ms(hold))
        if r.random() < (0.15 if self.focus in ("flight", "headers") else 0.4):
            ttl = r.choice([1000, SECOND, 3 * SECOND, MINUTE, HOUR])
            members["ttl"] = Number(ms(ttl))
            self.spans.append(ttl)
        self.count += 1
        self.held.append(f"i{self.count}")
        self.line(at=Number(ms(self.now)), op="acquire", id=f"i{self.count}", **members)

    def reset(self):
        r = self.r
        span = r.choice(self.spans)
        kind = r.random()
        if kind < 0.4:
            return r.choice(["0", "1", "59", "3600", str(span // SECOND), f"{span / SECOND:.3f}"])
        if kind < 0.7:
            return f"{max(self.now + r.choice([-1, 1]) * span, 0) // SECOND}"
        return r.choice(["", "soon", "-1", "1e9", "99999999999999999999"])

    def headers(self):
        r = self.r
        found = {}
        if self.focus == "headers" and r.random() < 0.6:
            return {"X-Left": r.choice(["2", "5", "9"])}
        if r.random() < 0.3:
            found["X-Limit"] = r.choice(["5", "10", "100", "3", "-1", "0", "NaN"])
        if r.random() < 0.6:
            found["X-Left"] = r.choice(["0", "1", "2", "5", "9", "60", "-1", ""])
        if r.random() < 0.5:
            found["X-Reset"] = self.reset()
        if r.random() < 0.2:
            found["Retry-After"] = r.choice(["0", "1", "0.001", "3600", "x", f"{max(self.now, 0) // SECOND}"])
        return found

    def lease(self):
        return self.r.choice(self.held[-8:] if self.r.random() < 0.8 else self.held)

    def observe(self):
        many = [200, 200, 200, 429, 429, 500, 404]
        often = {"any": many, "adaptive": many + [200, 503], "waits": many + [200] * 4,
                 "breaker": [200, 200, 500, 503, 503, 429]}.get(self.focus, [200] * 12 + [429, 500])
        status = self.r.choice(often)
        if self.focus == "breaker":
            status = self.r.choice([500, 503] if self.r.random() < self.ill else [200, 200, 200, 429])
        self.result_comes()
        self.line(at=Number(ms(self.now)), op="observe", id=self.lease(), status=status, headers=self.headers())

    def release(self):
        r = self.r
        name = self.held[-1] if self.focus == "flight" and r.random() < 0.5 else self.lease()
        members = {}
        if self.focus == "breaker":
            members["outcome"] = r.choice(["success"] * 4 + ["throttled", "cancelled"])
            if r.random() < self.ill:
                members["outcome"] = "failure"
        elif self.focus not in ("any", "adaptive", "waits"):
            members["outcome"] = r.choice(["success", "failure", "cancelled", "cancelled"])
        elif r.random() < 0.7:
            members["outcome"] = r.choice(["success", "success", "throttled", "failure", "cancelled"])
        if r.random() < 0.4:
            members["cost"] = Number(units(self.amount()))
        if r.random() < 0.95:
            self.held.remove(name)
        self.result_comes()
        self.line(at=Number(ms(self.now)), op="release", id=name, **members)

    def round(self):
        """A call that has a result at once."""
        self.acquire()
        self.line(at=Number(ms(self.now)), op="release", id=self.held.pop(),
                  outcome="failure" if self.r.random() < self.ill else "success")

    def check(self):
        mode = self.r.choice(["acquire", "enforcer"])
        self.line(at=Number(ms(self.now)), op="check", id="c", mode=mode, **self.request())

    def probe(self):
        """More than any limit holds: the refusal tells how much there is."""
        members = {**self.request(), "cost": Number("9000000000")}
        self.line(at=Number(ms(self.now)), op="check", id="c", **members)

    def health(self):
        self.line(at=Number(ms(self.now)), op="health", account=self.r.choice("aab"), ok=self.r.random() < 0.4)
        self.result_comes()

    def operate(self):
        """What is paused goes on before long, for nothing else happens there meanwhile."""
        r = self.r
        limit, keys, granted = r.choice(self.operated)
        members = {"op": r.choice(["pause", "pause", "resume", "resume", "resume", "reset", "reset"] + ["grant"] * 2)}
        if members["op"] == "grant" and not granted:
            members["op"] = "reset"
        members.update(provider="p", limit=limit, key=r.choice(keys))
        if members["op"] == "grant":
            members["units"] = Number(units(r.choice(granted)))
        self.line(at=Number(ms(self.now)), **members)

    def step(self):
        self.pass_time()
        if self.operated and self.r.random() < 0.12:
            self.operate()
        pick = self.r.random()
        if self.focus == "breaker" and self.r.random() < 0.4:
            self.round()
            return
        while self.focus == "breaker" and self.r.random() < 0.15:
            self.health()
        shares = {"flight": (0.44, 0.80, 0.88), "headers": (0.40, 0.58, 0.85), "waits": (0.48, 0.75, 0.82),
                  "breaker": (0.42, 0.78, 0.90)}
        acquire, release, observe = shares.get(
            self.focus, (0.45, 0.62, 0.85))
        if self.focus not in ("any", "waits", "breaker") and self.r.random() < 0.2:
            self.probe()
        if pick < acquire or not self.held:
            self.acquire()
        elif pick < release:
            self.release()
        elif pick < observe:
            self.observe()
        elif pick < 0.90:
            op = "cancel" if self.r.random() < self.waits / 2 else "renew"
            self.line(at=Number(ms(self.now)), op=op, id=self.lease())
        elif pick < 0.97:
            self.check()
        else:
            self.line(at=Number(ms(self.now)), op="advance")


def trace(seed, calls=80):
    return "\n".join(Trace(seed, calls).lines) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(trace(int(sys.argv[1])))
