# SPDX-License-Identifier: MIT
"""Random traces of share limits, beside the others (traces.py): a few tenants that borrow from each other, and calls at
the instants at which somebody falls idle, a loan or a want ends, or a lease is lost, and 1 us before and after.
"""

import random
import sys

from traces import Number, Trace, ms, units

MS = 1000


class ShareTrace(Trace):
    PENALTIES = ["1us", "1ms"]

    def __init__(self, seed, calls):
        self.tenants = []
        self.amounts = [0, 1, 333333, 10**6]
        self.huge = False  # a ceiling above which the store cannot count
        self.shadows = False  # a limit that nothing keeps below its ceiling
        self.busy = []  # who asks most of the time, while the others lend
        self.horizons = [MS]
        self.waits = random.Random(seed).choice([0, 0, 0.3, 0.7])  # how many may wait
        super().__init__(seed + 10**6, calls)

    # ---- rules ----

    def part(self):
        return self.r.choice(["0%", "50%", "1/3", "80%", "100%", "0.999999"])

    def share(self):
        r = self.r
        count = r.choice([1, 2, 2, 3, 3, 4, 8])
        self.tenants = [f"t{i}" for i in range(count)]
        weights = {name: r.choice([1, 1, 2, 3, 7, 999999, 1000000]) for name in self.tenants}
        if r.random() < 0.3:
            for name in r.sample(self.tenants, 1 + r.randrange(count)):
                weights[name] = {"weight": weights[name], "lend": self.part()}
        ceilings = [] if self.shadows else [2**53 - 1]
        ceiling = r.choice([10 * 10**6, 100 * 10**6, 100 * 10**6, 7 * 10**6 + 3, 1, 2, 1000003] + ceilings)
        horizon = r.choice([1, 1 * MS, 100 * MS, 100 * MS])
        idle = horizon + r.choice([1, horizon, 3 * horizon])
        self.huge = self.huge or ceiling > 2**52
        counts = "cost" if ceiling < 10**6 else r.choice(["cost", "cost", "requests"])
        rule = {"kind": "share", "ceiling": Number(units(ceiling)), "counts": counts,
                "tenants": weights, "reclaimHorizon": f"{horizon}us" if horizon % MS else f"{horizon // MS}ms",
                "idleAfter": f"{idle}us" if idle % MS else f"{idle // MS}ms"}
        if r.random() < 0.3:
            rule["lend"] = self.part()
        if r.random() < 0.3:
            rule["freeze"] = "wanted"
        if r.random() < 0.3:
            cool = r.choice([1 * MS, idle, 5 * idle])
            rule["cooldown"] = f"{cool}us" if cool % MS else f"{cool // MS}ms"
            self.spans += [cool]
        if r.random() < 0.3:
            rule["unknownTenant"] = r.choice(self.tenants)
        if not self.busy:
            self.busy = r.sample(self.tenants, 1 + r.randrange(min(count, 3)))
            self.calm = r.choice([0.05, 0.3, 1.0])  # how often another one asks
        self.horizons.append(horizon)
        self.spans += [horizon, horizon, idle, idle, idle - horizon, horizon // 2 + 1]
        self.amounts += [ceiling, ceiling // 2, ceiling // count, ceiling // count + 1, ceiling // 3, ceiling // 10]
        return rule

    def limit(self, name):
        r = self.r
        if name == "l0":
            rule = self.share()
        else:
            rule = r.choice([self.share, self.rate, self.concurrency, self.quota])()
        rule["name"] = name
        rule["scope"] = {"by": ["provider"]}
        if not self.huge and r.random() < 0.1:
            rule["enforce"] = "shadow"
            self.shadows = True
        self.operate_on(rule)
        return rule

    def config(self):
        self.focus = "share"
        super().config()
        self.spans = [span for span in self.spans if span < 3600 * 10**6]

    # ---- calls ----

    def amount(self):
        return self.r.choice(self.amounts)

    def request(self):
        r = self.r
        members = {"provider": "p", "account": "a", "wait": 0}
        if r.random() < self.waits:
            wait = r.choice(self.spans) * r.choice([1, 1, 3]) + r.choice([-1, 0, 1])
            members["wait"] = Number(ms(max(wait, 0)))
        if r.random() < 0.9:
            members["cost"] = Number(units(min(self.amount(), 2**53 - 1)))
        if r.random() < 0.97:
            asking = self.tenants if r.random() < self.calm else self.busy
            members["tenant"] = r.choice(asking + (["nobody"] if r.random() < 0.1 else []))
        return members

    def hold(self):
        r = self.r
        if r.random() < 0.6:
            return max(1, int(r.choice(self.horizons) * r.choice([0.2, 0.5, 0.9, 1, 1])))
        return r.choice(self.spans + self.spans + [1, 10**9])

    def acquire(self, **told):
        r = self.r
        members = {**self.request(), **told}
        if "hold" not in members and r.random() < 0.85:
            members["hold"] = Number(ms(self.hold()))
        if r.random() < 0.3:
            members["ttl"] = Number(ms(max(1, r.choice(self.spans) + r.choice([-1, 0, 1]))))
        self.count += 1
        self.held.append(f"i{self.count}")
        self.line(at=Number(ms(self.now)), op="acquire", id=f"i{self.count}", **members)

    def pass_time(self):
        r = self.r
        if r.random() < 0.5:
            self.now += r.choice(self.spans) * r.choice([1, 1, 1, 2]) + r.choice([-1, 0, 0, 0, 1])

    def release(self, name=None):
        r = self.r
        name = name or self.lease()
        members = {"outcome": r.choice(["success", "success", "failure", "cancelled"])}
        if r.random() < 0.4:
            members["cost"] = Number(units(min(self.amount(), 10**6 if self.huge else 2**53 - 1)))
        if r.random() < 0.97:
            self.held.remove(name)
        self.line(at=Number(ms(self.now)), op="release", id=name, **members)

    def scene(self):
        """One has gone, another borrows what it can, the first comes back, gets its own, and goes again."""
        r = self.r
        lender, borrower = r.choice(self.tenants), r.choice(self.busy)
        self.now += r.choice(self.spans)
        for _ in range(r.choice([1, 1, 2])):
            self.acquire(tenant=borrower, hold=Number(ms(self.hold())))
        for _ in range(r.choice([1, 2])):
            self.acquire(tenant=lender, cost=Number(units(self.amount())), hold=Number(ms(self.hold())))
            self.now += r.choice([0, 1, r.choice(self.spans)])
        self.release(self.held[0])
        self.acquire(tenant=lender, hold=Number(ms(self.hold())))
        self.release(self.held[-1])
        self.now += r.choice(self.spans) + r.choice([-1, 0, 1])
        self.acquire(tenant=borrower, hold=Number(ms(self.hold())))

    def step(self):
        self.pass_time()
        if self.r.random() < 0.05:
            self.scene()
        if self.operated and self.r.random() < 0.1:
            self.operate()
        pick = self.r.random()
        if pick < 0.58 or not self.held:
            self.acquire()
        elif pick < 0.82:
            self.release()
        elif pick < 0.83:
            self.observe()
        elif pick < 0.90:
            self.line(at=Number(ms(self.now)), op="renew", id=self.lease())
        elif pick < 0.95:
            self.check()
        elif pick < 0.99:
            self.line(at=Number(ms(self.now)), op="stats")
        else:
            self.line(at=Number(ms(self.now)), op="advance")


def trace(seed, calls=80):
    return "\n".join(ShareTrace(seed, calls).lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(trace(int(sys.argv[1])))
