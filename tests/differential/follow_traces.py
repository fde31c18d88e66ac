# SPDX-License-Identifier: MIT
"""Random traces of share limits whose ceilings follow an adaptive limit, beside the others (traces.py,
share_traces.py): that limit grows by demand and is cut by throttles while tenants hold, lend, wait and want.
"""

import sys

from share_traces import MS, ShareTrace
from traces import Number, ms, units


class FollowTrace(ShareTrace):

    def __init__(self, seed, calls):
        self.classes = []
        super().__init__(seed + 10**6, calls)

    # ---- rules ----

    def adaptive(self):
        r = self.r
        low = r.choice([1, 1, 2])
        most = r.choice([low, 4, 8, 12, 1000])
        first = max(low, min(r.choice([1, 2, 4, 10]), most))
        window, cooldown = (r.choice([1 * MS, 40 * MS, 400 * MS]) for _ in range(2))
        rule = {"kind": "adaptive", "initialLimit": first, "minLimit": low, "maxLimit": most, "counts": self.counts,
                "aimd": {"window": f"{window // MS}ms", "cooldown": f"{cooldown // MS}ms"}}
        if r.random() < 0.5:
            rule["aimd"]["decreaseFactor"] = r.choice([0.5, "2/3", "1/1000"])
            rule["aimd"]["increaseStep"] = r.choice([1, 2, 7])
        if r.random() < 0.3:
            rule["classes"] = {"k0": {"reservedShare": r.choice(["50%", "1/3"])}}
            self.classes = ["k0", "k1"]
        if r.random() < 0.3:
            rule["recovery"] = "fast"
        if r.random() < 0.2:
            rule["pauseOnRetryAfter"] = True
        self.spans += [window, window, cooldown]
        self.amounts += [first * 10**6, 10**6, 2 * 10**6, first * 10**6 // 2]
        return rule

    def share(self):
        rule = super().share()
        self.huge = False
        self.amounts = [0, 1, 333333, 500000, 10**6, 10**6, 10**6, 1500000, 2 * 10**6, 4 * 10**6]
        return {**rule, "ceiling": {"follows": self.leader}, "counts": self.counts}

    def limits(self):
        r = self.r
        self.counts = r.choice(["cost", "cost", "requests"])
        self.leader = r.choice(["l0", "l1"])
        scope = {"by": r.choice([["provider"], ["account"], ["account", "instance"]])}
        followers = r.choice([1, 1, 1, 2])
        found = []
        for i in range(1 + followers):
            rule = self.adaptive() if f"l{i}" == self.leader else self.share()
            rule.update(name=f"l{i}", scope=scope)
            if r.random() < 0.1:
                rule["enforce"] = "shadow"
            if rule["kind"] == "share" and r.random() < 0.25:
                rule["appliesTo"] = {"methods": ["POST"]}
            found.append(rule)
        if r.random() < 0.3:
            other = r.choice([self.few, self.slow_rate])()
            found.append({**other, "name": "other", "scope": {"by": ["provider"]}})
        for rule in found:
            self.operate_on(rule)
        return found

    # ---- calls ----

    def request(self):
        r = self.r
        members = super().request()
        members["account"] = r.choice("aaab")
        members["method"] = r.choice(["GET", "POST", "POST", "POST"])
        if self.classes and r.random() < 0.6:
            members["class"] = r.choice(self.classes)
        return members

    def observe(self):
        status = self.r.choice([200, 200, 429, 503, 500])
        headers = {"Retry-After": "0.001"} if self.r.random() < 0.2 else {}
        self.line(at=Number(ms(self.now)), op="observe", id=self.lease(), status=status, headers=headers)

    def release(self, name=None):
        r = self.r
        name = name or self.lease()
        members = {"outcome": r.choice(["success", "success", "throttled", "throttled", "cancelled"])}
        if r.random() < 0.3:
            members["cost"] = Number(units(self.amount()))
        if r.random() < 0.97:
            self.held.remove(name)
        self.line(at=Number(ms(self.now)), op="release", id=name, **members)

    def step(self):
        super().step()
        if self.held and self.r.random() < 0.1:
            self.observe()


def trace(seed, calls=80):
    return "\n".join(FollowTrace(seed, calls).lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(trace(int(sys.argv[1])))
