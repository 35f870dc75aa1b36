"""Client requests: writes, linearizable reads, stale reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type
from quorate.sim.action_runner import LEADER

if TYPE_CHECKING:
    from quorate.sim.action_runner import Deed, Stage


@keyword_value_type
class WriteRecords:
    """A batch of operations at once."""

    count: int = 1
    who: int = LEADER

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is not None:
            stage.clients.write(node, self.count)


@keyword_value_type
class ReadCurrent:
    """A read that has to reflect all that any client knows."""

    who: int = LEADER

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is not None:
            stage.clients.read_current(node)


@keyword_value_type
class ReadAny:
    """A read of what a node has."""

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
