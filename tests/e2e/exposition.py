# SPDX-License-Identifier: MIT
"""A strict reader of Prometheus' text format 0.0.4: what promtool would complain about is an AssertionError."""

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
OTHER_UNITS = ("_ms", "_milliseconds", "_microseconds", "_us", "_minutes", "_hours", "_kb", "_megabytes", "_percent")


class Family:
    def __init__(self, name, text):
        self.name = name
        self.help = text
        self.type = None
        self.samples = {}  # (suffix, labels) -> value


def labels_of(text):
    found = []
    while text:
        match = LABEL.match(text)
        assert match and match[3] == ("," if match.end() < len(text) else ""), text
        found.append((match[1], re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], match[2])))
        text = text[match.end() :]
    names = [name for name, _ in found]
    assert len(set(names)) == len(names), f"a label twice: {names}"
    return tuple(found)


def sample_read(family, line):
    match = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? (-?[0-9]+(?:\.[0-9]+)?)", line)
    assert match, f"no sample: {line!r}"
    assert family is not None and match[1].startswith(family.name), f"outside of its family: {line!r}"
    suffix = match[1][len(family.name) :]
    assert suffix in (("_bucket", "_sum", "_count") if family.type == "histogram" else ("",)), line
    key = (suffix, labels_of(match[2] or ""))
    assert key not in family.samples, f"twice: {line!r}"
    family.samples[key] = float(match[3])


def family_check(family):
    name = family.name
    assert (family.type == "counter") == name.endswith("_total"), name
    assert not name.removesuffix("_total").endswith(OTHER_UNITS), f"not a base unit: {name}"
    if family.type == "counter":
        assert all(value >= 0 for value in family.samples.values()), name
    if family.type != "histogram":
        return
    buckets = [(dict(labels)["le"], value) for (suffix, labels), value in family.samples.items() if suffix == "_bucket"]
    bounds = [float(bound) for bound, _ in buckets]
    assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), name
    assert [value for _, value in buckets] == sorted(value for _, value in buckets), f"{name} is not cumulative"
    assert buckets[-1][1] == family.samples["_count", ()] and ("_sum", ()) in family.samples, name


def read(text):
    """All families by name."""
    assert text.endswith("\n")
    families, current = {}, None
    for line in text[:-1].split("\n"):
        if match := re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line):
            assert match[1] not in families, f"a second time: {line}"
            current = families[match[1]] = Family(match[1], match[2])
        elif match := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram)", line):
            assert current is not None and current.name == match[1] and current.type is None, line
            current.type = match[2]
        else:
            assert current is not None and current.type, line
            sample_read(current, line)
    for family in families.values():
        family_check(family)
    return families
