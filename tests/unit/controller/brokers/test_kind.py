from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.brokers.kind import BROKERS

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_what_is_replayed_is_what_a_snapshot_holds(cluster: Cluster) -> None:
    records = list(BROKERS.snapshot(cluster.image))
    assert [record.broker_id for record in records] == [1, 2, 3]  # type: ignore[union-attr]
    assert {type(record) for record in records} == set(BROKERS.replay_at)


def test_what_brokers_ask_is_decided_for_an_offset_and_has_no_pauses() -> None:
    assert all(write.decide is not None for write in BROKERS.writes)
    assert not any(write.uses_overlay for write in BROKERS.writes)
