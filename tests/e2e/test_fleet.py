# SPDX-License-Identifier: MIT
"""A fleet's scripts in a real Redis: decisions equal to the core's, and what happens to the store meanwhile.

FLEET_TRACES=5000 compares so many random traces instead of 150 (60 under the sanitizers); FLEET_SEED=N begins at
another one.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from house import RATION, ROOT, until
from redis_house import Redis, missing, version

sys.path.insert(0, str(ROOT / "tests" / "differential"))
import edges  # noqa: E402
import follow_traces  # noqa: E402
import share_traces  # noqa: E402
import traces  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
PROGRAMS = pathlib.Path(RATION).parent / "tests" / "differential"
SLOT = ('{"op":"config","providers":[{"name":"p","limits":[{"name":"slots","kind":"concurrency","max":1}]}],'
        '"accounts":[{"name":"a","provider":"p"}]}\n')


def acquire(at, name):
    return f'{{"at":{at},"op":"acquire","id":"{name}","account":"a"}}\n'


class Store(Redis):
    """Asked for by its socket."""

    def __init__(self, folder, *options):
        super().__init__(folder, *options)
        self.url = f"unix:{self.path}"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    if missing() is not None:
        pytest.skip(f"no {missing()}")
    one = Store(tmp_path_factory.mktemp("redis"))
    yield one
    one.close()


def replay(url, trace, **options):
    return subprocess.run([RATION, "replay", "--store", url, str(trace)], capture_output=True, text=True,
                          timeout=120, **options)


class Replaying:
    """A replay that is fed some lines at a time; blank ones fill the piece that it reads at once."""

    PIECE = 64 * 1024

    def __init__(self, url):
        self.process = subprocess.Popen([RATION, "replay", "--store", url, "-"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def feed(self, text):
        self.process.stdin.write(text + "\n" * (self.PIECE - len(text)))
        self.process.stdin.flush()

    def end(self):
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


# Traces that a store cannot play, and why not.
ALONE = "is for an engine alone"
STRICT = "`durability: strict` is what a ledger promises"
NOT_PLAYED = {
    "clock-step": ALONE,  # its own clock, which goes back
    "reload-limits": ALONE, "reload-names": ALONE, "reload-share": ALONE,  # members bring their rules with each call
    "restart": ALONE,  # a state read from a ledger; the store is the state
    "operate-drain": ALONE,  # of one process
    "strict-mark": STRICT, "strict-settled": STRICT, "strict-unclean": STRICT,  # marks ahead, in a ledger
}


def test_golden_traces(store):
    """All that can be carried out are: the rest says why not."""
    others = {}
    for trace in sorted(GOLDEN.glob("*.trace.jsonl")):
        done = replay(store.url, trace)
        assert done.returncode in (0, 2), f"{trace.name}: {done.stdout}{done.stderr}"
        if done.returncode == 0:
            assert "answers of the store are the core's" in done.stdout
        else:
            assert done.stderr.startswith(f"{trace}:")
            others[trace.name.removesuffix(".trace.jsonl")] = done.stderr
    assert others.keys() == NOT_PLAYED.keys(), others
    for name, why in NOT_PLAYED.items():
        assert why in others[name]


@pytest.mark.parametrize("family", [traces, share_traces, follow_traces], ids=lambda family: family.__name__)
def test_random_traces(family, store, tmp_path):
    count = int(os.environ.get("FLEET_TRACES", "60" if "build-asan" in RATION else "150"))
    first = int(os.environ.get("FLEET_SEED", "1"))
    faults, answers = [], 0

    def compare(seed):
        path = tmp_path / f"{seed}.jsonl"
        path.write_text(family.trace(seed))
        done = replay(store.url, path)
        path.unlink()
        return seed, done

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for seed, done in pool.map(compare, range(first, first + count)):
            if done.returncode == 0:
                answers += int(done.stdout.split()[0])
            else:
                faults.append(f"python3 tests/differential/{family.__name__}.py {seed}: {done.stdout}{done.stderr}")
    assert not faults, "\n".join(faults[:3])
    assert answers > 40 * count
    assert store.ask("DBSIZE").strip() == b"0", "a replay removes its fleet"


@pytest.mark.parametrize("row", edges.EDGES.values(), ids=edges.EDGES.keys())
def test_edges(row, store, tmp_path):
    """Where whole numbers end, and what random traces meet too seldom."""
    path = tmp_path / "t.jsonl"
    path.write_text(edges.trace(row))
    done = replay(store.url, path)
    assert done.returncode == 0, done.stdout + done.stderr


OPERATED = ('{"op":"config","providers":[{"name":"p","limits":[{"name":"q","kind":"quota","counts":"cost","max":10,'
            '"window":{"rolling":"1m"}}]}],"accounts":[{"name":"a","provider":"p"}],'
            '"settings":{"instance":"i","budget":{"retryReserve":"0%"}}}\n')


@pytest.mark.parametrize("calls", [
    ['"acquire","id":"x","account":"a","cost":5', '"reset","limit":"q","key":"i"', '"release","id":"x","cost":8',
     '"acquire","id":"y","account":"a","cost":1'],
    ['"acquire","id":"w","account":"a","cost":0', '"grant","limit":"q","key":"i","units":4',
     '"acquire","id":"x","account":"a","cost":4', '"acquire","id":"y","account":"a","cost":10',
     '"acquire","id":"z","account":"a","cost":4'],
], ids=["settled after a reset", "when a grant ends"])
def test_what_operators_have_done(calls, store, tmp_path):
    """What a reset has made strangers counts no more; what was granted is not there for later calls."""
    trace = tmp_path / "t.jsonl"
    trace.write_text(OPERATED + "".join(f'{{"at":{i * 10000},"op":{call}}}\n' for i, call in enumerate(calls)))
    done = replay(store.url, trace)
    assert done.returncode == 0, done.stdout + done.stderr


def shared_by(count):
    tenants = ",".join(f'"t{i}":1' for i in range(count))
    return ('{"op":"config","providers":[{"name":"p","limits":[{"name":"s","kind":"share","ceiling":1000,'
            f'"counts":"cost","tenants":{{{tenants}}},"reclaimHorizon":"1ms","idleAfter":"2ms"}}]}}],'
            '"accounts":[{"name":"a","provider":"p"}]}\n')


@pytest.mark.parametrize("count, status, told", [
    (1000, 0, "1 answers of the store are the core's"),
    (1001, 2, "limit 's' of provider 'p': a share limit has at most 1000 tenants in a fleet"),
])
def test_tenants_of_a_fleet(count, status, told, store, tmp_path):
    trace = tmp_path / "t.jsonl"
    trace.write_text(shared_by(count)
                     + '{"at":2,"op":"acquire","id":"i","account":"a","tenant":"t7","cost":1000,"hold":1}\n')
    done = replay(store.url, trace)
    assert done.returncode == status and told in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["fleet_calls", "fleet_quick", "fleet_circuits", "fleet_shares", "fleet_waits"])
def test_calls(name, store):
    if name == "fleet_quick" and version() < (7,):
        pytest.skip("older servers do not tell when a key ends")
    done = subprocess.run([PROGRAMS / name, store.url], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "CMOCKA_MESSAGE_OUTPUT": "STDOUT"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert store.ask("DBSIZE").strip() == b"0"


def test_checks_that_nobody_has_run(store, tmp_path):
    """Ten minutes of an open circuit with a health check each millisecond, while somebody waits: one is told."""
    trace = tmp_path / "t.jsonl"
    slot = {"name": "slots", "kind": "concurrency", "max": 1}
    breaker = {"strategy": "consecutive", "threshold": 1, "recovery": "healthCheck", "healthCheck": {"path": "/"},
               "backoff": {"delay": "1ms"}}
    ops = [{"op": "config", "providers": [{"name": "p", "limits": [slot], "breaker": breaker}],
            "accounts": [{"name": "a", "provider": "p"}, {"name": "b", "provider": "p"}]},
           {"at": 0, "op": "acquire", "id": "ill", "account": "a"},
           {"at": 1, "op": "release", "id": "ill", "outcome": "failure"},
           {"at": 2, "op": "acquire", "id": "holder", "account": "b"},
           {"at": 3, "op": "acquire", "id": "waiter", "account": "b", "wait": 900_000},
           {"at": 600_000, "op": "acquire", "id": "barred", "account": "a"},
           {"at": 600_001, "op": "release", "id": "holder"}]
    trace.write_text("".join(json.dumps(op) + "\n" for op in ops))
    done = replay(store.url, trace)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_circuits_are_told_of(store, tmp_path):
    """On the provider's channel: state, generation, instant, when to retry, cause, key."""
    trace = tmp_path / "t.jsonl"
    trace.write_text(
        '{"op":"config","providers":[{"name":"p","limits":[{"name":"l","kind":"concurrency","max":9}],"breaker":'
        '{"strategy":"consecutive","threshold":1,"recovery":"probe","backoff":{"delay":"1s"}}}],'
        '"accounts":[{"name":"a","provider":"p"}]}\n'
        + acquire(0, "i") + '{"at":1,"op":"release","id":"i","outcome":"failure"}\n'
        + acquire(1001, "j") + '{"at":1002,"op":"release","id":"j","outcome":"success"}\n')
    with subprocess.Popen(["redis-cli", "-s", store.path, "PSUBSCRIBE", "ration:1:*/p}:circuit"], text=True,
                          stdout=subprocess.PIPE) as ear:
        try:
            assert [ear.stdout.readline() for _ in range(3)][0] == "psubscribe\n"
            assert replay(store.url, trace).returncode == 0
            heard = [ear.stdout.readline().strip() for _ in range(3 * 9)]
        finally:
            ear.kill()
    assert [heard[at + 3:at + 9] for at in range(0, len(heard), 9)] == [
        ["1", "2", "1000", "1001000", "1 failure", "a"],
        ["2", "3", "1001000", "-", "the back-off is over", "a"],
        ["0", "4", "1002000", "-", "1 probe succeeded", "a"]]


def test_a_difference_is_shown(store):
    """Somebody removes the fleet's keys: the slot is free there, and held in the core."""
    one = Replaying(f"redis://127.0.0.1:{store.port}")
    one.feed(SLOT + acquire(0, "i"))
    until(lambda: b"lease" in store.ask("KEYS", "ration:*"), "a lease in the store")
    assert b"OK" in store.ask("FLUSHALL")
    one.feed(acquire(1, "j"))
    status, out, err = one.end()
    assert status == 1 and err == ""
    assert out.splitlines()[0].endswith(": differs")
    assert "core: refused concurrency_full" in out and "store: granted" in out


def test_forgotten_scripts_are_loaded_again(store):
    one = Replaying(store.url)
    one.feed(SLOT + acquire(0, "i"))
    until(lambda: b"lease" in store.ask("KEYS", "ration:*"), "a lease in the store")
    assert b"OK" in store.ask("SCRIPT", "FLUSH")
    one.feed(acquire(1, "j"))
    assert one.end() == (0, "3 answers of the store are the core's\n", "")  # the counter is the third


def test_a_store_that_dies(tmp_path):
    mortal = Store(tmp_path)
    one = Replaying(mortal.url)
    one.feed(SLOT + acquire(0, "i"))
    until(lambda: b"lease" in mortal.ask("KEYS", "ration:*"), "a lease in the store")
    mortal.close()
    with contextlib.suppress(BrokenPipeError):  # it may have died before it had answered
        one.feed(acquire(1, "j"))
    status, out, err = one.end()
    assert status == 2 and out == ""
    assert ": the store: " in err


def test_a_store_with_a_password(tmp_path):
    user = ["--user", "app", "on", ">wrong-horse", "~ration:*", "+@all"]
    guarded = Store(tmp_path, "--requirepass", "open sesame", *user)
    trace = tmp_path / "t.jsonl"
    trace.write_text(SLOT + acquire(0, "i"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RATION_STORE")}
    try:
        done = replay(guarded.url, trace, env=clean)
        assert done.returncode == 2 and "NOAUTH" in done.stderr
        done = replay(guarded.url, trace, env={**clean, "RATION_STORE_PASSWORD": "shut barley"})
        assert done.returncode == 2 and "WRONGPASS" in done.stderr and "barley" not in done.stderr
        done = replay(guarded.url, trace, env={**clean, "RATION_STORE_PASSWORD": "open sesame"})
        assert done.returncode == 0
        done = replay(guarded.url, trace,
                      env={**clean, "RATION_STORE_USER": "app", "RATION_STORE_PASSWORD": "wrong-horse"})
        assert done.returncode == 0
    finally:
        guarded.close()


NOT_A_STORE = ("not a store: redis://HOST[:PORT] is, or rediss:// for TLS, redis+sentinel://HOST,HOST/MASTER, "
               "redis+cluster://HOST,HOST, unix:PATH")
NO_PATH = "not a store: nothing may stand behind the hosts; a fleet uses database 0"
NO_SECRETS = "not a store: a user and a password come from the environment, not from the URL"


@pytest.mark.parametrize("url, told", [
    ("127.0.0.1:6379", NOT_A_STORE),
    ("redis://", NOT_A_STORE),
    ("redis://:6379", NOT_A_STORE),
    ("redis://h:0", NOT_A_STORE),
    ("redis://h:65536", NOT_A_STORE),
    ("redis://h:6379x", NOT_A_STORE),
    ("redis://me:secret@h:6379", NO_SECRETS),
    ("redis://h:6379/0", NO_PATH),
    ("unix:/nowhere", "/nowhere: No such file or directory"),
    ("redis://127.0.0.1:1", "127.0.0.1:1: Connection refused"),
], ids=lambda value: value[:30])
def test_no_store(url, told, tmp_path):
    trace = tmp_path / "t.jsonl"
    trace.write_text(SLOT + acquire(0, "i"))
    done = replay(url, trace)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"{trace}:2: {told}\n"


@pytest.mark.parametrize("arguments, told", [
    (["--store"], "--store needs the URL of a Redis, such as redis://127.0.0.1:6379"),
    (["--store", "unix:s", "--verify", "x"], "--store compares with the engine, --verify with what was recorded"),
], ids=["no URL", "with --verify"])
def test_arguments(arguments, told):
    done = subprocess.run([RATION, "replay", *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and told in done.stderr
