"""One call on a channel: answers, statuses, cancellation, deadlines."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from quorate.h2.client.call import ClientCall, Method
from quorate.h2.grpc_framing import timeout_value
from quorate.h2.message_buffer import MESSAGES_PER_ITERATION
from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.header_codec import BlockReader, block_of
from quorate.h2.protocol.limits import Limits
from tests.unit.h2 import peers
from tests.unit.h2.peers import word
from tests.unit.h2.servers_by_hand import METHOD, Server, settle
from tests.unit.h2.takers import Telling

Code = grpc.StatusCode


@pytest.fixture
async def server() -> Server:
    one = Server()
    one.greet()
    return one


async def failure_of(call: ClientCall) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


async def test_one_request_has_one_answer(server: Server) -> None:
    call = ClientCall(METHOD, (("key", "v"),), 2.0, has_ended=lambda _: None)
    call.send_only(b"question")
    call.begin(server.link, bytes_max=1000)
    *_, begun, asked = server.received()
    assert (begun.kind, asked.kind, asked.flags) == (frames.HEADERS, frames.DATA, frames.END_STREAM)
    assert b"2000000u" in begun.payload
    server.begin(call)
    server.answer(call, b"answer")
    assert not call.done()
    server.end(call, (b"last", b"1"))
    assert await call == b"answer"
    assert (await call.code(), await call.details()) == (Code.OK, "")
    assert dict(await call.trailing_metadata()) == {"last": "1"}
    assert 1 < (call.time_remaining() or 0) <= 2
    assert not call.cancel()


async def test_a_status_is_an_error_with_its_metadata(server: Server) -> None:
    call = server.call()
    server.begin(call)
    server.end(call, (b"grpc-message", b"no%0Asuch"), (b"why-bin", b"AQ"), status=b"5")
    error = await failure_of(call)
    assert (error.code(), error.details()) == (Code.NOT_FOUND, "no\nsuch")
    assert dict(error.trailing_metadata()) == {"why-bin": b"\1"}


async def test_a_status_may_come_alone(server: Server) -> None:
    call = server.call()
    block = block_of([(b":status", b"200"), (b"grpc-status", b"7")])
    server.send(peers.headers(call.stream_id, block=block))
    assert (await failure_of(call)).code() is Code.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("status", "code"), [(b"403", Code.PERMISSION_DENIED), (b"500", Code.UNKNOWN)]
)
async def test_an_answer_that_is_no_grpc_is_an_error(
    server: Server, status: bytes, code: grpc.StatusCode
) -> None:
    call = server.call()
    server.send(peers.headers(call.stream_id, block=block_of([(b":status", status)])))
    assert (await failure_of(call)).code() is code


@pytest.mark.parametrize(
    ("reset", "code"),
    [
        (H2ErrorCode.REFUSED_STREAM, Code.UNAVAILABLE),
        (H2ErrorCode.CANCEL, Code.CANCELLED),
        (H2ErrorCode.ENHANCE_YOUR_CALM, Code.RESOURCE_EXHAUSTED),
        (H2ErrorCode.PROTOCOL_ERROR, Code.INTERNAL),
    ],
)
async def test_a_reset_is_an_error(server: Server, reset: int, code: grpc.StatusCode) -> None:
    call = server.call()
    server.send(frames.frame(frames.RST_STREAM, 0, call.stream_id, word(reset)))
    assert (await failure_of(call)).code() is code


async def test_an_end_without_a_status_is_an_error(server: Server) -> None:
    call = server.call()
    server.begin(call)
    server.send(peers.data(b"", call.stream_id, flags=peers.END))
    assert (await failure_of(call)).code() is Code.UNKNOWN


async def test_a_call_may_be_awaited_again_and_by_several(server: Server) -> None:
    call = server.call()
    waiting = [asyncio.ensure_future(call._answer()) for _ in range(2)]
    await settle()
    server.begin(call)
    server.answer(call, b"answer")
    server.end(call)
    assert await asyncio.gather(*waiting) == [b"answer"] * 2
    assert await call == b"answer"


async def test_who_stops_waiting_ends_it_for_all_who_wait(server: Server) -> None:
    call = server.call()
    waiting = [asyncio.ensure_future(call._answer()) for _ in range(2)]
    await settle()
    waiting[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[1]
    assert call.cancelled()


async def test_an_answer_that_cannot_be_read_is_an_error(server: Server) -> None:
    def decode(_: bytes) -> bytes:
        raise LookupError("no message")

    method = Method("/some.Service/Call", None, decode, scheme=b"http", authority="h:1")
    call = ClientCall(method, (), None, has_ended=lambda _: None)
    call.send_only(b"question")
    call.begin(server.link, bytes_max=1000)
    server.begin(call)
    server.answer(call, b"answer")
    server.end(call)
    error = await failure_of(call)
    assert (error.code(), error.details()) == (
        Code.INTERNAL,
        "the answer cannot be read: no message",
    )


async def test_all_is_well_without_an_answer_is_an_error(server: Server) -> None:
    call = server.call()
    server.begin(call)
    server.end(call)
    assert (await failure_of(call)).code() is Code.INTERNAL


async def test_half_an_answer_is_an_error(server: Server) -> None:
    call = server.call()
    server.begin(call)
    server.send(peers.data(b"\0\0\0\0\x05ab", call.stream_id))
    server.end(call)
    assert (await failure_of(call)).code() is Code.INTERNAL


async def test_an_answer_over_the_bound_cancels_the_call(server: Server) -> None:
    call = server.call()
    server.begin(call)
    server.send(peers.data(b"\0\0\0\x10\0", call.stream_id))
    assert (await failure_of(call)).code() is Code.RESOURCE_EXHAUSTED
    assert server.received()[-1].payload == word(H2ErrorCode.CANCEL)


async def test_the_deadline_ends_a_call(server: Server) -> None:
    call = server.call(timeout_s=0.001)
    assert (await failure_of(call)).code() is Code.DEADLINE_EXCEEDED
    assert server.received()[-1].kind == frames.RST_STREAM


async def test_a_server_that_cancels_at_the_deadline_has_found_it_exceeded(server: Server) -> None:
    cancel = word(H2ErrorCode.CANCEL)
    for timeout_s, code in ((0.0, Code.DEADLINE_EXCEEDED), (50.0, Code.CANCELLED)):
        call = server.call(timeout_s=timeout_s)
        # Before the loop has come to look at its own clock.
        server.send(frames.frame(frames.RST_STREAM, 0, call.stream_id, cancel))
        assert await call.code() is code


async def test_a_call_that_had_to_wait_tells_what_is_left_of_its_deadline(server: Server) -> None:
    def told() -> bytes:
        (headers,) = [one for one in server.received() if one.kind == frames.HEADERS]
        pairs = dict(BlockReader(Limits()).read(headers.payload).pairs)
        return pairs[b"grpc-timeout"]

    for has_waited in (False, True):
        call = ClientCall(METHOD, (), 50.0, has_ended=lambda _: None)
        await asyncio.sleep(0)
        call.begin(server.link, bytes_max=1000, has_waited=has_waited)
        assert (told() == timeout_value(50.0)) is not has_waited
        call.cancel()


async def test_who_stops_waiting_cancels_the_call(server: Server) -> None:
    call = server.call()
    waiting = asyncio.ensure_future(call)
    await settle()
    waiting.cancel()
    await settle()
    assert call.cancelled()
    assert server.received()[-1].payload == word(H2ErrorCode.CANCEL)
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_whoever_stops_waiting_for_the_end_leaves_others_waiting(server: Server) -> None:
    call = server.call()
    first, second = asyncio.ensure_future(call.code()), asyncio.ensure_future(call.code())
    await settle()
    first.cancel()
    await settle()
    server.begin(call)
    server.end(call, status=b"5")
    assert await second is Code.NOT_FOUND


async def test_who_stops_reading_or_writing_cancels_the_call(server: Server) -> None:
    server.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    reader, writer = server.call(), server.call()
    for call, work in ((reader, reader.read()), (writer, writer.write(b"a"))):
        doing = asyncio.ensure_future(work)
        await settle()
        doing.cancel()
        await settle()
        assert await call.code() is Code.CANCELLED


async def test_a_stream_is_written_and_read_in_turns(server: Server) -> None:
    call = server.call()
    await call.write(b"a")
    server.begin(call)
    server.answer(call, b"1", b"2")
    assert [await call.read(), await call.read()] == [b"1", b"2"]
    await call.done_writing()
    await call.done_writing()
    assert server.received()[-1].flags == frames.END_STREAM
    server.end(call)
    assert await call.read() is grpc.aio.EOF
    with pytest.raises(asyncio.InvalidStateError):
        await call.write(b"late")


async def test_a_stream_that_fails_says_so_to_its_reader(server: Server) -> None:
    call = server.call()
    server.link.connection_lost(None)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call.read()
    assert (raised.value.code(), raised.value.details()) == (Code.UNAVAILABLE, "Socket closed")


async def test_answers_can_be_iterated_and_requests_be_an_iterator(server: Server) -> None:
    async def requests() -> Any:  # noqa: ANN401
        yield b"a"
        yield b"b"

    call = server.call()
    call.send_all(requests())
    await settle()
    bodies = [one for one in server.received() if one.kind == frames.DATA]
    assert [one.payload[5:] for one in bodies] == [b"a", b"b", b""]
    server.begin(call)
    server.answer(call, b"1", b"2")
    server.end(call)
    assert [answer async for answer in call] == [b"1", b"2"]


async def test_a_write_waits_for_room(server: Server) -> None:
    server.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    call = server.call()
    writing = asyncio.ensure_future(call.write(b"a"))
    await settle()
    assert not writing.done()
    # A late notification, for data that had been sent immediately.
    call.drained()
    await settle()
    assert not writing.done()
    server.send(peers.window(100, call.stream_id))
    await writing


async def test_a_call_that_ended_before_it_began_is_told_to_everybody() -> None:
    ended: list[Any] = []
    call = ClientCall(METHOD, None, None, has_ended=ended.append)
    reading = asyncio.ensure_future(call.read())
    writing = asyncio.ensure_future(call.write(b"a"))
    waiting = asyncio.ensure_future(call.wait_for_connection())
    await settle()
    told: list[Any] = []
    call.add_done_callback(told.append)
    call.fail(Code.UNAVAILABLE, "nobody is there")
    for one in (reading, writing, waiting):
        with pytest.raises(grpc.aio.AioRpcError, match="nobody is there"):
            await one
    assert ended == told == [call]
    assert dict(await call.initial_metadata()) == {}
    call.add_done_callback(told.append)
    assert told == [call, call]


# --- by callback ----------------------------------------------------------------------------------


class Taking(Telling):
    """Keeps the answers."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[bytes] = []
        self.error: Exception | None = None

    def capacity(self) -> int:
        return MESSAGES_PER_ITERATION

    def on_messages(self, messages: list[bytes]) -> None:
        self.taken += messages
        if self.error is not None:
            raise self.error

    def on_writable(self) -> None:
        self.told.append("drained")


async def handed(call: ClientCall) -> tuple[Taking, asyncio.Task[None]]:
    taker = Taking()
    handing = asyncio.ensure_future(call.deliver_to(taker))
    await settle()
    return taker, handing


async def test_answers_are_taken_as_they_come_and_requests_leave_by_the_door(
    server: Server,
) -> None:
    call = server.call()
    taker, handing = await handed(call)
    server.received()
    assert taker.stream_writer.reply(b"question")
    (asked,) = server.received()
    assert (asked.kind, asked.payload[5:]) == (frames.DATA, b"question")
    server.begin(call)
    server.answer(call, b"a", b"b")
    await asyncio.sleep(0)
    assert taker.taken == [b"a", b"b"]
    server.answer(call, b"c")
    server.end(call)
    await handing
    assert (taker.taken, taker.told) == ([b"a", b"b", b"c"], ["all"])
    assert taker.stream_writer.reply(b"late")
    assert server.received() == []


async def test_others_have_their_turn_between_many_answers(server: Server) -> None:
    call = server.call()
    taker, handing = await handed(call)
    server.begin(call)
    server.answer(call, *[b""] * (MESSAGES_PER_ITERATION + 1))
    server.end(call)
    await asyncio.sleep(0)
    assert len(taker.taken) == MESSAGES_PER_ITERATION
    await handing
    assert len(taker.taken) == MESSAGES_PER_ITERATION + 1


@pytest.mark.parametrize("end", ["status", "reset", "loss"])
async def test_what_a_call_ends_with_is_raised_behind_its_answers(server: Server, end: str) -> None:
    call = server.call()
    taker, handing = await handed(call)
    server.begin(call)
    server.answer(call, b"a")
    if end == "status":
        server.end(call, status=b"14")
    elif end == "reset":
        code = word(H2ErrorCode.REFUSED_STREAM)
        server.send(frames.frame(frames.RST_STREAM, 0, call.stream_id, code))
    else:
        server.link.connection_lost(None)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await handing
    assert raised.value.code() is Code.UNAVAILABLE
    assert (taker.taken, taker.told) == ([b"a"], ["all"])


@pytest.mark.parametrize("ends_well", [True, False])
async def test_an_answer_that_cannot_be_taken_ends_its_call(
    server: Server, *, ends_well: bool
) -> None:
    def decode(data: bytes) -> bytes:
        raise LookupError("no message")

    method = Method("/some.Service/Call", None, decode, scheme=b"http", authority="h:1")
    call = ClientCall(method, (), None, has_ended=lambda _: None)
    call.begin(server.link, bytes_max=1000)
    server.begin(call)
    server.answer(call, b"answer")
    if ends_well:
        server.end(call)
    taker = Taking()
    with pytest.raises(grpc.aio.AioRpcError, match="cannot be read: no message") as raised:
        await call.deliver_to(taker)
    assert raised.value.code() is Code.INTERNAL
    assert taker.taken == []


async def test_an_answer_that_is_too_large_ends_its_call(server: Server) -> None:
    call = server.call()
    taker, handing = await handed(call)
    server.begin(call)
    server.send(peers.data(b"\0\0\x10\0\0", call.stream_id))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await handing
    assert raised.value.code() is Code.RESOURCE_EXHAUSTED
    assert taker.taken == []


async def test_a_call_that_never_began_hands_nothing_over() -> None:
    call = ClientCall(METHOD, None, None, has_ended=lambda _: None)
    taker, handing = await handed(call)
    call.fail(Code.UNAVAILABLE, "nobody is there")
    with pytest.raises(grpc.aio.AioRpcError, match="nobody is there"):
        await handing
    assert (hasattr(taker, "stream_writer"), taker.told) == (False, [])


async def test_a_server_without_room_is_waited_for(server: Server) -> None:
    server.send(peers.settings(INITIAL_WINDOW_SIZE=0))
    call = server.call()
    taker, handing = await handed(call)
    assert not taker.stream_writer.reply(b"abc")
    server.send(peers.window(8, call.stream_id))
    assert taker.told == ["drained"]
    handing.cancel()
    await settle()
    assert call.cancelled()


async def test_an_error_of_who_takes_is_raised(server: Server) -> None:
    call = server.call()
    taker, handing = await handed(call)
    taker.error = LookupError("oops")
    server.begin(call)
    server.answer(call, b"a")
    with pytest.raises(LookupError, match="oops"):
        await handing
    assert not call.done()
