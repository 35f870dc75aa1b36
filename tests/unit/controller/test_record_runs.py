"""Runs of records give what the same records give one by one, whatever is in them."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from quorate.controller import record_runs
from quorate.controller.errors import ReplayError
from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.partitions import tree
from quorate.controller.partitions.partition import NO_LEADER, UNASSIGNED_DIR
from quorate.controller.record_runs import COLUMNS_MIN, RecordRun, batch_items, piece_items
from quorate.controller.replay import Replayer
from quorate.controller.snapshot import SnapshotLoader
from quorate.records.batch import encode_batch, read_header, read_records
from quorate.records.columnar.pieces import iter_pieces
from quorate.records.ids import DirectoryId, Epoch, Offset, TopicId
from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_record,
    encode_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.record_runs import Item

# What a log may hold that no replay gets over.
ERRORS = (ReplayError, ValueError)
DIRECTORIES = [UNASSIGNED_DIR, *(DirectoryId(bytes([7, n]) * 8) for n in range(3))]


class History:
    """Batches of records as a log could hold them, and now and then as none should."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        # How often something is as it should not be, times a few parts in ten thousand.
        self.faults = 1.0
        self.topics: dict[TopicId, int] = {}
        self.is_open = False
        self._before: dict[TopicId, int] = {}
        self._count = 0

    def chance(self, part: float) -> bool:
        return self.draw.random() < part

    def is_wrong(self, part: float) -> bool:
        return self.chance(part * self.faults)

    def batch(self) -> bytes:
        """The next one, without what it would need to follow on the last one."""
        values: list[bytes] = []
        for _ in range(self.draw.randint(1, 3)):
            values += self.draw.choice(
                [self.creation, self.creation, self.changes, self.changes, self.other]
            )()
        if self.is_wrong(0.05):
            values = [self.damaged(value) if self.chance(0.02) else value for value in values]
        if self.is_wrong(0.01):
            self.draw.shuffle(values)
        return encode_batch(values or [encode_record(NoOpRecord(), 0)], timestamp_ms=5)

    def damaged(self, value: bytes) -> bytes:
        at = self.draw.randrange(len(value))
        return value[:at] + bytes([self.draw.randrange(256)]) + value[at + 1 :]

    def creation(self) -> Iterator[bytes]:
        version = self.draw.randint(0, 2)
        for _ in range(self.draw.randint(1, 4)):
            topic_id = TopicId(self.draw.randbytes(16))
            if self.topics and self.chance(0.2):
                # One that is there gets more partitions, or some of those that it has again.
                topic_id = self.draw.choice([*self.topics])
            else:
                self._count += 1
                name = "t1" if self.is_wrong(0.005) else f"t{self._count}"
                yield encode_record(TopicRecord(name=name, topic_id=topic_id), 0)
                self.topics[topic_id] = 0
            if self.chance(0.3):
                yield encode_record(
                    ConfigRecord(resource_type=2, resource_name="t1", name="k", value="v"), 0
                )
            first = self.topics[topic_id]
            if self.chance(0.1):
                first = max(0, first - 2)
            count = self.draw.choice([0, 1, 3, 20])
            for partition_id in range(first, first + count):
                yield self.partition(topic_id, partition_id, version)
            self.topics[topic_id] = max(self.topics[topic_id], first + count)

    def partition(self, topic_id: TopicId, partition_id: int, version: int) -> bytes:
        draw = self.draw
        replicas = tuple(draw.sample(range(9), 3 if self.chance(0.8) else draw.randint(0, 5)))
        directories = tuple(draw.choices(DIRECTORIES, k=len(replicas)))
        if self.chance(0.3):
            directories = (UNASSIGNED_DIR,) if self.is_wrong(0.001) else ()
        if self.is_wrong(0.0002):
            partition_id = draw.choice([-1, 1 << 30])
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=TopicId(bytes(16)) if self.is_wrong(0.0002) else topic_id,
            replicas=replicas,
            isr=replicas if self.chance(0.8) else replicas[:1],
            leader=replicas[0] if replicas and self.chance(0.9) else NO_LEADER,
            leader_recovery_state=int(self.chance(0.1)),
            leader_epoch=draw.randrange(5),
            partition_epoch=draw.randrange(5),
            directories=directories if version else (),
            adding_replicas=(1, 2) if self.chance(0.1) else (),
            last_known_elr=(3,) if version > 1 and self.chance(0.1) else None,
        )
        value = encode_record(record, version)
        # A version that this release does not know.
        return value[:2] + b"\x09" + value[3:] if self.is_wrong(0.0005) else value

    def changes(self) -> Iterator[bytes]:
        version = self.draw.randint(0, 2)
        places = [(id_, n) for id_, count in self.topics.items() for n in range(count)]
        if places and self.chance(0.95):
            places = self.draw.sample(places, self.draw.randint(1, len(places)))
        if self.chance(0.1):
            places += places[:1]
        is_plain = self.chance(0.8)
        for topic_id, partition_id in places:
            yield self.change(topic_id, partition_id, version, is_plain=is_plain)

    def change(
        self, topic_id: TopicId, partition_id: int, version: int, *, is_plain: bool
    ) -> bytes:
        draw = self.draw
        isr = tuple(draw.sample(range(9), draw.randint(0, 5)))
        record = PartitionChangeRecord(
            partition_id=partition_id + 1000 * self.is_wrong(0.0002),
            topic_id=topic_id,
            isr=isr if self.chance(0.7) else None,
            leader=draw.choice([-2, -2, NO_LEADER] if is_plain else [-2, NO_LEADER, 3]),
            leader_recovery_state=draw.choice([-1, -1, 0, 1]),
            replicas=None if is_plain or self.chance(0.9) else (1, 2),
            eligible_leader_replicas=(4,) if version > 1 and not is_plain else None,
        )
        return encode_record(record, version)

    def other(self) -> Iterator[bytes]:
        draw = self.draw
        if self.topics and self.chance(0.5):
            topic_id = draw.choice([*self.topics])
            del self.topics[topic_id]
            # And a type that it does not know, but keeps.
            yield b"\1\x63\0what"
            yield encode_record(RemoveTopicRecord(topic_id=topic_id), 0)
        elif not self.is_open:
            self.is_open, self._before = True, dict(self.topics)
            yield encode_record(BeginTransactionRecord(), 0)
            yield from self.creation()
        else:
            self.is_open = False
            yield from self.changes()
            if self.chance(0.5):
                yield encode_record(EndTransactionRecord(), 0)
            else:
                yield encode_record(AbortTransactionRecord(reason="why not"), 0)
                self.topics = self._before


def one_by_one(batch: bytes) -> Iterator[Item]:
    for record in read_records(batch, 0, read_header(batch)):
        yield decode_record(record.value or b"")[0]


def as_runs(batch: bytes, count: int) -> Iterator[Item]:
    return piece_items(iter_pieces(batch, 0, read_header(batch), count))


def replayed(replayer: Replayer, items: Iterator[Item], count: int) -> type | None:
    """The type of error that a batch ends with, None where it is replayed."""
    end = LogPosition(Offset(replayer.end_offset + count), Epoch(1), 9)
    try:
        replayer.replay(items, base_offset=replayer.end_offset, position=end)
    except ERRORS as error:
        return ReplayError if isinstance(error, ReplayError) else ValueError
    return None


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """The number of runs that were replayed as a whole, and of those taken record by record."""
    counted: Counter[bool] = Counter()
    replay = RecordRun.replay

    def counting(run: RecordRun, *arguments: object) -> bool:
        is_taken = replay(run, *arguments)  # type: ignore[arg-type]
        counted[is_taken] += 1
        return is_taken

    monkeypatch.setattr(RecordRun, "replay", counting)
    return counted


def test_any_history_gives_equal_images_both_ways(
    taken: Counter[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = secrets.randbits(32)
    draw = random.Random(seed)
    errors: Counter[type | None] = Counter()
    for round_ in range(100):
        monkeypatch.setattr(record_runs, "RUN_MIN", draw.choice([1, 2, 16]))
        monkeypatch.setattr(record_runs, "SPREAD_MIN", draw.choice([0, 4]))
        monkeypatch.setattr(tree, "ROWS_MAX", draw.choice([4, 256]))
        history = History(draw.getrandbits(32))
        plain, fast = Replayer(MetadataImage()), Replayer(MetadataImage())
        for step in range(40):
            batch = history.batch()
            count = read_header(batch).record_count
            where = f"seed {seed}, round {round_}, step {step}"
            expected = replayed(plain, one_by_one(batch), count)
            pieces = as_runs(batch, draw.choice([7, 1024]))
            assert (replayed(fast, pieces, count) is None) is (expected is None), where
            assert fast.image == plain.image, where
            assert fast.is_in_transaction is plain.is_in_transaction, where
            assert fast.image.topics.tally == plain.image.topics.tally, where
            tally, other = fast.image.topics.tally, plain.image.topics.tally
            assert (tally.unclean, tally.eligible) == (other.unclean, other.eligible), where
            errors[expected] += 1
            if expected is not None:
                break
        # Both ways were gone, and a log that cannot be was met.
        if min(taken[True], taken[False], errors.total() - errors[None]) > 5 and errors[None] > 100:
            return
    raise AssertionError(f"seed {seed}: {taken}, {errors}")


def test_any_snapshot_loads_both_ways(taken: Counter[bool]) -> None:
    seed = secrets.randbits(32)
    draw = random.Random(seed)
    ends: Counter[bool] = Counter()
    for round_ in range(100):
        history = History(draw.getrandbits(32))
        plain, fast = (SnapshotLoader(LogPosition(Offset(9), Epoch(1), 5)) for _ in range(2))
        for step in range(60):
            batch = encode_batch([*history.creation()] or [b"\1\x14\0\0"], timestamp_ms=5)
            where = f"seed {seed}, round {round_}, step {step}"
            is_sound = loaded(plain, one_by_one(batch))
            assert loaded(fast, as_runs(batch, 1024)) is is_sound, where
            if not is_sound:
                break
        else:
            assert fast.finish() == plain.finish(), f"seed {seed}, round {round_}"
        ends[is_sound] += 1
        # A whole snapshot was loaded, some of it in runs.
        if ends[True] and taken[True] > 5:
            return
    raise AssertionError(f"seed {seed}: {taken}, {ends}")


def loaded(loader: SnapshotLoader, items: Iterator[Item]) -> bool:
    """True if these records may be in a snapshot."""
    try:
        loader.add(items)
    except ERRORS:
        return False
    return True


def creation_of(topics: int, partitions: int) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    for number in range(topics):
        topic_id = TopicId(number.to_bytes(16))
        records.append(TopicRecord(name=str(number), topic_id=topic_id))
        records += [
            PartitionRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                replicas=(1, 2, 3),
                isr=(1, 2, 3),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
            )
            for partition_id in range(partitions)
        ]
    return records


def batch_of(records: list[MetadataRecord]) -> bytes:
    return encode_batch([encode_record(record, 0) for record in records], timestamp_ms=5)


def image_of(batch: bytes, image: MetadataImage | None = None) -> MetadataImage:
    replayer = Replayer(image or MetadataImage())
    assert replayed(replayer, as_runs(batch, 1024), read_header(batch).record_count) is None
    return replayer.image


def test_topics_with_their_partitions_are_one_run(taken: Counter[bool]) -> None:
    image = image_of(batch_of(creation_of(50, 4)))
    assert taken == {True: 1}
    assert image.topics.partition_count == 200
    assert len(image.topics.by_id) == 50


@pytest.mark.parametrize("count", [1, COLUMNS_MIN - 1, COLUMNS_MIN])
def test_only_a_batch_of_many_records_is_looked_through_for_runs(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_runs, "RUN_MIN", 1)
    batch = batch_of(creation_of(1, count - 1))
    items = list(batch_items(batch, 0, read_header(batch)))
    if count < COLUMNS_MIN:
        assert items == list(one_by_one(batch))
    else:
        assert [type(item) for item in items] == [RecordRun]


def test_few_partitions_among_other_records_are_no_run(taken: Counter[bool]) -> None:
    config = ConfigRecord(resource_type=4, resource_name="1", name="k", value="v")
    image_of(batch_of([config] * 100 + creation_of(1, 10)))
    assert not taken


def test_changes_in_very_many_parts_of_the_tree_are_taken_one_by_one(
    taken: Counter[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "ROWS_MAX", 4)
    image = image_of(batch_of(creation_of(100, 4)))
    topic_ids = [TopicId(number.to_bytes(16)) for number in range(100)]

    def changes(partitions: int) -> list[MetadataRecord]:
        return [
            PartitionChangeRecord(partition_id=n, topic_id=topic_id, isr=(1,))
            for topic_id in topic_ids
            for n in range(partitions)
        ]

    taken.clear()
    image_of(batch_of(changes(1)), image)
    assert taken == {False: 1}
    changed = image_of(batch_of(changes(4)), image)
    assert taken == {False: 1, True: 1}
    isrs = {p.isr for topic_id in topic_ids for _, p in changed.topics.partitions_of(topic_id)}
    assert isrs == {(1,)}


def test_a_partition_with_very_many_replicas_is_taken_alone(taken: Counter[bool]) -> None:
    records = creation_of(1, 100)
    wide = PartitionRecord(
        partition_id=100,
        topic_id=TopicId(bytes(16)),
        replicas=tuple(range(5000)),
        isr=(1,),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
    image = image_of(batch_of([*records, wide]))
    assert taken == {False: 1}
    parts = list(image.topics.partitions.rows.parts_from(0))
    assert np.concatenate([part.partition_ids for part in parts]).tolist() == list(range(101))
