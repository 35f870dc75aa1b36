"""The attribute that searches rely on."""

from __future__ import annotations

from quorate.telemetry.span_names import KIND


def test_searches_find_kinds_by_this() -> None:
    assert KIND == "kraft.span"
