"""Keeps garbage-collection pauses short by freezing long-lived objects.

A collection over an image of a hundred thousand topics blocks the loop for half a second, and finds
nothing: images hold no cycles, and reference counting frees them. A collection that took long has
just examined everything, so all that it left is alive and can be frozen (`gc.freeze`).

Examining the modules of a process takes 40 ms, once, in the middle of its work, so they are frozen
at startup. The duration of a collection is known only after it. So full collections run often
enough that few objects were made since the last one: with the interpreter's default thresholds
there are 77,000 of them, which take 50 ms if none is in the processor's cache.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

LONG_S: Final = 0.002
# Objects. A collection that left this many is short only while they are in the processor's cache:
# then an object takes 0.1 us, otherwise 0.8 us.
MANY: Final = 5_000
# Replaced parts, of some eight objects each: a topic, its table, the nodes on the path to it.
REPLACED_BETWEEN: Final = 500
_OLDEST: Final = 2
# For `gc.set_threshold`: a full collection for each 6,000 new surviving objects, unless that is
# less than a quarter of the existing ones.
THRESHOLDS: Final = (700, 2, 1)


def freeze_heap() -> None:
    """Freeze all objects that exist now, so that no later collection examines them.

    The collection after it finds nothing to examine. It resets the number of long-lived objects, by
    a quarter of which new ones have to grow before the next full collection: otherwise that
    collection would be long.
    """
    gc.freeze()
    gc.collect()


class GcFreezer:
    """Freezes the survivors of a full collection that was long or left many objects."""

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
        """Watch until `stop`. Everything imported until now is frozen."""
        freeze_heap()
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*THRESHOLDS)
        gc.callbacks.append(self._on_pass)

    def stop(self) -> None:
        """Stop watching; frozen objects stay frozen."""
        if self._on_pass in gc.callbacks:
            gc.callbacks.remove(self._on_pass)
            gc.set_threshold(*self._thresholds)

    def refreeze(self) -> None:
        """Free the objects of a closed node, many of which are in frozen cycles.

        It takes as long as a collection over all objects, so the process must not be serving.
        """
        gc.unfreeze()
        gc.collect()
        freeze_heap()

    def _on_pass(self, phase: str, info: dict[str, int]) -> None:
        """Take the interpreter's report of a collection, in the thread that runs it."""
        if phase == "start":
            self._began = self._clock()
            return
        took_s = self._clock() - self._began
        self.longest_s = max(self.longest_s, took_s)
        if info["generation"] != _OLDEST:
            return
        if took_s >= LONG_S or len(gc.get_objects(_OLDEST)) >= MANY:
            gc.freeze()
            # A collection cannot start another one. Objects that die before the next one must not
            # be frozen: their cycles would stay forever.
            self._loop.call_soon_threadsafe(gc.collect)


class GcTrigger:
    """Starts the collections that the interpreter does not.

    The interpreter counts objects made less objects freed, of any age. If frozen objects are
    replaced, as when partitions of a broker change leaders, its count does not grow, and all new
    objects would wait for one collection.
    """

    def __init__(self, collect: Callable[[], object]) -> None:
        """`collect` runs a collection."""
        self._collect = collect
        self._replaced = 0

    def note(self, replaced: int) -> None:
        """Note how many parts of images have been replaced since the process started."""
        if abs(replaced - self._replaced) >= REPLACED_BETWEEN:
            self._replaced = replaced
            self._collect()
