"""Calls with a party's certificate, and their rejections."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from quorate.rpc.channels import open_channel
from quorate.rpc.error_status import ErrorStatus, error_info_of
from tests.integration.rpc.conftest import WAIT_S
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from tests.integration.rpc.conftest import Served
    from tests.integration.security.stores import Stores


@asynccontextmanager
async def calling(served: Served, stores: Stores, party: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel of a party."""
    async with open_channel(
        *served.address, tls=stores.files(party), transport=chosen()
    ) as channel:
        yield channel


async def refusal(call: Awaitable[object]) -> ErrorStatus:
    """The status with which a call was refused."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await asyncio.wait_for(call, WAIT_S)
    found = error_info_of(raised.value)
    assert found is not None
    return found
