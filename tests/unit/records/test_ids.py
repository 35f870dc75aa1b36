"""Identifiers: order, text and parsing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.ids import (
    ZERO_UUID,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    format_uuid,
    parse_uuid,
)


def test_ends_of_logs_are_ordered_by_epoch_first() -> None:
    longer = OffsetAndEpoch(epoch=Epoch(1), offset=Offset(9))
    newer = OffsetAndEpoch(epoch=Epoch(2), offset=Offset(3))
    assert longer < newer
    assert str(longer) == "9@1"


def test_a_replica_key_prints_its_directory_when_it_is_known() -> None:
    assert str(ReplicaKey(NodeId(3))) == "3"
    assert str(ReplicaKey(NodeId(3), DirectoryId(ZERO_UUID))) == "3:AAAAAAAAAAAAAAAAAAAAAA"


@given(st.binary(min_size=16, max_size=16))
def test_uuids_come_back(value: bytes) -> None:
    assert parse_uuid(format_uuid(value)) == value


@pytest.mark.parametrize(
    "text",
    ["", "é", "AAAA", "A" * 21, "A" * 23, "A" * 21 + "B", "A" * 21 + "/", "A" * 22 + "=="],
)
def test_other_texts_are_no_uuids(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        parse_uuid(text)
