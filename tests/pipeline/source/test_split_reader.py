"""Damage inside a file is reported at its position, and the rest is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.pipeline.source import options
from quorate.pipeline.source.batch_plan import plan_batch
from quorate.pipeline.source.options import OptionError, parse_options
from quorate.pipeline.source.split_reader import _SplitReader, read_split
from quorate.records.batch import restamp
from quorate.records.columnar.batch_run import BatchRun
from tests.pipeline.source.logs import (
    LogWriter,
    damaged,
    flip,
    offsets,
    partition,
    rows,
    small_log,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from quorate.pipeline.source.damage import Damage


def long_log(path: Path) -> LogWriter:
    """Ten batches of three records behind a LeaderChange, in two segments."""
    log = LogWriter(path)
    log.lead(1)
    for number in range(10):
        if number == 5:
            log.roll()
        log.write([partition(number)] * 3)
    return log


def told(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(row["payload"]) for row in damaged(found)]


def test_a_flipped_bit_costs_its_batch_and_no_other(tmp_path: Path) -> None:
    log = long_log(tmp_path / "c")
    file, position, first = log.positions[3]
    data = bytearray(file.read_bytes())
    data[position + 90] ^= 4
    file.write_bytes(data)
    for split_bytes in ("4096", "33554432"):
        found = rows(log.root, splitBytes=split_bytes)
        lost = range(first, first + 3)
        assert offsets(found) == [n for n in range(log.offset) if n not in lost]
        (row,) = damaged(found)
        assert (row["crc_valid"], row["segment"], row["offset"]) == (False, file.name, first)
        (one,) = told(found)
        assert (one["file"], one["position"]) == (str(file), position)
        assert f"offsets {first} to {first + 2} are lost" in one["error"]
        assert one["bytes"] == log.positions[4][1] - position


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_batches_together_and_one_by_one_are_told_alike(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Over any damage, which is looked for in one batch after the other."""
    log = LogWriter(tmp_path_factory.mktemp("log") / "c")
    for _ in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["write", "write", "write", "roll", "lead"])):
            case "write":
                log.write([partition(log.offset)] * data.draw(st.integers(1, 3)))
            case "roll":
                log.roll()
            case _:
                log.lead(log.epoch + 1)
    files = sorted({file for file, _, _ in log.positions})
    for _ in range(data.draw(st.integers(0, 3)) if files else 0):
        file = data.draw(st.sampled_from(files))
        content = bytearray(file.read_bytes())
        where = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["flip", "flip", "cut", "double"])):
            case "flip":
                content[where] ^= 1 << data.draw(st.integers(0, 7))
            case "cut":
                del content[where + 1 :]
            case _:
                content += content[where:]
        file.write_bytes(content)
    low = data.draw(st.integers(0, log.offset))
    wanted = {
        "startingOffsets": str(low),
        "endingOffsets": str(data.draw(st.integers(low, log.offset))),
        "splitBytes": "4096",
    }
    together = outcome(log, wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_SplitReader, "count_fitting", lambda *_: 0)
        assert outcome(log, wanted) == together


def outcome(log: LogWriter, wanted: dict[str, str]) -> object:
    try:
        return rows(log.root, **wanted)
    except OptionError as error:
        return str(error)


def test_batches_come_together_where_nothing_is_wrong(tmp_path: Path) -> None:
    """The comparison above would hold, too, if they never did."""
    log = long_log(tmp_path / "c")
    taken = []

    def note(reader: _SplitReader, run: BatchRun) -> Iterator[BatchRun | Damage]:
        taken.append(run.first_offset)
        return take(reader, run)

    take = _SplitReader.take
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_SplitReader, "take", note)
        assert offsets(rows(log.root)) == list(range(log.offset))
    # The first of each segment, in front of which no batch tells the epoch.
    assert taken == [0, 16]


def test_elections_do_not_part_what_is_decoded_together(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    for epoch in range(1, 40):
        log.lead(epoch)
        log.write([partition(0)] * 2)
    (split,) = plan_batch(parse_options({"path": str(log.root)})).splits
    (run,) = read_split(split)
    assert isinstance(run, BatchRun)
    assert (len(run), run.last_offset) == (78, log.offset - 1)


def test_every_single_flipped_bit_of_a_header_is_told(tmp_path: Path) -> None:
    """Also those that no CRC guards: offset, length, epoch and magic."""
    log = long_log(tmp_path / "c")
    file, position, first = log.positions[2]
    clean = file.read_bytes()
    for bit in range(17 * 8):
        data = bytearray(clean)
        data[position + bit // 8] ^= 1 << bit % 8
        file.write_bytes(data)
        found = rows(log.root)
        assert damaged(found), bit
        rest = set(range(log.offset)) - set(range(first, first + 3))
        assert rest <= set(offsets(found)), bit
        assert len(offsets(found)) == len(set(offsets(found)))


def test_a_torn_tail_is_told_and_what_is_before_it_read(tmp_path: Path) -> None:
    log = long_log(tmp_path / "c")
    _, position, first = log.positions[-1]
    log.file.write_bytes(log.file.read_bytes()[:-7])
    found = rows(log.root)
    assert offsets(found) == list(range(first))
    (one,) = told(found)
    assert (one["position"], one["file"]) == (position, str(log.file))
    assert one["bytes"] == log.file.stat().st_size - position
    assert "torn tail" in one["error"]


def test_a_missing_segment_is_told_where_the_log_breaks_off(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    log.lead(1)
    for number in range(3):
        log.roll()
        log.write([partition(number)] * 4)
    (tmp_path / "c" / "__cluster_metadata-0" / f"{5:020d}.log").unlink()
    found = rows(log.root)
    assert offsets(found) == [*range(5), *range(9, 13)]
    (one,) = told(found)
    assert "offsets 5 to 8 are missing" in one["error"]
    assert "there is no 00000000000000000005.log" in one["error"]
    assert one["file"].endswith(f"{1:020d}.log")


def test_damage_below_what_is_asked_for_is_not_told_again(tmp_path: Path) -> None:
    """A stream comes back to the same part of a file with each batch."""
    log = long_log(tmp_path / "c")
    file, position, first = log.positions[2]
    assert first == 4
    flip(file, position + 16)
    assert len(told(rows(log.root, startingOffsets="6"))) == 1
    assert told(rows(log.root, startingOffsets="7")) == []
    assert told(rows(log.root, startingOffsets="0", endingOffsets="4")) == []


def test_a_file_of_another_partition_is_told(tmp_path: Path) -> None:
    log = long_log(tmp_path / "c")
    foreign = b"".join(
        restamp(log.file.read_bytes()[: log.positions[7][1] - log.positions[6][1]], offset, 1)
        for offset in (7000, 7003)
    )
    log.file.write_bytes(foreign)
    found = rows(log.root)
    assert [n for n in offsets(found) if n < 7000] == list(range(16))
    assert "offset 7000 where the log goes on at 16" in told(found)[0]["error"]
    other = small_log(tmp_path / "d")
    other.write([b"a user's record"])
    found = rows(other.root)
    assert offsets(found) == list(range(21))
    (row,) = damaged(found)
    assert (row["offset"], row["crc_valid"]) == (21, True)
    assert "frame version" in row["payload"]


def test_a_segment_of_another_log_gives_no_offset_that_the_next_one_has(tmp_path: Path) -> None:
    log = long_log(tmp_path / "c")
    longer = LogWriter(tmp_path / "d")
    longer.lead(1)
    for number in range(9):
        longer.write([partition(number)] * 3)
    first = log.directory / f"{0:020d}.log"
    first.write_bytes(longer.file.read_bytes())
    # The next segment has 16; the longer one's batches lie at 13 to 15 and 16 to 18.
    for split_bytes in ("4096", "33554432"):
        found = rows(log.root, splitBytes=split_bytes)
        assert offsets(found) == list(range(log.offset))
        assert [one["position"] for one in told(found)] == [at for _, at, _ in longer.positions[6:]]
        assert "offsets 16 to 18 where the next segment has 16" in told(found)[0]["error"]
    assert {one["file"] for one in told(found)} == {str(first)}


def test_an_epoch_that_rises_without_its_leader_is_told(tmp_path: Path) -> None:
    log = long_log(tmp_path / "c")
    file, position, first = log.positions[3]
    data = file.read_bytes()
    size = log.positions[4][1] - position
    moved = restamp(data[position : position + size], first, 9)
    file.write_bytes(data[:position] + moved + data[position + size :])
    found = rows(log.root)
    assert offsets(found) == list(range(log.offset))
    assert "epoch 9 behind epoch 1 without a LeaderChange" in told(found)[0]["error"]


def test_behind_bytes_that_do_not_check_no_offset_comes_again(tmp_path: Path) -> None:
    """A batch behind them that was there before, or whose own offset has become another one."""
    log = long_log(tmp_path / "c")
    file, position, first = log.positions[7]
    whole, behind = file.read_bytes(), log.positions[8][1]
    again = whole[:behind] + b"x" * 40 + whole[behind - 100 :]
    zeroed = bytearray(whole)
    zeroed[behind - 5 : behind + 8] = bytes(13)
    for data, lost in ((again, ()), (bytes(zeroed), range(first, first + 6))):
        file.write_bytes(data)
        found = rows(log.root)
        given = offsets(found)
        assert sorted(set(given)) == given
        assert set(range(log.offset)) - set(given) <= set(lost)
        assert damaged(found)
    file.write_bytes(whole[:behind] + b"x" * 40 + whole[position:])
    found = rows(log.root)
    assert offsets(found) == list(range(log.offset))
    assert len(damaged(found)) == 2


def test_a_batch_that_is_there_twice_comes_once_wherever_the_file_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "_SPLIT_BYTES_MIN", 1)
    log = long_log(tmp_path / "c")
    file, position, _ = log.positions[7]
    whole, behind = file.read_bytes(), log.positions[8][1]
    file.write_bytes(whole[:behind] + whole[position:])
    for split_bytes in range(100, 1200, 50):
        found = rows(log.root, splitBytes=str(split_bytes))
        assert offsets(found) == list(range(log.offset))
        assert damaged(found)
