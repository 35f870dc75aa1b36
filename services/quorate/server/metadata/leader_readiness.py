"""Tells the core whether this controller is ready to lead: disk space, replay lag.

See rule `unready_voter_waits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft import api

if TYPE_CHECKING:
    from collections.abc import Callable

# Records of replay lag above which this voter defers campaigning.
READY_LAG_MAX: Final = 10_000


class LeaderReadiness:
    """Reports readiness to lead to the core whenever it changes."""

    def __init__(self, tell: Callable[[api.StateMachineProgress], None]) -> None:
        self._tell_core = tell
        self._has_space = True
        self._has_caught_up = True
        self._was_fit = True

    def set_space(self, *, is_enough: bool) -> None:
        """Note whether the disk has free space for a leader's appends."""
        self._has_space = is_enough
        self._tell()

    def set_lag(self, records: int) -> None:
        """Note how many committed records are not applied to the image yet."""
        self.set_caught_up(has_caught_up=records <= READY_LAG_MAX)

    def set_caught_up(self, *, has_caught_up: bool) -> None:
        """Note whether the image is close enough to the high watermark."""
        self._has_caught_up = has_caught_up
        self._tell()

    def _tell(self) -> None:
        is_fit = self._has_space and self._has_caught_up
        if is_fit != self._was_fit:
            self._was_fit = is_fit
            self._tell_core(api.StateMachineProgress(is_fit))
