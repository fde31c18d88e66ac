# SPDX-License-Identifier: MIT
"""Fixtures: every process that a test starts is ended with it, and every gateway must end clean."""

import os
import resource
import subprocess

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


@pytest.fixture(scope="session")
def ca(tmp_path_factory):
    """A CA of our own, a certificate of it for localhost and 127.0.0.1, and one for another name."""
    folder = tmp_path_factory.mktemp("ca")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip
    for name, alternative in (("good", "DNS:localhost,IP:127.0.0.1"), ("other", "DNS:other.example")):
        (folder / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr")  # fmt: skip
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")  # fmt: skip
    return folder
