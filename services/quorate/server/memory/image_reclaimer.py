"""Frees large superseded images in time slices instead of all at once.

Images count what was replaced, so the size of what only one image holds is known without examining
it. A small one is freed immediately.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from quorate.controller.image_disposal import dispose_in_slices
from quorate.rpc.time_slicer import BACKGROUND_SHARE, TimeSlicer

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.image import MetadataImage

# Replaced parts that may be freed immediately, in a few milliseconds.
REPLACED_MAX: Final = 4_000
# The most images that wait to be freed, since they occupy memory. Further ones are freed
# immediately, even if that takes long.
IMAGES_MAX: Final = 16


class ImageReclaimer:
    """The superseded images of one controller. Everything runs on the event loop."""

    def __init__(
        self,
        current: Callable[[], MetadataImage],
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """`current` gives the image that is served, `clock` the CPU time of the thread."""
        self._clock = clock
        self._current = current
        self._images: deque[MetadataImage] = deque()
        self._task: asyncio.Task[None] | None = None

    def reclaim(self, image: MetadataImage, *, is_other: bool = False) -> None:
        """Free an image once the caller has returned.

        `is_other` means that it shares nothing with the current image.
        """
        replaced = abs(self._current().replaced - image.replaced)
        if (replaced <= REPLACED_MAX and not is_other) or len(self._images) >= IMAGES_MAX:
            return
        self._images.append(image)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._go_on())

    async def _go_on(self) -> None:
        pace = TimeSlicer(BACKGROUND_SHARE, clock=self._clock)
        # The caller still runs, and may hold the image to the end of its event-loop iteration.
        await asyncio.sleep(0)
        while self._images:
            for _ in dispose_in_slices(self._images.popleft()):
                await pace.yield_if_due()
        self._task = None

    async def close(self) -> None:
        """Stop freeing: the remaining images end with the process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
