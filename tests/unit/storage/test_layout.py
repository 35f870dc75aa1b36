"""The names of the files in a log directory."""

from __future__ import annotations

import pytest

from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.storage import layout

ID = OffsetAndEpoch(epoch=Epoch(1), offset=Offset(516))


def test_a_segment_is_named_by_its_first_offset() -> None:
    assert layout.segment_name(516) == "00000000000000000516.log"
    assert layout.parse_segment("00000000000000000516.log") == 516


def test_a_snapshot_is_named_by_its_end_and_epoch() -> None:
    assert layout.checkpoint_name(ID) == "00000000000000000516-0000000001.checkpoint"
    assert layout.parse_checkpoint("00000000000000000516-0000000001.checkpoint") == ID


@pytest.mark.parametrize(
    "name",
    [
        "516.log",
        "00000000000000000516.log.deleted",
        "00000000000000000516.index",
        "00000000000000000516-0000000001.checkpoint.part",
        "quorum-state",
    ],
)
def test_other_files_are_neither(name: str) -> None:
    assert (layout.parse_segment(name), layout.parse_checkpoint(name)) == (None, None)
