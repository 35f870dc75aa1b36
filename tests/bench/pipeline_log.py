"""A log of any size for the pipeline's measurements, within minutes.

It begins as `generate-log` writes it, through the controller, up to that one's last snapshot. What
follows is more of the same kind, record for record valid, written through the storage code: topics
that stay, whose partitions lose and get back each broker in turn, and topics of jobs that come and
go. A partition's records recur, so each is encoded once. A snapshot stands shortly before the end.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from quorate.controller.configs.messages import ResourceType
from quorate.raft.api import TruncateLog
from quorate.records.batch import encode_batch, read_header
from quorate.records.ids import DirectoryId, Offset, OffsetAndEpoch, TopicId
from quorate.records.metadata import (
    METADATA_VERSION_LATEST,
    ConfigRecord,
    KnownRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
    record_version,
)
from quorate.sim.log_generator.scenario import FIRST_BROKER_ID
from quorate.sim.log_generator.unsynced_files import UnsyncedFileSystem, sync_tree
from quorate.storage.file_system import OsFileSystem
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import read_meta
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASE_RECORDS: Final = 500_000
BROKERS: Final = 100
_BROKERS: Final = range(FIRST_BROKER_ID, FIRST_BROKER_ID + BROKERS)
_TOPICS: Final = 1_500
_PARTITIONS: Final = 12
_COPIES: Final = 3
# While one broker is away and back.
_JOBS: Final = 9
_CONFIGS: Final = 13
_JOBS_AT_ONCE: Final = 60
_JOB_PARTITIONS: Final = (8, 16, 32, 64)
_JOB_PARTITIONS_MAX: Final = max(_JOB_PARTITIONS)
# As many records as batches of a generated week have.
_BATCHES: Final = (1, 2, 4, 8, 13, 16, 32, 64, 100)
_STEP_MS: Final = 30_000
_WRITTEN_TOGETHER: Final = 100
# Snapshots come every 20 MB of records by default, which are about so many.
_BEHIND_SNAPSHOT: Final = 150_000


def base_log(folder: Path) -> Path:
    """A generated week, made once."""
    path = folder / f"week-{BASE_RECORDS}"
    if not path.exists():
        command = [sys.executable, "-m", "quorate.cli.main", "generate-log", str(path)]
        command += ["--records", str(BASE_RECORDS), "--brokers", str(BROKERS)]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return path


def large_log(folder: Path, records: int) -> Path:
    """A log of about so many records, made once."""
    path = folder / f"log-{records}"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(base_log(folder), unfinished)
        _Continuation(str(unfinished)).run(records)
        sync_tree(str(unfinished))
        unfinished.rename(path)
    return path


def _encoded(record: KnownRecord) -> bytes:
    return encode_record(record, record_version(type(record), METADATA_VERSION_LATEST))


@dataclass
class _Partition:
    """A partition that stays, its records' bytes by broker, and how often it changed."""

    record: PartitionRecord
    away: dict[int, bytes] = field(default_factory=dict)
    back: dict[int, bytes] = field(default_factory=dict)
    preferred: bytes = b""
    changes: int = 0
    leaders: int = 0

    def __post_init__(self) -> None:
        state = self.record
        for broker in state.replicas:
            others = tuple(each for each in state.replicas if each != broker)
            leader = others[0] if broker == state.leader else -2
            self.away[broker] = self._change(isr=others, leader=leader)
            self.back[broker] = self._change(isr=(*others, broker))
        self.preferred = self._change(leader=state.leader)

    def _change(self, *, isr: tuple[int, ...] | None = None, leader: int = -2) -> bytes:
        return _encoded(
            PartitionChangeRecord(
                partition_id=self.record.partition_id,
                topic_id=self.record.topic_id,
                isr=isr,
                leader=leader,
            )
        )

    def restarted(self, broker: int) -> None:
        """A broker was away and is back."""
        is_leader = broker == self.record.leader
        self.changes += 3 if is_leader else 2
        self.leaders += 2 if is_leader else 0
        others = tuple(each for each in self.record.replicas if each != broker)
        self.record = replace(self.record, isr=(*others, broker))

    @property
    def state(self) -> bytes:
        """The records that a snapshot has of it."""
        state = self.record
        return _encoded(
            replace(
                state,
                leader_epoch=state.leader_epoch + self.leaders,
                partition_epoch=state.partition_epoch + self.changes,
            )
        )


class _Continuation:
    """Continues from a directory's newest snapshot."""

    def __init__(self, root: str) -> None:
        self._random = random.Random("continuation")
        fs = UnsyncedFileSystem()
        meta = read_meta(OsFileSystem(), f"{root}/meta.properties")
        assert meta is not None
        config = StorageConfig(node_id=meta.node_id, cluster_id=meta.cluster_id, cache_bytes=0)
        self._store, _recovered = LogStore.open(fs, root, config)
        log = self._store.log
        newest = log.state.newest_snapshot
        assert newest is not None
        self._store.truncate(TruncateLog(newest, log.generation + 1))
        assert log.end == newest
        self._before = self._store.read_snapshot(newest).records
        last = log.read(Offset(newest.offset - 1), end=newest.offset, bytes_max=1)
        self._now_ms = read_header(last).max_timestamp_ms
        self._epoch = newest.epoch
        self._end = int(newest.offset)
        self._batches: list[bytes] = []
        self._topics: list[bytes] = []
        self._partitions: list[_Partition] = []
        self._jobs: list[tuple[TopicId, list[bytes]]] = []
        self._job_count = 0
        self._configs: dict[int, bytes] = {}
        self._templates = [self._job_partition(number) for number in range(_JOB_PARTITIONS_MAX)]

    def run(self, records: int) -> None:
        """Write up to that many records, and a snapshot on the way."""
        self._make_topics()
        rounds = self._rounds()
        for until, has_snapshot in ((records - _BEHIND_SNAPSHOT, True), (records, False)):
            while self._end < until:
                next(rounds)
            self._flush()
            if has_snapshot:
                self._snapshot()
        self._store.log.sync_flushed_end()
        self._store.close()

    def _rounds(self) -> Iterator[None]:
        """Let each broker leave and come back, with other changes in between."""
        by_broker: dict[int, list[_Partition]] = {broker: [] for broker in _BROKERS}
        for partition in self._partitions:
            for broker in partition.record.replicas:
                by_broker[broker].append(partition)
        while True:
            for broker, partitions in by_broker.items():
                self._write([each.away[broker] for each in partitions])
                for _ in range(_JOBS):
                    self._job()
                self._write([each.back[broker] for each in partitions])
                for number in range(_CONFIGS):
                    self._configs[number] = self._config(number)
                    self._append([self._configs[number]])
                led = [each for each in partitions if each.record.leader == broker]
                self._write([each.preferred for each in led])
                for each in partitions:
                    each.restarted(broker)
                yield

    def _make_topics(self) -> None:
        for number in range(_TOPICS):
            topic_id = TopicId(self._random.randbytes(16))
            made = [_encoded(TopicRecord(name=f"lasting-{number}", topic_id=topic_id))]
            self._topics += made
            for partition_id in range(_PARTITIONS):
                replicas = tuple(self._random.sample(_BROKERS, _COPIES))
                record = self._partition_record(partition_id, topic_id, replicas)
                self._partitions.append(_Partition(record))
                made.append(_encoded(record))
            self._append(made)

    def _partition_record(
        self, partition_id: int, topic_id: TopicId, replicas: tuple[int, ...]
    ) -> PartitionRecord:
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(DirectoryId(self._random.randbytes(16)) for _ in replicas),
        )

    def _job_partition(self, number: int) -> tuple[bytes, bytes]:
        """A partition's record, parted where its topic's id belongs."""
        placeholder = TopicId(bytes(range(200, 216)))
        replicas = tuple(self._random.sample(_BROKERS, 2))
        before, _, after = _encoded(
            self._partition_record(number, placeholder, replicas)
        ).partition(placeholder)
        return before, after

    def _job(self) -> None:
        """A job's topic comes, and the oldest one goes."""
        self._job_count += 1
        topic_id = TopicId(self._random.randbytes(16))
        topic = TopicRecord(name=f"later-job-{self._job_count}", topic_id=topic_id)
        count = self._random.choice(_JOB_PARTITIONS)
        parts = self._templates[:count]
        made = [_encoded(topic), *(before + topic_id + after for before, after in parts)]
        self._append(made)
        self._jobs.append((topic_id, made))
        if len(self._jobs) > _JOBS_AT_ONCE:
            gone, _ = self._jobs.pop(0)
            self._append([_encoded(RemoveTopicRecord(topic_id=gone))])

    def _config(self, number: int) -> bytes:
        return _encoded(
            ConfigRecord(
                resource_type=int(ResourceType.TOPIC),
                resource_name=f"lasting-{number}",
                name="retention.ms",
                value=str(self._end),
            )
        )

    def _write(self, values: list[bytes]) -> None:
        """In batches of many sizes."""
        at = 0
        while at < len(values):
            count = self._random.choice(_BATCHES)
            self._append(values[at : at + count])
            at += count

    def _append(self, values: list[bytes]) -> None:
        self._now_ms += _STEP_MS
        batch = encode_batch(
            values, timestamp_ms=self._now_ms, base_offset=self._end, epoch=self._epoch
        )
        self._batches.append(batch)
        self._end += len(values)
        if len(self._batches) >= _WRITTEN_TOGETHER:
            self._flush()

    def _flush(self) -> None:
        log = self._store.log
        if self._batches:
            log.append(log.end.offset, b"".join(self._batches))
            self._batches.clear()
        ticket = log.begin_flush()
        if ticket is not None:
            ticket.run()
            log.finish_flush(ticket)

    def _snapshot(self) -> None:
        """Write the content of the log so far, as a controller would."""
        values = [*self._before, *self._topics, *(each.state for each in self._partitions)]
        values += [value for _, made in self._jobs for value in made]
        values += self._configs.values()
        snapshot_id = OffsetAndEpoch(epoch=self._epoch, offset=Offset(self._end))
        writer = self._store.begin_snapshot(snapshot_id, timestamp_ms=self._now_ms)
        writer.append(values)
        self._store.finish_snapshot(writer)
