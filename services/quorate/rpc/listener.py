"""One gRPC listener: it takes its port, listens, and ends once, however often it is told to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.rpc.channels import bind

if TYPE_CHECKING:
    import grpc.aio

    from quorate.rpc.tls import TlsFiles


class Listener:
    """What every server of ours has in common; the services are added by whoever makes it."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server
        self._stopping: asyncio.Future[None] | None = None

    def bind(self, host: str, port: int, *, tls: TlsFiles | None = None) -> int:
        """Take the port; returns it. Raises RuntimeError when it cannot be had."""
        return bind(self._server, host, port, tls=tls)

    async def start(self) -> None:
        """Listen."""
        await self._server.start()

    async def stop(self, grace_s: float | None = None) -> None:
        """Take no new call at once; those under way may end within the grace.

        Who stops it while it is being stopped waits for the first, with the grace of the first.
        """
        if self._stopping is None:
            # Of two stops at once the second may cancel the calls of a server that the first has
            # destroyed: gRPC reads address 0 then, and the process is gone.
            self._stopping = asyncio.ensure_future(self._server.stop(grace=grace_s))
        await asyncio.shield(self._stopping)
