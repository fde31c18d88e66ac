#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls under leases of the decision API, with the standard library alone.

usage: api_client.py ACCOUNT URL [COUNT] [CONTROL]

COUNT calls at once, each waiting up to 30 s for its lease. CONTROL is http://127.0.0.1:7601 or unix:PATH.
"""

import http.client
import json
import socket
import sys
import threading
import urllib.parse
import uuid


class Refused(Exception):
    """A decision: `why` has its reason, and retryAfterMs where the time to ask again is known."""

    def __init__(self, why):
        super().__init__(f"{why.get('reason', why['type'])}: {why['detail']}")
        self.why = why


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Ration:
    def __init__(self, control="http://127.0.0.1:7601", token=None):
        self.control = control
        self.token = token

    def ask(self, operation, body, timeout=10, fields=()):
        if self.control.startswith("unix:"):
            connection = UnixConnection(self.control.removeprefix("unix:"), timeout)
        else:
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.control).netloc, timeout=timeout)
        headers = {"Content-Type": "application/json", **dict(fields)}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request("POST", f"/v1/{operation}", json.dumps(body), headers)
            answer = connection.getresponse()
            told = json.load(answer)
        finally:
            connection.close()
        if answer.status != 200:
            raise Refused(told)
        return told

    def lease(self, account, timeout=30.0, **asked):
        return Lease(self, {"account": account, "timeout": timeout * 1000, **asked}, timeout)


class Lease:
    """Held within `with`, renewed while it lasts, released at its end with what was told of the call."""

    def __init__(self, ration, asked, timeout):
        self.ration = ration
        self.asked = asked
        self.timeout = timeout
        self.told = {}
        self.ended = threading.Event()

    def __enter__(self):
        # The same key on every attempt: an answer that was lost on the way costs no second lease.
        key = {"Idempotency-Key": str(uuid.uuid4())}
        for attempt in range(3):
            try:
                granted = self.ration.ask("acquire", self.asked, self.timeout + 10, key)
                break
            except (OSError, http.client.HTTPException):
                if attempt == 2:
                    raise
        self.name = granted["lease"]
        self.renewer = threading.Thread(target=self.renew, args=(granted["ttlMs"] / 3000,), daemon=True)
        self.renewer.start()
        return self

    def renew(self, every):
        while not self.ended.wait(every):
            try:
                self.ration.ask("renew", {"lease": self.name})
            except Refused:
                return  # taken back: the release will say so
            except (OSError, http.client.HTTPException):
                pass  # asked again in time

    def tell(self, status, headers=(), cost=None):
        """What the provider answered, and what the call really cost."""
        self.told = {"status": status, "headers": dict(headers), **({} if cost is None else {"cost": cost})}

    def __exit__(self, kind, *_):
        self.ended.set()
        self.renewer.join()
        outcome = {"outcome": "failure" if kind else "success"}
        self.ration.ask("release", {"lease": self.name, **outcome, **self.told})


def call(ration, account, url):
    """GET under a lease; the provider's status."""
    parts = urllib.parse.urlsplit(url)
    with ration.lease(account, method="GET", path=parts.path or "/") as lease:
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=30)
        try:
            connection.request("GET", parts.path or "/")
            answer = connection.getresponse()
            answer.read()
            lease.tell(answer.status, answer.getheaders())
        finally:
            connection.close()
    return answer.status


def main(account, url, count="1", control="http://127.0.0.1:7601"):
    ration, results = Ration(control), []

    def one():
        try:
            results.append(str(call(ration, account, url)))
        except Refused as refused:
            results.append(refused.why.get("reason", "error"))

    threads = [threading.Thread(target=one) for _ in range(int(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in sorted(set(results)):
        print(f"{results.count(result)} x {result}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
