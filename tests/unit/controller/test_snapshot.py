from __future__ import annotations

import secrets
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller import slices
from quorate.controller.features.levels import encode_at
from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.partitions.partition import MIGRATING_DIR
from quorate.controller.replay import Replayer
from quorate.controller.snapshot import SnapshotLoader, snapshot_records, snapshot_slices
from quorate.controller.topics import records as topic_module
from quorate.controller.topics.records import topic_records, topic_values
from quorate.records.ids import DirectoryId, Epoch, Offset, TopicId
from quorate.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnknownRecord,
    UnregisterBrokerRecord,
    decode_record,
    encode_record,
)
from tests.unit.controller.test_record_runs import History

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.unit.controller.conftest import Cluster

LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)


def uuid(number: int) -> bytes:
    return b"\x10" + number.to_bytes(15, "big")


def at(end_offset: int) -> LogPosition:
    return LogPosition(Offset(end_offset), Epoch(2), 17)


def replay(records: Sequence[MetadataRecord], start: MetadataImage | None = None) -> MetadataImage:
    replayer = Replayer(start or MetadataImage())
    base = replayer.end_offset
    replayer.replay(records, base_offset=base, position=at(base + len(records)))
    return replayer.image


def reloaded(image: MetadataImage) -> MetadataImage:
    loader = SnapshotLoader(image.position)
    for values in snapshot_slices(image):
        loader.add([decode_record(value)[0] for value in values])
    return loader.finish()


# --- generated logs -------------------------------------------------------------------------------

replicas = st.sampled_from([(1,), (2, 1), (1, 2, 3), (5, 4, 3)])
optional_replicas = st.none() | replicas


@st.composite
def logs(draw: st.DrawFn) -> list[MetadataRecord]:
    """A log in which every record fits what came before."""
    topics: dict[str, TopicId] = {}
    partitions: dict[TopicId, set[int]] = {}
    epochs: dict[int, int] = {}
    records: list[MetadataRecord] = [LEVEL]
    for number in range(draw(st.integers(0, 25))):
        record = draw(draw(_choices(number, topics, partitions, epochs))())
        records.append(record)
        match record:
            case TopicRecord():
                topics[record.name] = record.topic_id
                partitions[record.topic_id] = set()
            case RemoveTopicRecord():
                topics = {name: id_ for name, id_ in topics.items() if id_ != record.topic_id}
                del partitions[record.topic_id]
            case PartitionRecord():
                partitions[record.topic_id].add(record.partition_id)
            case RegisterBrokerRecord():
                epochs[record.broker_id] = record.broker_epoch
            case UnregisterBrokerRecord():
                del epochs[record.broker_id]
    return records


def _choices(
    number: int,
    topics: dict[str, TopicId],
    partitions: dict[TopicId, set[int]],
    epochs: dict[int, int],
) -> st.SearchStrategy[Callable[[], st.SearchStrategy[MetadataRecord]]]:
    """The possible next steps; only a drawn one is built, because building takes longest."""
    choices = [
        *ALWAYS,
        lambda: st.builds(_broker, st.integers(1, 3), st.just(number), st.booleans()),
    ]
    names = sorted({"a", "a.b", "a_b", "c"} - set(topics))
    if names:
        new = TopicId(uuid(number))
        choices.append(
            lambda: st.builds(TopicRecord, name=st.sampled_from(names), topic_id=st.just(new))
        )
    if topics:
        ids = st.sampled_from([topics[name] for name in sorted(topics)])
        choices += [
            lambda: st.builds(ClearElrRecord, topic_name=st.sampled_from(["", *sorted(topics)])),
            lambda: st.builds(RemoveTopicRecord, topic_id=ids),
            lambda: st.builds(_partition, ids, st.integers(0, 4), replicas, replicas),
            lambda: st.builds(_partition, ids, st.integers(0, 4), replicas, replicas),
        ]
    existing = [(id_, number) for id_, numbers in partitions.items() for number in sorted(numbers)]
    if existing:
        choices += [lambda: st.sampled_from(existing).flatmap(_partition_change)] * 3
    if epochs:
        known = st.sampled_from(sorted(epochs.items()))
        choices += [
            lambda: st.builds(
                lambda one: UnregisterBrokerRecord(broker_id=one[0], broker_epoch=one[1]), known
            ),
            lambda: st.builds(_registration_change, known, st.integers(-1, 1)),
        ]
    return st.sampled_from(choices)


ALWAYS: list[Callable[[], st.SearchStrategy[Any]]] = [
    lambda: st.just(NoOpRecord()),
    lambda: st.builds(
        FeatureLevelRecord,
        name=st.sampled_from(["group.version", "share.version"]),
        feature_level=st.integers(0, 1),
    ),
    lambda: st.builds(
        ConfigRecord,
        resource_type=st.sampled_from([2, 4]),
        resource_name=st.sampled_from(["", "a", "1"]),
        name=st.sampled_from(["k", "l"]),
        value=st.sampled_from([None, "", "v"]),
    ),
    lambda: st.builds(_acl, st.integers(0, 2)),
    lambda: st.builds(lambda n: RemoveAccessControlEntryRecord(id=uuid(n)), st.integers(0, 2)),
    lambda: st.builds(_controller, st.integers(1, 3)),
    lambda: st.builds(UnknownRecord, st.just(99), st.integers(0, 1), st.just(b"x")),
]


def _partition_change(place: tuple[TopicId, int]) -> st.SearchStrategy[PartitionChangeRecord]:
    topic_id, partition_id = place
    return st.builds(
        PartitionChangeRecord,
        partition_id=st.just(partition_id),
        topic_id=st.just(topic_id),
        isr=optional_replicas,
        leader=st.integers(-2, 5),
        replicas=optional_replicas,
        adding_replicas=optional_replicas,
        eligible_leader_replicas=optional_replicas,
    )


def _registration_change(broker: tuple[int, int], fenced: int) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker[0], broker_epoch=broker[1], fenced=fenced
    )


def _acl(number: int) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=uuid(number),
        resource_type=2,
        resource_name="a",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=number,
        permission_type=3,
    )


def _controller(controller_id: int) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller_id, incarnation_id=uuid(1), end_points=(), features=()
    )


def _broker(broker_id: int, epoch: int, fenced: bool) -> RegisterBrokerRecord:  # noqa: FBT001
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uuid(epoch),
        broker_epoch=epoch,
        end_points=(),
        features=(),
        rack="r",
        fenced=fenced,
        log_dirs=(DirectoryId(uuid(broker_id)),),
        cordoned_log_dirs=(),
    )


def _partition(
    topic_id: TopicId, partition_id: int, members: tuple[int, ...], isr: tuple[int, ...]
) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=members,
        isr=isr,
        leader=members[0],
        leader_epoch=partition_id,
        partition_epoch=partition_id + 1,
        directories=tuple(DirectoryId(uuid(member)) for member in members),
        last_known_elr=isr,
    )


@settings(deadline=None, max_examples=50)
@given(records=logs())
def test_a_snapshot_loads_as_the_image_that_it_was_taken_of(records: list[MetadataRecord]) -> None:
    image = replay(records)
    assert reloaded(image) == image
    assert list(snapshot_records(reloaded(image))) == list(snapshot_records(image))


@settings(deadline=None, max_examples=50)
@given(records=logs(), data=st.data())
def test_a_log_gives_what_a_snapshot_in_it_and_the_rest_give(
    records: list[MetadataRecord], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(records)))
    image = reloaded(replay(records[:cut]))
    assert replay(records[cut:], image) == replay(records)


def test_records_come_in_kafkas_order(cluster: Cluster) -> None:
    topic_b = cluster.create("b", (1,))
    topic_a = cluster.create("a", (1,), (2,), configs=(("segment.ms", "1"), ("flush.ms", "2")))
    image = cluster.image
    extra = replay(
        [
            FeatureLevelRecord(name="group.version", feature_level=1),
            _acl(1),
            _controller(1),
            UnknownRecord(99, 0, b"x"),
        ],
        image,
    )
    shown = [
        (type(record).__name__, getattr(record, "name", None) or getattr(record, "topic_id", None))
        for record in snapshot_records(extra)
    ]
    assert shown == [
        ("FeatureLevelRecord", "metadata.version"),
        ("FeatureLevelRecord", "group.version"),
        *[("RegisterBrokerRecord", None)] * 3,
        ("RegisterControllerRecord", None),
        ("TopicRecord", "a"),
        *[("PartitionRecord", topic_a)] * 2,
        ("TopicRecord", "b"),
        ("PartitionRecord", topic_b),
        ("ConfigRecord", "flush.ms"),
        ("ConfigRecord", "segment.ms"),
        ("AccessControlEntryRecord", None),
        ("UnknownRecord", None),
    ]


def test_brokers_of_a_snapshot_are_caught_up_at_its_end(cluster: Cluster) -> None:
    loaded = reloaded(cluster.image)
    last = cluster.image.position.end_offset - 1
    assert [broker.offset for broker in loaded.brokers.by_id.values()] == [last] * 3


def test_a_snapshot_is_written_in_the_versions_of_its_level() -> None:
    level = FeatureLevelRecord(name="metadata.version", feature_level=16)
    topic_id = TopicId(uuid(1))
    image = replay(
        [
            level,
            _broker(1, 1, fenced=False),
            TopicRecord(name="a", topic_id=topic_id),
            _partition(topic_id, 0, (1,), (1,)),
        ]
    )
    versions = {
        type(record).__name__: version
        for values in snapshot_slices(image)
        for record, version in map(decode_record, values)
    }
    assert versions == {
        "FeatureLevelRecord": 0,
        "RegisterBrokerRecord": 2,
        "TopicRecord": 0,
        "PartitionRecord": 0,
    }
    partition = reloaded(image).topics.partition(topic_id, 0)
    assert partition is not None
    assert partition.directories == (MIGRATING_DIR,)


def test_an_empty_snapshot_is_the_empty_image_at_its_position() -> None:
    loader = SnapshotLoader(at(9))
    assert loader.finish() == MetadataImage(position=at(9))
    assert list(chain.from_iterable(snapshot_slices(MetadataImage()))) == []


def test_many_topics_are_sorted_in_parts_and_the_caller_may_yield_between_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "gbdacfe":
        cluster.create(name, (1, 2))
    whole = list(snapshot_records(cluster.image))
    monkeypatch.setattr(slices, "SORTED_TOGETHER_MAX", 2)
    assert list(snapshot_records(cluster.image)) == whole
    names = [record.name for record in whole if isinstance(record, TopicRecord)]
    assert names == sorted(names)
    sizes = [len(values) for values in snapshot_slices(cluster.image)]
    assert sizes.count(0) >= len(names) // 2


@pytest.mark.parametrize(
    ("topics", "cells", "most"), [(1, 1000, 1 + 4), (1000, 1, 1 + 4), (1000, 1000, 3 * (1 + 5))]
)
def test_the_size_of_slices_makes_no_difference(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, topics: int, cells: int, most: int
) -> None:
    for name in "abc":
        cluster.create(name, *[(1, 2)] * 5)
    whole = list(chain.from_iterable(snapshot_slices(cluster.image)))
    monkeypatch.setattr(topic_module, "TOPICS_SLICE", topics)
    monkeypatch.setattr(topic_module, "CELLS_SLICE", cells)
    monkeypatch.setattr("quorate.controller.partitions.tree.ROWS_MAX", 4)
    # The rows as they are when they are rebuilt.
    image = reloaded(cluster.image)
    sizes = [len(values) for values in topic_values(image)]
    assert max(sizes) == most
    assert list(chain.from_iterable(snapshot_slices(image))) == whole


@settings(deadline=None, max_examples=50)
@given(log=logs())
def test_a_snapshot_is_byte_for_byte_what_its_records_are(log: list[MetadataRecord]) -> None:
    image = replay(log)
    expected = [encode_at(30, record) for record in snapshot_records(image)]
    assert list(chain.from_iterable(snapshot_slices(image))) == expected


@pytest.mark.parametrize("level", [7, 16, 17, 22, 23, 30])
def test_topics_are_byte_for_byte_what_their_records_are_at_every_level(level: int) -> None:
    seed = secrets.randbits(32)
    history = History(seed)
    history.faults = 0
    finalised = FeatureLevelRecord(name="metadata.version", feature_level=level)
    values = [encode_record(finalised, 0), *history.creation()]
    for _ in range(10):
        values += [*history.creation(), *history.changes()]
    image = replay([decode_record(value)[0] for value in values])
    expected = [encode_at(level, record) for record in topic_records(image) if record is not None]
    assert list(chain.from_iterable(topic_values(image))) == expected, f"seed {seed}"
    assert len(expected) > 20, f"seed {seed}"
