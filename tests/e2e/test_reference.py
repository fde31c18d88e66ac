# SPDX-License-Identifier: MIT
"""What the reference lists is what the code has, and the reverse."""

import re

from house import ROOT


def log_calls():
    """The literals of each call that writes a line, after its level."""
    for file in sorted((ROOT / "src").glob("*/*.c")):
        for call in re.finditer(r"\brn_log_(?:line|gated)\((.*?)\);", file.read_text(), re.S):
            if found := re.findall(r'"((?:[^"\\]|\\.)*)"', call[1]):
                yield file.name, found


def test_fields_of_lines():
    """Each field, and each message that stands where it is written."""
    page = (ROOT / "docs/reference/logs.md").read_text()
    calls = list(log_calls())
    assert len(calls) > 20
    for file, texts in calls:
        for text in texts:
            known = text.isupper() or f"`{text}`" in page or text.split(": ")[0] + ": …`" in page
            assert known, f"{file}: docs/reference/logs.md has no `{text}`"
