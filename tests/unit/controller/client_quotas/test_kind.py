from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.client_quotas.kind import CLIENT_QUOTAS
from tests.unit.controller.client_quotas.conftest import USER, alter, put

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_what_is_replayed_is_what_a_snapshot_holds(cluster: Cluster) -> None:
    records = cluster.records(alter(USER, put()))
    assert tuple(each for each in CLIENT_QUOTAS.snapshot(cluster.image) if each) == records
    assert {type(record) for record in records} == set(CLIENT_QUOTAS.replay)
    (entities,) = CLIENT_QUOTAS.large_parts(cluster.image)
    assert len(entities) == 1


def test_changes_share_an_image() -> None:
    assert all(write.uses_overlay for write in CLIENT_QUOTAS.writes)
