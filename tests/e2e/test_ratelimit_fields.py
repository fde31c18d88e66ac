# SPDX-License-Identifier: MIT
"""RateLimit and RateLimit-Policy: what a client is told of its tightest limits; a provider's own word stays."""

import re

import pytest

from house import a_day, one_provider, slots

ITEM = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"((?:;[a-z]+=(?:\d{1,15}|"[^"]*"))*)')
DAILY = {"name": "daily", "kind": "quota", "max": 10, "window": a_day(),
          "scope": {"by": ["account"]}}
RATE = {"name": "rate", "kind": "rate", "rate": "1/h", "burst": 3, "margin": 0,
        "scope": {"by": ["account"]}}
COST = {"name": "tokens", "kind": "quota", "max": 1000, "counts": "cost", "window": {"rolling": "1h"},
        "scope": {"by": ["account"]}}
NO_RESERVE = {"budget": {"retryReserve": "0%"}}


def hello(_, connection):
    connection.reply(200, {}, b"hello")


def parsed(value):
    """A list of structured fields: (name, {parameter: value}); nothing but what RFC 9651 allows."""
    items, at = [], 0
    while at < len(value):
        match = ITEM.match(value, at)
        assert match, value[at:]
        pairs = [pair.split("=") for pair in match[2].split(";")[1:]]
        items.append((re.sub(r"\\(.)", r"\1", match[1]),
                      {key: int(text) if text.isdigit() else text.strip('"') for key, text in pairs}))
        at = match.end()
        assert value[at:at + 2] in ("", ", ")
        at += 2
    return items


def told(answer):
    """Both fields, each once and of the same limits; {} for neither."""
    values = [answer.all("RateLimit-Policy"), answer.all("RateLimit")]
    if values == [[], []]:
        return {}
    assert [len(value) for value in values] == [1, 1]
    policy, limit = (parsed(value[0]) for value in values)
    assert [name for name, _ in policy] == [name for name, _ in limit]
    return {name: {**one, **two} for (name, one), (_, two) in zip(policy, limit)}


def test_the_tightest_first(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [DAILY, slots(5), COST, RATE], settings=NO_RESERVE))
    answer = told(gw.call("GET", "/a/", {"Ration-Cost": "400"}))
    assert list(answer) == ["tokens", "rate", "daily"], "one more, two more, nine more like it"
    assert answer["tokens"] == {"q": 1000, "qu": "cost", "w": 3600, "r": 600}
    assert {key: answer["rate"][key] for key in ("q", "w", "r")} == {"q": 3, "w": 10800, "r": 2}
    assert 0 < answer["rate"]["t"] <= 3600, "until the burst is whole"
    assert {key: answer["daily"][key] for key in ("q", "w", "r")} == {"q": 10, "w": 86400, "r": 9}
    assert 0 < answer["daily"]["t"] <= 86400
    answer = told(gw.call("GET", "/a/", {"Ration-Cost": "1"}))
    assert [(name, one["r"]) for name, one in answer.items()] == [("rate", 1), ("daily", 8), ("tokens", 599)]


def test_of_a_refusal(provider, gateway):
    gw = gateway(one_provider(provider(hello).url, [{**DAILY, "max": 1}, slots(5)], settings=NO_RESERVE))
    assert told(gw.call("GET", "/a/"))["daily"]["r"] == 0
    answer = gw.call("GET", "/a/")
    assert (answer.status, answer["Ration-Refused"]) == (429, "quota_exhausted")
    assert list(told(answer)) == ["daily"]
    assert told(answer)["daily"]["r"] == 0
    assert abs(told(answer)["daily"]["t"] - int(answer["Retry-After"])) <= 1
    assert told(gw.call("GET", "/nobody/")) == {}


def test_where_no_limit_goes_by_time(provider, gateway):
    shadow = {**DAILY, "enforce": "shadow"}
    gw = gateway(one_provider(provider(hello).url, [slots(1), shadow]))
    assert told(gw.call("GET", "/a/")) == {}


@pytest.mark.parametrize("fields", [
    {"RateLimit": '"theirs";r=5', "RateLimit-Policy": '"theirs";q=9;w=1'},
    {"RateLimit-Policy": '"theirs";q=9;w=1'},
    {"ratelimit-remaining": "5", "ratelimit-limit": "9"},
], ids=["both", "one", "an earlier draft"])
def test_the_providers_own_stay(provider, gateway, fields):
    up = provider(lambda request, connection: connection.reply(200, fields, b"x"))
    gw = gateway(one_provider(up.url, [DAILY]))
    answer = gw.call("GET", "/a/")
    found = {name: value for name, value in answer.fields if name.lower().startswith("ratelimit")}
    assert found == fields


def test_beside_a_providers_older_fields(provider, gateway):
    up = provider(lambda request, connection: connection.reply(200, {"X-RateLimit-Remaining": "5"}, b"x"))
    gw = gateway(one_provider(up.url, [DAILY]))
    answer = gw.call("GET", "/a/")
    assert answer["X-RateLimit-Remaining"] == "5" and list(told(answer)) == ["daily"]


@pytest.mark.parametrize("name, shown", [
    ('say "when" \\ ', 'say "when" \\ '), ("täglich", "t%C3%A4glich"), ("80%", "80%"), ("日" * 80, "%E6%97%A5" * 80),
    ("n" * 255, "n" * 255),
], ids=["quotes", "umlaut", "percent", "wide", "long"])
def test_any_name_of_a_limit(provider, gateway, name, shown):
    gw = gateway(one_provider(provider(hello).url, [{**DAILY, "name": name}]))
    assert list(told(gw.call("GET", "/a/"))) == [shown]


def test_a_response_without_a_body(provider, gateway):
    up = provider(lambda request, connection: connection.reply(204, {}))
    gw = gateway(one_provider(up.url, [DAILY]))
    with gw.client() as client:
        assert list(told(client.call("GET", "/a/"))) == ["daily"]
        assert list(told(client.call("HEAD", "/a/"))) == ["daily"]


def test_what_breaks_upstream_has_none(gateway):
    gw = gateway(one_provider("http://127.0.0.1:9", [DAILY]))
    answer = gw.call("POST", "/a/", {}, b"x")
    assert answer.status == 502 and told(answer) == {}
