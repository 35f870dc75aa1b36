"""One call on a server: statuses, deadlines, cancellation, windows."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from typing import Any

import grpc
import pytest

from quorate.h2.message_buffer import MESSAGES_PER_ITERATION
from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode, frame
from quorate.h2.protocol.header_codec import block_of
from quorate.telemetry.logs import RepeatFilter
from tests.unit.h2 import peers
from tests.unit.h2.by_hand import Wire, streaming, unary
from tests.unit.h2.peers import REQUEST, WHOLE, word


async def served(handler: Any, *messages: bytes, is_whole: bool = True) -> Wire:  # noqa: ANN401
    wire = Wire(handler)
    wire.greet()
    wire.call(*messages, is_whole=is_whole)
    await wire.settle()
    return wire


async def test_an_unknown_method_is_told_so() -> None:
    wire = await served(None, b"")
    assert wire.status()[b"grpc-status"] == b"12"


async def test_an_error_of_a_handler_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: bytes, context: Any) -> bytes:  # noqa: ANN401
        raise LookupError("oops")

    status = (await served(unary(fail), b"")).status()
    assert status[b"grpc-status"] == b"2"
    assert b"oops" in status[b"grpc-message"]
    assert "/some.Service/Call" in caplog.text


async def test_a_handler_that_fails_at_each_call_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(request: bytes, context: Any) -> bytes:  # noqa: ANN401
        raise LookupError(request)

    for text in (b"one", b"another"):
        await served(unary(fail), text)
    is_new = RepeatFilter().filter
    assert [is_new(line) for line in caplog.records] == [True, False]


async def test_a_call_without_a_request_is_refused() -> None:
    async def never(_: bytes, context: Any) -> bytes:  # noqa: ANN401
        raise AssertionError

    assert (await served(unary(never))).status()[b"grpc-status"] == b"13"


async def test_a_compressed_call_is_refused_with_what_would_be_taken() -> None:
    wire = Wire(unary(_echo))
    wire.greet()
    wire.send(peers.headers(block=block_of((*REQUEST, (b"grpc-encoding", b"gzip")))))
    await wire.settle()
    status = wire.status()
    assert (status[b"grpc-status"], status[b"grpc-accept-encoding"]) == (b"12", b"identity")


async def test_half_a_message_at_the_end_is_refused() -> None:
    wire = Wire(unary(_echo))
    wire.greet()
    wire.send(peers.headers(flags=WHOLE), peers.data(b"\0\0\0\0\x05ab", flags=peers.END))
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"13"


async def _echo(request: bytes, _: Any) -> bytes:  # noqa: ANN401
    return request


async def test_a_message_over_the_bound_is_refused_before_it_has_come() -> None:
    wire = Wire(unary(_echo))
    wire.greet()
    wire.send(peers.headers(flags=WHOLE), peers.data(b"\0\0\0\x10\0"))
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"8"


async def test_requests_and_responses_take_turns() -> None:
    async def double(requests: Any, context: Any) -> Any:  # noqa: ANN401
        async for request in requests:
            yield request * 2

    wire = await served(streaming(double), b"a", b"b", is_whole=False)
    bodies = [one.payload[5:] for one in wire.answers() if one.kind == frames.DATA]
    assert bodies == [b"aa", b"bb"]
    wire.send(peers.data(b"", flags=peers.END))
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"0"


async def test_a_handler_may_read_and_write_by_itself() -> None:
    async def by_hand(_: Any, context: Any) -> None:  # noqa: ANN401
        while (message := await context.read()) is not grpc.aio.EOF:
            await context.write(message)

    wire = await served(streaming(by_hand), b"a", b"b")
    assert [one.payload[5:] for one in wire.answers() if one.kind == frames.DATA] == [b"a", b"b"]


async def test_whoever_gives_many_small_answers_lets_others_have_their_turn() -> None:
    written = 0

    async def many(_: Any, context: Any) -> None:  # noqa: ANN401
        nonlocal written
        for _ in range(2 * MESSAGES_PER_ITERATION):
            await context.write(b"")
            written += 1

    wire = Wire(streaming(many))
    wire.greet()
    wire.call()
    seen = set()
    while written < 2 * MESSAGES_PER_ITERATION:
        await asyncio.sleep(0)
        seen.add(written)
    assert seen >= {MESSAGES_PER_ITERATION - 1, 2 * MESSAGES_PER_ITERATION - 1}
    await wire.settle()


async def test_what_nobody_reads_is_not_granted_anew_and_what_is_waited_for_is() -> None:
    go = asyncio.Event()

    async def late(requests: Any, _: Any) -> bytes:  # noqa: ANN401
        await go.wait()
        return bytes([len([request async for request in requests])])

    wire = Wire(grpc.stream_unary_rpc_method_handler(late))
    wire.greet()
    wire.link.message_bytes_max = 1 << 20
    wire.send(peers.headers(flags=WHOLE))
    for _ in range(3):
        wire.send(peers.data(b"\0\0\x02\0\0" + bytes(16000)))
    await wire.settle()
    streams = [one.stream_id for one in wire.answers() if one.kind == frames.WINDOW_UPDATE]
    assert 1 not in streams
    go.set()
    await wire.settle()
    streams = [one.stream_id for one in wire.answers() if one.kind == frames.WINDOW_UPDATE]
    assert 1 in streams
    wire.link.connection_lost(None)
    await wire.settle()


async def test_the_deadline_ends_a_call() -> None:
    ended = asyncio.get_running_loop().create_future()

    async def wait(_: bytes, context: Any) -> bytes:  # noqa: ANN401
        context.add_done_callback(lambda _: ended.set_result(context.cancelled()))
        # Nothing is left where the machine has done something else since the call began.
        assert 0 <= context.time_remaining() <= 0.001
        await asyncio.Event().wait()
        return b""

    wire = Wire(unary(wait))
    wire.greet()
    block = block_of([*REQUEST, (b"grpc-timeout", b"1m")])
    wire.send(peers.headers(flags=WHOLE, block=block), peers.data(bytes(5), flags=peers.END))
    assert await ended
    await wire.settle()
    assert wire.status()[b"grpc-status"] == b"4"


async def test_a_call_that_ends_before_it_was_served_leaves_nothing_behind() -> None:
    wire = Wire(unary(_echo))
    wire.greet()
    block = block_of([*REQUEST, (b"grpc-timeout", b"99999999H")])
    reset = frame(frames.RST_STREAM, 0, 1, word(H2ErrorCode.CANCEL))
    wire.send(peers.headers(flags=WHOLE, block=block))
    (call,) = (weakref.ref(call) for call in wire.link._calls.values())
    wire.send(reset)
    await wire.settle()
    # Neither the clock nor a circle holds it.
    assert call() is None


async def test_a_call_that_is_cut_off_is_cancelled() -> None:
    seen: list[Any] = []

    async def wait(_: bytes, context: Any) -> bytes:  # noqa: ANN401
        seen.append(context)
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ended")
        return b""

    wire = await served(unary(wait), b"")
    assert seen[0].peer() == "ipv4:127.0.0.1:4711"
    assert seen[0].time_remaining() is None
    assert not seen[0].done()
    wire.send(frame(frames.RST_STREAM, 0, 1, word(8)))
    await wire.settle()
    assert (seen[1], seen[0].cancelled(), seen[0].done()) == ("ended", True, True)
    called: list[Any] = []
    seen[0].add_done_callback(called.append)
    assert called == [seen[0]]


async def test_a_handler_that_is_cancelled_by_others_ends_with_a_status() -> None:
    async def give_up(_: bytes, context: Any) -> bytes:  # noqa: ANN401
        raise asyncio.CancelledError

    assert (await served(unary(give_up), b"")).status()[b"grpc-status"] == b"1"


async def test_a_call_lasts_until_its_answer_has_left() -> None:
    wire = Wire(unary(_echo))
    wire.greet()
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    wire.call(b"abc")
    await wire.settle()
    assert len(wire.link.tasks) == 1
    wire.send(peers.window(100, 1))
    await wire.settle()
    assert wire.link.tasks == []


async def _wait_for_room(_: Any, context: Any) -> None:  # noqa: ANN401
    await context.write(b"abc")


async def test_what_left_at_once_is_no_room_for_a_write_that_waits() -> None:
    written: list[bytes] = []

    async def write(_: Any, context: Any) -> None:  # noqa: ANN401
        for message in (b"abc", b"def"):
            await context.write(message)
            written.append(message)

    wire = Wire(streaming(write))
    wire.greet()
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    wire.call(b"")
    await wire.settle()
    wire.link._calls[1].drained()
    await wire.settle()
    assert written == []
    wire.send(peers.window(8, 1))
    await wire.settle()
    assert written == [b"abc"]
    wire.link.connection_lost(None)
    await wire.settle()


@pytest.mark.parametrize("handler", [unary(_echo), streaming(_wait_for_room)])
async def test_an_answer_that_has_not_left_at_the_deadline_is_dropped(handler: Any) -> None:  # noqa: ANN401
    wire = Wire(handler)
    wire.greet()
    block = block_of([*REQUEST, (b"grpc-timeout", b"1m")])
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    wire.send(peers.headers(flags=WHOLE, block=block), peers.data(bytes(5), flags=peers.END))
    (task,) = wire.link.tasks
    await asyncio.wait([task])
    await wire.settle()
    assert (wire.link.tasks, wire.link.connection.stream_count) == ([], 0)
    last = wire.answers()[-1]
    assert (last.kind, last.payload) == (frames.RST_STREAM, word(H2ErrorCode.CANCEL))


async def test_a_call_that_is_aborted_lasts_until_its_answer_has_left() -> None:
    async def give_up(_: Any, context: Any) -> None:  # noqa: ANN401
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await context.write(b"abc")
        await context.abort(grpc.StatusCode.ABORTED)

    wire = Wire(streaming(give_up))
    wire.greet()
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    wire.call()
    await wire.settle()
    assert len(wire.link.tasks) == 1
    wire.send(peers.window(100, 1))
    await wire.settle()
    assert wire.link.tasks == []
    assert wire.status()[b"grpc-status"] == b"10"


async def test_an_answer_that_does_not_leave_is_dropped_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quorate.h2.server.call.UNSENT_S", 0.0)
    wire = Wire(unary(_echo))
    wire.greet()
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    wire.call(b"abc")
    (task,) = wire.link.tasks
    await asyncio.wait([task])
    await wire.settle()
    assert (wire.link.tasks, wire.link.connection.stream_count) == ([], 0)
    last = wire.answers()[-1]
    assert (last.kind, last.payload) == (frames.RST_STREAM, word(H2ErrorCode.CANCEL))


async def test_metadata_and_identity_are_told() -> None:
    seen: list[Any] = []

    async def look(_: bytes, context: Any) -> bytes:  # noqa: ANN401
        seen.extend([context.invocation_metadata(), dict(context.auth_context())])
        seen.extend([context.peer_identity_key(), context.peer_identities()])
        context.set_compression(grpc.Compression.Gzip)
        context.disable_next_message_compression()
        assert context.trailing_metadata() == ()
        return b""

    await served(unary(look), b"")
    assert seen == [(), {}, None, None]
