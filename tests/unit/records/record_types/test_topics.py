"""Bytes of the records about topics and partitions, version by version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.records.codec.compiler import codec_of
from quorate.records.codec.schema import SchemaError
from quorate.records.ids import DirectoryId, TopicId
from quorate.records.record_types.topics import PartitionChangeRecord, PartitionRecord, TopicRecord

TOPIC = TopicId(b"t" * 16)
DIRECTORY = DirectoryId(b"d" * 16)


def test_a_topic_is_its_name_and_id() -> None:
    record = TopicRecord(name="orders", topic_id=TOPIC)
    assert codec_of(TopicRecord, 0).encode(record) == b"\x07orders" + TOPIC + b"\0"


PARTITION = PartitionRecord(
    partition_id=3,
    topic_id=TOPIC,
    replicas=(1, 2),
    isr=(2,),
    leader=2,
    leader_epoch=5,
    partition_epoch=6,
)


def test_a_partition_grows_by_directories_and_eligible_replicas() -> None:
    plain = (
        "00000003" + TOPIC.hex() + "030000000100000002" + "0200000002" + "0101"
        "00000002" + "00000005" + "00000006"
    )
    second = replace(PARTITION, directories=(DIRECTORY, DIRECTORY))
    third = replace(
        PARTITION, directories=(DIRECTORY,), eligible_leader_replicas=(1,), last_known_elr=()
    )
    assert codec_of(PartitionRecord, 0).encode(PARTITION).hex() == plain + "00"
    assert codec_of(PartitionRecord, 1).encode(second).hex() == (
        plain + "03" + DIRECTORY.hex() * 2 + "00"
    )
    assert codec_of(PartitionRecord, 2).encode(third).hex() == (
        plain + "02" + DIRECTORY.hex() + "02" + "01050200000001" + "020101"
    )
    with pytest.raises(SchemaError, match="eligible_leader_replicas"):
        codec_of(PartitionRecord, 1).encode(third)


def test_a_change_says_only_what_changed_in_the_order_of_its_tags() -> None:
    nothing = PartitionChangeRecord(partition_id=1, topic_id=TOPIC)
    change = PartitionChangeRecord(
        partition_id=1, topic_id=TOPIC, isr=(), leader=-1, directories=(), last_known_elr=(4,)
    )
    codec = codec_of(PartitionChangeRecord, 2)
    assert codec.encode(nothing).hex() == "00000001" + TOPIC.hex() + "00"
    assert codec.encode(change).hex() == (
        "00000001" + TOPIC.hex() + "04" + "000101" + "0104ffffffff" + "07050200000004" + "080101"
    )
