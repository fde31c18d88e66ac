# SPDX-License-Identifier: MIT
"""Every command of docs/guide/quick-start.md, in order, in one shell, on ports that are free."""
import json
import re
import subprocess
import urllib.request

import pytest

from house import free_port
from simulated import RATION, ROOT, wait_until

GUIDE = (ROOT / "docs/guide/quick-start.md").read_text()
COMMANDS = [line[2:] for block in re.findall(r"```console\n(.*?)```", GUIDE, re.S) for line in block.splitlines()
            if line.startswith("$ ")]
CONFIG = re.search(r"```yaml\n(.*?)```", GUIDE, re.S).group(1)

PORTS = ("6379", "7600", "7601", "7610", "7611", "7620", "7621", "7700")


class Shell:
    """The reader's shell, with the guide's ports replaced by free ones."""

    def __init__(self, folder):
        self.ports = {port: str(free_port()) for port in PORTS}
        (folder / "quick.yaml").write_text(self.here(CONFIG))
        self.process = subprocess.Popen(["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

    def here(self, text):
        text = re.sub(rf"\b({'|'.join(PORTS)})\b", lambda port: self.ports[port[0]], text)
        return text.replace("build/ration", RATION).replace(" examples/", f" {ROOT}/examples/")

    def run(self, command):
        self.process.stdin.write(self.here(command) + "\necho; echo '--- end' $?\n")
        self.process.stdin.flush()
        output = ""
        for line in self.process.stdout:
            if line.startswith("--- end"):
                return output, int(line.split()[2])
            output += line
        raise AssertionError(output)

    def wait_for(self, port, path, wanted=""):
        def is_up():
            try:
                answer = urllib.request.urlopen(f"http://127.0.0.1:{self.ports[port]}{path}", timeout=5).read()
                return wanted in answer.decode()
            except OSError:
                return False
        wait_until(is_up)

    def end(self):
        self.run("kill $(jobs -p); wait")
        self.process.stdin.close()
        self.process.wait(timeout=20)


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.end()


def test_every_command(shell):
    assert len(COMMANDS) == 12
    build, demo, export, validate, simulate, serve, call, paced, refused, status, metrics, counts = COMMANDS
    assert build == "./dev build" and demo == "build/ration demo"  # the build is there; test_demo.py runs the demo

    assert shell.run(export)[1] == 0
    output, code = shell.run(validate)
    assert code == 0, output
    shell.run(simulate)
    shell.wait_for("7700", "/__ration/counts")
    shell.run(serve)
    shell.wait_for("7601", "/readyz")

    output, code = shell.run(call)
    assert code == 0 and "HTTP/1.1 200" in output and "Ration-Request-Id:" in output
    assert '"path":"/orders/7"' in output

    output, code = shell.run(paced)
    took = [float(seconds) for seconds in re.findall(r"200 after ([0-9.]+) s", output)]
    assert len(took) == 4 and max(took) > 0.5

    output, code = shell.run(refused)
    assert "HTTP/1.1 429" in output and "Ration-Refused: rate_limited" in output and "Retry-After:" in output
    assert "not-a-real-key" not in output

    output, code = shell.run(status)
    assert code == 0 and json.loads(output)
    assert "not-a-real-key" not in output
    output, code = shell.run(metrics)
    assert code == 0 and "ration_" in output
    output, code = shell.run(counts)
    assert json.loads(output)["rateLimited"] == 0
