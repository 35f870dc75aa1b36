"""Reads the committed log and snapshots of a running quorum without being a replica.

The leader serves a Fetch without a replica id up to the high watermark, and takes it as no
acknowledgement, so such a reader neither counts nor is waited for.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from quorate.client.backoff import Backoff
from quorate.client.controller_calls import ControllerCalls, NoAnswerError, QuorumUnavailableError
from quorate.client.leader_finder import LeaderFinder
from quorate.raft.messages import FetchRequest, FetchSnapshotRequest
from quorate.records.batch import CorruptBatchError, check_batch
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, Offset
from quorate.records.value_types import value_type
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport
from quorate.storage.log.batch_scanner import FileBatch, bytes_of_batch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from quorate.client.controller_calls import Address
    from quorate.client.controller_client import ControllerClient
    from quorate.client.leader_finder import FoundLeader
    from quorate.raft.messages import FetchResponse, FetchSnapshotResponse
    from quorate.records.ids import ClusterId, OffsetAndEpoch
    from quorate.rpc.security.tls_files import TlsFiles

CHUNK_BYTES: Final = 1024 * 1024
# Errors for which the leader moved, or this server has not observed its own epoch yet.
_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
# No server reports the epoch below the log's start: tried from the oldest snapshot's down.
_EPOCHS_TRIED_MAX: Final = 1000


@value_type
class FetchedLog:
    """Complete batches of the leader from an offset on, all below `high_watermark`.

    `snapshot_id` is set, without batches, if the log starts above the offset. There are no batches
    either if the log `is_diverging`: the log does not contain the reader's data below the offset.
    """

    data: bytes
    high_watermark: Offset
    log_start: Offset
    snapshot_id: OffsetAndEpoch | None
    is_diverging: bool = False


class SnapshotGoneError(Exception):
    """The leader has replaced that snapshot by a newer one."""


class LogReader:
    """Use as an async context manager. `timeout_ms` bounds each call, including elections."""

    def __init__(
        self,
        servers: Sequence[Address] = (),
        *,
        timeout_ms: int,
        tls: TlsFiles | None = None,
        transport: Transport = DEFAULT_TRANSPORT,
        client: ControllerClient | None = None,
    ) -> None:
        """With a `client`, its connections and its known leader are used."""
        self._timeout_s = timeout_ms / 1000
        self._has_own_calls = client is None
        self._calls: ControllerCalls
        if client is None:
            self._calls = ControllerCalls(drain_s=self._timeout_s, tls=tls, transport=transport)
            self._finder = LeaderFinder(self._calls, servers)
        else:
            self._calls, self._finder = client, client.finder
        self._found: FoundLeader | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._has_own_calls:
            await self._calls.close()

    async def fetch(
        self,
        offset: int,
        *,
        epoch: Epoch | None = None,
        max_bytes: int = CHUNK_BYTES,
        max_wait_ms: int = 0,
    ) -> FetchedLog:
        """Committed batches from the one that contains `offset` on, at least one if there is any.

        If there is none, the leader waits up to `max_wait_ms`. `epoch` is that of the batch below
        the offset, for a reader that has it: a log without that batch is then diverging, and a
        leader of an earlier epoch is not asked. Raises QuorumUnavailableError, AdminError and
        RequestRefusedError if no controller answers in time, or the caller may not read.
        """
        fetch = partial(self._fetch, offset, max_bytes=max_bytes, max_wait_ms=Millis(max_wait_ms))
        answer = await fetch(epoch)
        snapshot_id = answer.snapshot_id
        if snapshot_id is not None and offset == answer.log_start_offset and epoch is None:
            # Nothing is missing: only the epoch below the offset has to match there.
            lowest = max(-1, snapshot_id.epoch - _EPOCHS_TRIED_MAX)
            for below in range(snapshot_id.epoch, lowest, -1):
                answer = await fetch(Epoch(below), is_guess=True)
                if answer.snapshot_id is None:
                    break
        return FetchedLog(
            answer.records.data if answer.records is not None else b"",  # type: ignore[union-attr]
            answer.high_watermark,
            answer.log_start_offset,
            answer.snapshot_id,
            is_diverging=answer.diverging is not None,
        )

    async def cluster_id(self) -> ClusterId:
        """The cluster's id, requested once; other clusters' logs are rejected from then on.

        Raises the errors of `fetch`.
        """
        _, cluster_id = await self._leader(asyncio.get_running_loop().time() + self._timeout_s)
        return cluster_id

    async def snapshot(self, snapshot_id: OffsetAndEpoch) -> AsyncIterator[bytes]:
        """The chunks of a snapshot file. Raises SnapshotGoneError, and the errors of `fetch`."""
        position = 0
        while True:
            answer = await self._fetch_snapshot(snapshot_id, position)
            assert isinstance(answer.chunk, bytes)
            yield answer.chunk
            position += len(answer.chunk)
            if position >= answer.size_bytes:
                return

    async def snapshot_batches(self, snapshot_id: OffsetAndEpoch) -> AsyncIterator[FileBatch]:
        """The batches of a snapshot, each one verified.

        Raises CorruptBatchError at the first that is not intact, and the errors of `snapshot`.
        """
        data, base = b"", 0
        async for chunk in self.snapshot(snapshot_id):
            data += chunk
            at = 0
            while len(data) - at >= bytes_of_batch(data, at):
                header = check_batch(data, at)
                yield FileBatch(base + at, header, data, at)
                at += header.size_bytes
            data, base = data[at:], base + at
        if data:
            raise CorruptBatchError(base, f"snapshot {snapshot_id} ends in the middle of it")

    async def _fetch(
        self,
        offset: int,
        epoch: Epoch | None,
        *,
        max_bytes: int,
        max_wait_ms: Millis,
        is_guess: bool = False,
    ) -> FetchResponse:
        said = ""
        backoff = Backoff(asyncio.get_running_loop().time() + self._timeout_s)
        while True:
            found, cluster_id = await self._leader(backoff.deadline)
            leads = found.quorum.leader.epoch
            if epoch is not None and not is_guess and leads < epoch:
                await self._again(backoff, f"that it leads epoch {leads}, before {epoch}")
                continue
            request = FetchRequest(
                cluster_id=cluster_id,
                replica=None,
                current_leader_epoch=leads,
                fetch_offset=Offset(offset),
                # All that this leader has of its own epoch is valid.
                last_fetched_epoch=_epoch_before(offset, found) if epoch is None else epoch,
                max_wait_ms=max_wait_ms,
                max_bytes=max_bytes,
            )
            try:
                answer = await self._calls.fetch_at(
                    found.server, request, max(0.001, backoff.left_s)
                )
            except NoAnswerError as error:
                if error.refusal is not None:
                    raise error.refusal from error
                # The last attempt has hardly any time left: an earlier error says more.
                said = said if error.is_silence and said else str(error)
                await self._again(backoff, said)
                continue
            if answer.error is ErrorCode.NONE and answer.high_watermark >= 0:
                return answer
            said = _why_not(answer.error, cluster_id)
            await self._again(backoff, said)

    async def _fetch_snapshot(
        self, snapshot_id: OffsetAndEpoch, position: int
    ) -> FetchSnapshotResponse:
        backoff = Backoff(asyncio.get_running_loop().time() + self._timeout_s)
        while True:
            found, cluster_id = await self._leader(backoff.deadline)
            epoch = found.quorum.leader.epoch
            request = FetchSnapshotRequest(
                cluster_id=cluster_id,
                replica=None,
                current_leader_epoch=epoch,
                snapshot_id=snapshot_id,
                position=position,
                max_bytes=CHUNK_BYTES,
            )
            try:
                answer = await self._calls.fetch_snapshot_at(
                    found.server, request, max(0.001, backoff.left_s)
                )
            except NoAnswerError as error:
                if error.refusal is not None:
                    raise error.refusal from error
                await self._again(backoff, str(error))
                continue
            if answer.error is ErrorCode.NONE and answer.chunk:
                return answer
            if answer.error is ErrorCode.NONE:
                # The leader verifies the file before it serves any of it.
                if not await backoff.wait():
                    raise QuorumUnavailableError(
                        f"snapshot {snapshot_id} is not offered: it is being checked, or damaged"
                    )
                continue
            if answer.error not in _MOVED:
                raise SnapshotGoneError(f"snapshot {snapshot_id}: {answer.error.name}")
            await self._again(backoff, answer.error.name)

    async def _leader(self, deadline: float) -> tuple[FoundLeader, ClusterId]:
        if self._found is None:
            self._found = await self._finder.find(deadline)
        return self._found, await self._finder.cluster_id(self._found, deadline)

    async def _again(self, backoff: Backoff, said: str) -> None:
        """Wait, then look for the leader again. Raises QuorumUnavailableError when time is up."""
        server = "nobody" if self._found is None else "{}:{}".format(*self._found.server)
        self._found = None
        self._finder.on_leader_lost()
        if not await backoff.wait():
            raise QuorumUnavailableError(f"the log cannot be fetched: {server} said {said}")


def _why_not(error: ErrorCode, cluster_id: ClusterId) -> str:
    match error:
        case ErrorCode.NONE:
            return "that it has no high watermark yet"
        case ErrorCode.INCONSISTENT_CLUSTER_ID:
            return f"that it is of another cluster than {cluster_id}"
        case _:
            return error.name


def _epoch_before(offset: int, found: FoundLeader) -> Epoch:
    return Epoch(0) if offset == 0 else found.quorum.leader.epoch
