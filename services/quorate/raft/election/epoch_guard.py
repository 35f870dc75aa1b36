"""Rejects peer epochs that no election can have produced.

See rules `no_state_from_rejections` and `input_bounds`. Each message is filtered once, before its
handler. The epoch of a message with a top-level error is ignored (rule `no_state_from_rejections`),
and so is a response of an older epoch. No message may use up the epochs that elections need
(rule `input_bounds`): an epoch is a 32-bit number that never decreases
(docs/decisions/0004-epochs-that-are-believed.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestFailure
from quorate.raft.messages import NOTHING_KNOWN, ApiVersionsResponse, MembershipResponse
from quorate.raft.request_manager import RequestKind
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.messages import LeaderInfo, PeerResponse
    from quorate.raft.replica import Replica
    from quorate.raft.request_manager import InFlightRequest
    from quorate.records.ids import Epoch

EPOCH_MAX: Final = 2**31 - 1
# Above this, every epoch is rejected, whatever its source: the rest is enough for an election every
# second for half a year.
EPOCH_ACCEPTED_MAX: Final = EPOCH_MAX - 2**24
# An election every second for twelve days, or a thousand recoveries, explain such a jump.
EPOCH_JUMP_MAX: Final = 2**20
# At this rate a continuous stream of forged epochs needs eight months to reach the highest one.
EPOCH_JUMP_REFILL_PER_SECOND: Final = 100
# A voter or bootstrap server that was asked for the leader may be further ahead, if this replica is
# new or was down for long. Even so half of all epochs are out of reach.
ASKED_MAX: Final = 2**30
ASKED_KINDS: Final = (RequestKind.VOTE, RequestKind.DISCOVERY, RequestKind.LOOK_AROUND)
# A peer that answers with these has not examined the request: it may be any process.
TOP_LEVEL_ERRORS: Final = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INCONSISTENT_VOTER_SET,
)


class EpochGuard:
    """Filter for messages of other replicas; limits the epoch increase that they may cause."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._jump_left = EPOCH_JUMP_MAX
        self._counted_ms = Millis(0)

    def accepts(self, epoch: Epoch, asked: RequestKind | None = None) -> bool:
        """True if the epoch of a peer is accepted, for this replica to adopt.

        `asked` is the kind of request that it answers; None if it was unsolicited.
        """
        if epoch <= self.replica.epoch:
            return True
        if asked in ASKED_KINDS and epoch <= ASKED_MAX:
            return True
        self._regain()
        jump = epoch - self.replica.epoch
        if epoch > EPOCH_ACCEPTED_MAX or jump > self._jump_left:
            return False
        self._jump_left -= jump
        return True

    def _regain(self) -> None:
        gained = (self.replica.timers.now - self._counted_ms) * EPOCH_JUMP_REFILL_PER_SECOND // 1000
        if gained > 0:
            self._jump_left = min(EPOCH_JUMP_MAX, self._jump_left + gained)
            self._counted_ms = self.replica.timers.now

    def filter_response(
        self, in_flight_request: InFlightRequest, response: PeerResponse | RequestFailure
    ) -> PeerResponse | RequestFailure:
        """The response to handle: IGNORED if its epoch is rejected or older than the own one.

        With a top-level error it has no leader.
        """
        replica = self.replica
        if isinstance(response, RequestFailure | ApiVersionsResponse):
            return response
        if self.is_top_level_error(response.error):
            return replace(response, leader=NOTHING_KNOWN)
        epoch = response.leader.epoch
        if not self.accepts(epoch, in_flight_request.kind):
            text = (
                f"{in_flight_request.to} answers {in_flight_request.kind.value} with epoch "
                f"{epoch}: not believed"
            )
            replica.out.note(
                TraceEventKind.NOT_BELIEVED, text, peer=in_flight_request.to, claimed_epoch=epoch
            )
            return RequestFailure.IGNORED
        is_asked_for = in_flight_request.kind is RequestKind.LOOK_AROUND or isinstance(
            response, MembershipResponse
        )
        if epoch < replica.epoch and not is_asked_for:
            return RequestFailure.IGNORED
        return response

    def is_top_level_error(self, error: ErrorCode) -> bool:
        """True if a response with this error contains no information about the quorum."""
        return error in TOP_LEVEL_ERRORS

    def leader_info_for(self, error: ErrorCode) -> LeaderInfo:
        """The leader that a response of this replica names: none with a top-level error."""
        return NOTHING_KNOWN if error in TOP_LEVEL_ERRORS else self.replica.leader_info
