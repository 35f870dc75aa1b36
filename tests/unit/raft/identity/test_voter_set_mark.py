"""A voter set of a log by its place, as a value."""

from __future__ import annotations

from quorate.raft.identity.voter_set_mark import VotersMark
from quorate.records.ids import Epoch, Offset


def test_marks_are_equal_by_place_and_checksum() -> None:
    mark = VotersMark(offset=Offset(2), epoch=Epoch(1), checksum=7)
    assert mark == VotersMark(offset=Offset(2), epoch=Epoch(1), checksum=7)
    assert mark != VotersMark(offset=Offset(2), epoch=Epoch(1), checksum=8)
