"""The single timer that wakes the core at its next deadline, or earlier."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.records.ids import Millis

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from quorate.server.host import Host


class WakeupTimer:
    """Set at each step; an early wake-up costs an empty step, setting a new timer costs more."""

    def __init__(self, host: Host, ring: Callable[[], None], context: Context) -> None:
        """Call `ring` in `context`, independently of the caller that set the timer."""
        self._host = host
        self._ring = ring
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms = Millis(0)
        # Time on the host's clock, in milliseconds, that the core last asked for.
        self.deadline_ms: Millis | None = None

    def set(self) -> None:
        """Set the timer to fire at the wanted time at the latest."""
        wanted_ms = self.deadline_ms
        if wanted_ms is None:
            return
        if self._timer is not None:
            if self._at_ms <= wanted_ms:
                return
            self._timer.cancel()
        self._at_ms = wanted_ms
        delay_s = max(0, wanted_ms - self._host.monotonic_ms()) / 1000
        self._timer = self._loop.call_later(delay_s, self._rings, context=self._context)

    def cancel(self) -> None:
        """Cancel the timer, until it is set again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rings(self) -> None:
        self._timer = None
        self._ring()
