"""A listener that takes connections and never says anything, as a process that was stopped."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def mute() -> AsyncIterator[tuple[str, int]]:
    """Its address."""
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), HOST, 0)
    host, port = server.sockets[0].getsockname()[:2]
    yield host, port
    server.close()
    for writer in held:
        writer.close()
