# SPDX-License-Identifier: MIT
"""Semaphores from C (ration/fleet.h), by a program that uses them as a stranger would: every option and guarantee of
theirs, by what it prints. Two fleets in one program stand for two processes; where a process must die there are two.
"""

import os
import re
import signal
import subprocess

import pytest

from house import RATION, free_port, until
from redis_house import LOOPBACK, Redis, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no {missing()}")
CLIENT = os.path.join(os.path.dirname(RATION), "tests", "fleet", "semaphore_client")
SAID = {
    "shared": ["a granted", "a granted", "b adaptive_full", "b waited granted", "held 1 1 limit 2"],
    "throttled": ["a granted"] * 6 + ["a adaptive_full", "limit 4"],
    "endings": ["a granted", "time deadline", "cancel cancelled", "cancel before cancelled", "dispose draining",
                "after draining", "held 0"],
    "classes": ["slow granted", "slow granted", "slow adaptive_full", "fast granted", "fast granted",
                "other unknown_class"],
    "crowd": ["slow granted", "idle granted", "slow adaptive_full", "idle adaptive_full", "fast granted",
              "fast granted", "fast adaptive_full"],
    "wrapped": ["returned 0", "returned 7 limit 8", "returned 7 mapped 7 limit 4 held 0", "acquired 3 released 3"],
    "renewed": ["a granted", "lost 0", "b adaptive_full"],
    "faults": ["invalid argument", "1 initialLimit", "1 initialLimit", "1 pauseOnRetryAfter",
               "invalid argument", "1 redis"],
    "bounds": ["a granted", "limit 3", "a granted", "limit 3", "limit 5 held 5", "a granted", "limit 1",
               "a granted"],
    "growth": ["a granted", "a adaptive_full", "a adaptive_full", "a adaptive_full", "limit 1",
               "a granted", "quiet 1", "a granted", "limit 4"],
    "softened": ["a granted", "limit 6", "a granted", "limit 4"],
    "measured": ["refused deadline waited 1", "released failure 1 held 1", "released throttled 1 limit 1",
                 "acquired 2 refused 1 released 2"],
    "lapse": ["a granted", "b granted", "lost 1 told 1 held 0"],
}


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis")) as one:
        yield one


def said(url, scenario):
    done = subprocess.run([CLIENT, url, scenario], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


class Asked:
    """A program that lets the test do something in between."""

    def __init__(self, url, scenario, client=CLIENT):
        self.process = subprocess.Popen([client, url, scenario], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)

    def says(self, count):
        return [self.process.stdout.readline().strip() for _ in range(count)]

    def go_on(self):
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()

    def rest(self):
        told = self.process.communicate(timeout=120)[0].splitlines()
        assert self.process.returncode == 0
        return told

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """It takes ten seconds, which others use meanwhile."""
    with Redis(tmp_path_factory.mktemp("patient")) as one, Asked(one.url, "patient") as program:
        yield program


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("scenario", SAID)
def test_scenarios(redis, scenario):
    """The scripts that an earlier one has used are known to the server, others are not."""
    redis.ask("FLUSHALL")
    assert said(redis.url, scenario) == SAID[scenario]


def test_in_any_order_of_scripts(redis):
    """What is told of a lease is carried out in order, though the server lacks a script in the middle."""
    redis.ask("SCRIPT", "FLUSH")
    redis.ask("FLUSHALL")
    assert said(redis.url, "shared") == SAID["shared"]
    redis.ask("FLUSHALL")
    assert said(redis.url, "throttled") == SAID["throttled"]


def test_without_a_store():
    assert said(f"redis://{LOOPBACK}:{free_port()}", "away") == [
        "away store_unavailable", "told yes", "local granted", "local granted", "local store_unavailable", "held 2"]


def test_a_holder_that_dies(redis):
    """Its slot comes back within one time to live, to whoever waits."""
    redis.ask("FLUSHALL")
    holders = [subprocess.Popen([CLIENT, redis.url, "hold"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        until(lambda: any(b"1" == redis.ask("EXISTS", key).strip() for key in held(redis)), "a lease")
        first = until(lambda: next((one for one in holders if is_told(one)), None), "one of them knows")
        second = next(one for one in holders if one is not first)
        first.send_signal(signal.SIGKILL)
        assert second.stdout.readline() == "a granted\n"
    finally:
        for one in holders:
            one.kill()
            one.wait()
            one.stdout.close()


def test_ids_and_keys(redis):
    """Nothing of a semaphore is in the store before it is used; all that is then begins with its name."""
    redis.ask("FLUSHALL")
    with Asked(redis.url, "ids") as program:
        assert program.says(1) == ["made"]
        assert not [key for key in keys(redis) if "/" in key]
        program.go_on()
        assert program.says(4) == ["a granted", "a adaptive_full", "other granted", "held"]
        names = {key.partition("}")[0] for key in keys(redis)}
        assert names == {"ration:1:{default", "ration:1:{default/api", "ration:1:{default/other%20api"}
        until(lambda: 20 < seconds_left(redis) <= 30, "a lease of 30 s")
        program.go_on()
        assert program.rest() == []


def seconds_left(redis):
    end = float(redis.ask("ZRANGE", "ration:1:{default/api}:leases", 0, 0, "WITHSCORES").split()[1])
    second, micros = map(int, redis.ask("TIME").split())
    return end / 1e6 - second - micros / 1e6


def test_the_limit_is_kept(tmp_path):
    """The store dies and comes back: acquires are refused meanwhile, and the limit has not forgotten the throttle."""
    with Redis(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as one, Asked(one.url, "healed") as program:
        assert program.says(3) == ["a granted", "limit 4", "take it away"]
        one.kill()
        program.go_on()
        assert program.says(2) == ["a store_unavailable", "bring it back"]
        one.start()
        program.go_on()
        assert program.rest() == ["a granted"] * 4 + ["a adaptive_full", "away 1 back 1 told 1"]


def test_a_store_that_forgets(tmp_path):
    """What is held is entered anew, whatever became of it in the store: nobody else gets the slot."""
    with Redis(tmp_path) as one, Asked(one.url, "bereft") as program:
        assert program.says(2) == ["a granted", "take it away"]
        one.kill()
        program.go_on()
        assert program.says(1) == ["bring it back"]
        one.start()
        until(lambda: held(one), "the lease")
        program.go_on()
        assert program.rest() == ["b adaptive_full", "lost 0 held 1"]


def unheard(url, password):
    done = subprocess.run([CLIENT, url, "unheard"], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "STORE_USER": "someone", "STORE_PASSWORD": password})
    assert password not in done.stdout + done.stderr
    return done.stdout, done.stderr


def test_errors_without_a_listener():
    """One line of standard error, with what it is of and why."""
    told, errors = unheard(f"redis://{LOOPBACK}:{free_port()}", "unlikely")
    assert told == "a store_unavailable\n"
    assert errors.startswith("ration: semaphore 'api': the store is away, and acquires are refused: ")
    assert errors.count("\n") == 1 and "refused" in errors.partition("refused: ")[2]


def test_the_password_is_nowhere(tmp_path):
    with Redis(tmp_path, "--user", "someone", "on", ">correct-horse", "~*", "&*", "+@all") as one:
        assert unheard(one.url, "correct-horse") == ("a granted\n", "")

        def is_told_why():
            """It may be refused before the server has answered, and then nobody knows yet why."""
            told, errors = unheard(one.url, "wrong-horse")
            assert told == "a store_unavailable\n" and "horse" not in errors
            return "WRONGPASS" in errors

        until(is_told_why, "why it is not let in")
        told, errors = unheard(f"redis://someone:correct-horse@{LOOPBACK}:{one.port}", "correct-horse")
        assert told.startswith("redis ") and errors == ""


def test_times_that_nobody_has_said(patient):
    assert patient.rest() == ["a granted", "limit 4", "a granted", "window granted", "a deadline", "ten seconds 1",
                              "window granted five seconds 1", "a granted", "limit 2"]


def keys(redis):
    return redis.ask("KEYS", "*").decode().splitlines()


def held(redis):
    return [key.decode() for key in redis.ask("KEYS", "*lease:*").split()]


def is_told(process):
    os.set_blocking(process.stdout.fileno(), False)
    try:
        return bool(os.read(process.stdout.fileno(), 100))
    except BlockingIOError:
        return False
    finally:
        os.set_blocking(process.stdout.fileno(), True)


def test_the_example(redis):
    """Built as a stranger would; all of its calls come to an end, and what it prints of the limit is so."""
    redis.ask("FLUSHALL")
    example = os.path.join(os.path.dirname(RATION), "examples", "example-semaphore")
    done = subprocess.run([example, redis.url], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    *limits, last = done.stdout.splitlines()
    good, bad = map(int, re.fullmatch(r"(\d+) calls succeeded, (\d+) were too many", last).groups())
    assert good + bad == 30
    assert all(re.fullmatch(r"the limit is now \d+", line) for line in limits)
    assert bool(bad) <= bool(limits)
