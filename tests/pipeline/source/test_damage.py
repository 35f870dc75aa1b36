"""Damage as a row."""

from __future__ import annotations

import json

import pytest

from quorate.pipeline.source.damage import Damage, UnreadError, check_read


def test_a_damage_row_names_file_byte_and_size() -> None:
    damage = Damage("CRC", "/d/0.log", 17, 100, offset=3)
    told = {"error": "CRC", "file": "/d/0.log", "position": 17, "bytes": 100}
    assert json.loads(damage.payload) == told
    assert str(damage) == "/d/0.log: byte 17: CRC"


def test_what_another_attempt_may_read_is_refused_with_the_remedy() -> None:
    lasting = Damage("CRC", "/d/0.log", 17, 100)
    check_read([lasting])
    passing = Damage("cannot be read: Stale file handle", "/d/9.log", 0, 0, is_unread=True)
    with pytest.raises(UnreadError, match=r"^/d/9.log: byte 0: .* handle; .*failOnDataLoss"):
        check_read([lasting, passing])
