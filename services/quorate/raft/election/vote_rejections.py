"""Counts recently rejected votes per candidate, for `describe` and the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.raft.timers import Timers
    from quorate.records.ids import Millis, NodeId

REJECTIONS_REPORTED_MS: Final = 300_000
REFUSALS_MAX: Final = 32


@value_type
class _Refusal:
    """Votes that were rejected for one nominee."""

    count: int
    reason: str
    last_ms: Millis


class VoteRejections:
    """Rejected votes of one replica, by nominee."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._by_nominee: dict[NodeId, _Refusal] = {}

    def add(self, nominee: NodeId, reason: str) -> None:
        """Count one more rejection."""
        before = self._by_nominee.pop(nominee, None)
        count = before.count if before is not None and self._is_recent(before) else 0
        if len(self._by_nominee) >= REFUSALS_MAX:
            # Any peer can make up nominees; the one with the oldest rejection is dropped first.
            del self._by_nominee[next(iter(self._by_nominee))]
        self._by_nominee[nominee] = _Refusal(count + 1, reason, self._timers.now)

    def remarks(self) -> list[str]:
        """Rejections of the last minutes, one line per nominee."""
        return [
            f"refused {refusal.count} vote(s) to {nominee}: {refusal.reason}"
            for nominee, refusal in self._by_nominee.items()
            if self._is_recent(refusal)
        ]

    def _is_recent(self, refusal: _Refusal) -> bool:
        """True if a rejection is recent enough to describe the current state of the quorum."""
        return self._timers.now - refusal.last_ms <= REJECTIONS_REPORTED_MS
