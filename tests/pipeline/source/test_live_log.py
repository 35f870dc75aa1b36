"""A live single-voter quorum of a real controller, read without a replica."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from quorate.client.log_reader import FetchedLog
from quorate.controller.topics.messages import NewTopic
from quorate.pipeline.source import live_log as live
from quorate.pipeline.source.batch_reader import KraftReader, LivePartition
from quorate.pipeline.source.directories import find_directory
from quorate.pipeline.source.live_log import LiveLog, LogEnds, QuorumError, live_log, snapshot_of
from quorate.pipeline.source.live_plan import log_ranges, of_cluster
from quorate.pipeline.source.options import OptionError, parse_options
from quorate.pipeline.source.stream_reader import (
    DataLossError,
    KraftStreamReader,
    OtherClusterError,
)
from quorate.pipeline.source.time_search import TimePlace
from quorate.records.batch import encode_batch, read_header
from quorate.records.ids import ClusterId, Offset
from tests.integration.disks import log_start
from tests.integration.quorum import SMALL_LOG, STEADY, Quorum
from tests.pipeline.source.logs import LogWriter, partition, rows, time_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def read(servers: str, **options: str) -> list[dict[str, Any]]:
    reader = KraftReader(parse_options({"bootstrap.servers": servers, **options}))
    found: list[dict[str, Any]] = []
    for part in reader.partitions():
        for batch in reader.read(part):
            found += batch.to_pylist()
    return sorted(found, key=lambda row: row["offset"])


def same(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what only a disk knows."""
    return [
        {name: value for name, value in row.items() if name not in {"segment", "source_node"}}
        for row in found
    ]


async def test_a_live_quorum_gives_what_its_disk_has(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "q", controllers=1) as quorum:
        await quorum.register_brokers()
        await quorum.create(NewTopic("a", 3, 3), NewTopic("b", 2, 1))
        high_watermark = await quorum.assert_logs_agree()
        node = next(iter(quorum.nodes.values()))
        limits = {"startingOffsets": "0", "endingOffsets": str(high_watermark)}
        found = await asyncio.to_thread(read, quorum.bootstrap_servers, **limits)
        on_disk = rows(node.metadata_dir, **limits)
        assert same(found) == same(on_disk)
        epochs = await asyncio.to_thread(
            epochs_before, quorum.bootstrap_servers, range(high_watermark + 1)
        )
        assert epochs == [None, *(row["leader_epoch"] for row in on_disk)]
        some = await asyncio.to_thread(
            read, quorum.bootstrap_servers, startingOffsets="4", endingOffsets="7"
        )
        assert [row["offset"] for row in some] == [4, 5, 6]
        moment = on_disk[-1]["timestamp"].isoformat()
        late = await asyncio.to_thread(
            read,
            quorum.bootstrap_servers,
            startingOffsets=moment,
            endingOffsets=str(high_watermark),
        )
        disk = rows(node.metadata_dir, startingOffsets=moment, endingOffsets=str(high_watermark))
        assert same(late) == same(disk) != []
        times = [round(row["timestamp"].timestamp() * 1000) + 1 for row in on_disk]
        places = await asyncio.to_thread(time_places, quorum.bootstrap_servers, times)
        directory = find_directory(str(node.metadata_dir))
        assert places == [time_place(directory, time_ms) for time_ms in times]
        for option in ("startingOffsets", "endingOffsets"):
            with pytest.raises(
                OptionError, match=rf"^{option}: 999999 lies behind .* quorum's log"
            ):
                await asyncio.to_thread(read, quorum.bootstrap_servers, **{option: "999999"})
        with pytest.raises(OptionError, match=r"^startingOffsets: 999999 lies behind "):
            await asyncio.to_thread(
                polled, quorum.bootstrap_servers, None, startingOffsets="999999"
            )


async def test_a_log_that_begins_at_a_snapshot_comes_with_it(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "q", SMALL_LOG, controllers=1) as quorum:
        await quorum.register_brokers()
        node = next(iter(quorum.nodes.values()))

        numbers = count()

        async def begins_late() -> bool:
            await quorum.create(NewTopic(f"t{next(numbers)}", 50, 3))
            return log_start(node) > 0

        await quorum.eventually("the first segment is deleted", begins_late)
        found = await asyncio.to_thread(read, quorum.bootstrap_servers)
        first = found[0]
        assert first["segment"].endswith(".checkpoint")
        end = snapshot_of(first["segment"].removesuffix(".checkpoint")).offset
        assert first["offset"] == end - 1
        rest = [row["offset"] for row in found if row["segment"] is None]
        assert rest == list(range(end, max([*rest, end - 1]) + 1))
        for option, place in (
            ("startingOffsets", "1"),
            ("startingOffsets", "snapshot@1"),
            ("startingOffsets", "snapshot@2020-01-01T00:00:00Z"),
            ("endingOffsets", "1"),
            ("endingOffsets", "2020-01-01T00:00:00Z"),
        ):
            with pytest.raises(OptionError, match=f"^{option}: {place} is gone, the quorum's log"):
                await asyncio.to_thread(read, quorum.bootstrap_servers, **{option: place})
        assert await asyncio.to_thread(epochs_before, quorum.bootstrap_servers, [1, end]) == [
            None,
            first["leader_epoch"],
        ]


def epochs_before(servers: str, offsets: Iterable[int]) -> list[int | None]:
    with live_log(parse_options({"bootstrap.servers": servers})) as log:
        return [log.epoch_before(offset) for offset in offsets]


def time_places(servers: str, times_ms: Iterable[int]) -> list[TimePlace]:
    with live_log(parse_options({"bootstrap.servers": servers})) as log:
        ends = log.ends()
        return [log.time_place(time_ms, ends) for time_ms in times_ms]


def polled(servers: str, start: dict[str, Any] | None, **options: str) -> dict[str, Any]:
    """The end of a query's next batch, after a restart of the query."""
    reader = KraftStreamReader(parse_options({"bootstrap.servers": servers, **options}))
    try:
        begin = reader.initialOffset() if start is None else start
        end = reader.latestOffset(begin, ReadAllAvailable())
        reader.partitions(begin, end)
        return end
    finally:
        reader.stop()


async def test_a_stream_goes_on_over_a_change_of_the_leader(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "q", STEADY) as quorum:
        servers, cluster = quorum.bootstrap_servers, quorum.plan.cluster_id
        await quorum.register_brokers()
        first = await asyncio.to_thread(polled, servers, None)
        epoch = (await quorum.leader()).leader.epoch
        facts = {"epoch": epoch, "cluster": cluster, "log_start": 0}
        assert first == {"offset": first["offset"], **facts}
        await quorum.kill(await quorum.leader_id())
        await quorum.leader(above_epoch=epoch)
        await quorum.create(NewTopic("a", 3, 2))
        second = await asyncio.to_thread(polled, servers, first)
        assert second["offset"] > first["offset"]
        assert second["epoch"] > epoch
        with pytest.raises(DataLossError, match=rf"epoch 0 .* is of epoch {epoch} by now"):
            await asyncio.to_thread(polled, servers, first | {"epoch": 0})


async def test_another_quorum_is_refused(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "a", controllers=1) as quorum:
        place = await asyncio.to_thread(polled, quorum.bootstrap_servers, None)
    async with Quorum(tmp_path / "b", controllers=1) as other:
        found = other.plan.cluster_id
        with pytest.raises(OtherClusterError, match=f"{place['cluster']}, .* that of {found}"):
            await asyncio.to_thread(polled, other.bootstrap_servers, place)
        old = await asyncio.to_thread(polled, other.bootstrap_servers, {"offset": 0})
        assert old["cluster"] == found

        def read_planned() -> None:
            options = parse_options({"bootstrap.servers": other.bootstrap_servers})
            ranges = of_cluster(ClusterId(place["cluster"]), log_ranges(0, 1))
            list(KraftReader(options).read(LivePartition(ranges[0])))

        with pytest.raises(QuorumError, match=f"cluster {place['cluster']} was to be .* {found}"):
            await asyncio.to_thread(read_planned)


def test_servers_that_are_none_and_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^bootstrap.servers: 'h' is no HOST:PORT"):
        LiveLog(parse_options({"bootstrap.servers": "h"}))
    config = {"bootstrap.servers": "h:1", "commandConfig": str(tmp_path / "absent")}
    with pytest.raises(OptionError, match=r"^commandConfig: "):
        LiveLog(parse_options(config))
    with pytest.raises(OptionError, match=r"^isolation: "):
        read("h:1", isolation="read_uncommitted")


def test_nobody_there_is_said_with_whom_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "TIMEOUT_MS", 300)
    with pytest.raises(QuorumError, match=r"127\.0\.0\.1:1"):
        read("127.0.0.1:1")


def test_what_a_leader_sends_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogWriter(tmp_path / "c")
    for number in range(3):
        log.write([partition(number)] * 2)
    whole = log.file.read_bytes()
    first, second = (position for _, position, _ in log.positions[1:])
    spoiled = bytearray(whole)
    spoiled[second - 1] ^= 1
    sent = {
        "offsets 2 to 3 are missing in what the leader sent": whole[:first] + whole[second:],
        "what the leader sent for offset 0 does not check: ": bytes(spoiled),
    }
    with live_log(parse_options({"bootstrap.servers": "127.0.0.1:1"})) as quorum:
        for words, data in sent.items():
            fetched = FetchedLog(data, Offset(6), Offset(0), None)
            monkeypatch.setattr(LiveLog, "_fetch", lambda *_, fetched=fetched: fetched)
            batches = quorum.batches(0, 6)
            assert next(batches).header.base_offset == 0
            with pytest.raises(QuorumError, match=words):
                list(batches)


class Answered(LiveLog):
    """A live log whose answers come from batches in memory; `start` is where it begins."""

    def __init__(self, batches: Sequence[bytes], start: int = 0, answer_bytes: int = 1000) -> None:
        self._places = {}
        self.batches_held = batches
        self.lasts = [read_header(batch).last_offset for batch in batches]
        self.start = start
        self.answer_bytes = answer_bytes
        self.fetched = 0

    def _fetch(self, offset: int, max_bytes: int | None = None) -> FetchedLog:
        assert offset >= self.start
        self.fetched += 1
        found, index = b"", bisect_left(self.lasts, offset)
        while index < len(self.lasts) and len(found) < (max_bytes or self.answer_bytes):
            found += self.batches_held[index]
            index += 1
        return FetchedLog(found, Offset(self.lasts[-1] + 1), Offset(self.start), None)


def test_a_time_of_a_live_log_is_found_where_a_clock_was_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Batches of one to three records; the clock of the second of three leaders is ahead."""
    monkeypatch.setattr(live, "_FEW_OFFSETS", 64)
    batches: list[bytes] = []
    offset = 0
    places: list[tuple[int, int, int]] = []
    for epoch, ahead_ms in ((1, 0), (2, 1_000_000), (3, 0)):
        for number in range(400):
            count = 1 + number % 3
            at_ms = offset + ahead_ms
            batches.append(
                encode_batch([b"\0"] * count, timestamp_ms=at_ms, base_offset=offset, epoch=epoch)
            )
            places.append((at_ms, offset, offset + count))
            offset += count
    for start in (0, 400):
        ends = LogEnds(start, offset, None)
        for time_ms in (0, 1, 300, 1000, 1700, 2100, offset, 1_000_900, 2_000_000):
            late = (begin for at_ms, begin, end in places if at_ms >= time_ms and end > start)
            early = (end for at_ms, _, end in reversed(places) if at_ms < time_ms)
            first, behind = max(next(late, offset), start), max(next(early, 0), start)
            found = Answered(batches, start).time_place(time_ms, ends)
            assert found == TimePlace(first, max(first, behind))
    log = Answered(batches)
    log.time_place(2100, LogEnds(0, offset, None))
    # Four parts of 64 offsets are read, of a thousand bytes an answer, and the rest is halved.
    assert log.fetched < 50
    log.time_place(2100, LogEnds(0, offset, None))
    assert log.fetched < 50


def test_a_time_of_a_live_log_of_many_epochs_takes_no_more_than_reading_it() -> None:
    batches = [
        encode_batch([b"\0" * 100], timestamp_ms=offset, base_offset=offset, epoch=offset // 7)
        for offset in range(30_000)
    ]
    log = Answered(batches, answer_bytes=1 << 20)
    place = log.time_place(25_000, LogEnds(0, len(batches), None))
    assert place == TimePlace(25_000, 25_000)
    assert log.fetched < 25
