# SPDX-License-Identifier: MIT
"""What goes on over a reload and may not go by the config of before: costs, runs of jobs, timers, checks, names."""

import json
import threading

from api import Api
from house import one_provider, slots, until
from provider import hello
from test_costs import TO_USAGE, TOKENS, used
from test_reload import Gate, reload


def test_a_waiter_is_settled_by_the_new_rule(provider, gateway):
    go = threading.Event()

    def handler(request, connection):
        assert request.target != "/first" or go.wait(30)
        connection.reply(200, body=b'{"usage":{"total_tokens":7}}')

    config = one_provider(provider(handler).url, [slots(1), TOKENS])
    gw = gateway(config)
    with gw.client() as first, gw.client() as second:
        first.ask("GET", "/a/first")
        gw.until(lambda s: s["held"] == 1, "the first holds the slot")
        second.ask("GET", "/a/second")
        gw.until(lambda s: s["waiting"] == 1, "the second waits")
        config["providers"][0]["actual"] = TO_USAGE
        assert reload(gw, config).status == 200
        go.set()
        assert first.answer("GET").status == second.answer("GET").status == 200
    gw.until_idle()
    assert used(gw) == 1 + 7, "the first by the rule that it was sent with, which was none"


def test_a_sooner_flush(provider, gateway):
    config = one_provider(provider(hello).url, [TOKENS], settings={"ledger": {"path": "kept.db", "flush": "1h"}})
    gw = gateway(config)
    assert gw.call("GET", "/a/x").status == 200
    flushes = gw.status()["ledger"]["flushes"]
    config["settings"]["ledger"]["flush"] = "50ms"
    assert reload(gw, config).status == 200
    gw.until(lambda s: s["ledger"]["flushes"] > flushes and s["ledger"]["pending"] == 0, "it is written soon")
    assert gw.call("GET", "/a/x").status == 200
    gw.until(lambda s: s["ledger"]["flushes"] > flushes + 1 and s["ledger"]["pending"] == 0, "and soon again")


def jobs_of(*names):
    return [{"name": name, "account": "a", "endpoint": "GET /x", "interval": "2s"} for name in names]


DAY = {"name": "daily", "kind": "quota", "max": 1000000, "window": {"rolling": "24h"}, "scope": {"by": ["account"]}}


def test_plans_are_made_as_often_as_the_new_config_says(provider, gateway):
    config = one_provider(provider(hello).url, [DAY], settings={"budget": {"replanInterval": "1h"}})
    config["jobs"] = jobs_of("k")
    gw = gateway(config)
    for interval in ("2h", "1s"):
        config["settings"]["budget"]["replanInterval"] = interval
        assert reload(gw, config).status == 200
    plans = gw.status()["plan"]["plans"]
    gw.until(lambda s: s["plan"]["plans"] > plans, "another one")


def test_a_run_goes_on_under_another_number(provider, gateway):
    """One run of two requests, not a run of each; its job is the second of the config by then."""
    gate = Gate()
    config = one_provider(provider(gate).url, [DAY], endpoints=["/x", "/hold"],
                          settings={"budget": {"replanInterval": "1s"}})
    config["jobs"] = jobs_of("k")
    gw = gateway(config)
    with gw.client() as early, gw.client() as late:
        early.ask("GET", "/a/hold", {"Ration-Job": "k"})
        gw.until(lambda s: s["held"] == 1, "it runs")
        config["jobs"] = jobs_of("n", "k")
        assert reload(gw, config).status == 200
        late.ask("GET", "/a/hold", {"Ration-Job": "k"})
        gw.until(lambda s: s["held"] == 2, "both run")
        gate.open.set()
        assert early.answer("GET").status == late.answer("GET").status == 200
    runs = gw.until(lambda s: s["plan"]["runs"]["counted"] > 0, "the run is over")["plan"]["runs"]
    assert (runs["counted"], runs["cut"]) == (1, 0)
    until(lambda: Api(gw).get("plan/jobs/k").json()["calls"] == 2, "it is planned with two requests a run")


def test_a_run_that_was_the_last_ends(provider, gateway):
    """Nothing comes after the reload that would have it looked at."""
    gate = Gate()
    config = one_provider(provider(gate).url, [DAY], endpoints=["/x", "/hold"])
    config["jobs"] = jobs_of("k")
    gw = gateway(config)
    with gw.client() as client:
        client.ask("GET", "/a/hold", {"Ration-Job": "k"})
        gw.until(lambda s: s["held"] == 1, "it runs")
        config["jobs"] = jobs_of("n", "k")
        assert reload(gw, config).status == 200
        gate.open.set()
        assert client.answer("GET").status == 200
    gw.until(lambda s: s["plan"]["runs"]["counted"] == 1, "the run is over")


def test_an_old_check_is_given_up(provider, gateway):
    """Its answer would be of no use, and might never come."""
    asked, let_go = threading.Event(), threading.Event()

    def handler(request, connection):
        if request.target != "/old":
            connection.reply(500)
            return True
        asked.set()
        connection.closed()
        let_go.set()
        return False

    breaker = {"strategy": "consecutive", "threshold": 1, "recovery": "healthCheck", "backoff": {"delay": "2s"},
               "healthCheck": {"path": "/old"}}
    config = one_provider(provider(handler).url, [], breaker=breaker)
    gw = gateway(config)
    began = gw.status()["now"]
    assert gw.call("GET", "/a/x").status == 500
    assert asked.wait(30)
    config["providers"][0]["breaker"] = {**breaker, "backoff": {"delay": "1h"}, "healthCheck": {"path": "/new"}}
    assert reload(gw, config).status == 200
    if gw.status()["now"] - began > 1500:
        return  # a machine so busy that its own deadline may have ended it
    assert let_go.wait(30)
    assert gw.status()["totals"]["healthChecks"]["unhealthy"] == 0, "it had no time to fail by itself"


def test_names_of_who_waits_are_its_own(provider, gateway):
    """At the API, to the end of its wait, with the config gone that the name was of."""
    name = "an-account-with-a-long-name-of-its-own"
    config = one_provider(provider(hello).url, [slots(1)])
    config["accounts"][0]["name"] = name
    gw = gateway(config)
    api = Api(gw)
    reload(gw, config)
    held = api.granted({"account": name})
    with api.client() as waits:
        api.ask(waits, "/v1/acquire", {"account": name, "timeout": 3000})
        api.until("waiters", lambda rows: len(rows) == 1, "it waits")
        for i in range(3):
            config["tenants"] = {f"somebody-else-with-a-long-name-{i}-{k}": 1 for k in range(50)}
            reload(gw, config)
        answer = waits.answer("POST")
    assert (answer.status, json.loads(answer.body)["account"]) == (429, name)
    api.release(held)
