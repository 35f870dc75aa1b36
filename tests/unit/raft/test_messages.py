"""The messages are values: equal when their fields are, and hashable."""

from __future__ import annotations

from tests.unit.raft import cores


def test_messages_are_values() -> None:
    request = cores.fetch(2, 3, 1)
    assert request == cores.fetch(2, 3, 1)
    assert len({request, cores.fetch(2, 3, 1)}) == 1
