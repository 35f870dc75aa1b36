"""Contradictions: counted, reported once, forgotten with their epoch."""

from __future__ import annotations

from quorate.raft.replication.leader_contradictions import SECOND_LEADERS_MAX, LeaderContradictions
from quorate.records.ids import Epoch, Millis, NodeId
from tests.unit.raft import cores

ONE, TWO = Epoch(1), Epoch(2)


def make() -> LeaderContradictions:
    return LeaderContradictions(cores.config(), cores.Midway())


def test_the_same_leader_is_told_of_once_an_epoch() -> None:
    found = make()
    assert found.record(NodeId(1), ONE, "this", Millis(0)) is not None
    assert found.record(NodeId(1), ONE, "that", Millis(9)) is None
    (line,) = found.status_warnings(ONE)
    assert "2 answer(s), the last: that" in line
    assert found.unresolved(TWO) is None
    assert found.status_warnings(TWO) == []
    assert found.record(NodeId(3), TWO, "this", Millis(10)) is not None
    assert found.total == 3


def test_an_end_is_told_where_there_was_a_beginning() -> None:
    found = make()
    assert found.resolve(ONE) is None
    found.record(NodeId(1), ONE, "this", Millis(0))
    assert found.resolve(ONE) == "believes leader 1 again, after 1 contradiction(s)"
    assert found.unresolved(ONE) is None


def test_second_leaders_are_bounded_and_each_told_once() -> None:
    found = make()
    names = [NodeId(number) for number in range(2, 2 + 3 * SECOND_LEADERS_MAX)]
    told = [found.record_second_leader(name, NodeId(1), ONE) for name in names * 2]
    assert sum(text is not None for text in told) == SECOND_LEADERS_MAX
    assert len(found.status_warnings(ONE)) == SECOND_LEADERS_MAX
    assert found.record_second_leader(NodeId(2), NodeId(1), TWO) is not None
    assert len(found.status_warnings(TWO)) == 1
