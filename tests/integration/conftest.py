"""A running quorum for each test that asks for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.quorum import SMALL_LOG, STEADY, Quorum

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


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
