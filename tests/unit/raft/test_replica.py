"""Transitions: what is saved, kept and forgotten with a role."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.replica import BACKOFF_SHARE
from quorate.raft.request_manager import RequestKind, RequestManager
from quorate.records.ids import Millis, NodeId, Offset
from tests.unit.raft import cores
from tests.unit.raft.expecting import told


@pytest.mark.rule("removed_voter_may_campaign")
def test_a_removal_that_is_not_known_committed_does_not_end_campaigning() -> None:
    removed = m.VotersAt(Offset(0), cores.voters(2, 3))
    state = cores.recovered(1, 2, 3, log_end=cores.end(1, 1))
    state = replace(state, voters=(*state.voters, removed))
    # All in a snapshot is committed.
    committed = replace(state, snapshots=(m.SnapshotInfo(cores.end(1, 1), 100),))
    for disk, role in ((state, "prospective"), (committed, "unattached")):
        core = cores.started(1, disk)
        core.step(api.TimerFired(), Millis(1500))
        assert told(core).role == role


@pytest.mark.rule("retry_backoff")
def test_a_peer_that_fails_again_and_again_is_left_alone_ever_longer() -> None:
    replica = cores.unattached().replica
    replica.request_manager = RequestManager()

    def wait() -> int:
        replica.back_off(RequestKind.VOTE, NodeId(2))
        return min(replica.request_manager.deadlines(replica.timers.now)) - replica.timers.now

    waits = [wait() for _ in range(12)]
    assert waits[0] <= replica.config.retry_backoff_ms
    assert waits == sorted(waits)
    assert waits[0] < waits[-1] <= replica.config.election_timeout_ms // BACKOFF_SHARE
    replica.request_manager.succeeded(RequestKind.VOTE, NodeId(2))
    assert wait() == waits[0]
