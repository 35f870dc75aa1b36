"""Contact of a follower with its leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.request_manager import RequestKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores
from tests.unit.raft.expecting import saved, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def lie(core: RaftCore, *, until_ms: int) -> tuple[int, list[str]]:
    """A leader whose high watermark has fallen."""
    return answer_all(core, cores.fetch_answer(high_watermark=Offset(1)), until_ms=until_ms)


def answer_all(core: RaftCore, answer: m.FetchResponse, *, until_ms: int) -> tuple[int, list[str]]:
    """Answer every Fetch in the same way; how often it asked, and what it said."""
    asked, now = 0, Millis(10)
    said: list[str] = []
    while now < until_ms:
        open_ = cores.open_calls(core, RequestKind.FETCH)
        if open_:
            update = cores.answer(core, open_[0].call, answer, now_ms=now)
            asked += 1
        else:
            assert update.wake_at_ms is not None
            now = update.wake_at_ms
            if now >= until_ms:
                break
            update = core.step(api.TimerFired(), now)
        said += cores.said(update)
    return asked, said


@pytest.mark.rule("leader_contradiction")
def test_it_backs_off_and_says_so_once() -> None:
    core = cores.fed()
    asked, said = lie(core, until_ms=1900)
    assert asked <= 8
    assert len(said) == 1
    assert any(f"({asked} answer(s), the last: " in line for line in core.status_warnings())


@pytest.mark.rule("leader_contradiction")
def test_its_voters_look_for_another_leader_meanwhile() -> None:
    core = cores.fed()
    lie(core, until_ms=1900)
    core.step(api.TimerFired(), Millis(2100))
    assert told(core).role == "prospective"
    pre_vote = cores.vote(3, 2, 1, cores.end(5, 1), pre_vote=True)
    other = cores.fed()
    lie(other, until_ms=500)
    (granted,) = cores.replies(cores.ask(other, pre_vote, now_ms=600))
    assert isinstance(granted, m.VoteResponse)
    assert granted.vote_granted


@pytest.mark.rule("leader_contradiction")
def test_a_leader_that_is_consistent_again_is_believed() -> None:
    core = cores.fed()
    lie(core, until_ms=1000)
    update = core.step(api.TimerFired(), Millis(1900))
    sound = cores.fetch_answer(high_watermark=Offset(4), records=cores.batches(cores.RECORD))
    update = cores.answer(core, cores.under_way(core), sound, now_ms=1901)
    assert core.has_live_leader
    assert told(core).high_watermark == 4
    assert core.status_warnings() == []
    assert any("believes leader 1 again" in note.text for note in update.trace)


@pytest.mark.rule("leader_contradiction")
def test_a_later_epoch_is_asked_at_once() -> None:
    core = cores.fed()
    lie(core, until_ms=1000)
    update = cores.begin(core, 3, 2, now_ms=1001)
    assert isinstance(cores.calls(update)[3][1], m.FetchRequest)
    assert core.status_warnings() == []


def test_an_error_that_is_repeated_is_said_once_and_asked_ever_later() -> None:
    error = m.FetchResponse(error=ErrorCode.UNSUPPORTED_VERSION, leader=cores.LEADER)
    asked, said = answer_all(cores.fed(), error, until_ms=1900)
    assert said == ["1 answers Fetch with UNSUPPORTED_VERSION"]
    assert asked <= 8


def test_an_error_names_the_leader_to_follow() -> None:
    core = cores.follower()
    info = m.LeaderInfo(NodeId(3), Epoch(2), cores.endpoints(3))
    error = m.FetchResponse(error=ErrorCode.FENCED_LEADER_EPOCH, leader=info)
    cores.answer(core, cores.under_way(core), error, now_ms=2)
    assert saved(core) == m.ElectionState(Epoch(2), NodeId(3))
