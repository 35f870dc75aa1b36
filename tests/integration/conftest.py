"""A running quorum for each test that asks for one, and the transport of each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.settings.transport import Transport
from tests.integration.quorum import SMALL_LOG, STEADY, Quorum
from tests.integration.transports import speaking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each transport, unless one is asked for."""
    if "transport" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--transport")
        metafunc.parametrize("transport", [asked] if asked else list(Transport), indirect=True)


@pytest.fixture
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """The gRPC transport of this test."""
    transport = Transport(request.param)
    with speaking(transport):
        yield transport


@pytest.fixture
async def quorum(tmp_path: Path) -> AsyncIterator[Quorum]:
    """Three controllers with a leader, and six stand-ins for brokers."""
    async with Quorum(tmp_path / "quorum", STEADY) as running:
        await running.register_brokers()
        yield running


@pytest.fixture
async def small_log_quorum(tmp_path: Path) -> AsyncIterator[Quorum]:
    """The same with small segments, and with snapshots every few thousand bytes."""
    async with Quorum(tmp_path / "quorum", STEADY | SMALL_LOG) as running:
        await running.register_brokers()
        yield running
