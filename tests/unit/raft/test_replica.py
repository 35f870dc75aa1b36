"""Transitions: what is saved, kept and forgotten with a role."""

from __future__ import annotations

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.calls import CallKind, Calls
from quorate.raft.core import RaftCore
from quorate.raft.notes import Cause
from quorate.raft.replica import BACKOFF_SHARE
from quorate.raft.roles import Leader, Unattached
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores


def test_the_first_leader_also_writes_version_and_voters() -> None:
    core = cores.unattached(1, 1)
    records = core.replica.log.end.offset
    assert records == 3
    leader = cores.started(1, cores.recovered(1))
    assert isinstance(leader.replica.role, Leader)


def test_the_epoch_start_batch_holds_the_votes() -> None:
    core = RaftCore(cores.config(), cores.recovered(1), cores.Midway())
    update = core.start(Millis(0))
    (append,) = [e for e in update.effects if isinstance(e, api.AppendToLog)]
    change = LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),))
    voters = KRaftVoters(cores.voters(1))
    assert append == api.AppendToLog(
        Offset(0), cores.end(3, 1), api.ControlBatch((change, KRaftVersion(1), voters))
    )


def test_a_vote_is_kept_when_the_leader_of_its_epoch_is_learned() -> None:
    core = cores.unattached()
    cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1)
    cores.begin(core, 2, 1, now_ms=2)
    assert core.replica.election == m.ElectionState(Epoch(1), NodeId(2), cores.key(2))


def test_rule_1_a_removal_that_is_not_known_committed_does_not_end_campaigning() -> None:
    core = cores.unattached()
    core.replica.log.voters.append(m.VotersAt(Offset(0), cores.voters(2, 3)))
    assert core.replica.may_campaign
    core.replica.log.end = cores.end(1, 1)
    core.replica.advance_high_watermark(Offset(1))
    assert not core.replica.may_campaign


def test_the_high_watermark_never_goes_back_and_never_leaves_the_log() -> None:
    core = cores.leader()
    assert core.replica.advance_high_watermark(Offset(2))
    assert not core.replica.advance_high_watermark(Offset(1))
    with pytest.raises(AssertionError):
        core.replica.advance_high_watermark(Offset(4))


def test_a_rival_leader_of_the_same_epoch_is_not_believed() -> None:
    core = cores.follower()
    core.replica.learn(m.LeaderInfo(NodeId(3), Epoch(1), cores.endpoints(3)), "test")
    assert core.replica.election.leader_id == 1


def test_a_leader_without_an_address_is_not_followed() -> None:
    core = cores.unattached()
    core.replica.learn(m.LeaderInfo(NodeId(9), Epoch(2)), "test")
    assert isinstance(core.replica.role, Unattached)
    assert core.replica.epoch == 2


def test_a_transition_outside_the_table_is_a_bug() -> None:
    core = cores.leader()
    with pytest.raises(AssertionError):
        core.replica.become_prospective(Cause.ELECTION_TIMEOUT, "test")


def test_rule_32_a_peer_that_fails_again_and_again_is_left_alone_ever_longer() -> None:
    replica = cores.unattached().replica
    replica.calls = Calls()

    def wait() -> int:
        replica.back_off(CallKind.VOTE, NodeId(2))
        return min(replica.calls.deadlines(replica.now)) - replica.now

    waits = [wait() for _ in range(12)]
    assert waits[0] <= replica.config.retry_backoff_ms
    assert waits == sorted(waits)
    assert waits[0] < waits[-1] <= replica.config.election_timeout_ms // BACKOFF_SHARE
    replica.calls.succeeded(CallKind.VOTE, NodeId(2))
    assert wait() == waits[0]
