"""A client's connection whose server is the test, without sockets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from quorate.h2.client.call import ClientCall, Method
from quorate.h2.client.protocol import ClientProtocol
from quorate.h2.grpc_framing import frame_message
from quorate.h2.protocol import frames
from quorate.h2.protocol.header_codec import block_of
from tests.unit.h2 import peers
from tests.unit.h2.by_hand import TransportByHand

if TYPE_CHECKING:
    from tests.unit.h2.peers import Sent

METHOD = Method("/some.Service/Call", None, None, scheme=b"http", authority="here:1")


class Server:
    """Greets, and gives the answers that a test sets."""

    def __init__(self, **info: Any) -> None:  # noqa: ANN401
        self.gone: list[ClientProtocol] = []
        self.transport = TransportByHand(**info)
        self.widened = 0
        self.link = ClientProtocol(
            ping_every_s=100.0, ping_patience_s=50.0, gone=self.gone.append, widened=self._widen
        )
        self.link.connection_made(self.transport)

    def _widen(self) -> None:
        self.widened += 1

    def greet(self) -> None:
        self.send(frames.frame(frames.SETTINGS, 0, 0, b""))

    def send(self, data: bytes) -> None:
        self.link.data_received(data)

    def call(self, *, timeout_s: float | None = None, metadata: Any = ()) -> ClientCall:  # noqa: ANN401
        """A call that has begun, and may send."""
        call = ClientCall(METHOD, metadata, timeout_s, has_ended=self._ended)
        call.begin(self.link, bytes_max=1000)
        return call

    def _ended(self, call: ClientCall) -> None:
        self.link.ended(call.stream_id)

    def begin(self, call: ClientCall) -> None:
        self.send(peers.headers(call.stream_id, flags=peers.WHOLE, block=peers.RESPONSE_BLOCK))

    def answer(self, call: ClientCall, *messages: bytes) -> None:
        self.send(peers.data(b"".join(map(frame_message, messages)), call.stream_id))

    def end(self, call: ClientCall, *pairs: tuple[bytes, bytes], status: bytes = b"0") -> None:
        block = block_of([(b"grpc-status", status), *pairs])
        self.send(peers.headers(call.stream_id, block=block))

    def received(self) -> list[Sent]:
        """The frames that were written since the last time."""
        self.link._flush()
        out = bytes(self.transport.written).removeprefix(frames.PREFACE)
        self.transport.written = bytearray()
        found = []
        while out:
            size = int.from_bytes(out[:3], "big")
            stream_id = int.from_bytes(out[5:9], "big")
            found.append(peers.Sent(out[3], out[4], stream_id, out[9 : 9 + size]))
            out = out[9 + size :]
        return found


async def settle() -> None:
    """Let whatever can happen happen."""
    for _ in range(20):
        await asyncio.sleep(0)
