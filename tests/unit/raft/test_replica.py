"""Transitions: what is saved, kept and forgotten with a role."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.raft.calls import CallKind, Calls
from quorate.raft.replica import BACKOFF_SHARE
from quorate.records.ids import NodeId, Offset
from tests.unit.raft import cores


def test_rule_1_a_removal_that_is_not_known_committed_does_not_end_campaigning() -> None:
    core = cores.unattached()
    core.replica.log.voters.append(m.VotersAt(Offset(0), cores.voters(2, 3)))
    assert core.replica.may_campaign
    core.replica.log.end = cores.end(1, 1)
    core.replica.ends.advance(Offset(1))
    assert not core.replica.may_campaign


def test_rule_32_a_peer_that_fails_again_and_again_is_left_alone_ever_longer() -> None:
    replica = cores.unattached().replica
    replica.calls = Calls()

    def wait() -> int:
        replica.back_off(CallKind.VOTE, NodeId(2))
        return min(replica.calls.deadlines(replica.timers.now)) - replica.timers.now

    waits = [wait() for _ in range(12)]
    assert waits[0] <= replica.config.retry_backoff_ms
    assert waits == sorted(waits)
    assert waits[0] < waits[-1] <= replica.config.election_timeout_ms // BACKOFF_SHARE
    replica.calls.succeeded(CallKind.VOTE, NodeId(2))
    assert wait() == waits[0]
