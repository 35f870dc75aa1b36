"""What a connection tells its driver."""

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
    """Bytes of a body. Their reader says when it has read them, or no more will come."""

    stream_id: int
    data: bytes
    is_last: bool


class StreamEnded(NamedTuple):
    """A stream was cut off: by the peer, or here for what the peer did on it."""

    stream_id: int
    code: int
    words: str
    is_peers: bool


class Drained(NamedTuple):
    """All that waited to be sent on a stream has been."""

    stream_id: int


class PingAnswered(NamedTuple):
    """The peer has answered a ping."""


class StreamsAllowed(NamedTuple):
    """The peer lets so many streams be open at once."""

    streams: int


class GoneAway(NamedTuple):
    """The peer takes no new streams; of those here it has not looked at any above the last."""

    last_stream_id: int
    code: int
    words: str


class ConnectionFailed(NamedTuple):
    """The peer broke a rule. A GOAWAY is the last that is sent; then the connection is closed."""

    code: H2ErrorCode
    words: str


Event: TypeAlias = (
    HeadersReceived
    | DataReceived
    | StreamEnded
    | Drained
    | PingAnswered
    | StreamsAllowed
    | GoneAway
    | ConnectionFailed
)
