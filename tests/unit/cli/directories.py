"""Directories as controllers leave them, on a real file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.features.levels import METADATA_VERSION
from quorate.raft.api import AppendToLog, ControlBatch, ProposedBatch, SaveElection
from quorate.raft.messages import ElectionState
from quorate.records.batch import encode_batch
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.ids import ClusterId, Epoch, Offset, OffsetAndEpoch, ReplicaKey
from quorate.records.metadata import METADATA_VERSION_LATEST, encode_record
from quorate.records.record_types.cluster import FeatureLevelRecord
from quorate.storage.file_system import OsFileSystem
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.records.voters import VoterSet

CLUSTER = "9vqhEGZ0TtKUpzFdKXJMjA"


def make_directory(
    path: Path,
    key: ReplicaKey,
    voters: VoterSet,
    *,
    epoch: int = 1,
    values: int = 5,
    cluster_id: str = CLUSTER,
) -> Path:
    """A controller's directory whose log has three control records and `values` others."""
    assert key.directory_id is not None
    fs, directory = OsFileSystem(), str(path)
    meta = MetaProperties(key.node_id, ClusterId(cluster_id), key.directory_id)
    format_directory(
        fs, directory, Formatting(meta=meta, records=[], voters=voters), timestamp_ms=1
    )
    store, _ = LogStore.open(fs, directory, StorageConfig(node_id=key.node_id))
    store.save_election(SaveElection(ElectionState(Epoch(epoch)), 1, voters))
    ids = tuple(voter.key.node_id for voter in voters)
    first = ControlBatch((LeaderChange(ids[0], ids, ids), KRaftVersion(1), KRaftVoters(voters)))
    record = FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_LATEST)
    data = encode_batch([encode_record(record, 0)] * values, timestamp_ms=2)

    def end(offset: int) -> OffsetAndEpoch:
        return OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(offset))

    store.append(AppendToLog(Offset(0), end(3), first), timestamp_ms=2)
    batch = ProposedBatch(data, values)
    store.append(AppendToLog(Offset(3), end(3 + values), batch), timestamp_ms=2)
    ticket = store.log.begin_flush()
    assert ticket is not None
    ticket.run()
    store.log.finish_flush(ticket)
    store.close()
    return path
