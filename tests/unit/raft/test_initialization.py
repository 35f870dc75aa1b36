"""The state on the disk decides the role that a replica starts in."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.records.ids import Epoch, NodeId, Offset, ReplicaKey
from tests.unit.raft import cores
from tests.unit.raft.expecting import saved, told


def test_a_stale_quorum_state_gives_way_to_the_log() -> None:
    state = cores.recovered(
        1,
        2,
        3,
        log_end=cores.end(5, 4),
        epochs=(m.EpochStart(Epoch(4), Offset(0)),),
        election=m.ElectionState(Epoch(2), None, cores.key(2)),
    )
    core = cores.started(1, state)
    assert saved(core) == m.ElectionState(Epoch(4))


def test_a_candidate_goes_on_after_a_restart() -> None:
    election = m.ElectionState(Epoch(3), None, cores.key(1))
    core = cores.started(1, cores.recovered(1, 2, 3, election=election))
    assert told(core).role == "candidate"
    assert told(core).epoch == 3


def test_a_vote_for_itself_without_a_directory_id_makes_a_candidate_too() -> None:
    """As quorum-state has it at kraft.version 0."""
    election = m.ElectionState(Epoch(3), None, ReplicaKey(NodeId(1)))
    core = cores.started(1, cores.recovered(1, 2, 3, election=election))
    assert told(core).role == "candidate"


def test_a_follower_goes_on_after_a_restart() -> None:
    election = m.ElectionState(Epoch(3), NodeId(2), cores.key(2))
    core = cores.started(1, cores.recovered(1, 2, 3, election=election))
    assert told(core).role == "follower"


def test_the_endpoints_of_a_leader_that_is_known_from_the_disk_come_from_the_voter_set() -> None:
    election = m.ElectionState(Epoch(3), NodeId(2), cores.key(2))
    core = cores.started(1, cores.recovered(1, 2, 3, election=election))
    info = m.LeaderInfo(NodeId(2), Epoch(3), cores.endpoints(2))
    assert cores.described(core, now_ms=1).leader == info
