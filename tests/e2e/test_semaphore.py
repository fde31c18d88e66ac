# SPDX-License-Identifier: MIT
"""Semaphores from C (ration/fleet.h), by a program that uses them as a stranger would: every option and guarantee of
theirs, by what it prints. Two fleets in one program stand for two processes; where a process must die there are two.
"""

import os
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
    "wrapped": ["returned 0", "returned 7 limit 8", "returned 7 mapped 7 limit 4 held 0", "acquired 3 released 3"],
    "renewed": ["a granted", "lost 0", "b adaptive_full"],
    "faults": ["invalid argument", "1 initialLimit", "1 pauseOnRetryAfter", "invalid argument", "1 redis"],
}


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis")) as one:
        yield one


def said(url, scenario):
    done = subprocess.run([CLIENT, url, scenario], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


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
