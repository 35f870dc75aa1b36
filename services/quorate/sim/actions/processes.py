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
    """A process is killed; the node restarts after `down_us`."""

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
    """A machine loses power.

    `survival` and the random stream of `salt` decide which unflushed writes survive.
    """

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
    """A process crashes at a step: before an effect or a disk call, the `step`-th from now.

    With `is_dark` its machine loses power as well.
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
        """Crash now, at the scheduled step."""
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
    """A process is suspended for a while, as by SIGSTOP; its connections stay."""

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
    """A graceful stop: the process transfers leadership and exits, and the node restarts."""

    who: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is not None:
            action_runner.cluster.log(f"node {node.node_id} is asked to stop")
            action_runner.request_stop(node)


@keyword_value_type
class FallBehind:
    """A state machine lags for a while (rule `unready_voter_waits`)."""

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
