# SPDX-License-Identifier: MIT
"""Adaptive limits through the gateway: a provider that throttles, classes, outcomes of one's own."""

import threading
import time

from house import one_provider, until
from provider import hello
from test_refusals import now, refusal

QUICK = {"window": "150ms", "cooldown": "300ms"}
NO_PENALTY = {"rateLimited": {"defaultPenalty": "1ms", "maxPenalty": "1ms"}}


def adaptive(initial, **more):
    return {"name": "width", "kind": "adaptive", "initialLimit": initial, "scope": {"by": ["account"]}, **more}


class Narrow:
    """Takes `ceiling` calls at once; more get the status that says so."""

    def __init__(self, ceiling, takes=0.02, status=429):
        self.ceiling, self.takes, self.status = ceiling, takes, status
        self.running = self.most = self.refused = self.served = 0
        self.lock = threading.Lock()

    def __call__(self, request, connection):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            full = self.running > self.ceiling
            self.refused += full
            self.served += not full
        if not full:
            time.sleep(self.takes)
        with self.lock:
            self.running -= 1
        connection.reply(self.status if full else 200)


class Crowd:
    """So many clients that call again as soon as they are answered."""

    def __init__(self, gw, count):
        self.over = False
        self.gw = gw
        self.answers = {}
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self):
        with self.gw.client() as client:
            while not self.over:
                answer = client.call("GET", "/a/")
                key = (answer.status, answer["Ration-Refused"])
                with self.lock:
                    self.answers[key] = self.answers.get(key, 0) + 1

    def end(self):
        self.over = True
        for thread in self.threads:
            thread.join(60)
        return self.answers


def width(gw):
    (one,) = [limit for limit in gw.status()["limits"] if limit["limit"] == "width"]
    return one


def test_it_shrinks_to_what_the_provider_takes(provider, gateway):
    """40 callers at a provider that takes 8: L falls from 40, then stays about what is taken."""
    narrow = Narrow(8)
    gw = gateway(one_provider(provider(narrow).url, [adaptive(40, aimd=QUICK)], errors=NO_PENALTY))
    crowd = Crowd(gw, 40)
    gw.until(lambda s: s["limits"] and s["limits"][0]["current"] <= 8, "L has come down")
    refused, served = narrow.refused, narrow.served
    time.sleep(3)
    seen = [width(gw)["current"] for _ in range(20)]
    refused, served = narrow.refused - refused, narrow.served - served
    samples = gw.metrics()
    answers = crowd.end()
    told = f"{refused} of {refused + served} throttled in three seconds, L was {sorted(set(seen))}; {answers}"
    assert set(answers) <= {(200, None), (429, None)}, told
    assert refused <= 0.2 * served, told
    assert 1 <= samples['ration_adaptive_limit{provider="p",limit="width",key="a"}'] <= 20, told
    assert max(seen) <= 20, told
    assert 'msg="an adaptive limit went down" limit=width key=a to=20 cause="the provider throttled"' in gw.text()
    assert gw.until_idle()["limits"][0]["held"] == 0
    print(told)


def test_it_grows_with_demand_and_not_without(provider, gateway):
    narrow = Narrow(1000, 0.05)
    gw = gateway(one_provider(provider(narrow).url, [adaptive(2, aimd=QUICK)]))
    assert gw.call("GET", "/a/").status == 200
    time.sleep(0.6)
    assert gw.call("GET", "/a/").status == 200
    assert width(gw)["current"] == 2, "nobody has asked for more"
    crowd = Crowd(gw, 10)
    gw.until(lambda s: s["limits"][0]["current"] >= 5, "L has gone up")
    assert set(crowd.end()) == {(200, None)}
    assert "went down" not in gw.text()


def test_a_full_limit(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        go.wait(60)
        connection.reply(200)

    classes = {"people": {"reservedShare": "50%"}, "batch": {}}
    gw = gateway(one_provider(provider(handler).url, [adaptive(4, classes=classes, maxLimit=4)]))
    clients = [gw.client().ask("GET", "/a/", {"Ration-Class": "batch"}) for _ in range(2)]
    gw.until(lambda s: s["held"] == 2, "batch has all but the reserve")
    problem = refusal(
        gw.call("GET", "/a/", now(**{"Ration-Class": "batch"})), 429, "adaptive_full", "capacity", True, limit="width",
        key="a",
    )  # fmt: skip
    assert "retryAfterMs" not in problem
    refusal(gw.call("GET", "/a/", now()), 429, "adaptive_full", "capacity", True)
    clients += [gw.client().ask("GET", "/a/", {"Ration-Class": "people"}) for _ in range(2)]
    gw.until(lambda s: s["held"] == 4, "people have their reserve")
    limit = width(gw)
    assert (limit["kind"], limit["current"], limit["held"]) == ("adaptive", 4, 4)
    assert limit["classes"] == {"people": {"reserved": 2, "held": 2}, "batch": {"reserved": 0, "held": 2}}
    problem = refusal(
        gw.call("GET", "/a/", now(**{"Ration-Class": "robots"})), 400, "unknown_class", "caller", False, limit="width"
    )
    assert "retryAfterMs" not in problem
    go.set()
    for client in clients:
        assert client.answer().status == 200
        client.close()


def test_a_class_from_the_config(provider, gateway):
    classes = {"people": {"reservedShare": "50%"}, "batch": {}}
    endpoints = [{"path": "/report", "class": "batch"}]
    defaults = {"endpoints": endpoints, "class": "robots"}
    gw = gateway(one_provider(provider(hello).url, [adaptive(2, classes=classes)], **defaults))
    assert gw.call("GET", "/a/report", now()).status == 200
    refusal(gw.call("GET", "/a/else", now()), 400, "unknown_class", "caller", False)
    assert gw.call("GET", "/a/else", now(**{"Ration-Class": "people"})).status == 200


def test_outcomes_of_ones_own(provider, gateway):
    """529 shrinks the limit, 429 does not; broken connections change nothing."""
    status = [429]

    def handler(request, connection):
        if status[0] == 0:
            return False
        connection.reply(status[0])
        return True

    outcome = {"throttled": [529]}
    limit = adaptive(16, aimd={"window": "1h", "cooldown": "1ms"})
    gw = gateway(one_provider(provider(handler).url, [limit], outcome=outcome, errors=NO_PENALTY))
    assert gw.call("GET", "/a/").status == 429
    status[0] = 0
    assert gw.call("GET", "/a/").status == 502
    status[0] = 500
    assert gw.call("GET", "/a/").status == 500
    assert width(gw)["current"] == 16
    status[0] = 529
    for want in (8, 4, 2, 1, 1):
        time.sleep(0.01)
        assert gw.call("GET", "/a/").status == 529
        assert width(gw)["current"] == want
    until(lambda: gw.text().count("went down") >= 1, "it is in the log")


def test_a_share_that_follows(provider, gateway):
    """The ceiling is what the adaptive limit stands at."""
    status = [200]
    limits = [
        adaptive(8, aimd={"window": "1h", "cooldown": "1ms"}),
        {
            "name": "in-flight", "kind": "share", "ceiling": {"follows": "width"}, "counts": "requests",
            "tenants": {"a": 3, "b": 1}, "reclaimHorizon": "100ms", "idleAfter": "200ms", "scope": {"by": ["account"]},
        },
    ]  # fmt: skip
    gw = gateway(one_provider(provider(lambda request, connection: connection.reply(status[0])).url, limits,
                              errors=NO_PENALTY))  # fmt: skip

    def guarantees():
        (one,) = [limit for limit in gw.status()["limits"] if limit["limit"] == "in-flight"]
        return {name: tenant["guarantee"] for name, tenant in one["tenants"].items()}

    assert gw.call("GET", "/a/", {"Ration-Tenant": "a"}).status == 200
    assert guarantees() == {"a": 6, "b": 2}
    status[0] = 429
    assert gw.call("GET", "/a/", {"Ration-Tenant": "a"}).status == 429
    assert guarantees() == {"a": 3, "b": 1}
