"""What a replica is told that cannot be: counted, said once, gone with its epoch."""

from __future__ import annotations

from quorate.raft.replication.leader_contradictions import SECOND_LEADERS_MAX, Contradictions
from quorate.records.ids import Epoch, Millis, NodeId
from tests.unit.raft import cores

ONE, TWO = Epoch(1), Epoch(2)


def make() -> Contradictions:
    return Contradictions(cores.config(), cores.Midway())


def test_the_same_leader_is_told_of_once_an_epoch() -> None:
    found = make()
    assert found.add(NodeId(1), ONE, "this", Millis(0)) is not None
    assert found.add(NodeId(1), ONE, "that", Millis(9)) is None
    (line,) = found.remarks(ONE)
    assert "2 answer(s), the last: that" in line
    assert found.standing(TWO) is None
    assert found.remarks(TWO) == []
    assert found.add(NodeId(3), TWO, "this", Millis(10)) is not None
    assert found.total == 3


def test_an_end_is_told_where_there_was_a_beginning() -> None:
    found = make()
    assert found.end(ONE) is None
    found.add(NodeId(1), ONE, "this", Millis(0))
    assert found.end(ONE) == "believes leader 1 again, after 1 contradiction(s)"
    assert found.standing(ONE) is None


def test_second_leaders_are_bounded_and_each_told_once() -> None:
    found = make()
    names = [NodeId(number) for number in range(2, 2 + 3 * SECOND_LEADERS_MAX)]
    told = [found.add_second_leader(name, NodeId(1), ONE) for name in names * 2]
    assert sum(text is not None for text in told) == SECOND_LEADERS_MAX
    assert len(found.remarks(ONE)) == SECOND_LEADERS_MAX
    assert found.add_second_leader(NodeId(2), NodeId(1), TWO) is not None
    assert len(found.remarks(TWO)) == 1
