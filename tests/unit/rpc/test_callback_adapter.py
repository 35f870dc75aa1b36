"""Takers behind iterators, as gRPC's own library has them."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from quorate.h2.callback_stream import CallbackStream
from quorate.h2.fair_queue import UNSHARED
from quorate.rpc.callback_adapter import forward_responses, iter_replies, take_while
from tests.unit.h2.takers import Telling

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from quorate.h2.callback_stream import StreamHandler, StreamWriter
    from quorate.h2.fair_queue import Step


class Doubling(Telling):
    """Replies to each number with its double, one reply at a time."""

    def __init__(self, *, room: int = 1000) -> None:
        super().__init__()
        self.left = room
        self.taken: list[int] = []
        self.waits = asyncio.Event()

    def capacity(self) -> int:
        if len(self.taken) == self.left:
            self.waits.set()
        return self.left - len(self.taken)

    def on_messages(self, messages: list[int]) -> None:
        (message,) = messages
        if message < 0:
            raise ValueError("negative")
        if message == 0:
            raise LookupError("zero")
        self.taken.append(message)
        self.stream_writer.reply(2 * message)
        self.left -= 1

    def on_writable(self) -> None:
        self.left += 1
        self.stream_writer.resume()


async def each(numbers: Iterable[int]) -> AsyncIterator[int]:
    for number in numbers:
        yield number


async def replied(taker: Doubling, *numbers: int) -> list[Any]:
    return [reply async for reply in iter_replies(taker, each(numbers))]


async def test_replies_are_yielded_in_order() -> None:
    taker = Doubling(room=1)
    assert await replied(taker, 1) == [2]
    assert taker.told == ["all"]


async def test_what_cannot_be_taken_comes_after_the_replies() -> None:
    taker = Doubling()
    assert await replied(taker, 1, -1, 2) == [2]
    assert (taker.taken, taker.told) == ([1], ["negative"])


async def test_an_error_of_a_taker_is_raised() -> None:
    with pytest.raises(LookupError, match="zero"):
        await replied(Doubling(), 0)


async def test_a_taker_without_room_is_waited_for() -> None:
    taker = Doubling(room=0)
    replies = iter_replies(taker, each([1]))
    first = asyncio.ensure_future(anext(replies))
    await taker.waits.wait()
    await asyncio.sleep(0)
    assert taker.taken == []
    taker.left = 2
    taker.stream_writer.resume()
    assert await first == 2
    with pytest.raises(StopAsyncIteration):
        await anext(replies)


async def test_whoever_ends_early_reads_no_more() -> None:
    taker = Doubling()
    endless: asyncio.Queue[int] = asyncio.Queue()

    async def requests() -> AsyncIterator[int]:
        try:
            while True:
                yield await endless.get()
        finally:
            taker.told.append("closed")

    replies = iter_replies(taker, requests())
    endless.put_nowait(4)
    assert await anext(replies) == 8
    await replies.aclose()
    await asyncio.sleep(0)
    endless.put_nowait(5)
    await asyncio.sleep(0)
    assert taker.taken == [4]


async def test_requests_are_taken_while_they_are_wanted() -> None:
    taken = [number async for number in take_while(each([1, 2, 9, 3]), lambda n: n < 5)]
    assert taken == [1, 2]


class ByHand(CallbackStream):
    """A client's call that passes on its events, and its stream."""

    def __init__(self, *answers: int) -> None:
        self.answers = answers
        self.ends: list[BaseException | None] = []

    async def deliver_to(self, stream_handler: StreamHandler) -> None:
        stream_handler.begin(self)
        try:
            assert stream_handler.capacity() >= len(self.answers)
            stream_handler.on_messages(list(self.answers))
        except ValueError as error:
            stream_handler.on_invalid_message(error)
        else:
            stream_handler.on_writable()
            stream_handler.on_half_close()

    def reply(self, message: Any) -> bool:  # noqa: ANN401
        raise AssertionError("nothing is sent here")

    def resume(self) -> None:
        raise AssertionError("it always takes more")

    def schedule(self, step: Step) -> None:
        UNSHARED.run(step)

    def finish(self, error: BaseException | None = None) -> None:
        self.ends.append(error)


class Read:
    """One of gRPC's own library."""

    def __init__(self, *answers: int) -> None:
        self._left: list[Any] = [*answers, grpc.aio.EOF]

    async def read(self) -> Any:  # noqa: ANN401
        return self._left.pop(0)


async def test_answers_are_taken_in_order_on_either_transport() -> None:
    calls: list[Any] = [Read(1, 2), ByHand(1, 2)]
    for call in calls:
        taken: list[int] = []
        doors: list[StreamWriter] = []
        await forward_responses(call, taken.append, doors.append)
        assert taken == [1, 2]
        assert doors == ([call] if isinstance(call, ByHand) else [])
    assert calls[1].ends == [None]


async def test_an_answer_that_is_not_what_it_should_be_ends_all() -> None:
    def take(_: int) -> None:
        raise ValueError("wrong")

    call: Any = ByHand(1, 2)
    await forward_responses(call, take, lambda _: None)
    assert [str(end) for end in call.ends] == ["wrong"]


async def test_a_call_that_is_given_up_is_freed() -> None:
    class Silent(ByHand):
        async def deliver_to(self, stream_handler: StreamHandler) -> None:
            self.stream_handler = stream_handler
            await super().deliver_to(stream_handler)
            await asyncio.Event().wait()

    call: Any = Silent()
    found = weakref.ref(call)
    taking = asyncio.ensure_future(forward_responses(call, lambda _: None, lambda _: None))
    await asyncio.sleep(0)
    taking.cancel()
    await asyncio.wait([taking])
    del call, taking
    assert found() is None
