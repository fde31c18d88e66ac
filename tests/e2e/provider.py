# SPDX-License-Identifier: MIT
"""A fake provider on raw sockets, so that a test can misbehave byte by byte."""

import contextlib
import socket
import ssl
import threading


class Request:
    def __init__(self, method, target, fields, connection):
        self.method = method
        self.target = target
        self.fields = fields
        self.connection = connection
        self.trailers = []

    def __getitem__(self, name):
        values = self.all(name)
        return values[0] if values else None

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def pieces(self):
        """The body, piece by piece as it comes."""
        file = self.connection.file
        if "chunked" in (self["Transfer-Encoding"] or ""):
            while size := int(file.readline().split(b";")[0], 16):
                yield file.read(size)
                file.readline()
            self.trailers = list(self.connection.section())
            return
        left = int(self["Content-Length"] or 0)
        while left > 0:
            piece = file.read1(min(left, 65536))
            if not piece:
                raise EOFError("closed amid the body")
            left -= len(piece)
            yield piece

    def body(self):
        return b"".join(self.pieces())


class Connection:
    def __init__(self, sock):
        self.socket = sock
        self.file = sock.makefile("rb")

    def section(self):
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            yield name, value.strip()

    def request(self):
        """The next request; None when the peer has closed."""
        line = self.file.readline()
        if not line:
            return None
        method, target, version = line.decode("latin-1").split()
        assert version == "HTTP/1.1"
        return Request(method, target, list(self.section()), self)

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def reply(self, status=200, fields=(), body=b"", reason="Fine"):
        body = body if isinstance(body, bytes) else body.encode()
        head = [f"HTTP/1.1 {status} {reason}"] + [f"{name}: {value}" for name, value in dict(fields).items()]
        if status not in (204, 304):
            head.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)

    def chunk(self, data):
        data = data if isinstance(data, bytes) else data.encode()
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def closed(self):
        """Wait until the peer has closed."""
        with contextlib.suppress(OSError):
            while self.file.read1(65536):
                pass

    def close(self):
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Provider:
    """Calls `handler(request, connection)` for each request, in a thread per connection.

    A handler that returns False ends the connection. `requests` and `connections` are what came so far.
    """

    def __init__(self, handler, tls=None, backlog=8192):
        self.handler = handler
        self.tls = tls
        self.requests = []
        self.connections = 0
        self.open = set()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(60)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        with self.lock:
            self.connections += 1
            self.open.add(sock)
        with contextlib.suppress(OSError, EOFError, ValueError):
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True)
            connection = Connection(sock)
            while (request := connection.request()) is not None:
                with self.lock:
                    self.requests.append(request)
                if self.handler(request, connection) is False:
                    break
            connection.close()
        with self.lock:
            self.open.discard(sock)
        sock.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for sock in self.open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)


def hello(request, connection):
    """The usual handler: read the body, answer 200."""
    request.body()
    connection.reply(200, {"Content-Type": "text/plain"}, b"" if request.method == "HEAD" else b"hello\n")


def server_context(ca, name="good"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca / f"{name}.pem", ca / f"{name}.key")
    return context
