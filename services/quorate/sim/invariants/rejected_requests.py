"""Invalid requests are rejected and have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft import api
from quorate.sim.checkers.oracle import Violation
from quorate.sim.fuzz.invalid_requests import is_client_served, is_peer_served
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.controller.decision import Decision
    from quorate.controller.request_types import WriteRequest
    from quorate.raft.messages import Request, Response
    from quorate.records.ids import ReplyToken
    from quorate.sim.views import ClusterView, NodeView

# The effects of a step that has changed something.
_CHANGES: Final = (
    api.SaveElection,
    api.AppendToLog,
    api.TruncateLog,
    api.WriteSnapshotChunk,
    api.InstallSnapshot,
    api.EndHealing,
    api.EndAbstention,
    api.SaveRival,
    api.PublishProgress,
    api.ShutdownComplete,
)


class InvalidRequestsAreRejected(Invariant):
    """Every replica rejects an invalid request, in any role, and it has no effect.

    Such a request names another cluster, an unknown node, a past or impossible epoch, or values out
    of bounds. Sources: rules `no_state_from_rejections` and `input_bounds`; KIP-853, "Add Voter";
    Kafka's error codes.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._of_peers: dict[ReplyToken, None] = {}
        self._of_clients: dict[int, WriteRequest] = {}

    def before_invalid_peer_request(self, token: ReplyToken) -> None:
        self._of_peers[token] = None

    def before_invalid_client_request(self, request: WriteRequest) -> None:
        self._of_clients[id(request)] = request

    def handled(
        self, node: NodeView, request: api.RequestReceived, update: api.Update, *, is_due: bool
    ) -> None:
        if is_due or request.token not in self._of_peers:
            return
        for effect in update.effects:
            if isinstance(effect, _CHANGES):
                raise Violation(
                    f"node {node.node_id} does {type(effect).__name__} because of what must be "
                    f"refused: {request.request}"
                )

    def answered(
        self, node: NodeView, token: ReplyToken, request: Request, response: Response
    ) -> None:
        if token in self._of_peers:
            del self._of_peers[token]
            if is_peer_served(response):
                raise Violation(f"node {node.node_id} grants what must be refused: {request}")

    def decided(self, node: NodeView, request: WriteRequest, decision: Decision) -> None:
        if id(request) in self._of_clients and decision.records:
            raise Violation(
                f"node {node.node_id} decides on records for what must be refused: {request}"
            )

    def on_client_reply(self, request: WriteRequest, reply: object) -> None:
        if self._of_clients.pop(id(request), None) is not None and is_client_served(reply):
            raise Violation(f"a client is granted what must be refused: {request}: {reply}")
