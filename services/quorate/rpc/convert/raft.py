"""Raft messages from and to protobuf, with validation.

Generated types do not leave this package. Bad input raises ValueError that names the field; the
server responds with INVALID_ARGUMENT.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from quorate.raft import messages as m
from quorate.raft.identity.voter_set_mark import MARKS_MAX, VotersMark
from quorate.records.errors import ErrorCode
from quorate.records.field_limits import INT16_MAX
from quorate.records.ids import (
    UUID_BYTES,
    ZERO_UUID,
    ClusterId,
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.records.voters import Endpoint
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Sized

PORT_MAX: Final = 65_535
# Limits at the API (rule `input_bounds`): listeners and ids go into records of the log and into
# every response.
NAME_BYTES_MAX: Final = 255
LISTENERS_MAX: Final = 32
# This many characters always fit: nearly all names, which are part of every Fetch, are shorter.
_SHORT: Final = NAME_BYTES_MAX // 4
CANDIDATES_MAX: Final = 1000
# A newer voter may send reasons that are unknown here.
_REFUSALS: Final = {
    pb.VoteRefusal.Value(f"VOTE_REFUSAL_{refusal.name}"): refusal for refusal in m.VoteRefusal
}


# --- parts ----------------------------------------------------------------------------------------

# Keys and listeners are in every Fetch and every response, and nearly always the same: their
# conversions are cached.


def endpoints_of(values: Sequence[pb.Endpoint], field: str) -> tuple[Endpoint, ...]:
    at_most(values, LISTENERS_MAX, field)
    # A slice copies the field to a list in one step; a loop over the field itself ends with an
    # exception.
    return _endpoints(tuple([(each.name, each.host, each.port) for each in values[:]]), field)


@lru_cache(maxsize=64)
def _endpoints(values: tuple[tuple[str, str, int], ...], field: str) -> tuple[Endpoint, ...]:
    endpoints = []
    for name, host, port in values:
        if not name or not host or not 0 < port <= PORT_MAX:
            raise ValueError(
                f"{field}: a listener needs a name, a host and a port up to {PORT_MAX}"
            )
        if len(name) + len(host) > _SHORT:
            name_of(name, f"{field}.name")
            name_of(host, f"{field}.host")
        endpoints.append(Endpoint(name, host, port))
    return tuple(endpoints)


def at_most(values: Sized, limit: int, field: str) -> None:
    if len(values) > limit:
        raise ValueError(f"{field}: {len(values)} items where {limit} are allowed at most")


def name_of(text: str, field: str) -> str:
    if len(text) > NAME_BYTES_MAX or len(text.encode()) > NAME_BYTES_MAX:
        raise ValueError(
            f"{field}: {len(text)} characters, and it may have {NAME_BYTES_MAX} bytes at most"
        )
    return text


def cluster_of(text: str) -> ClusterId:
    return ClusterId(name_of(text, "cluster_id"))


def versions_of(low: int, high: int, field: str) -> tuple[int, int]:
    if not 0 <= low <= high <= INT16_MAX:
        raise ValueError(
            f"{field}: from {low} to {high} is no range of versions from 0 to {INT16_MAX}"
        )
    return low, high


# Cached messages may be shared: they are copied into the messages that hold them.
@lru_cache(maxsize=64)
def pb_endpoints(values: tuple[Endpoint, ...]) -> list[pb.Endpoint]:
    return [pb.Endpoint(name=e.name, host=e.host, port=e.port) for e in values]


@lru_cache(maxsize=64)
def key_of(node_id: int, directory_id: bytes | None, field: str) -> ReplicaKey:
    if node_id < 0:
        raise ValueError(f"{field}_id: {node_id} is negative")
    if directory_id is not None and len(directory_id) != UUID_BYTES:
        raise ValueError(
            f"{field}_directory_id: {len(directory_id)} bytes where {UUID_BYTES} are due"
        )
    if directory_id == ZERO_UUID:
        raise ValueError(
            f"{field}_directory_id: sixteen bytes of zero are no id; leave out one that is unknown"
        )
    return ReplicaKey(
        NodeId(node_id), DirectoryId(directory_id) if directory_id is not None else None
    )


def at_least_0(value: int, field: str) -> int:
    if value < 0:
        raise ValueError(f"{field}: {value} is negative, give 0 or more")
    return value


def _end(value: pb.EpochEndOffset) -> OffsetAndEpoch:
    return _end_of(value.epoch, value.end_offset, "epoch", "end_offset")


def _end_of(epoch: int, offset: int, epoch_field: str, offset_field: str) -> OffsetAndEpoch:
    return OffsetAndEpoch(
        epoch=Epoch(at_least_0(epoch, epoch_field)),
        offset=Offset(at_least_0(offset, offset_field)),
    )


def _pb_end(value: OffsetAndEpoch | None) -> pb.EpochEndOffset | None:
    return None if value is None else pb.EpochEndOffset(epoch=value.epoch, end_offset=value.offset)


def leader_of(value: pb.CurrentLeader) -> m.LeaderInfo:
    has_id = value.HasField("leader_id")
    leader_id = NodeId(at_least_0(value.leader_id, "leader_id")) if has_id else None
    endpoints = endpoints_of(value.endpoints, "current_leader.endpoints")
    return m.LeaderInfo(leader_id, Epoch(at_least_0(value.leader_epoch, "leader_epoch")), endpoints)


@lru_cache(maxsize=64)
def pb_leader(value: m.LeaderInfo) -> pb.CurrentLeader:
    return pb.CurrentLeader(
        leader_id=value.leader_id,
        leader_epoch=value.epoch,
        endpoints=pb_endpoints(value.endpoints),
    )


def error_of(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


# --- requests -------------------------------------------------------------------------------------


def vote_request(value: pb.VoteRequest) -> m.VoteRequest:
    voter = value.voter_directory_id if value.HasField("voter_directory_id") else None
    replica = value.replica_directory_id if value.HasField("replica_directory_id") else None
    return m.VoteRequest(
        cluster_id=cluster_of(value.cluster_id),
        voter=key_of(value.voter_id, voter, "voter"),
        replica=key_of(value.replica_id, replica, "replica"),
        replica_epoch=Epoch(at_least_0(value.replica_epoch, "replica_epoch")),
        last=_end_of(
            value.last_offset_epoch, value.last_offset, "last_offset_epoch", "last_offset"
        ),
        pre_vote=value.pre_vote,
        replica_endpoints=endpoints_of(value.replica_endpoints, "replica_endpoints"),
    )


def pb_vote_request(value: m.VoteRequest) -> pb.VoteRequest:
    return pb.VoteRequest(
        cluster_id=value.cluster_id,
        voter_id=value.voter.node_id,
        voter_directory_id=value.voter.directory_id,
        replica_id=value.replica.node_id,
        replica_directory_id=value.replica.directory_id,
        replica_epoch=value.replica_epoch,
        last_offset_epoch=value.last.epoch,
        last_offset=value.last.offset,
        pre_vote=value.pre_vote,
        replica_endpoints=pb_endpoints(value.replica_endpoints),
    )


def begin_request(value: pb.BeginQuorumEpochRequest) -> m.BeginQuorumEpochRequest:
    voter = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.BeginQuorumEpochRequest(
        cluster_of(value.cluster_id),
        key_of(value.voter_id, voter, "voter"),
        NodeId(at_least_0(value.leader_id, "leader_id")),
        Epoch(at_least_0(value.leader_epoch, "leader_epoch")),
        endpoints_of(value.leader_endpoints, "leader_endpoints"),
    )


def pb_begin_request(value: m.BeginQuorumEpochRequest) -> pb.BeginQuorumEpochRequest:
    return pb.BeginQuorumEpochRequest(
        cluster_id=value.cluster_id,
        voter_id=value.voter.node_id,
        voter_directory_id=value.voter.directory_id,
        leader_id=value.leader_id,
        leader_epoch=value.leader_epoch,
        leader_endpoints=pb_endpoints(value.leader_endpoints),
    )


def end_request(value: pb.EndQuorumEpochRequest) -> m.EndQuorumEpochRequest:
    at_most(value.preferred_candidates, CANDIDATES_MAX, "preferred_candidates")
    preferred = tuple(
        key_of(c.id, c.directory_id if c.HasField("directory_id") else None, "preferred_candidates")
        for c in value.preferred_candidates
    )
    return m.EndQuorumEpochRequest(
        cluster_of(value.cluster_id),
        NodeId(at_least_0(value.leader_id, "leader_id")),
        Epoch(at_least_0(value.leader_epoch, "leader_epoch")),
        preferred,
        endpoints_of(value.leader_endpoints, "leader_endpoints"),
    )


def pb_end_request(value: m.EndQuorumEpochRequest) -> pb.EndQuorumEpochRequest:
    return pb.EndQuorumEpochRequest(
        cluster_id=value.cluster_id,
        leader_id=value.leader_id,
        leader_epoch=value.leader_epoch,
        preferred_candidates=[
            pb.ReplicaKey(id=key.node_id, directory_id=key.directory_id)
            for key in value.preferred_candidates
        ],
        leader_endpoints=pb_endpoints(value.leader_endpoints),
    )


def _replica(value: pb.FetchRequest | pb.FetchSnapshotRequest) -> ReplicaKey | None:
    if not value.HasField("replica_id"):
        return None
    directory = value.replica_directory_id if value.HasField("replica_directory_id") else None
    return key_of(value.replica_id, directory, "replica")


def fetch_request(value: pb.FetchRequest) -> m.FetchRequest:
    return m.FetchRequest(
        cluster_id=cluster_of(value.cluster_id),
        replica=_replica(value),
        current_leader_epoch=Epoch(at_least_0(value.current_leader_epoch, "current_leader_epoch")),
        fetch_offset=Offset(at_least_0(value.fetch_offset, "fetch_offset")),
        last_fetched_epoch=Epoch(at_least_0(value.last_fetched_epoch, "last_fetched_epoch")),
        max_wait_ms=Millis(at_least_0(value.max_wait_ms, "max_wait_ms")),
        max_bytes=at_least_0(value.max_bytes, "max_bytes"),
        high_watermark=Offset(value.high_watermark),
        replica_endpoints=endpoints_of(value.replica_endpoints, "replica_endpoints"),
        read_round=value.read_round,
        incarnation=value.incarnation,
        voters_at=_mark(value.voters_at, "voters_at") if value.HasField("voters_at") else None,
    )


def _mark(value: pb.VotersMark, field: str) -> VotersMark:
    return VotersMark(
        offset=Offset(at_least_0(value.offset, f"{field}.offset")),
        epoch=Epoch(at_least_0(value.epoch, f"{field}.epoch")),
        checksum=value.checksum,
    )


def _pb_mark(value: VotersMark) -> pb.VotersMark:
    return pb.VotersMark(offset=value.offset, epoch=value.epoch, checksum=value.checksum)


def pb_fetch_request(value: m.FetchRequest) -> pb.FetchRequest:
    replica, mark = value.replica, value.voters_at
    return pb.FetchRequest(
        cluster_id=value.cluster_id,
        replica_id=replica.node_id if replica else None,
        replica_directory_id=replica.directory_id if replica else None,
        current_leader_epoch=value.current_leader_epoch,
        fetch_offset=value.fetch_offset,
        last_fetched_epoch=value.last_fetched_epoch,
        max_wait_ms=value.max_wait_ms,
        max_bytes=value.max_bytes,
        high_watermark=value.high_watermark,
        replica_endpoints=pb_endpoints(value.replica_endpoints),
        read_round=value.read_round,
        incarnation=value.incarnation,
        voters_at=None if mark is None else _pb_mark(mark),
    )


def fetch_snapshot_request(value: pb.FetchSnapshotRequest) -> m.FetchSnapshotRequest:
    return m.FetchSnapshotRequest(
        cluster_id=cluster_of(value.cluster_id),
        replica=_replica(value),
        current_leader_epoch=Epoch(at_least_0(value.current_leader_epoch, "current_leader_epoch")),
        snapshot_id=_end(value.snapshot_id),
        position=at_least_0(value.position, "position"),
        max_bytes=at_least_0(value.max_bytes, "max_bytes"),
        incarnation=value.incarnation,
    )


def pb_fetch_snapshot_request(value: m.FetchSnapshotRequest) -> pb.FetchSnapshotRequest:
    replica = value.replica
    return pb.FetchSnapshotRequest(
        cluster_id=value.cluster_id,
        replica_id=replica.node_id if replica else None,
        replica_directory_id=replica.directory_id if replica else None,
        current_leader_epoch=value.current_leader_epoch,
        snapshot_id=_pb_end(value.snapshot_id),
        position=value.position,
        max_bytes=value.max_bytes,
        incarnation=value.incarnation,
    )


# --- responses ------------------------------------------------------------------------------------


def vote_response(value: pb.VoteResponse) -> m.VoteResponse:
    return m.VoteResponse(
        error_of(value.error_code),
        leader_of(value.current_leader),
        value.vote_granted,
        _REFUSALS.get(value.refusal),
    )


def pb_vote_response(value: m.VoteResponse) -> pb.VoteResponse:
    return pb.VoteResponse(
        error_code=value.error,
        current_leader=pb_leader(value.leader),
        vote_granted=value.vote_granted,
        refusal=None if value.refusal is None else f"VOTE_REFUSAL_{value.refusal.name}",
    )


def begin_response(value: pb.BeginQuorumEpochResponse) -> m.BeginQuorumEpochResponse:
    return m.BeginQuorumEpochResponse(error_of(value.error_code), leader_of(value.current_leader))


def pb_begin_response(value: m.BeginQuorumEpochResponse) -> pb.BeginQuorumEpochResponse:
    return pb.BeginQuorumEpochResponse(
        error_code=value.error, current_leader=pb_leader(value.leader)
    )


def end_response(value: pb.EndQuorumEpochResponse) -> m.EndQuorumEpochResponse:
    return m.EndQuorumEpochResponse(error_of(value.error_code), leader_of(value.current_leader))


def pb_end_response(value: m.EndQuorumEpochResponse) -> pb.EndQuorumEpochResponse:
    return pb.EndQuorumEpochResponse(error_code=value.error, current_leader=pb_leader(value.leader))


def fetch_response(
    value: pb.FetchResponse, parse_batches: Callable[[bytes], m.FetchedBatches]
) -> m.FetchResponse:
    """Convert a response; `parse_batches` verifies the records, and raises ValueError.

    See rule `disk_fail_stop`.
    """
    # Every access to a bytes field copies it, so it is read once.
    data = value.records
    return m.FetchResponse(
        error=error_of(value.error_code),
        leader=leader_of(value.current_leader),
        high_watermark=Offset(value.high_watermark),
        log_start_offset=Offset(value.log_start_offset),
        diverging=_end(value.diverging_epoch) if value.HasField("diverging_epoch") else None,
        snapshot_id=_end(value.snapshot_id) if value.HasField("snapshot_id") else None,
        records=parse_batches(data) if data else None,
        read_round=value.read_round,
        voters_known=tuple(_mark(mark, "voters_known") for mark in value.voters_known[:MARKS_MAX]),
    )


def pb_fetch_response(value: m.FetchResponse) -> pb.FetchResponse:
    """Convert a response, in which the driver has replaced the log range by its bytes."""
    records = value.records
    assert not isinstance(records, m.LogRange), "the log's bytes are read before the answer leaves"
    return pb.FetchResponse(
        error_code=value.error,
        current_leader=pb_leader(value.leader),
        high_watermark=value.high_watermark,
        log_start_offset=value.log_start_offset,
        diverging_epoch=_pb_end(value.diverging),
        snapshot_id=_pb_end(value.snapshot_id),
        records=records.data if records is not None else b"",
        read_round=value.read_round,
        voters_known=[_pb_mark(mark) for mark in value.voters_known],
    )


def fetch_snapshot_response(value: pb.FetchSnapshotResponse) -> m.FetchSnapshotResponse:
    return m.FetchSnapshotResponse(
        error=error_of(value.error_code),
        leader=leader_of(value.current_leader),
        snapshot_id=_end(value.snapshot_id) if value.HasField("snapshot_id") else None,
        size_bytes=at_least_0(value.size, "size"),
        position=at_least_0(value.position, "position"),
        chunk=value.unaligned_records,
    )


def pb_fetch_snapshot_response(value: m.FetchSnapshotResponse) -> pb.FetchSnapshotResponse:
    chunk = value.chunk
    assert isinstance(chunk, bytes), "the snapshot's bytes are read before the answer leaves"
    return pb.FetchSnapshotResponse(
        error_code=value.error,
        current_leader=pb_leader(value.leader),
        snapshot_id=_pb_end(value.snapshot_id),
        size=value.size_bytes,
        position=value.position,
        unaligned_records=chunk,
    )
