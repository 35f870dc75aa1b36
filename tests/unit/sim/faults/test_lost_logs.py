from __future__ import annotations

from quorate.records.ids import DirectoryId, Epoch, Offset, OffsetAndEpoch
from quorate.sim.checkers.log_view import Entry, LogView
from quorate.sim.faults.lost_logs import LostLogs

ONE, OTHER = DirectoryId(b"1" * 16), DirectoryId(b"2" * 16)


def a_log(start: int, *ends: int) -> LogView:
    """Each batch chains to ten times its end."""
    log = LogView(OffsetAndEpoch(epoch=Epoch(1), offset=Offset(start)))
    bases = [start, *ends]
    log.entries += [
        Entry(Offset(base), Offset(end), Epoch(1), 10 * end, 0, b"")
        for base, end in zip(bases, ends, strict=False)
    ]
    return log


def losses_of(log: LogView, safe_end: int) -> LostLogs:
    losses = LostLogs()
    losses.note(ONE, log, Offset(safe_end))
    return losses


def test_what_was_flushed_when_it_rotted_was_there() -> None:
    losses = losses_of(a_log(0, 3, 5, 9), safe_end=5)
    assert losses.once_held(ONE, Offset(5), 50)
    assert not losses.once_held(ONE, Offset(9), 90), "that was never flushed"


def test_another_log_was_not() -> None:
    losses = losses_of(a_log(0, 3, 5), safe_end=5)
    assert not losses.once_held(ONE, Offset(5), 51)
    assert not losses.once_held(ONE, Offset(5), None)


def test_a_snapshot_stands_for_all_below_it() -> None:
    losses = losses_of(a_log(4, 6), safe_end=6)
    assert losses.once_held(ONE, Offset(3), 1)


def test_a_disk_that_is_gone_is_known_by_its_directory_where_there_is_one() -> None:
    losses = losses_of(a_log(0, 3), safe_end=3)
    assert not losses.once_held(OTHER, Offset(3), 30)
    assert losses.once_held(None, Offset(3), 30)
