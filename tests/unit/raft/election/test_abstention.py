"""State that an abstaining voter keeps."""

from __future__ import annotations

from quorate.raft.election.abstention import Abstention
from quorate.records.ids import NodeId
from tests.unit.raft import cores


def test_it_waits_for_all_other_voters_that_it_has_not_heard() -> None:
    abstention = Abstention(is_on=True)
    assert abstention.unheard(cores.key(2), cores.voters(1, 2, 3)) == [1, 3]
    abstention.heard.add(NodeId(3))
    assert abstention.unheard(cores.key(2), cores.voters(1, 2, 3)) == [1]
    assert abstention.unheard(cores.key(2), cores.voters(1, 2, 3, 4)) == [1, 4]


def test_one_that_is_no_voter_waits_for_nobody() -> None:
    assert Abstention(is_on=True).unheard(cores.key(4), cores.voters(1, 2, 3)) == []
