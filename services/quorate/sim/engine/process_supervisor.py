"""Restarts processes that have exited, and repairs directories they refuse.

It also schedules random crashes. The crash is drawn when a process is about to take the step, and
recorded as an action.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from quorate.sim.actions.disks import ReplaceDisk
from quorate.sim.actions.processes import CrashAtStep
from quorate.sim.checkers.oracle import Violation
from quorate.sim.randomness import SALTS
from quorate.storage.layout import EPOCH_CHECKPOINT

if TYPE_CHECKING:
    from random import Random

    from quorate.sim.action_runner import ActionRunner
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.engine.process_exits import ScheduledCrash


class ProcessSupervisor:
    """Supervises all processes of one cluster."""

    def __init__(self, action_runner: ActionRunner) -> None:
        self.action_runner = action_runner
        self.cluster = action_runner.cluster
        self.cluster.process_exits.when_dies = self.on_crash
        self.cluster.process_exits.when_stops = self.on_exit
        self.cluster.process_exits.when_runs_short = self.on_exit
        self.cluster.process_exits.when_refused = self.on_start_refused

    def begin(self) -> None:
        """Schedule a random crash for each process."""
        for node in self.cluster.nodes.values():
            self._expose(node)

    def on_crash(self, node: SimulatedNode, scheduled_crash: ScheduledCrash) -> None:
        """A process crashed between two effects or two disk calls; restart it later."""
        strike = self.action_runner.deaths.pop(node.node_id, None)
        if strike is not None:
            strike()
            return
        deed = self._draw_death(node, scheduled_crash)
        self.action_runner.record_crash(deed)
        deed.strike(self.action_runner, node)
        self._expose(node)

    def on_exit(self, node: SimulatedNode) -> None:
        """A process exited on its own; restart it later."""
        node.kill()
        stream = self.cluster.random_streams.stream("stops", node.node_id)
        self.action_runner.start_later(node, self._draw_down_us(stream))

    def on_start_refused(self, node: SimulatedNode, error: Exception) -> None:
        """A process could not start: repair its directory as an operator would, then restart it.

        Raises Violation if the directory was not tampered with.
        """
        stream = self.cluster.random_streams.stream("mending", node.node_id)
        down_us = self._draw_down_us(stream)
        if isinstance(error, OSError):
            self.action_runner.start_later(node, down_us)
        elif node.file_tampering.paths:
            is_new = stream.random() < 0.5
            delay_us = 0 if self.action_runner.is_over else down_us
            self.cluster.schedule(delay_us, partial(self._mend, node, is_new=is_new))
        else:
            raise Violation(f"node {node.node_id} refuses a directory that nothing harmed: {error}")

    def _mend(self, node: SimulatedNode, *, is_new: bool) -> None:
        """Repair a refused directory: restore or remove the files, or replace the disk."""
        paths = node.file_tampering.paths
        if node.is_listening or not paths:
            return
        is_spare = not self.action_runner.is_over and self.cluster.options.kraft_version > 0
        if is_new and is_spare and self.action_runner.survivability.can_lose_disk(node):
            ReplaceDisk(who=node.node_id, down_us=0).run(self.action_runner)
            return
        for path in paths:
            if path.endswith(EPOCH_CHECKPOINT):
                node.file_tampering.remove(path)
            else:
                node.file_tampering.repair(path)
        self.cluster.log(f"node {node.node_id} is mended")
        node.start()

    def _draw_death(self, node: SimulatedNode, scheduled_crash: ScheduledCrash) -> CrashAtStep:
        stream = self.cluster.random_streams.stream("deaths", node.node_id)
        survivals = self.cluster.options.disks.survivals
        return CrashAtStep(
            who=node.node_id,
            step=scheduled_crash.counted,
            down_us=self._draw_down_us(stream),
            is_dark=stream.random() < 0.5,
            survival=survivals[int(stream.random() * len(survivals))],
            salt=int(stream.random() * SALTS),
        )

    def _draw_down_us(self, stream: Random) -> int:
        """The time until a process that has exited is restarted."""
        return exponential(stream, self.cluster.options.processes.restart_ms * 1000)

    def _expose(self, node: SimulatedNode) -> None:
        mean = self.cluster.options.processes.crash_every_effects
        if mean:
            stream = self.cluster.random_streams.stream("deaths", node.node_id)
            self.cluster.process_exits.schedule_crash(node, 1 + exponential(stream, mean))


def exponential(stream: Random, mean: int) -> int:
    """A random interval between two events with this mean, exponentially distributed."""
    return int(-math.log(1.0 - stream.random()) * mean)
