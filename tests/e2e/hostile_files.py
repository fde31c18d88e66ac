# SPDX-License-Identifier: MIT
"""Files that mean ill: configs and traces that no program should choke on. Run as a script, it writes them into the
corpora of the fuzz targets."""

import pathlib

MINIMAL = b"""\
providers: [{ name: p, baseUrl: "http://h", limits: [{ name: l, kind: rate, rate: 10/s }] }]
accounts: [{ name: a, provider: p }]
"""
CONFIG = (
    b'{"op":"config","startedAt":0,"providers":[{"name":"p","limits":[{"name":"r","kind":"rate","rate":"1/s"}]}],'
    b'"accounts":[{"name":"a","provider":"p"}]}\n'
)
CORPUS_MAX = 4000


def with_provider(text):
    return b'providers: [{ name: p, baseUrl: "http://h", ' + text + b" }]\naccounts: [{ name: a, provider: p }]\n"


def with_limit(text):
    return with_provider(b"limits: [{ name: l, " + text + b" }]")


BAD_CONFIGS = {
    "empty": b"",
    "blank": b" \n\n# nothing\n",
    "nul": MINIMAL + b"\0",
    "nul-bytes": bytes(1000),
    "not-utf-8": MINIMAL + b"tenants: { \xff\xfe: 1 }\n",
    "overlong-utf-8": MINIMAL + b"tenants: { \xc0\xaf: 1 }\n",
    "surrogate": MINIMAL + b"tenants: { \xed\xa0\x80: 1 }\n",
    "utf-16": MINIMAL.decode().encode("utf-16"),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(57),
    "scalar": b"hello\n",
    "list": b"[1, 2]\n",
    "two-documents": MINIMAL + b"---\n" + MINIMAL,
    "tab": b"providers:\n\t- name: p\n",
    "unclosed": b"providers: [{ name: p\n",
    "deep-flow": b"providers: " + b"[" * 2000 + b"\n",
    "deep-maps": b"{a: " * 1500 + b"\n",
    "deep-block": b"".join(b" " * i + b"-\n" for i in range(300)),
    "anchor-to-itself": b"providers: &x [*x]\n",
    "anchors-that-multiply": b"a: &a [x, x]\n"
    + b"".join(b"%c: &%c [*%c, *%c]\n" % (98 + i, 98 + i, 97 + i, 97 + i) for i in range(24)),
    "anchor-unknown": b"providers: *nobody\n",
    "merge-key": with_provider(b"<<: { baseUrl: x }"),
    "tag": b"providers: !!python/object/apply:os.system ['true']\n",
    "key-is-a-map": b"? { a: b }\n: c\n" + MINIMAL,
    "key-twice": MINIMAL + MINIMAL,
    "huge-key": b"x" * 100000 + b": 1\n" + MINIMAL,
    "huge-value": with_provider(b"limmits: " + b"x" * 100000),
    "many-faults": b"".join(b"k%d: 1\n" % i for i in range(5000)) + MINIMAL,
    "rate-negative": with_limit(b"kind: rate, rate: -1/s"),
    "rate-zero": with_limit(b"kind: rate, rate: 0/s"),
    "rate-nan": with_limit(b"kind: rate, rate: .nan"),
    "rate-infinite": with_limit(b"kind: rate, rate: .inf/s"),
    "rate-huge": with_limit(b"kind: rate, rate: 99999999999999999999/s"),
    "rate-per-nothing": with_limit(b"kind: rate, rate: 1/0s"),
    "max-octal": with_limit(b"kind: concurrency, max: 0o17"),
    "max-hex": with_limit(b"kind: concurrency, max: 0x10"),
    "max-float": with_limit(b"kind: concurrency, max: 1e3000"),
    "max-null": with_limit(b"kind: concurrency, max: ~"),
    "max-list": with_limit(b"kind: concurrency, max: [1]"),
    "window-negative": with_limit(b"kind: quota, max: 1, window: { rolling: -1s }"),
    "window-endless": with_limit(b"kind: quota, max: 1, window: { rolling: 99999999999d }"),
    "zone-path": with_limit(b"kind: quota, max: 1, window: { period: day, timezone: ../../etc/passwd }"),
    "zone-absolute": with_limit(b"kind: quota, max: 1, window: { period: day, timezone: /dev/zero }"),
    "zone-empty": with_limit(b'kind: quota, max: 1, window: { period: day, timezone: "" }'),
    "url-userinfo": b'providers: [{ name: p, baseUrl: "http://u:p@h" }]\naccounts: [{ name: a, provider: p }]\n',
    "url-crlf": b'providers: [{ name: p, baseUrl: "http://h/\\r\\nX: y" }]\naccounts: [{ name: a, provider: p }]\n',
    "url-fragment": b'providers: [{ name: p, baseUrl: "http://h/#x" }]\naccounts: [{ name: a, provider: p }]\n',
    "url-file": b'providers: [{ name: p, baseUrl: "file:///etc/passwd" }]\naccounts: [{ name: a, provider: p }]\n',
    "url-port": b'providers: [{ name: p, baseUrl: "http://h:99999" }]\naccounts: [{ name: a, provider: p }]\n',
    "credential-crlf": MINIMAL.replace(
        b"provider: p }", b'provider: p, credential: { header: X, value: "a\\r\\nY: b" } }'
    ),
    "credential-host": MINIMAL.replace(b"provider: p }", b"provider: p, credential: { header: Host, value: x } }"),
    "credential-length": MINIMAL.replace(
        b"provider: p }", b"provider: p, credential: { header: Content-Length, value: x } }"
    ),
    "credential-no-token": MINIMAL.replace(
        b"provider: p }", b'provider: p, credential: { header: "X Y", value: x } }'
    ),
    "variable-unset": MINIMAL + b"settings: { token: '${NO_SUCH_VARIABLE_HERE}' }\n",
    "variable-unclosed": MINIMAL + b"settings: { token: '${' }\n",
}

BAD_TRACES = {
    "nul": CONFIG + b'{"at":0,"op":"stats"}\0\n',
    "nul-bytes": bytes(1000),
    "not-utf-8": CONFIG + b'{"at":0,"op":"acquire","id":"a","account":"\xff"}\n',
    "lone-surrogate": CONFIG + b'{"at":0,"op":"acquire","id":"a","account":"\\ud800"}\n',
    "no-config": b'{"at":0,"op":"acquire","id":"a","account":"a"}\n',
    "config-twice": CONFIG + CONFIG,
    "config-null": b'{"op":"config","startedAt":0,"providers":null}\n',
    "not-an-object": CONFIG + b"[1]\n",
    "cut": CONFIG + b'{"at":0,"op":"acqu',
    "two-on-a-line": CONFIG + b'{"at":0,"op":"stats"}{"at":1,"op":"stats"}\n',
    "comma-behind": CONFIG + b'{"at":0,"op":"stats",}\n',
    "deep": CONFIG + b"[" * 100000 + b"\n",
    "deep-objects": CONFIG + b'{"a":' * 5000 + b"\n",
    "key-twice": CONFIG + b'{"at":0,"at":1,"op":"stats"}\n',
    "unknown-op": CONFIG + b'{"at":0,"op":"explode"}\n',
    "unknown-key": CONFIG + b'{"at":0,"op":"stats","why":1}\n',
    "no-time": CONFIG + b'{"op":"stats"}\n',
    "time-text": CONFIG + b'{"at":"0","op":"stats"}\n',
    "time-nan": CONFIG + b'{"at":NaN,"op":"stats"}\n',
    "time-huge": CONFIG + b'{"at":1e400,"op":"stats"}\n',
    "time-far": CONFIG + b'{"at":99999999999999999999,"op":"stats"}\n',
    "time-too-fine": CONFIG + b'{"at":0.00000001,"op":"stats"}\n',
    "number-plus": CONFIG + b'{"at":+1,"op":"stats"}\n',
    "number-octal": CONFIG + b'{"at":01,"op":"stats"}\n',
    "number-hex": CONFIG + b'{"at":0x1,"op":"stats"}\n',
    "number-long": CONFIG + b'{"at":' + b"1" * 100000 + b',"op":"stats"}\n',
    "cost-negative": CONFIG + b'{"at":0,"op":"acquire","id":"a","account":"a","cost":-1}\n',
    "wait-negative": CONFIG + b'{"at":0,"op":"acquire","id":"a","account":"a","wait":-1}\n',
    "id-number": CONFIG + b'{"at":0,"op":"acquire","id":1,"account":"a"}\n',
    "id-missing": CONFIG + b'{"at":0,"op":"acquire","account":"a"}\n',
    "id-huge": CONFIG + b'{"at":0,"op":"acquire","id":"' + b"x" * 1000000 + b'","account":7}\n',
    "release-of-nobody": CONFIG + b'{"at":0,"op":"release","id":"nobody","outcome":"banana"}\n',
    "status-text": CONFIG + b'{"at":0,"op":"observe","id":"a","status":"200"}\n',
    "status-odd": CONFIG + b'{"at":0,"op":"observe","id":"a","status":99999999999}\n',
    "headers-list": CONFIG + b'{"at":0,"op":"observe","id":"a","status":200,"headers":[1]}\n',
    "escape-bad": CONFIG + b'{"at":0,"op":"acquire","id":"\\x41","account":"a"}\n',
    "control-in-text": CONFIG + b'{"at":0,"op":"acquire","id":"a\tb","account":"a"}\n',
    "line-separator": CONFIG + b'{"at":0,\x0c"op":"stats"}\n',
}


def write_corpus():
    """The first byte of a config says whether it is a recording's."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus"
    for name, data in BAD_CONFIGS.items():
        if len(data) <= CORPUS_MAX:
            (folder / "config" / f"bad-{name}").write_bytes(b"0" + data)
    for name, data in BAD_TRACES.items():
        if len(data) <= CORPUS_MAX:
            (folder / "trace" / f"bad-{name}").write_bytes(data)


if __name__ == "__main__":
    write_corpus()
