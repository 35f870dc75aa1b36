"""Looks at small clusters: pods q-0, q-1, ... with the node ids 0, 1, ..., and their quorum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.autojoin.actions import (
    Action,
    AddVoter,
    DeletePod,
    HandOver,
    RemoveVoter,
    Wait,
    WriteRecord,
)
from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.autojoin.decision import decide
from quorate.autojoin.state import Desired, Observation, PersistedState, Pod
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    ClusterId,
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    ReplicaKey,
)
from quorate.records.voters import Endpoint

if TYPE_CHECKING:
    from quorate.autojoin.actions import Decision

CLUSTER = ClusterId("quorum-of-q")
NOW_MS = 1_000_000
LEADER_NOW = Millis(50_000)
LATELY, LONG_AGO = Millis(49_500), Millis(10_000)


def key(node_id: int, disk: int = 0) -> ReplicaKey:
    """The node's disk; another number is another disk in the same place."""
    return ReplicaKey(NodeId(node_id), DirectoryId(bytes([node_id + 1, disk]) * 8))


def pod(
    ordinal: int,
    *,
    disk: int | None = 0,
    revision: str = "new",
    runs: bool = True,
    ready: bool = True,
    deleting: bool = False,
    cluster_id: ClusterId | None = CLUSTER,
) -> Pod:
    """A healthy pod, unless told otherwise; a silent one has no disk."""
    says = disk is not None and runs
    return Pod(
        name=f"q-{ordinal}",
        ordinal=ordinal,
        uid=f"uid-{ordinal}",
        version="1",
        revision=revision,
        is_running=runs,
        is_ready=ready and runs,
        is_deleting=deleting,
        key=key(ordinal, disk or 0) if says else None,
        cluster_id=cluster_id if says else None,
    )


def pods(count: int, *others: Pod) -> tuple[Pod, ...]:
    """So many healthy pods, and these instead of their namesakes."""
    named = {each.ordinal: each for each in others}
    ordinals = sorted(set(range(count)) | set(named))
    return tuple(named.get(each) or pod(each) for each in ordinals)


def state(
    node_id: int,
    disk: int = 0,
    *,
    fetched: Millis | None = LATELY,
    caught_up: Millis | None = LATELY,
    obstacle: m.Reason | None = None,
    host: str | None = None,
) -> m.ReplicaState:
    """A replica that follows, unless told otherwise."""
    endpoint = Endpoint("GRPC", host or f"q-{node_id}.q.default.svc", 9094)
    return m.ReplicaState(
        key=key(node_id, disk),
        log_end_offset=Offset(100),
        last_fetch_ms=fetched,
        last_caught_up_ms=caught_up if fetched == LATELY else fetched,
        endpoints=(endpoint,),
        obstacle=obstacle,
        obstacle_text="for a reason" if obstacle else "",
    )


def dead(node_id: int, disk: int = 0) -> m.ReplicaState:
    """One that has not fetched for long."""
    return state(node_id, disk, fetched=LONG_AGO)


def quorum(
    *voters: int | m.ReplicaState,
    leader: int = 0,
    observers: tuple[int | m.ReplicaState, ...] = (),
    pending: m.VoterChange | None = None,
    high_watermark: int | None = 100,
    kraft_version: int = 1,
) -> m.DescribeQuorumResponse:
    """The quorum as its leader reports it."""
    return m.DescribeQuorumResponse(
        error=ErrorCode.NONE,
        leader=m.LeaderInfo(NodeId(leader), Epoch(5)),
        high_watermark=None if high_watermark is None else Offset(high_watermark),
        voters=tuple(state(each) if isinstance(each, int) else each for each in voters),
        observers=tuple(state(each) if isinstance(each, int) else each for each in observers),
        now_ms=LEADER_NOW,
        kraft_version=kraft_version,
        uncommitted_voter_change=pending,
    )


RECORD = BootstrapRecord(CLUSTER, key(0))


def desired(replicas: int, *, revision: str = "new") -> Desired:
    """So many replicas, each pod of the revision `new`."""
    return Desired(stateful_set="q", replicas=replicas, revision=revision)


def look(
    pods: tuple[Pod, ...],
    quorum: m.DescribeQuorumResponse | None,
    *,
    persisted_state: PersistedState | None = None,
    record: BootstrapRecord | None = RECORD,
) -> Observation:
    """One look, in a cluster whose bootstrap is recorded."""
    return Observation(
        now_ms=NOW_MS,
        pods=pods,
        quorum=quorum,
        record=record,
        persisted_state=persisted_state or PersistedState(),
    )


def later(desired: Desired, seen: Observation, first: Decision, after_ms: int) -> Decision:
    """The decision of a second look, with what the first one noted."""
    return decide(
        desired, replace(seen, persisted_state=first.persisted_state, now_ms=seen.now_ms + after_ms)
    )


def summary(step: Action | Wait) -> tuple[object, ...]:
    """The fields of a step that a table can hold."""
    match step:
        case Wait(why):
            return (why,)
        case WriteRecord(record, cause):
            return (WriteRecord, record.cluster_id, record.first, cause)
        case AddVoter(who, cause) | RemoveVoter(who, cause) | HandOver(who, cause):
            return (type(step), who, cause)
        case DeletePod(name, _, _, cause):
            return (DeletePod, name, cause)


def ghosts(*nodes: int, for_ms: int = 60_000) -> PersistedState:
    """That these have been without a pod for so long."""
    return PersistedState({key(node): NOW_MS - for_ms for node in nodes})
