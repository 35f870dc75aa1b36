"""The times at which a replica was heard, as a value."""

from __future__ import annotations

from quorate.raft.last_message import Heard
from quorate.records.ids import Millis, NodeId


def test_what_was_heard_is_compared_by_who_and_when() -> None:
    assert Heard(NodeId(1), Millis(5)) == Heard(NodeId(1), Millis(5))
    assert Heard(NodeId(1), Millis(5)) != Heard(NodeId(2), Millis(5))
