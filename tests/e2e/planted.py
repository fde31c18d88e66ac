# SPDX-License-Identifier: MIT
"""Secrets that are planted in configs, and the search for them in whatever comes out of a gateway.

Every `Gateway` of house.py has one: accounts without a credential get one, and what the config has of its own is
watched too. Each answer that a client of house.py reads is searched as it comes; when the gateway ends, its log, its
pages and all files that it left. A secret is looked for as it is, as base64 at each of its three alignments, as
hexadecimal digits, with percent signs and with JSON's backslashes.
"""

import base64
import json
import os
import re
import urllib.parse

HEADER = "X-Planted-Key"
SHORTEST = 8  # bytes; a shorter one may stand anywhere by chance
SECRET_KEYS = ("token", "password", "value")
INPUTS = (".yaml", ".yml", ".json", ".pem", ".key", ".conf")  # what a test wrote for the gateway to read
PAGES = ("/metrics", "/v1/status", "/v1/limits", "/v1/leases", "/v1/waiters", "/v1/refusals", "/v1/plan",
         "/v1/fairness", "/v1/allocation", "/healthz", "/readyz", "/")
PIECE = 1 << 20


def forms(secret):
    """Everything that would give it away, as bytes."""
    raw = secret.encode()
    found = {raw, raw.hex().encode(), raw.hex().upper().encode(), urllib.parse.quote(raw, safe="").encode(),
             json.dumps(secret)[1:-1].encode()}
    for before in range(3):
        # The digits that depend on no byte before or behind it.
        digits = base64.b64encode(b"\0" * before + raw)
        whole = digits[(8 * before + 5) // 6:(8 * (before + len(raw))) // 6]
        found |= {whole, whole.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def secrets_of(config, inside=False):
    """The texts below keys that hold secrets; of one in several words the last, which the others only introduce."""
    if isinstance(config, dict):
        for key, value in config.items():
            yield from secrets_of(value, key == "credential" if isinstance(value, dict) else key in SECRET_KEYS)
    elif isinstance(config, list):
        for value in config:
            yield from secrets_of(value, inside)
    elif isinstance(config, str) and "${" not in config:
        yield from re.findall("://[^/@:]*:([^/@]+)@", config)  # the password of a URL, below whatever key
        if inside and config:
            yield config.split()[-1]


class Planted:
    watched = []  # of all gateways that run now

    def __init__(self, config):
        self.core = os.urandom(10).hex()
        for account in config.get("accounts", []):
            if isinstance(account, dict) and "credential" not in account:
                account["credential"] = {"header": HEADER, "value": f'planted "\\/%+ {self.core}'}
        self.secrets = {secret for secret in secrets_of(config) if len(secret) >= SHORTEST}
        self.forms = {form for secret in self.secrets for form in forms(secret)}
        Planted.watched.append(self)

    def look(self, where, text):
        for form in self.forms:
            assert form not in text, f"{where} has a secret, as {form}"

    def look_into(self, path):
        """A file, piece by piece, each with the end of the one before."""
        longest = max(map(len, self.forms), default=0)
        before = b""
        with open(path, "rb") as file:
            while piece := file.read(PIECE):
                self.look(path, before + piece)
                before = piece[-longest:]

    def look_below(self, folder):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.suffix not in INPUTS:
                self.look_into(path)

    def forget(self):
        if self in Planted.watched:
            Planted.watched.remove(self)


def look(where, text):
    """For those of all gateways."""
    for planted in Planted.watched:
        planted.look(where, text)
