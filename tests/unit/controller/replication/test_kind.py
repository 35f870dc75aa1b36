from __future__ import annotations

from quorate.controller.replication.kind import REPLICATION
from quorate.controller.replication.messages import AlterPartition, ElectLeaders


def test_what_may_concern_very_many_partitions_has_pauses() -> None:
    in_slices = {write.request for write in REPLICATION.writes if write.in_slices is not None}
    assert in_slices == {AlterPartition, ElectLeaders}


def test_its_records_are_those_of_topics() -> None:
    assert not REPLICATION.replay
    assert REPLICATION.periodic_task is not None
