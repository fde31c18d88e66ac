# SPDX-License-Identifier: MIT
"""Requests that two servers might read differently: what the gateway must answer, and what may reach the provider.

Each shape names its source: a section of RFC 9112 or 9110, a CVE, or an issue of a public project. `answers` are the
statuses of all responses on the connection, `closes` whether it ends after them, and `sent` what the provider gets of
it, as (method, target, body). Run as a script, it writes the corpus of the fuzz target from the same bytes.
"""

import dataclasses
import pathlib

HEAD_MAX, FIELDS_MAX, TRAILERS_MAX, CHUNK_HEAD_MAX = 65536, 256, 16384, 4096
CORPUS_MAX = 20000


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    source: str
    data: bytes
    answers: tuple
    sent: tuple = ()
    closes: bool = True
    # The provider may have got the beginning of a request, never its end.
    begun: bool = False
    # The bytes go out one by one, or the client says that it will send no more.
    slowly: bool = False
    half_closed: bool = False


def head(line, *fields, host=b"Host: g"):
    lines = [line, *([host] if host is not None else []), *fields]
    return b"".join(part + b"\r\n" for part in lines) + b"\r\n"


def post(*fields, body=b"", target=b"/a/x"):
    return head(b"POST " + target + b" HTTP/1.1", *fields) + body


def get(target=b"/a/x", *fields, host=b"Host: g"):
    return head(b"GET " + target + b" HTTP/1.1", *fields, host=host)


CHUNKED = b"Transfer-Encoding: chunked"
SMUGGLED = get(b"/a/smuggled")
LAST = b"0\r\n\r\n"
WRAPPED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)


def length(value):
    return b"Content-Length: %d" % (len(value) if isinstance(value, bytes) else value)


def refused(name, source, data, status=400, **more):
    return Shape(name, source, data, (status,), **more)


def passed(name, source, data, *sent, closes=False, **more):
    return Shape(name, source, data, (200,) * len(sent), sent, closes, **more)


def two_framings():
    both = "RFC 9112 6.1, 6.3: both fields are a smuggling attempt"
    body = b"0\r\n\r\n" + SMUGGLED
    yield refused("cl-te", both, post(length(body), CHUNKED, body=body))
    yield refused("te-cl", both, post(CHUNKED, length(4), body=WRAPPED))
    yield refused("cl-te-get", both, get(b"/a/x", length(body), CHUNKED) + body)
    yield refused("cl-0-te", both, post(length(0), CHUNKED, body=WRAPPED))
    yield refused("te-cl-mixed-case", both, post(b"tRANSFER-eNCODING: CHUNKED", b"cONTENT-lENGTH: 4", body=WRAPPED))


def codings():
    last = "RFC 9112 6.3: chunked is not the final coding"
    unknown = "RFC 9112 6.1: a coding that is not understood"
    for name, value, source, status in (
        ("te-xchunked", b"xchunked", last, 400),
        ("te-chunkedx", b"chunkedx", last, 400),
        ("te-chunked-identity", b"chunked, identity", last, 400),
        ("te-identity-chunked", b"identity, chunked", unknown, 501),
        ("te-gzip-chunked", b"gzip, chunked", unknown, 501),
        ("te-chunked-chunked", b"chunked, chunked", "RFC 9112 6.1: chunked once at most", 501),
        ("te-identity", b"identity", last, 400),
        ("te-empty", b"", last, 400),
        ("te-comma", b"chunked,", "RFC 9110 5.6.1: empty list members", 400),
        ("te-comma-first", b",chunked", "RFC 9110 5.6.1: empty list members", 501),
        ("te-quoted", b'"chunked"', "CVE-2022-32213: malformed Transfer-Encoding", 400),
        ("te-single-quoted", b"'chunked'", "CVE-2022-32213: malformed Transfer-Encoding", 400),
        ("te-params", b"chunked;q=1", "RFC 9112 7.1: chunked has no parameters", 400),
        ("te-vertical-tab", b"\x0bchunked", "RFC 9110 5.5: field values hold no control characters", 400),
        ("te-form-feed", b"chunked\x0c", "RFC 9110 5.5: field values hold no control characters", 400),
        ("te-nul", b"chunked\0", "RFC 9110 5.5: NUL in a field value", 400),
        ("te-inner-space", b"chun ked", last, 400),
        ("te-latin", b"chunked\xa0", last, 400),
    ):
        yield refused(name, source, post(b"Transfer-Encoding: " + value, body=WRAPPED), status)
        if name in ("te-xchunked", "te-chunked-identity", "te-vertical-tab", "te-empty"):
            framed = post(b"Transfer-Encoding: " + value, length(4), body=WRAPPED)
            yield refused(name + "-cl", "RFC 9112 6.1: and a length beside it", framed)
    yield refused("te-twice", "CVE-2020-8287: two Transfer-Encoding fields", post(CHUNKED, CHUNKED, body=WRAPPED))
    yield refused("te-twice-other", "CVE-2020-8287", post(CHUNKED, b"Transfer-encoding: cow", body=WRAPPED))
    yield refused("te-other-twice", "CVE-2020-8287", post(b"Transfer-Encoding: identity", CHUNKED, body=WRAPPED))
    old = head(b"POST /a/x HTTP/1.0", CHUNKED) + WRAPPED
    yield refused("te-http-1.0", "RFC 9112 6.1: Transfer-Encoding in HTTP/1.0 is faulty framing", old)
    kept = head(b"POST /a/x HTTP/1.0", b"Connection: keep-alive", CHUNKED) + WRAPPED
    yield refused("te-http-1.0-kept", "RFC 9112 6.1", kept)
    sent = ("POST", "/x", SMUGGLED)
    mixed = post(b"Transfer-Encoding: ChUnKeD", body=WRAPPED)
    yield passed("te-mixed-case", "RFC 9112 7: names of codings are case-insensitive", mixed, sent)
    tab = post(b"Transfer-Encoding:\tchunked", body=WRAPPED)
    yield passed("te-tab", "RFC 9110 5.5: white space around a value", tab, sent)
    spaced = post(b"Transfer-Encoding:   chunked \t ", body=WRAPPED)
    yield passed("te-spaces", "RFC 9110 5.5: white space around a value", spaced, sent)
    yield passed("te-no-space", "RFC 9112 5: none needed", post(b"Transfer-Encoding:chunked", body=WRAPPED), sent)
    alike = post(b"Transfer_Encoding: chunked", length(4), body=b"0\r\n\r")
    yield passed("te-underscore", "RFC 9110 5.1: another name", alike, ("POST", "/x", b"0\r\n\r"))


def names():
    space = "RFC 9112 5.1: no white space before the colon"
    yield refused("te-space-colon", "CVE-2019-16869", post(b"Transfer-Encoding : chunked", length(4), body=WRAPPED))
    yield refused("te-tab-colon", space, post(b"Transfer-Encoding\t: chunked", length(4), body=WRAPPED))
    yield refused("cl-space-colon", "CVE-2021-22959", post(b"Content-Length : 4", body=b"body"))
    yield refused("cl-space-before", "CVE-2024-27982", post(b"X: 1", b" Content-Length: 4", body=b"body"))
    yield refused("vertical-tab-before", "RFC 9112 5: a name is a token", post(b"\x0bContent-Length: 4", body=b"body"))
    yield refused("name-empty", "CVE-2023-25725", get(b"/a/x", b": x"))
    yield refused("name-empty-first", "CVE-2023-25725", get(b"/a/x", host=b":empty\r\nHost: g"))
    yield refused("no-colon", "CVE-2019-20444", get(b"/a/x", b"Transfer-Encoding chunked"))
    yield refused("no-colon-folded", "CVE-2019-20444", get(b"/a/x", b"Transfer-Encoding\r\n : chunked"))
    yield refused("name-nul", "RFC 9110 5.1", get(b"/a/x", b"X\0: 1"))
    yield refused("name-control", "RFC 9110 5.1", get(b"/a/x", b"X\x01Y: 1"))
    yield refused("name-space-inside", "RFC 9110 5.1", get(b"/a/x", b"Content Length: 4"))
    yield refused("name-latin", "RFC 9110 5.1", get(b"/a/x", b"Content-Length\xa0: 4"))
    yield refused("name-quoted", "RFC 9110 5.1", get(b"/a/x", b'"Content-Length": 4'))
    yield refused("name-bracket", "RFC 9110 5.1", get(b"/a/x", b"[Content-Length]: 4"))
    yield refused("value-nul", "RFC 9110 5.5", get(b"/a/x", b"X: a\0b"))
    yield refused("value-control", "RFC 9110 5.5", get(b"/a/x", b"X: a\x08b"))
    yield refused("value-delete", "RFC 9110 5.5", get(b"/a/x", b"X: a\x7fb"))
    latin = get(b"/a/x", b"X-Echo: \xe4\xff\x80")
    yield passed("value-obs-text", "RFC 9110 5.5: obs-text is opaque", latin, ("GET", "/x", b""))
    overflow = post(b"Content-Length0" + b"a" * 255 + b": ", length(len(SMUGGLED)), body=SMUGGLED)
    yield passed("name-270-bytes", "CVE-2021-40346: overflow of a name's length", overflow, ("POST", "/x", SMUGGLED))


def lengths():
    digits = "RFC 9110 8.6: 1*DIGIT"
    for name, value, source in (
        ("cl-plus", b"+4", "apple/servicetalk#1427: signed lengths"),
        ("cl-minus", b"-4", "apple/servicetalk#1427: signed lengths"),
        ("cl-minus-0", b"-0", digits),
        ("cl-list", b"4, 4", digits),
        ("cl-list-other", b"4, 5", digits),
        ("cl-list-empty", b"4,", digits),
        ("cl-hex", b"0x4", "CVE-2023-38697: lengths with 0x"),
        ("cl-underscore", b"1_0", digits),
        ("cl-inner-space", b"4 0", digits),
        ("cl-fraction", b"4.0", digits),
        ("cl-exponent", b"4e0", digits),
        ("cl-empty", b"", "CVE-2023-40225: empty Content-Length"),
        ("cl-semicolon", b"4;q=1", digits),
        ("cl-quoted", b'"4"', digits),
        ("cl-letters", b"four", digits),
        ("cl-arabic-digits", "\u0664".encode(), digits),
        ("cl-2-63", b"9223372036854775808", "RFC 9110 8.6: integer overflow"),
        ("cl-2-64", b"18446744073709551616", "RFC 9110 8.6: integer overflow"),
        ("cl-2-64-plus-4", b"18446744073709551620", "RFC 9110 8.6: integer overflow"),
        ("cl-huge", b"9" * 1000, "RFC 9110 8.6: integer overflow"),
    ):
        yield refused(name, source, post(b"Content-Length: " + value, body=b"body" + SMUGGLED))
    twice = "RFC 9110 8.6: several lengths"
    yield refused("cl-twice", twice, post(length(4), length(4), body=b"body"))
    yield refused("cl-twice-other", twice, post(length(4), length(0), body=b"body"))
    yield refused("cl-twice-empty", "CVE-2023-40225", post(b"Content-Length:", length(4), body=b"body"))
    sent = ("POST", "/x", b"body")
    yield passed("cl-zeros", digits, post(b"Content-Length: 0000000000000000000000004", body=b"body"), sent)
    yield passed("cl-white-space", "RFC 9110 5.5", post(b"Content-Length: \t 4 \t", body=b"body"), sent)
    body = length(len(SMUGGLED))
    for method in (b"GET", b"HEAD", b"DELETE", b"OPTIONS"):
        asked = head(method + b" /a/x HTTP/1.1", body) + SMUGGLED
        bodied = "RFC 9110 9.3: a body without a meaning is framed all the same"
        yield passed(f"body-on-{method.decode().lower()}", bodied, asked, (method.decode(), "/x", SMUGGLED))
    yield passed("chunked-get", "RFC 9110 9.3.1", get(b"/a/x", CHUNKED) + WRAPPED, ("GET", "/x", SMUGGLED))


def lines():
    bare = "RFC 9112 2.2: a bare CR is invalid"
    feed = "CVE-2022-32214: lines that do not end with CR LF"
    fold = "RFC 9112 5.2: obs-fold"
    yield refused("cr-in-value", bare, get(b"/a/x", b"X: a\rTransfer-Encoding: chunked"))
    yield refused("cr-before-name", bare, get(b"/a/x", b"\rX: a"))
    yield refused("cr-hides-te", "CVE-2023-30589", get(b"/a/x", b"X: \rx\r\n" + CHUNKED))
    yield refused("cr-at-end", bare, get(b"/a/x", b"X: a\r"))
    yield refused("cr-in-request-line", bare, b"GET /a/x HTTP/1.1\rHost: g\r\n\r\n")
    yield refused("cr-cr-lf", bare, b"GET /a/x HTTP/1.1\r\nHost: g\r\r\n\r\n")
    yield refused("cr-ends-the-head", bare, b"GET /a/x HTTP/1.1\r\nHost: g\r\n\r\r\n")
    yield refused("lf-request-line", feed, b"GET /a/x HTTP/1.1\nHost: g\r\n\r\n")
    yield refused("lf-field", feed, post(b"X: 1\n" + CHUNKED, body=WRAPPED))
    yield refused("lf-all", feed, b"GET /a/x HTTP/1.1\nHost: g\n\n")
    yield refused("lf-lf-ends-the-head", feed, b"GET /a/x HTTP/1.1\r\nHost: g\n\n" + SMUGGLED)
    yield refused("lf-ends-the-head", feed, b"GET /a/x HTTP/1.1\r\nHost: g\r\n\n" + SMUGGLED)
    yield refused("lf-before", feed, b"\n" + get())
    yield refused("fold-first", "RFC 9112 2.2: white space before the first field", get(host=b" Host: g\r\nHost: g"))
    yield refused("fold-middle", fold, get(b"/a/x", b"X: a\r\n b", b"Y: c"))
    yield refused("fold-last", fold, get(b"/a/x", b"X: a\r\n\tb"))
    yield refused("fold-empty", fold, get(b"/a/x", b"X: a\r\n "))
    yield refused("fold-te", "CVE-2022-32215", post(b"Transfer-Encoding:\r\n chunked", length(4), body=WRAPPED))
    yield refused("fold-hides-te", fold, post(b"X: x\r\n " + CHUNKED, length(4), body=WRAPPED))
    yield refused("fold-lf", "CVE-2022-32215", post(b"X: x\n " + CHUNKED, length(4), body=WRAPPED))
    yield refused("te-after-fold", fold, post(b"X: x\r\n\t", CHUNKED, body=WRAPPED))
    blank = "RFC 9112 2.2: an empty line before the request line is ignored"
    yield passed("crlf-before", blank, b"\r\n" + get(), ("GET", "/x", b""))
    yield refused("crlf-flood", blank, b"\r\n" * 100 + get())


def chunks():
    size = "RFC 9112 7.1: 1*HEXDIG"
    for name, line, source in (
        ("0x", b"0x4", "ruby/webrick#124: sizes with 0x"),
        ("minus", b"-4", size),
        ("minus-0x", b"-0x0", "graygnuorg/pound#19: sizes with 0x"),
        ("plus", b"+4", "CVE-2023-38697: sizes with a sign"),
        ("underscore", b"0_4", "openwrt/uhttpd#3"),
        ("letters", b"4these-bytes", "apache/trafficserver#10580: bytes behind the size"),
        ("not-hex", b"g", size),
        ("empty", b"", size),
        ("space-before", b" 4", size),
        ("space-after", b"4 ", size),
        ("tab-after", b"4\t", size),
        ("fraction", b"4.0", size),
        ("2-64", b"10000000000000004", "RFC 9112 7.1: overflow of a size"),
        ("huge", b"f" * 100, "RFC 9112 7.1: overflow of a size"),
        ("nul", b"4\0", size),
        ("cr", b"\r4", "openwrt/uhttpd#3"),
    ):
        yield refused(f"chunk-{name}", source, post(CHUNKED, body=line + b"\r\nbody\r\n0\r\n\r\n"), begun=True)
    ends = "RFC 9112 7.1: CR LF ends a chunk"
    for name, body, source in (
        ("lf-size", b"4\nbody\r\n0\r\n\r\n", "CVE-2025-22871: a bare LF ends the size"),
        ("cr-size", b"4\rbody\r\n0\r\n\r\n", ends),
        ("lf-data", b"4\r\nbody\n0\r\n\r\n", ends),
        ("no-end", b"4\r\nbody0\r\n\r\n", ends),
        ("two-bytes-end", b"4\r\nbodyXX0\r\n\r\n", "graygnuorg/pound#43: any two bytes end a chunk"),
        ("long-data", b"4\r\nbodyXXX\r\n0\r\n\r\n", "graygnuorg/pound#43: more data than told"),
        ("lf-last", b"4\r\nbody\r\n0\n\n", ends),
        ("lf-ends", b"4\r\nbody\r\n0\r\n\n" + SMUGGLED, ends),
        ("ext-lf", b"4;\nx\r\nbody\r\n0\r\n\r\n", "CVE-2025-58056: a bare LF in an extension"),
        ("ext-cr", b"4;a\rb\r\nbody\r\n0\r\n\r\n", "RFC 9112 7.1.1: a control character"),
        ("ext-space", b"4 ;a=b\r\nbody\r\n0\r\n\r\n", "RFC 9112 7.1.1: bad white space"),
        ("ext-nul", b"4;a=\0\r\nbody\r\n0\r\n\r\n", "RFC 9112 7.1.1: a control character"),
        ("ext-huge", b"4;a=" + b"x" * 2 * CHUNK_HEAD_MAX + b"\r\nbody\r\n0\r\n\r\n", "CVE-2023-39326"),
        ("last-ext-huge", b"4\r\nbody\r\n0;a=" + b"x" * 2 * CHUNK_HEAD_MAX + b"\r\n\r\n", "CVE-2023-39326"),
        ("ext-per-byte", b"".join(b"1;a=%s\r\nx\r\n" % (b"y" * 1000) for _ in range(100)) + LAST, "CVE-2023-39326"),
    ):
        yield refused(f"chunk-{name}", source, post(CHUNKED, body=body), begun=True)
    sent = ("POST", "/x", b"body")
    extension = post(CHUNKED, body=b'4;a;b="c d"\r\nbody\r\n0;x\r\n\r\n')
    yield passed("chunk-extensions", "RFC 9112 7.1.1: ignored", extension, sent)
    zeros = post(CHUNKED, body=b"000000004\r\nbody\r\n0000000000\r\n\r\n")
    yield passed("chunk-zeros", "RFC 9112 7.1: leading zeros", zeros, sent)
    capital = post(CHUNKED, body=b"A\r\n0123456789\r\na\r\n0123456789\r\n" + LAST)
    yield passed("chunk-capital", "RFC 9112 7.1: either case", capital, ("POST", "/x", b"0123456789" * 2))


def trailers():
    framing = "RFC 9110 6.5.1: no framing in trailers"
    cut = b"4\r\nbody\r\n0\r\n"
    for name, line in (("cl", b"Content-Length: 4"), ("te", CHUNKED)):
        yield refused(f"trailer-{name}", framing, post(CHUNKED, body=cut + line + b"\r\n\r\n" + SMUGGLED), begun=True)
    for name, line in (
        ("fold", b"X: a\r\n b"),
        ("space-colon", b"X : a"),
        ("no-colon", b"GET /a/smuggled HTTP/1.1"),
        ("bare-cr", b"X: a\rY: b"),
        ("bare-lf", b"X: a\nY: b"),
        ("nul", b"X: a\0b"),
    ):
        source = "RFC 9112 7.1.2: trailers are field lines"
        yield refused(f"trailer-{name}", source, post(CHUNKED, body=cut + line + b"\r\n\r\n"), begun=True)
    huge = post(CHUNKED, body=cut + b"X: " + b"x" * (TRAILERS_MAX + 1) + b"\r\n\r\n")
    yield refused("trailer-huge", "RFC 6585 5: fields too large", huge, 431, begun=True)
    many = post(CHUNKED, body=cut + b"X:\r\n" * (FIELDS_MAX + 1) + b"\r\n")
    yield refused("trailer-many", "RFC 6585 5: fields too large", many, 431, begun=True)
    merged = "RFC 9110 6.5.1: a trailer is no field of the head"
    for name in (b"Host", b"Authorization", b"Cookie", b"Content-Type", b"Ration-Token", b"X-Key", b"Connection"):
        data = post(CHUNKED, body=cut + name + b": trailed\r\n\r\n")
        yield passed(f"trailer-{name.decode().lower()}", merged, data, ("POST", "/x", b"body"))


def targets():
    for name, target, source, status in (
        ("absolute", b"http://other.example/a/x", "RFC 9112 3.2.2: the gateway is no proxy", 400),
        ("absolute-https", b"https://other.example/a/x", "RFC 9112 3.2.2", 400),
        ("absolute-userinfo", b"http://u:p@g/a/x", "RFC 9110 4.2.4: userinfo", 400),
        ("absolute-ftp", b"ftp://other.example/a/x", "RFC 9112 3.2.2", 400),
        ("authority", b"other.example:443", "RFC 9112 3.2.3: for CONNECT alone", 400),
        ("double-slash", b"//other.example/a/x", "RFC 3986 4.2: a network-path reference", 400),
        ("backslash", b"\\\\other.example\\a", "RFC 9112 3.2", 400),
        ("relative", b"a/x", "RFC 9112 3.2", 400),
        ("query-alone", b"?x", "RFC 9112 3.2", 400),
        ("asterisk-get", b"*", "RFC 9112 3.2.4: for OPTIONS alone", 400),
        ("no-account", b"/", "RFC 9112 3.2.1", 400),
        ("fragment", b"/a/x#/b/y", "RFC 9112 3.2: no fragment in a target", 400),
        ("tab", b"/a/x\ty", "RFC 9112 3: one SP between the parts", 400),
        ("space", b"/a/x y", "RFC 9112 3: no white space in the target", 400),
        ("version-inside", b"/a/x HTTP/1.1\tz", "RFC 9112 3", 400),
        ("nul", b"/a/x\0", "RFC 9112 3.2: targets are URIs", 400),
        ("control", b"/a/\x1bx", "RFC 9112 3.2: targets are URIs", 400),
        ("delete", b"/a/\x7f", "RFC 9112 3.2: targets are URIs", 400),
        ("latin-1", b"/a/\xe4", "RFC 9112 3.2: targets are URIs", 400),
        ("utf-8", "/a/ä".encode(), "RFC 9112 3.2: targets are URIs", 400),
        ("overlong-dots", b"/a/\xc0\xae\xc0\xae/b", "RFC 9112 3.2: targets are URIs", 400),
        ("encoded-nobody", b"/%61%00/x", "RFC 3986 2.1: another account", 404),
        ("beyond-limits", b"/a/" + b"x" * 40000, "RFC 9112 3: 414", 414),
        ("dots-as-account", b"/../a/x", "RFC 3986 5.2.4: dots are not resolved here", 404),
        ("slash-as-account", b"/%2Fa/x", "RFC 3986 2.2: an encoded slash is no slash", 404),
    ):
        closes = status == 400 and name not in ("absolute", "absolute-https", "absolute-userinfo", "double-slash",
                                                "no-account")  # fmt: skip
        yield refused(f"target-{name}", source, get(target), status, closes=closes)
    opaque = "RFC 9112 3.2.1: what follows the account is passed on as it stands"
    for name, target in (
        ("dots", b"/../other/x"),
        ("encoded-dots", b"/%2e%2e/other/%2E%2e/x"),
        ("encoded-slash", b"/x%2Fy%5c"),
        ("encoded-crlf", b"/x%0d%0aHost:%20evil%0d%0a"),
        ("encoded-nul", b"/x%00y"),
        ("broken-escape", b"/x%zz%"),
        ("inner-double-slash", b"//other.example/x"),
        ("url-inside", b"/http://other.example/x?y=http://z/"),
        ("semicolon", b"/x;/../y?;"),
    ):
        yield passed(f"target-{name}", opaque, get(b"/a" + target), ("GET", target.decode(), b""))
    yield refused("connect", "RFC 9110 9.3.6", head(b"CONNECT other.example:443 HTTP/1.1"), 501)
    yield refused("connect-account", "RFC 9110 9.3.6", head(b"CONNECT /a/x HTTP/1.1"), 501)
    yield refused("trace", "RFC 9110 9.3.8", head(b"TRACE /a/x HTTP/1.1"), 501, closes=False)
    asterisk = head(b"OPTIONS * HTTP/1.1")
    yield refused("options-asterisk", "RFC 9112 3.2.4: no account in it", asterisk, closes=False)


def hosts():
    one = "RFC 9112 3.2: exactly one Host, and a valid one"
    yield refused("host-none", one, get(host=None))
    yield refused("host-twice", one, get(b"/a/x", b"Host: g"))
    yield refused("host-twice-other", one, get(b"/a/x", b"Host: other.example"))
    yield refused("host-twice-case", one, get(b"/a/x", b"hOST: other.example"))
    for name, value in (
        ("space", b"g other.example"),
        ("tab", b"g\tother.example"),
        ("userinfo", b"user@g"),
        ("path", b"g/a/b"),
        ("query", b"g?x"),
        ("fragment", b"g#x"),
        ("list", b"g, other.example"),
        ("scheme", b"http://g"),
        ("backslash", b"g\\other.example"),
        ("port", b"g:80x"),
        ("two-ports", b"g:80:80"),
        ("open-bracket", b"[::1"),
        ("latin", b"g\xe4"),
        ("nul", b"g\0"),
        ("quoted", b'"g"'),
    ):
        yield refused(f"host-{name}", one, get(host=b"Host: " + value))
    for name, value in (("empty", b""), ("port-given", b"g:7600"), ("ipv6", b"[::1]:80"), ("encoded", b"g%20")):
        source = "RFC 9110 7.2: uri-host [ : port ]"
        yield passed(f"host-{name}", source, get(host=b"Host: " + value), ("GET", "/x", b""))
    old = head(b"GET /a/x HTTP/1.0", host=None)
    yield passed("http-1.0-no-host", "RFC 9112 3.2: Host is of HTTP/1.1", old, ("GET", "/x", b""), closes=True)
    kept = head(b"GET /a/x HTTP/1.0", b"Connection: keep-alive, close")
    yield passed("http-1.0-kept-and-closed", "RFC 9112 9.3: close wins", kept, ("GET", "/x", b""), closes=True)


def start_lines():
    line = "RFC 9112 3: method SP request-target SP HTTP-version"
    for name, text, source, status in (
        ("http-0.9", b"GET /a/x", "RFC 1945 4.1: a simple request", 400),
        ("two-spaces", b"GET  /a/x HTTP/1.1", line, 400),
        ("space-first", b" GET /a/x HTTP/1.1", line, 400),
        ("space-last", b"GET /a/x HTTP/1.1 ", line, 400),
        ("tabs", b"GET\t/a/x\tHTTP/1.1", line, 400),
        ("version-missing", b"GET /a/x ", line, 400),
        ("version-small", b"GET /a/x http/1.1", line, 400),
        ("version-digits", b"GET /a/x HTTP/1.10", line, 400),
        ("version-zeros", b"GET /a/x HTTP/01.1", line, 400),
        ("version-comma", b"GET /a/x HTTP/1,1", line, 400),
        ("version-1.2", b"GET /a/x HTTP/1.2", "RFC 9110 2.5", 505),
        ("version-2.0", b"GET /a/x HTTP/2.0", "RFC 9110 15.6.6", 505),
        ("version-9.9", b"GET /a/x HTTP/9.9", "RFC 9110 15.6.6", 505),
        ("method-small", b"get /a/x HTTP/1.1", "RFC 9110 9.1: methods are case-sensitive", 501),
        ("method-unknown", b"BREW /a/x HTTP/1.1", "RFC 9110 9.1", 501),
        ("method-no-token", b"G(T /a/x HTTP/1.1", "RFC 9110 9.1", 400),
        ("method-nul", b"G\0T /a/x HTTP/1.1", "RFC 9110 9.1", 400),
        ("method-latin", b"G\xc4T /a/x HTTP/1.1", "RFC 9110 9.1", 400),
    ):
        yield refused(name, source, head(text), status)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"
    yield refused("http-2-preface", "RFC 9113 3.4", preface, 505)
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(range(16, 140))  # with no end of a line in it
    yield refused("tls-client-hello", "RFC 8446 5.1", hello)
    yield refused("tls-alert", "RFC 8446 6", bytes.fromhex("15030100020228"))
    yield refused("ssl-2-hello", "RFC 5246 E.2", bytes.fromhex("802e01030100150000001000000500"))
    yield refused("proxy-protocol-1", "haproxy proxy-protocol 2.1", b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n" + get())
    yield refused("proxy-protocol-2", "haproxy proxy-protocol 2.2", bytes.fromhex("0d0a0d0a000d0a515549540a21110000"))
    yield refused("nul-bytes", "RFC 9112 3", bytes(64))


def sizes():
    fields = "RFC 6585 5: fields too large"
    yield refused("huge-request-line", "RFC 9112 3: 414", get(b"/a/" + b"x" * HEAD_MAX), 414)
    yield refused("huge-method", "RFC 9112 3", b"G" * (HEAD_MAX + 1), 414)
    yield refused("huge-field", fields, get(b"/a/x", b"X: " + b"x" * HEAD_MAX), 431)
    yield refused("huge-name", fields, get(b"/a/x", b"X" * HEAD_MAX + b": x"), 431)
    yield refused("many-fields", fields, get(b"/a/x", *[b"X: 1"] * FIELDS_MAX), 431)
    yield refused("huge-head", fields, get(b"/a/x", *[b"X: " + b"x" * 1000] * 70), 431)
    yield refused("endless-head", fields, b"GET /a/x HTTP/1.1\r\n" + b"X: 1\r\n" * HEAD_MAX, 431)
    most = get(b"/a/x", *[b"X: 1"] * (FIELDS_MAX - 1))
    yield passed("most-fields", "as many as may be", most, ("GET", "/x", b""))
    line = b"/" + b"x" * 8000
    yield passed("long-target", "RFC 9112 3: at least 8000 octets", get(b"/a" + line), ("GET", line.decode(), b""))


def in_sequence():
    pipelined = "RFC 9112 9.3.2: pipelining"
    x, y = ("GET", "/x", b""), ("GET", "/y", b"")
    yield passed("pipelined", pipelined, get() + get(b"/a/y"), x, y)
    yield passed("one-by-one", "RFC 9112 2.2: a stream of octets", get(b"/a/x", b"X: y"), x, slowly=True)
    by_bytes = post(CHUNKED, body=b"4;a=b\r\nbody\r\n0\r\nT: 1\r\n\r\n") + get(b"/a/y")
    yield passed("chunks-one-by-one", "RFC 9112 7.1", by_bytes, ("POST", "/x", b"body"), y, slowly=True)
    late = "RFC 9112 9.6: nothing is read after close"
    yield passed("behind-close", late, get(b"/a/x", b"Connection: close") + SMUGGLED, x, closes=True)
    yield passed("behind-close-list", late, get(b"/a/x", b"Connection: x, cLOSE") + SMUGGLED, x, closes=True)
    yield passed("behind-http-1.0", late, head(b"GET /a/x HTTP/1.0") + SMUGGLED, x, closes=True)
    body = length(len(SMUGGLED))
    after = ("a body that is refused is no request", post(body, body=SMUGGLED, target=b"/nobody/") + get(b"/a/y"))
    yield Shape("behind-refused-body", *after, (404, 200), (y,), closes=False)
    chunked = post(CHUNKED, body=WRAPPED, target=b"/nobody/") + get(b"/a/y")
    yield Shape("behind-refused-chunks", "RFC 9112 9.3", chunked, (404, 200), (y,), closes=False)
    broken = post(CHUNKED, body=b"zz\r\n" + SMUGGLED, target=b"/nobody/")
    yield refused("behind-refused-broken-chunks", "RFC 9112 9.3: one answer, then the end", broken, 404)
    expecting = post(b"Expect: 100-continue", body, body=SMUGGLED, target=b"/nobody/") + get(b"/a/y")
    yield refused("behind-refused-expectation", "RFC 9110 10.1.1: the body may come or not", expecting, 404)
    dear = post(length(1 << 30), target=b"/nobody/", body=SMUGGLED)
    yield refused("behind-refused-huge-body", "RFC 9112 9.6", dear, 404)
    crlf = post(body, body=SMUGGLED + b"\r\n") + get(b"/a/y")
    yield passed("surplus-crlf", "RFC 9112 2.2: CR LF behind a body", crlf, ("POST", "/x", SMUGGLED), y)
    surplus = ("RFC 9112 6.3: bytes behind a body are another message", post(length(2), body=b"hithere\r\n\r\n"))
    yield Shape("surplus-bytes", *surplus, (200, 400), (("POST", "/x", b"hi"),))
    cut = get() + b"GET /a/y HTTP/1.1\r\nHost: g\r\nX: "
    yield passed("half-closed-amid-a-head", "RFC 9112 8: incomplete messages", cut, closes=True, half_closed=True)
    half = post(length(10), body=b"half")
    yield passed("half-closed-amid-a-body", "RFC 9112 8", half, closes=True, begun=True, half_closed=True)
    yield passed("half-closed", "RFC 9112 9.6", get(), closes=True, begun=True, half_closed=True)


def expectations():
    unknown = "RFC 9110 10.1.1: 417"
    yield refused("expect-other", unknown, post(b"Expect: 200-ok", length(4), body=b"body"), 417)
    yield refused("expect-list", unknown, post(b"Expect: 100-continue, x", length(4), body=b"body"), 417)
    yield refused("expect-empty", unknown, post(b"Expect:", length(4), body=b"body"), 417)
    x = ("GET", "/x", b"")
    yield passed("expect-no-body", "RFC 9110 10.1.1", get(b"/a/x", b"Expect: 100-continue"), x)
    old = head(b"GET /a/x HTTP/1.0", b"Expect: other")
    yield passed("expect-http-1.0", "RFC 9110 10.1.1: ignored", old, x, closes=True)
    sent = post(b"Expect: 100-Continue", length(4), body=b"body")
    yield passed("expect-and-body", "RFC 9110 10.1.1", sent, ("POST", "/x", b"body"))
    switch = "RFC 9110 7.8"
    upgrade = get(b"/a/x", b"Connection: upgrade", b"Upgrade: websocket")
    yield refused("upgrade", switch, upgrade + SMUGGLED, 501)
    both = get(b"/a/x", b"Connection: upgrade", b"Upgrade: h2c, websocket")
    yield refused("upgrade-list", switch, both, 501)
    settings = b"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"
    h2c = get(b"/a/x", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", settings)
    yield passed("upgrade-h2c", "RFC 9113 3.1: the offer is passed over", h2c + get(b"/a/y"), x, ("GET", "/y", b""))
    alone = get(b"/a/x", b"Upgrade: websocket")
    yield passed("upgrade-alone", "RFC 9110 7.8: without Connection it means nothing", alone, x)
    hop = "RFC 9110 7.6.1: what Connection names ends here"
    named = post(b"Connection: Content-Length, Host, Transfer-Encoding", length(4), body=b"body")
    yield passed("connection-names-framing", hop, named, ("POST", "/x", b"body"))
    te = get(b"/a/x", b"TE: trailers, chunked", b"Connection: TE")
    yield passed("te-field", "RFC 9110 10.1.4", te, x)


SHAPES = [
    shape
    for group in (two_framings, codings, names, lengths, lines, chunks, trailers, targets, hosts, start_lines, sizes,
                  in_sequence, expectations)  # fmt: skip
    for shape in group()
]


def write_corpus():
    """The first byte says for whom the bytes are and how they are cut: a request in parts of seventeen bytes."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus/http1"
    for shape in SHAPES:
        if len(shape.data) <= CORPUS_MAX:
            (folder / f"request-{shape.name}").write_bytes(b"\x40" + shape.data)


if __name__ == "__main__":
    write_corpus()
