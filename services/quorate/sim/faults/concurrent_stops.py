"""Voters told to stop at the same time; each requests a shutdown permit, as its sidecar would.

A voter with a permit stops and is restarted after a while; a leader first transfers leadership. A
voter that gets no permit in time stops without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.errors import ErrorCode
from quorate.sim.actions.admin_requests import RequestShutdownPermit, TransferLeadership
from quorate.sim.actions.processes import Stop
from quorate.sim.engine.node import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.messages import MembershipResponse
    from quorate.records.ids import ReplyToken
    from quorate.sim.action_runner import ActionRunner
    from quorate.sim.actions.admin_requests import OperatorRequest
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.randomness import RandomSource

# The time limits for the permit and for a response, and two intervals: for polling a response, and
# the longest between two requests.
PATIENCE_MS: Final = 12_000
ANSWER_MS: Final = 1000
LOOK_US: Final = 20_000
TRY_US: Final = 300_000


class ConcurrentStops:
    """The concurrent stops of one cluster."""

    def __init__(self, action_runner: ActionRunner) -> None:
        self.action_runner = action_runner
        self.cluster = action_runner.cluster
        self._stopping: dict[int, int] = {}

    def begin(self, random_source: RandomSource) -> None:
        """Tell a random part of the running voters to stop, all at the same time."""
        leader = self.cluster.leader()
        if leader is None:
            return
        voters = leader.log.voters
        there = [n for n in self.cluster.running() if any(n.is_voter(v) for v in voters)]
        there = [n for n in there if self._stopping.get(n.node_id) != n.incarnation]
        random_source.random.shuffle(there)
        count = 1 + int(random_source.random.random() * len(there))
        until_ms = self.cluster.now_ms + PATIENCE_MS
        for node in there[:count]:
            self.cluster.log(f"node {node.node_id} is to stop in turn")
            self._stopping[node.node_id] = node.incarnation
            self._try(node, node.incarnation, until_ms, random_source)

    def _try(
        self, node: SimulatedNode, incarnation: int, until_ms: int, random_source: RandomSource
    ) -> None:
        if not self._is_there(node, incarnation):
            return
        if self.cluster.now_ms >= until_ms:
            self.cluster.log(f"node {node.node_id} stops without leave")
            self.action_runner.run(Stop(who=node.node_id))
            return

        def again() -> None:
            self._try(node, incarnation, until_ms, random_source)

        def answered(response: MembershipResponse | None) -> None:
            if response is not None and response.error is ErrorCode.NONE:
                self._go(node, incarnation, until_ms, random_source)
            else:
                self.cluster.schedule(int(random_source.random.random() * TRY_US), again)

        self._ask(RequestShutdownPermit(whom=node.node_id), answered)

    def _go(
        self, node: SimulatedNode, incarnation: int, until_ms: int, random_source: RandomSource
    ) -> None:
        """Stop a voter that has a permit; a leader first transfers leadership."""
        if not self._is_there(node, incarnation):
            return
        leads = node.progress is not None and node.progress.is_leader
        if not leads or self.cluster.now_ms >= until_ms:
            self.cluster.log(f"node {node.node_id} stops with leave")
            self.action_runner.run(Stop(who=node.node_id))
            return
        others = [v.key.node_id for v in node.log.voters if v.key.node_id != node.node_id]

        def again() -> None:
            self._go(node, incarnation, until_ms, random_source)

        def answered(_: MembershipResponse | None) -> None:
            self.cluster.schedule(LOOK_US, again)

        to = others[int(random_source.random.random() * len(others))]
        self._ask(TransferLeadership(to=to), answered)

    def _is_there(self, node: SimulatedNode, incarnation: int) -> bool:
        """True if the same process still runs and faults have not stopped."""
        is_same = node.incarnation == incarnation and node.status is Status.RUNNING
        return is_same and not self.cluster.is_calm

    def _ask(
        self, operator_request: OperatorRequest, then: Callable[[MembershipResponse | None], None]
    ) -> None:
        """Send a request to the leader and pass on its response; None if none arrives in time."""
        token = self.action_runner.run(operator_request)
        if token is None:
            self.cluster.schedule(TRY_US, lambda: then(None))
            return
        self._await(token, self.cluster.now_ms + ANSWER_MS, then)

    def _await(
        self, token: ReplyToken, until_ms: int, then: Callable[[MembershipResponse | None], None]
    ) -> None:
        answer = self.cluster.answers.pop(token, None)
        if answer is not None or self.cluster.now_ms >= until_ms:
            then(answer)
        else:
            self.cluster.schedule(LOOK_US, lambda: self._await(token, until_ms, then))
