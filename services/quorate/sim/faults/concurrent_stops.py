"""Voters told to stop at the same time; each requests a shutdown permit, as its sidecar would.

A voter with a permit stops and is restarted after a while; a leader first transfers leadership. A
voter that gets no permit in time stops without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.errors import ErrorCode
from quorate.sim.actions.admin_requests import GiveLeave, HandOverLeadership
from quorate.sim.actions.processes import Stop
from quorate.sim.engine.node import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.messages import MembershipResponse
    from quorate.records.ids import ReplyToken
    from quorate.sim.action_runner import Stage
    from quorate.sim.actions.admin_requests import Question
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.randomness import Draws

# The time limits for the permit and for a response, and two intervals: for polling a response, and
# the longest between two requests.
PATIENCE_MS: Final = 12_000
ANSWER_MS: Final = 1000
LOOK_US: Final = 20_000
TRY_US: Final = 300_000


class Turns:
    """The concurrent stops of one cluster."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world
        self._stopping: dict[int, int] = {}

    def begin(self, draws: Draws) -> None:
        """Tell a random part of the running voters to stop, all at the same time."""
        leader = self.world.leader()
        if leader is None:
            return
        voters = leader.log.voters
        there = [n for n in self.world.running() if any(n.is_voter(v) for v in voters)]
        there = [n for n in there if self._stopping.get(n.node_id) != n.incarnation]
        draws.random.shuffle(there)
        count = 1 + int(draws.random.random() * len(there))
        until_ms = self.world.now_ms + PATIENCE_MS
        for node in there[:count]:
            self.world.remark(f"node {node.node_id} is to stop in turn")
            self._stopping[node.node_id] = node.incarnation
            self._try(node, node.incarnation, until_ms, draws)

    def _try(self, node: SimulatedNode, incarnation: int, until_ms: int, draws: Draws) -> None:
        if not self._is_there(node, incarnation):
            return
        if self.world.now_ms >= until_ms:
            self.world.remark(f"node {node.node_id} stops without leave")
            self.stage.do(Stop(who=node.node_id))
            return

        def again() -> None:
            self._try(node, incarnation, until_ms, draws)

        def answered(response: MembershipResponse | None) -> None:
            if response is not None and response.error is ErrorCode.NONE:
                self._go(node, incarnation, until_ms, draws)
            else:
                self.world.schedule(int(draws.random.random() * TRY_US), again)

        self._ask(GiveLeave(whom=node.node_id), answered)

    def _go(self, node: SimulatedNode, incarnation: int, until_ms: int, draws: Draws) -> None:
        """Stop a voter that has a permit; a leader first transfers leadership."""
        if not self._is_there(node, incarnation):
            return
        leads = node.progress is not None and node.progress.is_leader
        if not leads or self.world.now_ms >= until_ms:
            self.world.remark(f"node {node.node_id} stops with leave")
            self.stage.do(Stop(who=node.node_id))
            return
        others = [v.key.node_id for v in node.log.voters if v.key.node_id != node.node_id]

        def again() -> None:
            self._go(node, incarnation, until_ms, draws)

        def answered(_: MembershipResponse | None) -> None:
            self.world.schedule(LOOK_US, again)

        to = others[int(draws.random.random() * len(others))]
        self._ask(HandOverLeadership(to=to), answered)

    def _is_there(self, node: SimulatedNode, incarnation: int) -> bool:
        """True if the same process still runs and faults have not stopped."""
        is_same = node.incarnation == incarnation and node.status is Status.RUNNING
        return is_same and not self.world.is_calm

    def _ask(self, question: Question, then: Callable[[MembershipResponse | None], None]) -> None:
        """Send a request to the leader and pass on its response; None if none arrives in time."""
        token = self.stage.do(question)
        if token is None:
            self.world.schedule(TRY_US, lambda: then(None))
            return
        self._await(token, self.world.now_ms + ANSWER_MS, then)

    def _await(
        self, token: ReplyToken, until_ms: int, then: Callable[[MembershipResponse | None], None]
    ) -> None:
        answer = self.world.answers.pop(token, None)
        if answer is not None or self.world.now_ms >= until_ms:
            then(answer)
        else:
            self.world.schedule(LOOK_US, lambda: self._await(token, until_ms, then))
