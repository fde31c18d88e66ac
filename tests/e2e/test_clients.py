# SPDX-License-Identifier: MIT
"""`clients:`, who may claim what: at the gateway, at the API, at the pages; and that no token is ever seen."""

import json
import re
import subprocess

import pytest

import api as openapi
from api import Api, operations
from house import RATION, Client, Gateway, a_day, one_provider, until
from recorder import Recorder

URL = "http://127.0.0.1:9"  # nobody is asked
MASTER, BILLING, BATCH, WATCH, OPS = TOKENS = [f"t0k-{name}-sekrit" for name in
                                              ("master", "billing", "batch", "watch", "ops")]
CLIENTS = [
    {"name": "billing", "token": BILLING, "accounts": ["a"], "tenants": ["acme"], "classes": ["people"],
     "priority": "high"},
    {"name": "batch", "token": BATCH, "accounts": ["a", "b"], "tenants": ["acme", "globex"], "priority": "low"},
    {"name": "watch", "token": WATCH, "accounts": [], "view": True},
    {"name": "ops", "token": OPS, "operator": True},
]
DAILY = {"name": "daily", "kind": "quota", "max": 1000, "window": a_day(),
         "scope": {"by": ["account"]}}
JOBS = [{"name": "tick", "account": "a", "endpoint": "GET /x", "interval": "1h", "tenant": "acme"},
        {"name": "tock", "account": "b", "endpoint": "GET /x", "interval": "1h"},
        {"name": "theirs", "account": "a", "endpoint": "GET /x", "interval": "1h", "tenant": "initech"},
        {"name": "rush", "account": "a", "endpoint": "GET /x", "interval": "1h", "priority": "critical"}]


def config_of(url, clients=CLIENTS, **settings):
    config = one_provider(url, [DAILY], settings={"token": MASTER, **settings}, endpoints=["/x"])
    config["accounts"] += [{"name": name, "provider": "p"} for name in ("b", "secret-account")]
    return {**config, "tenants": {"acme": 1, "globex": 1, "initech": 1}, "jobs": JOBS, "clients": clients}


def bearer(token):
    return {"Authorization": f"Bearer {token}"} if token else {}


class Governed(Gateway):
    """It looks at itself with the operator's own token."""

    def control(self, target, method="GET", fields=(), token=MASTER):
        return super().control(target, method, {**bearer(token), **dict(fields)})

    def call(self, method, target, fields=(), body=None, token=None):
        return super().call(method, target, {**({"Ration-Token": token} if token else {}), **dict(fields)}, body)


@pytest.fixture(scope="module")
def recorder():
    one = Recorder()
    yield one
    one.close()


def test_clients_guard_what_others_can_reach(recorder, tmp_path):
    """Without the operator's own token too: whoever shows no client's gets nothing, at either port."""
    everywhere = {"gateway": "0.0.0.0:0", "control": "0.0.0.0:0"}
    config = config_of(recorder.url, listen=everywhere)
    del config["settings"]["token"]
    path = tmp_path / "guarded.json"
    path.write_text(json.dumps(config))
    process = subprocess.Popen([RATION, "serve", path], stderr=subprocess.PIPE, text=True)
    try:
        line = next(line for line in process.stderr if "listening" in line)
        ports = dict(re.findall(r"(gateway|control)=0\.0\.0\.0:(\d+)", line))
        for token, status in ((None, 403), (BILLING, 200)):
            with Client(int(ports["gateway"])) as client:
                assert client.call("GET", "/a/x", {"Ration-Token": token} if token else {}).status == status
        for token, status in ((None, 401), (BILLING, 403), (OPS, 200)):
            with Client(int(ports["control"])) as client:
                assert client.call("GET", "/v1/status", bearer(token)).status == status
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def gw(recorder, tmp_path_factory):
    """One for all: nobody leaves anything in it. At the end nothing that it ever said has a token in it."""
    folder = tmp_path_factory.mktemp("clients")
    one = Governed(config_of(recorder.url), folder, "--record", str(folder / "trace.jsonl"))
    yield one
    pages = [one.control(page).body.decode() for page in
             ("/metrics", "/v1/status", "/v1/refusals", "/v1/limits", "/v1/plan", "/v1/leases")]
    one.close()
    for text in [one.text(), *pages, *(path.read_text() for path in folder.glob("trace*"))]:
        assert "sekrit" not in text


@pytest.fixture
def as_(gw):
    """The API as one client sees it, each answer held against openapi.yaml."""
    return lambda token: Api(gw, token)


def forbidden(answer, *words, field=None):
    assert (answer.status, answer["Ration-Refused"]) == (403, "not_permitted"), answer.body
    document = answer.json()
    assert (document["reason"], document["category"], document["retryable"]) == ("not_permitted", "caller", False)
    assert document.get("field") == field
    assert answer["Retry-After"] is None
    for word in words:
        assert word in document["detail"]
    for name in ("secret-account", "initech", "sekrit"):
        assert name not in answer.body.decode(), "of others nothing is told"


# ---- the gateway

FIELDS = {"tenant": "Ration-Tenant", "class": "Ration-Class", "priority": "Ration-Priority"}
CALLS = [
    # who, account, fields, None: it goes out, else (the part, words)
    ("the only tenant is meant", BILLING, "a", {}, None),
    ("what is listed", BILLING, "a", {"Ration-Tenant": "acme", "Ration-Class": "people", "Ration-Priority": "high"},
     None),
    ("lower than the highest", BILLING, "a", {"Ration-Priority": "low"}, None),
    ("an account of others", BILLING, "b", {}, ("account", "'billing'", "other than: a")),
    ("one that nobody knows", BILLING, "zz", {}, ("account", ": a;")),
    ("one that exists", BILLING, "secret-account", {}, ("account", ": a;")),
    ("with an escape", BILLING, "%61", {}, None),
    ("an account that is no text", BILLING, "%FF%00", {}, ("account", ": a;")),
    ("a tenant of others", BILLING, "a", {"Ration-Tenant": "globex"}, ("tenant", "other than: acme;")),
    ("a slip of the pen", BILLING, "a", {"Ration-Tenant": "acne"}, ("tenant", "did you mean 'acme'?")),
    ("a class", BILLING, "a", {"Ration-Class": "batch"}, ("class", "people")),
    ("a priority", BILLING, "a", {"Ration-Priority": "critical"}, ("priority", "above high")),
    ("one of two tenants", BATCH, "b", {"Ration-Tenant": "globex"}, None),
    ("none of two tenants", BATCH, "b", {}, ("tenant", "must name", "acme, globex")),
    ("a priority above low", BATCH, "b", {"Ration-Tenant": "acme", "Ration-Priority": "normal"},
     ("priority", "above low")),
    ("a job", BILLING, "a", {"Ration-Job": "tick"}, None),
    ("a job without a tenant", BATCH, "b", {"Ration-Job": "tock", "Ration-Tenant": "acme"}, None),
    ("a job with a priority", BATCH, "a", {"Ration-Job": "rush", "Ration-Tenant": "acme"}, None),
    ("no account at all", WATCH, "a", {}, ("account", "may claim no account;")),
    ("an operator", OPS, "secret-account", {"Ration-Tenant": "initech", "Ration-Priority": "critical"}, None),
    ("the master", MASTER, "secret-account", {}, None),
]


@pytest.mark.parametrize("token, account, fields, no", [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
def test_calls(gw, recorder, token, account, fields, no):
    recorder.take()
    answer = gw.call("GET", f"/{account}/x", fields, token=token)
    if no:
        forbidden(answer, *no[1:], field=FIELDS.get(no[0]))
        assert recorder.take()[0] == []
        return
    assert answer.status == 200, answer.body
    (request,) = recorder.take()[0]
    assert not any(name.startswith("ration-") or b"sekrit" in value for name, value in request.fields)


@pytest.mark.parametrize("job", ["tock", "theirs", "none"])
def test_jobs_of_others(gw, job):
    """Whether there is such a job is not told."""
    answer = gw.call("GET", "/a/x", {"Ration-Job": job}, token=BILLING)
    assert answer.status == 400 and answer.json()["field"] == "Ration-Job"
    guess = " (did you mean 'tick'?)" if job == "tock" else ""
    assert answer.json()["detail"] == f"this account has no job of this name that the client may name{guess}"


def test_what_is_claimed_by_silence(gw):
    """A tenant that is meant is told to those who listen, and so is a priority that was lowered."""
    with Client(gw.control_port) as stream:
        stream.ask("GET", "/v1/events", bearer(OPS))
        status, _, _ = stream.head()
        assert status == 200
        until(lambda: gw.metrics()["ration_events_listeners"] == 1, "somebody listens")
        assert gw.call("GET", "/a/x", token=BILLING).status == 200
        told = b""
        while b'"type":"call"' not in told or not told.endswith(b"\n\n"):
            told += stream.chunk()
        assert b'"tenant":"acme"' in told


TOKENS_THAT_ARE_NONE = [
    ("none", b"", 403),
    ("empty", b"Ration-Token:\r\n", 400),
    ("blank", b"Ration-Token:  \t \r\n", 400),
    ("nobody's", b"Ration-Token: nobody\r\n", 403),
    ("cut", b"Ration-Token: " + BILLING[:-1].encode() + b"\r\n", 403),
    ("longer", b"Ration-Token: " + BILLING.encode() + b"x\r\n", 403),
    ("in capitals", b"Ration-Token: " + BILLING.upper().encode() + b"\r\n", 403),
    ("no UTF-8", b"Ration-Token: \xff\xfe\xc3\r\n", 403),
    ("huge", b"Ration-Token: " + b"x" * 30000 + b"\r\n", 403),
    ("with a blank in it", b"Ration-Token: " + BILLING.encode() + b" x\r\n", 403),
    ("two in one", b"Ration-Token: " + BILLING.encode() + b", " + BATCH.encode() + b"\r\n", 403),
    ("twice", b"Ration-Token: %s\r\nration-token: %s\r\n" % (BILLING.encode(), BILLING.encode()), 400),
    ("in another field", b"Authorization: Bearer " + BILLING.encode() + b"\r\n", 403),
    ("with a scheme", b"Ration-Token: Bearer " + BILLING.encode() + b"\r\n", 403),
    ("blanks around are none of it", b"Ration-Token: \t " + BILLING.encode() + b" \t\r\n", 200),
]


@pytest.mark.parametrize("lines, status", [row[1:] for row in TOKENS_THAT_ARE_NONE],
                         ids=[row[0] for row in TOKENS_THAT_ARE_NONE])
def test_tokens_at_the_gateway(gw, recorder, lines, status):
    before = gw.status()["totals"]
    recorder.take()
    with gw.client() as client:
        answer = client.send(b"GET /a/x HTTP/1.1\r\nHost: g\r\n" + lines + b"\r\n").answer()
    assert answer.status == status, answer.body
    assert b"sekrit" not in answer.body and b"xxx" not in answer.body
    assert len(recorder.take()[0]) == (status == 200)
    after = gw.status()["totals"]
    assert after["tokensRefused"] - before["tokensRefused"] == (status == 403)
    counted = [totals["refusals"].get("not_permitted", 0) for totals in (before, after)]
    assert counted[1] - counted[0] == (status == 403)


# ---- the control port


@pytest.mark.parametrize("field", [
    None, "", "Bearer", "Bearer ", f"Basic {OPS}", OPS, "Bearer nobody", f"Bearer {OPS}, {OPS}", "Bearer \xff\xfe",
    "Bearer " + "x" * 30000, f"Bearer {OPS[:-1]}"], ids=lambda field: str(field)[:12])
def test_tokens_at_the_control_port(gw, field):
    with Client(gw.control_port) as client:
        for target, open_ in (("/v1/status", False), ("/v1/none", False), ("/healthz", True), ("/readyz", True)):
            answer = client.call("GET", target, {} if field is None else {"Authorization": field})
            assert answer.status == (200 if open_ else 401), (target, answer.body)
            assert open_ or (answer["WWW-Authenticate"] == "Bearer" and b"sekrit" not in answer.body)


def test_two_tokens_at_the_control_port(gw):
    line = f"Authorization: Bearer {OPS}\r\n"
    with Client(gw.control_port) as client:
        assert client.send(f"GET /v1/status HTTP/1.1\r\nHost: g\r\n{line}{line}\r\n").answer().status == 401


def test_who_may_look(gw, as_):
    assert as_(None).get("limits").status == 401
    for token, views in ((MASTER, True), (OPS, True), (WATCH, True), (BILLING, False), (BATCH, False)):
        for page in ("limits", "limits/daily/a", "leases", "waiters", "refusals", "plan", "fairness", "allocation"):
            answer = as_(token).get(page)
            assert answer.status in (200, 404) if views else answer.status == 403, (token, page)
        for page in ("/metrics", "/v1/status", "/v1/events"):
            if views and page == "/v1/events":
                continue
            answer = gw.control(page, token=token)
            if views:
                assert answer.status == 200
            else:
                forbidden(answer, "view: true")
    assert as_(BILLING).get("plan/jobs/tick").status == 200, "its own job is no secret to it"
    for job in ("tock", "theirs", "none"):
        forbidden(as_(BILLING).get(f"plan/jobs/{job}"))
    assert as_(OPS).get("plan/jobs/none").status == 404


@pytest.mark.parametrize("target", ["limits/daily/a/pause", "limits/daily/a/resume", "limits/daily/a/reset",
                                    "limits/daily/a/grant", "drain", "reload"])
def test_operators_alone_operate(as_, target):
    for token in (BILLING, BATCH, WATCH):
        forbidden(as_(token).post(target, {"units": 1} if "grant" in target else {}), "operator: true")


def test_an_operator_operates(gw, as_):
    as_(BILLING).release(as_(BILLING).granted({"account": "a"}))
    for token in (OPS, MASTER):
        for verb, body in (("pause", {}), ("resume", {}), ("grant", {"units": 1})):
            assert as_(token).post(f"limits/daily/a/{verb}", body).status == 200


def test_what_may_be_acquired(as_):
    rows = [
        (BILLING, {"account": "a"}, None),
        (BILLING, {"account": "a", "tenant": "acme", "class": "people", "priority": "high"}, None),
        (BILLING, {"account": "secret-account"}, "account"),
        (BILLING, {"provider": "p"}, "account"),
        (BILLING, {"account": "a", "tenant": "initech"}, "tenant"),
        (BILLING, {"account": "a", "tenant": ""}, "tenant"),
        (BILLING, {"account": "a", "class": "other"}, "class"),
        (BILLING, {"account": "a", "priority": "critical"}, "priority"),
        (BILLING, {"account": "a", "credential": "0123456789abcdef"}, "credential"),
        (BATCH, {"account": "b"}, "tenant"),
        (BATCH, {"account": "b", "tenant": "globex"}, None),
        (WATCH, {"account": "a"}, "account"),
        (OPS, {"account": "secret-account", "tenant": "initech"}, None),
    ]
    for token, body, part in rows:
        for name in ("acquire", "check"):
            answer = as_(token).post(name, body)
            if part:
                forbidden(answer, field=part)
                continue
            assert answer.status == 200, (body, answer.body)
            if name == "acquire":
                as_(token).release(answer.json()["lease"])


def test_a_priority_that_is_not_claimed(as_):
    """It is at most the client's highest, whatever the config would give."""
    lease = as_(BATCH).granted({"account": "b", "tenant": "acme"})
    (row,) = as_(OPS).get("leases").json()["leases"]
    assert (row["id"], row["priority"], row["tenant"]) == (lease, "low", "acme")
    as_(BATCH).release(lease)


def test_a_lease_is_its_clients(as_):
    lease = as_(BILLING).granted({"account": "a"})
    for name in ("renew", "observe", "release"):
        forbidden(as_(BATCH).post(name, {"lease": lease}), "another client")
    for token in (BILLING, OPS, MASTER):
        assert as_(token).post("renew", {"lease": lease}).status == 200
    as_(OPS).release(lease)
    assert as_(BATCH).post("release", {"lease": lease}).status == 410
    lease = as_(MASTER).granted({"account": "a"})
    forbidden(as_(BILLING).post("release", {"lease": lease}), "another client")
    as_(MASTER).release(lease)


def test_a_key_is_its_clients(as_):
    """Guessing an Idempotency-Key gives nobody the lease of another."""
    key, body = {"Idempotency-Key": "k"}, {"account": "a", "tenant": "acme"}
    leases = [as_(token).granted(body, key) for token in (BILLING, BATCH, BILLING, BATCH)]
    assert leases[0] == leases[2] != leases[1] == leases[3]
    as_(BILLING).release(leases[0])
    as_(BATCH).release(leases[1])


def test_whose_runs_are_reported(as_):
    assert as_(BILLING).post("runs", {"job": "tick", "requests": 1}).status == 200
    for job in ("tock", "theirs", "none"):
        forbidden(as_(BILLING).post("runs", {"job": job, "requests": 1}))
    assert as_(OPS).post("runs", {"job": "none", "requests": 1}).status == 404


def test_refusals_are_kept_and_told(gw):
    with Client(gw.control_port) as stream:
        stream.ask("GET", "/v1/events", bearer(WATCH))
        assert stream.head()[0] == 200
        until(lambda: gw.metrics()["ration_events_listeners"] == 1, "somebody listens")
        assert gw.call("GET", "/a/x", {"Ration-Tenant": "globex"}, token=BILLING).status == 403
        told = b""
        while b'"type":"refused"' not in told or not told.endswith(b"\n\n"):
            told += stream.chunk()
    assert b'"reason":"not_permitted"' in told
    (row, *_) = gw.control("/v1/refusals?reason=not_permitted").json()["refusals"]
    assert (row["account"], row["tenant"], row["reason"]) == ("a", "globex", "not_permitted")
    assert "client 'billing' may claim no tenant other than: acme" in row["explanation"]
    gw.line("msg=refused reason=not_permitted")
    assert gw.metrics()['ration_refusals_total{reason="not_permitted"}'] > 0


def test_every_operation_may_be_forbidden(as_):
    """Each has its 401 and its 403, as openapi.yaml says."""
    unknown, bound = as_("nobody"), as_(WATCH)
    lease = as_(MASTER).granted({"account": "a"})
    for method, path, operation in operations():
        target = path.replace("{name}", "daily").replace("{key}", "a")
        bodies = {"release": {"lease": lease}, "observe": {"lease": lease}, "renew": {"lease": lease},
                  "run": {"job": "tick", "requests": 1}, "grant": {"units": 1}}
        body = json.dumps(bodies.get(operation["operationId"], {} if path.endswith("drain") else {})).encode()
        fields = {"Content-Type": "application/json"}
        assert unknown.call(method, target, fields, body).status == 401
        token = BILLING if method == "GET" else WATCH
        name = target.removeprefix("/v1/plan/jobs/")
        target = target if name == target else "/v1/plan/jobs/theirs"
        answer = as_(token).call(method, target, fields, body)
        forbidden(answer, field="account" if operation["operationId"] in ("acquire", "check") else None)
    promised = {operation["operationId"] for _, _, operation in operations() if "403" in operation["responses"]}
    assert promised == {operation["operationId"] for _, _, operation in operations()}
    assert bound.post("check", {"account": "a"}).status == 403
    as_(MASTER).release(lease)
    assert openapi.document()["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


# ---- the config


def test_without_a_token_of_the_operator(recorder, tmp_path):
    """Where clients are named, everybody needs a token, on loopback too."""
    config = config_of(recorder.url)
    del config["settings"]["token"]
    one = Governed(config, tmp_path)
    try:
        one.control = lambda target, **more: Governed.control(one, target, **{"token": OPS, **more})
        assert Governed.control(one, "/v1/status", token=None).status == 401
        assert one.call("GET", "/a/x").status == 403
        assert one.call("GET", "/a/x", token=MASTER).status == 403
        assert one.call("GET", "/a/x", token=BILLING).status == 200
        one.close()
    finally:
        one.kill()


@pytest.mark.parametrize("clients, words", [
    ([{"name": "x", "token": BILLING}, {"name": "y", "token": BILLING}], "client 'x' has the same token"),
    ([{"name": "x", "token": MASTER}], "this is `settings.token`"),
    ([{"name": "x", "token": BILLING, "accounts": ["secret-acount"]}], "did you mean 'secret-account'?"),
    ([{"name": "x", "token": f"{BILLING} "}], "visible ASCII characters only"),
    ([{"name": "x", "token": BILLING, "tokne": f"{BATCH}"}], "did you mean 'token'?"),
    ([{"name": "x", "token": [BILLING]}], "must be one line of text"),
    ([{"name": "x", "token": "${NO_SUCH_VARIABLE}"}], "NO_SUCH_VARIABLE"),
], ids=["twice", "the master's", "account", "blank", "key", "list", "variable"])
def test_validate(tmp_path, clients, words):
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(config_of(URL, clients), indent=1))
    done = subprocess.run([RATION, "validate", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and words in done.stdout + done.stderr
    assert "sekrit" not in done.stdout + done.stderr, "not even in the line that it shows"


# ---- what was meant

SHARE = {"name": "share", "kind": "share", "ceiling": 9, "counts": "requests", "tenants": {"acme": 1, "globex": 1},
         "reclaimHorizon": "1s", "idleAfter": "2s", "scope": {"by": ["account"]}}
WIDTH = {"name": "width", "kind": "adaptive", "initialLimit": 5, "classes": {"people": {}}}


@pytest.fixture
def misspelt(gateway):
    """A config with names to miss, and whatever clients; the fixture looks with the operator's own token."""
    def start(*clients):
        config = one_provider(URL, [SHARE, WIDTH], settings={"token": MASTER} if clients else {})
        config["accounts"].append({"name": "shop", "provider": "p"})
        config["jobs"] = [{"name": "ticker", "account": "shop", "endpoint": "GET /x", "interval": "1h"},
                          {"name": "tocker", "account": "a", "endpoint": "GET /x", "interval": "1h"}]
        gw = gateway({**config, **({"clients": list(clients)} if clients else {})})
        if clients:
            gw.status = lambda: gw.control("/v1/status", fields=bearer(MASTER)).json()
        return gw

    return start


@pytest.mark.parametrize("path, fields, status, field, guess", [
    ("shpo", {}, 404, None, "shop"),
    ("nothing-like-it", {}, 404, None, None),
    ("shop", {"Ration-Tenant": "gloebx"}, 400, "Ration-Tenant", "globex"),
    ("shop", {"Ration-Tenant": "umbrella"}, 400, "Ration-Tenant", None),
    ("shop", {"Ration-Tenant": "acme", "Ration-Class": "peopel"}, 400, "Ration-Class", "people"),
    ("shop", {"Ration-Tenant": "acme", "Ration-Job": "tikcer"}, 400, "Ration-Job", "ticker"),
    ("shop", {"Ration-Tenant": "acme", "Ration-Job": "tockre"}, 400, "Ration-Job", "ticker"),
], ids=["account", "no account", "tenant", "no tenant", "class", "job", "job of the account alone"])
def test_what_was_meant(misspelt, path, fields, status, field, guess):
    document = misspelt().call("GET", f"/{path}/x", fields)
    assert (document.status, document.json().get("field")) == (status, field), document.body
    detail = document.json()["detail"]
    assert (f"did you mean '{guess}'?" in detail.lower()) if guess else ("did you mean" not in detail.lower())


def test_what_was_meant_by_a_client(misspelt):
    """It is helped with its own names, and never with those of others."""
    gw = misspelt({"name": "x", "token": BILLING, "accounts": ["shop"], "tenants": ["acme"]})
    for path, fields in (("spoh", {}), ("shop", {"Ration-Tenant": "gloebx"}), ("shop", {"Ration-Job": "tockre"})):
        answer = gw.call("GET", f"/{path}/x", {"Ration-Token": BILLING, **fields})
        assert b"globex" not in answer.body and b"tocker" not in answer.body
    answer = gw.call("GET", "/shp/x", {"Ration-Token": BILLING})
    assert answer.status == 403 and b"did you mean 'shop'?" in answer.body


def test_what_was_meant_at_the_api(misspelt):
    gw = misspelt()
    for body, status, guess in (
            ({"account": "shpo"}, 404, "shop"), ({"account": "zzz"}, 404, None),
            ({"account": "shop", "tenant": "gloebx"}, 400, "globex"),
            ({"account": "shop", "tenant": "acme", "class": "peopel"}, 400, "people")):
        answer = Api(gw).post("acquire", body)
        assert answer.status == status
        words = Api(gw).post("check", body).json()["explanation"]
        for text in (answer.json()["detail"], words):
            assert (f"Did you mean '{guess}'?" in text) if guess else ("Did you mean" not in text)


# ---- a reload


def test_other_clients_after_a_reload(recorder, tmp_path):
    """Tokens change with the config, whole; a lease stays its client's, who may have another token by then."""
    config = config_of(recorder.url)
    one = Governed(config, tmp_path)
    try:
        lease, orphan = (Api(one, token).granted({"account": "a", "tenant": "acme"}) for token in (BILLING, BATCH))
        for token in (BILLING, WATCH, "nobody"):
            assert Api(one, token).post("reload", {}).status == (401 if token == "nobody" else 403)
        broken = [{**CLIENTS[0], "accounts": ["nowhere"]}]
        one.config.write_text(json.dumps({**config, "clients": broken}))
        assert Api(one, OPS).post("reload", {}).status == 422
        assert one.call("GET", "/a/x", token=BILLING).status == 200, "a broken file changes nothing"

        changed = [{**CLIENTS[0], "token": f"{BILLING}-2", "accounts": ["b"]}, CLIENTS[3]]
        one.config.write_text(json.dumps({**config, "clients": changed}))
        assert Api(one, OPS).post("reload", {}).status == 200
        assert one.call("GET", "/a/x", token=BILLING).status == 403
        forbidden(one.call("GET", "/a/x", token=f"{BILLING}-2"), "other than: b")
        assert one.call("GET", "/b/x", token=f"{BILLING}-2").status == 200
        assert Api(one, BATCH).post("release", {"lease": orphan}).status == 401
        forbidden(Api(one, f"{BILLING}-2").post("release", {"lease": orphan}), "another client")
        Api(one, f"{BILLING}-2").release(lease)
        Api(one, OPS).release(orphan)

        del config["clients"]
        one.config.write_text(json.dumps(config))
        assert Api(one, OPS).post("reload", {}).status == 200
        assert Api(one, OPS).post("reload", {}).status == 401, "its token is nobody's now"
        assert one.call("GET", "/secret-account/x", token=MASTER).status == 200
        one.close()
    finally:
        one.kill()
