"""Damage as a row."""

from __future__ import annotations

import json

from quorate.pipeline.source.damage import Damage


def test_a_damage_row_names_file_byte_and_size() -> None:
    damage = Damage("CRC", "/d/0.log", 17, 100, offset=3)
    told = {"error": "CRC", "file": "/d/0.log", "position": 17, "bytes": 100}
    assert json.loads(damage.payload) == told
    assert str(damage) == "/d/0.log: byte 17: CRC"
