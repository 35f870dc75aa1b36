"""Interface, results and errors of the admin API.

The requests are those of the raft protocol, and one of its own. Fields that can be read from the
quorum may be left out: an empty cluster id, no directory id, no listeners, epoch 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from quorate.raft import messages as m
from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.records.errors import ErrorCode

# Reasons of the sidecar, in addition to those of the leader (raft.messages.Reason).
NO_LEADER: Final = "NO_LEADER"
OUTCOME_UNKNOWN: Final = "OUTCOME_UNKNOWN"
INVALID_REQUEST: Final = "INVALID_REQUEST"
AMBIGUOUS_OBSERVER: Final = "AMBIGUOUS_OBSERVER"
OBSERVER_NOT_FOUND: Final = "OBSERVER_NOT_FOUND"
FEATURE_UNSUPPORTED: Final = "FEATURE_UNSUPPORTED"


@value_type
class PrepareStopRequest:
    """A request to prepare the sidecar's controller for a stop; with `leave` permanently."""

    leave: bool = False


AdminRequest: TypeAlias = m.DescribeQuorumRequest | m.MembershipRequest | PrepareStopRequest


@value_type
class ChangeResult:
    """A committed change: the final request, and the current leader."""

    request: m.MembershipRequest
    leader: m.LeaderInfo


@keyword_value_type
class PrepareStopResult:
    """Result of PrepareStop: the steps taken, and the state in which the controller stops.

    `is_voter` is None if no leader reported it, `leader` NOTHING_KNOWN if none was asked.
    `without_leave` is the reason why a voter that returns stops without a shutdown permit.
    `is_needed` is set if the quorum needs the voter and the wait has timed out.
    """

    handed_over: bool
    removed: bool
    is_voter: bool | None
    leader: m.LeaderInfo
    has_leave: bool = False
    without_leave: str = ""
    is_needed: bool = False


class AdminError(Exception):
    """The failure of an admin call: `str()` is a sentence with the remedy.

    `metadata` has its values for programs: names in snake_case, values as text.
    """

    def __init__(
        self,
        reason: str,
        error: ErrorCode,
        message: str,
        metadata: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.error = error
        self.message = message
        self.metadata = dict(metadata)

    @classmethod
    def of(cls, answer: m.MembershipResponse) -> AdminError:
        """The error in a leader's response; without a reason, the reason is Kafka's error name."""
        reason = answer.reason.value if answer.reason is not None else answer.error.name
        leader: list[tuple[str, str]] = [("leader_epoch", str(answer.leader.epoch))]
        if answer.leader.leader_id is not None:
            leader.append(("leader_id", str(answer.leader.leader_id)))
        return cls(reason, answer.error, answer.message, (*leader, *answer.metadata))


class AdminHandler(Protocol):
    """The admin API. Calls end within seconds, or their own default; all raise AdminError."""

    async def change(
        self, request: m.MembershipRequest, timeout_s: float | None
    ) -> ChangeResult: ...

    async def describe(self, timeout_s: float | None) -> m.DescribeQuorumResponse: ...

    async def prepare_stop(
        self, request: PrepareStopRequest, timeout_s: float | None
    ) -> PrepareStopResult: ...
