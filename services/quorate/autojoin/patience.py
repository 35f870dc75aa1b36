"""How long a reason to wait is normal progress, before a person should look.

Every scaling and every roll waits for something; a Warning is for what does not pass by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.autojoin.steps import Waiting

if TYPE_CHECKING:
    from quorate.autojoin.steps import Action, Wait

PATIENCE_MS: Final = 60_000
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


class Patience:
    """Tells once of each wait that it is worth a warning."""

    def __init__(self) -> None:
        self._why: Waiting | None = None
        self._since_ms = 0
        self._has_warned = False

    def has_run_out(self, step: Action | Wait | None, now_ms: int) -> bool:
        """True the first time that this wait is one for a person; None is nothing to wait for."""
        why = getattr(step, "why", None)
        if why is not self._why:
            self._why, self._since_ms, self._has_warned = why, now_ms, False
        # A clock that went back starts the time again.
        self._since_ms = min(self._since_ms, now_ms)
        if why is None or why in NEVER or self._has_warned:
            return False
        self._has_warned = why in AT_ONCE or now_ms - self._since_ms >= PATIENCE_MS
        return self._has_warned
