"""Check-quorum: a leader resigns if no majority of its voters fetches from it in time.

The interval is one and a half fetch timeouts. Without it a partitioned leader would accept writes
that it can never commit (KIP-595, "Leader's resignation"; rule `check_quorum_restart`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.records.ids import Millis, NodeId


@dataclass(slots=True)
class CheckQuorum:
    """The current interval: its end, and the other voters that have fetched in it."""

    deadline: Millis
    fetched: dict[NodeId, None] = field(default_factory=dict)

    def restart(self, deadline: Millis) -> None:
        """Begin a new interval, in which no voter has fetched yet."""
        self.fetched.clear()
        self.deadline = deadline

    def count_fetch(self, node_id: NodeId, needed: int) -> bool:
        """Count the Fetch of another voter. Returns True if `needed` of them have fetched."""
        self.fetched[node_id] = None
        return len(self.fetched) >= needed

    def has_expired(self, now: Millis) -> bool:
        """True if the interval is over."""
        return self.deadline <= now
