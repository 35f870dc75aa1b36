"""Draws the client load: writes, linearizable reads, stale reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.actions.client_requests import ReadAny, ReadCurrent, WriteRecords
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.sim.action_runner import ActionRunner


class Workload:
    """Keeps clients busy until faults stop."""

    def __init__(self, action_runner: ActionRunner) -> None:
        self.action_runner = action_runner
        self.cluster = action_runner.cluster

    def begin(self) -> None:
        options = self.cluster.options
        self._repeat("writes", options.clients.write_every_ms, self.write)
        self._repeat("current reads", options.clients.read_every_ms, self.read_current)
        self._repeat("reads", options.clients.follower_read_every_ms, self.read_any)

    def _repeat(self, purpose: str, every_ms: int, action: Callable[[RandomSource], None]) -> None:
        draws = RandomSource(self.cluster.seed, purpose)

        def again() -> None:
            if not self.action_runner.is_over:
                action(draws)
                self.cluster.schedule(draws.between(0, 2000 * every_ms), again)

        self.cluster.schedule(draws.between(0, 2000 * every_ms), again)

    def write(self, random_source: RandomSource) -> None:
        leaders = self.action_runner.clients.believed_leaders()
        if leaders:
            count = random_source.between(1, self.cluster.options.clients.records_max)
            self.action_runner.run(
                WriteRecords(count=count, who=random_source.choice(leaders).node_id)
            )

    def read_current(self, random_source: RandomSource) -> None:
        leaders = self.action_runner.clients.believed_leaders()
        if leaders:
            self.action_runner.run(ReadCurrent(who=random_source.choice(leaders).node_id))

    def read_any(self, random_source: RandomSource) -> None:
        nodes = [n for n in self.cluster.running() if not n.is_paused]
        if nodes:
            self.action_runner.run(ReadAny(who=random_source.choice(nodes).node_id))
