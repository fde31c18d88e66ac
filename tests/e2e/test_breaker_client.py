# SPDX-License-Identifier: MIT
"""Breakers from C (ration/fleet.h), by programs that use them as a stranger would: every option and guarantee of
theirs, by what is printed. Two fleets in one program stand for two processes; where a process must die there are two.
"""

import contextlib
import os
import re
import signal
import subprocess

import pytest

from house import RATION, free_port, until
from redis_house import LOOPBACK, Redis, missing
from test_semaphore import Asked

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no {missing()}")
FOLDER = os.path.join(os.path.dirname(RATION), "tests", "fleet")
CLIENT, GUARDED = (os.path.join(FOLDER, name) for name in ("breaker_client", "guarded_client"))
OPENED = "closed > open: 3 failures in a row"
ALONE = {
    "shared": ["a closed", "b open", "a circuit_open", "b circuit_open", "b circuit_open",
               "calls 6 blocked 3 called 6", OPENED, OPENED],
    "late_comer": [OPENED, "b open", OPENED, "b circuit_open"],
    "probes": ["b half-open", "b called", "a closed", "b closed", "a called"],
    "strategies": ["in-a-row xxox closed", "three oxxx open", "too-few xxx closed", "a-half oxox open",
                   "a-quarter ooox closed", "some ooxx closed", "most oxxx open"],
    "quorum": ["a closed", "a open", "b open"],
    "checks": ["checkers 0", "checker 1 open 1 ok 0", "b circuit_open", "a called", "checkers 0", "took its time 1"],
    "slow_check": ["a circuit_open", "a closed", "at once 1"],
    "idle": ["a called", "a open", "closed > open: 2 health checks in a row failed while idle"],
}
WITH = {
    "guarded": ["a called", "a called", "limit 4", "a called", "a called", "a circuit_open", "a circuit_open",
                "a circuit_open", "blocked 3 acquired 4 refused 0 held 0", "held 1"],
    "per_call": ["a called", "limit 8", "limit 4", "a unknown_class", "a invalid argument"],
    "saturated": ["a deadline", "a deadline", "a deadline", "a closed", "called 0 blocked 0"],
    "opening": ["waited circuit_open at once 1", "waited circuit_open at once 1", "blocked 2 called 3 held 1",
                "had waited 1"],
    "spans": ["waited called without the wait 1"],
    "crowd": ["all 200 counted 1 held 0"],
    "life": ["before invalid argument", "before closed", "started called", "stopped draining", "stopped by it called 7",
             "inside invalid argument", "inside invalid argument", "inside invalid argument"],
    "cancelled": ["cancelled 30 called 0", "before cancelled", "within called held 0"],
    "draining": ["waited draining blocked 0"],
    "last_check": ["inside invalid argument checked 1", "a closed"],
    "faults": ["invalid argument ", "the configuration has faults breaker.strategy",
               "the configuration has faults breaker.quorum", "the configuration has faults health",
               "the configuration has faults redis"],
}
SAID = {**ALONE, **WITH}


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis")) as one:
        yield one


class Said:
    """What a program says, from beginning to end."""

    def __init__(self, url, scenario):
        client = GUARDED if scenario in WITH else CLIENT
        self.process = subprocess.Popen([client, url, scenario], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, "FLEET_NAME": scenario})

    def lines(self):
        told, errors = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, told + errors
        return told.splitlines()

    def close(self):
        self.process.kill()
        self.process.communicate()


def said(url, scenario):
    with contextlib.closing(Said(url, scenario)) as one:
        return one.lines()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """They sleep most of the time, so all do it at once, each as a fleet of its own."""
    with Redis(tmp_path_factory.mktemp("programs")) as one, contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(contextlib.closing(Said(one.url, name))) for name in SAID}


@pytest.mark.parametrize("scenario", SAID)
def test_scenarios(programs, scenario):
    assert programs[scenario].lines() == SAID[scenario]


@contextlib.contextmanager
def two(redis, *scenarios):
    """Two processes that are ready."""
    redis.ask("FLUSHALL")
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(Asked(redis.url, scenario, CLIENT)) for scenario in scenarios]
        assert [one.says(1) for one in both] == [["ready"]] * len(both)
        yield both


def lines_of(process):
    """What it has said by now."""
    os.set_blocking(process.stdout.fileno(), False)
    try:
        return (os.read(process.stdout.fileno(), 1000) or b"").decode().splitlines()
    except BlockingIOError:
        return []
    finally:
        os.set_blocking(process.stdout.fileno(), True)


def test_a_checker_that_dies(redis):
    """Of three processes one is asked to look, and killed; another one is asked then, and all hear what it found."""
    with two(redis, "survivor", "survivor", "survivor") as all_three:
        heard = {one: [] for one in all_three}
        for one in all_three:
            one.go_on()

        def asked():
            for one, lines in heard.items():
                lines += lines_of(one.process)
            return [one for one, lines in heard.items() if "asked" in lines]

        until(lambda: asked() and all("open" in lines for lines in heard.values()), "it is open for all, and asked")
        first = asked()[0]
        first.process.send_signal(signal.SIGKILL)
        others = [one for one in all_three if one is not first]
        until(lambda: any(one in asked() for one in others), "another one is asked")
        for one in others:
            one.go_on()
        # On a slow machine the other one is asked, too, before that answer has come.
        assert [[line for line in one.rest() if line != "asked"] for one in others] == [["a closed"]] * 2


def test_an_answer_that_is_late(redis):
    """It says that all is well, but another process has been asked meanwhile, and has found otherwise."""
    redis.ask("FLUSHALL")
    with Asked(redis.url, "overtaken", CLIENT) as late:
        assert late.says(1) == ["asked"]
        late.process.send_signal(signal.SIGSTOP)
        with Asked(redis.url, "overtakes", CLIENT) as other:
            assert other.says(1) == ["asked"]
            other.go_on()
            assert other.rest() == ["still open"]
        late.process.send_signal(signal.SIGCONT)
        late.go_on()
        assert late.rest() == ["still open"]


def test_messages_that_are_lost(tmp_path):
    """Nothing can be published: where the circuit stands is asked for."""
    with Redis(tmp_path, "--user", "default", "on", "nopass", "~*", "resetchannels", "+@all") as one:
        assert said(one.url, "shared") == SAID["shared"]
        one.ask("FLUSHALL")
        assert said(one.url, "opening") == SAID["opening"]


def test_without_a_store():
    """What was never heard of is closed: calls go, and it is told once."""
    assert said(f"redis://{LOOPBACK}:{free_port()}", "away") == ["a called"] * 5 + ["a closed", "told 1 away 1"]


def test_results_are_told_later(tmp_path):
    """The store dies and comes back: calls have gone on, and their failures open the circuit then."""
    with Redis(tmp_path) as one, Asked(one.url, "healed", CLIENT) as program:
        assert program.says(2) == ["a called", "take it away"]
        one.kill()
        program.go_on()
        assert program.says(5) == ["a called"] * 3 + ["away closed", "bring it back"]
        one.start()
        program.go_on()
        assert program.rest() == ["back open", "told 1"]


@pytest.mark.parametrize("scenario", ["bounded", "newest"])
def test_no_more_are_kept_than_512(tmp_path, scenario):
    """512 failures are told of those that were kept; with one more the 513 are there that open the circuit."""
    with Redis(tmp_path) as one, Asked(one.url, scenario, CLIENT) as program:
        assert program.says(2) == ["a called", "take it away"]
        one.kill()
        program.go_on()
        assert program.says(2) == ["away closed", "bring it back"]
        one.start()
        program.go_on()
        assert program.rest() == ["back closed", "a called", "then open"]


def test_results_that_are_out_of_date(tmp_path):
    """The circuit has been opened by others when the store is back: old failures do not open it again."""
    with Redis(tmp_path) as one, Asked(one.url, "outdated", CLIENT) as program:
        assert program.says(2) == ["a called", "take it away"]
        one.kill()
        program.go_on()
        assert program.says(4) == ["a called"] * 3 + ["bring it back, open"]
        program.process.send_signal(signal.SIGSTOP)
        one.start()
        subprocess.run([CLIENT, one.url, "opens"], check=True, timeout=120)
        program.process.send_signal(signal.SIGCONT)
        program.go_on()
        assert program.rest() == ["opened again 0", "later closed"]


def test_open_without_a_store(tmp_path):
    """An open circuit stays so while the store is away, whatever the time; a store that has forgotten it has not."""
    with Redis(tmp_path) as one, Asked(one.url, "bereft", CLIENT) as program:
        assert program.says(1) == ["take it away"]
        one.kill()
        program.go_on()
        assert program.says(2) == ["a circuit_open", "bring it back"]
        one.start()
        program.go_on()
        assert program.rest() == ["a called"]


def test_errors_without_a_listener():
    done = subprocess.run([CLIENT, f"redis://{LOOPBACK}:{free_port()}", "unheard"], capture_output=True, text=True,
                          timeout=120)
    assert done.stdout == "a called\n"
    assert done.stderr.startswith("ration: breaker 'api': the store is away, and the circuit stays closed: ")
    assert done.stderr.count("\n") == 1


def test_keys_and_threads(redis):
    """All keys of an id lie in one slot; the checks have a thread with a name."""
    with two(redis, "survivor") as (one,):
        tasks = f"/proc/{one.process.pid}/task"
        names = {open(f"{tasks}/{task}/comm", encoding="ascii").read().strip() for task in os.listdir(tasks)}
        assert {"ration-fleet", "ration-health"} <= names
        one.go_on()
        until(lambda: "open" in lines_of(one.process), "open")
        keys = {key.partition("}")[0] for key in redis.ask("KEYS", "*").decode().split()}
        assert keys == {"ration:1:{default", "ration:1:{default/api"}


def example(name, redis):
    redis.ask("FLUSHALL")
    path = os.path.join(os.path.dirname(RATION), "examples", f"example-{name}")
    done = subprocess.run([path, redis.url], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    return done.stdout.splitlines()


def test_the_example(redis):
    """Built as a stranger would; it fails, is cut off, is looked after, and goes on."""
    told = example("fleet-breaker", redis)
    assert "closed > open: 3 failures in a row" in told
    assert "open > closed: health check succeeded" in told
    assert re.fullmatch(r"\d+ succeeded, \d+ failed, [1-9]\d* were blocked", told[-1])


def test_the_guarded_example(redis):
    """Breaker and semaphore together: too many is a failure of the one, and a lower limit of the other."""
    told = example("guarded", redis)
    good, bad, none = map(int, re.fullmatch(r"(\d+) succeeded, (\d+) failed, (\d+) were not made", told[-1]).groups())
    assert good + bad + none == 40
    assert all(re.fullmatch(r"the limit is now \d+|\S+ > \S+: .+", line) for line in told[:-1])
