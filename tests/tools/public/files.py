"""Names in directories of controllers, backups, local quorums and outputs of the pipeline."""

from __future__ import annotations

import json
import tempfile
from importlib import import_module
from inspect import getmembers
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.cli.local_quorum import LocalQuorum
from quorate.pipeline.jobs.registry import JOBS
from quorate.pipeline.source.frame_schema import COLUMNS, TYPED, spark_schema
from quorate.pipeline.source.options import _NAMES
from quorate.pipeline.source.stream_offset import StreamOffset
from quorate.raft.identity.rival_leader import Rival
from quorate.raft.messages import ElectionState
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
from quorate.settings.properties import parse_properties
from quorate.sim.engine.disk import SimulatedDisk
from quorate.storage import layout
from quorate.storage.disaster_recovery import backup_file
from quorate.storage.disaster_recovery.backup_file import Manifest, encode_manifest
from quorate.storage.disaster_recovery.recovery_plan import (
    ConsultedLog,
    RecoveryKind,
    RecoveryPlan,
    encode_plan,
)
from quorate.storage.flushed_end import FlushedEnd, encode_slot
from quorate.storage.healing import HealingState, encode_healing
from quorate.storage.meta_properties import MetaProperties, encode_meta, ensure_partition_metadata
from quorate.storage.pod_domain import PodDomain
from quorate.storage.quorum_state import encode_quorum_state
from quorate.storage.rival_file import RememberedRival, encode_rival
from tests.tools.public.syntax import calls, keys_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_META = MetaProperties(NodeId(1), ClusterId("c"), DirectoryId(b"\1" * 16))
_END = OffsetAndEpoch(epoch=Epoch(1), offset=Offset(2))
_KEY = ReplicaKey(NodeId(1), DirectoryId(b"\1" * 16))
_ENDPOINTS = (Endpoint("GRPC", "host", 9094),)
_VOTERS = VoterSet((Voter(_KEY, _ENDPOINTS),), (_KEY,))


def on_disk() -> Iterator[str]:
    """Names of files and suffixes, and the keys in those that are text."""
    for name, text in getmembers(layout):
        if name.isupper() and isinstance(text, str):
            yield f"file or suffix: {text}"
    yield from (f"file or suffix: {suffix}" for suffix in layout.INDEX_SUFFIXES)
    yield f"file: {layout.segment_name(5)}"
    yield f"file: {layout.checkpoint_name(_END)}"
    yield f"file: {layout.rescue_record_name(5)}"
    for name, data in _contents().items():
        yield from (f"{name}: {key}" for key in _keys(json.loads(data)))
    # Annotations and rows of Spark are among them.
    for module, call in calls(json.dumps.__name__):
        yield from (f"JSON: {key}" for key in keys_of(module, call.args[0]))
    for key in parse_properties(encode_meta(_META).decode()):
        yield f"{layout.META_PROPERTIES}: {key}"
    disk = SimulatedDisk()
    disk.make_dirs("/d")
    ensure_partition_metadata(disk, "/d/f")
    yield from (
        f"{layout.PARTITION_METADATA}: {line}" for line in disk.read("/d/f").decode().splitlines()
    )
    slot = encode_slot(1, FlushedEnd(_END, 1, (_KEY,), 1, _META.cluster_id, _META.directory_id))
    yield f"{layout.FLUSHED_END}: begins with {slot[:4].decode()}, {len(slot)} bytes"
    yield f"{layout.POD_DOMAIN}: {PodDomain(pod='POD', service='SERVICE', namespace='NAMESPACE')}"
    yield from (f"backup: {name}" for name in (backup_file.MANIFEST, backup_file.CHECKSUMS))
    yield f"backup: format {backup_file.FORMAT}"
    yield from (f"rescue record: kind {kind.value}" for kind in RecoveryKind)


def _contents() -> dict[str, bytes]:
    state = ElectionState(Epoch(1), NodeId(1), _KEY)
    plan = RecoveryPlan(
        kind=RecoveryKind.RECOVER,
        started_ms=1,
        before=_META,
        after=_META,
        end=_END,
        epoch=Epoch(2),
        endpoints=_ENDPOINTS,
        voters_before=_VOTERS,
        witnesses=(ConsultedLog(source="", key=_KEY, epoch=Epoch(1), end=_END, highest_end=_END),),
    )
    rival = Rival(leader_id=NodeId(1), epoch=Epoch(1), host="host", port=9094)
    manifest = Manifest(
        meta=_META, taken_ms=1, epoch=Epoch(1), end=_END, snapshot=_END, is_committed=True
    )
    return {
        f"{layout.QUORUM_STATE} of kraft.version {version}": encode_quorum_state(
            state, version, _VOTERS
        )
        for version in (0, 1)
    } | {
        layout.HEALING: encode_healing(HealingState(_END, (_KEY,))),
        layout.RESCUE: encode_plan(plan),
        layout.RIVAL: encode_rival(RememberedRival(_META, rival)),
        f"backup: {backup_file.MANIFEST}": encode_manifest(manifest),
        "local quorum: quorum.json": _local_quorum(),
    }


def _local_quorum() -> bytes:
    with tempfile.TemporaryDirectory() as root:
        quorum = LocalQuorum(Path(root), _META.cluster_id, 9094, (_META.directory_id,))
        quorum.save(is_formatted=True)
        (written,) = Path(root).iterdir()
        assert written.name == "quorum.json"
        return written.read_bytes()


def _keys(value: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    match value:
        case dict():
            for key, inner in value.items():
                yield f"{path}{key}"
                yield from _keys(inner, f"{path}{key}.")
        case list():
            for inner in value:
                yield from _keys(inner, path)


# --- the pipeline ---------------------------------------------------------------------------------


def source() -> Iterator[str]:
    """Options and columns of the data source, what its checkpoint has, and the jobs."""
    yield from (f"option {name}" for name in _NAMES)
    yield from (f"column {name} {kind}" for name, kind in COLUMNS.items())
    yield from (f"column {spark_schema((), (name,))}" for name in TYPED)
    place = StreamOffset(1, epoch=1, cluster="c", log_start=1, snapshot="1-1", through="1-1")
    yield from (f"checkpoint: {key}" for key in place.to_json())
    for job in JOBS.values():
        yield f"job {job.name}"
        yield from (f"job {job.name}: table {table}" for table in job.tables)


def tables() -> Iterator[str]:
    """Columns of the jobs' tables, and the lake that a job writes; needs Spark."""
    from quorate.pipeline.jobs import ingest
    from quorate.pipeline.jobs import sink_log as sink_notes
    from quorate.pipeline.source.data_source import KraftDataSource

    for job in JOBS.values():
        schemas = import_module(job.module).SCHEMAS if job.tables else {}
        for table, schema in schemas.items():
            for field in schema.fields:
                yield f"{job.name}: {table}.{field.name} {field.dataType.simpleString()}"
    yield f"format {KraftDataSource.name()}"
    for field in ingest.SCHEMA.fields:
        yield f"lake: column {field.name} {field.dataType.simpleString()}"
    yield f"lake: folders by {', '.join(ingest.PARTITIONS)}"
    yield f"lake: record_type={ingest.DAMAGED}"
    yield f"lake: {sink_notes.NOTES}"
    yield f"lake: {ingest._CHECKPOINT}"
