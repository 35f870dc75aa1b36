"""The intact length of a log, by all the files that bear witness to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft.messages import EpochStart
from quorate.records.batch import encode_batch, restamp
from quorate.records.control import (
    KRaftVoters,
    LeaderChange,
    encode_control_batch,
)
from quorate.records.ids import ZERO_UUID, DirectoryId, Epoch, NodeId, Offset
from quorate.storage.errors import StorageError
from quorate.storage.flushed_end import FlushedEnd
from quorate.storage.log.segment import Segment
from quorate.storage.recovery.log_scan import KnownEpochs, find_resync_end, scan_log
from tests.unit.storage.conftest import CLUSTER_ID, LOG_DIR, THREE, Replica, at

if TYPE_CHECKING:
    from quorate.records.ids import OffsetAndEpoch
    from quorate.storage.recovery.log_scan import ScannedLog


def leader(base: int, epoch: int) -> bytes:
    change = LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),))
    return encode_control_batch([change], timestamp_ms=1, base_offset=base, epoch=epoch)


def data(base: int, epoch: int, count: int = 2) -> bytes:
    return encode_batch([b"v%d" % base] * count, timestamp_ms=1, base_offset=base, epoch=epoch)


def epochs(*entries: tuple[int, int]) -> tuple[EpochStart, ...]:
    return tuple(EpochStart(Epoch(epoch), Offset(start)) for epoch, start in entries)


# Offsets 0 L1, 1-2, 3-4, 5 L2 (alone in its epoch), 6 L4, 7-8.
BATCHES = [leader(0, 1), data(1, 1), data(3, 1), leader(5, 2), leader(6, 4), data(7, 4)]
END = at(9, 4)
HISTORY = epochs((1, 0), (2, 5), (4, 6))
WITNESSES = KnownEpochs(base_epoch=Epoch(0), quorum_epoch=Epoch(4))


def flushed_at(end: OffsetAndEpoch, last_crc: int | None) -> FlushedEnd:
    return FlushedEnd(end, last_crc, (), 0, CLUSTER_ID, DirectoryId(ZERO_UUID))


def segments_of(*files: tuple[int, bytes]) -> list[Segment]:
    disk = Replica().disk
    segments = []
    for base, content in files:
        segment = Segment.create(disk, LOG_DIR, Offset(base))
        segment.append(content)
        segments.append(segment)
    return segments


def scan(batches: list[bytes], known_epochs: KnownEpochs = WITNESSES, base: int = 0) -> ScannedLog:
    return scan_log(segments_of((base, b"".join(batches))), known_epochs)


def test_a_sound_log_is_scanned_to_its_end() -> None:
    files = [(0, b"".join(BATCHES[:2])), (3, b"".join(BATCHES[2:]))]
    log = scan_log(segments_of(*files), replace(WITNESSES, epochs=HISTORY))
    assert (log.first, log.end, log.problem) == (0, END, None)
    assert (log.segment, log.position) == (1, len(files[1][1]))
    assert tuple(log.epochs) == HISTORY
    assert [offset for offset, _ in log.controls] == [0, 5, 6]
    assert [log.epoch_before(offset) for offset in (0, 1, 5, 6, 7, 9, 10)] == [
        None,
        1,
        1,
        2,
        4,
        4,
        None,
    ]


def test_a_log_without_files_is_empty() -> None:
    log = scan_log([], WITNESSES)
    assert (log.end, log.problem, log.has_batches) == (at(0, 0), None, False)


def test_a_log_behind_a_snapshot_goes_on_in_its_epoch() -> None:
    log = scan([data(7, 4)], replace(WITNESSES, base_epoch=Epoch(4)), base=7)
    assert (log.first, log.end, log.epochs) == (7, END, list(epochs((4, 6))))


def test_a_log_cleaned_in_the_middle_of_a_segment_begins_in_an_unknown_epoch() -> None:
    log = scan(BATCHES[2:], replace(WITNESSES, base_epoch=None), base=3)
    assert (log.end, tuple(log.epochs)) == (END, epochs((1, 3), (2, 5), (4, 6)))


@pytest.mark.parametrize(
    ("index", "epoch", "history", "end"),
    [
        (1, 2, HISTORY, at(1, 1)),  # rises without a LeaderChange
        (1, 2, (), at(0, 0)),  # or the LeaderChange before is the wrong one
        (2, 0, (), at(3, 1)),  # falls
        (3, 1, (), at(5, 1)),  # a LeaderChange that does not rise
        (0, 2, (), at(0, 0)),  # the first batch of an epoch, which its successor contradicts
        (0, 2, HISTORY, at(0, 0)),
        (3, 3, HISTORY, at(5, 1)),  # alone in its epoch: only the history knows
        (4, 3, (), at(6, 2)),  # its successor rises without a LeaderChange
        (4, 3, HISTORY, at(6, 2)),
        (5, 5, (), at(7, 4)),  # above quorum-state
    ],
)
def test_a_wrong_epoch_ends_the_log_before_it(
    index: int, epoch: int, history: tuple[EpochStart, ...], end: OffsetAndEpoch
) -> None:
    batches = list(BATCHES)
    batches[index] = restamp(batches[index], int.from_bytes(batches[index][:8], "big"), epoch)
    log = scan(batches, replace(WITNESSES, epochs=history))
    assert log.problem is not None
    assert (log.end, log.problem.may_be_torn) == (end, False)


def test_two_batches_of_an_epoch_prove_that_the_history_is_wrong() -> None:
    for wrong in (epochs((1, 0), (2, 5), (3, 6)), epochs((1, 0), (2, 5), (5, 6))):
        log = scan(BATCHES, replace(WITNESSES, epochs=wrong))
        assert (log.end, log.problem) == (END, None)
        assert tuple(log.epochs) == HISTORY


@pytest.mark.parametrize("behind", [[], [leader(7, 5)], [b"torn"]])
def test_one_batch_against_the_history_proves_nothing(behind: list[bytes]) -> None:
    wrong = replace(WITNESSES, quorum_epoch=Epoch(5), epochs=epochs((1, 0), (2, 5), (3, 6)))
    log = scan([*BATCHES[:5], *behind], wrong)
    assert log.end == at(6, 2)
    assert log.problem is not None
    assert not log.problem.may_be_torn
    assert "epoch 4, but 3 in the epoch history" in log.problem.reason


def test_the_flushed_end_settles_who_is_wrong() -> None:
    wrong = replace(WITNESSES, epochs=epochs((1, 0), (2, 5), (3, 6)))
    crc = scan(BATCHES[:5]).last_crc
    log = scan(BATCHES[:5], replace(wrong, flushed=flushed_at(at(7, 4), crc)))
    assert (log.end, log.problem) == (at(7, 4), None)


def test_what_the_history_or_the_flushed_end_confirm_is_not_doubted() -> None:
    batches = [*BATCHES[:1], restamp(BATCHES[1], 1, 0)]
    assert scan(batches).end == at(0, 0)
    assert scan(batches, replace(WITNESSES, epochs=HISTORY)).end == at(1, 1)
    crc = int.from_bytes(BATCHES[0][17:21], "big")
    assert scan(batches, replace(WITNESSES, flushed=flushed_at(at(1, 1), crc))).end == at(1, 1)


@pytest.mark.parametrize(
    "flushed",
    [
        flushed_at(at(9, 4), 1),
        flushed_at(at(9, 3), int.from_bytes(BATCHES[5][17:21], "big")),
        flushed_at(at(8, 4), int.from_bytes(BATCHES[5][17:21], "big")),
    ],
)
def test_the_batch_below_the_flushed_end_is_the_one_that_was_flushed(flushed: FlushedEnd) -> None:
    log = scan(BATCHES, replace(WITNESSES, flushed=flushed))
    assert log.problem is not None
    assert log.end == at(7, 4)
    assert "was flushed" in log.problem.reason


def test_an_offset_that_does_not_follow_ends_the_log() -> None:
    log = scan([*BATCHES[:2], *BATCHES[3:]])
    assert log.problem is not None
    assert (log.end, log.problem.position) == (at(3, 1), len(b"".join(BATCHES[:2])))
    assert "offset 5, where the log goes on at 3@1" in log.problem.reason


def test_a_segment_that_does_not_follow_ends_the_log() -> None:
    log = scan_log(segments_of((0, b"".join(BATCHES[:2])), (5, BATCHES[3])), WITNESSES)
    assert log.problem is not None
    assert (log.end, log.segment, log.problem.segment) == (at(3, 1), 0, 1)


def test_an_empty_segment_is_no_problem() -> None:
    log = scan_log(segments_of((0, b"".join(BATCHES)), (50, b"")), WITNESSES)
    assert (log.end, log.problem) == (END, None)


def test_a_control_record_of_a_newer_release_is_refused() -> None:
    unknown = encode_batch(
        [b"\0\0"], keys=[b"\0\0\0\x63"], timestamp_ms=1, base_offset=1, epoch=1, is_control=True
    )
    with pytest.raises(StorageError, match=r"a control record at byte .* start that release"):
        scan([BATCHES[0], unknown])


def test_control_records_keep_their_offsets() -> None:
    records = (LeaderChange(NodeId(1), (), ()), KRaftVoters(THREE))
    batch = encode_control_batch(records, timestamp_ms=1, base_offset=0, epoch=1)
    log = scan([batch])
    assert log.controls == [(0, records[0]), (1, records[1])]


def spoil(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


@pytest.mark.parametrize(
    ("batches", "end"),
    [
        ([*BATCHES[:5], spoil(BATCHES[5])], None),
        ([*BATCHES[:5], BATCHES[5][:-3]], None),
        ([*BATCHES[:2], spoil(BATCHES[2]), *BATCHES[3:]], END),
        ([*BATCHES[:2], spoil(BATCHES[2]), BATCHES[3], spoil(BATCHES[4]), BATCHES[5]], END),
        ([*BATCHES[:2], spoil(BATCHES[2]), BATCHES[3][:-1]], None),
        ([*BATCHES[:2], spoil(BATCHES[2]), restamp(BATCHES[3], 1 << 40, 2)], None),
        ([*BATCHES[:2], spoil(BATCHES[2]), restamp(BATCHES[3], 5, 9)], None),
        ([*BATCHES[:2], spoil(BATCHES[2]), restamp(BATCHES[3], 1, 2)], None),
    ],
)
def test_whole_batches_behind_the_problem_tell_damage_from_a_tail(
    batches: list[bytes], end: OffsetAndEpoch | None
) -> None:
    assert find_resync_end(scan(batches), Epoch(4)) == end


def test_whole_batches_in_later_segments_count_as_well() -> None:
    files = [(0, BATCHES[0] + spoil(BATCHES[1])), (3, BATCHES[2]), (5, BATCHES[3])]
    assert find_resync_end(scan_log(segments_of(*files), WITNESSES), Epoch(4)) == at(6, 2)


def test_behind_no_problem_there_is_nothing() -> None:
    assert find_resync_end(scan(BATCHES), Epoch(4)) is None
