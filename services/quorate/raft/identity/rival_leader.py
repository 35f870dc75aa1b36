"""The leader of another quorum of the same cluster, found by the single voter of this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from quorate.records.ids import Epoch, NodeId


@keyword_value_type
class Rival:
    """The node that reported that it leads, its epoch, and the address at which it was asked."""

    leader_id: NodeId
    epoch: Epoch
    host: str
    port: int

    def __str__(self) -> str:
        return f"node {self.leader_id} at {self.host}:{self.port}, leader of epoch {self.epoch}"
