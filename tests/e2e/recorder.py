# SPDX-License-Identifier: MIT
"""A provider that keeps every byte it gets, and reads it as pedantically as HTTP/1.1 can be read.

It shares no code with the gateway nor with `provider`: what it accepts is what no server could read differently.
"""

import contextlib
import json
import re
import socket
import threading

LINE = re.compile(rb"([A-Z]+) ([\x21-\x7e]+) HTTP/1\.1\r\n")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([^\x00-\x08\x0a-\x1f\x7f]*)\r\n")
CHUNK = re.compile(rb"([1-9a-f][0-9a-f]*)\r\n")


class Ambiguous(AssertionError):
    """Bytes that a server might read differently."""


class Cursor:
    """The bytes of one connection as they come, read front to back."""

    def __init__(self, sock):
        self.socket = sock
        self.data = bytearray()
        self.at = 0

    def more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError
        self.data += piece

    def bytes(self, count):
        while len(self.data) - self.at < count:
            self.more()
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def line(self):
        while (end := self.data.find(b"\n", self.at)) < 0:
            self.more()
        line = bytes(self.data[self.at : end + 1])
        self.at = end + 1
        return line

    def match(self, pattern):
        line = self.line()
        found = pattern.fullmatch(line)
        if found is None:
            raise Ambiguous(f"no {pattern.pattern!r}: {line[:200]!r}")
        return found.groups()

    def fields(self):
        fields = []
        while (line := self.line()) != b"\r\n":
            found = FIELD.fullmatch(line)
            if found is None:
                raise Ambiguous(f"no field: {line[:200]!r}")
            if found[2] != found[2].strip(b" \t"):
                raise Ambiguous(f"white space around a value: {line[:200]!r}")
            fields.append((found[1].lower().decode(), found[2]))
        return fields


class Recorded:
    def __init__(self, method, target, fields, body, trailers):
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
        self.trailers = trailers

    @property
    def what(self):
        return self.method, self.target, self.body

    def all(self, name):
        return [value for key, value in self.fields if key == name]


def chunks(cursor):
    body = b""
    while (line := cursor.line()) != b"0\r\n":
        found = CHUNK.fullmatch(line)
        if found is None:
            raise Ambiguous(f"no size of a chunk: {line[:200]!r}")
        body += cursor.bytes(int(found[1], 16))
        if cursor.bytes(2) != b"\r\n":
            raise Ambiguous("a chunk that does not end with CR LF")
    return body


def read_request(cursor, host):
    """One request, or Ambiguous: framed once or not at all, for one host, without a word about the connection."""
    method, target = (part.decode() for part in cursor.match(LINE))
    request = Recorded(method, target, cursor.fields(), b"", [])
    lengths, codings = request.all("content-length"), request.all("transfer-encoding")
    if request.all("host") != [host]:
        raise Ambiguous(f"Host: {request.all('host')}")
    if len(lengths) + len(codings) > 1 or (codings and codings != [b"chunked"]):
        raise Ambiguous(f"framed by {lengths} and {codings}")
    for name in ("connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "expect"):
        if request.all(name):
            raise Ambiguous(f"{name}: {request.all(name)}")
    if codings:
        request.body = chunks(cursor)
        request.trailers = cursor.fields()
    elif lengths:
        if not re.fullmatch(rb"0|[1-9][0-9]*", lengths[0]):
            raise Ambiguous(f"a length of {lengths[0]!r}")
        request.body = cursor.bytes(int(lengths[0]))
    return request


class Recorder:
    """Answers each request with what it was, as JSON; `taken` are the requests since the last look."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.host = f"127.0.0.1:{self.port}".encode()
        self.lock = threading.Lock()
        self.requests = []
        self.faults = []
        self.unfinished = []
        self.connections = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.connections += 1
                sock.settimeout(60)
                threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        cursor = Cursor(sock)
        with contextlib.suppress(OSError), sock:
            while True:
                begin = cursor.at
                try:
                    request = read_request(cursor, self.host)
                except EOFError:
                    with self.lock:
                        self.unfinished += [bytes(cursor.data[begin:])] if len(cursor.data) > begin else []
                    return
                except Ambiguous as fault:
                    with self.lock:
                        self.faults.append(f"{fault} in {bytes(cursor.data)[-2000:]!r}")
                    return
                with self.lock:
                    self.requests.append(request)
                sock.sendall(self.answer(request))

    def answer(self, request):
        told = json.dumps({"method": request.method, "target": request.target, "bytes": len(request.body)}).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(told)
        return head if request.method == "HEAD" else head + told

    def take(self):
        """What came since the last look: requests, and beginnings of requests that broke off."""
        with self.lock:
            assert self.faults == []
            requests, self.requests = self.requests, []
            unfinished, self.unfinished = self.unfinished, []
        return requests, unfinished

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
