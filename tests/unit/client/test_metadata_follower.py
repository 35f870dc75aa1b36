"""A follower replays what is committed, and continues after any failure."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import pytest

from quorate.api.admin_api import NO_LEADER, AdminError
from quorate.client import metadata_follower
from quorate.client.controller_calls import QuorumUnavailableError, RequestRefusedError
from quorate.client.log_reader import FetchedLog, LogReader, SnapshotGoneError
from quorate.client.metadata_follower import MetadataFollower
from quorate.controller.features.levels import encode_at
from quorate.records.batch import check_batch, encode_batch
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch, TopicId
from quorate.records.metadata import FeatureLevelRecord, TopicRecord
from quorate.storage.log.batch_scanner import FileBatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quorate.records.metadata import MetadataRecord

LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)
SNAPSHOT = OffsetAndEpoch(epoch=Epoch(2), offset=Offset(7))


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=TopicId(name.encode().ljust(16, b"\x10")))


def batch(base_offset: int, *records: MetadataRecord, epoch: int = 3) -> bytes:
    values = [encode_at(30, record) for record in records]
    return encode_batch(values, timestamp_ms=5, base_offset=base_offset, epoch=epoch)


def fetched(
    *batches: bytes,
    end: int,
    snapshot: OffsetAndEpoch | None = None,
    is_diverging: bool = False,
) -> FetchedLog:
    data = b"".join(batches)
    return FetchedLog(data, Offset(end), Offset(0), snapshot, is_diverging=is_diverging)


class ScriptedReader:
    """Answers in order; when there is nothing left, a Fetch waits."""

    def __init__(self, *answers: FetchedLog | Exception) -> None:
        self.answers = deque(answers)
        self.asked: list[tuple[int, int | None]] = []
        self.waits = asyncio.Event()
        self.more = asyncio.Event()
        self.snapshots: deque[tuple[bytes, ...] | Exception] = deque()

    async def fetch(self, offset: int, *, epoch: Epoch | None, max_wait_ms: int) -> FetchedLog:
        assert max_wait_ms > 0
        self.asked.append((offset, epoch))
        while not self.answers:
            self.more.clear()
            self.waits.set()
            await self.more.wait()
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def snapshot_batches(self, snapshot_id: OffsetAndEpoch) -> AsyncIterator[FileBatch]:
        assert snapshot_id == SNAPSHOT
        batches = self.snapshots.popleft()
        if isinstance(batches, Exception):
            raise batches
        for data in batches:
            yield FileBatch(0, check_batch(data), data, 0)

    def add(self, *answers: FetchedLog | Exception) -> None:
        self.answers += answers
        self.waits.clear()
        self.more.set()


@asynccontextmanager
async def following(reader: ScriptedReader) -> AsyncIterator[tuple[MetadataFollower, list[str]]]:
    """A follower that has worked through the script."""
    said: list[str] = []
    follower = MetadataFollower(cast("LogReader", reader), said.append)
    task = asyncio.create_task(follower.run())
    waiting = asyncio.create_task(reader.waits.wait())
    try:
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield follower, said
    finally:
        for each in (task, waiting):
            each.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries happen immediately."""
    monkeypatch.setattr(metadata_follower, "backoff_ms", lambda *_, **__: 0)


async def test_what_is_committed_is_replayed_and_the_next_fetch_names_it() -> None:
    reader = ScriptedReader(
        fetched(batch(0, LEVEL, topic("a")), batch(2, topic("b")), batch(3, topic("c")), end=3)
    )
    async with following(reader) as (follower, said):
        assert set(follower.image.topics.ids) == {"a", "b"}
        assert (follower.end_offset, reader.asked) == (3, [(0, None), (3, 3)])
        caught_up = asyncio.create_task(follower.catch_up())
        reader.add(fetched(batch(3, topic("c")), end=4))
        await reader.waits.wait()
        # What was on its way may be older than the question.
        assert not caught_up.done()
        reader.add(fetched(end=4))
        await caught_up
        assert set(follower.image.topics.ids) == {"a", "b", "c"}
        assert said == []


async def test_a_log_that_begins_later_comes_with_its_snapshot() -> None:
    reader = ScriptedReader(
        fetched(end=9, snapshot=SNAPSHOT),
        fetched(end=9, snapshot=SNAPSHOT),
        fetched(batch(7, topic("b"), topic("c")), end=9),
    )
    reader.snapshots += [SnapshotGoneError("gone"), (batch(0, LEVEL, topic("a")),)]
    async with following(reader) as (follower, said):
        assert set(follower.image.topics.ids) == {"a", "b", "c"}
        assert reader.asked == [(0, None), (0, None), (7, 2), (9, 3)]
        assert said == []


@pytest.mark.parametrize(
    "bad",
    [
        fetched(end=9, is_diverging=True),
        fetched(batch(2, topic("c")), end=9),
        fetched(batch(1, topic("b"))[:-1], end=9),
    ],
)
async def test_a_log_that_contradicts_what_was_read_is_read_anew_and_told_once(
    bad: FetchedLog,
) -> None:
    first = fetched(batch(0, LEVEL), end=1)
    other = fetched(batch(0, LEVEL, epoch=4), batch(1, topic("b"), epoch=4), end=2)
    async with following(ScriptedReader(first, bad, bad, other)) as (follower, said):
        assert set(follower.image.topics.ids) == {"b"}
        trouble, over = said
        assert trouble.startswith("the metadata log cannot be read, and is tried again: ")
        assert over == "the metadata log is read again"


async def test_a_caller_that_may_not_read_is_told_the_remedy_once() -> None:
    denied = RequestRefusedError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "User:x may not")
    unasked = AdminError("NOT_AUTHORIZED", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")
    reader = ScriptedReader(denied, unasked, denied)
    async with following(reader) as (follower, said):
        assert follower.is_refused
        (told,) = said
        assert told.endswith("User:x may not; allow it to fetch the log of the quorum")
        reader.add(fetched(batch(0, LEVEL), end=1))
        await reader.waits.wait()
        assert (follower.is_refused, said[1:]) == (False, ["the metadata log is read again"])


async def test_an_election_is_not_told_and_an_outage_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody = AdminError(NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE, "nobody leads")
    away = QuorumUnavailableError("the log cannot be fetched")
    async with following(ScriptedReader(nobody, away, fetched(batch(0, LEVEL), end=1))) as (
        _,
        said,
    ):
        assert said == []
    monkeypatch.setattr(metadata_follower, "QUIET_S", 0.0)
    async with following(ScriptedReader(nobody, away, away)) as (follower, said):
        assert (len(said), follower.is_refused) == (1, False)
