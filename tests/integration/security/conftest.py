"""Parties with certificates, and a server that wants one of each client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.api.permissions import Access
from quorate.rpc.security.authorization import CallerPolicy
from tests.integration.rpc.conftest import Served, serve
from tests.integration.security.identities import IDENTITIES, PARTIES, VOTER_IDS
from tests.integration.security.stores import Stores
from tests.integration.transports import each_transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

__all__ = ["each_transport"]


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    """Certificates for all parties."""
    made = Stores(tmp_path / "tls")
    for party in PARTIES:
        made.give(party)
    return made


@pytest.fixture
async def guarded(stores: Stores) -> AsyncIterator[Served]:
    """A server of mutual TLS that grants every party what the lists say."""
    access = Access(IDENTITIES, frozenset({"User:CN=admin"}))
    callers = CallerPolicy(access, is_voter=VOTER_IDS.__contains__)
    one = await serve(tls=stores.files("controller"), caller_policy=callers)
    yield one
    await one.server.stop()
