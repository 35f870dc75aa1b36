"""Batches become offsets, epochs and control records; damage is refused."""

from __future__ import annotations

import pytest

from quorate.raft.messages import BatchInfo
from quorate.raft.replication.batch_info import batch_infos
from quorate.records.batch import CorruptBatchError, encode_batch
from quorate.records.control import LeaderChange, encode_control_batch
from quorate.records.ids import Epoch, NodeId, Offset

CHANGE = LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),))
DATA = encode_control_batch([CHANGE], timestamp_ms=1, base_offset=4, epoch=2) + encode_batch(
    [b"a", b"b"], timestamp_ms=1, base_offset=5, epoch=2
)


def test_batches_are_listed_with_their_control_records() -> None:
    fetched = batch_infos(DATA)
    assert fetched.data == DATA
    assert fetched.batches == (
        BatchInfo(base_offset=Offset(4), last_offset=Offset(4), epoch=Epoch(2), control=(CHANGE,)),
        BatchInfo(base_offset=Offset(5), last_offset=Offset(6), epoch=Epoch(2)),
    )


def test_a_flipped_bit_is_refused() -> None:
    damaged = bytearray(DATA)
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        batch_infos(bytes(damaged))
