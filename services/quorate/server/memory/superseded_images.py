"""What becomes of an image when another one has taken its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.server.memory.gc_tuning import PassesByReplaced
from quorate.server.memory.image_reclaimer import LettingGo

if TYPE_CHECKING:
    from quorate.controller.controller import Controller
    from quorate.controller.image import MetadataImage
    from quorate.server.host import Host


class ReplacedImages:
    """The images that one controller has moved on from."""

    def __init__(self, controller: Controller, host: Host) -> None:
        self._controller = controller
        self._letting_go = LettingGo(lambda: controller.image, host.cpu_s)
        self._passes = PassesByReplaced(host.collect_garbage)
        self.let_go = self._letting_go.take

    def moved_on_from(self, image: MetadataImage) -> None:
        """Objects that only that one holds are freed, and those in their place are looked at."""
        self.let_go(image)
        self._passes.note(self._controller.image.replaced)

    def gave_up(self, image: MetadataImage) -> None:
        """Nothing of that one is in what comes next."""
        self.let_go(image, is_other=True)

    async def close(self) -> None:
        """Nobody waits for it any more."""
        await self._letting_go.close()
