"""A way between two that takes time: every byte arrives late, none is lost or out of order."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

CHUNK_BYTES = 64 * 1024
HOST = "127.0.0.1"


class FarAway:
    """Listens on one port of loopback and passes everything on to another, `one_way_s` later.

    The kernel accepts immediately, so the time that a handshake of TCP would have taken precedes
    the first bytes. An async context manager.
    """

    def __init__(self, port: int, target: int, one_way_s: float) -> None:
        self._port = port
        self._target = target
        self._one_way_s = one_way_s
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, HOST, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._target)
        except OSError:
            writer.close()
            return
        for source, sink, first_s in (
            (reader, far_writer, 2 * self._one_way_s),
            (far_reader, writer, 0.0),
        ):
            task = asyncio.get_running_loop().create_task(self._carry(source, sink, first_s))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, first_s: float
    ) -> None:
        """Deliver what is read a while later; reading continues in that time."""
        loop = asyncio.get_running_loop()
        due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        not_before = loop.time() + first_s

        async def read() -> None:
            data = b"-"
            while data:
                data = b""
                with suppress(OSError):
                    data = await source.read(CHUNK_BYTES)
                await due.put((max(loop.time(), not_before) + self._one_way_s, data))

        reading = loop.create_task(read())
        try:
            while True:
                at, data = await due.get()
                await asyncio.sleep(max(0.0, at - loop.time()))
                if not data:
                    break
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            reading.cancel()
            sink.close()
