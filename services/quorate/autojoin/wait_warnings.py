"""Turns a wait that lasts too long into one Warning for a person.

Every scaling and every roll waits for something; a Warning is for what does not pass by itself.
Reasons that take turns, or give way to an action every few passes, do not pass either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.autojoin.actions import Waiting

if TYPE_CHECKING:
    from quorate.autojoin.actions import Action, Wait

PATIENCE_MS: Final = 60_000
# For all waits together, since nothing was to be waited for: a roll is many short ones.
UNREST_MS: Final = 10 * PATIENCE_MS
# Only a person ends these.
AT_ONCE: Final = frozenset(
    {Waiting.OTHER_CLUSTER, Waiting.DISK_RETURNED, Waiting.KRAFT_VERSION_TOO_OLD}
)
# These are as a person wants it, or end at a time that is known.
NEVER: Final = frozenset(
    {
        Waiting.IN_STEP,
        Waiting.PAUSED,
        Waiting.GOING,
        Waiting.NO_REPLICAS,
        Waiting.GHOST_SEEN_ONCE,
    }
)


# A quorum that is about to lose a voter without a pod is not at rest.
_AT_REST: Final = NEVER - {Waiting.GHOST_SEEN_ONCE}


class Patience:
    """Tells of each wait that it is worth a warning, until that was given."""

    def __init__(self) -> None:
        self._why: Waiting | None = None
        self._since_ms = 0
        # None while nothing is waited for.
        self._restless_since_ms: int | None = None
        self._warned: set[Waiting] = set()

    def has_run_out(self, step: Action | Wait | None, now_ms: int) -> bool:
        """True where this wait is one for a person; None is nothing to wait for."""
        why, since_ms = getattr(step, "why", None), self._restless_since_ms
        if step is None or why in _AT_REST:
            since_ms = None
            self._warned.clear()
        else:
            # A clock that went back starts the time again.
            since_ms = min(now_ms, now_ms if since_ms is None else since_ms)
        self._restless_since_ms = since_ms
        if why is not self._why:
            self._why, self._since_ms = why, now_ms
        self._since_ms = min(self._since_ms, now_ms)
        if why is None or why in NEVER or why in self._warned:
            return False
        if why in AT_ONCE or now_ms - self._since_ms >= PATIENCE_MS:
            return True
        return not self._warned and since_ms is not None and now_ms - since_ms >= UNREST_MS

    def has_warned(self, why: Waiting) -> None:
        """Note that the warning about such a wait was given."""
        self._warned.add(why)
