"""Events are values."""

from __future__ import annotations

from quorate.h2.protocol.events import DataReceived


def test_events_of_the_same_are_equal() -> None:
    assert DataReceived(1, b"a", is_last=False) == DataReceived(1, b"a", is_last=False)
