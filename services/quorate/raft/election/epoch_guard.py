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

from quorate.raft.api import CallFailure
from quorate.raft.messages import NOTHING_KNOWN, ApiVersionsResponse, MembershipResponse
from quorate.raft.request_manager import CallKind
from quorate.raft.trace_events import NoteKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.messages import LeaderInfo, PeerResponse
    from quorate.raft.replica import Replica
    from quorate.raft.request_manager import Call
    from quorate.records.ids import Epoch

EPOCH_MAX: Final = 2**31 - 1
# Above this, every epoch is rejected, whatever its source: the rest is enough for an election every
# second for half a year.
EPOCH_BELIEVED_MAX: Final = EPOCH_MAX - 2**24
# An election every second for twelve days, or a thousand recoveries, explain such a jump.
JUMP_MAX: Final = 2**20
# At this rate a continuous stream of forged epochs needs eight months to reach the highest one.
JUMP_REGAINED_PER_SECOND: Final = 100
# A voter or bootstrap server that was asked for the leader may be further ahead, if this replica is
# new or was down for long. Even so half of all epochs are out of reach.
ASKED_MAX: Final = 2**30
ASKED_KINDS: Final = (CallKind.VOTE, CallKind.DISCOVERY, CallKind.LOOK_AROUND)
# A peer that answers with these has not examined the request: it may be any process.
REFUSED_OUTRIGHT: Final = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INCONSISTENT_VOTER_SET,
)


class Believing:
    """Filter for messages of other replicas; limits the epoch increase that they may cause."""

    def __init__(self, replica: Replica) -> None:
        self.r = replica
        self._jump_left = JUMP_MAX
        self._counted_ms = Millis(0)

    def admit(self, epoch: Epoch, asked: CallKind | None = None) -> bool:
        """True if the epoch of a peer is accepted, for this replica to adopt.

        `asked` is the kind of request that it answers; None if it was unsolicited.
        """
        if epoch <= self.r.epoch:
            return True
        if asked in ASKED_KINDS and epoch <= ASKED_MAX:
            return True
        self._regain()
        jump = epoch - self.r.epoch
        if epoch > EPOCH_BELIEVED_MAX or jump > self._jump_left:
            return False
        self._jump_left -= jump
        return True

    def _regain(self) -> None:
        gained = (self.r.timers.now - self._counted_ms) * JUMP_REGAINED_PER_SECOND // 1000
        if gained > 0:
            self._jump_left = min(JUMP_MAX, self._jump_left + gained)
            self._counted_ms = self.r.timers.now

    def screened(
        self, call: Call, response: PeerResponse | CallFailure
    ) -> PeerResponse | CallFailure:
        """The response to handle: IGNORED if its epoch is rejected or older than the own one.

        With a top-level error it has no leader.
        """
        r = self.r
        if isinstance(response, CallFailure | ApiVersionsResponse):
            return response
        if self.teaches_nothing(response.error):
            return replace(response, leader=NOTHING_KNOWN)
        epoch = response.leader.epoch
        if not self.admit(epoch, call.kind):
            text = f"{call.to} answers {call.kind.value} with epoch {epoch}: not believed"
            r.out.note(NoteKind.NOT_BELIEVED, text, peer=call.to, claimed_epoch=epoch)
            return CallFailure.IGNORED
        is_asked_for = call.kind is CallKind.LOOK_AROUND or isinstance(response, MembershipResponse)
        if epoch < r.epoch and not is_asked_for:
            return CallFailure.IGNORED
        return response

    def teaches_nothing(self, error: ErrorCode) -> bool:
        """True if a response with this error contains no information about the quorum."""
        return error in REFUSED_OUTRIGHT

    def told_with(self, error: ErrorCode) -> LeaderInfo:
        """The leader that a response of this replica names: none with a top-level error."""
        return NOTHING_KNOWN if error in REFUSED_OUTRIGHT else self.r.leader_info
