"""PrepareStop: makes it safe to stop the controller of the same pod, step by step.

Each step is decided from the leader's description and the pod's StopIntent, so that a second call
continues where the first one ended, also in another process. A voter that will restart waits for
its shutdown permit: it stops when the leader can spare it, or when its time is up.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from quorate.admin.statefulset import Outlook, StopIntent
from quorate.api.admin_api import NO_LEADER, OUTCOME_UNKNOWN, AdminError, PrepareStopResult
from quorate.api.permissions import FORWARDING_NOT_ALLOWED, NOT_AUTHORIZED, SUBJECT_UNREADABLE
from quorate.client.backoff import Backoff
from quorate.client.membership_requests import voter_of
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.client.membership_client import MembershipClient
    from quorate.records.ids import NodeId, ReplicaKey

    Look: TypeAlias = Callable[[], Awaitable[Outlook | None]]

log = logging.getLogger(__name__)
_ANY_CLUSTER: Final = ClusterId("")
# The voter is removed before it stops.
_GOING: Final = (StopIntent.SCALED_AWAY, StopIntent.GOES_FOR_GOOD)
# How long a voter that will restart looks for a leader: an election takes less, and without a
# leader there is no leadership to transfer and nothing that its stop would interrupt.
LOOK_S: Final = 5.0
# One attempt to get a permit, before the StatefulSet and the quorum are read again.
TRY_S: Final = 2.0
# No answer: if the attempt was cut short by the deadline, this says nothing about the quorum.
_UNHEARD: Final = frozenset({NO_LEADER, OUTCOME_UNKNOWN})
# Seconds kept for a leadership transfer when the voter stops without a permit.
RESERVE_S: Final = 5.0
RESERVE_SHARE: Final = 0.25
# A voter that is scaled down too and has not fetched for this long has no hook to remove it.
GHOST_MS: Final = 3000
# Permanent errors.
PERMANENT_REASONS: Final = frozenset(
    {
        m.Reason.LAST_VOTER.value,
        m.Reason.KRAFT_VERSION_TOO_OLD.value,
        m.Reason.INCONSISTENT_CLUSTER_ID.value,
        ErrorCode.UNSUPPORTED_VERSION.name,
        ErrorCode.INVALID_REQUEST.name,
        NOT_AUTHORIZED,
        FORWARDING_NOT_ALLOWED,
        SUBJECT_UNREADABLE,
    }
)
# Reasons to wait for a permit. Any other reason, such as that of a controller of a release without
# this request, is not a reason to wait.
RETRYABLE_REASONS: Final = frozenset(
    {
        m.Reason.VOTERS_AWAY.value,
        m.Reason.HIGH_WATERMARK_UNKNOWN.value,
        m.Reason.PENDING_VOTER_CHANGE.value,
        m.Reason.NOT_LEADER.value,
        m.Reason.LEADERSHIP_LOST.value,
        m.Reason.VOTER_NOT_FOUND.value,
        NO_LEADER,
        OUTCOME_UNKNOWN,
    }
)


@value_type
class RequestShutdownPermit:
    """Request a shutdown permit: the voter will restart, and may stop once it can be spared."""

    voter: ReplicaKey


@value_type
class TransferLeadership:
    """Transfer leadership to one of the successors, best first."""

    successors: tuple[ReplicaKey, ...]


@value_type
class RemoveVoter:
    """Remove a voter: the node's own, if it does not lead, or one that is scaled down too."""

    voter: ReplicaKey


@value_type
class AwaitCommit:
    """The node has left the voter set in effect, but the change is not known to be committed."""


@value_type
class Ready:
    """Nothing is left to do."""


Step: TypeAlias = RequestShutdownPermit | TransferLeadership | RemoveVoter | AwaitCommit | Ready


def next_step(
    quorum: m.DescribeQuorumResponse, node_id: NodeId, outlook: Outlook, *, may_go: bool
) -> Step:
    """Decide the next step; `may_go` is true with a shutdown permit, or if it stops without one.

    A leader requests its permit before it transfers leadership, because permits are in the leader's
    memory. Scaled-down voters that do not fetch are removed first: with them in the set, a live one
    may be needed for a majority. Raises AdminError if no other voter would remain.
    """
    fate = outlook.stop_intent
    own = voter_of(node_id, quorum)
    others = [state for state in quorum.voters if state.key.node_id != node_id]
    is_going = fate in _GOING
    if own is not None and not others and is_going:
        raise AdminError(
            m.Reason.LAST_VOTER.value,
            ErrorCode.INVALID_REQUEST,
            f"node {node_id} is the last voter: add another voter first",
        )
    if own is not None and others and not is_going and not may_go:
        return RequestShutdownPermit(own.key)
    if quorum.leader.leader_id == node_id:
        if own is None:
            # It leads until its removal is committed, and then resigns.
            return AwaitCommit()
        fetching = [state for state in others if state.log_end_offset is not None]
        fetching.sort(key=lambda state: (-(state.log_end_offset or 0), state.key.node_id))
        return TransferLeadership(tuple(state.key for state in fetching)) if others else Ready()
    if not is_going:
        return Ready()
    if own is not None:
        ghosts = _ghosts(quorum, node_id, outlook)
        return RemoveVoter(ghosts[0] if ghosts else own.key)
    change = quorum.uncommitted_voter_change
    is_open = change is not None and change.voter.key.node_id == node_id
    return AwaitCommit() if is_open or quorum.high_watermark is None else Ready()


def _ghosts(
    quorum: m.DescribeQuorumResponse, node_id: NodeId, outlook: Outlook
) -> list[ReplicaKey]:
    """Other voters that are scaled down and do not fetch, the highest node id first."""
    if outlook.stop_intent is not StopIntent.SCALED_AWAY or outlook.end is None:
        return []
    end, now_ms = outlook.end, quorum.now_ms
    ghosts = [
        state.key
        for state in quorum.voters
        if state.key.node_id >= end
        and state.key.node_id not in (node_id, quorum.leader.leader_id)
        and (state.last_fetch_ms is None or now_ms - state.last_fetch_ms >= GHOST_MS)
    ]
    return sorted(ghosts, key=lambda key: key.node_id, reverse=True)


async def prepare_stop(
    client: MembershipClient, node_id: NodeId, look: Look, *, deadline: float
) -> PrepareStopResult:
    """Take the steps, by `deadline` of the loop's clock.

    `look` returns the outlook of the controller, None if unknown; it is called again during a wait.
    Raises AdminError; its metadata say what was done. A successor that does not take over is passed
    over for the next one, and transient errors are retried while there is time.
    """
    stopping = _Stopping(client, node_id, look, deadline=deadline)
    try:
        return await stopping.run()
    except AdminError as error:
        error.metadata["handed_over"] = str(stopping.handed_over).lower()
        error.metadata["removed"] = str(stopping.removed).lower()
        raise


class _Stopping:
    """One call, and what it has done so far."""

    def __init__(
        self, client: MembershipClient, node_id: NodeId, look: Look, *, deadline: float
    ) -> None:
        self._client = client
        self._node_id = node_id
        self._look_at_fate = look
        self._outlook = Outlook(StopIntent.RETURNS)
        self._is_fate_known = False
        self._backoff = Backoff(deadline)
        left_s = self._backoff.left_s
        self._turn_deadline = deadline - min(RESERVE_S, left_s * RESERVE_SHARE)
        self._turn = 0
        self._waits_for = ""
        self._refusal = ""
        self._has_leave = False
        self._without_leave = ""
        self._is_time_up = False
        self._asks_others = False
        self.handed_over = False
        self.removed = False

    @property
    def _fate(self) -> StopIntent:
        return self._outlook.stop_intent

    async def run(self) -> PrepareStopResult:
        """Take steps until the controller may stop. Raises AdminError."""
        while True:
            # A waiting controller may be scaled down in the meantime, or wanted again.
            seen = await self._look_at_fate()
            self._is_fate_known = seen is not None
            self._outlook = seen or self._outlook
            if self._fate is StopIntent.ALL_GO:
                words = "all pods of its StatefulSet stop"
                return self._prepared(m.NOTHING_KNOWN, is_voter=None, without_leave=words)
            try:
                quorum = await self._look()
            except AdminError as error:
                if self._fate in _GOING or error.reason != NO_LEADER:
                    raise
                nobody = m.LeaderInfo(None, Epoch(int(error.metadata.get("epoch", "0"))))
                words = self._without_leave or f"no leader could give leave: {error.message}"
                return self._prepared(nobody, is_voter=None, without_leave=words)
            if self._asks_others and quorum.leader.leader_id not in (None, self._node_id):
                # Another voter may have won the election, or an answer was lost.
                self.handed_over = True
            may_go = self._has_leave or bool(self._without_leave)
            step = next_step(quorum, self._node_id, self._outlook, may_go=may_go)
            if isinstance(step, Ready):
                is_voter = voter_of(self._node_id, quorum) is not None
                without = self._without_leave if is_voter else ""
                return self._prepared(quorum.leader, is_voter=is_voter, without_leave=without)
            if isinstance(step, RequestShutdownPermit):
                await self._take_leave(step)
                continue
            refusal = await self._take(step)
            if refusal is None:
                continue
            if refusal.reason in PERMANENT_REASONS or not await self._backoff.wait():
                raise refusal

    def _prepared(
        self, leader: m.LeaderInfo, *, is_voter: bool | None, without_leave: str
    ) -> PrepareStopResult:
        if without_leave and not self._has_leave:
            log.warning(f"stops without leave: {without_leave}")
        return PrepareStopResult(
            handed_over=self.handed_over,
            removed=self.removed,
            is_voter=is_voter,
            leader=leader,
            has_leave=self._has_leave,
            without_leave="" if self._has_leave else without_leave,
            is_needed=self._is_time_up and not self._has_leave and is_voter is True,
        )

    async def _look(self) -> m.DescribeQuorumResponse:
        left_s = self._backoff.left_s
        wait_s = left_s if self._fate in _GOING else min(LOOK_S, left_s)
        return await self._client.describe(asyncio.get_running_loop().time() + wait_s)

    async def _take_leave(self, step: RequestShutdownPermit) -> None:
        """Make one attempt, and wait if the permit may be issued later.

        A voter that may be scaled down, as far as is known, waits for permanent errors too: of two
        voters, the other one would be left without a majority permanently.
        """
        try_until = asyncio.get_running_loop().time() + TRY_S
        request = m.TakeLeaveRequest(_ANY_CLUSTER, step.voter)
        refusal = await self._try(request, min(try_until, self._turn_deadline))
        if refusal is None:
            self._has_leave = True
            return
        if refusal.reason not in RETRYABLE_REASONS and self._is_fate_known:
            self._without_leave = f"leave is refused ({refusal.reason}): {refusal.message}"
            return
        is_cut_short = self._turn_deadline < try_until
        if not (self._refusal and is_cut_short and refusal.reason in _UNHEARD):
            self._refusal = refusal.message
            waits_for = f"{refusal.reason} {refusal.metadata.get('away', '')}"
            if waits_for != self._waits_for:
                self._waits_for = waits_for
                log.info(f"waits for its turn to stop: {refusal.message}")
        await self._backoff.wait()
        if asyncio.get_running_loop().time() >= self._turn_deadline:
            self._is_time_up = True
            self._without_leave = f"its time is up: {self._refusal}"

    async def _take(
        self, step: TransferLeadership | RemoveVoter | AwaitCommit
    ) -> AdminError | None:
        """Take the step, or return the failure; a rejected step may succeed a moment later."""
        match step:
            case TransferLeadership(successors=()):
                return AdminError(
                    m.Reason.NO_HAND_OVER.value,
                    ErrorCode.REQUEST_TIMED_OUT,
                    "no other voter fetches from this leader: see that they run",
                )
            case TransferLeadership(successors):
                successor = successors[self._turn % len(successors)]
                self._turn += 1
                self._asks_others = True
                handing_over = m.TransferLeadershipRequest(_ANY_CLUSTER, successor)
                refusal = await self._try(handing_over, self._backoff.deadline)
                self.handed_over = self.handed_over or refusal is None
                return refusal
            case RemoveVoter(voter):
                # A scaled-down voter may be wanted again, on the same disk.
                is_scaled_away = self._fate is StopIntent.SCALED_AWAY
                removal = m.RemoveRaftVoterRequest(
                    cluster_id=_ANY_CLUSTER,
                    voter=voter,
                    timeout_ms=Millis(0),
                    scaled_away=is_scaled_away,
                )
                refusal = await self._try(removal, self._backoff.deadline)
                is_own = voter.node_id == self._node_id
                if refusal is None and not is_own:
                    log.info(f"removed voter {voter}, which is scaled away too and does not fetch")
                self.removed = self.removed or (refusal is None and is_own)
                return refusal
            case AwaitCommit():
                return AdminError(
                    m.Reason.NOT_COMMITTED_IN_TIME.value,
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"the removal of node {self._node_id} is in the log and not committed yet",
                )
            case _:
                assert_never(step)

    async def _try(self, request: m.MembershipRequest, deadline: float) -> AdminError | None:
        try:
            await self._client.change(request, deadline)
        except AdminError as error:
            return error
        return None
