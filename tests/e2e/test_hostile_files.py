# SPDX-License-Identifier: MIT
"""Files of `hostile_files` through the commands that read them: each is refused in words, at once, without a crash."""

import re
import subprocess

import pytest
from hostile_files import BAD_CONFIGS, BAD_TRACES, CONFIG, MINIMAL
from house import RATION

# Asan's exit status is 1, so its words are looked for too.
CRASH = re.compile(r"Sanitizer|runtime error|assert|Assertion|core dumped")


def refused(arguments, place):
    done = subprocess.run([RATION, *arguments], capture_output=True, timeout=30)
    words = (done.stdout + done.stderr).decode("utf-8")
    assert done.returncode in (1, 2), (done.returncode, words[-2000:])
    assert not CRASH.search(words), words[-2000:]
    assert re.search(place, words), words[:2000]
    assert len(words) < 200000
    assert not [c for c in words if ord(c) < 32 and c not in "\n\t"]


@pytest.mark.parametrize("name", BAD_CONFIGS)
def test_configs(tmp_path, name):
    file = tmp_path / "ration.yaml"
    file.write_bytes(BAD_CONFIGS[name])
    refused(["validate", file], r"ration\.yaml:\d+:\d+: \S")
    refused(["serve", "--config", file], r"ration\.yaml:\d+:\d+: \S")


@pytest.mark.parametrize("name", BAD_TRACES)
def test_traces(tmp_path, name):
    file = tmp_path / "calls.jsonl"
    file.write_bytes(BAD_TRACES[name])
    refused(["replay", file], r"calls\.jsonl\S*: \S|line \d+|empty")


def test_what_they_are_made_of_is_good(tmp_path):
    """So that each is refused for what is wrong with it."""
    config, trace = tmp_path / "ration.yaml", tmp_path / "calls.jsonl"
    config.write_bytes(MINIMAL)
    trace.write_bytes(CONFIG + b'{"at":0,"op":"stats"}\n')
    for arguments in (["validate", config], ["replay", trace]):
        assert subprocess.run([RATION, *arguments], capture_output=True, timeout=30).returncode == 0


def test_places_that_are_no_files(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for place in (folder, tmp_path / "nothing", tmp_path / "a\nb", "/proc/self/mem"):
        for command in (["validate"], ["replay"], ["serve", "--config"]):
            done = subprocess.run([RATION, *command, place], capture_output=True, timeout=30, stdin=subprocess.DEVNULL)
            assert done.returncode in (1, 2), (command, place, done)
            assert done.stdout + done.stderr
