"""Log prefixes that a machine once held durably and has lost to corruption or replacement.

A leader may still rely on them, because they were acknowledged while they existed. An invariant
that checks the leader looks here for exactly these, and excuses nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from quorate.records.ids import DirectoryId, Offset
    from quorate.sim.checkers.log_view import LogView


class _Lost(NamedTuple):
    """One log as it was: what everything below each end of a batch chained to."""

    directory_id: DirectoryId
    start: Offset
    chains: dict[Offset, int]


class LostLogs:
    """All that one machine has lost."""

    def __init__(self) -> None:
        self._lost: list[_Lost] = []

    def note(self, directory_id: DirectoryId, log: LogView, safe_end: Offset) -> None:
        """Bits rot, or a disk goes: from now on nobody may count on what was flushed there."""
        chains = {entry.end: entry.chain for entry in log.entries if entry.end <= safe_end}
        self._lost.append(_Lost(directory_id, log.start.offset, chains))

    def once_held(
        self, directory_id: DirectoryId | None, offset: Offset, chain: int | None
    ) -> bool:
        """True if a disk of that id, of any id where it is None, had the log below `offset`."""
        return any(
            offset <= lost.start or (chain is not None and lost.chains.get(offset) == chain)
            for lost in self._lost
            if directory_id in (None, lost.directory_id)
        )
