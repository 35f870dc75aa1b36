"""The first batch of a leader, and its corrections of its own entry."""

from __future__ import annotations

from dataclasses import replace

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.ids import Millis, NodeId, Offset
from quorate.records.voters import KRAFT_VERSION_MAX, KRAFT_VERSION_MIN, Endpoint, Voter
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore


def first_batch(state: api.RecoveredState, *, at: tuple[Endpoint, ...]) -> api.ControlBatch:
    """The first batch of a single voter that listens there, as it begins to lead."""
    core = WatchedCore(replace(cores.config(), endpoints=at), state, cores.Midway())
    update = core.start(Millis(0))
    (append,) = [e for e in update.effects if isinstance(e, api.AppendToLog)]
    assert append.base_offset == state.end.offset
    assert isinstance(append.payload, api.ControlBatch)
    assert append.end.offset == append.base_offset + len(append.payload.records)
    return append.payload


def led_before() -> api.RecoveredState:
    """The disk of an only voter whose version and set stand in its log."""
    return replace(
        cores.recovered(1, log_end=cores.end(3, 1)),
        voters=(m.VotersAt(Offset(2), cores.voters(1)),),
        kraft_versions=(m.KRaftVersionAt(Offset(1), 1),),
    )


LEADS = LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),))


def test_a_later_leader_that_is_where_the_set_says_writes_no_version_and_no_voters() -> None:
    assert first_batch(led_before(), at=cores.endpoints(1)) == api.ControlBatch((LEADS,))


def test_a_leader_that_has_moved_writes_the_set_anew() -> None:
    moved = (Endpoint("GRPC", "elsewhere", 9094),)
    entry = Voter(cores.key(1), moved, KRAFT_VERSION_MIN, KRAFT_VERSION_MAX)
    anew = KRaftVoters(cores.voters(1).with_voter(entry))
    assert first_batch(led_before(), at=moved) == api.ControlBatch((LEADS, anew))
    first = first_batch(cores.recovered(1), at=moved)
    assert first == api.ControlBatch((LEADS, KRaftVersion(1), anew))


def test_the_epoch_start_batch_holds_the_votes() -> None:
    core = WatchedCore(cores.config(), cores.recovered(1), cores.Midway())
    update = core.start(Millis(0))
    (append,) = [e for e in update.effects if isinstance(e, api.AppendToLog)]
    voters = KRaftVoters(cores.voters(1))
    assert append == api.AppendToLog(
        Offset(0), cores.end(3, 1), api.ControlBatch((LEADS, KRaftVersion(1), voters))
    )
