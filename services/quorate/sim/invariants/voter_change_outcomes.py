"""The reported outcome of a voter-set change is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import (
    AddRaftVoterRequest,
    Reason,
    RemoveRaftVoterRequest,
    TransferLeadershipRequest,
    UpdateFeaturesRequest,
)
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.acknowledged_writes import holders
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import holds, ids
from quorate.sim.transcript import format_change

if TYPE_CHECKING:
    from quorate.raft.messages import MembershipRequest, MembershipResponse
    from quorate.records.ids import NodeId, ReplyToken
    from quorate.records.voters import VoterSet
    from quorate.sim.views import ClusterView, NodeView


@value_type
class Asked:
    """A request in progress, and the voter set in effect when it arrived."""

    request: MembershipRequest
    voters: VoterSet


class ChangeOutcomesAreTrue(Invariant):
    """An accepted change is committed when its response leaves; a rejected one changed nothing.

    Sources: KIP-853 (AddRaftVoter, RemoveRaftVoter, UpdateFeatures), KIP-1186 for requests that do
    not wait for the commit. The response to a change with unknown outcome says so.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._asked: dict[tuple[NodeId, ReplyToken], Asked] = {}

    def asked(self, node: NodeView, token: ReplyToken, request: MembershipRequest) -> None:
        self._asked[node.node_id, token] = Asked(request, node.log.voters)

    def answering(self, node: NodeView, token: ReplyToken, response: MembershipResponse) -> None:
        asked = self._asked.pop((node.node_id, token))
        if response.error is ErrorCode.NONE:
            self._check_committed(node, asked.request)
            return
        if isinstance(asked.request, TransferLeadershipRequest):
            return
        is_open = response.reason in (Reason.NOT_COMMITTED_IN_TIME, Reason.LEADERSHIP_LOST)
        if not is_open and node.log.voters != asked.voters:
            raise Violation(
                f"node {node.node_id} refuses {format_change(asked.request)}, yet went from voters "
                f"{ids(asked.voters)} to {ids(node.log.voters)} meanwhile"
            )

    def _check_committed(self, node: NodeView, request: MembershipRequest) -> None:
        voters = node.log.voters
        match request:
            case AddRaftVoterRequest(voter=key, ack_when_committed=True):
                is_done = holds(voters, key)
            case RemoveRaftVoterRequest(voter=key):
                is_done = not holds(voters, key)
            case UpdateFeaturesRequest(kraft_version=1, validate_only=False):
                is_done = all(voter.key.directory_id is not None for voter in voters)
            case _:
                return
        is_upgrade = isinstance(request, UpdateFeaturesRequest)
        ends = [
            entry.end
            for entry in node.log.entries
            if (entry.kraft_version if is_upgrade else entry.voters) is not None
        ]
        # A completed upgrade may be requested again while a voter change is in progress: its record
        # is then on a majority of the previous set, but maybe not yet of the new one.
        history = self.world.oracle
        sets = [voters, history.voters_at(history.end)] if is_upgrade else [voters]
        # A record that is not in the log any more is in a snapshot, and thus committed.
        is_held = not ends or any(
            len(holders(self.world, node, s, ends[-1])) >= s.majority for s in sets
        )
        if not is_done or not is_held:
            raise Violation(
                f"node {node.node_id} calls {format_change(request)} done, but no majority of the "
                f"voters {ids(voters)} has it on its platters"
            )
