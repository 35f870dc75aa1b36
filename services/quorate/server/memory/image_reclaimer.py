"""Images that were kept for long are given up in short turns, beside what is served.

How much an image alone holds is known without looking: images count what was replaced. Where it
is little, it goes at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from quorate.controller.image_disposal import let_go_in_slices
from quorate.rpc.time_slicer import SERVING_SHARE, Pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.image import MetadataImage

# Freed at once, in a few milliseconds.
REPLACED_MAX: Final = 4_000
# Each is memory that others have no use for any more; further ones go at once, however long it
# takes.
IMAGES_MAX: Final = 16


class LettingGo:
    """Of one controller. Everything is on the event loop."""

    def __init__(
        self,
        current: Callable[[], MetadataImage],
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """`current` is the image that is served, `clock` the time that the thread has used."""
        self._clock = clock
        self._current = current
        self._images: deque[MetadataImage] = deque()
        self._task: asyncio.Task[None] | None = None

    def take(self, image: MetadataImage, *, is_other: bool = False) -> None:
        """Free it once the caller has returned; `is_other` if it shares nothing with those now."""
        replaced = abs(self._current().replaced - image.replaced)
        if (replaced <= REPLACED_MAX and not is_other) or len(self._images) >= IMAGES_MAX:
            return
        self._images.append(image)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._go_on())

    async def _go_on(self) -> None:
        pace = Pace(SERVING_SHARE, clock=self._clock)
        # The code that gave it up still runs, and may hold it to the end of its turn.
        await asyncio.sleep(0)
        while self._images:
            for _ in let_go_in_slices(self._images.popleft()):
                await pace.breathe()
        self._task = None

    async def close(self) -> None:
        """Nobody waits for it any more: the rest goes with the process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
