"""Bounds of what is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.options import OptionError
from tests.pipeline.source.logs import (
    START_MS,
    STEP_MS,
    LogWriter,
    damaged,
    offsets,
    partition,
    paths_of,
    rows,
    shortened,
    small_log,
    topic,
    voters,
)

if TYPE_CHECKING:
    from pathlib import Path


def at(offset: float) -> str:
    """The time of the record with this offset in a log of the tests."""
    return datetime.fromtimestamp((START_MS + offset * STEP_MS) / 1000, UTC).isoformat()


def log_from_52_on(path: Path) -> LogWriter:
    """Offsets 50 to 59, of which a snapshot covers those below 52; an older snapshot is left."""
    log = LogWriter(path, base=50)
    log.lead(3)
    for number in range(9):
        log.write([partition(number)])
    log.snapshot(40, [topic(0)], epoch=2)
    log.snapshot(52, [topic(1)], epoch=3)
    return log


def test_offsets_cut_batches_where_they_are_asked_to(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    assert offsets(rows(log.root)) == list(range(21))
    assert offsets(rows(log.root, startingOffsets="5", endingOffsets="13")) == list(range(5, 13))
    assert offsets(rows(log.root, startingOffsets="latest")) == []


def test_a_time_stands_for_the_first_batch_that_reaches_it(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    batches = [offset for _, _, offset in log.positions]
    for moment in range(-1, 22):
        first = next((offset for offset in batches if offset >= moment), 21)
        found = rows(log.root, startingOffsets=at(moment))
        assert offsets(found) == list(range(first, 21))
        assert offsets(rows(log.root, endingOffsets=at(moment))) == list(range(first))


def test_a_snapshot_comes_first_with_the_last_offset_that_it_covers(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    old = log.snapshot(4, [topic(1)])
    log.snapshot(11, [topic(1), topic(2)])
    found = rows(log.root, startingOffsets="snapshot")
    assert offsets(found) == [10] * 5 + list(range(11, 21))
    assert {row["batch_base_offset"] for row in found if row["offset"] == 10} == {0, 2, 4}
    found = rows(log.root, startingOffsets="snapshot", endingOffsets="7")
    assert offsets(found) == [3] * 4 + [4, 5, 6]
    assert {row["segment"] for row in found if row["offset"] == 3} == {old.name}


def test_the_newest_snapshot_up_to_a_place_comes_first_and_all_that_is_behind_it(
    tmp_path: Path,
) -> None:
    log = small_log(tmp_path / "c")
    log.snapshot(4, [topic(1)])
    log.snapshot(11, [topic(1), topic(2)])
    from_first = [3] * 4 + list(range(4, 21))
    for place in ("4", "10", at(4), at(8)):
        assert offsets(rows(log.root, startingOffsets=f"snapshot@{place}")) == from_first
    for place in ("11", "99", at(20), at(99)):
        found = offsets(rows(log.root, startingOffsets=f"snapshot@{place}"))
        assert found == [10] * 5 + list(range(11, 21))
    assert offsets(rows(log.root, startingOffsets="snapshot@3")) == list(range(21))


def test_a_log_that_lost_its_first_segments_begins_with_its_oldest_whole_snapshot(
    tmp_path: Path,
) -> None:
    log = LogWriter(tmp_path / "c", base=50)
    log.lead(3)
    log.write([partition(0)] * 9)
    log.snapshot(40, [topic(0)], epoch=2)
    log.snapshot(52, [topic(1)], epoch=3)
    log.snapshot(55, [topic(2)], epoch=3)
    assert offsets(rows(log.root)) == [51] * 4 + list(range(52, 60))


@pytest.mark.parametrize(
    ("option", "asked"),
    [
        ("startingOffsets", {"startingOffsets": "0"}),
        ("startingOffsets", {"startingOffsets": "51"}),
        ("startingOffsets", {"startingOffsets": at(20)}),
        ("startingOffsets", {"startingOffsets": at(51)}),
        ("startingOffsets", {"startingOffsets": "snapshot@39"}),
        ("startingOffsets", {"startingOffsets": "snapshot@45"}),
        ("startingOffsets", {"startingOffsets": f"snapshot@{at(45)}"}),
        ("endingOffsets", {"endingOffsets": "45"}),
        ("endingOffsets", {"endingOffsets": at(45)}),
        ("endingOffsets", {"endingOffsets": at(51)}),
        ("endingOffsets", {"startingOffsets": "snapshot", "endingOffsets": "45"}),
        ("endingOffsets", {"startingOffsets": "5", "endingOffsets": "45"}),
    ],
    ids=str,
)
def test_a_place_whose_records_were_deleted_is_refused(
    tmp_path: Path, option: str, asked: dict[str, str]
) -> None:
    log = log_from_52_on(tmp_path / "c")
    place = asked[option].replace("+00:00", "Z")
    remedy = "end there or later" if option == "endingOffsets" else "begin there, or with earliest"
    with pytest.raises(OptionError) as caught:
        rows(log.root, **asked)
    assert str(caught.value) == (
        f"{option}: {place} is gone, the log in {log.directory} begins at offset 52; {remedy}; "
        "startingOffsets=snapshot with endingOffsets=40 reads an older snapshot"
    )


def test_what_was_deleted_stops_nothing_that_does_not_need_it(tmp_path: Path) -> None:
    log = log_from_52_on(tmp_path / "c")

    def found(**asked: str) -> list[int]:
        return offsets(rows(log.root, **asked))

    behind = list(range(52, 60))
    for begin in ("52", at(52), at(51.5)):
        assert found(startingOffsets=begin) == behind
        assert found(endingOffsets=begin) == [51] * 4
        assert found(startingOffsets=f"snapshot@{begin}") == [51] * 4 + behind
    assert found(startingOffsets="snapshot", endingOffsets="40") == [39] * 4
    assert found(startingOffsets="5", endingOffsets="5") == []
    assert found(startingOffsets="latest", endingOffsets="5") == []


def test_a_log_that_lost_its_first_segments_and_the_snapshot_for_them(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c", base=50)
    log.lead(3)
    log.write([partition(0)])
    assert offsets(rows(log.root, startingOffsets=at(51))) == [51]
    # Nothing shows what was before it at that time.
    with pytest.raises(OptionError, match=r"begins at offset 50; begin there, or with earliest$"):
        rows(log.root, startingOffsets=at(50))
    log.snapshot(40, [topic(0)], epoch=2)
    with pytest.raises(OptionError, match=r"^startingOffsets: what follows snapshot 40 is gone, "):
        rows(log.root, startingOffsets="snapshot")


def test_the_bootstrap_checkpoint_stands_before_the_first_record(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.snapshot(0, [], epoch=0)
    assert offsets(rows(log.root)) == [-1] * 3 + list(range(21))
    assert offsets(rows(log.root, startingOffsets="0")) == list(range(21))


def test_a_damaged_snapshot_gives_way_to_the_one_before(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.snapshot(4, [topic(1)])
    cut = log.snapshot(11, [topic(1)])
    cut.write_bytes(cut.read_bytes()[:100])
    found = rows(log.root, startingOffsets="snapshot")
    assert offsets(found) == [3] * 4 + list(range(4, 21))
    assert [row["segment"] for row in damaged(found)] == [cut.name]


def test_of_several_voters_what_no_majority_holds_is_left_out(tmp_path: Path) -> None:
    logs = []
    for node, count in ((1, 9), (2, 6), (3, 2)):
        log = LogWriter(tmp_path / str(node), node_id=node)
        log.lead(1)
        for number in range(count):
            log.write([partition(number)])
        (log.directory / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
        logs.append(log)
    path = ",".join(str(log.root) for log in logs)
    found = rows(path)
    ends = {
        node: [row["offset"] for row in found if row["source_node"] == node] for node in (1, 2, 3)
    }
    assert ends == {1: list(range(7)), 2: list(range(7)), 3: list(range(3))}
    assert len(rows(path, isolation="read_uncommitted")) == 10 + 7 + 3


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_an_offset_behind_the_end_is_refused(tmp_path: Path, option: str) -> None:
    log = small_log(tmp_path / "c")
    assert offsets(rows(log.root, **{option: "21"})) == ([] if option[0] == "s" else [*range(21)])
    with pytest.raises(
        OptionError, match=rf"^{option}: 22 lies .* the log in {log.directory}, .* 21; "
    ):
        rows(log.root, **{option: "22"})
    longer = small_log(tmp_path / "d", node_id=2)
    longer.write([topic(1)] * 3)
    both = f"{log.root},{longer.root}"
    # What only one of them has is not committed, and no mistake.
    assert len(rows(both, **{option: "24"})) == (0 if option[0] == "s" else 42)
    with pytest.raises(OptionError, match=rf"^{option}: 25 lies behind "):
        rows(both, **{option: "25"})
    # A file that cannot be read may reach further.
    log.file.unlink()
    log.file.mkdir()
    assert len(damaged(rows(log.root, **{option: "99"}))) == 1


def test_a_voter_gives_what_it_has_of_the_committed_log(tmp_path: Path) -> None:
    """Node 1 led epoch 2 alone, up to an offset that the others committed in epoch 3."""
    for node, epoch in ((1, 2), (2, 3), (3, 3)):
        log = LogWriter(tmp_path / str(node), node_id=node)
        log.lead(1)
        log.write([partition(0)] * 3)
        log.lead(epoch)
        log.write([partition(node)] * 3)
        (log.directory / "leader-epoch-checkpoint").write_text(f"0\n2\n1 0\n{epoch} 4\n")
    found = rows(",".join(str(tmp_path / str(node)) for node in (1, 2, 3)))
    ends = {node: [row["offset"] for row in found if row["source_node"] == node] for node in (1, 2)}
    assert ends == {1: list(range(4)), 2: list(range(8))}


@pytest.mark.parametrize("place", ["5", "2026-01-05T00:00:05Z", "snapshot@5"])
def test_what_one_voter_has_deleted_and_another_holds_is_not_refused(
    tmp_path: Path, place: str
) -> None:
    short, long = voters(tmp_path)
    with pytest.raises(OptionError, match=r"^startingOffsets: .* begins at offset 12; "):
        rows(short.root, startingOffsets=place)
    both, merged = paths_of(short, long), {"mergeDirectories": "true"}
    found = rows(both, startingOffsets=place, **merged)
    assert offsets(found) == list(range(0 if "@" in place else 5, 21))
    assert {row["source_node"] for row in found} == {2}
    # Where each directory's rows are asked for, none is to be left out.
    with pytest.raises(OptionError, match=r"begins at offset 12; .*; mergeDirectories=true reads"):
        rows(both, startingOffsets=place)
    assert offsets(rows(both, endingOffsets="7", **merged)) == list(range(7))
    later = shortened(long, tmp_path / "later", node_id=3)
    later.snapshot(15, [topic(1)])
    (later.directory / "00000000000000000012-0000000001.checkpoint").unlink()
    with pytest.raises(OptionError, match=r"^startingOffsets: .* begins at offset 12; "):
        rows(paths_of(later, short), startingOffsets=place, **merged)
