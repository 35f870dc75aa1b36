"""RemoveRaftVoter (KIP-853), the leader's own removal included."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.epoch_announcements import REPEAT_SHARE
from quorate.raft.trace_events import TraceEventKind
from quorate.records.control import KRaftVoters
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplicaKey, ReplyToken
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import appended_voters, expect, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

REMOVE = m.RemoveRaftVoterRequest(
    cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(1000)
)


def test_who_is_removed_is_decommissioned() -> None:
    core = cores.grown_up_leader()
    left = replace(cores.voters(1, 2), decommissioned=(cores.key(3),))
    expect(
        cores.change(core, REMOVE, now_ms=4500, token=7),
        api.AppendToLog(Offset(3), cores.end(4, 1), api.ControlBatch((KRaftVoters(left),))),
        traffic.fetch_reply(202, records=(3, 4), high_watermark=3, read_round=1),
        # Then the caller has waited for long enough.
        wake_at_ms=4500 + REMOVE.timeout_ms,
        notes=(
            (
                TraceEventKind.CHANGE_APPENDED,
                f"remove voter {cores.key(3)}: appended at offset 3",
            ),
        ),
    )


def test_who_is_scaled_away_is_not_decommissioned_and_who_was_before_still_is() -> None:
    core = cores.grown_up_leader()
    cores.change(core, REMOVE, now_ms=4500)
    cores.flush(core, now_ms=4501)
    cores.ask(core, cores.fetch(2, 4, 1), now_ms=4502, token=8)
    scaled = replace(REMOVE, voter=cores.key(2), scaled_away=True)
    cores.ask(core, scaled, now_ms=4503)
    assert appended_voters(core) == replace(cores.voters(1), decommissioned=(cores.key(3),))


def test_a_disk_that_was_replaced_is_decommissioned_whatever_is_said_of_its_pod() -> None:
    core = cores.grown_up_leader()
    late = 4401 + cores.config().fetch_timeout_ms
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=late, token=2)
    cores.change(core, replace(REMOVE, auto_join=True, scaled_away=True), now_ms=late)
    assert appended_voters(core).decommissioned == (cores.key(3),)


def test_only_the_very_voter_is_removed_directory_included() -> None:
    core = cores.grown_up_leader()
    other = ReplicaKey(cores.key(3).node_id, cores.key(9).directory_id)
    answer = cores.membership(cores.ask(core, replace(REMOVE, voter=other), now_ms=4500))
    assert (answer.error, answer.reason) == (ErrorCode.VOTER_NOT_FOUND, m.Reason.VOTER_NOT_FOUND)
    assert appended_voters(core) == cores.voters(1, 2, 3)


@pytest.mark.rule("live_voter_not_evicted")
def test_auto_join_does_not_evict_a_voter_that_lives() -> None:
    core = cores.grown_up_leader()
    asked = replace(REMOVE, auto_join=True)
    answer = cores.membership(cores.ask(core, asked, now_ms=4500))
    assert (answer.error, answer.reason) == (ErrorCode.REQUEST_TIMED_OUT, m.Reason.VOTER_ALIVE)
    own = replace(asked, voter=cores.key(1))
    assert cores.membership(cores.ask(core, own, now_ms=4500)).reason is m.Reason.VOTER_ALIVE
    late = 4401 + cores.config().fetch_timeout_ms
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=late, token=2)
    cores.change(core, asked, now_ms=late)
    assert cores.key(3) not in appended_voters(core)


@pytest.mark.rule("live_voter_not_evicted")
def test_a_voter_lives_whose_log_has_yet_to_be_cut() -> None:
    core = cores.grown_up_leader()
    late = 4401 + cores.config().fetch_timeout_ms
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=late, token=2)
    unlike = cores.ask(core, cores.fetch(3, 9, 1), now_ms=late, token=3)
    assert cores.fetched(unlike).diverging == cores.end(3, 1)
    assert removed_by_auto_join(core, late + 1).reason is m.Reason.VOTER_ALIVE
    # It does not follow for that: the others have to commit without it.
    others_left = cores.ask(core, replace(REMOVE, voter=cores.key(2)), now_ms=late + 2)
    assert cores.membership(others_left).reason is m.Reason.NO_LIVE_MAJORITY


@pytest.mark.rule("live_voter_not_evicted")
def test_a_voter_lives_that_needs_a_snapshot() -> None:
    core = cores.grown_up_leader()
    late = 4401 + cores.config().fetch_timeout_ms
    info = m.SnapshotInfo(cores.end(3, 1), 100)
    core.step(api.SnapshotStored(info), Millis(4402))
    core.step(api.LogCleaned(Offset(3), (info,)), Millis(4403))
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=late, token=2)
    behind = cores.ask(core, cores.fetch(3, 0, 0), now_ms=late, token=3)
    assert cores.fetched(behind).snapshot_id == cores.end(3, 1)
    assert removed_by_auto_join(core, late + 1).reason is m.Reason.VOTER_ALIVE


def removed_by_auto_join(core: RaftCore, now_ms: int) -> m.MembershipResponse:
    return cores.membership(cores.ask(core, replace(REMOVE, auto_join=True), now_ms=now_ms))


def test_the_last_voter_stays() -> None:
    core = cores.started(1, cores.recovered(1))
    cores.flush(core, now_ms=1)
    own = replace(REMOVE, voter=cores.key(1))
    answer = cores.membership(cores.ask(core, own, now_ms=4500))
    assert (answer.error, answer.reason) == (ErrorCode.INVALID_REQUEST, m.Reason.LAST_VOTER)


def test_a_removed_leader_leads_until_the_others_have_committed_it_then_resigns() -> None:
    core = cores.grown_up_leader()
    cores.change(core, replace(REMOVE, voter=cores.key(1)), now_ms=4500, token=7, by=(2, 3))
    cores.flush(core, now_ms=4501)
    update = cores.ask(core, cores.fetch(2, 4, 1), now_ms=4502, token=8)
    assert told(core).role == "leader"
    assert not cores.memberships(update)
    update = cores.ask(core, cores.fetch(3, 4, 1), now_ms=4503, token=9)
    done = m.MembershipResponse(ErrorCode.NONE, "", cores.LEADER)
    expect(
        update,
        api.SendReply(ReplyToken(7), done),
        traffic.fetch_given_up(8),
        traffic.fetch_refusal(9, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        traffic.end_sent(10, 2, 2, 3),
        traffic.end_sent(11, 3, 2, 3),
        cores.progress("resigned", 1, leader_id=1, high_watermark=4),
        wake_at_ms=4503 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=(
            (TraceEventKind.CHANGE_COMMITTED, f"remove voter {cores.key(1)}: committed"),
            (
                TraceEventKind.ROLE_TAKEN,
                "its own removal is committed: leader becomes resigned in epoch 1",
            ),
        ),
    )


def test_a_removed_leader_that_told_its_end_asks_who_took_over() -> None:
    core = cores.grown_up_leader()
    cores.change(core, replace(REMOVE, voter=cores.key(1)), now_ms=4500, token=7, by=(2, 3))
    cores.flush(core, now_ms=4501)
    cores.ask(core, cores.fetch(2, 4, 1), now_ms=4502, token=8)
    ended = cores.calls(cores.ask(core, cores.fetch(3, 4, 1), now_ms=4503, token=9))
    heard = m.EndQuorumEpochResponse(ErrorCode.NONE, cores.LEADER)
    assert not cores.calls(cores.answer(core, ended[2][0], heard, now_ms=4504))
    asked = cores.calls(cores.answer(core, ended[3][0], heard, now_ms=4505))
    ((call, request),) = asked.values()
    assert isinstance(request, m.FetchRequest)
    # Neither its own leadership nor its own address is news to it.
    still = m.FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=cores.LEADER)
    assert not cores.answer(core, call, still, now_ms=4506).trace
    update = core.step(api.TimerFired(), Millis(5006))
    ((call, request),) = cores.calls(update).values()
    successor = m.LeaderInfo(NodeId(2), Epoch(2), cores.endpoints(2))
    fenced = m.FetchResponse(error=ErrorCode.FENCED_LEADER_EPOCH, leader=successor)
    cores.answer(core, call, fenced, now_ms=5010)
    assert (told(core).role, told(core).epoch) == ("follower", 2)
