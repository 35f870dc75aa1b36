"""Whether this controller could lead: its disk has room, and its image has caught up (rule 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft import api

if TYPE_CHECKING:
    from collections.abc import Callable

# A replay that is further behind makes this voter wait before it campaigns.
READY_LAG_MAX: Final = 10_000


class Fitness:
    """Tells the core what it has to know of that, whenever it changes."""

    def __init__(self, tell: Callable[[api.StateMachineProgress], None]) -> None:
        self._tell_core = tell
        self._has_space = True
        self._has_caught_up = True
        self._was_fit = True

    def set_space(self, *, is_enough: bool) -> None:
        """Whether the disk has room for what a leader appends."""
        self._has_space = is_enough
        self._tell()

    def set_lag(self, records: int) -> None:
        """How many committed records the image has yet to hold."""
        self.set_caught_up(has_caught_up=records <= READY_LAG_MAX)

    def set_caught_up(self, *, has_caught_up: bool) -> None:
        """Whether the image is close enough to what is committed."""
        self._has_caught_up = has_caught_up
        self._tell()

    def _tell(self) -> None:
        is_fit = self._has_space and self._has_caught_up
        if is_fit != self._was_fit:
            self._was_fit = is_fit
            self._tell_core(api.StateMachineProgress(is_fit))
