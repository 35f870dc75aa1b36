"""The log: appended, flushed in groups, read, cut, restarted, its start moved."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft.api import TruncationRefused
from quorate.raft.messages import EpochStart
from quorate.records.batch import encode_batch, iter_batches
from quorate.records.ids import Epoch, Offset
from quorate.storage.errors import DamagedLogError, StorageError
from quorate.storage.flushed_end import FlushedEndFile

from .conftest import ALONE, LOG_DIR, THREE, Replica, at

if TYPE_CHECKING:
    from quorate.records.ids import OffsetAndEpoch
    from quorate.storage.log import MetadataLog


def log_of(replica: Replica) -> MetadataLog:
    return replica.store.log


def recorded_end(replica: Replica) -> OffsetAndEpoch:
    entry = FlushedEndFile(replica.disk, "/data/flushed-end").load()
    assert entry is not None
    return entry.end


def test_appended_batches_are_in_the_log_but_not_flushed(replica: Replica) -> None:
    replica.begin_epoch(1)
    log = log_of(replica)
    assert (log.end, log.flushed_end) == (at(3, 1), at(0, 0))
    assert replica.flush() == at(3, 1)
    assert recorded_end(replica) == log.flushed_end == at(3, 1)
    assert replica.disk.first_unsafe(LOG_DIR, ".log") is None


def test_a_flush_promises_what_was_written_before_it_began(replica: Replica) -> None:
    replica.begin_epoch(1)
    ticket = log_of(replica).begin_flush()
    assert ticket is not None
    replica.append(b"while the disk works")
    ticket.run()
    assert log_of(replica).finish_flush(ticket) == at(3, 1)
    assert replica.flush() == at(4, 1)
    assert log_of(replica).begin_flush() is None


def test_a_new_epoch_is_in_the_history_before_it_counts_as_flushed(replica: Replica) -> None:
    replica.begin_epoch(1)
    replica.begin_epoch(3)
    assert "leader-epoch-checkpoint" in replica.files()
    replica.flush()
    assert replica.disk.read(f"{LOG_DIR}/leader-epoch-checkpoint") == b"0\n2\n1 0\n3 3\n"
    assert log_of(replica).state.epochs == [
        EpochStart(Epoch(1), Offset(0)),
        EpochStart(Epoch(3), Offset(3)),
    ]


def test_segments_roll_by_size_and_one_flush_covers_them_all(replica: Replica) -> None:
    replica.begin_epoch(1)
    for number in range(8):
        replica.append(b"x" * 60, b"%d" % number)
    assert len(replica.logs()) > 3
    assert replica.flush() == at(19, 1)
    assert replica.disk.first_unsafe(LOG_DIR, ".log") is None
    sizes = [replica.files()[name] for name in replica.logs()]
    assert sum(sizes) == log_of(replica).size_bytes
    assert all(size <= 300 for size in sizes)


@pytest.mark.parametrize(
    ("base", "epoch", "reason"),
    [(4, 1, "ends the log"), (3, 0, "ends the log"), (2, 1, "ends the log")],
)
def test_batches_that_do_not_continue_the_log_are_refused(
    replica: Replica, base: int, epoch: int, reason: str
) -> None:
    replica.begin_epoch(1)
    data = encode_batch([b"x"], timestamp_ms=0, base_offset=base, epoch=epoch)
    with pytest.raises(ValueError, match=reason):
        log_of(replica).append(Offset(base), data)
    assert log_of(replica).end == at(3, 1)


def test_half_a_batch_is_refused(replica: Replica) -> None:
    data = encode_batch([b"x"], timestamp_ms=0, base_offset=0, epoch=1)
    with pytest.raises(ValueError, match="not whole"):
        log_of(replica).append(Offset(0), data[:-1])


def test_what_is_read_from_the_disk_is_what_is_read_from_memory(veteran: Replica) -> None:
    cached = {
        (start, end, size): log_of(veteran).read(Offset(start), end=Offset(end), bytes_max=size)
        for start in range(19)
        for end in (5, 12, 18)
        for size in (1, 150, 400, 1 << 20)
    }
    veteran.open()
    for (start, end, size), data in cached.items():
        assert log_of(veteran).read(Offset(start), end=Offset(end), bytes_max=size) == data
        if data:
            headers = [header for _, header in iter_batches(data)]
            assert headers[0].base_offset <= start <= headers[0].last_offset
            assert headers[-1].last_offset < end
            assert len(data) <= size or len(headers) == 1


def test_below_its_start_there_is_nothing_to_read(veteran: Replica) -> None:
    log_of(veteran).state.log_start = Offset(5)
    with pytest.raises(ValueError, match="offset 4 is below the log's start 5"):
        log_of(veteran).read(Offset(4), end=Offset(9), bytes_max=100)


def test_damage_is_never_served(veteran: Replica) -> None:
    veteran.open()
    for name in veteran.logs():
        for position in range(veteran.files()[name]):
            veteran.flip(f"{LOG_DIR}/{name}", position)
            with pytest.raises(DamagedLogError, match=f"{name}: damaged at byte"):
                veteran.content()
            veteran.flip(f"{LOG_DIR}/{name}", position)


def test_voters_and_kraft_version_are_those_below_an_offset(veteran: Replica) -> None:
    veteran.set_voters(ALONE)
    log = log_of(veteran)
    assert [log.voters_below(offset) for offset in (0, 3, 18, 19)] == [THREE, THREE, THREE, ALONE]
    assert [log.kraft_version_below(offset) for offset in (-1, 0, 19)] == [0, 1, 1]
    assert len(log.voters_below(-1)) == 0


def test_a_log_is_cut_anywhere_between_two_batches() -> None:
    for to in (at(0, 0), at(3, 1), at(5, 1), at(9, 1), at(11, 1), at(12, 2), at(13, 4), at(18, 4)):
        replica = Replica()
        replica.write_history()
        kept = log_of(replica).read(Offset(0), end=to.offset, bytes_max=1 << 20)
        replica.truncate(to)
        assert (replica.end, log_of(replica).flushed_end, recorded_end(replica)) == (to, to, to)
        assert (replica.content(), log_of(replica).generation) == (kept, 1)
        replica.lose_all_unflushed()
        recovered = replica.open()
        assert (recovered.state.end, replica.content(), recovered.findings) == (to, kept, ())


def test_a_cut_flushes_what_it_leaves(replica: Replica) -> None:
    replica.begin_epoch(1)
    replica.append(b"kept")
    replica.append(b"cut")
    replica.truncate(at(4, 1))
    assert log_of(replica).flushed_end == recorded_end(replica) == at(4, 1)
    assert replica.disk.first_unsafe(LOG_DIR, ".log") is None


def test_a_cut_inside_a_batch_or_outside_the_log_is_refused(veteran: Replica) -> None:
    refused = veteran.truncate(at(4, 1))
    assert isinstance(refused, TruncationRefused)
    assert "4 lies inside a batch" in refused.reason
    with pytest.raises(ValueError, match=r"cannot cut 0\.\.18 at 19"):
        veteran.truncate(at(19, 4))
    assert veteran.end == at(18, 4)


def test_a_cut_notices_damage_before_it(veteran: Replica) -> None:
    veteran.open()
    veteran.flip(f"{LOG_DIR}/{veteran.logs()[0]}", 70)
    with pytest.raises(DamagedLogError):
        veteran.truncate(at(3, 1))


def test_rule_14_a_flush_of_an_older_generation_is_ignored(replica: Replica) -> None:
    replica.begin_epoch(1)
    replica.append(b"doomed")
    ticket = log_of(replica).begin_flush()
    assert ticket is not None
    ticket.run()
    replica.truncate(at(3, 1))
    assert log_of(replica).finish_flush(ticket) == at(3, 1)


def test_rule_17_after_a_failed_flush_nothing_is_written_any_more(replica: Replica) -> None:
    replica.begin_epoch(1)
    ticket = log_of(replica).begin_flush()
    assert ticket is not None

    def broken(operation: str, path: str) -> None:
        if operation == "fdatasync":
            raise OSError(5, "input/output error", path)

    replica.disk.hook = broken
    with pytest.raises(OSError, match="input/output error"):
        ticket.run()
    replica.revive()
    for attempt in (
        lambda: replica.append(b"x"),
        log_of(replica).begin_flush,
        lambda: replica.truncate(at(0, 0)),
    ):
        with pytest.raises(StorageError, match=r"the disk has failed.*Mend the disk"):
            attempt()


def test_a_failed_write_fails_the_disk(replica: Replica) -> None:
    def full(operation: str, path: str) -> None:
        if operation == "write_at":
            raise OSError(28, "no space left", path)

    replica.save(1)
    replica.disk.hook = full
    data = encode_batch([b"x"], timestamp_ms=0, base_offset=0, epoch=1)
    with pytest.raises(OSError, match="no space left"):
        log_of(replica).append(Offset(0), data)
    replica.revive()
    assert log_of(replica).end == at(0, 0)
    with pytest.raises(StorageError):
        log_of(replica).append(Offset(0), data)


@pytest.mark.parametrize("operation", ["rename", "fdatasync", "truncate"])
def test_a_cut_that_fails_fails_the_disk(veteran: Replica, operation: str) -> None:
    def broken(name: str, path: str) -> None:
        if name == operation:
            raise OSError(5, "input/output error", path)

    veteran.disk.hook = broken
    with pytest.raises(OSError, match="input/output error"):
        veteran.truncate(at(3, 1))
    veteran.revive()
    with pytest.raises(StorageError):
        veteran.append(b"x")


def test_closing_flushes_nothing(replica: Replica) -> None:
    replica.begin_epoch(1)
    log_of(replica).close()
    assert replica.disk.first_unsafe(LOG_DIR, ".log") is not None


def test_cleaning_in_the_middle_of_a_flush_disturbs_neither(veteran: Replica) -> None:
    """The flush replaces leader-epoch-checkpoint in its thread, cleaning does on the loop."""
    veteran.config = replace(veteran.config, retention_bytes=0)
    veteran.open()
    veteran.snapshot(at(12, 2))
    veteran.snapshot(at(18, 4))
    path = f"{LOG_DIR}/leader-epoch-checkpoint"
    for moment in ("fdatasync", "rename"):
        replica = copy.copy(veteran)
        replica.disk = copy.deepcopy(veteran.disk)
        replica.open()
        replica.begin_epoch(7)
        ticket = replica.store.log.begin_flush()
        assert ticket is not None
        cleaned: list[str] = []

        def clean(operation: str, name: str, replica: Replica = replica) -> None:
            if operation == moment and name.startswith(path) and not cleaned:  # noqa: B023
                cleaned.append(name)  # noqa: B023
                assert replica.store.clean(Offset(18)) is not None

        replica.disk.hook = clean
        ticket.run()
        replica.store.log.finish_flush(ticket)
        assert cleaned
        replica.revive()
        assert replica.open().state.end == at(19, 7)
