"""Parents of the spans: for calls that come in, requests, saved state and log entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import StatusCode, get_current_span

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.ids import CallId, Epoch, NodeId, ReplyToken
from quorate.server.tracing.election_spans import ElectionSpans
from quorate.server.tracing.raft_spans import CALLS_MAX
from quorate.telemetry.trace_ids import root_id_of
from tests.recorded_spans import attributes_of, operation_of, recorded
from tests.unit.raft import cores
from tests.unit.server.watched import SAVING_MS, Watched, parent_of

if TYPE_CHECKING:
    import pytest

VOTE = "quorate.raft.v1.Raft/Vote"


def test_what_a_voter_saves_is_a_child_of_the_call_that_asked_for_its_vote() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.ask(cores.vote(3, 1, 4, cores.end(0, 0)), called=VOTE, at=10)
    persist = spans.one("kraft.quorum_state.persist")
    assert parent_of(persist, spans) == VOTE
    assert attributes_of(persist) == {"kraft.epoch": 4, "kraft.fsync.duration_ms": SAVING_MS}


def test_what_nobody_traces_is_saved_without_a_span() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.ask(cores.vote(3, 1, 4, cores.end(0, 0)), at=10)
    assert spans.spans == []


def test_a_call_that_was_answered_has_nothing_to_do_with_what_comes_after_it() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.ask(cores.vote(3, 1, 4, cores.end(0, 0)), called=VOTE, at=10)
        watched.wake(5000)
        watched.spans.ended()
    part = spans.one("kraft.election.round")
    assert part.parent is not None
    assert part.parent.span_id == root_id_of(cores.CLUSTER, 5)
    assert not watched.spans._calls


def test_a_request_that_is_sent_for_no_span_carries_none() -> None:
    with recorded():
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        fetch = api.SendRequest(
            CallId(99), api.Peer(NodeId(2), "node-2", 9094), cores.fetch(1, 0, 0)
        )
        watched.transport.send(fetch)
        assert not watched.carried[2].is_valid


def test_calls_that_are_never_answered_are_forgotten_some_day() -> None:
    with recorded():
        watched = Watched(cores.recovered(1, 2, 3))
        vote = cores.vote(3, 1, 4, cores.end(0, 0))
        with watched.tracing.span("a", {}):
            for token in range(2 * CALLS_MAX):
                watched.spans.submitted(ReplyToken(token), vote)
            watched.spans.submitted(ReplyToken(9999), cores.fetch(2, 0, 0))
        assert list(watched.spans._calls) == [*range(CALLS_MAX, 2 * CALLS_MAX)]
        watched.step(api.CallerDisconnected(ReplyToken(CALLS_MAX)))
        assert ReplyToken(CALLS_MAX) not in watched.spans._calls


def test_the_lines_of_a_step_belong_to_its_call_or_to_what_is_going_on() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))

        def current() -> str | None:
            with watched.spans.within_step():
                found = get_current_span().get_span_context()
            return f"{found.span_id:x}" if found.is_valid else None

        seen = [current()]
        watched.ask(cores.vote(3, 1, 0, cores.end(0, 0), pre_vote=True), called=VOTE, at=10)
        seen.append(current())
        watched.step(api.TimerFired(), 11)
        seen.append(current())
        watched.wake_until(object)
        watched.wake(5000)
        seen.append(current())
        watched.spans.ended()
    ids = {f"{span.context.span_id:x}": operation_of(span) for span in spans.spans}
    assert [None if one is None else ids[one] for one in seen] == [
        None,
        VOTE,
        None,
        "kraft.election.pre_vote",
    ]


def test_a_disk_that_failed_leaves_a_span_that_says_so() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        save = api.SaveElection(m.ElectionState(Epoch(1)), 1, watched.core.replica.voters)
        watched.spans.saving(save)
        watched.spans.ended()
    assert spans.one("kraft.quorum_state.persist").status.status_code is StatusCode.ERROR


def test_what_cannot_be_told_of_a_request_does_not_keep_it_from_being_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(ElectionSpans, "asked", fail)
    with recorded():
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        assert isinstance(watched.calls[2][1], m.VoteRequest)
        assert not watched.carried[2].is_valid
    assert "an observer failed" in caplog.messages
