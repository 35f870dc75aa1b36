"""The edge of the core: its settings and the order of effects."""

from __future__ import annotations

from tests.unit.raft import cores


def test_a_replica_is_its_node_id_and_its_directory() -> None:
    assert cores.config(3).key == cores.key(3)
