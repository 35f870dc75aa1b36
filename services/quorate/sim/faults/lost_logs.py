"""Log prefixes that a machine once held durably and has lost to corruption or replacement.

A leader may still rely on them, because they were acknowledged while they existed. The invariants
that check a leader accept exactly these prefixes, and no other missing records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from quorate.records.ids import DirectoryId, Offset
    from quorate.sim.checkers.log_view import LogView


class _Lost(NamedTuple):
    """One lost log: the chain value at the end of each batch."""

    directory_id: DirectoryId
    start: Offset
    chains: dict[Offset, int]


class LostLogs:
    """The lost logs of one machine."""

    def __init__(self) -> None:
        self._lost: list[_Lost] = []

    def note(self, directory_id: DirectoryId, log: LogView, safe_end: Offset) -> None:
        """Record that the part of `log` below `safe_end` was durable and is now lost."""
        chains = {entry.end: entry.chain for entry in log.entries if entry.end <= safe_end}
        self._lost.append(_Lost(directory_id, log.start.offset, chains))

    def once_held(
        self, directory_id: DirectoryId | None, offset: Offset, chain: int | None
    ) -> bool:
        """True if a lost disk of that id had the log below `offset`; None stands for any id."""
        return any(
            offset <= lost.start or (chain is not None and lost.chains.get(offset) == chain)
            for lost in self._lost
            if directory_id in (None, lost.directory_id)
        )
