"""leader-epoch-checkpoint, and what it proves about the log."""

from __future__ import annotations

import pytest

from quorate.raft.messages import EpochStart
from quorate.records.ids import Epoch, Offset
from quorate.storage.errors import StorageError
from quorate.storage.log.leader_epoch_checkpoint import (
    check_history,
    decode_epochs,
    encode_epochs,
    entries_between,
    read_epochs,
)
from tests.unit.storage.conftest import Replica


def epochs(*entries: tuple[int, int]) -> tuple[EpochStart, ...]:
    return tuple(EpochStart(Epoch(epoch), Offset(start)) for epoch, start in entries)


STOCK = b"0\n4\n1 224\n2 330\n3 352\n4 586\n"
HISTORY = epochs((1, 224), (2, 330), (3, 352), (4, 586))


def test_the_text_is_kafkas() -> None:
    assert encode_epochs(HISTORY) == STOCK
    assert decode_epochs(STOCK) == HISTORY
    assert decode_epochs(encode_epochs(())) == ()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"0\n3\n1 0\n", "the count is '3', and 1 entries follow"),
        (b"", "does not begin"),
        (b"1\n0\n", "does not begin"),
        (b"0\n1\n1 0", "ends in mid-line"),
        (b"0\n1\n1 x\n", "line 3"),
        (b"0\n1\n1 2 3\n", "line 3"),
        (b"0\n1\n2147483648 0\n", "line 3"),
        (b"0\n1\n1 9223372036854775808\n", "line 3"),
        (b"0\n1\n1 " + b"9" * 5000 + b"\n", "line 3"),
        (b"0\n2\n1 0\n1 5\n", "line 4: epochs and offsets must rise"),
        (b"0\n2\n1 5\n2 5\n", "line 4: epochs and offsets must rise"),
    ],
)
def test_a_malformed_file_is_refused(data: bytes, reason: str) -> None:
    disk = Replica().disk
    disk.open("/data/x", create=True).write_at(0, data)
    with pytest.raises(StorageError, match=f"/data/x: .*{reason}.*Remove the file"):
        read_epochs(disk, "/data/x")


def test_a_missing_file_is_none_and_a_written_one_says_what_was_told() -> None:
    disk = Replica().disk
    assert read_epochs(disk, "/data/x") is None
    disk.open("/data/x", create=True).write_at(0, encode_epochs(HISTORY))
    assert read_epochs(disk, "/data/x") == HISTORY


@pytest.mark.parametrize(
    ("history", "log_start", "end", "expected"),
    [
        (((1, 0), (2, 5)), 0, 9, ((1, 0), (2, 5))),
        (((1, 0), (2, 5)), 3, 9, ((1, 3), (2, 5))),
        (((1, 0), (2, 5)), 5, 9, ((2, 5),)),
        (((1, 0), (2, 5)), 7, 9, ((2, 7),)),
        (((1, 0), (2, 5)), 0, 5, ((1, 0),)),
        (((1, 223),), 224, 224, ((1, 224),)),
        ((), 0, 0, ()),
    ],
)
def test_epochs_without_records_are_not_listed(
    history: tuple[tuple[int, int], ...],
    log_start: int,
    end: int,
    expected: tuple[tuple[int, int], ...],
) -> None:
    assert entries_between(epochs(*history), log_start=log_start, end=end) == epochs(*expected)


LOG = ((1, 0), (2, 5), (4, 9))


@pytest.mark.parametrize(
    ("recorded", "first", "flushed"),
    [
        (LOG, 0, 12),
        (LOG, 0, None),
        (((1, 3), (2, 5), (4, 9)), 0, 12),  # cleaned up to 3
        (((1, 0), (2, 5)), 0, None),  # stock Kafka, killed before it noted epoch 4
        (((1, 0), (2, 5)), 0, 9),  # ours, killed before the flush of epoch 4 was over
        ((*LOG, (5, 12)), 0, 12),  # the log was cut at 12
        (((1, 0), (3, 7)), 12, 12),  # the log restarted at 12
        (((3, 9),), 9, 9),  # the log restarted at 9, and continued with epoch 4
        ((), 0, 12),
    ],
)
def test_a_history_that_a_crash_can_leave_is_accepted(
    recorded: tuple[tuple[int, int], ...], first: int, flushed: int | None
) -> None:
    check_history("x", epochs(*recorded), epochs(*LOG), first=first, end=12, flushed=flushed)


@pytest.mark.parametrize(
    ("recorded", "flushed"),
    [
        (((1, 0), (3, 5), (4, 9)), 12),
        (((1, 0), (2, 6), (4, 9)), 12),
        (((1, 0), (2, 5)), 12),
        (((1, 0), (4, 9)), None),
        (((3, 0),), None),
        (((3, 9),), 10),
    ],
)
def test_a_history_that_the_log_contradicts_is_refused(
    recorded: tuple[tuple[int, int], ...], flushed: int | None
) -> None:
    with pytest.raises(StorageError, match=r"x: says that epochs begin at .*remove the file"):
        check_history("x", epochs(*recorded), epochs(*LOG), first=0, end=12, flushed=flushed)


def test_a_restarted_log_is_opened_whatever_it_went_on_with(veteran: Replica) -> None:
    """Killed before the flush, after which the epoch history is written."""
    info = veteran.snapshot(veteran.end)
    data = veteran.disk.read(veteran.store.snapshots.path(info.snapshot_id))
    replica = Replica()
    replica.open()
    replica.save(7)
    replica.install(info.snapshot_id, data)
    replica.begin_epoch(7)
    replica.append(b"behind the snapshot")
    end = replica.end
    assert not replica.open().is_damaged
    assert replica.end == end
