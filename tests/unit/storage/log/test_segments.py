"""The files of a log: rolled, read in order, cut between two batches, removed."""

from __future__ import annotations

import pytest

from quorate.raft.api import TruncationRefused
from quorate.records.batch import iter_batches
from quorate.records.ids import Offset
from quorate.storage.errors import DamagedLogError
from tests.unit.storage.conftest import LOG_DIR, Replica, at


def test_segments_roll_by_size_and_one_flush_covers_them_all(replica: Replica) -> None:
    replica.begin_epoch(1)
    for number in range(8):
        replica.append(b"x" * 60, b"%d" % number)
    assert len(replica.logs()) > 3
    assert replica.flush() == at(19, 1)
    assert replica.disk.first_unsafe(LOG_DIR, ".log") is None
    sizes = [replica.files()[name] for name in replica.logs()]
    assert sum(sizes) == replica.log.segments.size_bytes
    assert all(size <= 300 for size in sizes)


def test_what_is_read_from_the_disk_is_what_is_read_from_memory(veteran: Replica) -> None:
    cached = {
        (start, end, size): veteran.log.read(Offset(start), end=Offset(end), bytes_max=size)
        for start in range(19)
        for end in (5, 12, 18)
        for size in (1, 150, 400, 1 << 20)
    }
    veteran.open()
    for (start, end, size), data in cached.items():
        assert veteran.log.read(Offset(start), end=Offset(end), bytes_max=size) == data
        if data:
            headers = [header for _, header in iter_batches(data)]
            assert headers[0].base_offset <= start <= headers[0].last_offset
            assert headers[-1].last_offset < end
            assert len(data) <= size or len(headers) == 1


def test_damage_is_never_served(veteran: Replica) -> None:
    veteran.open()
    for name in veteran.logs():
        for position in range(veteran.files()[name]):
            veteran.flip(f"{LOG_DIR}/{name}", position)
            with pytest.raises(DamagedLogError, match=f"{name}: damaged at byte"):
                veteran.content()
            veteran.flip(f"{LOG_DIR}/{name}", position)


def test_a_log_is_cut_anywhere_between_two_batches() -> None:
    for to in (at(0, 0), at(3, 1), at(5, 1), at(9, 1), at(11, 1), at(12, 2), at(13, 4), at(18, 4)):
        replica = Replica()
        replica.write_history()
        kept = replica.log.read(Offset(0), end=to.offset, bytes_max=1 << 20)
        replica.truncate(to)
        assert (replica.end, replica.log.flushed_end, replica.recorded_end()) == (to, to, to)
        assert (replica.content(), replica.log.generation) == (kept, 1)
        replica.lose_all_unflushed()
        recovered = replica.open()
        assert (recovered.state.end, replica.content(), recovered.findings) == (to, kept, ())


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


def test_what_would_remain_is_counted_by_whole_segments(veteran: Replica) -> None:
    segments = veteran.log.segments
    assert segments.bytes_from(Offset(0)) == segments.size_bytes
    sizes = {segments.bytes_from(Offset(offset)) for offset in range(19)}
    assert len(sizes) == len(veteran.logs())
    assert segments.bytes_from(Offset(17)) == veteran.files()[veteran.logs()[-1]]
