"""A scripted quorum, and a client of its membership that knows node 1 alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.client.controller_client import ControllerClient
from quorate.client.membership import MembershipClient
from tests.integration.client.scripted import ScriptedQuorum
from tests.integration.rpc.conftest import another, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["another", "membership", "quorum", "served"]


@pytest.fixture
async def quorum() -> AsyncIterator[ScriptedQuorum]:
    """Three voters, of which node 1 leads."""
    async with ScriptedQuorum() as running:
        yield running


@pytest.fixture
async def membership(quorum: ScriptedQuorum) -> AsyncIterator[MembershipClient]:
    """Knows node 1 alone."""
    servers = [quorum.addresses[1]]
    async with ControllerClient(servers) as client:
        yield MembershipClient(client, servers)
