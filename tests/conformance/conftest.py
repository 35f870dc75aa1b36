"""Listeners of every transport, plain and with TLS; programs of others that talk to them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

from tests.conformance.served import Running, Served, write_certificates
from tests.conformance.transports import TRANSPORTS
from tests.lacking import lack
from tools import fetch_grpc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAIN: Final = "plain"
TLS: Final = "tls"


@pytest.fixture(scope="session", params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    """The transport under test."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the certificates of a listener."""
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session", params=[PLAIN, TLS])
def folder(request: pytest.FixtureRequest, certificates: Path) -> Path | None:
    """The certificates, or None for plaintext."""
    return certificates if request.param == TLS else None


@pytest.fixture(scope="session")
def running() -> Iterator[Running]:
    """The listeners that all tests of this process share."""
    with Running() as listeners:
        yield listeners


@pytest.fixture
def served(transport: str, folder: Path | None, running: Running) -> Served:
    """A listener that other tests use, too."""
    return running.get(transport, folder)


@pytest.fixture
def listeners(folder: Path | None, running: Running) -> dict[str, Served]:
    """One listener of each transport: both ends mix."""
    return {name: running.get(name, folder) for name in TRANSPORTS}


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder that `make grpc` fills; without it the test fails in CI and skips elsewhere."""
    folder = fetch_grpc.PROGRAMS.folder(os.environ)
    if not fetch_grpc.is_complete(folder):
        names = ", ".join(fetch_grpc.NAMES)
        lack(f"programs of others are needed, and {folder} does not hold them ({names}): make grpc")
    return folder
