"""A replica's directory on a simulated disk, driven without a core: append, flush, crash."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from quorate.raft.api import (
    AppendToLog,
    ControlBatch,
    InstallSnapshot,
    LogTruncated,
    ProposedBatch,
    SaveElection,
    TruncateLog,
    TruncationRefused,
    WriteSnapshotChunk,
)
from quorate.raft.messages import ElectionState, LogRange
from quorate.records.batch import encode_batch
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.ids import (
    ClusterId,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.sim.engine.disk import SimulatedDisk, Survival
from quorate.storage.flushed_end import FlushedEndFile
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import SnapshotInstalled, SnapshotRefused
    from quorate.raft.messages import SnapshotInfo
    from quorate.storage.log.metadata_log import MetadataLog
    from quorate.storage.recovery.recovery import Recovered

DIRECTORY = "/data"
LOG_DIR = f"{DIRECTORY}/__cluster_metadata-0"
CLUSTER_ID = ClusterId("9vqhEGZ0TtKUpzFdKXJMjA")


class Crashed(Exception):
    """The process dies instead of making the next call to its disk."""


def crash_after(disk: SimulatedDisk, calls: int) -> None:
    """Let the process die at the call to its disk after so many."""
    left = calls

    def count(operation: str, path: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crashed(operation + path)

    disk.hook = count


def at(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(offset))


def voter(node_id: int) -> Voter:
    key = ReplicaKey(NodeId(node_id), DirectoryId(bytes([node_id]) * 16))
    return Voter(key, (Endpoint("GRPC", f"node-{node_id}", 9094),))


def voter_set(*node_ids: int) -> VoterSet:
    return VoterSet(tuple(voter(node_id) for node_id in node_ids))


THREE = voter_set(1, 2, 3)
ALONE = voter_set(1)


class Replica:
    """Node 1, formatted with `voters`, small segments; `open` starts a process on it."""

    def __init__(self, voters: VoterSet | None = THREE, segment_bytes: int = 300) -> None:
        self.disk = SimulatedDisk()
        self.config = StorageConfig(node_id=NodeId(1), segment_bytes=segment_bytes)
        self.meta = MetaProperties(NodeId(1), CLUSTER_ID, DirectoryId(b"\x01" * 16))
        formatting = Formatting(meta=self.meta, records=[b"bootstrap"], voters=voters)
        format_directory(self.disk, DIRECTORY, formatting, timestamp_ms=1)
        self.store: LogStore
        self.voters = voters or VoterSet()

    def open(self) -> Recovered:
        self.store, recovered = LogStore.open(self.disk, DIRECTORY, self.config)
        return recovered

    def everything(self) -> dict[str, bytes]:
        """All files by their path."""
        return {
            f"{path}/{name}": self.disk.read(f"{path}/{name}")
            for path in (DIRECTORY, LOG_DIR)
            for name in self.disk.files(path)
        }

    # --- what a process does ----------------------------------------------------------------------

    @property
    def log(self) -> MetadataLog:
        return self.store.log

    @property
    def end(self) -> OffsetAndEpoch:
        return self.store.log.end

    def flush(self) -> OffsetAndEpoch:
        ticket = self.store.log.begin_flush()
        if ticket is None:
            return self.store.log.flushed_end
        ticket.run()
        return self.store.log.finish_flush(ticket)

    def save(self, epoch: int) -> None:
        state = ElectionState(Epoch(epoch), NodeId(1), voter(1).key)
        self.store.save_election(SaveElection(state, 1, self.voters))

    def begin_epoch(self, epoch: int) -> None:
        """Save the epoch and append its LeaderChange; in the first one the voters as well."""
        self.save(epoch)
        base = self.end.offset
        ids = tuple(v.key.node_id for v in self.voters)
        records = [LeaderChange(NodeId(1), ids, ids)]
        batch = ControlBatch(tuple(records))
        if base == 0:
            batch = ControlBatch((*records, KRaftVersion(1), KRaftVoters(self.voters)))
        effect = AppendToLog(base, at(base + len(batch.records), epoch), batch)
        self.store.append(effect, timestamp_ms=100 + base)

    def append(self, *values: bytes) -> None:
        end = self.end
        data = encode_batch(values, timestamp_ms=100 + end.offset)
        effect = AppendToLog(
            end.offset, at(end.offset + len(values), end.epoch), ProposedBatch(data, len(values))
        )
        self.store.append(effect, timestamp_ms=0)

    def set_voters(self, voters: VoterSet) -> None:
        end = self.end
        effect = AppendToLog(
            end.offset, at(end.offset + 1, end.epoch), ControlBatch((KRaftVoters(voters),))
        )
        self.store.append(effect, timestamp_ms=100 + end.offset)
        self.voters = voters

    def truncate(self, to: OffsetAndEpoch) -> LogTruncated | TruncationRefused:
        return self.store.truncate(TruncateLog(to, self.store.log.generation + 1))

    def snapshot(self, where: OffsetAndEpoch, *values: bytes) -> SnapshotInfo:
        writer = self.store.begin_snapshot(where, timestamp_ms=999)
        writer.append(values or (b"state",))
        return self.store.finish_snapshot(writer)

    def install(self, where: OffsetAndEpoch, data: bytes) -> SnapshotInstalled | SnapshotRefused:
        self.store.write_chunk(WriteSnapshotChunk(where, 0, data[:50]))
        self.store.write_chunk(WriteSnapshotChunk(where, 50, data[50:]))
        return self.store.install(
            InstallSnapshot(snapshot_id=where, generation=self.store.log.generation + 1)
        )

    def write_history(self) -> None:
        """Three epochs over several segments, flushed after each batch, end 18@4."""
        self.open()
        self.begin_epoch(1)
        self.flush()
        for number in range(4):
            self.append(b"one %d" % number, b"and %d" % number)
            self.flush()
        self.begin_epoch(2)
        self.flush()
        self.begin_epoch(4)
        self.append(b"four", b"fourth")
        self.flush()
        self.append(b"last", b"of", b"all")
        self.flush()

    # --- what one sees of it ----------------------------------------------------------------------

    def content(self, start: int | None = None) -> bytes:
        log = self.store.log
        begin = Offset(log.log_start if start is None else start)
        return self.store.read_range(LogRange(start=begin, end=log.end.offset, bytes_max=1 << 30))

    def recorded_end(self) -> OffsetAndEpoch:
        """The flushed end of the log, by the checkpoint file next to it."""
        entry = FlushedEndFile(self.disk, f"{DIRECTORY}/flushed-end").load()
        assert entry is not None
        return entry.end

    def files(self) -> dict[str, int]:
        return self.disk.files(LOG_DIR)

    def logs(self) -> list[str]:
        return [name for name in self.files() if name.endswith(".log")]

    # --- faults -----------------------------------------------------------------------------------

    def flip(self, path: str, position: int, mask: int = 0x40) -> None:
        self.disk.rot(path, position, mask)

    def crash_after(self, calls: int) -> None:
        """Die at the call to the disk that follows `calls` more."""
        left = calls

        def count(operation: str, path: str) -> None:
            nonlocal left
            if left == 0:
                raise Crashed(f"{operation} {path}")
            left -= 1

        self.disk.hook = count

    def revive(self) -> None:
        self.disk.hook = _alive

    def lose_all_unflushed(self) -> None:
        """Only what was flushed is left."""
        self.lose_power(Survival.NOTHING)

    def lose_power(self, survival: Survival, seed: int = 0) -> None:
        self.disk.lose_power(Random(seed), survival)


def _alive(operation: str, path: str) -> None:
    del operation, path


@pytest.fixture
def make_replica() -> Callable[..., Replica]:
    return Replica


@pytest.fixture
def replica() -> Replica:
    """A voter of three, opened for the first time."""
    replica = Replica()
    replica.open()
    return replica


@pytest.fixture
def veteran() -> Replica:
    """A voter of three with several segments and epochs, all of it flushed."""
    replica = Replica()
    replica.write_history()
    return replica
