"""Kill, power loss, crash at a step, pause, graceful stop, slow state machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.raft.api import StateMachineProgress
from quorate.records.value_types import named_value
from quorate.sim.engine.disk import Survival

if TYPE_CHECKING:
    from quorate.sim.action_runner import Deed, Stage
    from quorate.sim.engine.node import SimulatedNode


@named_value
class Kill:
    """A process is killed; the node restarts after `down_us`."""

    who: int
    down_us: int

    def do(self, stage: Stage) -> None:
        node = stage.find(self.who)
        if node is not None:
            stage.world.remark(f"node {node.node_id} is killed")
            node.kill()
            stage.start_later(node, self.down_us)


@named_value
class LosePower:
    """A machine loses power.

    `survival` and the random stream of `salt` decide which unflushed writes survive.
    """

    who: int
    down_us: int
    survival: Survival = Survival.NOTHING
    salt: int = 0

    def do(self, stage: Stage) -> None:
        node = stage.find(self.who)
        if node is not None:
            stage.world.remark(f"node {node.node_id} loses power")
            node.power_off(self.survival, self.salt)
            stage.start_later(node, self.down_us)


@named_value
class Die:
    """A process crashes at a step: before an effect or a disk call, the `step`-th from now.

    With `is_dark` its machine loses power as well.
    """

    who: int
    step: int
    down_us: int
    is_dark: bool = False
    survival: Survival = Survival.NOTHING
    salt: int = 0

    def do(self, stage: Stage) -> None:
        node = stage.find(self.who)
        if node is not None:
            stage.world.endings.doom(node, self.step)
            stage.deaths[node.node_id] = partial(self.strike, stage, node)

    def strike(self, stage: Stage, node: SimulatedNode) -> None:
        """Crash now, at the scheduled step."""
        stage.world.remark(f"node {node.node_id} {'loses power' if self.is_dark else 'dies'}")
        if self.is_dark:
            node.power_off(self.survival, self.salt)
        else:
            node.kill()
        stage.start_later(node, self.down_us)


@named_value
class Pause:
    """A process is suspended for a while, as by SIGSTOP; its connections stay."""

    who: int
    for_us: int

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is None or node.is_paused:
            return
        world, incarnation = stage.world, node.incarnation
        world.remark(f"node {node.node_id} is paused")
        node.pause()

        def resume() -> None:
            if node.incarnation == incarnation and node.is_paused:
                world.remark(f"node {node.node_id} goes on")
                node.resume()

        world.schedule(self.for_us, resume)


@named_value
class Stop:
    """A graceful stop: the process transfers leadership and exits, and the node restarts."""

    who: int

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is not None:
            stage.world.remark(f"node {node.node_id} is asked to stop")
            stage.ask_to_stop(node)


@named_value
class FallBehind:
    """A state machine lags for a while (rule `unready_voter_waits`)."""

    who: int
    for_us: int

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is None:
            return
        incarnation = node.incarnation
        node.deliver(StateMachineProgress(ready=False))

        def ready() -> None:
            if node.incarnation == incarnation:
                node.deliver(StateMachineProgress(ready=True))

        stage.world.schedule(self.for_us, ready)


KINDS: Final[dict[str, type[Deed]]] = {
    "kill": Kill,
    "lose-power": LosePower,
    "die": Die,
    "pause": Pause,
    "stop": Stop,
    "fall-behind": FallBehind,
}
