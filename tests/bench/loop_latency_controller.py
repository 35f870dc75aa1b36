"""A controller that measures the longest turn of its event loop, for `tests.bench.fairness`.

    python -m tests.bench.loop_latency_controller --config FILE

A turn is the CPU time of the loop's thread between two ticks of 2 ms, so that other processes on
the machine do not count. SIGUSR1 writes the longest turn since the last signal to the file that
QUORATE_TURNS names, and how much of it was passes of the garbage collector, both in milliseconds.
The loop is the one that a controller has: uvloop's.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop

from quorate.server.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Coroutine

TICK_S: Final = 0.002
_run: Final = uvloop.run


class Ticks:
    """The longest turn since `write`."""

    def __init__(self) -> None:
        # A turn, and the passes of the garbage collector in it.
        self._longest_ns = (0, 0)
        self._last_ns = 0
        self._passes_ns = 0
        self._pass_began_ns = 0

    def start(self) -> None:
        """Begin to tick on the running loop."""
        self._last_ns = time.thread_time_ns()
        gc.callbacks.append(self._on_pass)
        asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._longest_ns = max(self._longest_ns, self._turn_ns())
        self._last_ns = time.thread_time_ns()
        self._passes_ns = 0
        asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _turn_ns(self) -> tuple[int, int]:
        """The current turn, and the passes in it."""
        return time.thread_time_ns() - self._last_ns, self._passes_ns

    def _on_pass(self, phase: str, _info: dict[str, int]) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if phase == "start":
            self._pass_began_ns = time.thread_time_ns()
        else:
            self._passes_ns += time.thread_time_ns() - self._pass_began_ns

    def write(self, *_: object) -> None:
        """Write the longest turn, the current one included, and forget it."""
        longest_ns, passes_ns = max(self._longest_ns, self._turn_ns())
        self._longest_ns = (0, 0)
        path = Path(os.environ["QUORATE_TURNS"])
        part = path.with_suffix(".part")
        part.write_text(f"{longest_ns / 1e6:.3f} {passes_ns / 1e6:.3f}", encoding="ascii")
        part.rename(path)


_ticks: Final = Ticks()


async def _ticking(controller: Coroutine[Any, Any, int]) -> int:
    _ticks.start()
    return await controller


def _run_ticking(controller: Coroutine[Any, Any, int]) -> int:
    return _run(_ticking(controller))


if __name__ == "__main__":
    uvloop.run = _run_ticking  # type: ignore[assignment]
    signal.signal(signal.SIGUSR1, _ticks.write)
    sys.exit(main())
