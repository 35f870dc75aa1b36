"""Client requests: writes, linearizable reads, stale reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import named_value
from quorate.sim.action_runner import LEADER

if TYPE_CHECKING:
    from quorate.sim.action_runner import Deed, Stage


@named_value
class WriteRecords:
    """Write a batch of `count` operations."""

    count: int = 1
    who: int = LEADER

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is not None:
            stage.clients.write(node, self.count)


@named_value
class ReadCurrent:
    """A linearizable read: it must reflect every write that was acknowledged before it."""

    who: int = LEADER

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is not None:
            stage.clients.read_current(node)


@named_value
class ReadAny:
    """A stale read: it returns the state that the node has."""

    who: int

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is not None and not node.is_paused:
            stage.clients.read_any(node)


KINDS: Final[dict[str, type[Deed]]] = {
    "write": WriteRecords,
    "read-current": ReadCurrent,
    "read-any": ReadAny,
}
