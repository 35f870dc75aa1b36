"""The state that all faults of one run share: claimed nodes, health, counts and violations."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.chaos.liveness import SECOND, Health

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from random import Random

    from tests.chaos.cluster import Cluster
    from tests.chaos.monitor import Watch


class Scene:
    """One run of chaos. `violations` are nodes that did not come back, and faults that failed."""

    def __init__(self, cluster: Cluster, watch: Watch, random: Random) -> None:
        self.cluster = cluster
        self.watch = watch
        self.random = random
        self.health = Health(len(cluster.nodes), set(cluster.nodes))
        self.violations: list[str] = []
        self.counts: dict[str, int] = {}
        self.damaged: set[int] = set()
        # The time at which faults end, in monotonic nanoseconds.
        self.until = 0
        self._busy: set[int] = set()
        self._stopped: set[int] = set()
        # For each cause the links that it blocks, by source and target.
        self._blocked: dict[str, set[tuple[int, int]]] = {}

    async def hold(self, seconds: float) -> None:
        left = (self.until - time.monotonic_ns()) / SECOND
        await asyncio.sleep(max(0.0, min(seconds, left)))

    @contextmanager
    def claimed(self, *, how_many: int = 1, but: int | None = None) -> Iterator[list[int]]:
        """Nodes that the other lane leaves alone; half of the time the leader is among them."""
        free = [i for i in self.cluster.nodes if i not in self._busy and i != but]
        chosen = self.random.sample(free, min(how_many, len(free)))
        leader = self.watch.leader
        if leader in free and leader not in chosen and self.random.random() < 0.4:
            chosen[0] = leader
        self._busy.update(chosen)
        try:
            yield sorted(chosen)
        finally:
            self._busy.difference_update(chosen)

    def tell(self, kind: str, text: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.watch.note(text)

    def named(self, nodes: Sequence[int]) -> str:
        names = [f"{i} (leader)" if i == self.watch.leader else str(i) for i in nodes]
        return ", ".join(names)

    # --- health -----------------------------------------------------------------------------------

    def note_health(self) -> None:
        """Up is who was not stopped and is not damaged."""
        self.health.up = set(self.cluster.nodes) - self._stopped - self.damaged
        self.health.leader = self.watch.leader
        self.health.note(time.monotonic_ns())

    def down(self, *nodes: int) -> None:
        self._stopped.update(nodes)
        self.note_health()

    def up(self, *nodes: int) -> None:
        self._stopped.difference_update(nodes)
        self.note_health()

    def block(self, cause: str, pairs: Iterable[tuple[int, int]]) -> None:
        """From now on a cause keeps the first of each pair from the second; without pairs none."""
        self._blocked[cause] = set(pairs)
        self.health.blocked = set().union(*self._blocked.values())
        self.note_health()

    # --- processes --------------------------------------------------------------------------------

    async def start(self, node_id: int) -> None:
        """Up means that it answers, and that its log is whole."""
        await self.cluster.start(node_id)
        try:
            await self.cluster.answers(node_id)
        except (TimeoutError, ProcessLookupError) as error:
            self.watch.note(f"{node_id} did not come back: {error!r}")
            self.violations.append(f"controller {node_id} did not come back: {error!r}")
        else:
            self.up(node_id)
            self.watch.note(f"{node_id} is up")
