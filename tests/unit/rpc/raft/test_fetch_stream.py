"""One Fetch stream: order, the number of requests in flight, and its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from quorate.h2.fair_queue import UNSHARED
from quorate.raft import messages as m
from quorate.records.ids import ReplyToken
from quorate.rpc.convert import raft as convert
from quorate.rpc.raft.fetch_stream import (
    CONTROLLER_UNAVAILABLE,
    REQUESTS_PER_STREAM_MAX,
    SUPERSEDED,
    FetchStream,
    StreamRejection,
)
from tests.unit.rpc.fetches import fetch_from, fetched

if TYPE_CHECKING:
    from typing import TypeAlias

    from quorate.h2.fair_queue import Step
    from quorate.raft.messages import Response

    Waiting: TypeAlias = tuple[ReplyToken, asyncio.Future[Response]]


class Call:
    """The door of a stream, and the answers to its requests, by hand."""

    def __init__(self) -> None:
        self.asked: list[m.FetchRequest] = []
        self.answers: list[asyncio.Future[Response]] = []
        self.gone: list[int] = []
        self.sent: list[int] = []
        self.has_room = True
        self.resumed = 0
        self.ends: list[BaseException | None] = []
        self.stream = FetchStream(self._submit, self.gone.append)
        self.stream.begin(self)

    def _submit(self, request: m.FetchRequest, stream: FetchStream) -> Waiting:
        assert stream is self.stream
        self.asked.append(request)
        self.answers.append(asyncio.get_running_loop().create_future())
        return ReplyToken(len(self.asked)), self.answers[-1]

    def reply(self, message: Any) -> bool:  # noqa: ANN401
        self.sent.append(message.high_watermark)
        return self.has_room

    def resume(self) -> None:
        self.resumed += 1

    def schedule(self, step: Step) -> None:
        UNSHARED.run(step)

    def finish(self, error: BaseException | None = None) -> None:
        self.ends.append(error)

    def send(self, *offsets: int) -> None:
        for offset in offsets:
            assert self.stream.capacity()
            self.stream.on_messages([fetch_from(2, offset)])


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.rule("stream_responses")
async def test_requests_are_answered_in_order_and_few_are_under_way() -> None:
    call = Call()
    call.send(10, 11)
    assert len(call.asked) == REQUESTS_PER_STREAM_MAX
    assert call.asked[0] == convert.fetch_request(fetch_from(2, 10))
    assert call.stream.capacity() == 0
    call.answers[1].set_result(fetched(2))
    await settle()
    assert (call.sent, call.resumed) == ([], 0)
    call.answers[0].set_result(fetched(1))
    await settle()
    assert call.sent == [1, 2]
    assert call.resumed
    assert call.stream.capacity()
    assert call.ends == []


async def test_a_stream_ends_when_all_is_answered() -> None:
    call = Call()
    call.send(10)
    call.stream.on_half_close()
    assert (call.ends, call.stream.capacity()) == ([], 0)
    call.answers[0].set_result(fetched(1))
    await settle()
    assert (call.sent, call.ends, call.stream.stream_rejection) == ([1], [None], None)


async def test_an_answer_that_nobody_reads_holds_back_the_next() -> None:
    call = Call()
    call.has_room = False
    call.send(10, 11)
    for at in (0, 1):
        call.answers[at].set_result(fetched(at))
    await settle()
    call.send(12)
    assert not call.stream.capacity()
    assert call.sent == [0]
    call.has_room = True
    call.stream.on_half_close()
    call.stream.on_writable()
    await settle()
    assert (call.sent, call.ends) == ([0, 1], [])
    call.answers[2].set_result(fetched(2))
    await settle()
    assert (call.sent, call.ends) == ([0, 1, 2], [None])


async def test_whoever_is_superseded_is_answered_and_told() -> None:
    call = Call()
    call.send(10)
    call.stream.supersede()
    assert (call.ends, call.stream.capacity()) == ([], 0)
    call.answers[0].set_result(fetched(1))
    await settle()
    assert (call.sent, call.ends, call.stream.stream_rejection) == ([1], [None], SUPERSEDED)


async def test_a_stream_that_its_replica_has_closed_is_not_superseded() -> None:
    call = Call()
    call.send(10)
    call.stream.on_half_close()
    call.stream.supersede()
    call.answers[0].set_result(fetched(1))
    await settle()
    assert call.stream.stream_rejection is None


async def test_what_ends_before_it_begins_is_told_when_it_begins() -> None:
    call = Call()
    early = FetchStream(call._submit, call.gone.append)
    early.supersede()
    early.begin(call)
    assert (call.ends, early.stream_rejection) == ([None], SUPERSEDED)


async def test_a_malformed_fetch_is_told_after_what_came_before() -> None:
    call = Call()
    call.send(10)
    bad = fetch_from(2, 10)
    bad.replica_directory_id = b"short"
    with pytest.raises(ValueError, match="replica_directory_id") as wrong:
        call.stream.on_messages([bad])
    call.stream.on_invalid_message(wrong.value)
    call.answers[0].set_result(fetched(1))
    await settle()
    assert (call.sent, call.ends) == ([1], [None])
    assert call.stream.stream_rejection == StreamRejection(
        grpc.StatusCode.INVALID_ARGUMENT, str(wrong.value)
    )


async def test_an_answer_that_is_given_up_ends_its_stream() -> None:
    call = Call()
    call.send(10, 11)
    call.answers[0].cancel()
    await settle()
    assert (call.ends, call.stream.stream_rejection) == ([None], CONTROLLER_UNAVAILABLE)
    call.stream.close()
    assert call.gone == [1, 2]


async def test_an_answer_that_cannot_be_sent_ends_its_stream() -> None:
    call = Call()
    call.send(10)
    call.answers[0].set_result(m.DescribeQuorumRequest())  # type: ignore[arg-type]
    await settle()
    assert [type(end) for end in call.ends] == [AssertionError]


async def test_only_what_is_not_answered_is_given_up() -> None:
    call = Call()
    call.has_room = False
    call.send(10, 11)
    call.answers[0].set_result(fetched(1))
    await settle()
    call.send(12)
    call.answers[1].set_result(fetched(2))
    call.stream.close()
    call.stream.on_writable()
    await settle()
    assert (call.sent, call.ends, call.gone) == ([1], [], [2, 3])


async def test_an_answer_that_came_before_the_stream_began_is_not_lost() -> None:
    call = Call()
    call.stream = early = FetchStream(call._submit, call.gone.append)
    early.submit(convert.fetch_request(fetch_from(2, 10)))
    call.answers[0].set_result(fetched(1))
    await settle()
    early.begin(call)
    await settle()
    assert call.sent == [1]


async def test_a_fetch_that_is_not_taken_ends_its_stream_with_the_error() -> None:
    def submit(request: m.FetchRequest, stream: FetchStream) -> Waiting:
        raise LookupError("oops")

    call = Call()
    call.stream = FetchStream(submit, call.gone.append)
    call.stream.begin(call)
    with pytest.raises(LookupError):
        call.stream.on_messages([fetch_from(2, 10)])
    call.stream.close()
    assert call.gone == []


async def test_more_is_asked_for_only_where_it_was_held_back() -> None:
    call = Call()
    call.send(10)
    call.answers[0].set_result(fetched(1))
    await settle()
    assert call.resumed == 0
    call.send(11, 12)
    call.answers[1].set_result(fetched(2))
    await settle()
    assert call.resumed == 1


async def test_what_is_left_at_the_end_is_given_up() -> None:
    call = Call()
    call.send(10, 11)
    call.answers[0].set_result(fetched(1))
    call.stream.close()
    await settle()
    assert (call.sent, call.ends, call.gone) == ([], [], [1, 2])
