"""Streams by callback: turns, room in both directions, and every way in which they end."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from quorate.h2 import callback_stream
from quorate.h2.fair_queue import FairQueue
from quorate.h2.grpc_framing import frame_message
from quorate.h2.message_buffer import MESSAGES_PER_ITERATION
from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode, frame
from quorate.h2.protocol.header_codec import block_of
from tests.unit.h2 import peers
from tests.unit.h2.by_hand import Wire, streaming
from tests.unit.h2.peers import REQUEST, WHOLE, word
from tests.unit.h2.takers import Telling

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.h2.callback_stream import StreamWriter


class Echo(Telling):
    """Replies to each message with the same, as far as the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = asyncio.Event()
        self.taken_max = 1 << 20
        self.taken: list[bytes] = []
        self.runs: list[int] = []
        self.has_room = True
        self.error: Exception | None = None

    def begin(self, stream_writer: StreamWriter) -> None:
        super().begin(stream_writer)
        self.has_begun.set()

    def capacity(self) -> int:
        return self.taken_max - len(self.taken)

    def on_messages(self, messages: list[bytes]) -> None:
        self.runs.append(len(messages))
        for message in messages:
            self.taken.append(message)
            if self.error is not None:
                raise self.error
            self.has_room = self.stream_writer.reply(message)

    def on_writable(self) -> None:
        self.told.append("drained")


async def begun(
    echo: Echo,
    is_wanted: Callable[[bytes], bool] | None = None,
    queue: FairQueue | None = None,
) -> Wire:
    async def serve(requests: Any, _: Any) -> Any:  # noqa: ANN401
        if is_wanted is not None:
            requests.stop_unless(is_wanted)
        try:
            await requests.deliver_to(echo)
            echo.told.append("finished")
        finally:
            echo.told.append("over")
        if not echo.told:
            yield b"never"

    wire = Wire(streaming(serve), queue=queue)
    wire.greet()
    wire.send(peers.headers(flags=WHOLE))
    await echo.has_begun.wait()
    await wire.settle()
    wire.answers()
    return wire


def put(wire: Wire, *messages: bytes, flags: int = 0) -> None:
    wire.send(peers.data(b"".join(map(frame_message, messages)), flags=flags))


def bodies(wire: Wire) -> list[bytes]:
    return [one.payload[5:] for one in wire.answers() if one.kind == frames.DATA]


async def test_messages_that_come_together_are_taken_together_and_so_leave_the_replies() -> None:
    echo = Echo()
    wire = await begun(echo)
    put(wire, b"a", b"b")
    put(wire, b"c")
    await asyncio.sleep(0)
    assert (echo.taken, echo.runs) == ([b"a", b"b", b"c"], [3])
    assert bodies(wire) == [b"a", b"b", b"c"]
    put(wire, b"d", flags=peers.END)
    await asyncio.sleep(0)
    assert echo.told == ["all"]
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"0"
    assert echo.told == ["all", "finished", "over"]


async def test_what_came_before_its_servicer_is_taken_when_that_begins() -> None:
    echo = Echo()

    async def serve(requests: Any, _: Any) -> None:  # noqa: ANN401
        await requests.deliver_to(echo)

    wire = Wire(streaming(serve))
    wire.greet()
    wire.call(b"a", b"b")
    await wire.settle()
    assert echo.taken == [b"a", b"b"]
    assert wire.status()[b"grpc-status"] == b"0"


async def test_without_budget_one_message_is_taken_in_an_iteration() -> None:
    echo = Echo()
    wire = await begun(echo, queue=FairQueue(budget_s=1e-9))
    put(wire, *[b""] * MESSAGES_PER_ITERATION)
    before = 0
    while before < MESSAGES_PER_ITERATION:
        await asyncio.sleep(0)
        assert len(echo.taken) - before <= 1
        before = len(echo.taken)


async def test_a_run_of_messages_ends_where_it_has_many_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    echo = Echo()
    wire = await begun(echo)
    monkeypatch.setattr(callback_stream, "RUN_BYTES", 10)
    put(wire, b"a", b"b", bytes(5), bytes(5), b"d")
    await wire.settle()
    assert echo.runs == [4, 1]


async def test_messages_before_one_that_is_not_taken_are_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def decode(data: bytes) -> bytes:
        if data == b"no":
            raise ValueError("no")
        return data

    echo = Echo()
    wire = await begun(echo)
    (call,) = wire.link._calls.values()
    assert call._hot is not None
    monkeypatch.setattr(call._hot, "_decode", decode)
    put(wire, b"a", b"b", b"no", b"c")
    await wire.settle()
    assert (echo.taken, echo.told) == ([b"a", b"b"], ["no", "finished", "over"])


async def test_a_taker_without_room_stops_its_sender() -> None:
    echo = Echo()
    echo.taken_max = 1
    wire = await begun(echo)
    message = bytes(900)
    put(wire, message)
    for _ in range(60):
        put(wire, message)
    await wire.settle()
    assert len(echo.taken) == 1
    assert wire.link.connection.unread == 60 * 905
    assert 1 not in [one.stream_id for one in wire.answers() if one.kind == frames.WINDOW_UPDATE]
    echo.taken_max = 1 << 20
    echo.stream_writer.resume()
    await wire.settle()
    assert len(echo.taken) == 61
    assert wire.link.connection.unread == 0
    assert 1 in [one.stream_id for one in wire.answers() if one.kind == frames.WINDOW_UPDATE]


async def test_a_slow_reader_is_waited_for() -> None:
    echo = Echo()
    wire = await begun(echo)
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    put(wire, b"abc")
    await asyncio.sleep(0)
    assert not echo.has_room
    wire.send(peers.window(4, 1))
    assert echo.told == []
    wire.send(peers.window(4, 1))
    wire.send(peers.window(4, 1))
    assert echo.told == ["drained"]
    wire.send(peers.data(b"", flags=peers.END))
    await wire.settle()
    assert wire.link.tasks == []


async def test_only_what_is_wanted_is_taken() -> None:
    echo = Echo()
    wire = await begun(echo, lambda message: message != b"no")
    put(wire, b"a", b"no", b"b")
    await wire.settle()
    assert (echo.taken, echo.told) == ([b"a"], ["all", "finished", "over"])


async def test_the_same_where_the_messages_are_iterated() -> None:
    taken = []

    async def serve(requests: Any, _: Any) -> None:  # noqa: ANN401
        requests.stop_unless(lambda message: message != b"no")
        taken.extend([request async for request in requests])

    wire = Wire(streaming(serve))
    wire.greet()
    wire.call(b"a", b"no", b"b")
    await wire.settle()
    assert taken == [b"a"]


async def test_what_cannot_be_taken_is_told() -> None:
    echo = Echo()
    echo.error = ValueError("wrong")
    wire = await begun(echo)
    put(wire, b"a", b"b")
    await asyncio.sleep(0)
    assert (echo.taken, echo.told) == ([b"a"], ["wrong"])
    await wire.settle()


async def test_who_has_finished_takes_no_more() -> None:
    class Once(Echo):
        def on_messages(self, messages: list[bytes]) -> None:
            super().on_messages(messages)
            self.stream_writer.finish()

        def capacity(self) -> int:
            return 1

    echo = Once()
    wire = await begun(echo)
    put(wire, b"a", b"b")
    await wire.settle()
    assert (echo.taken, echo.told) == ([b"a"], ["finished", "over"])
    assert wire.status()[b"grpc-status"] == b"0"


async def test_what_left_at_once_is_no_room_for_what_waits() -> None:
    echo = Echo()
    wire = await begun(echo)
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    put(wire, b"abc")
    await asyncio.sleep(0)
    wire.link._calls[1].drained()
    assert echo.told == []
    wire.send(peers.window(8, 1))
    assert echo.told == ["drained"]
    wire.link.connection_lost(None)
    await wire.settle()


async def test_an_error_of_a_taker_ends_its_call(caplog: pytest.LogCaptureFixture) -> None:
    echo = Echo()
    echo.error = LookupError("oops")
    wire = await begun(echo)
    put(wire, b"a", b"b")
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"2"
    assert (echo.taken, echo.told) == ([b"a"], ["over"])
    assert "oops" in caplog.text


@pytest.mark.parametrize(
    ("payload", "flags", "status"),
    [(b"\0\0\x10\0\0", 0, b"8"), (b"\0\0\0\0\x05ab", peers.END, b"13")],
    ids=["oversized", "incomplete"],
)
async def test_what_is_no_message_ends_the_call(payload: bytes, flags: int, status: bytes) -> None:
    echo = Echo()
    wire = await begun(echo)
    wire.send(peers.data(payload, flags=flags))
    await wire.settle()
    assert wire.status()[b"grpc-status"] == status
    assert echo.told == ["over"]
    assert wire.link.tasks == []


@pytest.mark.parametrize("is_blocked", [False, True])
@pytest.mark.parametrize("end", ["cancel", "loss", "stop"])
async def test_a_call_that_is_cut_off_frees_everything(end: str, is_blocked: bool) -> None:  # noqa: FBT001
    echo = Echo()
    wire = await begun(echo)
    (call,) = (weakref.ref(call) for call in wire.link._calls.values())
    if is_blocked:
        wire.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    put(wire, b"abc")
    if end == "cancel":
        wire.send(frame(frames.RST_STREAM, 0, 1, word(H2ErrorCode.CANCEL)))
    elif end == "loss":
        wire.link.connection_lost(None)
    else:
        wire.link.cancel_calls()
    await wire.settle()
    assert echo.told == ["over"]
    # A late reply is dropped.
    echo.stream_writer.reply(b"late")
    echo.stream_writer.resume()
    echo.stream_writer.finish()
    del echo.stream_writer
    await wire.settle()
    assert wire.link.tasks == []
    assert call() is None


async def test_the_deadline_ends_a_call() -> None:
    echo = Echo()
    over = asyncio.Event()

    async def serve(requests: Any, _: Any) -> None:  # noqa: ANN401
        try:
            await requests.deliver_to(echo)
        finally:
            over.set()

    wire = Wire(streaming(serve))
    wire.greet()
    block = block_of([*REQUEST, (b"grpc-timeout", b"1m")])
    wire.send(peers.headers(flags=WHOLE, block=block))
    put(wire, b"a")
    (task,) = wire.link.tasks
    await asyncio.wait([task])
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"4"
    assert wire.link.tasks == []
