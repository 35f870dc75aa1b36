"""Events that a connection reports to its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from quorate.h2.protocol.frames import H2ErrorCode
    from quorate.h2.protocol.header_codec import Fields


class HeadersReceived(NamedTuple):
    """A request, a response, or trailers."""

    stream_id: int
    fields: Fields
    is_last: bool


class DataReceived(NamedTuple):
    """Bytes of a body. The reader reports them as consumed, or no more will come."""

    stream_id: int
    data: bytes
    is_last: bool


class StreamReset(NamedTuple):
    """A stream was reset: by the peer, or here because of what the peer did on it."""

    stream_id: int
    code: int
    words: str
    is_peers: bool


class StreamWritable(NamedTuple):
    """All data that waited on a stream has been sent."""

    stream_id: int


class PingAnswered(NamedTuple):
    """The peer has answered a ping."""


class StreamsAllowed(NamedTuple):
    """The number of streams that the peer allows to be open at the same time."""

    streams: int


class GoAwayReceived(NamedTuple):
    """The peer accepts no new streams; it has not processed streams above the last id."""

    last_stream_id: int
    code: int
    words: str


class ConnectionFailed(NamedTuple):
    """The peer violated the protocol. A GOAWAY is sent last; then the connection is closed."""

    code: H2ErrorCode
    words: str


Event: TypeAlias = (
    HeadersReceived
    | DataReceived
    | StreamReset
    | StreamWritable
    | PingAnswered
    | StreamsAllowed
    | GoAwayReceived
    | ConnectionFailed
)
