"""Batches of a stream over a directory: what their offsets say, and what is lost on the way."""

from __future__ import annotations

import errno
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from quorate.pipeline.source.damage import UnreadError
from quorate.pipeline.source.directories import Directory, find_directories
from quorate.pipeline.source.options import OptionError, parse_options
from quorate.pipeline.source.stream_offset import CheckpointError
from quorate.pipeline.source.stream_reader import (
    DataLossError,
    KraftStreamReader,
    OtherClusterError,
)
from quorate.storage.file_system import OsFile, OsFileSystem
from tests.pipeline.source.logs import (
    LogWriter,
    damaged,
    flip,
    offsets,
    partition,
    small_log,
    topic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql.datasource import InputPartition


def reader_of(log: LogWriter, **options: str) -> KraftStreamReader:
    return KraftStreamReader(parse_options({"path": str(log.root), **options}))


def read(
    reader: KraftStreamReader,
    start: dict[str, Any],
    end: dict[str, Any],
    planned: Sequence[InputPartition] | None = None,
) -> list[dict[str, Any]]:
    """One batch, its tasks read where they would be: in another process."""
    there: KraftStreamReader = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own bytes
    found: list[dict[str, Any]] = []
    for part in pickle.loads(pickle.dumps(planned or reader.partitions(start, end))):  # noqa: S301
        for batch in there.read(part):
            found += batch.to_pylist()
    return sorted(found, key=lambda row: (row["offset"] is None, row["offset"]))


def at(offset: int, epoch: int = 2, log_start: int = 0, **more: str) -> dict[str, Any]:
    """An offset of a stream over a log of the tests."""
    facts = {"epoch": epoch, "cluster": "c", "log_start": log_start}
    return {"offset": offset, **facts, **more}


def test_batches_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    reader = reader_of(log, maxOffsetsPerTrigger="4")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    start, seen = reader.initialOffset(), []
    while (end := reader.latestOffset(start, limit)) != start:
        seen.append(offsets(read(reader, start, end)))
        start = end
    assert [offset for batch in seen for offset in batch] == list(range(21))
    assert max(map(len, seen)) == 4
    log.write([topic(9)])
    assert reader.latestOffset(start, ReadAllAvailable()) == at(22)


def test_a_checkpoint_does_not_go_on_with_the_log_of_another_cluster(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    other = LogWriter(tmp_path / "d", cluster_id="d")
    other.write([topic(number) for number in range(40)])
    start = reader_of(log).initialOffset()
    end = reader_of(log).latestOffset(start, ReadAllAvailable())
    assert end == at(21)
    with pytest.raises(OtherClusterError, match=r"of cluster c, and this is that of d: give"):
        reader_of(other, failOnDataLoss="false").latestOffset(end, ReadAllAvailable())
    with pytest.raises(OtherClusterError, match="new checkpoint"):
        reader_of(other).partitions(start, end)
    (other.root / "meta.properties").unlink()
    # No file says whose log it is. Its epochs part from those of the first all the same.
    with pytest.raises(DataLossError, match=r"was of epoch 2 .* is of epoch 1 by now"):
        reader_of(other).latestOffset(end, ReadAllAvailable())
    old = {"offset": 21, "cluster": "c"}
    found = reader_of(other).latestOffset(old, ReadAllAvailable())
    assert found == {"offset": 40, "epoch": 1, "log_start": 0}


def test_the_directories_are_looked_at_once_for_each_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Sequence[str]] = []

    def look(paths: Sequence[str], before: Sequence[Directory]) -> list[Directory]:
        looks.append(paths)
        return find_directories(paths, before)

    monkeypatch.setattr("quorate.pipeline.source.followed_log.find_directories", look)
    reader = reader_of(small_log(tmp_path / "log"))
    start = reader.initialOffset()
    assert len(looks) == 1
    reader.latestOffset(start, ReadAllAvailable())
    # The progress of the query has what was seen then.
    assert reader.reportLatestOffset() == {"offset": 21}
    assert len(looks) == 2


def test_a_poll_reads_the_end_of_the_log_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogWriter(tmp_path / "c")
    for _ in range(300):
        log.write([partition(0)] * 100)
    sizes: list[int] = []
    reads = OsFile.read_at

    def read_at(file: OsFile, position: int, size: int) -> bytes:
        sizes.append(len(found := reads(file, position, size)))
        return found

    reader = reader_of(log)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    monkeypatch.setattr(OsFile, "read_at", read_at)
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert sum(sizes) < log.file.stat().st_size / 20


def test_a_stream_begins_with_no_older_snapshot(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^startingOffsets: "):
        reader_of(small_log(tmp_path / "c"), startingOffsets="snapshot@4").initialOffset()


def test_a_batch_that_is_on_its_way_to_the_disk_is_no_damage(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    whole = log.file.read_bytes()
    log.write([topic(9)] * 5)
    log.file.write_bytes(log.file.read_bytes()[: len(whole) + 70])
    reader = reader_of(log)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == at(21)
    assert offsets(read(reader, start, end)) == list(range(21))
    assert len(read(reader, start, end)) == 21


def test_a_snapshot_is_given_once_before_what_follows_it(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.snapshot(11, [topic(1)])
    reader = reader_of(log, startingOffsets="snapshot", maxOffsetsPerTrigger="3")
    start = reader.initialOffset()
    assert start == at(11, snapshot="11-1")
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert offsets(read(reader, start, end)) == [10] * 4 + [11, 12, 13]
    following = reader.latestOffset(end, reader.getDefaultReadLimit())
    assert offsets(read(reader, end, following)) == [14, 15, 16]


def test_a_snapshot_at_the_end_of_the_log_is_a_batch_of_its_own(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.snapshot(21, [topic(1)])
    reader = reader_of(log, startingOffsets="snapshot")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == at(21)
    assert offsets(read(reader, start, end)) == [20] * 4
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def log_without_its_first_records(path: Path) -> LogWriter:
    log = LogWriter(path, base=50)
    log.lead(3)
    log.write([partition(0)] * 9)
    log.snapshot(52, [topic(1)], epoch=3)
    return log


def test_deleted_records_end_the_stream_with_a_sentence(tmp_path: Path) -> None:
    reader = reader_of(log_without_its_first_records(tmp_path / "c"))
    with pytest.raises(DataLossError, match=r"offsets 7 to 51 are gone.*by now; set failOnDataL"):
        reader.latestOffset({"offset": 7}, ReadAllAvailable())
    with pytest.raises(DataLossError, match=r"begins at 52 by now, and began at 3 before; set"):
        reader.latestOffset(at(7, log_start=3), ReadAllAvailable())


def test_or_it_goes_on_from_the_snapshot(tmp_path: Path) -> None:
    reader = reader_of(log_without_its_first_records(tmp_path / "c"), failOnDataLoss="false")
    end = reader.latestOffset({"offset": 7}, ReadMaxRows(3))
    assert end == at(55, 3, 52, through="52-3")
    assert offsets(read(reader, {"offset": 7}, end)) == [51] * 4 + [52, 53, 54]
    following = reader.latestOffset(end, ReadAllAvailable())
    assert following == at(60, 3, 52)
    assert offsets(read(reader, end, following)) == [55, 56, 57, 58, 59]


def test_a_log_that_became_shorter_ends_the_stream(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    with pytest.raises(DataLossError, match=r"the log ends at 21.*read up to 30"):
        reader_of(log).latestOffset({"offset": 30}, ReadAllAvailable())
    patient = reader_of(log, failOnDataLoss="false")
    assert patient.latestOffset({"offset": 30}, ReadAllAvailable()) == {"offset": 30}


def test_a_run_over_what_is_there_now_notices_it_too(tmp_path: Path) -> None:
    reader = reader_of(small_log(tmp_path / "c"))
    reader.prepareForTriggerAvailableNow()
    with pytest.raises(DataLossError, match=r"the log ends at 21.*read up to 30"):
        reader.latestOffset({"offset": 30}, ReadAllAvailable())


def voter(path: Path, *, node_id: int, is_cut_off: bool = False) -> LogWriter:
    """Offsets 0 to 9 of epoch 1, then 10 to 14 of epoch 2; or to 11 of epoch 1, uncommitted."""
    log = LogWriter(path, node_id=node_id)
    log.lead(1)
    log.write([partition(number) for number in range(9)])
    if is_cut_off:
        log.write([topic(7), topic(8)])
    else:
        log.lead(2)
        log.write([topic(number) for number in range(4)])
    return log


def rewritten(path: Path) -> tuple[LogWriter, dict[str, Any]]:
    """A voter's log, and the place of a stream that had read an end which is no longer there."""
    before = voter(path / "before", node_id=2, is_cut_off=True)
    reader = reader_of(before)
    place = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert place == at(12, 1)
    return voter(path / "after", node_id=2), place


def test_an_end_that_was_truncated_and_written_again_ends_the_stream(tmp_path: Path) -> None:
    log, place = rewritten(tmp_path)
    words = r"below offset 12 was of epoch 1 for the stream, and is of epoch 2 by now.*new checkpo"
    with pytest.raises(DataLossError, match=words):
        reader_of(log).latestOffset(place, ReadAllAvailable())
    # The batch was planned, and is run again after a restart.
    with pytest.raises(DataLossError, match=words):
        reader_of(log).partitions(at(10, 1), place)


def test_or_it_goes_on_from_its_offset(tmp_path: Path) -> None:
    log, place = rewritten(tmp_path)
    patient = reader_of(log, failOnDataLoss="false")
    end = patient.latestOffset(place, ReadAllAvailable())
    assert end == at(15)
    assert offsets(read(patient, place, end)) == [12, 13, 14]
    assert reader_of(log).latestOffset(end, ReadAllAvailable()) == end


def test_a_reader_that_goes_on_notices_it_as_well(tmp_path: Path) -> None:
    """It remembers where in the file it was."""
    log = voter(tmp_path / "c", node_id=2, is_cut_off=True)
    reader = reader_of(log)
    place = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert reader.latestOffset(place, ReadAllAvailable()) == place
    log.file.write_bytes(voter(tmp_path / "after", node_id=2).file.read_bytes())
    with pytest.raises(DataLossError, match="is of epoch 2 by now"):
        reader.latestOffset(place, ReadAllAvailable())


def test_several_directories_are_held_against_the_offset_of_one(tmp_path: Path) -> None:
    _, place = rewritten(tmp_path)
    voters = [tmp_path / "after", voter(tmp_path / "one", node_id=1).root]
    paths = ",".join(map(str, voters))
    with pytest.raises(DataLossError, match="is of epoch 2 by now"):
        KraftStreamReader(parse_options({"path": paths})).latestOffset(place, ReadAllAvailable())


def test_the_log_of_another_voter_goes_on_where_the_first_one_ended(tmp_path: Path) -> None:
    reader = reader_of(voter(tmp_path / "one", node_id=1))
    place = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert place == at(15)
    other = voter(tmp_path / "two", node_id=2)
    assert reader_of(other).latestOffset(place, ReadAllAvailable()) == place
    other.lead(3)
    assert reader_of(other).latestOffset(place, ReadAllAvailable()) == at(16, 3)


def test_checkpoints_of_releases_before_are_taken(tmp_path: Path) -> None:
    log, _ = rewritten(tmp_path)
    old = {"offset": 12, "cluster": "c"}
    end = reader_of(log).latestOffset(old, ReadAllAvailable())
    assert end == at(15)
    assert offsets(read(reader_of(log), old, {"offset": 15})) == [12, 13, 14]


def test_a_checkpoint_of_a_later_release_is_not(tmp_path: Path) -> None:
    reader = reader_of(small_log(tmp_path / "c"))
    with pytest.raises(CheckpointError, match="directory, which this release cannot read"):
        reader.latestOffset(at(21, directory="x"), ReadAllAvailable())
    with pytest.raises(CheckpointError):
        reader.partitions(at(4, 1), at(21, directory="x"))


@pytest.mark.parametrize("byte", [8, 11, 16])
def test_a_stream_goes_on_behind_damage_and_tells_it_once(tmp_path: Path, byte: int) -> None:
    """The length or the magic of offset 2's batch is wrong."""
    log = LogWriter(tmp_path / "c")
    for number in range(9):
        log.write([partition(number)])
    flip(log.file, log.positions[2][1] + byte)
    reader = reader_of(log, maxOffsetsPerTrigger="2")
    start, found = reader.initialOffset(), []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        found += read(reader, start, end)
        start = end
    assert offsets(found) == [0, 1, 3, 4, 5, 6, 7, 8]
    (row,) = damaged(found)
    assert row["offset"] == 2
    assert "offsets 2 to 2 are lost" in row["payload"]


def log_in_segments(path: Path) -> LogWriter:
    """Offsets 0 to 8, three in each segment."""
    log = LogWriter(path)
    for _ in range(3):
        log.roll()
        for number in range(3):
            log.write([partition(number)])
    return log


def vanish(log: LogWriter, base: int, _patch: pytest.MonkeyPatch) -> None:
    (log.directory / f"{base:020d}.log").unlink()


def refuse(log: LogWriter, base: int, patch: pytest.MonkeyPatch) -> None:
    opens = OsFileSystem.open

    def opened(fs: OsFileSystem, path: str, *, create: bool = False) -> OsFile:
        if path.endswith(f"{base:020d}.log"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opens(fs, path, create=create)

    patch.setattr(OsFileSystem, "open", opened)


def go_stale(log: LogWriter, base: int, patch: pytest.MonkeyPatch) -> None:
    reads = OsFile.read_at
    wanted = (log.directory / f"{base:020d}.log").read_bytes()

    def read_at(file: OsFile, position: int, size: int) -> bytes:
        found = reads(file, position, size)
        if found and found in wanted:
            raise OSError(errno.ESTALE, "Stale file handle", str(log.directory))
        return found

    patch.setattr(OsFile, "read_at", read_at)


@pytest.mark.parametrize("fail", [vanish, refuse, go_stale])
@pytest.mark.parametrize("base", [0, 3, 6])
@pytest.mark.parametrize("is_planned", [True, False])
def test_what_cannot_be_read_for_a_moment_is_lost_in_no_batch(
    tmp_path: Path,
    fail: Callable[[LogWriter, int, pytest.MonkeyPatch], None],
    base: int,
    *,
    is_planned: bool,
) -> None:
    """Before or behind the planning of the batch's tasks; read again, all of it is there."""
    log = log_in_segments(tmp_path / "c")
    file = log.directory / f"{base:020d}.log"
    data = file.read_bytes()
    reader = reader_of(log)
    start, end = reader.initialOffset(), reader.latestOffset({"offset": 0}, ReadAllAvailable())
    assert end == at(9, 1)
    planned = reader.partitions(start, end) if is_planned else None
    with pytest.MonkeyPatch.context() as patch:
        fail(log, base, patch)
        with pytest.raises(UnreadError, match=r"failOnDataLoss") as raised:
            read(reader, start, end, planned)
    assert str(log.directory) in str(raised.value)
    file.write_bytes(data)
    assert offsets(read(reader, start, end)) == list(range(9))


@pytest.mark.parametrize("fail", [vanish, refuse, go_stale])
def test_or_it_is_a_row_where_loss_is_allowed(
    tmp_path: Path, fail: Callable[[LogWriter, int, pytest.MonkeyPatch], None]
) -> None:
    log = log_in_segments(tmp_path / "c")
    reader = reader_of(log, failOnDataLoss="false")
    start, end = reader.initialOffset(), reader.latestOffset({"offset": 0}, ReadAllAvailable())
    with pytest.MonkeyPatch.context() as patch:
        fail(log, 3, patch)
        found = read(reader, start, end)
    assert offsets(found) == [0, 1, 2, 6, 7, 8]
    (row,) = damaged(found)
    assert row["offset"] == 3


def test_a_log_that_became_shorter_since_it_was_looked_at_ends_the_batch(tmp_path: Path) -> None:
    log = log_in_segments(tmp_path / "c")
    reader = reader_of(log)
    _, position, first = log.positions[-1]
    log.file.write_bytes(log.file.read_bytes()[:position])
    with pytest.raises(UnreadError, match=rf"offsets {first} to {first} are missing .* up to 9;"):
        read(reader, at(0), at(9))


def test_segments_that_retention_deletes_before_they_are_read_are_told_as_that(
    tmp_path: Path,
) -> None:
    log = log_in_segments(tmp_path / "c")
    reader = reader_of(log)
    (part,) = reader.partitions(at(0, 1), at(9, 1))
    (log.directory / f"{0:020d}.log").unlink()
    with pytest.raises(UnreadError, match=r"deleted before it was read: the log begins at 3 by "):
        list(reader.read(part))


def test_available_now_ends_where_the_log_ended_at_its_start(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    reader = reader_of(log)
    reader.prepareForTriggerAvailableNow()
    log.write([topic(9)])
    assert reader.latestOffset({"offset": 0}, ReadAllAvailable()) == at(21)
    assert reader.reportLatestOffset() == {"offset": 22}


def test_a_stream_has_no_end(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^endingOffsets: "):
        reader_of(small_log(tmp_path / "c"), endingOffsets="7").initialOffset()
