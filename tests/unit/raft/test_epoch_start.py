"""What a leader writes first, and what of its own entry it sets right."""

from __future__ import annotations

from dataclasses import replace

from quorate.raft import api
from quorate.raft.epoch_start import append_epoch_start, drifted_entry
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.ids import Millis, NodeId, Offset
from quorate.records.voters import Endpoint
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore


def test_the_first_leader_writes_version_and_voters_too() -> None:
    replica = cores.leader().replica
    before = replica.log.end.offset
    append_epoch_start(replica, (NodeId(1), NodeId(2)))
    # The set stands in the log since the first time.
    assert replica.log.end.offset == before + 1


def test_who_has_moved_has_another_entry_with_the_listeners_of_others() -> None:
    moved = (Endpoint("GRPC", "elsewhere", 9094),)
    core = WatchedCore(
        replace(cores.config(), endpoints=moved), cores.recovered(1, 2, 3), cores.Midway()
    )
    core.start(Millis(0))
    entry = drifted_entry(core.replica)
    assert entry is not None
    assert entry.endpoints == moved
    before = core.replica.log.end.offset
    append_epoch_start(core.replica, ())
    (append,), _ = core.replica.out.take()
    assert isinstance(append, api.AppendToLog)
    assert isinstance(append.payload, api.ControlBatch)
    kinds = [type(record) for record in append.payload.records]
    assert kinds == [LeaderChange, KRaftVersion, KRaftVoters]
    assert core.replica.log.end.offset == before + 3


def test_who_is_where_the_set_says_has_not_drifted() -> None:
    assert drifted_entry(cores.unattached().replica) is None


def test_the_epoch_start_batch_holds_the_votes() -> None:
    core = WatchedCore(cores.config(), cores.recovered(1), cores.Midway())
    update = core.start(Millis(0))
    (append,) = [e for e in update.effects if isinstance(e, api.AppendToLog)]
    change = LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),))
    voters = KRaftVoters(cores.voters(1))
    assert append == api.AppendToLog(
        Offset(0), cores.end(3, 1), api.ControlBatch((change, KRaftVersion(1), voters))
    )
