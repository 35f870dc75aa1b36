from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from immutables import Map

from quorate.controller.errors import ReplayError, UnsupportedMetadataVersionError
from quorate.controller.image import LOG_BEGIN, LogPosition, MetadataDelta, MetadataImage
from quorate.controller.replay import Replayer, replay_record
from quorate.records.ids import Epoch, Offset, TopicId
from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RemoveTopicRecord,
)

if TYPE_CHECKING:
    from quorate.records.metadata import MetadataRecord

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


NAMES = {
    "a": "eligible.leader.replicas.version",
    "b": "group.version",
    "c": "share.version",
    "d": "streams.version",
}


def feature(letter: str) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=NAMES[letter], feature_level=1)


def finalised(letters: str) -> Map[str, int]:
    return Map({NAMES[letter]: 1 for letter in letters})


def position(end_offset: int) -> LogPosition:
    return LogPosition(Offset(end_offset), Epoch(3), end_offset * 10)


def replayed(*batches: list[MetadataRecord]) -> Replayer:
    replayer = Replayer(MetadataImage())
    for batch in batches:
        add(replayer, batch)
    return replayer


def add(replayer: Replayer, batch: list[MetadataRecord]) -> None:
    base = replayer.end_offset
    replayer.replay(batch, base_offset=base, position=position(base + len(batch)))


def test_batches_follow_one_another() -> None:
    replayer = replayed([feature("a")], [NoOpRecord(), feature("b")])
    assert replayer.image == MetadataImage(position=position(3), features=finalised("ab"))
    with pytest.raises(ReplayError, match="a batch at offset 4 cannot follow on 3"):
        replayer.replay([NoOpRecord()], base_offset=Offset(4), position=position(5))


def test_a_control_batch_moves_the_end_only() -> None:
    replayer = replayed([feature("a")])
    replayer.replay([], base_offset=Offset(1), position=position(4))
    assert replayer.image == MetadataImage(position=position(4), features=finalised("a"))


def test_a_record_that_contradicts_the_state_is_named_with_its_offset() -> None:
    replayer = replayed([NoOpRecord()])
    before = replayer.image
    with pytest.raises(ReplayError, match="RemoveTopicRecord at offset 2: no topic has the id 74"):
        add(replayer, [feature("a"), RemoveTopicRecord(topic_id=TopicId(b"t" * 16))])
    assert replayer.image is before
    assert replayer.end_offset == 1


def test_the_kind_of_error_survives_the_naming() -> None:
    newer = FeatureLevelRecord(name="metadata.version", feature_level=99)
    with pytest.raises(UnsupportedMetadataVersionError, match="FeatureLevelRecord at offset 0"):
        replayed([newer])


# --- transactions ---------------------------------------------------------------------------------


def test_a_transaction_becomes_visible_at_its_end() -> None:
    replayer = replayed([feature("a"), BEGIN, feature("b")])
    assert replayer.is_in_transaction
    before = LogPosition(Offset(1), Epoch(3), timestamp_ms=30)
    assert replayer.image == MetadataImage(position=before, features=finalised("a"))
    assert replayer.end_offset == 3
    add(replayer, [feature("c")])
    assert replayer.image.position.end_offset == 1
    add(replayer, [END, feature("d")])
    assert not replayer.is_in_transaction
    assert replayer.image == MetadataImage(position=position(6), features=finalised("abcd"))


def test_an_aborted_transaction_never_happened() -> None:
    replayer = replayed([feature("a"), BEGIN, feature("b")], [feature("c"), ABORT, feature("d")])
    assert replayer.image == MetadataImage(position=position(6), features=finalised("ad"))
    assert not replayer.is_in_transaction


@pytest.mark.parametrize(
    ("batch", "letters"),
    [
        ([BEGIN, feature("a"), END], "a"),
        ([BEGIN, feature("a"), ABORT], ""),
        ([BEGIN, feature("a"), END, BEGIN, feature("b"), ABORT, feature("c")], "ac"),
        ([BEGIN, feature("a"), ABORT, BEGIN, feature("b"), END], "b"),
    ],
)
def test_transactions_may_begin_and_end_within_a_batch(
    batch: list[MetadataRecord], letters: str
) -> None:
    replayer = replayed(batch)
    expected = MetadataImage(position=position(len(batch)), features=finalised(letters))
    assert replayer.image == expected


def test_a_second_begin_or_an_end_without_a_begin_contradicts_the_log() -> None:
    with pytest.raises(ReplayError, match="a transaction begins at 1 while one is open"):
        replayed([BEGIN, BEGIN])
    for record in (END, ABORT):
        with pytest.raises(ReplayError, match="a transaction ends at 0 while none is open"):
            replayed([record])


def test_a_failed_batch_leaves_an_open_transaction_as_it_was() -> None:
    replayer = replayed([BEGIN, feature("a")])
    with pytest.raises(ReplayError):
        add(replayer, [END, END])
    assert replayer.is_in_transaction
    add(replayer, [END])
    assert replayer.image.features == finalised("a")


def test_nothing_was_replayed_at_the_begin_of_the_log() -> None:
    replayer = Replayer(MetadataImage())
    assert (replayer.image.position, replayer.end_offset) == (LOG_BEGIN, 0)


@pytest.mark.parametrize("mark", [BEGIN, END, ABORT])
def test_a_snapshot_holds_no_part_of_a_transaction(mark: MetadataRecord) -> None:
    name = type(mark).__name__
    with pytest.raises(ReplayError, match=f"{name} at offset 0: a snapshot holds no part of a"):
        replay_record(MetadataDelta(MetadataImage()), mark, Offset(0))
