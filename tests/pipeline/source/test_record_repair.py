"""Records that one directory has lost are read from another that holds the same."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.source.directories import find_directory
from quorate.pipeline.source.frame_builder import FrameBuilder
from quorate.pipeline.source.options import parse_options
from quorate.pipeline.source.record_repair import read_mended
from quorate.pipeline.source.splits import log_splits
from tests.pipeline.log_frames import clock_seed
from tests.pipeline.source.logs import LogWriter, damaged, flip, offsets, partition

if TYPE_CHECKING:
    from pathlib import Path

SPLIT_BYTES = 4096
# Of `twins`: each epoch and where it begins.
EPOCHS = ((1, 0), (2, 22), (3, 48))


def twins(root: Path) -> tuple[LogWriter, LogWriter]:
    """Two voters with one log: four segments, three epochs, batches of one to five records."""
    logs = LogWriter(root / "1"), LogWriter(root / "2", node_id=2)
    for log in logs:
        for number in range(24):
            if number % 6 == 0:
                log.roll()
            if number % 8 == 0:
                log.lead(1 + number // 8)
            log.write([partition(number)] * (1 + number % 5))
    return logs


def read(one: LogWriter, other: LogWriter, low: int, high: int, *more: str) -> list[dict[str, Any]]:
    """These offsets of one log, where the others hold the same up to `high`."""
    options = parse_options({"path": str(one.root)})
    elsewhere = (str(other.directory), *more)
    builder = FrameBuilder(options)
    found: list[dict[str, Any]] = []
    splits = log_splits(find_directory(str(one.root)), low, high, SPLIT_BYTES)
    splits[-1:] = [replace(split, reach=high) for split in splits[-1:]]
    for split in splits:
        for part, batches in read_mended(replace(split, elsewhere=elsewhere, epochs=EPOCHS)):
            for batch in builder.read(part, batches):
                found += batch.to_pylist()
    for batch in builder.flush():
        found += batch.to_pylist()
    return sorted(found, key=lambda row: row["offset"])


def without_places(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows but for what says whose directory they are from."""
    return [{**row, "source_node": None} for row in found]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[LogWriter, LogWriter]:
    return twins(tmp_path_factory.mktemp("clean"))


@pytest.mark.parametrize("number", [0, 3, 7, 13, 26])
def test_no_flipped_bit_of_a_batch_is_seen(clean: tuple[LogWriter, LogWriter], number: int) -> None:
    """Also of the offset, the length, the epoch and the magic, which no CRC guards."""
    one, other = clean
    expected = without_places(read(other, one, 0, one.offset))
    file, position, _ = one.positions[number]
    whole = file.read_bytes()
    try:
        for bit in [*range(21 * 8), 61 * 8, 70 * 8 + 3]:
            flip(file, position + bit // 8, bit % 8)
            assert without_places(read(one, other, 0, one.offset)) == expected, bit
            file.write_bytes(whole)
    finally:
        file.write_bytes(whole)


def test_rows_say_whose_they_are(tmp_path: Path) -> None:
    one, other = twins(tmp_path)
    file, position, first = one.positions[9]
    flip(file, position + 70)
    count = one.positions[10][2] - first
    nodes = {row["offset"]: row["source_node"] for row in read(one, other, 0, one.offset)}
    assert {offset for offset, node in nodes.items() if node == 2} == {*range(first, first + count)}


def test_what_no_directory_has_is_told(tmp_path: Path) -> None:
    one, other = twins(tmp_path)
    first = one.positions[9][2]
    for log in (one, other):
        file, position, _ = log.positions[9]
        flip(file, position + 70)
    found = read(one, other, 0, one.offset)
    lost = range(first, one.positions[10][2])
    assert offsets(found) == [each for each in range(one.offset) if each not in lost]
    assert [row["offset"] for row in damaged(found)] == [first]


def test_a_segment_that_is_missing_is_read_elsewhere(tmp_path: Path) -> None:
    one, other = twins(tmp_path)
    expected = read(one, other, 0, one.offset)
    (one.directory / sorted(each.name for each in one.directory.glob("*.log"))[1]).unlink()
    assert without_places(read(one, other, 0, one.offset)) == without_places(expected)


def spoil(log: LogWriter, draws: random.Random, places: list[int]) -> None:
    """One fault in each of these batches."""
    for number in places:
        file, position, _ = log.positions[number]
        ends = [at for each, at, _ in log.positions if each == file and at > position]
        size = (ends[0] if ends else file.stat().st_size) - position
        match draws.randrange(3):
            case 0:
                flip(file, position + draws.randrange(size), draws.randrange(8))
            case 1:
                data = bytearray(file.read_bytes())
                data[position : position + size] = bytes(size)
                file.write_bytes(data)
            case _:
                flip(file, position + draws.randrange(17), draws.randrange(8))


def test_random_faults_in_two_directories_cost_nothing(
    clean: tuple[LogWriter, LogWriter], tmp_path: Path
) -> None:
    draws = random.Random(clock_seed())
    expected = without_places(read(*clean, 0, clean[0].offset))
    for trial in range(60):
        root = tmp_path / str(trial)
        logs = twins(root)
        # Not in neighbours, and not in one batch of both.
        places = draws.sample(range(0, len(logs[0].positions), 3), 4)
        spoil(logs[0], draws, places[:2])
        spoil(logs[1], draws, places[2:])
        low, high = sorted(draws.sample(range(logs[0].offset + 1), 2))
        wanted = [row for row in expected if low <= row["offset"] < high]
        found = read(logs[0], logs[1], low, high)
        assert without_places(found) == wanted, (places, low, high)
        shutil.rmtree(root)


def burst(log: LogWriter, draws: random.Random) -> None:
    """Up to forty bytes in a row are others, over the border of two batches as well."""
    file = draws.choice(log.positions)[0]
    data = bytearray(file.read_bytes())
    start = draws.randrange(len(data))
    for at in range(start, min(len(data), start + draws.randrange(1, 40))):
        data[at] = draws.choice((0, 1, 0xFF, draws.randrange(256)))
    file.write_bytes(data)


def test_faults_anywhere_never_give_a_record_twice_or_another_one(
    clean: tuple[LogWriter, LogWriter], tmp_path: Path
) -> None:
    draws = random.Random(clock_seed())
    expected = {row["offset"]: row for row in without_places(read(*clean, 0, clean[0].offset))}
    for trial in range(60):
        root = tmp_path / str(trial)
        logs = twins(root)
        for log in logs:
            for _ in range(draws.randrange(3)):
                burst(log, draws)
        found = read(logs[0], logs[1], 0, logs[0].offset)
        given = [row for row in without_places(found) if row["record_type"] is not None]
        assert len(given) == len(set(offsets(found)))
        told = [row["offset"] for row in damaged(found)]
        for row in given:
            if row != expected[row["offset"]]:
                # An epoch that no CRC guards, in both: told where it is.
                row["leader_epoch"] = expected[row["offset"]]["leader_epoch"]
                assert row == expected[row["offset"]]
                assert told
        assert len(given) == len(expected) or told
        shutil.rmtree(root)


def test_what_damaged_bytes_say_of_later_parts_is_not_believed(tmp_path: Path) -> None:
    """A batch that claims an offset behind the next segment."""
    one, other = twins(tmp_path)
    expected = without_places(read(other, one, 0, one.offset))
    file, position, _ = one.positions[5]
    data = bytearray(file.read_bytes())
    data[position - 8 : position] = b"\xff" * 8
    data[position : position + 7] = bytes(6) + b"\x01"
    file.write_bytes(data)
    assert without_places(read(one, other, 0, one.offset)) == expected


@pytest.mark.parametrize("claimed", [8, 9, 10, 12, 3])
def test_an_offset_behind_damage_counts_if_the_next_batch_bears_it_out(
    tmp_path: Path, claimed: int
) -> None:
    one, other = twins(tmp_path)
    expected = without_places(read(other, one, 0, one.offset))
    file, position, _ = one.positions[5]
    data = bytearray(file.read_bytes())
    data[position - 40 : position] = bytes(40)
    data[position : position + 8] = claimed.to_bytes(8, "big")
    file.write_bytes(data)
    assert without_places(read(one, other, 0, one.offset)) == expected


def test_two_others_together_have_what_neither_has(tmp_path: Path) -> None:
    one, other = twins(tmp_path)
    third = tmp_path / "3"
    shutil.copytree(other.root, third)
    expected = without_places(read(other, one, 0, one.offset))
    (one.directory / sorted(each.name for each in one.directory.glob("*.log"))[1]).unlink()
    file, position, _ = other.positions[9]
    flip(file, position + 70)
    copy = third / other.directory.name / file.name
    flip(copy, other.positions[12][1] + 70)
    found = read(one, other, 0, one.offset, str(third / other.directory.name))
    assert without_places(found) == expected
