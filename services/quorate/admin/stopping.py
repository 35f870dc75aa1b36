"""PrepareStop: makes it safe to stop the controller beside the sidecar, step by step.

Each step is decided from the leader's description alone, so that a second call goes on where the
first one ended, also in another process.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from quorate.client.requests import voter_of
from quorate.client.waiting import Backoff
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis
from quorate.rpc.admin_errors import NO_LEADER, AdminError
from quorate.rpc.admin_server import Prepared
from quorate.rpc.authorization import FORWARDING_NOT_ALLOWED, NOT_AUTHORIZED

if TYPE_CHECKING:
    from quorate.client.membership import MembershipClient
    from quorate.records.ids import NodeId, ReplicaKey

_ANY_CLUSTER: Final = ClusterId("")
# With nobody to lead there is nothing to hand over, so a restart does not wait for an election.
LOOK_S: Final = 1.0
# What no waiting mends.
PERMANENT: Final = frozenset(
    {
        m.Reason.LAST_VOTER.value,
        m.Reason.KRAFT_VERSION_TOO_OLD.value,
        m.Reason.INCONSISTENT_CLUSTER_ID.value,
        ErrorCode.UNSUPPORTED_VERSION.name,
        ErrorCode.INVALID_REQUEST.name,
        NOT_AUTHORIZED,
        FORWARDING_NOT_ALLOWED,
    }
)


@dataclass(frozen=True, slots=True)
class HandOver:
    """Somebody else should lead; best first."""

    successors: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """The node is no leader, and its voter should go."""

    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class AwaitCommit:
    """The node is out of the set that is in force, which is not known to be committed."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Nothing is left to do."""


Step: TypeAlias = HandOver | Leave | AwaitCommit | Ready


def next_step(quorum: m.DescribeQuorumResponse, node_id: NodeId, *, leave: bool) -> Step:
    """What has to be done next. Raises AdminError where nobody else would be left."""
    own = voter_of(node_id, quorum)
    others = [state for state in quorum.voters if state.key.node_id != node_id]
    if own is not None and not others and leave:
        raise AdminError(
            m.Reason.LAST_VOTER.value,
            ErrorCode.INVALID_REQUEST,
            f"node {node_id} is the last voter: add another voter first",
        )
    if quorum.leader.leader_id == node_id:
        if own is None:
            # It leads until its removal is committed, and then resigns by itself.
            return AwaitCommit()
        fetching = [state for state in others if state.log_end_offset is not None]
        fetching.sort(key=lambda state: (-(state.log_end_offset or 0), state.key.node_id))
        return HandOver(tuple(state.key for state in fetching)) if others else Ready()
    if not leave:
        return Ready()
    if own is not None:
        return Leave(own.key)
    change = quorum.uncommitted_voter_change
    is_open = change is not None and change.voter.key.node_id == node_id
    return AwaitCommit() if is_open or quorum.high_watermark is None else Ready()


async def prepare_stop(
    client: MembershipClient, node_id: NodeId, *, leave: bool, deadline: float
) -> Prepared:
    """Take the steps, by `deadline` of the loop's clock.

    Raises AdminError; its metadata tell what was done. A successor that does not take over is
    passed over for the next one, and what may pass is tried again while there is time.
    """
    stopping = _Stopping(client, node_id, leave=leave, deadline=deadline)
    try:
        return await stopping.run()
    except AdminError as error:
        error.metadata["handed_over"] = str(stopping.handed_over).lower()
        error.metadata["removed"] = str(stopping.removed).lower()
        raise


class _Stopping:
    """One call, and what it has done so far."""

    def __init__(
        self, client: MembershipClient, node_id: NodeId, *, leave: bool, deadline: float
    ) -> None:
        self._client = client
        self._node_id = node_id
        self._leave = leave
        self._backoff = Backoff(deadline)
        self._turn = 0
        self.handed_over = False
        self.removed = False

    async def run(self) -> Prepared:
        """Step by step until it is ready. Raises AdminError."""
        while True:
            try:
                quorum = await self._look()
            except AdminError as error:
                if self._leave or error.reason != NO_LEADER:
                    raise
                nobody = m.LeaderInfo(None, Epoch(int(error.metadata.get("epoch", "0"))))
                return Prepared(self.handed_over, self.removed, None, nobody)
            step = next_step(quorum, self._node_id, leave=self._leave)
            if isinstance(step, Ready):
                is_voter = voter_of(self._node_id, quorum) is not None
                return Prepared(self.handed_over, self.removed, is_voter, quorum.leader)
            refusal = await self._take(step)
            if refusal is None:
                continue
            if refusal.reason in PERMANENT or not await self._backoff.wait():
                raise refusal

    async def _look(self) -> m.DescribeQuorumResponse:
        wait_s = self._backoff.left_s if self._leave else min(LOOK_S, self._backoff.left_s)
        return await self._client.describe(asyncio.get_running_loop().time() + wait_s)

    async def _take(self, step: HandOver | Leave | AwaitCommit) -> AdminError | None:
        """Why it is not done; what is refused now may be granted a moment later."""
        match step:
            case HandOver(successors=()):
                return AdminError(
                    m.Reason.NO_HAND_OVER.value,
                    ErrorCode.REQUEST_TIMED_OUT,
                    "no other voter fetches from this leader: see that they run",
                )
            case HandOver(successors):
                successor = successors[self._turn % len(successors)]
                self._turn += 1
                refusal = await self._try(m.TransferLeadershipRequest(_ANY_CLUSTER, successor))
                self.handed_over = self.handed_over or refusal is None
                return refusal
            case Leave(voter):
                removal = m.RemoveRaftVoterRequest(_ANY_CLUSTER, voter, Millis(0))
                refusal = await self._try(removal)
                self.removed = self.removed or refusal is None
                return refusal
            case AwaitCommit():
                return AdminError(
                    m.Reason.NOT_COMMITTED_IN_TIME.value,
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"the removal of node {self._node_id} is in the log and not committed yet",
                )
            case _:
                assert_never(step)

    async def _try(self, request: m.MembershipRequest) -> AdminError | None:
        try:
            await self._client.change(request, self._backoff.deadline)
        except AdminError as error:
            return error
        return None
