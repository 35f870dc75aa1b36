"""Rejection of a voter-set change: error code, reason and message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import MembershipResponse
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.raft.messages import LeaderInfo, Reason
    from quorate.records.errors import ErrorCode


@value_type
class Rejection:
    """Kafka's error code, the reason as an enum, a message, and its values for programs."""

    error: ErrorCode
    reason: Reason
    text: str
    metadata: tuple[tuple[str, str], ...] = ()

    def response(self, leader: LeaderInfo) -> MembershipResponse:
        """The response to the caller that requested the change."""
        return MembershipResponse(self.error, self.text, leader, self.reason, self.metadata)
