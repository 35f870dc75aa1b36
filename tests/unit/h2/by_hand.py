"""A server whose connections are made by the test, without sockets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc

from quorate.h2.fair_queue import FairQueue
from quorate.h2.grpc_framing import frame_message
from quorate.h2.protocol.header_codec import BlockReader
from quorate.h2.protocol.limits import Limits, ListenerMemory
from quorate.h2.server.protocol import ServerProtocol
from tests.unit.h2 import peers
from tests.unit.h2.peers import Sent

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.h2.call_headers import CallDetails
    from quorate.h2.server.protocol import Gate


class TransportByHand(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self, **info: Any) -> None:  # noqa: ANN401
        super().__init__({"peername": ("127.0.0.1", 4711)} | info)
        self.written = bytearray()
        self.is_closed = self.is_aborted = False
        self.unsent = 0
        self.reads = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: Any) -> None:  # noqa: ANN401
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def is_reading(self) -> bool:
        return self.reads

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


class Wire:
    """One connection of a server, and the client's end of it by hand.

    By default it may use as much of the loop's time as it takes.
    """

    def __init__(
        self,
        handler: Any = None,  # noqa: ANN401
        *,
        admits: bool = True,
        limits: Limits | None = None,
        queue: FairQueue | None = None,
        gate: Gate | None = None,
        is_made: bool = True,
        **info: Any,  # noqa: ANN401
    ) -> None:
        async def find(details: CallDetails) -> Any:  # noqa: ANN401
            return handler

        self.gone: list[ServerProtocol] = []
        self.transport = TransportByHand(**info)
        self.link = ServerProtocol(
            limits or Limits(),
            message_bytes_max=1000,
            read_buffer=memoryview(bytearray(256 * 1024)),
            queue=queue or FairQueue(budget_s=60.0),
            gate=gate,
            memory=ListenerMemory(),
            find=find,
            admit=lambda _: admits,
            gone=self.gone.append,
        )
        if is_made:
            self.link.connection_made(self.transport)
        self._reader = BlockReader(Limits())

    def greet(self) -> None:
        self.send(peers.GREETING)

    def send(self, *frames_of_client: bytes) -> None:
        for one in frames_of_client:
            self.link.get_buffer(-1)[: len(one)] = one
            self.link.buffer_updated(len(one))

    def call(self, *messages: bytes, stream_id: int = 1, is_whole: bool = True) -> None:
        self.send(peers.headers(stream_id, flags=peers.WHOLE))
        body = b"".join(map(frame_message, messages))
        self.send(peers.data(body, stream_id, flags=peers.END if is_whole else 0))

    async def settle(self) -> None:
        """Let whatever can happen happen."""
        for _ in range(20):
            await asyncio.sleep(0)

    def answers(self) -> list[Sent]:
        """The frames that were written since the last time."""
        out, self.transport.written = bytes(self.transport.written), bytearray()
        found = []
        while out:
            size = int.from_bytes(out[:3], "big")
            found.append(Sent(out[3], out[4], int.from_bytes(out[5:9], "big"), out[9 : 9 + size]))
            out = out[9 + size :]
        return found

    def status(self) -> dict[bytes, bytes]:
        """The trailers among the answers, which are the last headers."""
        blocks = [one.payload for one in self.answers() if one.kind == 1]
        return dict([self._reader.read(block).pairs for block in blocks][-1])


def unary(inner: Callable[[bytes, Any], Any]) -> Any:  # noqa: ANN401
    """A handler of bytes."""
    return grpc.unary_unary_rpc_method_handler(inner)


def streaming(inner: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401
    """A handler of streams in both directions."""
    return grpc.stream_stream_rpc_method_handler(inner)
