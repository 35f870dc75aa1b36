"""Client requests: writes, linearizable reads, stale reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type
from quorate.sim.action_runner import LEADER

if TYPE_CHECKING:
    from quorate.sim.action_runner import Action, ActionRunner


@keyword_value_type
class WriteRecords:
    """Write a batch of `count` operations."""

    count: int = 1
    who: int = LEADER

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is not None:
            action_runner.clients.write(node, self.count)


@keyword_value_type
class ReadCurrent:
    """A linearizable read: it must reflect every write that was acknowledged before it."""

    who: int = LEADER

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is not None:
            action_runner.clients.read_current(node)


@keyword_value_type
class ReadAny:
    """A stale read: it returns the state that the node has."""

    who: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is not None and not node.is_paused:
            action_runner.clients.read_any(node)


KINDS: Final[dict[str, type[Action]]] = {
    "write": WriteRecords,
    "read-current": ReadCurrent,
    "read-any": ReadAny,
}
