"""Raises one Warning for a person when a wait lasts too long.

Every scaling and every update waits for something; a Warning is for a wait that does not end by
itself. Reasons that alternate, or give way to an action every few passes, do not end either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.autojoin.actions import WaitReason

if TYPE_CHECKING:
    from quorate.autojoin.actions import Action, Wait

PATIENCE_MS: Final = 60_000
# For all waits together since the last rest: an update is many short ones.
UNREST_MS: Final = 10 * PATIENCE_MS
# Only a person ends these waits.
AT_ONCE: Final = frozenset(
    {WaitReason.OTHER_CLUSTER, WaitReason.DISK_RETURNED, WaitReason.KRAFT_VERSION_TOO_OLD}
)
# These are intended by a person, or end at a known time.
NEVER: Final = frozenset(
    {
        WaitReason.IN_STEP,
        WaitReason.PAUSED,
        WaitReason.GOING,
        WaitReason.NO_REPLICAS,
        WaitReason.GHOST_SEEN_ONCE,
    }
)


# A quorum that is about to lose a voter without a pod is not at rest.
_AT_REST: Final = NEVER - {WaitReason.GHOST_SEEN_ONCE}


class Patience:
    """Decides for each wait if a warning is due, until it was given."""

    def __init__(self) -> None:
        self._why: WaitReason | None = None
        self._since_ms = 0
        # None while there is no wait.
        self._restless_since_ms: int | None = None
        self._warned: set[WaitReason] = set()

    def has_run_out(self, step: Action | Wait | None, now_ms: int) -> bool:
        """True if this wait needs a person's attention; None is no wait."""
        why, since_ms = getattr(step, "why", None), self._restless_since_ms
        if step is None or why in _AT_REST:
            since_ms = None
            self._warned.clear()
        else:
            # If the clock goes back, the time starts over.
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

    def has_warned(self, why: WaitReason) -> None:
        """Record that the warning about such a wait was given."""
        self._warned.add(why)
