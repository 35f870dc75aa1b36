"""The log: appended, flushed in groups, read, cut, restarted, its start moved."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from quorate.raft.messages import EpochStart
from quorate.records.batch import encode_batch
from quorate.records.ids import Epoch, Offset
from quorate.storage.errors import StorageError
from tests.unit.storage.conftest import ALONE, LOG_DIR, THREE, Replica, at


def test_appended_batches_are_in_the_log_but_not_flushed(replica: Replica) -> None:
    replica.begin_epoch(1)
    log = replica.log
    assert (log.end, log.flushed_end) == (at(3, 1), at(0, 0))
    assert replica.flush() == at(3, 1)
    assert replica.recorded_end() == log.flushed_end == at(3, 1)
    assert replica.disk.first_unsafe(LOG_DIR, ".log") is None


def test_a_flush_promises_what_was_written_before_it_began(replica: Replica) -> None:
    replica.begin_epoch(1)
    ticket = replica.log.begin_flush()
    assert ticket is not None
    replica.append(b"while the disk works")
    ticket.run()
    assert replica.log.finish_flush(ticket) == at(3, 1)
    assert replica.flush() == at(4, 1)
    assert replica.log.begin_flush() is None


def test_a_new_epoch_is_in_the_history_before_it_counts_as_flushed(replica: Replica) -> None:
    replica.begin_epoch(1)
    replica.begin_epoch(3)
    assert "leader-epoch-checkpoint" in replica.files()
    replica.flush()
    assert replica.disk.read(f"{LOG_DIR}/leader-epoch-checkpoint") == b"0\n2\n1 0\n3 3\n"
    assert replica.log.state.epochs == [
        EpochStart(Epoch(1), Offset(0)),
        EpochStart(Epoch(3), Offset(3)),
    ]


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
        replica.log.append(Offset(base), data)
    assert replica.log.end == at(3, 1)


def test_half_a_batch_is_refused(replica: Replica) -> None:
    data = encode_batch([b"x"], timestamp_ms=0, base_offset=0, epoch=1)
    with pytest.raises(ValueError, match="not whole"):
        replica.log.append(Offset(0), data[:-1])


def test_below_its_start_there_is_nothing_to_read(veteran: Replica) -> None:
    veteran.log.state.log_start = Offset(5)
    with pytest.raises(ValueError, match="offset 4 is below the log's start 5"):
        veteran.log.read(Offset(4), end=Offset(9), bytes_max=100)


def test_voters_and_kraft_version_are_those_below_an_offset(veteran: Replica) -> None:
    veteran.set_voters(ALONE)
    log = veteran.log
    assert [log.voters_below(offset) for offset in (0, 3, 18, 19)] == [THREE, THREE, THREE, ALONE]
    assert [log.kraft_version_below(offset) for offset in (-1, 0, 19)] == [0, 1, 1]
    assert len(log.voters_below(-1)) == 0


def test_a_cut_flushes_what_it_leaves(replica: Replica) -> None:
    replica.begin_epoch(1)
    replica.append(b"kept")
    replica.append(b"cut")
    replica.truncate(at(4, 1))
    assert replica.log.flushed_end == replica.recorded_end() == at(4, 1)
    assert replica.disk.first_unsafe(LOG_DIR, ".log") is None


@pytest.mark.rule("log_generation")
def test_a_flush_of_an_older_generation_is_ignored(replica: Replica) -> None:
    replica.begin_epoch(1)
    replica.append(b"doomed")
    ticket = replica.log.begin_flush()
    assert ticket is not None
    ticket.run()
    replica.truncate(at(3, 1))
    assert replica.log.finish_flush(ticket) == at(3, 1)


@pytest.mark.rule("disk_fail_stop")
def test_after_a_failed_flush_nothing_is_written_any_more(replica: Replica) -> None:
    replica.begin_epoch(1)
    ticket = replica.log.begin_flush()
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
        replica.log.begin_flush,
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
        replica.log.append(Offset(0), data)
    replica.revive()
    assert replica.log.end == at(0, 0)
    with pytest.raises(StorageError):
        replica.log.append(Offset(0), data)


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
    replica.log.close()
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
