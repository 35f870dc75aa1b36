"""Read-only view of cluster and nodes, for checkers and invariants.

Modules above this one create clusters and nodes; modules below it know them by these protocols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from quorate.controller.image import MetadataImage
    from quorate.raft.api import PublishProgress
    from quorate.raft.core import RaftCore
    from quorate.records.ids import (
        DirectoryId,
        Epoch,
        Millis,
        NodeId,
        Offset,
        OffsetAndEpoch,
        ReplicaKey,
    )
    from quorate.records.voters import Endpoint, Voter
    from quorate.sim.checkers.log_view import LogView
    from quorate.sim.checkers.oracle import Oracle
    from quorate.sim.sim_options import WorldOptions
    from quorate.sim.workload.pending_requests import WaitingRequest
    from quorate.storage.log_store import LogStore


class NodeView(Protocol):
    """A machine, its log, and the process that runs or ran there last."""

    @property
    def node_id(self) -> NodeId: ...
    @property
    def directory_id(self) -> DirectoryId: ...
    @property
    def key(self) -> ReplicaKey: ...
    @property
    def endpoints(self) -> tuple[Endpoint, ...]: ...
    @property
    def incarnation(self) -> int:
        """The number of the node's current process, counted from its first start."""
        ...

    @property
    def local_ms(self) -> Millis:
        """Its own monotonic clock."""
        ...

    @property
    def log(self) -> LogView: ...
    @property
    def progress(self) -> PublishProgress | None:
        """The last state that the core reported; None before the first one."""
        ...

    @property
    def led_epoch(self) -> Epoch | None:
        """The last epoch that this process has led."""
        ...

    @property
    def core(self) -> RaftCore: ...
    @property
    def store(self) -> LogStore: ...
    @property
    def checked(self) -> Collection[OffsetAndEpoch]:
        """The snapshots that this process has read to the end."""
        ...

    @property
    def was_harmed(self) -> bool:
        """True if there was damage for the last recovery to find."""
        ...

    @property
    def flushed_end_on_platter(self) -> Offset | None:
        """The flushed end that a power loss leaves; None if the file was tampered with."""
        ...

    @property
    def faults_met(self) -> Collection[str]:
        """The errors that its disk or machine has returned to this process, and its bit rot.

        The bits may have flipped before this process started, if its recovery encountered them.
        """
        ...

    @property
    def is_healing(self) -> bool: ...
    @property
    def is_intact(self) -> bool:
        """True if its log is complete and has no undetected damage."""
        ...

    @property
    def is_stepped(self) -> bool:
        """True if its core gets events: it is neither paused nor blocked by a disk call."""
        ...

    @property
    def is_at_rest(self) -> bool:
        """True if its core gets events and all its effects are done."""
        ...

    @property
    def wake_at_ms(self) -> Millis | None:
        """The wake-up time that its core, at rest, has requested."""
        ...

    @property
    def is_hanging(self) -> bool:
        """True if its disk is stalled."""
        ...

    @property
    def is_healthy(self) -> bool:
        """True if no fault keeps this voter from voting for another or from being elected."""
        ...

    @property
    def troubles(self) -> int:
        """The number of faults that have hit the node."""
        ...

    @property
    def is_stopping(self) -> bool:
        """True if this process was asked to stop."""
        ...

    @property
    def image(self) -> MetadataImage:
        """The committed metadata, as its controller has it."""
        ...

    @property
    def active_epoch(self) -> Epoch | None:
        """The epoch in which its controller takes writes."""
        ...

    @property
    def waiting(self) -> Iterable[WaitingRequest]:
        """The clients whose writes have no answer yet."""
        ...

    @property
    def oldest_read_ms(self) -> int | None:
        """The start of the oldest read in progress, by the node's own clock."""
        ...

    def is_found_by(self, other: NodeView, /) -> bool:
        """True if the other node looks for this voter at its current address."""
        ...

    def is_on_platter(self, snapshot_id: OffsetAndEpoch) -> bool:
        """True if that snapshot survives any power loss."""
        ...

    def is_voter(self, voter: Voter) -> bool:
        """True if `voter` has this directory id; without directory ids, this node id."""
        ...

    def holds(self, voter: Voter, offset: Offset, chain: int | None) -> bool:
        """True if this voter holds the log with that chain value durably, or once did."""
        ...

    def held_committed(self, voter: Voter, offset: Offset) -> bool:
        """The same for the committed log."""
        ...

    def safe_end(self) -> Offset:
        """The log end after a power loss now."""
        ...


class ClusterView(Protocol):
    """All nodes, the time, and the committed history."""

    @property
    def seed(self) -> int: ...
    @property
    def options(self) -> WorldOptions: ...
    @property
    def now_us(self) -> int: ...
    @property
    def now_ms(self) -> int: ...
    @property
    def is_calm(self) -> bool:
        """True if faults have stopped."""
        ...

    @property
    def nodes(self) -> Mapping[NodeId, NodeView]: ...
    @property
    def oracle(self) -> Oracle: ...

    def take_cut_links(self) -> Collection[tuple[NodeId, NodeId]]:
        """The links that were cut at any time since the last call."""
        ...

    def running(self) -> Sequence[NodeView]:
        """The nodes whose process runs, paused ones included."""
        ...
