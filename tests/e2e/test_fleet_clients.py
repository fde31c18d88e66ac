# SPDX-License-Identifier: MIT
"""docs/reference/fleet-clients.md: each row names a test, and each test that is named exists."""
import re

import test_breaker_client
import test_semaphore
from simulated import ROOT

PAGE = (ROOT / "docs" / "reference" / "fleet-clients.md").read_text()
SCENARIOS = {"test_semaphore.py": set(test_semaphore.SAID), "test_breaker_client.py": set(test_breaker_client.SAID)}
NAMED = re.compile(r"`(test_\w+\.(?:py|c))::(\w+)(?:\[(\w+)\])?`")


def rows():
    """Of all tables, without their heads."""
    lines = PAGE.splitlines()
    ruled = {number for number, line in enumerate(lines) if re.fullmatch(r"\|(-+\|)+", line)}
    return [line for number, line in enumerate(lines)
            if line.startswith("|") and number not in ruled and number + 1 not in ruled]


def exists(file, name, scenario):
    if file.endswith(".c"):
        return f"static void {name}(void **state)" in (ROOT / "tests" / "unit" / file).read_text()
    text = (ROOT / "tests" / "e2e" / file).read_text()
    return f"\ndef {name}(" in text and (not scenario or scenario in SCENARIOS[file])


def test_every_row_names_tests_that_exist():
    told = rows()
    assert len(told) > 50
    for row in told:
        named = NAMED.findall(row)
        assert named, row
        for each in named:
            assert exists(*each), f"{row}: {each}"


def test_every_scenario_is_named():
    """One that guards nothing that is promised would be one too many."""
    for file, scenarios in SCENARIOS.items():
        assert scenarios == {scenario for named, _, scenario in NAMED.findall(PAGE) if scenario and named == file}
