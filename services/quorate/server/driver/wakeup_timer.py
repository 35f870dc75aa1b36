"""The one timer of a core: it rings at the wake-up that the core asked for last, or before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.records.ids import Millis

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from quorate.server.host import Host


class Alarm:
    """Set at each step; to ring early costs a step without news, to set a timer anew costs more."""

    def __init__(self, host: Host, ring: Callable[[], None], context: Context) -> None:
        """`ring` is called in that context, whoever set the alarm."""
        self._host = host
        self._ring = ring
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms = Millis(0)
        # The moment of the host's clock that the core asked for last.
        self.wanted_ms: Millis | None = None

    def set(self) -> None:
        """Ring when that is wanted, at the latest."""
        wanted_ms = self.wanted_ms
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
        """Never ring again, unless it is set."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rings(self) -> None:
        self._timer = None
        self._ring()
