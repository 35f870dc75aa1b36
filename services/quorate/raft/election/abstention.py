"""Abstention state of a voter that may have lost its vote at kraft.version 0.

See rule `empty_log_abstains`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.records.ids import Epoch, NodeId, Offset, ReplicaKey
    from quorate.records.voters import VoterSet


@dataclass(slots=True)
class Abstention:
    """Abstention of a replica: the voters that have answered since its start, and its goal.

    The goal is the offset that its log has to reach: the high watermark that the leader of that
    epoch reported.
    """

    is_on: bool
    heard: set[NodeId] = field(default_factory=set)
    goal: tuple[Epoch, Offset] | None = None

    def unheard(self, own: ReplicaKey, voters: VoterSet) -> list[NodeId]:
        """The other voters that have not answered yet; empty if this voter is not in the set."""
        if own not in voters:
            return []
        ids = (voter.key.node_id for voter in voters)
        return [i for i in ids if i != own.node_id and i not in self.heard]
