"""Reading the log of a real controller without being a replica."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest

from quorate.api.admin_api import AdminError
from quorate.client.controller_calls import QuorumUnavailableError
from quorate.client.log_reader import FetchedLog, LogReader, SnapshotGoneError
from quorate.controller.topics.messages import NewTopic
from quorate.records.batch import iter_batches
from quorate.records.ids import ClusterId, Epoch, Offset, OffsetAndEpoch
from tests.integration.disks import log_start, snapshots
from tests.integration.quorum import SMALL_LOG, Quorum
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIMEOUT_MS = 60_000


async def create_until(quorum: Quorum, what: str, is_so: Callable[[], bool]) -> None:
    """Create topics, one after the other, until the files of a controller are as they should be."""
    numbers = count()

    async def create() -> bool:
        await quorum.create(NewTopic(f"t{next(numbers)}", 50, 3))
        return is_so()

    await quorum.eventually(what, create)


async def test_log_and_snapshot_of_a_controller_that_deleted_its_first_records(
    tmp_path: Path,
) -> None:
    async with Quorum(tmp_path / "q", SMALL_LOG, controllers=1) as quorum:
        await quorum.register_brokers()
        node = next(iter(quorum.nodes.values()))
        await create_until(quorum, "the first segment is deleted", lambda: log_start(node) > 0)
        async with LogReader([node.address], timeout_ms=TIMEOUT_MS, transport=chosen()) as reader:
            told = await reader.fetch(0)
            assert (told.data, told.log_start > 0) == (b"", True)
            snapshot_id = told.snapshot_id
            assert snapshot_id is not None
            # At the very start of the log the leader asks for the epoch below it.
            at_start = await reader.fetch(told.log_start)
            assert at_start.snapshot_id is None
            (_, first), *_ = iter_batches(at_start.data)
            assert first.base_offset <= told.log_start <= first.last_offset
            data = b"".join([part async for part in reader.snapshot(snapshot_id)])
            assert list(iter_batches(data))[-1][1].is_control
            absent = OffsetAndEpoch(epoch=Epoch(1), offset=Offset(1))
            with pytest.raises(SnapshotGoneError):
                await anext(reader.snapshot(absent))
        assert not (await quorum.leader()).observers


async def test_a_reader_has_all_records_where_a_replica_would_begin_with_a_snapshot(
    tmp_path: Path,
) -> None:
    often = {"metadata.log.max.record.bytes.between.snapshots": "20000"}
    async with Quorum(tmp_path / "q", often, controllers=1) as quorum:
        await quorum.register_brokers()
        node = next(iter(quorum.nodes.values()))
        await create_until(quorum, "a snapshot is taken", lambda: bool(snapshots(node)))
        assert log_start(node) == 0
        async with LogReader([node.address], timeout_ms=TIMEOUT_MS, transport=chosen()) as reader:
            told = await reader.fetch(0)
            assert told.snapshot_id is None
            (_, first), *_ = iter_batches(told.data)
            assert first.base_offset == 0


async def test_a_reader_that_names_the_epoch_below_is_told_whether_the_log_has_it(
    tmp_path: Path,
) -> None:
    async with Quorum(tmp_path / "q", controllers=1) as quorum:
        node = next(iter(quorum.nodes.values()))
        async with LogReader(timeout_ms=TIMEOUT_MS, client=quorum.client) as reader:
            epoch = (await quorum.leader()).leader.epoch
            # A leader of a later epoch knows which batch it has there.
            await quorum.kill(node.node_id)
            await quorum.start(node.node_id)
            await quorum.leader(above_epoch=epoch)
            # Read now: the first leader writes on after it is elected.
            everything = await reader.fetch(0)
            headers = [header for _, header in iter_batches(everything.data)]
            end = max(each.last_offset for each in headers if each.epoch == epoch) + 1
            more = await reader.fetch(end, epoch=epoch)
            assert (more.is_diverging, bool(more.data)) == (False, True)
            # It has one record less of that epoch.
            lost = await reader.fetch(end + 1, epoch=epoch)
            assert (lost.is_diverging, lost.data) == (True, b"")
        # It belongs to the client, which stays open.
        async with LogReader(timeout_ms=300, client=quorum.client) as reader:
            with pytest.raises((AdminError, QuorumUnavailableError), match="before 1000"):
                await reader.fetch(end, epoch=Epoch(1000))


async def test_a_fetch_waits_until_something_is_committed(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "q", controllers=1) as quorum:
        await quorum.register_brokers()
        async with LogReader(timeout_ms=TIMEOUT_MS, client=quorum.client) as reader:
            end = (await reader.fetch(0)).high_watermark
            while (waited := await reader.fetch(end, max_wait_ms=100)).data:
                end = waited.high_watermark
            waiting = asyncio.create_task(_first_news(reader, end))
            await quorum.create(NewTopic("a", 1, 1))
            assert (await waiting).high_watermark > end


async def _first_news(reader: LogReader, end: int) -> FetchedLog:
    while not (fetched := await reader.fetch(end, max_wait_ms=TIMEOUT_MS)).data:
        continue
    return fetched


async def test_the_log_of_another_cluster_is_not_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Quorum(tmp_path / "q", controllers=1) as quorum:
        async with LogReader(timeout_ms=TIMEOUT_MS, client=quorum.client) as reader:
            assert await reader.cluster_id() == quorum.plan.cluster_id
        monkeypatch.setattr(quorum.client.finder, "_cluster_id", ClusterId("another"))
        async with LogReader(timeout_ms=300, client=quorum.client) as reader:
            with pytest.raises(QuorumUnavailableError, match="of another cluster than another"):
                await reader.fetch(0)


async def test_nobody_there_ends_with_what_was_tried() -> None:
    async with LogReader([("127.0.0.1", 1)], timeout_ms=300, transport=chosen()) as reader:
        with pytest.raises((AdminError, QuorumUnavailableError), match=r"127\.0\.0\.1:1"):
            await reader.fetch(0)
