"""Of a transcript the lines that a reader of a violation needs."""

from __future__ import annotations

import pytest

from quorate.raft import api, messages
from quorate.raft.trace_events import TraceEvent, TraceEventKind
from quorate.records.ids import (
    ClusterId,
    Epoch,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    ReplyToken,
)
from quorate.records.voters import VoterSet
from quorate.sim.transcript import Line
from quorate.sim.transcript_filter import MentionedIds, TranscriptFilter


def named(
    nodes: tuple[int, ...] = (), epochs: tuple[int, ...] = (), offsets: tuple[int, ...] = ()
) -> MentionedIds:
    return MentionedIds(frozenset(nodes), frozenset(epochs), frozenset(offsets))


@pytest.mark.parametrize(
    ("violation", "expected"),
    [
        (
            "ElectionSafety: epoch 5 has two leaders: node 1 (life 2) and node 3 (life 7)",
            named((1, 3), (5,)),
        ),
        (
            "AcknowledgedSurvives: node 2 commits up to 41, which only [2] of the voters "
            "[1, 2, 3] have on their platters",
            named((2,), (), (41,)),
        ),
        (
            "LogMatching: logs of nodes 1 and 2 both reach 17@4, but differ below",
            named((1, 2), (4,), (17,)),
        ),
        (
            "DecommissionedStayAway: 2:_MUotIYY2CKMTwNILkzu4g was removed, and is back at 162",
            named((2,), (), (162,)),
        ),
        (
            "Monotonic: node 3 goes back from epoch 6 to 5",
            named((3,), (6, 5)),
        ),
        (
            "Oracle: operation 900 is committed twice, at 5 and 9",
            named((), (), (5, 9)),
        ),
        (
            "Offering: node 1 deletes snapshot 30@2, of which it sent a slice 12 ms ago",
            named((1,), (2,), (30,)),
        ),
        (
            "NoTruncationOfCommitted: node 3 cuts its log at 8, but 8..11 is committed",
            named((3,), (), (8, 11)),
        ),
    ],
)
def test_a_violation_names_nodes_epochs_and_offsets(violation: str, expected: MentionedIds) -> None:
    assert MentionedIds.of(violation) == expected


def end(offset: int, epoch: int = 4) -> OffsetAndEpoch:
    return OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(offset))


def step(
    node: int, *effects: api.Effect, event: api.Event | None = None, says: str | None = None
) -> Line:
    notes = () if says is None else (TraceEvent(TraceEventKind.STARTED, says, {}),)
    update = api.Update(effects, None, notes)
    return Line(0, NodeId(node), event or api.TimerFired(), update)


def append(base: int, to: int) -> api.AppendToLog:
    return api.AppendToLog(Offset(base), end(to), api.ProposedBatch(b"", to - base))


def progress(
    role: str, epoch: int = 4, high_watermark: int | None = None, *, leads: bool = False
) -> api.PublishProgress:
    known = None if high_watermark is None else Offset(high_watermark)
    return api.PublishProgress(
        role=role,
        epoch=Epoch(epoch),
        leader_id=None,
        is_leader=leads,
        epoch_start=None,
        high_watermark=known,
    )


def told(name: MentionedIds, *lines: Line, most: int = 60) -> list[Line | int]:
    """The printed lines without those that are always printed: the last ones."""
    telling = TranscriptFilter(name, most)
    idle = [step(9), step(9)]
    for line in (*lines, *idle):
        telling.add(line)
    kept = list(telling.lines())
    assert kept[-2:] == idle
    return kept[:-2]


def test_whoever_has_a_named_offset_or_loses_it_is_told_of() -> None:
    covering = step(1, append(5, 10))
    cut = step(2, api.TruncateLog(end(7), 1))
    others = step(1, append(10, 12)), step(2, api.TruncateLog(end(11), 2))
    assert told(named((3,), (), (8,)), covering, *others, cut) == [covering, 2, cut]


def test_a_commit_is_told_of_when_it_passes_a_named_offset() -> None:
    steps = [step(1, progress("leader", high_watermark=at, leads=True)) for at in (5, 8, 9)]
    assert told(named((2,), (), (8,)), *steps) == [steps[0], steps[1], 1]


def test_a_flush_is_told_of_when_it_passes_a_named_offset() -> None:
    steps = [step(1, event=api.LogFlushed(end(at), 0)) for at in (5, 8, 9)]
    assert told(named((2,), (), (8,)), *steps) == [1, steps[1], 1]


def test_roles_of_named_nodes_and_epochs_are_told_of_once() -> None:
    named_node = step(1, progress("follower"))
    repeated = step(1, progress("follower", high_watermark=3))
    another = step(2, progress("follower"))
    in_the_epoch = step(2, progress("candidate", epoch=6))
    lines = told(named((1,), (6,)), named_node, repeated, another, in_the_epoch)
    assert lines == [named_node, 2, in_the_epoch]


def test_a_nominee_that_never_wins_is_told_of_once_in_an_epoch() -> None:
    asks, loses = step(1, progress("prospective")), step(1, progress("unattached"))
    assert told(named((1,)), asks, loses, asks, loses) == [asks, loses, 2]


def test_each_leader_is_told_of() -> None:
    leads, gone = step(2, progress("leader", leads=True)), step(2, progress("resigned"))
    assert told(named((1,)), leads, gone) == [leads, gone]


def test_votes_in_a_named_epoch_are_told_of() -> None:
    def ask(epoch: int, *, pre_vote: bool = False) -> Line:
        key = ReplicaKey(NodeId(2))
        vote = messages.VoteRequest(
            cluster_id=ClusterId("c"),
            voter=key,
            replica=key,
            replica_epoch=Epoch(epoch),
            last=end(3),
            pre_vote=pre_vote,
        )
        return step(3, event=api.RequestReceived(ReplyToken(1), vote))

    vote = ask(6)
    saved = step(3, api.SaveElection(messages.ElectionState(Epoch(6)), 1, VoterSet()))
    assert told(named((1,), (6,)), ask(5), ask(6, pre_vote=True), vote, saved) == [2, vote, saved]


def test_what_befalls_others_is_left_out() -> None:
    remarks = [
        Line(0, None, text, None)
        for text in ("the network heals", "node 1 is killed", "node 2 is killed")
    ]
    assert told(named((1,)), *remarks) == [remarks[0], remarks[1], 1]


def test_what_a_node_repeats_is_told_once_in_a_role() -> None:
    says = step(1, says="no answer of 2 for 100 ms")
    again = step(1, says="no answer of 2 for 200 ms")
    role = step(1, progress("candidate"))
    assert told(named((1,)), says, again, role, again) == [says, 1, role, again]


def test_of_too_many_lines_the_latest_are_told() -> None:
    steps = [step(1, append(8, 9)) for _ in range(100)]
    assert told(named((1,), (), (8,)), *steps, most=6) == [97, *steps[-3:]]
