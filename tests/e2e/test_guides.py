# SPDX-License-Identifier: MIT
"""Every command of the guides that have a config of their own, in order, in one shell, on ports that are free."""
import re

import pytest

from simulated import ROOT
from test_quick_start import Shell

# What a guide promises of its commands, by a part of them. All must exit 0.
PROMISES = {
    "limits": {
        "echo fine": "fine",
        "for path": "200 organizations/1/devices\n429 organizations/1/devices\n"
                    "200 organizations/2/devices\n200 oauth/token\n",
        "json.tool": '"acme/organizationId=2"',
    },
    "providers": {
        "echo fine": "fine",
        "for base": "200 appOne\n200 appOne\n429 appOne\n200 appTwo\n",
    },
    "llm": {
        "\"Say something\"": r'"finish_reason":"(stop|length)".*"usage":\{"prompt_tokens":\d+',
        "include_usage": r'(?s)"delta":\{"role":"assistant".*"total_tokens":\d+\}\}.*data: \[DONE\]',
        "limits/spent": r'"used":\d+,"external":0',
        "__ration/counts": r'"rateLimited":0,.*"rejected":0,"usage":\{"promptTokens":\d+',
        "for i in": "200\n200\n",
    },
    "gateway": {
        "Ration-Tenant: web": "200",
        "report $i": r"(?s)web after .*report . after",
        "Ration-Timeout: 0": r"429 Too Many Requests\s+Ration-Refused: rate_limited\s+Retry-After: 1",
        "urgent": '"field":"Ration-Priority"',
        "head -20": '"waiting": 0',
        "grep -E '^ration": "ration_held 0",
        "kill -TERM": "gone",
    },
    "fair-share": {
        "long.yaml examples": '"waitedMs":990',
        '"id":"b2"': '"reason":"hold_exceeds_reclaim_horizon"',
        '"event"': '"id":"a1","waitedMs":90',
        '"op":"stats"': '"deficitUnitMs":4500',
    },
    "planning": {
        "ration plan planning": r"daily \(acme\) is 13020 or the interval is 152.266s",
        "organizations=60": "(?s)DOES NOT FIT.*exit 1",
        "echo fine": "fine",
        "jobs/device-status": r'"effectiveMs":\d+.*"nextRunAt":\d+',
        "v1/runs": "",
        "sleep 2": r'(?s)"device-status".*"fanOut": 1',
        "grep -E '^ration_plan'": "ration_plan_feasible 1",
        "/v1/status": "'feasible': True",
    },
    "adaptive": {
        "xargs": r"(1\d\d|200) 200\n",
        "ration_adaptive_limit": r'limit="at-once",key="my-shop"} \d+',
        "usedCallMs": '"usedCallMs": [1-9]',
    },
    "decision-api": {
        "tee first": r'"result":"granted","lease":"0-\d+","waitedMs":0,"ttlMs":30000',
        "sed -n": r"lease 0-\d+",
        "120.5": '"released"',
        "limits/tokens": '"used":120.5,"external":0,"remaining":879.5',
        '"timeout":50': r"429 Too Many Requests\s+Ration-Refused: deadline",
        """'{"account":"my-shop"}' http://127.0.0.1:7601/v1/check""": '"result":"refused","reason":"concurrency_full"',
        "grep -o '\"id\"": r'(?s)"id":"[^"]*".*"id":',
        "for id in": r'(?s)released.*released',
        "cut -d": r'(?s)^{"result":"granted","lease":("[0-9-]+")\s+{"result":"granted","lease":\1',
        "sleep 0.5": r'\{"leases":\[\]\}',
    },
    "record-and-replay": {
        "for i in": "200\n200\n429\n429",
        '"refused"': '"reason":"rate_limited"',
        "head -3": '"result":"granted"',
        "--verify": "lines come out as recorded",
        "replay calls.jsonl | grep": "2",
        "--config more": "none is refused now",
    },
    "simulated-day": {
        "--seed 1": r"(?s)from 2026-01-05T08:00:00Z.*critical +1440 +1440 .*No provider refused a call",
        "spentShare": r"0\.9[5-9]",
        "--fault all": r"(?s)faults: latency, errors, clock, restart, kill, external.*No provider refused a call",
        "--verify": "lines come out as recorded",
    },
    "fleet": {
        "for port": r"(?s)18 200\s+6 429\s*$",
        "__ration/counts": '"rateLimited":0,',
        "json.tool": r'(?s)"state": "up".*"members": \[.*"heardMs"',
    },
}
# When what has been started may be asked: a path at a port, and a part of its answer.
UP = {
    "ration simulate": ("7700", "/__ration/counts"),
    "CONTROL=7601 build/ration serve": ("7601", "/v1/status", '"fleet":{"state":"up"'),
    "CONTROL=7611": ("7611", "/v1/status", '"fleet":{"state":"up"'),
    "CONTROL=7621": ("7621", "/v1/status", '"fleet":{"state":"up"'),
    "ration serve": ("7601", "/readyz"),
}


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


@pytest.mark.parametrize("name", PROMISES)
def test_every_command(name, tmp_path):
    text = (ROOT / f"docs/guide/{name}.md").read_text()
    commands = [line[2:] for block in blocks(text, "console") for line in block.splitlines() if line.startswith("$ ")]
    file, config = re.search(r"```yaml\n# (\S+)\n(.*?)```", text, re.S).groups()
    met = set()
    shell = Shell(tmp_path)
    listen = "settings:\n  listen: { gateway: 127.0.0.1:7600, control: 127.0.0.1:7601 }\n"
    # A busy machine may take a tenth of a second from one call to the next, so that the second is no longer too many.
    config = config.replace("rate: 10/s, burst: 2,", "rate: 10/m, burst: 2,")
    if "listen:" not in config:
        config = listen + config.replace("settings:\n", "")
    try:
        (tmp_path / file).write_text(shell.here(config))
        for command in commands:
            up = next((UP[part] for part in UP if part in command and command.endswith("&")), None)
            if "ration simulate" in command and command.endswith("&") and "--listen" not in command:
                command = command.replace(" &", " --listen 127.0.0.1:7700 &")
            output, code = shell.run(command)
            output = re.sub(r"(?m)^time=.*\n", "", output)
            assert code == 0, (command, output)
            if up is not None:
                shell.wait_for(*up)
            for part in (part for part in PROMISES[name] if part in command):
                assert re.search(PROMISES[name][part], output), (command, output)
                met.add(part)
        assert met == set(PROMISES[name])
    finally:
        shell.end()
