"""Hands superseded images to the reclaimer and triggers garbage collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.server.memory.gc_tuning import GcTrigger
from quorate.server.memory.image_reclaimer import ImageReclaimer

if TYPE_CHECKING:
    from quorate.controller.controller import Controller
    from quorate.controller.image import MetadataImage
    from quorate.server.host import Host


class SupersededImages:
    """The images that one controller has superseded."""

    def __init__(self, controller: Controller, host: Host) -> None:
        self._controller = controller
        self._image_reclaimer = ImageReclaimer(lambda: controller.image, host.cpu_s)
        self._passes = GcTrigger(host.collect_garbage)
        self.reclaim = self._image_reclaimer.reclaim

    def on_successor(self, image: MetadataImage) -> None:
        """Free what only `image` holds, and collect garbage after enough replaced parts."""
        self.reclaim(image)
        self._passes.note(self._controller.image.replaced)

    def on_discarded(self, image: MetadataImage) -> None:
        """Free an image that shares nothing with the next one."""
        self.reclaim(image, is_other=True)

    async def close(self) -> None:
        """Stop freeing images."""
        await self._image_reclaimer.close()
