"""Cores are woken at the requested time, and have nothing to do before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import TimerFired
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.sim.views import NodeView

# The number of periodic checks per wake-up, which costs a step.
LOOKS: Final = 6
# A timer of the loop may be late by a rounded millisecond, or because of other work.
SLACK_MS: Final = 20


class TimersAreArmed(Invariant):
    """A core is woken at the time it requested, and has nothing to do if it is woken earlier.

    Otherwise a timer is missing: its work would be late, with the next event that wakes the core,
    and the bounds on elections are too loose to detect that. The check wakes one core at a time, in
    rotation. Source: the contract of `Update.wake_at_ms` (`raft/api.py`).
    """

    _turn = 0

    def on_tick(self) -> None:
        self._turn += 1
        if self._turn % LOOKS == 0 and (running := self.world.running()):
            self._wake(running[self._turn // LOOKS % len(running)])

    def _wake(self, node: NodeView) -> None:
        if not node.is_at_rest or (wake_at_ms := node.wake_at_ms) is None:
            return
        if wake_at_ms + SLACK_MS < node.local_ms:
            raise Violation(
                f"node {node.node_id} wanted to be woken {node.local_ms - wake_at_ms} ms ago"
            )
        if wake_at_ms <= node.local_ms:
            return
        update = node.core.step(TimerFired(), node.local_ms)
        if update.effects:
            raise Violation(
                f"node {node.node_id} wants to be woken in {wake_at_ms - node.local_ms} ms, "
                f"and has a {type(update.effects[0]).__name__} to do now"
            )
