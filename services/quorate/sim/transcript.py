"""Transcript of a run: events with trace events and effects, as text.

    [  2000] 2 > TimerFired
                 no fetch from leader 1 for 2000 ms: become prospective, ask for pre-votes
                 SendRequest to 1 Vote(pre_vote, epoch=4, candidate=2, last=17@4)

The bracket holds the simulated milliseconds, then comes the node. Lines with `*` instead of a node
are the cluster's own: faults, restarts, results of clients. Formatting is deferred until it is
read.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from quorate.raft import api, messages
from quorate.records.ids import OffsetAndEpoch, ReplicaKey
from quorate.records.voters import Voter, VoterSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import DataclassInstance

    from quorate.raft.api import Effect, Event, Update
    from quorate.raft.messages import MembershipRequest
    from quorate.records.ids import NodeId

INDENT: Final = " " * 13
_HIDDEN: Final = frozenset(
    {
        "cause",
        "cluster_id",
        "endpoints",
        "leader_endpoints",
        "max_bytes",
        "max_wait_ms",
        "refusal",
        "replica_endpoints",
    }
)


class Line(NamedTuple):
    """One event of one node, or a line about the cluster."""

    time_us: int
    node: NodeId | None
    event: Event | str
    update: Update | None

    def __str__(self) -> str:
        who = "*" if self.node is None else str(self.node)
        what = self.event if isinstance(self.event, str) else format_value(self.event)
        lines = [f"[{self.time_us // 1000:6d}] {who} > {what}"]
        if self.update is not None:
            lines.extend(INDENT + note.text for note in self.update.trace)
            lines.extend(INDENT + format_effect(effect) for effect in self.update.effects)
        return "\n".join(lines)


class Reader(Protocol):
    """A consumer of a transcript's lines while the run produces them."""

    def add(self, line: Line) -> None: ...


@dataclass(slots=True)
class Transcript:
    """The last `keep` lines; with `digest` every line is formatted and hashed when it is added.

    A `reader` receives all lines.
    """

    keep: int = 40
    digest: bool = False
    reader: Reader | None = None
    lines: deque[Line] = field(init=False)
    count: int = 0
    _hash: Any = field(init=False)

    def __post_init__(self) -> None:
        self.lines = deque(maxlen=self.keep)
        self._hash = hashlib.sha256()

    def add(
        self, time_us: int, node: NodeId | None, event: Event | str, update: Update | None = None
    ) -> None:
        line = Line(time_us, node, event, update)
        self.lines.append(line)
        self.count += 1
        if self.reader is not None:
            self.reader.add(line)
        if self.digest:
            self._hash.update(str(line).encode() + b"\n")

    def hexdigest(self) -> str:
        """The hash over all lines so far; meaningful with `digest` only."""
        return str(self._hash.hexdigest())

    def tail(self) -> str:
        return "\n".join(str(line) for line in self.lines)


def format_effect(effect: Effect) -> str:
    """One effect as one line."""
    match effect:
        case api.SendRequest(call=_, to=to, request=request):
            return f"SendRequest to {to.node_id} {format_value(request)}"
        case api.SendReply(token=token, response=response):
            return f"SendReply {token} {format_value(response)}"
        case api.AppendToLog(base_offset=base, end=end, payload=payload):
            return f"AppendToLog {base}..{end} {format_value(payload)}"
        case api.ProbeLeader(call=_, to=to):
            return f"ProbeLeader {to.node_id}"
        case api.TruncateLog(to=point, generation=generation):
            return f"TruncateLog to {point} generation={generation}"
        case _:
            return format_value(effect)


def format_change(request: MembershipRequest) -> str:
    """An operator's request, with the directory ids of the voters in it."""
    return _format_dataclass(request, keys=str)


def format_value(value: object) -> str:
    """A value in short: defaults, cluster ids, endpoints and bytes are left out."""
    match value:
        case messages.VoteRequest() as vote:
            kind = "pre_vote" if vote.pre_vote else "vote"
            who = vote.replica.node_id
            return f"Vote({kind}, epoch={vote.replica_epoch}, candidate={who}, last={vote.last})"
        case OffsetAndEpoch():
            return str(value)
        case ReplicaKey():
            return str(value.node_id)
        case VoterSet():
            return "{" + ", ".join(format_value(voter) for voter in value) + "}"
        case Voter():
            return str(value.key.node_id)
        case api.ProposedBatch(data=_, record_count=count):
            return f"{count} records"
        case api.ControlBatch(records=records):
            return format_value(records)
        case messages.FetchedBatches(data=_, batches=batches):
            if not batches:
                return "nothing"
            return f"{batches[0].base_offset}..{batches[-1].last_offset}"
        case messages.LogRange(start=start, end=end):
            return f"{start}..{end - 1}"
        case messages.SnapshotRange(snapshot_id=snapshot_id, position=position):
            return f"{snapshot_id} from {position}"
        case messages.LeaderInfo(leader_id=leader_id, epoch=epoch):
            return f"{leader_id}@{epoch}"
        case messages.SnapshotInfo(snapshot_id=snapshot_id, size_bytes=size):
            return f"{snapshot_id} ({size} B)"
        case bytes():
            return f"{len(value)} B"
        case Enum():
            return value.name
        case tuple():
            return "[" + ", ".join(format_value(item) for item in value) + "]"
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _format_dataclass(value)
        case _:
            return str(value)


def _format_dataclass(
    value: DataclassInstance, keys: Callable[[ReplicaKey], str] | None = None
) -> str:
    name = type(value).__name__.removesuffix("Request")
    parts = []
    for item in fields(value):
        content = getattr(value, item.name)
        if item.name in _HIDDEN or content == item.default:
            continue
        if keys is not None and isinstance(content, ReplicaKey):
            parts.append(f"{item.name}={keys(content)}")
        elif isinstance(content, bool):
            parts.append(item.name if content else f"{item.name}=no")
        elif item.name in {"request", "response"}:
            parts.append(format_value(content))
        else:
            parts.append(f"{item.name}={format_value(content)}")
    return f"{name}({', '.join(parts)})" if parts else name
