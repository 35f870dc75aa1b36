"""Kill, power loss, crash at a step, pause, graceful stop, slow state machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.raft.api import StateMachineProgress
from quorate.records.value_types import keyword_value_type
from quorate.sim.engine.disk import Survival

if TYPE_CHECKING:
    from quorate.sim.action_runner import Action, ActionRunner
    from quorate.sim.engine.node import SimulatedNode


@keyword_value_type
class Kill:
    """A process ends on the spot; another is started after `down_us`."""

    who: int
    down_us: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.resolve(self.who)
        if node is not None:
            action_runner.cluster.log(f"node {node.node_id} is killed")
            node.kill()
            action_runner.start_later(node, self.down_us)


@keyword_value_type
class PowerOff:
    """A machine goes dark; of what was not flushed `survival` and draws of `salt` leave a part."""

    who: int
    down_us: int
    survival: Survival = Survival.NOTHING
    salt: int = 0

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.resolve(self.who)
        if node is not None:
            action_runner.cluster.log(f"node {node.node_id} loses power")
            node.power_off(self.survival, self.salt)
            action_runner.start_later(node, self.down_us)


@keyword_value_type
class CrashAtStep:
    """A process dies before its so many-th step from now, an effect or a call to its disk.

    Its machine lives, or goes dark with it where `is_dark`.
    """

    who: int
    step: int
    down_us: int
    is_dark: bool = False
    survival: Survival = Survival.NOTHING
    salt: int = 0

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.resolve(self.who)
        if node is not None:
            action_runner.cluster.process_exits.schedule_crash(node, self.step)
            action_runner.deaths[node.node_id] = partial(self.strike, action_runner, node)

    def strike(self, action_runner: ActionRunner, node: SimulatedNode) -> None:
        """The step has come."""
        action_runner.cluster.log(
            f"node {node.node_id} {'loses power' if self.is_dark else 'dies'}"
        )
        if self.is_dark:
            node.power_off(self.survival, self.salt)
        else:
            node.kill()
        action_runner.start_later(node, self.down_us)


@keyword_value_type
class Pause:
    """A process stands still for a while; its connections stay."""

    who: int
    for_us: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is None or node.is_paused:
            return
        world, incarnation = action_runner.cluster, node.incarnation
        world.log(f"node {node.node_id} is paused")
        node.pause()

        def resume() -> None:
            if node.incarnation == incarnation and node.is_paused:
                world.log(f"node {node.node_id} goes on")
                node.resume()

        world.schedule(self.for_us, resume)


@keyword_value_type
class Stop:
    """A graceful stop: the process hands over, then ends, and another is started."""

    who: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is not None:
            action_runner.cluster.log(f"node {node.node_id} is asked to stop")
            action_runner.request_stop(node)


@keyword_value_type
class FallBehind:
    """A state machine is behind for a while (rule 11)."""

    who: int
    for_us: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is None:
            return
        incarnation = node.incarnation
        node.deliver(StateMachineProgress(ready=False))

        def ready() -> None:
            if node.incarnation == incarnation:
                node.deliver(StateMachineProgress(ready=True))

        action_runner.cluster.schedule(self.for_us, ready)


KINDS: Final[dict[str, type[Action]]] = {
    "kill": Kill,
    "lose-power": PowerOff,
    "die": CrashAtStep,
    "pause": Pause,
    "stop": Stop,
    "fall-behind": FallBehind,
}
