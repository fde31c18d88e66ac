# SPDX-License-Identifier: MIT
"""Fixtures: every process that a test starts is ended with it, and every gateway must end clean."""

import resource

import pytest

from house import Gateway
from provider import Provider


def pytest_configure():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


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
