#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A TLS server that a test of connections talks to.

Makes a CA and a certificate for localhost in a folder of its own, listens on two ports, and prints
`PORT SLOW_PORT CA_FILE`. On the second port every byte to the client comes alone, the handshake included. Ends with its
standard input.
"""

import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

BIG = 3_000_000


def make_certificates(folder):
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with open(f"{folder}/ext", "w", encoding="ascii") as ext:
        ext.write("subjectAltName=DNS:localhost\n")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Test CA")
    openssl("req", *new, "-keyout", "key.pem", "-out", "csr.pem", "-subj", "/CN=localhost")
    openssl("x509", "-req", "-in", "csr.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "ext", "-out", "cert.pem")


def read_request(stream):
    """Method, target and the body's size; None at the end."""
    line = stream.readline()
    if not line:
        return None
    fields = {}
    while (field := stream.readline().strip()):
        name, _, value = field.partition(b":")
        fields[name.lower()] = value.strip()
    left = size = int(fields.get(b"content-length", b"0"))
    while left > 0:
        left -= len(stream.read(min(left, 65536)))
    method, target, _ = line.split()
    return method, target, size


def serve(conn):
    stream = conn.makefile("rb")
    while (request := read_request(stream)) is not None:
        _, target, size = request
        if target == b"/big":
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
            conn.sendall(b"x" * BIG)
        elif target == b"/trickle":
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello":
                conn.sendall(bytes([byte]))
        elif target == b"/cut":
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
            conn.unwrap()
            break
        elif target == b"/whole":
            conn.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
            conn.unwrap()
            break
        elif target == b"/short":
            conn.sendall(b"HTTP/1.1 200 OK\r\n\r\nhel")
            break  # without a word of TLS
        elif target == b"/gone":
            break
        else:
            body = b"%d" % size
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    conn.close()


def accept_forever(listener, handle):
    def run(conn):
        try:
            handle(conn)
        except OSError:
            pass

    while True:
        conn, _ = listener.accept()
        threading.Thread(target=run, args=(conn,), daemon=True).start()


def trickle_to(port):
    """Forward to `port`, and back one byte at a time."""
    def handle(client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = socket.create_connection(("127.0.0.1", port))

        def forth():
            try:
                while (data := client.recv(65536)):
                    server.sendall(data)
                server.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        threading.Thread(target=forth, daemon=True).start()
        while (data := server.recv(65536)):
            for i in range(len(data)):
                client.sendall(data[i:i + 1])
        client.close()

    return handle


def main():
    folder = tempfile.mkdtemp(prefix="ration-tls-")
    try:
        make_certificates(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
        listener = socket.create_server(("127.0.0.1", 0))
        slow = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        threading.Thread(target=accept_forever, daemon=True,
                         args=(listener, lambda conn: serve(context.wrap_socket(conn, server_side=True)))).start()
        threading.Thread(target=accept_forever, daemon=True, args=(slow, trickle_to(port))).start()
        print(port, slow.getsockname()[1], f"{folder}/ca.pem", flush=True)
        sys.stdin.read()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
