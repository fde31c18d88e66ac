# SPDX-License-Identifier: MIT
"""Responses of a provider that is broken, or means ill: what the client may get of them.

Each shape names its source as in `smuggling`. `want` is `BROKEN` (502, in words), `CUT` (what came of the body, and an
end that does not look complete), or the body of a complete answer. `kept` says whether the connection may carry another
call. Run as a script, it writes the corpus of the fuzz target from the same bytes.
"""

import dataclasses
import pathlib

BROKEN, CUT = "broken", "cut"
HEAD_MAX, FIELDS_MAX, INTERIMS_MAX, TRAILERS_MAX = 65536, 256, 64, 16384
CORPUS_MAX = 20000


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    source: str
    data: bytes
    want: object
    kept: bool = False
    closes: bool = False
    method: str = "GET"
    # Comes a moment after `data`, in a segment of its own.
    later: bytes = b""


def head(*fields, line=b"HTTP/1.1 200 OK"):
    return b"".join(part + b"\r\n" for part in (line, *fields)) + b"\r\n"


def length(count):
    return b"Content-Length: %d" % count


CHUNKED = b"Transfer-Encoding: chunked"
POISON = head(length(6)) + b"poison"
OK = head(length(2)) + b"ok"
TWO_CHUNKS = head(CHUNKED) + b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n"


def broken(name, source, data, **more):
    return Shape(name, source, data, BROKEN, **more)


def cut(name, source, data, **more):
    return Shape(name, source, data, CUT, **more)


def framings():
    both = "RFC 9112 6.3: both fields are response splitting"
    yield broken("cl-te", both, head(length(2), CHUNKED) + b"2\r\nok\r\n0\r\n\r\n")
    yield broken("te-cl", both, head(CHUNKED, length(2)) + b"2\r\nok\r\n0\r\n\r\n")
    yield broken("cl-twice", "RFC 9112 6.3: 502", head(length(2), length(2)) + b"ok")
    yield broken("cl-twice-other", "RFC 9112 6.3: 502", head(length(2), length(3)) + b"ok")
    for name, value in (
        ("plus", b"+2"),
        ("minus", b"-2"),
        ("list", b"2, 2"),
        ("hex", b"0x2"),
        ("empty", b""),
        ("fraction", b"2.0"),
        ("2-63", b"9223372036854775808"),
        ("2-64", b"18446744073709551618"),
    ):
        yield broken(f"cl-{name}", "RFC 9110 8.6: 1*DIGIT", head(b"Content-Length: " + value) + b"ok")
    for name, value in (
        ("xchunked", b"xchunked"),
        ("gzip", b"gzip"),
        ("chunked-identity", b"chunked, identity"),
        ("identity", b"identity"),
        ("quoted", b'"chunked"'),
        ("vertical-tab", b"\x0bchunked"),
    ):
        yield broken(f"te-{name}", "RFC 9112 6.1", head(b"Transfer-Encoding: " + value) + b"2\r\nok\r\n0\r\n\r\n")
    yield broken("te-twice", "CVE-2020-8287", head(CHUNKED, CHUNKED) + b"2\r\nok\r\n0\r\n\r\n")
    old = head(CHUNKED, line=b"HTTP/1.0 200 OK") + b"2\r\nok\r\n0\r\n\r\n"
    yield broken("te-http-1.0", "RFC 9112 6.1", old)
    zeros = head(b"Content-Length: \t0000000002\t") + b"ok"
    yield Shape("cl-zeros", "RFC 9110 8.6", zeros, b"ok", kept=True)


def heads():
    line = "RFC 9112 4: status-line"
    for name, text in (
        ("version-missing", b"200 OK"),
        ("version-2", b"HTTP/2 200 OK"),
        ("version-2.0", b"HTTP/2.0 200 OK"),
        ("version-small", b"http/1.1 200 OK"),
        ("icy", b"ICY 200 OK"),
        ("two-spaces", b"HTTP/1.1  200 OK"),
        ("tab", b"HTTP/1.1\t200 OK"),
        ("two-digits", b"HTTP/1.1 20 OK"),
        ("four-digits", b"HTTP/1.1 2000 OK"),
        ("letters", b"HTTP/1.1 abc OK"),
        ("minus", b"HTTP/1.1 -20 OK"),
        ("000", b"HTTP/1.1 000 OK"),
        ("600", b"HTTP/1.1 600 OK"),
        ("999", b"HTTP/1.1 999 OK"),
        ("reason-nul", b"HTTP/1.1 200 O\0K"),
        ("reason-cr", b"HTTP/1.1 200 O\rK"),
        ("reason-escape", b"HTTP/1.1 200 \x1b[2J"),
        ("space-first", b" HTTP/1.1 200 OK"),
        ("empty-line", b"\r\nHTTP/1.1 200 OK"),
        ("request", b"GET /x HTTP/1.1"),
    ):
        yield broken(f"line-{name}", line, head(length(2), line=text) + b"ok")
    yield broken("ssh", "another protocol", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    yield broken("smtp", "another protocol", b"220 mail.example ESMTP\r\n")
    yield broken("tls-alert", "another protocol", bytes.fromhex("15030300020228"))
    yield broken("http-2-settings", "another protocol", bytes.fromhex("000012040000000000000300000064"))
    yield broken("html", "HTTP/0.9", b"<html>hello</html>", closes=True)
    for name, field in (
        ("bare-cr", b"X: a\rSet-Cookie: b"),
        ("bare-lf", b"X: a\nSet-Cookie: b"),
        ("nul", b"X: a\0b"),
        ("control", b"X: a\x01b"),
        ("delete", b"X: a\x7fb"),
        ("fold", b"X: a\r\n b"),
        ("fold-length", b"X: a\r\n Content-Length: 3"),
        ("name-empty", b": x"),
        ("name-space", b"Content-Length : 2"),
        ("name-latin", b"\xe4: x"),
        ("no-colon", b"HTTP/1.1 200 OK"),
    ):
        yield broken(f"field-{name}", "RFC 9112 5: a field line", head(field, length(2)) + b"ok")
    yield broken("lf-all", "RFC 9112 2.2", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok")
    yield broken("lf-ends", "RFC 9112 2.2", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok")
    large = "RFC 6585 5: too large"
    yield broken("huge-field", large, head(b"X: " + b"x" * HEAD_MAX, length(2)) + b"ok")
    yield broken("huge-line", large, head(length(2), line=b"HTTP/1.1 200 " + b"x" * HEAD_MAX) + b"ok")
    yield broken("many-fields", large, head(*[b"X: 1"] * (FIELDS_MAX + 1)) + b"ok")
    yield broken("endless-head", large, b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * HEAD_MAX)
    yield Shape("obs-text", "RFC 9110 5.5: opaque", head(b"X: \xff\xfe", length(2)) + b"ok", b"ok", kept=True)
    spoofed = head(b"Ration-Request-Id: forged", b"Ration-Waited: 9", b"Connection: X-Hop", b"X-Hop: 1", length(2))
    yield Shape("spoofed-fields", "what ration says of itself", spoofed + b"ok", b"ok", kept=True)


def chunks():
    size = "RFC 9112 7.1: chunk"
    for name, body in (
        ("size-0x", b"0x2\r\nok\r\n0\r\n\r\n"),
        ("size-minus", b"-2\r\nok\r\n0\r\n\r\n"),
        ("size-plus", b"+2\r\nok\r\n0\r\n\r\n"),
        ("size-empty", b"\r\nok\r\n0\r\n\r\n"),
        ("size-2-64", b"10000000000000002\r\nok\r\n0\r\n\r\n"),
        ("size-space", b"2 \r\nok\r\n0\r\n\r\n"),
        ("size-lf", b"2\nok\r\n0\r\n\r\n"),
        ("size-cr", b"2\rok\r\n0\r\n\r\n"),
        ("end-missing", b"2\r\nok0\r\n\r\n"),
        ("end-lf", b"2\r\nok\n0\r\n\r\n"),
        ("end-two-bytes", b"2\r\nokXX0\r\n\r\n"),
        ("extension-lf", b"2;\nx\r\nok\r\n0\r\n\r\n"),
        ("extension-huge", b"2;a=" + b"x" * 8192 + b"\r\nok\r\n0\r\n\r\n"),
        ("trailer-cl", b"2\r\nok\r\n0\r\nContent-Length: 9\r\n\r\n"),
        ("trailer-te", b"2\r\nok\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("trailer-fold", b"2\r\nok\r\n0\r\nX: a\r\n b\r\n\r\n"),
        ("trailer-cr", b"2\r\nok\r\n0\r\nX: a\rb\r\n\r\n"),
        ("trailer-huge", b"2\r\nok\r\n0\r\nX: " + b"x" * TRAILERS_MAX + b"\r\n\r\n"),
    ):
        yield cut(f"chunk-{name}", size, head(CHUNKED) + body)
    for name, body in (
        ("no-last", b"2\r\nok\r\n"),
        ("amid-a-chunk", b"5\r\nok"),
        ("no-empty-line", b"2\r\nok\r\n0\r\n"),
        ("amid-a-trailer", b"2\r\nok\r\n0\r\nX: 1\r\n"),
    ):
        yield cut(f"closed-{name}", "RFC 9112 8: incomplete messages", head(CHUNKED) + body, closes=True)
    trailed = head(CHUNKED) + b"2\r\nok\r\n0\r\nHost: evil\r\nSet-Cookie: a=b\r\nX-Sum: 1\r\n\r\n"
    yield Shape("trailer-of-head", "RFC 9110 6.5.1", trailed, b"ok", kept=True)


def ends():
    short = "RFC 9112 8: fewer bytes than told"
    yield cut("body-short", short, head(length(5)) + b"ok", closes=True)
    yield cut("body-none", short, head(length(5)), closes=True)
    yield broken("head-short", short, b"HTTP/1.1 200 OK\r\nContent-Len", closes=True)
    close = "RFC 9112 6.3: until the connection closes"
    yield Shape("until-close", close, head() + b"ok", b"ok", closes=True)
    old = head(b"Connection: keep-alive", line=b"HTTP/1.0 200 OK") + b"ok"
    yield Shape("http-1.0-without-length", close, old, b"ok", closes=True)
    kept = head(b"Connection: keep-alive", length(2), line=b"HTTP/1.0 200 OK") + b"ok"
    yield Shape("http-1.0-kept", "RFC 9112 9.3", kept, b"ok", kept=True)
    both = head(b"Connection: keep-alive, close", length(2), line=b"HTTP/1.0 200 OK") + b"ok"
    yield Shape("http-1.0-kept-and-closed", "RFC 9112 9.3: close wins", both, b"ok")
    yield Shape("says-close", "RFC 9112 9.6", head(b"Connection: close", length(2)) + b"ok", b"ok")
    surplus = "RFC 9112 6.3: surplus bytes are no answer"
    yield Shape("surplus-answer", surplus, OK + POISON, b"ok")
    yield Shape("surplus-answer-later", surplus, OK, b"ok", later=POISON)
    yield Shape("surplus-byte", surplus, OK + b"x", b"ok")
    yield Shape("surplus-crlf", surplus, OK + b"\r\n", b"ok")
    yield Shape("surplus-behind-chunks", surplus, TWO_CHUNKS + POISON, b"ok")
    yield Shape("surplus-interim", surplus, OK + head(line=b"HTTP/1.1 100 Continue"), b"ok")
    bodiless = "RFC 9112 6.3: no body, whatever the fields say"
    told = length(len(POISON))
    for name, fields, body in (("length", [told], POISON), ("chunks", [CHUNKED], b"2\r\nok\r\n0\r\n\r\n")):
        yield Shape(f"204-{name}", bodiless, head(*fields, line=b"HTTP/1.1 204 No") + body, b"")
        yield Shape(f"304-{name}", bodiless, head(*fields, line=b"HTTP/1.1 304 No") + body, b"")
        yield Shape(f"head-{name}", bodiless, head(*fields) + body, b"", method="HEAD")
    yield Shape("head-body-later", bodiless, head(told), b"", method="HEAD", later=POISON)


def interims():
    interim = head(line=b"HTTP/1.1 103 Early Hints")
    flood = "RFC 9110 15.2: any number of them"
    yield Shape("interims", flood, interim * INTERIMS_MAX + OK, b"ok", kept=True)
    yield broken("interim-flood", flood, interim * 100000)
    yield broken("interims-alone", flood, interim, closes=True)
    with_body = head(length(2), line=b"HTTP/1.1 103 Early Hints") + OK
    yield Shape("interim-with-length", "RFC 9110 15.2: no body", with_body, b"ok", kept=True)
    switch = head(b"Upgrade: websocket", b"Connection: upgrade", line=b"HTTP/1.1 101 Switching Protocols")
    yield broken("switch-unasked", "RFC 9110 15.2.2", switch + POISON)
    yield broken("switch-after-interim", "RFC 9110 15.2.2", interim + switch + POISON)
    yield broken("interim-huge", flood, head(b"X: " + b"x" * HEAD_MAX, line=b"HTTP/1.1 103 Early Hints") + OK)


SHAPES = [shape for group in (framings, heads, chunks, ends, interims) for shape in group()]


def write_corpus():
    """The first byte says for whom the bytes are and how they are cut: an answer (to HEAD), in parts of 17."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus/http1"
    for shape in SHAPES:
        if len(shape.data) <= CORPUS_MAX:
            first = b"\x43" if shape.method == "HEAD" else b"\x41"
            (folder / f"response-{shape.name}").write_bytes(first + shape.data + shape.later)


if __name__ == "__main__":
    write_corpus()
