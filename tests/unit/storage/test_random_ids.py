"""Ids that are drawn."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from quorate.storage.random_ids import draw_uuid

if TYPE_CHECKING:
    import pytest


def test_a_drawn_id_is_none_of_kafkas_own_and_never_looks_like_a_flag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draws = iter([bytes(16), bytes(15) + b"\x01", b"\xf8" + bytes(15), b"\x05" * 16])
    monkeypatch.setattr(secrets, "token_bytes", lambda size: next(draws)[:size])
    assert draw_uuid() == b"\x05" * 16
