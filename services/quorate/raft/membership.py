"""Changes of the voter set asked for by others: answered UNSUPPORTED_VERSION until they are built.

The rules about sets themselves (one change at a time, in force when appended, rolled back on
truncation) already hold in `leading`, `log_state` and `following`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import MembershipRequest, MembershipResponse
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.replica import Replica


class Membership:
    """AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, UpdateFeatures, TransferLeadership."""

    def __init__(self, replica: Replica) -> None:
        self.r = replica

    def handle(self, request: MembershipRequest) -> MembershipResponse:
        """Every change is refused by name, whoever leads."""
        name = type(request).__name__.removesuffix("Request")
        message = f"{name} is not supported by this release; the voters are those of `format`"
        return MembershipResponse(ErrorCode.UNSUPPORTED_VERSION, message, self.r.leader_info)
