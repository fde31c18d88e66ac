# SPDX-License-Identifier: MIT
"""`ration validate` and `ration schema` as a person meets them."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATION = os.environ.get("RATION", str(ROOT / "build" / "ration"))
KEYS = {"MERAKI_KEY": "meraki-secret", "MODEL_KEY": "model-secret"}
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))

# Eleven different faults, and where each stands.
FAULTY = """\
settings:
  queue: { order: fair, maxWaiters: 0 }
  drain: 30
tenants: { acme: 3, globex: 1, acme: 2 }
providers:
  - name: meraki
    endpoints:
      - networks/{networkId}
    limits:
      - { name: org-rate, kind: rate, rate: 10/s, brust: 10, scope: { by: [account] } }
      - { name: at-once, kind: concurrency, max: 10, scope: { by: [acount] } }
      - name: daily
        kind: quota
        max: auto
        initialMax: 5000
        window: { period: day, timezone: America/Los_Angles }
accounts:
  - name: acme
    provider: merakki
    credential: { header: Authorization, value: "Bearer do-not-show" }
    budget: { share: 180% }
"""
WANTED = [
    "2:37: settings.queue.maxWaiters: '0' is out of range (at least 1 and at most 1000000)",
    "3:10: settings.drain: '30' is not a duration such as 250ms, 10s or 1h30m (write 30s for seconds)",
    "4:32: tenants.acme: the key stands here a second time (the first is in line 4)",
    "6:5: providers[0]: the key 'baseUrl' is missing",
    "8:9: providers[0].endpoints[0]: a path template must begin with '/' (/networks/{networkId})",
    "10:51: providers[0].limits[0].brust: unknown key (did you mean 'burst'?)",
    "11:68: providers[0].limits[1].scope.by[0]: 'acount' is no dimension of a scope (did you mean 'account'?)",
    "14:14: providers[0].limits[2].max: `max: auto` needs 'sync.limitHeader' (the response field with the maximum)",
    "16:42: providers[0].limits[2].window.timezone: 'America/Los_Angles' is not a known time zone "
    "(did you mean 'America/Los_Angeles'?)",
    "19:15: accounts[0].provider: there is no provider of this name (did you mean 'meraki'?)",
    "21:22: accounts[0].budget.share: '180%' is out of range (it must be a ratio from 0 to 1 such as 80%, 0.8 or 4/5)",
]


def ration(*arguments, **environment):
    return subprocess.run(
        [RATION, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment}, timeout=30
    )


def test_every_fault_is_reported_at_its_place(tmp_path):
    path = tmp_path / "ration.yaml"
    path.write_text(FAULTY)
    told = ration("validate", path)
    lines = told.stdout.splitlines()
    assert told.returncode == 1
    assert lines[0::3] == [f"{path}:{line}" for line in WANTED]
    assert "do-not-show" not in told.stdout + told.stderr
    for fault, source, caret in zip(lines[0::3], lines[1::3], lines[2::3]):
        number, column = map(int, fault.removeprefix(f"{path}:").split(":")[:2])
        assert caret.strip() == "^"
        assert source[caret.index("^"):][:4] == FAULTY.splitlines()[number - 1][column - 1:][:4]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_good(path):
    told = ration("validate", path, **KEYS)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--what"], ["/nowhere/at/all.yaml"], ["/"], [""]], ids=str)
def test_what_cannot_be_done_is_status_2(arguments):
    told = ration("validate", *arguments)
    assert told.returncode == 2
    assert told.stdout + told.stderr


def test_a_file_from_standard_input(tmp_path):
    """A pipe is no regular file; the message says so instead of waiting."""
    told = ration("validate", "/dev/stdin")
    assert told.returncode == 2
    assert "not a regular file" in told.stdout


def test_help():
    assert "ration validate FILE" in ration("help", "validate").stdout
    assert ration("--help").returncode == 0
    assert ration("--version").stdout.startswith("ration ")
    assert ration().returncode == 2
    assert ration("nonsense").returncode == 2


def test_a_full_disk_is_no_success():
    with open("/dev/full", "w") as full:
        assert subprocess.run([RATION, "schema"], stdout=full, stderr=subprocess.DEVNULL).returncode == 2


@pytest.fixture(scope="module")
def schema():
    jsonschema = pytest.importorskip("jsonschema")
    told = json.loads(ration("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(told)
    return jsonschema.Draft202012Validator(told)


def parsed(text):
    return pytest.importorskip("yaml").safe_load(text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_schema_takes_the_examples(schema, path):
    assert [error.message for error in schema.iter_errors(parsed(path.read_text()))] == []


# Single slips, each of which the schema and `ration validate` must both find, and what both must take.
PROVIDER = {"name": "p", "baseUrl": "http://h"}
QUOTA = {"name": "q", "kind": "quota", "max": 5, "window": {"period": "day"}, "scope": {"by": ["account"]}}


def provider(**keys):
    return {"providers": [{**PROVIDER, **keys}]}


def limit(**keys):
    return provider(limits=[{**QUOTA, **keys}])


def account(**keys):
    return {**limit(), "accounts": [{"name": "a", "provider": "p", **keys}]}


SHARE = {"name": "s", "kind": "share", "counts": "cost", "ceiling": 10, "tenants": {"a": 1, "b": {}},
         "reclaimHorizon": "1s", "idleAfter": "2s"}


def share(**keys):
    return provider(limits=[{**SHARE, **keys}])


def adaptive(**keys):
    return provider(limits=[{"name": "a", "kind": "adaptive", "initialLimit": 4, **keys}])


def breaker(**keys):
    return provider(breaker={"strategy": "count", **keys})


def job(**keys):
    jobs = [{"name": "j", "account": "a", "endpoint": "GET /x/{y}", "interval": "60s", **keys}]
    return {**provider(), "accounts": [{"name": "a", "provider": "p"}], "jobs": jobs}


CHECK = {"path": "/health"}
GOOD = [
    provider(),
    limit(),
    limit(max="auto", initialMax=5, sync={"limitHeader": "X"}),
    limit(window={"rolling": "1h30m"}, arrival="0", counts="cost"),
    limit(max="${MERAKI_KEY}") | {"settings": {"drain": "5s"}},
    provider(endpoints=["/a/{b}", {"path": "/c", "cost": 2.5, "priority": "low"}]),
    provider(limits=[{"name": "r", "kind": "rate", "rate": "100/15m", "burst": 3, "margin": 0}]),
    account(credential={"value": "Bearer ${MERAKI_KEY}"}, budget={"share": 0.5}),
    account(limits=[{"name": "q", "max": 7}]),
    {**provider(), "tenants": {"a": 3}},
    share(),
    share(tenants={"a": {"weight": 2, "lend": "80%"}}, lend=0.5, freeze="wanted", cooldown="1s", unknownTenant="a"),
    adaptive(),
    adaptive(classes={"x": {"reservedShare": "1/3"}, "y": {}}, minLimit=2,
             lend={"reclaimHorizon": "1s", "idleAfter": "2s"}),
    adaptive(aimd={"decreaseFactor": 0.7, "window": "1s"}, recovery="fast", pauseOnRetryAfter=True),
    provider(limits=[*share(ceiling={"follows": "a"})["providers"][0]["limits"],
                     *adaptive(counts="cost")["providers"][0]["limits"]]),
    job(),
    job(endpoint="/x", priority="critical", tenant="t", cost=0, estimate={"pagesPerRun": 2.5}),
    job(fanOut={"name": "n", "estimate": 3}, vars={"y": 549236}),
    job(vars={"y": "seven"}) | {"settings": {"budget": {"retryOverhead": "5%", "maxStretch": 12}}},
    job() | {"settings": {"budget": {"replanInterval": "5m"}}},
    breaker(),
    breaker(threshold="2/3", size=30, minimumCalls=20, backoff={"delay": "1s"}, scope={"by": ["account", "tenant"]}),
    breaker(strategy="consecutive", threshold=3, backoff={"initial": "1s", "multiplier": 1.5, "max": "1m"}),
    breaker(strategy="sampling", threshold=0.5, duration="10s", recovery="healthCheck",
            healthCheck={**CHECK, "method": "HEAD", "expect": [200]}),
    breaker(idleProbe={"interval": "1m", "failures": 2}, healthCheck=CHECK),
    provider(outcome={"throttled": [429, 529], "failure": [500]}),
    provider(estimate=250, endpoints=[{"path": "/a", "estimate": {"pointer": "/max~1tokens", "body": "64KiB"}},
                                      {"path": "/b", "actual": {"header": "X-Cost"}}]),
    provider(estimate={"header": "X-Size", "default": 0.5}, actual={"pointer": ""}),
    {"providers": [{"use": "github"}]},
    {"providers": [{"use": "openai", "limits": [{"name": "requests", "initialMax": 9},
                                                {"name": "tokens", "max": 900, "sync": {}}]}]},
    provider(hold="auto", holdFloor="100ms", endpoints=[{"path": "/a", "hold": "5s"}]),
]
BAD = [
    provider(colour="red"),
    provider(baseUrl="ftp://h"),
    provider(limits={}),
    provider(endpoints=["a"]),
    limit(kind="quotta"),
    limit(burst=3),
    limit(max=-1),
    limit(window={"period": "fortnight"}),
    limit(scope={"by": ["acount"]}),
    provider(limits=[{"name": "r", "kind": "rate", "rate": "10"}]),
    provider(limits=[{"name": "r", "kind": "rate"}]),
    provider(limits=[{"name": "r", "kind": "concurrency", "max": 1, "window": {"period": "day"}}]),
    provider(errors={"transient": {"statuses": []}}),
    provider(errors={"transient": {"statuses": [42]}}),
    account(budget={"share": 1.5}),
    account(limits=[{"max": 7}]),
    account(credential={"header": 5, "value": "x"}),
    {**provider(), "tenants": {"a": 0}},
    {**provider(), "settings": {"drain": "soon"}},
    {**provider(), "jobs": [{"name": "j"}]},
    job(endpoint="GET"),
    job(fanOut={"estimate": 3}),
    job(fanOut="n"),
    job(fanOut={"name": "n", "estimate": 0}),
    job(estimate={"pagesPerRun": 0.5}),
    job(vars={"y": "a/b"}),
    job(every="60s"),
    {**job(), "settings": {"budget": {"maxStretch": 1001}}},
    {**provider(), "clients": {}},
    share(counts=None),
    share(tenants={}),
    share(tenants={"a": 0}),
    share(tenants={"a": {"wieght": 1}}),
    share(ceiling={"follow": "a"}),
    share(lend={"reclaimHorizon": "1s", "idleAfter": "2s"}),
    share(freeze="all"),
    share(initialLimit=4),
    adaptive(initialLimit=0),
    adaptive(lend="50%"),
    adaptive(classes={"x": 0.5}),
    adaptive(lend={"reclaimHorizon": "1s"}),
    adaptive(ceiling=10),
    limit(lend="50%"),
    breaker(strategy="often"),
    breaker(threshold=5),
    breaker(strategy="consecutive", threshold="50%"),
    breaker(duration="10s"),
    breaker(healthCheck={"method": "GET"}),
    breaker(backoff={"initial": "1s", "multiplier": 0.5}),
    breaker(scope={"by": ["acount"]}),
    provider(breaker={}),
    provider(outcome={"throttled": []}),
    provider(hold="sometimes"),
    provider(limits=[{"name": "q"}]),
    provider(estimate={"pointer": "max_tokens"}),
    provider(estimate={"pointer": "/a~b", "default": 1}),
    provider(estimate={"pointer": "/a", "body": "1MB"}),
    provider(estimate={"pointer": "/a", "body": -1}),
    provider(actual=5),
    provider(use=5),
    {"providers": [{"use": "github", "colour": "red"}]},
    {"providers": [{"use": "github", "limits": [{"max": 5}]}]},
    {"providers": [{"use": "github", "limits": [{"name": "hourly", "kind": "quotta"}]}]},
]


@pytest.mark.parametrize("config", GOOD, ids=json.dumps)
def test_schema_and_parser_take_the_same(schema, config, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(config))
    keys = {**KEYS, "MERAKI_KEY": "17"}
    assert [error.message for error in schema.iter_errors(config)] == []
    assert (ration("validate", path, **keys).stdout, ration("validate", path, **keys).returncode) == ("", 0)


@pytest.mark.parametrize("config", BAD, ids=json.dumps)
def test_schema_and_parser_refuse_the_same(schema, config, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(config))
    assert not schema.is_valid(config)
    assert ration("validate", path, **KEYS).returncode == 1


def test_a_binary_finds_the_provider_files_that_came_with_it(tmp_path):
    """Beside its own folder, wherever that is; a folder in the environment counts."""
    (tmp_path / "c.yaml").write_text("providers: [{ use: mine }]\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "share/ration/providers").mkdir(parents=True)
    (tmp_path / "share/ration/providers/mine.yaml").write_text("name: mine\nbaseUrl: http://h\n")
    binary = tmp_path / "bin/ration"
    shutil.copy(RATION, binary)
    told = {}
    for folder in [None, str(tmp_path / "bin")]:
        environment = {key: value for key, value in os.environ.items() if key != "RATION_PROVIDERS"}
        environment |= {"RATION_PROVIDERS": folder} if folder else {}
        told[folder] = subprocess.run([binary, "validate", tmp_path / "c.yaml"], env=environment, timeout=30,
                                      capture_output=True, text=True).returncode
    assert list(told.values()) == [0, 1]


def test_a_warning_is_no_fault(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "providers:\n- name: p\n  baseUrl: http://h\n  limits:\n"
        "  - { name: a, kind: adaptive, initialLimit: 4, classes: { x: { reservedShare: 50% }, y: {} } }\n"
    )
    told = ration("validate", path)
    assert told.returncode == 0
    lines = told.stdout.splitlines()
    assert lines[0].startswith(f"{path}:5:90: warning: providers[0].limits[0].classes.y: ")
    assert lines[2].index("^") == lines[1].index("{} } }")
    assert len(lines) == 3


def test_the_reference_is_what_the_table_says():
    assert ration("schema", "--markdown").stdout == (ROOT / "docs/reference/config.md").read_text()
