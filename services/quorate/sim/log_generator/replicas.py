"""Directories of all controllers, written by the production storage code.

All of them get the same batches. They differ like those of a real quorum: a late one starts at the
snapshot that it fetched, each takes snapshots at its own times, and the last one crashed as the
leader shortly before the end, with a batch that was never committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.snapshot import snapshot_slices
from quorate.raft.api import (
    AppendToLog,
    InstallSnapshot,
    SaveElection,
    SnapshotInstalled,
    WriteSnapshotChunk,
)
from quorate.raft.messages import ElectionState, FetchedBatches, LogRange, SnapshotRange
from quorate.records.ids import NodeId, OffsetAndEpoch, ReplicaKey
from quorate.sim.randomness import RandomSource
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.image import MetadataImage
    from quorate.records.ids import ClusterId, Epoch
    from quorate.records.voters import VoterSet
    from quorate.sim.log_generator.options import WeekOptions
    from quorate.storage.file_system import FileSystem

# The maximum fraction of its bound by which a snapshot is early, as in production.
_SPREAD: Final = 0.3
_FETCHED_BYTES: Final = 1024 * 1024


class ReplicaDirectory:
    """One controller's open directory."""

    def __init__(
        self, fs: FileSystem, path: str, formatting: Formatting, options: WeekOptions, now_ms: int
    ) -> None:
        """Format `path` and open it."""
        format_directory(fs, path, formatting, timestamp_ms=now_ms)
        config = StorageConfig(
            node_id=formatting.meta.node_id,
            cluster_id=formatting.meta.cluster_id,
            segment_bytes=options.segment_bytes,
            retention_bytes=options.retention_bytes,
            cache_bytes=0,
        )
        self.key = ReplicaKey(formatting.meta.node_id, formatting.meta.directory_id)
        self.path = path
        self.is_cut_off = False
        self._store, _ = LogStore.open(fs, path, config)
        self._random_source = RandomSource(options.seed, f"snapshots of {self.key}")
        self._snapshot_bytes = options.snapshot_bytes
        self._left_bytes = self._next_bound()

    def _next_bound(self) -> float:
        return self._snapshot_bytes * (1 - _SPREAD * self._random_source.random.random())

    def append(self, data: bytes, end: OffsetAndEpoch, *, now_ms: int) -> None:
        """Append a batch; `now_ms` is its timestamp."""
        effect = AppendToLog(self._store.log.end.offset, end, FetchedBatches(data, ()))
        self._store.append(effect, timestamp_ms=now_ms)
        self._left_bytes -= len(data)

    def save_election(self, epoch: Epoch, leader: ReplicaKey, *, has_voted: bool) -> None:
        """Save the leader of the epoch, and this voter's vote for it if it has voted."""
        log = self._store.log.state
        state = ElectionState(epoch, leader.node_id, leader if has_voted else None)
        self._store.save_election(SaveElection(state, log.kraft_version, log.voter_set))

    def maybe_snapshot(self, image: MetadataImage, *, now_ms: int) -> None:
        """Write a snapshot of the whole log if one is due, and clean the log that it replaces."""
        if self._left_bytes > 0:
            return
        self._left_bytes = self._next_bound()
        self._flush()
        position = image.position
        snapshot_id = OffsetAndEpoch(epoch=position.epoch, offset=position.end_offset)
        writer = self._store.begin_snapshot(snapshot_id, timestamp_ms=now_ms)
        for values in snapshot_slices(image):
            writer.append(values)
        self._store.finish_snapshot(writer)
        self._store.clean(position.end_offset)

    def _flush(self) -> None:
        ticket = self._store.log.begin_flush()
        if ticket is not None:
            ticket.run()
            self._store.log.finish_flush(ticket)

    def catch_up(self, leader: ReplicaDirectory) -> None:
        """Fetch another directory's newest snapshot, if it has one, and then its log."""
        theirs, ours = leader._store, self._store
        newest = theirs.log.state.newest_snapshot
        if newest is not None and newest.offset > 0:
            position = 0
            while chunk := theirs.read_chunk(
                SnapshotRange(snapshot_id=newest, position=position, bytes_max=_FETCHED_BYTES)
            ):
                ours.write_chunk(WriteSnapshotChunk(newest, position, chunk))
                position += len(chunk)
            generation = ours.log.generation + 1
            installed = ours.install(InstallSnapshot(snapshot_id=newest, generation=generation))
            assert isinstance(installed, SnapshotInstalled), installed
        end = theirs.log.end.offset
        while (start := ours.log.end.offset) < end:
            data = theirs.read_range(LogRange(start=start, end=end, bytes_max=_FETCHED_BYTES))
            ours.log.append(start, data)
        self._left_bytes = self._next_bound()

    def close(self) -> None:
        """Mark everything as flushed and close the files."""
        self._flush()
        self._store.log.sync_flushed_end()
        self._store.close()


class Replicas:
    """The directories that are written, the one with the complete history first."""

    def __init__(
        self,
        fs: FileSystem,
        root: str,
        options: WeekOptions,
        cluster_id: ClusterId,
        bootstrap: Sequence[bytes],
    ) -> None:
        """Write a single directory to `root` itself, several to a folder per node id."""
        self._fs = fs
        self._root = root
        self._options = options
        self._cluster_id = cluster_id
        self._bootstrap = bootstrap
        self._replicas: dict[NodeId, ReplicaDirectory] = {}

    def found(self, key: ReplicaKey, voters: VoterSet, *, now_ms: int) -> None:
        """Format the directory of one of the first voters."""
        self._replicas[key.node_id] = self._format(key, voters, now_ms)

    def join(self, key: ReplicaKey, epoch: Epoch, leader: ReplicaKey, *, now_ms: int) -> None:
        """Format the directory of a new voter and let it catch up immediately."""
        replica = self._format(key, None, now_ms)
        replica.catch_up(next(iter(self._replicas.values())))
        replica.save_election(epoch, leader, has_voted=False)
        self._replicas[key.node_id] = replica

    def _format(self, key: ReplicaKey, voters: VoterSet | None, now_ms: int) -> ReplicaDirectory:
        assert key.directory_id is not None, "a directory has an id"
        is_only = self._options.voters == 1
        path = self._root if is_only else f"{self._root}/{key.node_id}"
        meta = MetaProperties(key.node_id, self._cluster_id, key.directory_id)
        formatting = Formatting(meta=meta, records=self._bootstrap, voters=voters)
        return ReplicaDirectory(self._fs, path, formatting, self._options, now_ms)

    def append(self, data: bytes, end: OffsetAndEpoch, *, now_ms: int) -> None:
        """Append a batch to each replica that is not isolated."""
        for replica in self._replicas.values():
            if not replica.is_cut_off:
                replica.append(data, end, now_ms=now_ms)

    def maybe_snapshot(self, image: MetadataImage, *, now_ms: int) -> None:
        """Let each replica that is due write a snapshot of the image at the log's end."""
        for replica in self._replicas.values():
            if not replica.is_cut_off:
                replica.maybe_snapshot(image, now_ms=now_ms)

    def elected(self, epoch: Epoch, leader: ReplicaKey, granted: Sequence[NodeId]) -> None:
        for node_id, replica in self._replicas.items():
            if not replica.is_cut_off:
                replica.save_election(epoch, leader, has_voted=node_id in granted)

    @property
    def last(self) -> ReplicaKey | None:
        """The replica that was added last, if there are several."""
        keys = [replica.key for replica in self._replicas.values()]
        return keys[-1] if len(keys) > 1 else None

    def cut_off(self, node_id: NodeId, data: bytes, end: OffsetAndEpoch, *, now_ms: int) -> None:
        """Give a replica a batch that no other replica has, and isolate it from then on."""
        replica = self._replicas[node_id]
        replica.append(data, end, now_ms=now_ms)
        replica.is_cut_off = True

    def close(self) -> None:
        for replica in self._replicas.values():
            replica.close()
