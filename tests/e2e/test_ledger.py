# SPDX-License-Identifier: MIT
"""`ration ledger`: a ledger as a person and a program look into it, whoever else has it open."""

import csv
import hashlib
import io
import json
import os
import pathlib
import sqlite3
import subprocess

import pytest
from house import DEADLINE, RATION, a_day, one_provider
from provider import hello

FIRST = pathlib.Path(__file__).with_name("ledger_v1.sql")
ODD_KEY = 'say "hi", \x1b[31mred\x1b[0m\r\nbye'
SALT = bytes.fromhex("5a17" * 16)


def ration(*arguments, text=True, **options):
    return subprocess.run(
        [RATION, *map(str, arguments)], capture_output=True, text=text, timeout=DEADLINE, **options
    )


def sql(path, script):
    with sqlite3.connect(path, isolation_level=None) as db:
        db.executescript(script)
    db.close()


def make(path, extra=""):
    sql(path, FIRST.read_text() + "PRAGMA journal_mode = WAL;" + extra)
    return path


@pytest.fixture
def ledger(tmp_path):
    return make(tmp_path / "ration.db")


def sums(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


# ---- show


def test_show_is_a_table_for_people(ledger):
    told = ration("ledger", "show", ledger)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == (
        """\
opened 2026-11-30T12:00:00Z by process 4711 (ration 0.1.0), closed in order 2026-11-30T12:00:01.5Z

quotas
  limit          key                          window                                        used  mark  observed left"""
        """  observed max  others  as of
  openai/hourly  say "hi", ?[31mred?[0m??bye  the last 1 h                                  1     -     -            """
        """  -             0       2026-11-30T12:00:00Z
  openai/rpd     /user=7                      2026-11-30T00:00:00Z to 2026-12-01T00:00:00Z  4     10    0            """
        """  1000          0.5     2026-11-30T12:00:00Z

slow buckets
  limit        key  available  as of
  openai/slow       -0.25      2026-11-30T12:00:00Z

adaptive limits
  limit           key   limit  decreased               as of
  openai/at-once  main  12     2026-11-30T11:59:59.5Z  2026-11-30T12:00:00Z

penalties
  limit       key      began                 until                   429s  as of
  openai      main     2026-11-30T12:00:00Z  2026-11-30T12:00:02Z    1     2026-11-30T12:00:00Z
  openai/rpd  /user=7  2026-11-30T12:00:00Z  2026-11-30T12:00:30.5Z  2     2026-11-30T12:00:00Z

circuits
  provider  key   state  tries again           as of
  openai    main  open   2026-11-30T12:00:05Z  2026-11-30T12:00:00Z

paused by operators
  limit       key      paused   as of
  openai/rpd  /user=8  yes      2026-11-30T12:00:00Z
  openai/rpd  /user=9  no more  2026-11-30T12:00:00Z

runs of jobs
  job          at                    requests  retries  children
  sync-meraki  2026-11-30T11:00:00Z  120       3        40
"""
    )


def test_times_are_utc_wherever_one_is(ledger):
    there = ration("ledger", "show", ledger, env={**os.environ, "TZ": "Asia/Kathmandu", "LC_ALL": "de_DE.UTF-8"})
    assert there.stdout == ration("ledger", "show", ledger).stdout


def test_an_empty_one_says_so(tmp_path):
    tables = (
        "quotas", "quota_parts", "quota_timeline", "buckets", "adaptive", "penalties", "breakers", "pauses", "runs",
    )
    path = make(tmp_path / "x.db", "".join(f"DELETE FROM {table};" for table in tables))
    told = ration("ledger", "show", path)
    assert told.returncode == 0
    assert told.stdout.splitlines()[1:] == ["nothing is kept in it yet"]


def test_what_a_kill_left_is_told(ledger):
    sql(ledger, "UPDATE meta SET value = 0 WHERE name = 'clean'")
    assert ration("ledger", "show", ledger).stdout.splitlines()[0] == (
        "opened 2026-11-30T12:00:00Z by process 4711 (ration 0.1.0), in use since, or its process was killed"
    )


# ---- export


def test_export_is_every_record_as_a_line(ledger):
    told = ration("ledger", "export", ledger)
    assert (told.returncode, told.stderr) == (0, "")
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert [line["type"] for line in lines] == [
        "ledger", "quota", "quota", "bucket", "adaptive", "penalty", "penalty", "breaker", "pause", "pause", "run",
    ]
    assert lines[0] == {
        "type": "ledger", "version": "0.1.0", "clean": True, "pid": 4711, "openedAt": 1796040000000,
        "closedAt": 1796040001500,
    }
    assert lines[1]["key"] == ODD_KEY
    assert lines[2] == {
        "type": "quota", "provider": "openai", "limit": "rpd", "key": "/user=7", "at": 1796040000000,
        "windowStart": 1795996800000, "windowEnd": 1796083200000, "used": 4, "mark": 10, "remaining": 995.5,
        "max": 1000, "external": 0.5, "exhausted": True, "exhaustedUntil": 1796083200000,
        "parts": [[1796000400000, 2.5], [1796039940000, 1.5]],
        "timeline": [[1795993140000, 3], [1796000400000, 2.5], [1796039940000, 1.5]],
    }
    assert lines[-1] == {
        "type": "run", "job": "sync-meraki", "at": 1796036400000, "requests": 120, "retries": 3, "fanOut": 40,
    }
    assert ration("ledger", "export", "--format", "json", ledger).stdout == told.stdout


def test_export_as_csv(ledger):
    told = ration("ledger", "export", ledger, "--format", "csv", text=False)
    assert (told.returncode, told.stderr) == (0, b"")
    rows = list(csv.DictReader(io.StringIO(told.stdout.decode(), newline="")))
    assert all(None not in row and None not in row.values() for row in rows)  # as many cells as names, everywhere
    assert [row["type"] for row in rows] == [
        "quota", "quota", "part", "part", "timeline", "timeline", "timeline", "bucket", "adaptive", "penalty",
        "penalty", "breaker", "pause", "pause", "run",
    ]
    assert rows[0]["scope_key"] == ODD_KEY
    assert (rows[0]["window_start"], rows[0]["rolling"]) == ("", "3600000")
    filled = {name: value for name, value in rows[1].items() if value}
    assert filled == {
        "type": "quota", "provider": "openai", "limit_name": "rpd", "scope_key": "/user=7", "used": "4", "mark": "10",
        "window_start": "2026-11-30T00:00:00Z", "window_end": "2026-12-01T00:00:00Z", "rolling": "0",
        "window_offset": "0", "carried": "0", "in_flight": "0", "observed_remaining": "995.5", "observed_max": "1000",
        "external": "0.5", "exhausted": "1", "exhausted_until": "2026-12-01T00:00:00Z",
        "updated_at": "2026-11-30T12:00:00Z",
    }
    assert {name: value for name, value in rows[3].items() if value} == {
        "type": "part", "provider": "openai", "limit_name": "rpd", "scope_key": "/user=7", "used": "1.5",
        "at": "2026-11-30T11:59:00Z",
    }
    assert rows[-1]["job"] == "sync-meraki"


def test_the_salt_is_in_nothing_that_is_printed(ledger):
    for arguments in (["show"], ["export"], ["export", "--format", "csv"]):
        told = ration("ledger", *arguments, ledger, text=False)
        for form in (SALT, SALT.hex().encode(), SALT.hex().upper().encode(), b"salt"):
            assert form not in told.stdout + told.stderr


# ---- who else has it


def test_it_is_read_while_somebody_writes(ledger):
    writer = sqlite3.connect(ledger, isolation_level=None)
    writer.execute("UPDATE quotas SET used = 5000000 WHERE id = 1")  # in the log, not in the file
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE quotas SET used = 6000000 WHERE id = 1")
    before = sums(ledger.parent)
    told = ration("ledger", "export", ledger)
    assert json.loads(told.stdout.splitlines()[2])["used"] == 5
    assert {name: it for name, it in sums(ledger.parent).items() if not name.endswith("-shm")} == {
        name: it for name, it in before.items() if not name.endswith("-shm")
    }
    writer.execute("COMMIT")
    writer.close()


def test_a_running_gateway_is_looked_into(provider, gateway, tmp_path):
    daily = {"name": "daily", "kind": "quota", "max": 9, "window": a_day(), "scope": {"by": ["account"]}}
    path = tmp_path / "kept.db"
    settings = {"ledger": {"path": str(path), "flush": "50ms"}}
    gw = gateway(one_provider(provider(hello).url, [daily], settings=settings))
    for _ in range(3):
        assert gw.call("GET", "/a/x").status == 200
    asked = gw.status()["now"]
    gw.until(lambda status: status["now"] - status["ledger"]["ageMs"] > asked, "flushed")
    for _ in range(5):
        lines = [json.loads(line) for line in ration("ledger", "export", path).stdout.splitlines()]
        assert (lines[0]["clean"], lines[0]["pid"]) == (False, gw.popen.pid)
        assert [line["used"] for line in lines if line.get("limit") == "daily"] == [3]
        assert "p/daily" in ration("ledger", "show", path).stdout
    assert gw.call("GET", "/a/x").status == 200
    assert gw.status()["ledger"]["failing"] is False
    assert gw.stop() == 0
    kept = [json.loads(line) for line in ration("ledger", "export", path).stdout.splitlines()]
    assert kept[0]["clean"] is True
    assert [line["used"] for line in kept if line.get("limit") == "daily"] == [4]
    assert not path.with_name("kept.db-wal").exists()


def test_looking_leaves_no_trace(ledger):
    before = sums(ledger.parent)
    assert list(before) == ["ration.db"]
    for arguments in (["show"], ["export"]):
        assert ration("ledger", *arguments, ledger).returncode == 0
    assert sums(ledger.parent) == before


# ---- what is no ledger


@pytest.mark.parametrize(
    ("spoil", "want"),
    [
        ("UPDATE quotas SET used = -1 WHERE id = 1", "quotas, the row of openai/rpd, '/user=7': is out of range"),
        ("DROP TABLE breakers", "is broken: the table breakers is missing, or is not as it was made"),
        ("PRAGMA application_id = 7", "is not a ledger, but a database of something else"),
        ("PRAGMA user_version = 2", "was written by a newer version of ration (ledger version 2, this one knows 1)"),
    ],
)
def test_what_is_broken_is_named(ledger, spoil, want):
    sql(ledger, spoil)
    before = sums(ledger.parent)
    for verb in ("show", "export"):
        told = ration("ledger", verb, ledger)
        assert (told.returncode, told.stdout) == (2, "")
        assert told.stderr.startswith(f"ration ledger: {ledger}: ") and want in told.stderr
    assert sums(ledger.parent) == before


def test_files_that_are_not_there(tmp_path):
    for path, want in (
        (tmp_path / "none.db", "there is no such file"),
        (tmp_path, "is a folder, not a file"),
        ("/dev/null", "is a device or a pipe, not a file"),
    ):
        told = ration("ledger", "show", path)
        assert (told.returncode, told.stdout) == (2, "")
        assert told.stderr == f"ration ledger: {path}: {want}\n"
    assert list(tmp_path.iterdir()) == []


def test_usage():
    for arguments, want in (
        ([], "show or export?"),
        (["look", "x"], "'look' is neither show nor export"),
        (["show"], "which file?"),
        (["show", ""], "which file?"),
        (["show", "a", "b"], "one ledger at a time"),
        (["show", "--format", "csv", "x"], "unknown option '--format'"),
        (["export", "x", "--format"], "--format is json or csv"),
        (["export", "x", "--format", "xml"], "--format is json or csv"),
    ):
        told = ration("ledger", *arguments)
        assert (told.returncode, told.stdout) == (2, "")
        assert told.stderr.splitlines()[0] == f"ration ledger: {want}"
    assert ration("ledger", "--help").returncode == 0


def test_a_full_disk_is_no_success(ledger):
    with open("/dev/full", "w") as full:
        told = subprocess.run([RATION, "ledger", "export", ledger], stdout=full, stderr=subprocess.PIPE, text=True)
    assert told.returncode == 2
    assert "cannot write the output" in told.stderr
