"""Restarts processes that have exited, and repairs directories they refuse.

It also schedules random crashes. The crash is drawn when a process is about to take the step, and
recorded as an action.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from quorate.sim.actions.disks import Wipe
from quorate.sim.actions.processes import Die
from quorate.sim.checkers.oracle import Violation
from quorate.sim.randomness import SALTS
from quorate.storage.layout import EPOCH_CHECKPOINT

if TYPE_CHECKING:
    from random import Random

    from quorate.sim.action_runner import Stage
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.engine.process_exits import Doom


class Keeper:
    """Supervises all processes of one cluster."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world
        self.world.endings.when_dies = self.died
        self.world.endings.when_stops = self.stopped
        self.world.endings.when_runs_short = self.stopped
        self.world.endings.when_refused = self.refused

    def begin(self) -> None:
        """Schedule a random crash for each process."""
        for node in self.world.nodes.values():
            self._expose(node)

    def died(self, node: SimulatedNode, doom: Doom) -> None:
        """A process crashed between two effects or two disk calls; restart it later."""
        strike = self.stage.deaths.pop(node.node_id, None)
        if strike is not None:
            strike()
            return
        deed = self._draw_death(node, doom)
        self.stage.remember_death(deed)
        deed.strike(self.stage, node)
        self._expose(node)

    def stopped(self, node: SimulatedNode) -> None:
        """A process exited on its own; restart it later."""
        node.kill()
        stream = self.world.fates.of("stops", node.node_id)
        self.stage.start_later(node, self._draw_down_us(stream))

    def refused(self, node: SimulatedNode, error: Exception) -> None:
        """A process could not start: repair its directory as an operator would, then restart it.

        Raises Violation if the directory was not tampered with.
        """
        stream = self.world.fates.of("mending", node.node_id)
        down_us = self._draw_down_us(stream)
        if isinstance(error, OSError):
            self.stage.start_later(node, down_us)
        elif node.spoiling.paths:
            is_new = stream.random() < 0.5
            delay_us = 0 if self.stage.is_over else down_us
            self.world.schedule(delay_us, partial(self._mend, node, is_new=is_new))
        else:
            raise Violation(f"node {node.node_id} refuses a directory that nothing harmed: {error}")

    def _mend(self, node: SimulatedNode, *, is_new: bool) -> None:
        """Repair a refused directory: restore or remove the files, or replace the disk."""
        paths = node.spoiling.paths
        if node.is_listening or not paths:
            return
        is_spare = not self.stage.is_over and self.world.options.kraft_version > 0
        if is_new and is_spare and self.stage.sparing.can_spare(node):
            Wipe(who=node.node_id, down_us=0).do(self.stage)
            return
        for path in paths:
            if path.endswith(EPOCH_CHECKPOINT):
                node.spoiling.remove(path)
            else:
                node.spoiling.mend(path)
        self.world.remark(f"node {node.node_id} is mended")
        node.start()

    def _draw_death(self, node: SimulatedNode, doom: Doom) -> Die:
        stream = self.world.fates.of("deaths", node.node_id)
        survivals = self.world.options.disks.survivals
        return Die(
            who=node.node_id,
            step=doom.counted,
            down_us=self._draw_down_us(stream),
            is_dark=stream.random() < 0.5,
            survival=survivals[int(stream.random() * len(survivals))],
            salt=int(stream.random() * SALTS),
        )

    def _draw_down_us(self, stream: Random) -> int:
        """The time until a process that has exited is restarted."""
        return exponential(stream, self.world.options.processes.restart_ms * 1000)

    def _expose(self, node: SimulatedNode) -> None:
        mean = self.world.options.processes.crash_every_effects
        if mean:
            stream = self.world.fates.of("deaths", node.node_id)
            self.world.endings.doom(node, 1 + exponential(stream, mean))


def exponential(stream: Random, mean: int) -> int:
    """A random interval between two events with this mean, exponentially distributed."""
    return int(-math.log(1.0 - stream.random()) * mean)
