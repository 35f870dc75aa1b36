"""Measure HTTP/2's framing of a unary call, of ours and of libraries, in one run.

    python -m tests.bench.h2_framing [CALLS]

Headers and a message in; headers, a message and trailers out. Libraries that are not installed are
left out. docs/decisions/0006-own-framing.md says what followed from the figures.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from hpack import Encoder

from quorate.h2.protocol import frames
from quorate.h2.protocol.connection import Connection
from quorate.h2.protocol.events import DataReceived
from quorate.h2.protocol.frames import frame
from quorate.h2.protocol.header_codec import block_of
from quorate.h2.protocol.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARIES: Final = ("h2", "jh2")
ROUNDS: Final = 3
_REQUEST: Final = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/quorate.controller.v1.Controller/Write"),
    (":authority", "127.0.0.1:9094"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
    ("user-agent", "grpc-go/1.85.0"),
)
_MESSAGE: Final = b"\0\0\0\0\x64" + bytes(100)
_ANSWER: Final = b"\0\0\0\0\x0a" + bytes(10)
_WIDE: Final = frame(frames.WINDOW_UPDATE, 0, 0, frames.WORD.pack(1 << 30))
_GREETING: Final = frames.PREFACE + frame(frames.SETTINGS, 0, 0, b"") + _WIDE


def calls(count: int, *, has_deadlines: bool) -> list[bytes]:
    """The bytes that a client sends; with deadlines no two calls have the same headers."""
    encoder, made = Encoder(), []
    for number in range(count):
        deadline = [("grpc-timeout", f"{number}u")] if has_deadlines else []
        block = encoder.encode([*_REQUEST, *deadline])
        stream_id = 2 * number + 1
        made.append(
            frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)
            + frame(frames.DATA, frames.END_STREAM, stream_id, _MESSAGE)
        )
    return made


def own() -> Callable[[bytes], bytes]:
    """Our connection."""
    connection = Connection(Limits(), is_client=False)
    connection.start()
    connection.receive(_GREETING, 0.0)
    beginning = block_of([(b":status", b"200"), (b"content-type", b"application/grpc")])
    end = block_of([(b"grpc-status", b"0")])

    def turn(data: bytes) -> bytes:
        for event in connection.receive(data, 0.0):
            if isinstance(event, DataReceived):
                stream_id = event.stream_id
                connection.consumed(stream_id, len(event.data))
                connection.send_headers(stream_id, beginning)
                connection.send_data(stream_id, _ANSWER)
                connection.send_headers(stream_id, end, is_last=True)
        return connection.take()

    return turn


def of_library(name: str) -> Callable[[bytes], bytes]:
    """The connection of a library with the interface of h2. Raises ImportError."""
    events = importlib.import_module(f"{name}.events")
    config = importlib.import_module(f"{name}.config").H2Configuration(
        client_side=False, validate_outbound_headers=False, normalize_outbound_headers=False
    )
    connection: Any = importlib.import_module(f"{name}.connection").H2Connection(config=config)
    connection.initiate_connection()
    connection.receive_data(_GREETING)

    def turn(data: bytes) -> bytes:
        for event in connection.receive_data(data):
            if isinstance(event, events.DataReceived):
                size = event.flow_controlled_length
                connection.acknowledge_received_data(size, event.stream_id)
            elif isinstance(event, events.StreamEnded):
                stream_id = event.stream_id
                beginning = [(":status", "200"), ("content-type", "application/grpc")]
                connection.send_headers(stream_id, beginning)
                connection.send_data(stream_id, _ANSWER)
                connection.send_headers(stream_id, [("grpc-status", "0")], end_stream=True)
        out: bytes = connection.data_to_send()
        return out

    return turn


def cost_us(make: Callable[[], Callable[[bytes], bytes]], made: list[bytes]) -> float:
    """CPU of a call, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        turn = make()
        began = time.process_time()
        for data in made:
            turn(data)
        best = min(best, time.process_time() - began)
    return best / len(made) * 1e6


def main() -> None:
    """Print a line for each."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for has_deadlines in (False, True):
        made = calls(count, has_deadlines=has_deadlines)
        print(f"{'each with a deadline' if has_deadlines else 'equal headers'}:")
        print(f"  {'ours':6} {cost_us(own, made):8.1f} us of CPU a call")
        for name in LIBRARIES:
            try:
                print(f"  {name:6} {cost_us(lambda: of_library(name), made):8.1f} us")  # noqa: B023
            except ImportError:
                print(f"  {name:6} is not installed")


if __name__ == "__main__":
    main()
