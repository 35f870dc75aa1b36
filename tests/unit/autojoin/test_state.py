"""Defaults of the state."""

from __future__ import annotations

from quorate.autojoin.state import Desired, PersistedState


def test_a_ghost_has_a_minute() -> None:
    assert Desired(stateful_set="q", replicas=3, revision="r").ghost_delay_ms == 60_000


def test_nothing_is_remembered_at_first() -> None:
    assert PersistedState() == PersistedState({}, ())
