"""One stream of writes: order, what is acknowledged together, room, and how it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from quorate.controller.topics.messages import CreateTopics, NewTopic
from quorate.h2.fair_queue import UNSHARED
from quorate.rpc.controller.write_stream import (
    ACKNOWLEDGED_TOGETHER_MAX,
    CONVERTED_AT_ONCE_BYTES,
    WriteStream,
    converted,
)
from quorate.rpc.controller.write_window import SHARED_BYTES, WRITES_MAX, SharedWriteBudget
from quorate.rpc.convert import controller as convert
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from quorate.api.handlers import PendingAnswer
    from quorate.controller.request_types import WriteReply, WriteRequest
    from quorate.h2.fair_queue import Step

    Future: TypeAlias = asyncio.Future[WriteReply]


class Call:
    """The door of a stream, and the decisions on its writes, by hand."""

    def __init__(self, budget: SharedWriteBudget | None = None) -> None:
        self.budget = budget or SharedWriteBudget()
        self.asked: list[Future] = []
        self.sent: list[tuple[int, int, list[str]]] = []
        self.has_room = True
        self.resumed = 0
        self.is_resumed = asyncio.Event()
        self.ends: list[BaseException | None] = []
        self.stream = WriteStream(self._write, _put, self.budget)
        self.stream.begin(self)

    def _write(self, writes: Sequence[WriteRequest]) -> list[Future]:
        made: list[Future] = [asyncio.get_running_loop().create_future() for _ in writes]
        self.asked += made
        return made

    def reply(self, message: Any) -> bool:  # noqa: ANN401
        words = [result.message for result in message.results]
        self.sent.append((message.first_sequence, message.last_sequence, words))
        return self.has_room

    def resume(self) -> None:
        self.resumed += 1
        self.is_resumed.set()

    def schedule(self, step: Step) -> None:
        UNSHARED.run(step)

    def finish(self, error: BaseException | None = None) -> None:
        self.ends.append(error)

    def send(self, *sequences: int, size: int = 10) -> None:
        assert self.stream.capacity() >= len(sequences)
        self.stream.on_messages([(request(sequence), size) for sequence in sequences])


def _put(result: pb.WriteResult, reply: PendingAnswer[WriteReply]) -> None:
    result.message = str(reply.result())


def request(sequence: int, topics: int = 1) -> pb.WriteRequest:
    write = CreateTopics(tuple(NewTopic(f"t-{n}") for n in range(topics)))
    message = convert.write_request(write)
    message.sequence = sequence
    return message


def answer(future: Future, words: Any) -> None:  # noqa: ANN401
    future.set_result(words)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_replies_of_one_commit_leave_together_and_in_order() -> None:
    call = Call()
    call.send(5, 6, 7, 8)
    for at in (2, 1):
        answer(call.asked[at], "abcd"[at])
    await settle()
    assert call.sent == []
    answer(call.asked[0], "a")
    await settle()
    assert call.sent == [(5, 7, ["a", "b", "c"])]
    answer(call.asked[3], "d")
    await settle()
    assert call.sent[1:] == [(8, 8, ["d"])]
    assert call.budget.writes == 0
    assert call.ends == []


async def test_no_message_acknowledges_more_than_a_bounded_number() -> None:
    call = Call()
    call.stream = WriteStream(call._write, _put, call.budget)
    call.stream.begin(call)
    call.send(*range(ACKNOWLEDGED_TOGETHER_MAX))
    for future in call.asked:
        answer(future, "x")
    await settle()
    assert [len(words) for _, _, words in call.sent] == [ACKNOWLEDGED_TOGETHER_MAX]


async def test_a_stream_ends_when_all_is_acknowledged() -> None:
    call = Call()
    call.send(1)
    call.stream.on_half_close()
    assert call.ends == []
    answer(call.asked[0], "a")
    await settle()
    assert (call.sent, call.ends) == ([(1, 1, ["a"])], [None])
    assert call.stream.refused is None


async def test_a_stream_without_writes_ends_at_once() -> None:
    call = Call()
    call.stream.on_half_close()
    assert call.ends == [None]


async def test_an_acknowledgement_that_nobody_reads_holds_its_writes_and_the_next_ones() -> None:
    call = Call()
    call.has_room = False
    call.send(1, 2)
    answer(call.asked[0], "a")
    await settle()
    answer(call.asked[1], "b")
    call.stream.on_half_close()
    await settle()
    assert (call.sent, call.budget.writes, call.ends) == ([(1, 1, ["a"])], 2, [])
    call.has_room = True
    call.stream.on_writable()
    await settle()
    assert (call.sent[1:], call.budget.writes, call.ends) == ([(2, 2, ["b"])], 0, [None])


async def test_a_full_window_takes_no_more_until_something_is_acknowledged() -> None:
    call = Call()
    call.send(*range(WRITES_MAX))
    assert not call.stream.capacity()
    assert not call.stream.capacity()
    answer(call.asked[0], "a")
    await settle()
    assert call.resumed == 1
    assert call.stream.capacity()


async def test_streams_share_what_all_may_hold() -> None:
    budget = SharedWriteBudget()
    one, other = Call(budget), Call(budget)
    one.send(1, size=SHARED_BYTES)
    other.send(1, size=SHARED_BYTES)
    await settle()
    assert (other.resumed, other.stream.capacity()) == (1, 0)
    one.stream.close()
    assert other.resumed == 2
    other.stream.close()
    assert (budget.writes, budget.bytes) == (0, 0)


async def test_a_malformed_write_is_told_after_what_came_before() -> None:
    call = Call()
    with pytest.raises(ValueError, match="request") as wrong:
        call.stream.on_messages(
            [(request(1), 10), (pb.WriteRequest(sequence=2), 10), (request(3), 10)]
        )
    call.stream.on_invalid_message(wrong.value)
    assert not call.stream.capacity()
    assert call.ends == []
    answer(call.asked[0], "a")
    await settle()
    assert (call.sent, call.ends) == ([(1, 1, ["a"])], [None])
    assert call.stream.refused == str(wrong.value)


async def test_nothing_overtakes_a_large_write() -> None:
    call = Call()
    large = request(1, topics=900)
    call.stream.on_messages([(request(0), 10), (large, CONVERTED_AT_ONCE_BYTES + 1)])
    assert not call.stream.capacity()
    call.stream.on_half_close()
    await call.is_resumed.wait()
    assert (len(call.asked), call.ends) == (2, [])
    for future in call.asked:
        answer(future, "a")
    await settle()
    assert (call.sent, call.ends) == ([(0, 1, ["a", "a"])], [None])


@pytest.mark.parametrize("error", [ValueError("no"), LookupError("no")])
async def test_a_large_write_that_fails_ends_its_stream(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    call = Call()
    monkeypatch.setattr(convert, "chosen_in_slices", fail)
    call.stream.on_messages([(request(1), CONVERTED_AT_ONCE_BYTES + 1)])
    await settle()
    is_malformed = isinstance(error, ValueError)
    assert call.ends[0] is (None if is_malformed else error)
    assert call.stream.refused == ("no" if is_malformed else None)
    assert not is_malformed or not call.stream.capacity()


async def test_a_reply_that_is_cancelled_ends_its_stream() -> None:
    call = Call()
    call.send(1)
    call.asked[0].cancel()
    await settle()
    assert [type(end) for end in call.ends] == [asyncio.CancelledError]


async def test_what_is_left_at_the_end_is_given_up() -> None:
    call = Call()
    call.send(1, 2)
    call.stream.on_messages([(request(3, topics=900), CONVERTED_AT_ONCE_BYTES + 1)])
    call.stream.close()
    await settle()
    assert [future.cancelled() for future in call.asked] == [True, True]
    assert (call.sent, call.ends, call.budget.writes, call.budget.bytes) == ([], [], 0, 0)


async def test_a_write_is_converted_whatever_its_size() -> None:
    message = request(1, topics=2)
    at_once, in_slices = await converted(message, 10), await converted(message, 1 << 20)
    assert at_once == in_slices == CreateTopics((NewTopic("t-0"), NewTopic("t-1")))
