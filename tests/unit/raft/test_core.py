"""One step: timers first, then the event, then what is due."""

from __future__ import annotations

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.epoch_announcements import REPEAT_SHARE
from quorate.raft.identity.log_identity import mark_of
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, Epoch, Millis, NodeId, Offset, ReplyToken
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, told


def test_the_same_events_give_the_same_effects() -> None:
    first = [cores.unattached().step(api.TimerFired(), Millis(1500)) for _ in range(2)]
    assert first[0] == first[1]


def test_a_wake_up_that_comes_early_does_nothing() -> None:
    core = cores.unattached()
    update = core.step(api.TimerFired(), Millis(1))
    # Then the next one is asked who leads.
    expect(update, wake_at_ms=1000)


def test_an_answer_that_nobody_waits_for_is_ignored() -> None:
    core = cores.leader()
    update = cores.answer(core, CallId(999), cores.granted(5), now_ms=2001)
    assert update.effects == ()
    assert told(core).epoch == 1


@pytest.mark.rule("monotonic_clock")
def test_a_leader_that_slept_checks_its_quorum_first() -> None:
    core = cores.leader()
    core.step(api.TimerFired(), Millis(2000 + 3000))
    assert told(core).role == "resigned"


def test_an_only_voter_is_never_without_a_quorum() -> None:
    core = cores.unattached(1, 1)
    core.step(api.TimerFired(), Millis(60_000))
    assert told(core).role == "leader"


def test_a_shutdown_hands_over_and_completes_when_somebody_else_leads() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    expect(
        core.step(api.ShutdownRequested(Millis(5000)), Millis(2001)),
        traffic.fetch_given_up(1),
        traffic.end_sent(8, 2, 2, 3),
        traffic.end_sent(9, 3, 2, 3),
        cores.progress("resigned", 1, leader_id=1, high_watermark=3),
        wake_at_ms=2001 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=((TraceEventKind.ROLE_TAKEN, "shutting down: leader becomes resigned in epoch 1"),),
    )
    leader = m.LeaderInfo(NodeId(2), Epoch(2), cores.endpoints(2))
    expect(
        cores.begin(core, 2, 2, now_ms=2002),
        api.SaveElection(m.ElectionState(Epoch(2), NodeId(2)), 1, cores.voters(1, 2, 3)),
        api.SendReply(ReplyToken(1), m.BeginQuorumEpochResponse(ErrorCode.NONE, leader)),
        traffic.fetch_sent(
            10,
            3,
            1,
            node_id=1,
            to=2,
            epoch=2,
            high_watermark=3,
            voters_at=mark_of(core.replica.log),
        ),
        cores.progress("follower", 2, leader_id=2, high_watermark=3),
        api.ShutdownComplete(),
        wake_at_ms=2002 + cores.config().fetch_timeout_ms,
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "BeginQuorumEpoch (leader 2): resigned becomes follower in epoch 2",
            ),
        ),
    )


def test_a_shutdown_does_not_wait_for_ever() -> None:
    core = cores.leader()
    core.step(api.ShutdownRequested(Millis(50)), Millis(2001))
    expect(
        core.step(api.TimerFired(), Millis(2051)),
        traffic.end_sent(8, 2, 2, 3),
        traffic.end_sent(9, 3, 2, 3),
        cores.progress("resigned", 1, leader_id=1),
        api.ShutdownComplete(in_time=False),
        wake_at_ms=2051 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "shutting down, with records that are not committed: "
                "leader becomes resigned in epoch 1",
            ),
        ),
    )


def test_a_former_leader_starts_resigned() -> None:
    state = m.ElectionState(Epoch(3), NodeId(1), cores.key(1))
    core = cores.started(1, cores.recovered(1, 2, 3, election=state))
    assert told(core).role == "resigned"


def test_an_unattached_replica_describes_whom_to_ask() -> None:
    update = cores.ask(cores.follower(), m.DescribeQuorumRequest(), now_ms=2)
    (answer,) = cores.replies(update)
    assert isinstance(answer, m.DescribeQuorumResponse)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.leader.leader_id == 1


def test_cleaning_moves_the_log_start() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    info = m.SnapshotInfo(cores.end(3, 1), 10)
    core.step(api.SnapshotStored(info), Millis(2002))
    core.step(api.LogCleaned(Offset(3), (info,)), Millis(2003))
    answer = cores.fetched(cores.ask(core, cores.fetch(3, 0, 0), now_ms=2004, token=3))
    assert answer.snapshot_id == cores.end(3, 1)
    assert answer.log_start_offset == 3
    assert core.status_warnings() == []
