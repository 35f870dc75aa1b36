"""Abstention state of a voter that may have lost its vote at kraft.version 0 (rule 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.records.ids import Epoch, NodeId, Offset, ReplicaKey
    from quorate.records.voters import VoterSet


@dataclass(slots=True)
class Abstention:
    """Whether a replica abstains, whom it has heard in this life, and how far it has to come.

    The goal is what the leader of that epoch said to be committed.
    """

    is_on: bool
    heard: set[NodeId] = field(default_factory=set)
    goal: tuple[Epoch, Offset] | None = None

    def unheard(self, own: ReplicaKey, voters: VoterSet) -> list[NodeId]:
        """The others of these voters that were not heard; nobody where this one is none of them."""
        if own not in voters:
            return []
        ids = (voter.key.node_id for voter in voters)
        return [i for i in ids if i != own.node_id and i not in self.heard]
