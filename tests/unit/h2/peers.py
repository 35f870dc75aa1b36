"""The other end of a connection, by hand: frames as bytes, and what came back of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.h2.protocol import frames
from quorate.h2.protocol.connection import Connection
from quorate.h2.protocol.events import ConnectionFailed, StreamReset
from quorate.h2.protocol.frames import H2ErrorCode, frame
from quorate.h2.protocol.header_codec import block_of
from quorate.h2.protocol.limits import Limits

if TYPE_CHECKING:
    from quorate.h2.protocol.events import Event

GREETING: Final = frames.PREFACE + frame(frames.SETTINGS, 0, 0, b"")
REQUEST: Final = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/some.Service/Call"),
    (b":authority", b"here"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
)
BLOCK: Final = block_of(REQUEST)
RESPONSE_BLOCK: Final = block_of([(b":status", b"200")])
TRAILERS_BLOCK: Final = block_of([(b"grpc-status", b"0")])
END: Final = frames.END_STREAM
WHOLE: Final = frames.END_HEADERS


class Sent(NamedTuple):
    """A frame that a connection has sent."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes


def server(limits: Limits | None = None) -> Connection:
    """A server's end, after its client's greeting; what it has sent by then is taken."""
    connection = Connection(limits or Limits(), is_client=False)
    connection.start()
    connection.receive(GREETING, 0.0)
    connection.take()
    return connection


def client(limits: Limits | None = None) -> Connection:
    """A client's end, after its server's greeting."""
    connection = Connection(limits or Limits(), is_client=True)
    connection.start()
    connection.receive(frame(frames.SETTINGS, 0, 0, b""), 0.0)
    connection.take()
    return connection


def headers(stream_id: int = 1, *, flags: int = END | WHOLE, block: bytes = BLOCK) -> bytes:
    return frame(frames.HEADERS, flags, stream_id, block)


def data(payload: bytes, stream_id: int = 1, *, flags: int = 0) -> bytes:
    return frame(frames.DATA, flags, stream_id, payload)


def word(number: int) -> bytes:
    return struct.pack(">L", number)


def settings(**values: int) -> bytes:
    """By the names of `frames`."""
    pairs = ((getattr(frames, name), value) for name, value in values.items())
    payload = b"".join(frames.SETTING.pack(key, value) for key, value in pairs)
    return frame(frames.SETTINGS, 0, 0, payload)


def window(size: int, stream_id: int = 0) -> bytes:
    return frame(frames.WINDOW_UPDATE, 0, stream_id, word(size))


def sent(connection: Connection) -> list[Sent]:
    """The frames that are to be sent, after the preface."""
    out = connection.take().removeprefix(frames.PREFACE)
    found = []
    while out:
        high, low, kind, flags, stream_id = frames.HEAD.unpack_from(out)
        end = frames.HEAD_BYTES + (high << 16 | low)
        found.append(Sent(kind, flags, stream_id, out[frames.HEAD_BYTES : end]))
        out = out[end:]
    return found


def kinds(connection: Connection) -> list[int]:
    return [one.kind for one in sent(connection)]


def failed_with(connection: Connection, events: list[Event]) -> H2ErrorCode:
    """The code with which the connection has ended, which the peer receives, too."""
    assert connection.is_over
    (failure,) = [event for event in events if isinstance(event, ConnectionFailed)]
    last = sent(connection)[-1]
    assert last.kind == frames.GOAWAY
    assert frames.WORD.unpack_from(last.payload, 4)[0] == failure.code
    return failure.code


def ended_with(connection: Connection, events: list[Event], stream_id: int = 1) -> int:
    """The code with which this end has reset a stream, while the connection continues."""
    assert not connection.is_over
    (ending,) = [event for event in events if isinstance(event, StreamReset)]
    assert (ending.stream_id, ending.is_peers) == (stream_id, False)
    (reset,) = [one for one in sent(connection) if one.kind == frames.RST_STREAM]
    assert (reset.stream_id, frames.WORD.unpack(reset.payload)[0]) == (stream_id, ending.code)
    return ending.code
