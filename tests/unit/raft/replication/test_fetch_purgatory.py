"""Parked Fetches, the work for each of which does not grow with their number."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.replication.fetch_purgatory import ANSWERS_PER_MS, FetchPurgatory, ParkedFetch
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplyToken
from tests.unit.raft import cores
from tests.unit.raft.expecting import log_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from quorate.raft.core import RaftCore

FIRST = 10


def parked(token: int, deadline: int, node_id: int | None = None) -> ParkedFetch:
    key = None if node_id is None else cores.key(node_id)
    return ParkedFetch(ReplyToken(token), key, cores.fetch(7, 0, 0), Millis(deadline))


def taken(fetch_purgatory: FetchPurgatory, now_ms: int) -> list[int]:
    return [fetch.token for fetch in fetch_purgatory.take_due(Millis(now_ms))]


def test_what_is_due_is_taken_in_the_order_of_its_deadlines() -> None:
    parking = FetchPurgatory()
    for token, deadline in ((1, 30), (2, 10), (3, 20)):
        parking.add(parked(token, deadline))
    assert parking.next_deadline() == 10
    assert taken(parking, 20) == [2, 3]
    assert (parking.next_deadline(), len(parking)) == (30, 1)


def test_what_was_hastened_or_removed_leaves_no_second_deadline() -> None:
    parking = FetchPurgatory()
    first, second = parked(1, 30, 7), parked(2, 40, 8)
    parking.add(first)
    parking.add(second)
    parking.answer_by(second, Millis(15))
    parking.answer_by(second, Millis(90))
    parking.remove(first.token)
    assert parking.by_replica(cores.key(7)) is None
    assert parking.by_replica(cores.key(8)) is second
    assert taken(parking, 100) == [2]
    assert parking.next_deadline() is None


def test_a_millisecond_has_so_many_answers_and_the_next_one_goes_on() -> None:
    parking = FetchPurgatory()
    for token in range(ANSWERS_PER_MS + 3):
        parking.add(parked(token, 10))
    assert len(taken(parking, 10)) == ANSWERS_PER_MS
    assert taken(parking, 10) == []
    assert parking.next_deadline() == 11
    assert len(taken(parking, 11)) == 3


def test_the_heap_does_not_keep_what_was_answered_before_its_time() -> None:
    parking = FetchPurgatory()
    for token in range(10_000):
        parking.add(parked(token, 500, 7))
        parking.remove(ReplyToken(token))
    assert len(parking._due) < 100


# --- a leader with many observers -------------------------------------------------------------


def instructions(work: Callable[[], Any]) -> int:
    """The number of the interpreter's instructions that it takes."""
    count = 0
    # A pass of the collector may run finalizers of other tests, which count here.
    gc.disable()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def observed(observers: int) -> RaftCore:
    """A leader whose log is committed and known to one voter and so many observers, all parked."""
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    for index in range(observers):
        cores.ask(core, observer(FIRST + index, 3), now_ms=2001, token=FIRST + index)
    return core


def observer(node_id: int, offset: int) -> m.FetchRequest:
    request = cores.fetch(4, offset, 1)
    key = replace(cores.key(4), node_id=NodeId(node_id))
    return replace(request, replica=key, high_watermark=Offset(offset))


def commit(core: RaftCore, *, now_ms: int) -> set[int]:
    """One record more, and whom it answers."""
    batch = api.ProposedBatch(b"x" * 70, 1)
    core.step(api.RecordsProposed(ReplyToken(1), Epoch(1), batch), Millis(now_ms))
    cores.flush(core, now_ms=now_ms)
    request = cores.fetch(2, log_end(core).offset, 1, wait_ms=0)
    return answered(cores.ask(core, request, now_ms=now_ms, token=2))


def answered(update: api.Update) -> set[int]:
    tokens = {effect.token for effect in update.effects if isinstance(effect, api.SendReply)}
    return {int(token) for token in tokens if token >= FIRST}


def test_all_observers_get_a_commit_a_slice_at_a_time() -> None:
    core = observed(3 * ANSWERS_PER_MS)
    first = commit(core, now_ms=2002)
    assert len(first) == ANSWERS_PER_MS
    second = core.step(api.TimerFired(), Millis(2003))
    assert second.wake_at_ms == 2004
    third = core.step(api.TimerFired(), Millis(2004))
    everybody = first | answered(second) | answered(third)
    assert everybody == {FIRST + index for index in range(3 * ANSWERS_PER_MS)}


def test_a_voter_does_not_wait_for_the_observers_turn() -> None:
    core = observed(3 * ANSWERS_PER_MS)
    cores.ask(core, replace(cores.fetch(3, 3, 1), high_watermark=Offset(3)), now_ms=2001, token=5)
    batch = api.ProposedBatch(b"x" * 70, 1)
    update = core.step(api.RecordsProposed(ReplyToken(1), Epoch(1), batch), Millis(2002))
    tokens = {effect.token for effect in update.effects if isinstance(effect, api.SendReply)}
    assert tokens == {1, 5}


@pytest.mark.parametrize("what", ["a Fetch", "a commit", "the next slice"])
def test_what_a_step_costs_does_not_grow_with_the_observers(what: str) -> None:
    def cost(observers: int) -> int:
        core = observed(observers)
        if what == "a Fetch":
            return instructions(
                lambda: cores.ask(core, observer(FIRST + 1, 3), now_ms=2002, token=9)
            )
        # The first commit after their Fetches looks at each of them, once.
        commit(core, now_ms=2002)
        if what == "a commit":
            return instructions(lambda: commit(core, now_ms=2003))
        return instructions(lambda: core.step(api.TimerFired(), Millis(2003)))

    few, many = cost(4 * ANSWERS_PER_MS), cost(40 * ANSWERS_PER_MS)
    assert many < 1.2 * few


def test_what_a_current_read_costs_does_not_grow_with_the_reads() -> None:
    def cost(reads: int) -> float:
        core = observed(0)

        def work() -> None:
            for token in range(FIRST, FIRST + reads):
                core.step(api.ReadRequested(ReplyToken(token)), Millis(2002))
            first = cores.ask(core, cores.fetch(2, 3, 1), now_ms=2003, token=2)
            (response,) = (r for r in cores.replies(first) if isinstance(r, m.FetchResponse))
            request = cores.fetch(2, 3, 1, read_round=response.read_round)
            update = cores.ask(core, request, now_ms=2004, token=3)
            assert len([r for r in cores.replies(update) if isinstance(r, m.ReadResponse)]) == reads

        return instructions(work) / reads

    few, many = cost(20), cost(400)
    assert many < 1.2 * few
