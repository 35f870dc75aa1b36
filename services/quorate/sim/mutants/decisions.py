"""Mutants of decisions within a batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from quorate.controller.decision import Context
from quorate.controller.overlay import Overlay
from quorate.sim.mutants.mutant import Mutant, Patch

if TYPE_CHECKING:
    from quorate.controller.image import MetadataImage
    from quorate.records.ids import Epoch, Offset

_freeze = Overlay.freeze


def _view_before(self: Any) -> SimpleNamespace:  # noqa: ANN401 - it looks behind a protocol
    """The context's view, but with the settings of the image before the batch."""
    overlay = self.decided
    view = overlay.view
    return SimpleNamespace(
        features=view.features,
        brokers=view.brokers,
        topics=view.topics,
        configs=overlay.image.configs,
    )


def _freeze_all(self: Overlay, _: Offset, epoch: Epoch) -> MetadataImage:
    return _freeze(self, self.end_offset, epoch)


BUGS: Final = (
    Mutant(
        "batch-blind-to-itself",
        "a decision does not see what was set earlier in its batch",
        (1795522677155,),
        (Patch(Context, "view", property(_view_before)),),
    ),
    Mutant(
        "image-beyond-its-batch",
        "the image of a batch holds the decision that did not fit into it",
        (50,),
        (Patch(Overlay, "freeze", _freeze_all),),
    ),
)
