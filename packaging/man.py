#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes the manual pages ration(1) and ration.yaml(5) from what the binary says of itself: they cannot lag behind.

usage: man.py RATION [config] >ration.1 or ration.yaml.5
"""

import re
import subprocess
import sys


def say(ration, *arguments):
    return subprocess.run([ration, *arguments], check=True, capture_output=True, text=True).stdout


def roff(line):
    """A line as text: no escapes, no request by accident."""
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return "\\&" + line if line[:1] in (".", "'") else line


def verbatim(text):
    return [".nf", *[roff(line) for line in text.strip("\n").split("\n")], ".fi"]


def plain(text):
    """Markdown as text: links are their words, emphasis is left out."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return roff(re.sub(r"\*+([^*]+)\*+", r"\1", text).replace("\\|", "|"))


def config_page(ration):
    """ration.yaml(5): the reference page of all keys, an object a section."""
    version = say(ration, "version").split()[1]
    head, *objects = re.split(r"^## ", say(ration, "schema", "--markdown"), flags=re.M)
    page = [
        f'.TH RATION.YAML 5 "" "ration {version}" "File Formats"',
        ".SH NAME",
        "ration.yaml \\- the config of ration",
        ".SH DESCRIPTION",
    ]
    for paragraph in head.split("\n\n")[1:]:
        page += [".PP", plain(paragraph.strip())] if paragraph.strip() else []
    for one in objects:
        name, _, rest = one.partition("\n")
        page += [f".SH {roff(name.upper())}"]
        for line in filter(None, rest.split("\n")):
            row = re.fullmatch(r"\| `(.+?)` \| (.+?) \| (.+?) \| (.+) \|", line)
            if row:
                without = "" if row[3] == "\u2014" else f" Without it: {row[3]}."
                page += [".TP", f".B {roff(row[1])}", plain(f"{row[2]}. {row[4]}{without}")]
            elif not line.startswith("|"):
                page += [".PP", plain(line)]
    print("\n".join([*page, ".SH SEE ALSO", ".BR ration (1)"]))


def main():
    ration = sys.argv[1]
    if sys.argv[2:] == ["config"]:
        config_page(ration)
        return
    version = say(ration, "version").split()[1]
    # "  name       what it does", a line a command
    commands = re.findall(r"^  ([a-z]+) +(\S.*)$", say(ration, "help"), re.M)

    page = [
        f'.TH RATION 1 "" "ration {version}" "User Commands"',
        ".SH NAME",
        "ration \\- decides for every outbound API call whether it may leave now, must wait, or is refused",
        ".SH SYNOPSIS",
        ".B ration",
        ".I COMMAND",
        ".RI [ ARGUMENT ]...",
        ".SH DESCRIPTION",
        "Shares the limits of other people's APIs among those who call them: rates, calls at once, quotas, fair",
        "shares among tenants, limits that learn, circuit breakers. Clients need nothing but another base URL.",
        ".SH COMMANDS",
    ]
    for name, summary in commands:
        usage, _, more = say(ration, "help", name).partition("\n")
        page += [f".SS {name}", roff(summary[0].upper() + summary[1:]) + "."]
        page += [".PP", ".B " + roff(usage.removeprefix("usage: "))]
        if more.strip():
            page += [".PP", *verbatim(more)]
    page += [
        ".SH FILES",
        ".TP",
        ".I ration.yaml",
        "The config; all keys are told by",
        ".BR ration.yaml (5).",
        ".TP",
        ".I /etc/ration/environment",
        "What the service takes into its environment, such as API keys.",
        ".SH EXIT STATUS",
        "0: done. 1: done, and the answer is no: faults in a config, a decision that differs. 2: it could not be done.",
        ".SH SIGNALS",
        ".TP",
        "SIGTERM, SIGINT",
        ".B serve",
        "lets calls end, then exits with 0; a second one does not wait.",
        ".TP",
        "SIGHUP",
        ".B serve",
        "reads the config anew: all of it holds then, or nothing has changed and the log says why.",
    ]
    print("\n".join(page))


if __name__ == "__main__":
    main()
