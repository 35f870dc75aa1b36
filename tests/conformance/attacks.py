"""Attacks of a client on a listener, each a function of a connection.

An attack runs until it is over or the listener has ended the connection, whatever is first. It
is told by how much it sends, never by how long it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.conformance.stubs import messages
from tests.integration.raw_http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    RawConnection,
    frame,
    headers_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SERVICE: Final = "/grpc.testing.TestService/"
UNARY: Final = SERVICE + "UnaryCall"
DUPLEX: Final = SERVICE + "FullDuplexCall"
OUTPUT: Final = SERVICE + "StreamingOutputCall"
# Codes of HTTP/2.
PROTOCOL_ERROR: Final = 1
FLOW_CONTROL_ERROR: Final = 3
FRAME_SIZE_ERROR: Final = 6
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
COMPRESSION_ERROR: Final = 9
ENHANCE_YOUR_CALM: Final = 11

KIB: Final = 1024
MIB: Final = 1024 * KIB
FRAME_MAX: Final = 16 * KIB
FLOOD: Final = 100_000
AT_ONCE: Final = 500
FIRST: Final = 1
# The name of a header of which so much is made.
NAME: Final = b"x-large"


@dataclass(frozen=True, slots=True)
class Attack:
    """`codes` are those with which a listener may end it; with none it may continue."""

    run: Callable[[RawConnection], Awaitable[None]]
    codes: frozenset[int] = frozenset()
    reads_nothing: bool = False

    @property
    def name(self) -> str:
        """The name of the attack in tests."""
        return self.run.__name__


async def _flood(connection: RawConnection, unit: bytes, count: int = FLOOD) -> None:
    """The same frames again and again."""
    for _ in range(count // AT_ONCE):
        if connection.is_closed:
            return
        await connection.send(unit * AT_ONCE)


async def rapid_reset(connection: RawConnection) -> None:
    """Calls that are taken back as soon as they have begun."""
    await _streams(connection, _cancel)


async def rapid_reset_with_data(connection: RawConnection) -> None:
    """The same, with a byte of each call's request (CVE-2023-44487)."""
    await _streams(connection, lambda stream: frame(DATA, 0, stream, b"\0") + _cancel(stream))


async def made_you_reset(connection: RawConnection) -> None:
    """Calls that the listener has to reset, with a byte of each (CVE-2025-8671)."""
    await _streams(
        connection,
        lambda stream: frame(DATA, 0, stream, b"\0") + frame(WINDOW_UPDATE, 0, stream, bytes(4)),
    )


async def too_many_streams(connection: RawConnection) -> None:
    """More calls than the listener lets be open, each of which it refuses."""
    await _streams(connection, lambda _: b"", path=DUPLEX)


async def _streams(
    connection: RawConnection, rest: Callable[[int], bytes], path: str = UNARY
) -> None:
    """Make calls, each of which begins and then continues with these frames."""
    block = headers_of(path)
    for first in range(FIRST, FIRST + 2 * FLOOD // 5, 2 * AT_ONCE):
        if connection.is_closed:
            return
        await connection.send(
            b"".join(
                frame(HEADERS, END_HEADERS, stream, block) + rest(stream)
                for stream in range(first, first + 2 * AT_ONCE, 2)
            )
        )


def _cancel(stream: int) -> bytes:
    return frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4, "big"))


async def continuation_flood(connection: RawConnection) -> None:
    """Headers without an end: none of them is long."""
    await connection.send(frame(HEADERS, 0, FIRST, headers_of(UNARY)))
    header = b"\0" + _text(NAME) + _text(b"v" * 100)
    await _flood(connection, frame(CONTINUATION, 0, FIRST, header * 100), FLOOD // 20)


async def empty_continuation_flood(connection: RawConnection) -> None:
    """Headers without an end, of nothing."""
    await connection.send(frame(HEADERS, 0, FIRST, headers_of(UNARY)))
    await _flood(connection, frame(CONTINUATION, 0, FIRST, b""))


async def ping_flood(connection: RawConnection) -> None:
    """Each asks for an answer."""
    await _flood(connection, frame(PING, 0, 0, bytes(8)))


async def settings_flood(connection: RawConnection) -> None:
    """Each asks for an acknowledgement."""
    await _flood(connection, frame(SETTINGS, 0, 0, b""))


async def settings_ack_flood(connection: RawConnection) -> None:
    """Acknowledgements of what was never sent."""
    await _flood(connection, frame(SETTINGS, ACK, 0, b""))


async def empty_data_flood(connection: RawConnection) -> None:
    """A body that never gets longer, of a call that never ends."""
    await connection.send(frame(HEADERS, END_HEADERS, FIRST, headers_of(DUPLEX)))
    await _flood(connection, frame(DATA, 0, FIRST, b""))


async def window_update_flood(connection: RawConnection) -> None:
    """Room for one byte more, again and again."""
    await _flood(connection, frame(WINDOW_UPDATE, 0, 0, (1).to_bytes(4, "big")))


async def priority_flood(connection: RawConnection) -> None:
    """Send a tree of streams that are never opened."""
    await _flood(connection, frame(PRIORITY, 0, 101, bytes(4) + b"\x0f"))


async def unknown_frame_flood(connection: RawConnection) -> None:
    """Send frames of an unknown type, which are to be passed over."""
    await _flood(connection, frame(0xBF, 0, 0, b"nothing"))


async def slow_reader(connection: RawConnection) -> None:
    """Two gibibytes of answers are asked for, and none is taken."""
    parameters = [messages.ResponseParameters(size=64 * KIB) for _ in range(320)]
    request = messages.StreamingOutputCallRequest(response_parameters=parameters)
    for _ in range(100):
        connection.begin(OUTPUT, request.SerializeToString())
    await connection.send(b"")


async def header_bomb(connection: RawConnection) -> None:
    """A header of 3 KiB is remembered once, then named thousands of times in a few bytes."""
    value = b"v" * (3 * KIB)
    block = headers_of(UNARY) + b"\x40" + _text(NAME) + _text(value)
    # The newest entry of the table that both ends keep.
    block += b"\xbe" * (FRAME_MAX - len(block))
    for stream in range(FIRST, FIRST + 40, 2):
        if connection.is_closed:
            return
        await connection.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, block))


async def many_headers(connection: RawConnection) -> None:
    """Four thousand headers of nothing in each call."""
    block = headers_of(UNARY)
    block += b"\0\1a\0" * ((FRAME_MAX - len(block)) // 4)
    for stream in range(FIRST, FIRST + 200, 2):
        if connection.is_closed:
            return
        await connection.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, block))


async def oversize_frame(connection: RawConnection) -> None:
    """A frame of all the length that the format has, of which some comes."""
    await connection.send(frame(HEADERS, END_HEADERS, FIRST, headers_of(DUPLEX)))
    head = (2**24 - 1).to_bytes(3, "big") + bytes([DATA, 0]) + FIRST.to_bytes(4, "big")
    await connection.send(head)
    for _ in range(16):
        if connection.is_closed:
            return
        await connection.send(bytes(MIB))


async def oversize_message(connection: RawConnection) -> None:
    """A message that says it has four gibibytes, sent as far as it is taken."""
    connection.begin(UNARY)
    await connection.send(frame(DATA, 0, FIRST, b"\0\xff\xff\xff\xff" + bytes(8 * KIB)))


async def beyond_the_window(connection: RawConnection) -> None:
    """More than the other side has made room for, on a stream that waits for its reader."""
    parameters = [messages.ResponseParameters(size=64 * KIB) for _ in range(320)]
    request = messages.StreamingOutputCallRequest(response_parameters=parameters)
    connection.begin(DUPLEX, request.SerializeToString())
    await _flood(connection, frame(DATA, 0, FIRST, bytes(FRAME_MAX)), AT_ONCE)


def _text(text: bytes) -> bytes:
    """A string of HPACK, as it is."""
    return _integer(len(text), 7) + text


def _integer(value: int, bits: int) -> bytes:
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([value])
    value -= limit
    made = bytearray([limit])
    while value >= 128:
        made.append(value % 128 + 128)
        value //= 128
    return bytes([*made, value])


_CALM: Final = frozenset({ENHANCE_YOUR_CALM})
_TOO_LARGE: Final = frozenset({PROTOCOL_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM})
ATTACKS: Final = (
    Attack(rapid_reset, _CALM),
    Attack(rapid_reset_with_data, _CALM),
    Attack(made_you_reset, _CALM),
    Attack(too_many_streams, _CALM),
    Attack(continuation_flood, _TOO_LARGE),
    Attack(empty_continuation_flood, _TOO_LARGE),
    Attack(ping_flood, _CALM),
    Attack(settings_flood, _CALM),
    Attack(settings_ack_flood, _TOO_LARGE),
    Attack(empty_data_flood, _CALM),
    Attack(window_update_flood, _CALM),
    Attack(priority_flood, _CALM),
    Attack(unknown_frame_flood, _CALM),
    Attack(slow_reader, reads_nothing=True),
    Attack(header_bomb),
    Attack(many_headers),
    Attack(oversize_frame, frozenset({FRAME_SIZE_ERROR})),
    Attack(oversize_message),
    Attack(beyond_the_window, frozenset({PROTOCOL_ERROR, FLOW_CONTROL_ERROR}), reads_nothing=True),
)
