"""Short renewable leases on pre-votes, so that only one of several nominees proceeds.

A voter grants its pre-vote to one nominee at a time. The lease is short and is renewed by each
request of that nominee, up to a maximum term. After that another nominee takes precedence
(docs/decisions/0003-pre-vote-is-a-promise.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import VoteRefusal
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.records.ids import Epoch, NodeId

# Fractions of the election timeout: the length of a pre-vote lease, the longest time that a nominee
# may renew it while others wait, and how soon an answered nominee asks again.
LEASE_SHARE: Final = 8
LEASE_MAX_SHARE: Final = 4
RENEWAL_SHARE: Final = 16
# Fraction of a term in which a nominee rejects pre-votes after a term that no other waited for.
COOLDOWN_SHARE: Final = 2


@dataclass(slots=True)
class PreVoteLease:
    """A pre-vote granted in `epoch`: first at `since_ms`, last at `given_ms`.

    `has_contender` is set once another nominee was rejected because of it.
    """

    nominee: NodeId
    epoch: Epoch
    since_ms: Millis
    given_ms: Millis
    has_contender: bool = False


class PreVoteLeases:
    """Pre-vote leases granted by this replica; while one is valid it must not campaign first."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.newest: PreVoteLease | None = None

    def share_ms(self, share: int) -> int:
        """The election timeout divided by `share`, at least one millisecond."""
        return max(1, self.replica.config.election_timeout_ms // share)

    def reason_to_refuse(
        self, nominee: NodeId, *, is_rival: bool
    ) -> tuple[VoteRefusal, str] | None:
        """The reason why this nominee has to wait for a pre-vote; None if it is free.

        `is_rival` is set while this replica campaigns itself.
        """
        promise = self._current()
        if promise is None:
            return None
        now, age = self.replica.timers.now, self.replica.timers.now - promise.since_ms
        turn = self.share_ms(LEASE_MAX_SHARE)
        if promise.nominee != nominee:
            if now < promise.given_ms + self.share_ms(LEASE_SHARE):
                promise.has_contender = True
                why = f"{promise.nominee} has just been given its pre-vote"
                return VoteRefusal.PROMISED, why
            return None
        # A nominee waits for its own term for less than a term: otherwise two voters, both of which
        # are needed, could alternate forever in supporting a nominee.
        rest = turn if promise.has_contender else turn // COOLDOWN_SHARE
        if turn <= age < turn + rest and (promise.has_contender or is_rival):
            return VoteRefusal.HAD_ITS_TURN, "it had its turn, and others wait for theirs"
        return None

    def grant(self, nominee: NodeId) -> None:
        """Grant the pre-vote to this nominee, for the first time or again."""
        now, promise = self.replica.timers.now, self._current()
        is_same = promise is not None and promise.nominee == nominee
        if (
            promise is not None
            and is_same
            and now - promise.since_ms < self.share_ms(LEASE_MAX_SHARE)
        ):
            promise.given_ms = now
        else:
            self.newest = PreVoteLease(nominee, self.replica.epoch, now, now)

    @property
    def quiet_until(self) -> Millis | None:
        """The time until which this replica does not campaign, so that the holder is first."""
        promise = self._current()
        if promise is None:
            return None
        until = Millis(promise.since_ms + self.share_ms(LEASE_MAX_SHARE))
        return until if until > self.replica.timers.now else None

    def _current(self) -> PreVoteLease | None:
        promise, election = self.newest, self.replica.election
        if promise is None or promise.epoch != election.epoch:
            return None
        # The leader of this epoch has used its lease; its followers are no longer bound.
        return None if promise.nominee == election.leader_id else promise
