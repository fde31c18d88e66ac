# SPDX-License-Identifier: MIT
"""A client of the decision API that believes nothing: every answer is held against openapi.yaml."""

import functools
import json
import random
import re
import socket

import jsonschema
import yaml

from house import DEADLINE, ROOT, Client, until

BODY_MAX = 65536


class NoTwins(yaml.SafeLoader):
    """Of two equal keys YAML's own loader takes the last, so a schema could be lost without a word."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        twins = {key for key in keys if keys.count(key) > 1}
        assert not twins, f"{twins}, twice at{node.start_mark}"
        return super().construct_mapping(node, deep)


@functools.cache
def document():
    return yaml.load((ROOT / "openapi.yaml").read_text(), NoTwins)


def validator_of(schema):
    """Of a schema that refers to the document as if it stood in it."""
    return jsonschema.Draft202012Validator({**schema, "components": document()["components"],
                                            "paths": document()["paths"]})


@functools.cache
def validator(pointer):
    """Of the schema at a JSON pointer of the document."""
    return validator_of({"$ref": f"#{pointer}"})


def pointer(*parts):
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
                   for part in parts)


def operations():
    """(method, path template, operation) of all there are."""
    return [(method.upper(), path, operation) for path, item in document()["paths"].items()
            for method, operation in item.items()]


def operation_of(method, target):
    """The operation that a request is, or its path's only one where the method is wrong."""
    path = target.partition("?")[0]
    for known, template, operation in operations():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return known, template, operation
    raise AssertionError(f"{method} {target} is not in openapi.yaml")


def is_valid(name, body):
    return validator(pointer("components", "schemas", name)).is_valid(body)


def check(method, target, answer):
    """Status, fields and body are such as the document says. Returns what was seen."""
    known, template, operation = operation_of(method, target)
    status = str(answer.status)
    assert status in operation["responses"], (operation["operationId"], status, answer.body)
    response, at = operation["responses"][status], ("paths", template, known.lower(), "responses", status)
    if "$ref" in response:
        at = tuple(response["$ref"].removeprefix("#/").split("/"))
        response = document()["components"]["responses"][at[-1]]
    (kind,) = response["content"]
    assert answer["Content-Type"] == kind, (target, answer.fields)
    assert answer["Cache-Control"] == "no-store"
    if method != "HEAD":
        validator(pointer(*at, "content", kind, "schema")).validate(answer.json())
    if kind == "application/problem+json" and method != "HEAD":
        assert answer.json()["status"] == answer.status
    for name, header in response.get("headers", {}).items():
        if header.get("required"):
            assert answer[name] is not None, (name, answer.fields)
        if answer[name] is not None and "$ref" not in header["schema"]:
            jsonschema.Draft202012Validator(header["schema"]).validate(answer[name])
    return operation["operationId"], status


class UnixClient(Client):
    def __init__(self, path, deadline=DEADLINE):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(deadline)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")


class Api:
    """The API of a gateway, over whatever its control port is."""

    def __init__(self, gateway, token=None):
        self.gateway = gateway
        self.fields = {"Authorization": f"Bearer {token}"} if token else {}
        self.seen = set()

    def client(self):
        if self.gateway.control_port is None:
            return UnixClient(self.gateway.control_address.removeprefix("unix:"))
        client = Client(self.gateway.control_port)
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def ask(self, client, target, body, fields=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return client.ask("POST", target, {"Content-Type": "application/json", **self.fields, **dict(fields)}, data)

    def checked(self, method, target, answer):
        self.seen.add(check(method, target, answer))
        return answer

    def post(self, name, body, fields=(), client=None):
        target = f"/v1/{name}"
        if client is not None:
            return self.checked("POST", target, self.ask(client, target, body, fields).answer())
        with self.client() as client:
            return self.checked("POST", target, self.ask(client, target, body, fields).answer())

    def get(self, page, fields=()):
        return self.call("GET", f"/v1/{page}", fields)

    def call(self, method, target, fields=(), body=None):
        with self.client() as client:
            answer = client.call(method, target, {**self.fields, **dict(fields)}, body)
            return self.checked(method, target, answer)

    def granted(self, body, fields=(), client=None):
        """The name of a lease, which must be granted."""
        answer = self.post("acquire", body, fields, client)
        assert answer.status == 200, answer.body
        return answer.json()["lease"]

    def release(self, lease, **more):
        answer = self.post("release", {"lease": lease, **more})
        assert answer.json() == {"result": "released"}, answer.body

    def until(self, page, holds, what):
        """The list of a page, once it is such."""

        def look():
            rows = self.get(page).json()[page]
            return [rows] if holds(rows) else None

        return until(look, what)[0]


# ---- bodies by chance


class Bodies:
    """Bodies that a schema allows, and ones that it does not. The same seed gives the same ones."""

    def __init__(self, seed, texts=()):
        self.random = random.Random(seed)
        self.texts = list(texts)

    def resolve(self, schema):
        """The schema with what it refers to in it."""
        if "$ref" in schema:
            more = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            more = self.resolve(more)
            properties = {**more.get("properties", {}), **schema.get("properties", {})}
            merged = {**more, **{key: value for key, value in schema.items() if key != "$ref"}}
            return {**merged, "properties": properties} if properties else merged
        return schema

    def text(self):
        kinds = [
            lambda: self.random.choice(self.texts or ["x"]),
            lambda: "".join(chr(self.random.randrange(32, 127)) for _ in range(self.random.randrange(20))),
            lambda: "".join(self.random.choice("é\u2028😀\0\n\"\\/%") for _ in range(self.random.randrange(6))),
        ]
        return self.random.choice(kinds)()

    def number(self, schema):
        low, high = schema.get("minimum", 0), schema.get("maximum", 1000)
        some = [low, high, low + 1, self.random.randrange(1000) + low, round(self.random.random() + 0.001, 3)]
        return min(high, max(low, self.random.choice(some)))

    def value(self, schema):
        schema = self.resolve(schema)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if "anyOf" in schema:
            return self.value(self.random.choice(schema["anyOf"]))
        kind = schema["type"]
        if kind == "string":
            return self.text() or "x"
        if kind == "number":
            return self.number(schema)
        if kind == "integer":
            return self.random.randrange(schema["minimum"], schema["maximum"] + 1)
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "null":
            return None
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(self.random.randrange(4))]
        if "properties" not in schema:
            return {self.text(): self.value(schema["additionalProperties"]) for _ in range(self.random.randrange(4))}
        needed = schema.get("required", [])
        return {name: self.value(member) for name, member in schema["properties"].items()
                if name in needed or self.random.random() < 0.3}

    def good(self, name):
        return self.value({"$ref": f"#/components/schemas/{name}"})

    def bad(self, name):
        """A body, as bytes, with one thing wrong in it, and the member that it is wrong in (None: in none)."""
        schema = self.resolve({"$ref": f"#/components/schemas/{name}"})
        body = self.good(name)
        member = self.random.choice(list(schema["properties"]))
        wrong = [{}, [], "", True, None, -1, -0.001, 1e300, 10**30, 0.0000001, 1000, "urgent", [1], {"a": 1},
                 {"a": [1]}]
        wrong = [value for value in wrong if not self.allows(schema["properties"][member], value)]
        text = json.dumps(body)
        ways = [
            lambda: (json.dumps({**body, member: self.random.choice(wrong)}), member),
            lambda: (json.dumps({**body, "unheard-of": 1}), "unheard-of"),
            lambda: (self.twice({**body, member: self.value(schema["properties"][member])}, member), member),
            lambda: (text[:-1], None),
            lambda: (text + "x", None),
            lambda: (f"[{text}]", None),
            lambda: (json.dumps({**body, "cost": 0}).replace('"cost": 0', '"cost": NaN'), None),
            lambda: (json.dumps({**body, "cost": 0}).replace('"cost": 0', '"cost": 01'), None),
            lambda: (json.dumps({**body, "lease": "L"}).replace('"L"', '"\\ud800"'), None),
            lambda: ("", None),
        ]
        if "required" in schema:
            lost = self.random.choice(schema["required"])
            ways.append(lambda: (json.dumps({k: v for k, v in body.items() if k != lost}), lost))
        made, at = self.random.choice(ways)()
        data = made.encode()
        if self.random.random() < 0.1:
            data, at = data + b"\xff", None
        return data, at

    def twice(self, body, member):
        return json.dumps(body)[:-1] + f", {json.dumps(member)}: {json.dumps(body[member])}}}"

    def allows(self, schema, value):
        """Also what a schema cannot say: how many decimal places count."""
        if isinstance(value, float) and value == 0.0000001:
            return False
        return validator_of(schema).is_valid(value)
