# SPDX-License-Identifier: MIT
"""Fixtures: every process that a test starts is ended with it, and every gateway must end clean."""

import os
import resource

import pytest

from house import Gateway
from provider import Provider


def pytest_configure():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# What a test may be skipped for on a developer's machine, but not where everything was to be installed.
ALLOWED_SKIPS = ("the sanitizer wants to be loaded first", "the hour ended meanwhile",
                 "takes three minutes of the clock")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI a missing tool is a failure."""
    report = (yield).get_result()
    allowed = any(why in str(report.longrepr) for why in ALLOWED_SKIPS)
    if report.skipped and not allowed and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"a missing tool is a failure in CI: {report.longrepr}"


@pytest.fixture
def provider():
    """Start fake providers: provider(handler) -> Provider."""
    started = []

    def start(handler, **options):
        started.append(Provider(handler, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def gateway(tmp_path):
    """Start gateways: gateway(config) -> Gateway. Each must end with nothing held."""
    started = []

    def start(config, *arguments):
        started.append(Gateway(config, tmp_path, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.close()
