"""Abstention of a voter that may have lost its vote, until it may vote again without risk.

See rule `empty_log_abstains`. A voter of kraft.version 0 that starts with an empty disk may have
lost state that others rely on: its vote, its epoch, and the records that it acknowledged. Without
directory ids no replica can tell. So the voter neither votes nor campaigns until it has recovered
at least that state.

First it waits for a response from every other voter, which reports that voter's epoch. A replica
that received a vote of the previous disk is in the epoch of that vote, or has lost its own disk and
is no longer a candidate. After these responses this voter's epoch is at least that of the previous
disk. Until then it fetches without its replica id, as an observer: a leader that it may have helped
to depose must not count it. Then it fetches under its replica id, which replaces the progress that
its leader recorded for the previous disk. The high watermark that this leader reports covers all
records that may depend on this voter. Once these are on this disk, its vote is as safe as any other
vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import EndAbstention
from quorate.raft.election.epoch_guard import TOP_LEVEL_ERRORS
from quorate.raft.messages import FetchResponse
from quorate.raft.request_manager import RequestKind
from quorate.raft.trace_events import TraceEventKind
from quorate.records.ids import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from quorate.raft.api import RequestFailure
    from quorate.raft.messages import PeerResponse
    from quorate.raft.replica import Replica
    from quorate.raft.request_manager import InFlightRequest
    from quorate.records.ids import NodeId, Offset, ReplicaKey


def voters_not_heard(replica: Replica) -> list[NodeId]:
    """The voters whose epochs this one must still learn before a leader may count it."""
    abstention = replica.abstention
    return abstention.unheard(replica.key, replica.voters) if abstention.is_on else []


def fetch_identity(replica: Replica) -> ReplicaKey | None:
    """The replica key under which it fetches; None as long as no leader may count it."""
    return None if voters_not_heard(replica) else replica.key


class AbstentionExit:
    """Ends the abstention of one replica."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica

    def on_response(
        self, in_flight_request: InFlightRequest, response: PeerResponse | RequestFailure
    ) -> None:
        """Record that a response to a request of this process was handled: that epoch is known.

        A voter whose epoch was rejected does not count.
        """
        replica = self.replica
        if not isinstance(response, FetchResponse) or response.error in TOP_LEVEL_ERRORS:
            return
        if response.leader.epoch > replica.epoch:
            return
        if in_flight_request.to not in voters_not_heard(replica):
            return
        replica.abstention.heard.add(in_flight_request.to)
        if not voters_not_heard(replica):
            # The high watermark of a fetch without a replica id may not cover records that
            # depend on this voter.
            replica.request_manager.abandon(RequestKind.FETCH)

    def on_high_watermark(self, high_watermark: Offset) -> None:
        """Record the high watermark of the leader's response to a fetch of this voter."""
        replica = self.replica
        if not replica.abstains or high_watermark == UNKNOWN_OFFSET or voters_not_heard(replica):
            return
        goal = replica.abstention.goal
        if goal is None or goal[0] != replica.epoch:
            replica.abstention.goal = (replica.epoch, high_watermark)
        self.check_exit()

    def check_exit(self) -> None:
        """Vote again if the log on this disk reaches the goal; called when it may have grown."""
        replica = self.replica
        goal = replica.abstention.goal
        if (
            not replica.abstains
            or goal is None
            or goal[0] != replica.epoch
            or replica.log.flushed < goal[1]
        ):
            return
        replica.abstention.is_on = False
        text = f"votes again: its log has all that was committed up to {goal[1]} in epoch {goal[0]}"
        replica.out.note(TraceEventKind.VOTES_AGAIN, text, offset=goal[1])
        replica.out.emit(EndAbstention())
