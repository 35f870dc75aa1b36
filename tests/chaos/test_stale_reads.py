"""The checker of reads at an offset, on a log of three batches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.records.batch import encode_batch, restamp
from quorate.records.ids import TopicId
from quorate.records.metadata import (
    ConfigRecord,
    MetadataRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
)
from tests.chaos.history import LocalRead
from tests.chaos.stale_reads import Values, violations

TOPIC = TopicId(b"t" * 16)


def batch(base_offset: int, *records: MetadataRecord) -> bytes:
    values = [encode_record(record, 0) for record in records]
    return restamp(encode_batch(values, timestamp_ms=0), base_offset, 1)


def config(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value=value)


@pytest.fixture
def values() -> Values:
    values = Values()
    created = batch(0, TopicRecord(name="a", topic_id=TOPIC), config("7"))
    values.replay([created, batch(2, config("8")), batch(3, RemoveTopicRecord(topic_id=TOPIC))])
    return values


READ = LocalRead(controller=1, life=0, key="a", begin=10, end=11, min_offset=0, offset=3, value=8)


def test_a_value_holds_from_the_end_of_its_batch(values: Values) -> None:
    assert [values.at("a", offset) for offset in range(6)] == [None, None, 7, 8, None, None]
    assert values.at("b", 5) is None


def test_replay_ends_where_a_batch_is_missing(values: Values) -> None:
    values.replay([batch(5, config("9"))])
    assert (values.end, values.at("a", 6)) == (4, None)


def test_reads_that_show_their_offset_are_fine(values: Values) -> None:
    later = replace(READ, begin=12, end=13, offset=4, value=None)
    assert violations([READ, later], values) == []


def test_another_value_than_that_of_the_offset_is_found(values: Values) -> None:
    assert violations([replace(READ, offset=2)], values)[0].startswith("the log says 7: ")


def test_an_offset_below_the_one_asked_for_is_found(values: Values) -> None:
    assert violations([replace(READ, min_offset=4)], values)[0].startswith("below what was asked")


def test_an_offset_that_goes_back_in_one_life_is_found(values: Values) -> None:
    back = replace(READ, begin=12, end=13, offset=2, value=7)
    assert violations([READ, back], values)[0].startswith("went back from 3: ")
    assert violations([READ, replace(back, begin=11)], values) == []
    assert violations([READ, replace(back, life=1)], values) == []
    assert violations([READ, replace(back, controller=2)], values) == []
