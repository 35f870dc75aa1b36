"""Changes of the role: what is saved, kept and forgotten with them."""

from __future__ import annotations

import pytest

from quorate.raft import messages as m
from quorate.raft.notes import Cause
from quorate.records.ids import Epoch, NodeId
from tests.unit.raft import cores
from tests.unit.raft.expecting import log_end, saved, told


def test_a_majority_of_votes_makes_a_leader_that_is_saved_before_it_appends() -> None:
    core = cores.leader()
    assert told(core).role == "leader"
    assert told(core).leader_id == 1


def test_the_only_voter_leads_at_once() -> None:
    core = cores.unattached(1, 1)
    assert told(core).role == "leader"


def test_rounds_lost_in_an_epoch_say_nothing_of_the_next() -> None:
    core = cores.follower(2, 1)
    begun = [cores.lost_round(core) for _ in range(4)]
    cores.begin(core, 3, 2, now_ms=begun[-1])
    anew = [cores.lost_round(core) for _ in range(2)]
    assert anew[1] - anew[0] == begun[1] - begun[0] < begun[3] - begun[2]


def test_a_vote_is_kept_when_the_leader_of_its_epoch_is_learned() -> None:
    core = cores.unattached()
    cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1)
    cores.begin(core, 2, 1, now_ms=2)
    assert saved(core) == m.ElectionState(Epoch(1), NodeId(2), cores.key(2))


def test_a_transition_outside_the_table_is_a_bug() -> None:
    core = cores.leader()
    with pytest.raises(AssertionError):
        core.becoming.prospective(Cause.ELECTION_TIMEOUT, "test")


def test_the_first_leader_also_writes_version_and_voters() -> None:
    core = cores.unattached(1, 1)
    assert log_end(core).offset == 3
    leader = cores.started(1, cores.recovered(1))
    assert told(leader).role == "leader"
