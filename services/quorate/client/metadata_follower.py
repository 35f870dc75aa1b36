"""Follows the metadata log of a running quorum into an image, as a broker does.

The leader delays a Fetch until something is committed, so that news arrives immediately and an idle
quorum is asked rarely. Failures are retried for as long as the follower runs: an election is over
soon, and an operator may grant the right to read.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final, NoReturn

from quorate.api.admin_api import NO_LEADER, AdminError
from quorate.client.controller_calls import QuorumUnavailableError, RequestRefusedError
from quorate.client.log_reader import SnapshotGoneError
from quorate.controller.errors import ReplayError
from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.record_runs import batch_items
from quorate.controller.replay import Replayer
from quorate.controller.snapshot import SnapshotLoader
from quorate.raft.backoff import backoff_ms
from quorate.records.batch import CorruptBatchError, iter_batches
from quorate.records.codec.schema import SchemaError
from quorate.records.ids import Epoch, Offset
from quorate.rpc.time_slicer import LOADING_SHARE, TimeSlicer

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.client.log_reader import FetchedLog, LogReader
    from quorate.records.ids import OffsetAndEpoch

# Longest time in ms that the leader may delay a Fetch without data; most answer sooner.
FETCH_WAIT_MS: Final = 1_000
# Pause in ms after a fetch without data, if a leader does not delay it; half of it is random.
IDLE_MS: Final = 500
RETRY_FIRST_MS: Final = 50
RETRY_LONGEST_MS: Final = 5_000
# After a lasting failure: the caller may not read, or this release cannot read the log.
RETRY_LASTING_MS: Final = 60_000
# Seconds in which a failure may be an election.
QUIET_S: Final = 10.0
_RANDOM: Final = random.SystemRandom()


class MetadataFollower:
    """`image` is the committed metadata replayed so far. `run` it as a concurrent task."""

    def __init__(self, reader: LogReader, report: Callable[[str], None]) -> None:
        """`report` gets a line when the log cannot be read, and when it can be read again."""
        self._reader = reader
        self._report = report
        self._replayer = Replayer(MetadataImage())
        self._moved = asyncio.Event()
        self._epoch = Epoch(0)
        self._begun = self._caught_up = 0
        self._troubles = _Troubles(report)

    @property
    def image(self) -> MetadataImage:
        """The committed metadata below `end_offset`, without an open transaction."""
        return self._replayer.image

    @property
    def end_offset(self) -> Offset:
        """Everything below has been replayed."""
        return self._replayer.end_offset

    @property
    def is_refused(self) -> bool:
        """True once the quorum has denied this caller to read the log."""
        return self._troubles.is_refused

    async def moved(self) -> None:
        """Wait until a Fetch has ended, with data or without."""
        await self._moved.wait()

    async def catch_up(self) -> None:
        """Wait until everything is replayed that was committed when this was called."""
        # A Fetch in flight may have been answered before.
        wanted = self._begun + 1
        while self._caught_up < wanted:
            await self.moved()

    async def run(self) -> NoReturn:
        """Follow the log until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                is_news = await self._step()
            except (AdminError, RequestRefusedError, QuorumUnavailableError) as error:
                wait_ms = self._troubles.failed(error)
            except SnapshotGoneError as error:
                wait_ms = self._troubles.failed(error)
            except (ReplayError, CorruptBatchError, SchemaError) as error:
                # A replay from the beginning may succeed: the quorum may have been restored.
                self._replayer = Replayer(MetadataImage())
                wait_ms = self._troubles.failed(error)
            else:
                if self._caught_up == self._begun:
                    self._troubles.over()
                is_early = loop.time() - began < FETCH_WAIT_MS / 2_000
                wait_ms = _drawn_ms(IDLE_MS) if is_early and not is_news else 0
            self._tell()
            if wait_ms:
                await asyncio.sleep(wait_ms / 1000)

    def _tell(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def _step(self) -> bool:
        """Fetch and replay; False without data. Raises the errors of reader and replay."""
        self._begun += 1
        number, end = self._begun, self.end_offset
        epoch = self._epoch if end else None
        fetched = await self._reader.fetch(end, epoch=epoch, max_wait_ms=FETCH_WAIT_MS)
        if fetched.is_diverging:
            raise ReplayError(f"the log of the quorum no longer has what was read below {end}")
        if fetched.snapshot_id is not None:
            await self._load(fetched.snapshot_id)
            return True
        await self._replay(fetched)
        if self.end_offset >= fetched.high_watermark:
            self._caught_up = number
        return self.end_offset > end

    async def _replay(self, fetched: FetchedLog) -> None:
        pace = TimeSlicer(LOADING_SHARE)
        for at, header in iter_batches(fetched.data):
            if header.last_offset >= fetched.high_watermark:
                break
            epoch = Epoch(header.epoch)
            await pace.run(
                self._replayer.replay_in_slices(
                    () if header.is_control else batch_items(fetched.data, at, header),
                    base_offset=Offset(header.base_offset),
                    position=LogPosition(
                        Offset(header.last_offset + 1), epoch, header.max_timestamp_ms
                    ),
                )
            )
            self._epoch = epoch

    async def _load(self, snapshot_id: OffsetAndEpoch) -> None:
        pace = TimeSlicer(LOADING_SHARE)
        # The time of the last record below the snapshot is for metrics, which are not exported
        # here.
        loader = SnapshotLoader(LogPosition(snapshot_id.offset, snapshot_id.epoch, 0))
        async for batch in self._reader.snapshot_batches(snapshot_id):
            if not batch.header.is_control:
                items = batch_items(batch.buffer, batch.at, batch.header)
                await pace.run(loader.add_in_slices(items))
        self._replayer = Replayer(loader.finish())
        self._epoch = snapshot_id.epoch


class _Troubles:
    """Failures in a row: the wait after each, and one report about them."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._count = 0
        self._since_s = 0.0
        self._is_told = False
        self.is_refused = False

    def failed(self, error: Exception) -> int:
        """Count a failure; the wait before the next attempt, in milliseconds."""
        now_s = asyncio.get_running_loop().time()
        if not self._count:
            self._since_s = now_s
        self._count += 1
        self.is_refused = isinstance(error, RequestRefusedError) or (
            isinstance(error, AdminError) and error.reason != NO_LEADER
        )
        is_lasting = self.is_refused or isinstance(error, ReplayError | ValueError)
        if not self._is_told and (is_lasting or now_s - self._since_s >= QUIET_S):
            self._is_told = True
            remedy = "; allow it to fetch the log of the quorum" if self.is_refused else ""
            self._report(f"the metadata log cannot be read, and is tried again: {error}{remedy}")
        longest_ms = RETRY_LASTING_MS if is_lasting else RETRY_LONGEST_MS
        return backoff_ms(
            self._count, first_ms=RETRY_FIRST_MS, longest_ms=longest_ms, random=_RANDOM
        )

    def over(self) -> None:
        """Reset after a success."""
        if self._is_told:
            self._report("the metadata log is read again")
        self._count, self._is_told, self.is_refused = 0, False, False


def _drawn_ms(longest_ms: int) -> int:
    return backoff_ms(1, first_ms=longest_ms, longest_ms=longest_ms, random=_RANDOM)
