# SPDX-License-Identifier: MIT
"""A browser in a process of its own: Debian's Chromium under Playwright (tests/clients)."""

import json
import shutil
import subprocess

import pytest
from house import ROOT

PACKAGE = ROOT / ".cache" / "npm" / "node_modules" / "playwright-core"


class Browser:
    """Each call is a method of drive.mjs."""

    def __init__(self):
        driver = ROOT / "tests" / "e2e" / "browser" / "drive.mjs"
        self.popen = subprocess.Popen(["node", driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __getattr__(self, method):
        def call(**args):
            self.popen.stdin.write(json.dumps({"method": method, "args": args}) + "\n")
            self.popen.stdin.flush()
            line = self.popen.stdout.readline()
            assert line, "the browser has ended"
            answer = json.loads(line)
            assert "error" not in answer, f"{method} {args}: {answer['error']}"
            return answer["value"]

        return call

    def text(self, selector):
        return self.evaluate(code=f"document.querySelector({json.dumps(selector)})?.textContent")

    def until_text(self, selector, part):
        """The text of the first such element, once it has `part`."""
        where, what = json.dumps(selector), json.dumps(part)
        found = f"document.querySelector({where})?.textContent"
        return self.until(code=f"((text) => text?.includes({what}) && text)({found})")

    def close(self):
        self.popen.stdin.close()
        try:
            self.popen.wait(30)
        finally:
            self.popen.kill()


@pytest.fixture(scope="session")
def browser():
    if shutil.which("node") is None or shutil.which("chromium") is None or not PACKAGE.is_dir():
        pytest.skip("no node, chromium or playwright-core: scripts/deps test")
    one = Browser()
    yield one
    one.close()
