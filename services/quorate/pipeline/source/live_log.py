"""Fetches committed batches and snapshots from a live quorum.

All calls block: Spark's workers are separate processes with no other work.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.api.admin_api import AdminError
from quorate.client.controller_calls import QuorumUnavailableError, RequestRefusedError
from quorate.client.log_reader import FetchedLog, LogReader
from quorate.client.server_addresses import parse_servers
from quorate.pipeline.source.options import OptionError
from quorate.pipeline.source.time_search import (
    Mark,
    Stretch,
    TimePlace,
    place_of,
    sides_of,
    stretches,
)
from quorate.records.batch import CorruptBatchError, iter_batches, read_header
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.records.value_types import value_type
from quorate.rpc.channels import ChannelKind, open_tls
from quorate.settings.properties import ConfigError, Settings
from quorate.settings.property_files import read_properties
from quorate.settings.regular_files import read_regular
from quorate.settings.tls import TlsError, read_client_tls
from quorate.settings.transport import read_transport
from quorate.storage.log.batch_scanner import FileBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from quorate.pipeline.source.options import Options
    from quorate.records.batch import BatchHeader
    from quorate.records.ids import ClusterId

T = TypeVar("T")
TIMEOUT_MS: Final = 60_000
# A search does not halve a range of at most this many offsets, but fetches it: that takes about one
# response, so searching a log of many epochs costs no more than reading it.
_FEW_OFFSETS: Final = 8192


class QuorumError(RuntimeError):
    """The quorum did not respond in time, or rejected the request; the message has the details."""


@value_type
class LogEnds:
    """The range of a quorum's log: records from `start` up to, not including, `end`.

    `snapshot_id` is the snapshot to start with if the log does not start at 0.
    """

    start: int
    end: int
    snapshot_id: OffsetAndEpoch | None


class LiveLog:
    """Reads from the leader, on its own event loop."""

    def __init__(self, options: Options) -> None:
        assert options.bootstrap_servers is not None
        try:
            servers = parse_servers(options.bootstrap_servers)
        except ValueError as error:
            raise OptionError(f"bootstrap.servers: {error}") from error
        kind = _kind(options)
        self._places: dict[tuple[int, LogEnds], TimePlace] = {}
        self._loop = asyncio.new_event_loop()
        self._reader = self._run(lambda: _opened(servers, kind))

    def close(self) -> None:
        """Close the channels."""
        if not self._loop.is_closed():
            self._loop.run_until_complete(self._reader.__aexit__())
            self._loop.close()

    def ends(self) -> LogEnds:
        """The start of the log and the committed end. Raises QuorumError."""
        fetched = self._fetch(0, max_bytes=1)
        start = fetched.log_start if fetched.snapshot_id is not None else 0
        return LogEnds(start, fetched.high_watermark, fetched.snapshot_id)

    def cluster_id(self) -> ClusterId:
        """The cluster id in the leader's first response. Raises QuorumError."""
        return self._run(self._reader.cluster_id)

    def check_cluster(self, cluster_id: ClusterId | None) -> None:
        """Raise QuorumError if the log is of another cluster than expected."""
        found = self.cluster_id()
        if cluster_id is not None and found != cluster_id:
            raise QuorumError(
                f"bootstrap.servers: the log of cluster {cluster_id} was to be read, and the "
                f"quorum there is of {found} by now"
            )

    def epoch_before(self, offset: int) -> Epoch | None:
        """The epoch of the last record below `offset`; None if the log does not have it."""
        if offset == 0:
            return None
        fetched = self._fetch(offset - 1, max_bytes=1)
        snapshot_id = fetched.snapshot_id
        if snapshot_id is not None:
            return snapshot_id.epoch if snapshot_id.offset == offset else None
        return Epoch(read_header(fetched.data).epoch) if fetched.data else None

    def batches(self, start: int, end: int) -> Iterator[FileBatch]:
        """Yield the committed batches with offsets from `start` up to `end`.

        Raises QuorumError, also if the log now starts above `start`.
        """
        while start < end:
            fetched = self._fetch(start)
            if fetched.snapshot_id is not None:
                raise QuorumError(
                    f"offset {start} is gone: the log begins at {fetched.log_start} by now"
                )
            position = start
            for at, header in _checked(fetched.data, start):
                if header.base_offset >= end or header.last_offset >= fetched.high_watermark:
                    break
                if header.base_offset > position:
                    raise QuorumError(
                        f"bootstrap.servers: offsets {position} to {header.base_offset - 1} are "
                        "missing in what the leader sent"
                    )
                yield FileBatch(at, header, fetched.data, at)
                position = header.last_offset + 1
            if position == start:
                raise QuorumError(
                    f"offset {start} was committed, and the leader commits only up to "
                    f"{fetched.high_watermark}: this is another quorum, or one that lost records"
                )
            start = position

    def snapshot_batches(self, snapshot_id: OffsetAndEpoch) -> Iterator[FileBatch]:
        """Yield the batches of a snapshot. Raises QuorumError, also if it was deleted."""
        batches = self._reader.snapshot_batches(snapshot_id)
        try:
            while (batch := self._run(lambda: anext(batches, None))) is not None:
                yield batch
        except CorruptBatchError as error:
            raise QuorumError(f"bootstrap.servers: snapshot {snapshot_id}: {error}") from error

    def time_place(self, timestamp_ms: int, ends: LogEnds) -> TimePlace:
        """The position of a time; the log end if no record is that late. Raises QuorumError."""
        if (timestamp_ms, ends) not in self._places:
            self._places[timestamp_ms, ends] = self._time_place(timestamp_ms, ends)
        return self._places[timestamp_ms, ends]

    def _time_place(self, timestamp_ms: int, ends: LogEnds) -> TimePlace:
        if ends.start == ends.end:
            return TimePlace(ends.end, ends.end)
        # The log's first batch may start below the log start offset.
        begin = replace(self.mark(ends.start), at=ends.start, offset=ends.start)
        found = stretches(
            _TimedQuorum(self, timestamp_ms), begin, Mark(ends.end, ends.end, None), timestamp_ms
        )
        return place_of([sides_of(found, ends.start, ends.end)], ends.end)

    def mark(self, offset: int) -> Mark:
        """The batch with an offset. Raises QuorumError, also if it was deleted."""
        fetched = self._fetch(offset, max_bytes=1)
        if not fetched.data:
            raise QuorumError(
                f"offset {offset} is gone: the log begins at {fetched.log_start} by now; ask again"
            )
        header = read_header(fetched.data)
        return Mark(header.base_offset, header.base_offset, header)

    def _fetch(self, offset: int, max_bytes: int | None = None) -> FetchedLog:
        if max_bytes is None:
            return self._run(lambda: self._reader.fetch(offset))
        return self._run(lambda: self._reader.fetch(offset, max_bytes=max_bytes))

    def _run(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        async def awaited() -> T:
            return await call()

        try:
            return self._loop.run_until_complete(awaited())
        except (QuorumUnavailableError, RequestRefusedError, AdminError) as error:
            raise QuorumError(f"bootstrap.servers: {error}") from error


@value_type
class _TimedQuorum:
    """A live log as the input of a time search; marks are offsets."""

    log: LiveLog
    timestamp_ms: int

    def between(self, first: Mark, last: Mark) -> Mark | None:
        if last.at - first.at <= _FEW_OFFSETS:
            return None
        middle = self.log.mark((first.at + last.at) // 2)
        # A single batch may have all offsets up to there.
        return middle if first.at < middle.at else None

    def read(self, first: Mark, last: Mark) -> Iterator[Stretch]:
        for batch in self.log.batches(first.at, last.at):
            header = batch.header
            is_late = header.max_timestamp_ms >= self.timestamp_ms
            begin = header.base_offset
            yield Stretch(begin, header.last_offset + 1, is_late, begin)


@contextmanager
def live_log(options: Options) -> Iterator[LiveLog]:
    """Open a LiveLog for the block."""
    log = LiveLog(options)
    try:
        yield log
    finally:
        log.close()


def _checked(data: bytes, start: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch in a response for `start`. Raises QuorumError."""
    try:
        yield from iter_batches(data)
    except CorruptBatchError as error:
        raise QuorumError(
            f"bootstrap.servers: what the leader sent for offset {start} does not check: {error}"
        ) from error


def snapshot_words(snapshot_id: OffsetAndEpoch) -> str:
    """Format a snapshot id for a stream's offset, as `516-1`: end offset and epoch."""
    return f"{snapshot_id.offset}-{snapshot_id.epoch}"


def snapshot_of(text: str) -> OffsetAndEpoch:
    """Parse the result of `snapshot_words`."""
    offset, _, epoch = text.partition("-")
    return OffsetAndEpoch(epoch=Epoch(int(epoch)), offset=Offset(int(offset)))


def _kind(options: Options) -> ChannelKind:
    if options.command_config is None:
        return ChannelKind()
    try:
        # Every worker reads it.
        settings = Settings(read_properties(options.command_config, read_regular), {})
        return ChannelKind(open_tls(read_client_tls(settings)), read_transport(settings))
    except (ConfigError, TlsError) as error:
        raise OptionError(f"commandConfig: {error}") from error


async def _opened(servers: list[tuple[str, int]], kind: ChannelKind) -> LogReader:
    """Open the channels on the loop to which they belong."""
    return LogReader(servers, timeout_ms=TIMEOUT_MS, tls=kind.tls, transport=kind.transport)
