"""Auto-join: an observer asks the leader to make it a voter (KIP-853, "auto joining").

It first requests the removal of the voter that has its node id and another directory: its own
previous disk. The leader rejects that while the voter is alive (rule `live_voter_not_evicted`). A
decommissioned voter does not auto-join (rule `decommissioned_voters`), so it does not request it.
Nor does a process that was removed while it ran: a process whose pod is scaled down is about to be
stopped, and may join after its next start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestFailure
from quorate.raft.messages import (
    AddRaftVoterRequest,
    MembershipResponse,
    RemoveRaftVoterRequest,
)
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Follower, Leader
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.election.leader_updates import LeaderUpdates
    from quorate.raft.replica import Replica
    from quorate.raft.request_manager import InFlightRequest

# Fraction of the fetch timeout: the delay before a rejected request is repeated. A random delay of
# up to the same length is added, so that several joining observers do not collide each time.
RETRY_SHARE: Final = 4
ACCEPTED_FETCH_TIMEOUTS: Final = 3
# Percentage of the request timeout that the leader may take, so that its answer still arrives.
ANSWER_PERCENT: Final = 80


class AutoJoin:
    """The auto-join of one observer."""

    def __init__(self, replica: Replica, leader_updates: LeaderUpdates) -> None:
        self.replica = replica
        self.leader_updates = leader_updates
        self.next_ms = Millis(0)
        self.is_adding = False

    def drive(self) -> None:
        """Request the next change."""
        replica = self.replica
        replica.was_voter = replica.was_voter or self._is_known_voter()
        if (
            not self._is_due()
            or self.next_ms > replica.timers.now
            or replica.request_manager.in_flight(RequestKind.JOIN)
        ):
            return
        peer = replica.leader_peer()
        assert peer is not None
        before = replica.voters.by_id(replica.node_id)
        self.is_adding = before is None
        timeout_ms = Millis(replica.config.request_timeout_ms * ANSWER_PERCENT // 100)
        self._wait_to_retry()
        if before is not None:
            text = f"asks {peer.node_id} to remove voter {before.key}, its disk of before"
            replica.out.tell(TraceEventKind.JOINING, "joining", text, "removes")
            removal = RemoveRaftVoterRequest(
                cluster_id=replica.config.cluster_id,
                voter=before.key,
                timeout_ms=timeout_ms,
                auto_join=True,
            )
            replica.send(RequestKind.JOIN, peer, removal)
            return
        text = f"asks {peer.node_id} to become a voter"
        replica.out.tell(TraceEventKind.JOINING, "joining", text, "asks")
        addition = AddRaftVoterRequest(
            cluster_id=replica.config.cluster_id,
            voter=replica.key,
            listeners=replica.config.endpoints,
            timeout_ms=timeout_ms,
            ack_when_committed=False,
            auto_join=True,
        )
        replica.send(RequestKind.JOIN, peer, addition)

    def _is_due(self) -> bool:
        replica = self.replica
        role = replica.role
        if not isinstance(role, Follower) or not role.has_fetched or role.leader_resigned:
            return False
        if (
            not replica.config.auto_join
            or replica.is_stopping
            or replica.log.kraft_version < 1
            or replica.is_voter
        ):
            return False
        if replica.leader_peer() is None:
            return False
        # An observer only fetches committed records, so its voter set may be out of date.
        is_behind = (
            role.download is not None
            or replica.log.end.offset < replica.commit_state.leader_high_watermark
        )
        is_kept_away = self.is_decommissioned() or self.was_removed_while_running()
        return not is_behind and not replica.log.is_healing and not is_kept_away

    def is_decommissioned(self) -> bool:
        """Rule `decommissioned_voters`: a voter that was removed on purpose does not auto-join."""
        return self.replica.key in self.replica.voters.decommissioned

    def was_removed_while_running(self) -> bool:
        """True if this process was a voter and has been removed since, to scale down."""
        return was_removed_while_running(self.replica)

    def _is_known_voter(self) -> bool:
        """True if it is a voter in a set that a leader reported as committed since the start.

        The log on the disk may predate a removal that an earlier process did not receive. A leader
        knows the committed state once a record of its own epoch is committed.
        """
        replica = self.replica
        if not replica.config.auto_join:
            return False
        match replica.role:
            case Leader() as role:
                committed = replica.high_watermark
                is_known = replica.commit_state.has_committed_in_epoch(role)
            case Follower(has_fetched=True, download=None):
                committed = replica.commit_state.leader_high_watermark
                has_it = committed <= replica.log.end.offset
                is_known = has_it and replica.log.epoch_before(committed) == replica.epoch
            case _:
                return False
        if not is_known:
            return False
        voter = replica.log.committed_voter_set(committed).voter(replica.key)
        # Without directory ids no voter is removed, and the voter may be a previous disk.
        return voter is not None and voter.key.directory_id is not None

    def _wait_to_retry(self) -> None:
        share = self.replica.config.fetch_timeout_ms // RETRY_SHARE
        self.next_ms = self.replica.timers.after(share + self.replica.timers.draw(share))

    def handle_response(
        self, in_flight_request: InFlightRequest, answer: MembershipResponse | RequestFailure
    ) -> None:
        """Wait for the record of the change, or ask again.

        An accepted removal is visible once its record is fetched, and then the addition follows. An
        accepted addition that does not become visible was rolled back.
        """
        replica = self.replica
        if isinstance(answer, RequestFailure):
            return
        self.leader_updates.apply(answer.leader, f"answer of {in_flight_request.to}")
        if answer.error is ErrorCode.NONE:
            replica.out.forget("joining", "refused to join")
            if self.is_adding:
                self.next_ms = replica.timers.after(
                    replica.config.fetch_timeout_ms * ACCEPTED_FETCH_TIMEOUTS
                )
        else:
            text = f"{in_flight_request.to} refuses to have it join: {answer.message}"
            state = f"{in_flight_request.to} {answer.error.name} {answer.reason}"
            replica.out.tell(TraceEventKind.REFUSED_BY_PEER, "refused to join", text, state)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the time of the next request."""
        if self._is_due() and not self.replica.request_manager.in_flight(RequestKind.JOIN):
            due.append(self.next_ms)


def was_removed_while_running(replica: Replica) -> bool:
    """True if a process that could ask to vote was a voter and has been removed since."""
    return replica.was_voter and not replica.is_voter
