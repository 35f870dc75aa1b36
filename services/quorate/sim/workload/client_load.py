"""Draws the client load: writes, linearizable reads, stale reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.actions.client_requests import ReadAny, ReadCurrent, WriteRecords
from quorate.sim.randomness import Draws

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.sim.action_runner import Stage


class Workload:
    """Keeps clients busy until faults stop."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world

    def begin(self) -> None:
        options = self.world.options
        self._repeat("writes", options.clients.write_every_ms, self.write)
        self._repeat("current reads", options.clients.read_every_ms, self.read_current)
        self._repeat("reads", options.clients.follower_read_every_ms, self.read_any)

    def _repeat(self, purpose: str, every_ms: int, action: Callable[[Draws], None]) -> None:
        draws = Draws(self.world.seed, purpose)

        def again() -> None:
            if not self.stage.is_over:
                action(draws)
                self.world.schedule(draws.between(0, 2000 * every_ms), again)

        self.world.schedule(draws.between(0, 2000 * every_ms), again)

    def write(self, draws: Draws) -> None:
        leaders = self.stage.clients.believed_leaders()
        if leaders:
            count = draws.between(1, self.world.options.clients.records_max)
            self.stage.do(WriteRecords(count=count, who=draws.one(leaders).node_id))

    def read_current(self, draws: Draws) -> None:
        leaders = self.stage.clients.believed_leaders()
        if leaders:
            self.stage.do(ReadCurrent(who=draws.one(leaders).node_id))

    def read_any(self, draws: Draws) -> None:
        nodes = [n for n in self.world.running() if not n.is_paused]
        if nodes:
            self.stage.do(ReadAny(who=draws.one(nodes).node_id))
