"""What whoever judges a world sees of it and of its nodes: it looks, and changes nothing.

Worlds and nodes are made in modules above this one, of those below it, and know both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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
    from quorate.sim.faults import Options
    from quorate.sim.logview import LogView
    from quorate.sim.oracle import Oracle
    from quorate.storage.store import LogStore


class Node(Protocol):
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
        """Which life of it this is: a count of starts."""
        ...

    @property
    def local_ms(self) -> Millis:
        """Its own monotonic clock."""
        ...

    @property
    def log(self) -> LogView: ...
    @property
    def progress(self) -> PublishProgress | None:
        """What the core told last; None while there is none."""
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
    def was_damaged(self) -> bool:
        """Whether its log lacks what rotted, or lacked it in this life."""
        ...

    @property
    def was_harmed(self) -> bool:
        """Whether there was damage for the last recovery to find."""
        ...

    @property
    def is_healing(self) -> bool: ...

    def is_voter(self, voter: Voter) -> bool:
        """Whether `voter` means this very disk; without directory ids any of this node."""
        ...

    def safe_end(self) -> Offset:
        """Where the log would end if the power went now."""
        ...


class World(Protocol):
    """All nodes, the time, and what history holds."""

    @property
    def seed(self) -> int: ...
    @property
    def options(self) -> Options: ...
    @property
    def now_us(self) -> int: ...
    @property
    def now_ms(self) -> int: ...
    @property
    def is_calm(self) -> bool:
        """Whether faults have stopped."""
        ...

    @property
    def nodes(self) -> Mapping[NodeId, Node]: ...
    @property
    def oracle(self) -> Oracle: ...

    def running(self) -> Sequence[Node]:
        """The nodes whose process runs, paused ones included."""
        ...
