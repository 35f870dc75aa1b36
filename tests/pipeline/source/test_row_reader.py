"""Single rows: control records and what cannot be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.damage import Damage, DamageError
from quorate.pipeline.source.row_reader import damage_row, payload_of, type_name
from quorate.records.batch import encode_batch
from tests.pipeline.source.logs import LogWriter, rows, topic

if TYPE_CHECKING:
    from pathlib import Path


def test_names_and_payloads_of_single_records() -> None:
    assert (type_name(3), type_name(77)) == ("PartitionRecord", "Unknown(77)")
    assert payload_of(topic(1)) == '{"name":"topic-1","topicId":"AAAAAAAAAAAAAAAAAAAAAQ"}'


def test_damage_keeps_to_the_columns() -> None:
    row = damage_row(Damage("gone", "/d/1.log", 5, 0, offset=7), 2)
    assert (row["offset"], row["segment"], row["crc_valid"], row["source_node"]) == (
        7,
        "1.log",
        False,
        2,
    )


def test_a_control_record_of_a_newer_release_is_told(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    batch = encode_batch([b"\0\0"], keys=[b"\0\0\0\x63"], timestamp_ms=1, is_control=True)
    log.file.write_bytes(batch)
    (row,) = rows(log.root)
    assert (row["record_type"], row["is_control"], row["crc_valid"]) == (None, True, True)
    assert "control record of unknown type 99" in row["payload"]
    with pytest.raises(DamageError, match="unknown type 99"):
        rows(log.root, onDamage="fail")
