"""Values of rows are those that the encoder makes of records; test_snapshot.py holds more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.features.levels import encode_at
from quorate.controller.partitions.partition import Partition
from quorate.controller.partitions.record_encoder import partition_values
from quorate.controller.partitions.records import partition_record
from quorate.controller.partitions.rows import PARTITION_ID_MAX
from tests.unit.controller.partitions.test_rows import made, tables, topic_id_of


@given(table=tables.filter(bool), level=st.sampled_from([7, 17, 23, 30]))
def test_rows_are_encoded_as_their_records_are(table: dict[int, Partition], level: int) -> None:
    expected = [
        encode_at(
            level,
            partition_record(topic_id_of(key), key & PARTITION_ID_MAX, table[key], level=level),
        )
        for key in sorted(table)
    ]
    assert partition_values(made(table), level) == expected


@pytest.mark.parametrize("recovery", [0, 1])
def test_a_partition_without_replicas_has_a_record_too(recovery: int) -> None:
    partition = Partition(replicas=(), isr=(), leader=-1, leader_recovery_state=recovery)
    record = partition_record(topic_id_of(0), 0, partition, level=30)
    assert partition_values(made({0: partition}), 30) == [encode_at(30, record)]
