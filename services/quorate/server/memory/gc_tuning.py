"""Keeps the garbage collector's passes short: what has stayed is not looked at again.

A pass over an image of a hundred thousand topics stops the loop for half a second, and finds
nothing: images hold no cycles, and counting references frees them. A pass that took long has just
looked at everything, so all that it left is alive and can be set aside (`gc.freeze`).

The modules of a process take 40 ms to look at, once, in the middle of its work, so they are set
aside at the start. How long a pass takes is known only after it. So the passes over everything come
often enough that what was made since the last one is little: with the interpreter's own thresholds
that is 77,000 objects, and where nothing of them is in the processor's cache, 50 ms.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

LONG_S: Final = 0.002
# A pass that left as many is short only as long as they are in the processor's cache: then an
# object takes 0.1 us, and 0.8 us otherwise.
MANY: Final = 5_000
# Each is some eight objects: a topic, its table, the nodes on the way to it.
REPLACED_BETWEEN: Final = 500
_OLDEST: Final = 2
# For `gc.set_threshold`: a pass over everything for each 6,000 objects that were made and stayed,
# unless that is less than a quarter of what there was.
THRESHOLDS: Final = (700, 2, 1)


def set_aside() -> None:
    """Objects that exist now are not looked at again.

    The pass behind it is over nothing, and so resets the number of objects by a quarter of which
    others have to grow before the next one comes: otherwise that one would be long.
    """
    gc.freeze()
    gc.collect()


class PassWatch:
    """Sets aside what a pass over everything has left, where it was long or left much."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._began = 0.0
        self._thresholds = gc.get_threshold()
        self.longest_s = 0.0

    def start(self) -> None:
        """Watch until `stop`. What was imported until now stays anyway."""
        set_aside()
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*THRESHOLDS)
        gc.callbacks.append(self._on_pass)

    def stop(self) -> None:
        """Watch no more; what was set aside stays so."""
        if self._on_pass in gc.callbacks:
            gc.callbacks.remove(self._on_pass)
            gc.set_threshold(*self._thresholds)

    def begin_anew(self) -> None:
        """The directory that was served is given up with its circles, many of which were set aside.

        It takes as long as a pass over all there is, so that nothing may be served meanwhile.
        """
        gc.unfreeze()
        gc.collect()
        set_aside()

    def _on_pass(self, phase: str, info: dict[str, int]) -> None:
        """Called by the interpreter, in whichever thread it began the pass."""
        if phase == "start":
            self._began = self._clock()
            return
        took_s = self._clock() - self._began
        self.longest_s = max(self.longest_s, took_s)
        if info["generation"] != _OLDEST:
            return
        if took_s >= LONG_S or len(gc.get_objects(_OLDEST)) >= MANY:
            gc.freeze()
            # Within a pass none can be begun. Objects that end until then are not set aside:
            # circles would stay for ever.
            self._loop.call_soon_threadsafe(gc.collect)


class PassesByReplaced:
    """Begins the passes that the interpreter does not.

    It counts objects that are made less those that are freed, whichever they are. Where what is set
    aside is replaced, as by a broker that is led around, it counts nothing, and all that is new
    waits for one pass.
    """

    def __init__(self, collect: Callable[[], object]) -> None:
        """`collect` is a pass."""
        self._collect = collect
        self._replaced = 0

    def note(self, replaced: int) -> None:
        """So many parts of images have been replaced since the process began."""
        if abs(replaced - self._replaced) >= REPLACED_BETWEEN:
            self._replaced = replaced
            self._collect()
