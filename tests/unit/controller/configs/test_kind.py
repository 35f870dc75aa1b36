from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.configs.kind import CONFIGS
from quorate.records.metadata import ConfigRecord

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_what_is_replayed_is_what_a_snapshot_holds(topic: Cluster) -> None:
    records = [record for record in CONFIGS.snapshot(topic.image) if record is not None]
    assert records == [
        ConfigRecord(resource_type=2, resource_name="a", name=name, value=value)
        for name, value in (("cleanup.policy", "compact"), ("retention.ms", "1000"))
    ]
    assert {type(record) for record in records} == set(CONFIGS.replay)


def test_changes_share_an_image() -> None:
    assert all(write.uses_overlay for write in CONFIGS.writes)
