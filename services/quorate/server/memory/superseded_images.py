"""Hands superseded images to the reclaimer and triggers garbage collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.server.memory.gc_tuning import PassesByReplaced
from quorate.server.memory.image_reclaimer import LettingGo

if TYPE_CHECKING:
    from quorate.controller.controller import Controller
    from quorate.controller.image import MetadataImage
    from quorate.server.host import Host


class ReplacedImages:
    """The images that one controller has superseded."""

    def __init__(self, controller: Controller, host: Host) -> None:
        self._controller = controller
        self._letting_go = LettingGo(lambda: controller.image, host.cpu_s)
        self._passes = PassesByReplaced(host.collect_garbage)
        self.let_go = self._letting_go.take

    def moved_on_from(self, image: MetadataImage) -> None:
        """Free what only `image` holds, and collect garbage after enough replaced parts."""
        self.let_go(image)
        self._passes.note(self._controller.image.replaced)

    def gave_up(self, image: MetadataImage) -> None:
        """Free an image that shares nothing with the next one."""
        self.let_go(image, is_other=True)

    async def close(self) -> None:
        """Stop freeing images."""
        await self._letting_go.close()
