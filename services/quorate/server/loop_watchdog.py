"""Watchdog thread that reports when the event loop is blocked (rule `disk_call_deadline`).

The loop itself writes appends, and waits when the kernel has no room for a dirty page. Nothing on
the loop can report that: probes time out, peers turn to another leader, and the operator sees only
silence. The thread reports in the log and in the metrics where the loop is blocked, and afterwards
for how long it was.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

log = logging.getLogger(__name__)
POLL_INTERVAL_S: Final = 0.25
# Seconds. No iteration takes 20 ms; on a machine that is busy with other processes one may take
# half a second.
STALL_THRESHOLD_S: Final = 1.0
# The innermost calls show what the loop waits for.
_FRAMES: Final = 4


class LoopWatchdog:
    """Watches the loop of the thread that created it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._thread_id = threading.get_ident()
        self._asked_s = clock()
        self._is_asking = False
        self._is_told = False
        self._over = threading.Event()
        self.stalls = 0

    def start(self) -> None:
        """Watch until `stop`."""
        threading.Thread(target=self._run, name="loop watch", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._over.set()

    @property
    def stalled_s(self) -> float:
        """Seconds for which the loop has been blocked; 0 if it runs. Callable from any thread."""
        age_s = self._clock() - self._asked_s if self._is_asking else 0.0
        return age_s if age_s >= STALL_THRESHOLD_S else 0.0

    def _run(self) -> None:
        while not self._over.wait(POLL_INTERVAL_S):
            self.poll()

    def poll(self) -> None:
        """Schedule a callback on the loop, or report that the last one has not run."""
        if not self._is_asking:
            self._asked_s, self._is_asking = self._clock(), True
            # A loop that has ended runs no more callbacks.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._turned)
        elif self.stalled_s and not self._is_told:
            self._is_told = True
            self.stalls += 1
            log.error(
                "the event loop stands, and nobody is answered: %s", self._where(), extra=_ABOUT
            )

    def _turned(self) -> None:
        """Record that the loop runs; the loop itself calls this."""
        self._is_asking = False
        if self._is_told:
            self._is_told = False
            log.warning("the event loop stood for %.1f s", self._clock() - self._asked_s)

    def _where(self) -> str:
        frame = sys._current_frames().get(self._thread_id)
        calls = traceback.extract_stack(frame)[-_FRAMES:]
        return " < ".join(f"{call.name} ({call.filename}:{call.lineno})" for call in calls[::-1])


_ABOUT: Final = {"repeats": ("the event loop stands",)}
