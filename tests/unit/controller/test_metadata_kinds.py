"""The table is whole: whatever can be asked or be in a log belongs to one subject."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from quorate.controller.message_registry import REQUESTS
from quorate.controller.metadata_kinds import METADATA_KINDS
from quorate.controller.request_types import ReadRequest, WriteRequest
from quorate.records.metadata import (
    RECORD_TYPES,
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    UnknownRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_every_change_is_decided_by_one_subject() -> None:
    writes = [write for subject in METADATA_KINDS for write in subject.writes]
    assert Counter(write.request for write in writes) == Counter(
        each for each in REQUESTS if issubclass(each, WriteRequest)
    )
    assert all((write.decide is None) != (write.in_slices is None) for write in writes)


def test_every_question_is_answered_by_one_subject() -> None:
    assert Counter(kind for subject in METADATA_KINDS for kind in subject.reads) == Counter(
        each for each in REQUESTS if issubclass(each, ReadRequest)
    )


@pytest.mark.rule("lossless_replay")
def test_every_record_is_replayed_by_one_subject() -> None:
    def replayed() -> Iterator[type]:
        for subject in METADATA_KINDS:
            yield from subject.replay
            yield from subject.replay_at

    others = {BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord, NoOpRecord}
    assert Counter(replayed()) == Counter({*RECORD_TYPES.values(), UnknownRecord} - others)


def test_what_has_pauses_can_be_replayed_at_once() -> None:
    for subject in METADATA_KINDS:
        assert subject.replay_in_slices.keys() <= subject.replay.keys()
