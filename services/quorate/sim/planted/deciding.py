"""Planted bugs of decisions: what they see of their batch, and what its image holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.overlay import Overlay
from quorate.sim.planted.bug import Bug, Patch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.controller.image import ConfigKey, MetadataImage
    from quorate.records.ids import Epoch, Offset

_freeze = Overlay.freeze


def _config_before(self: Overlay, key: ConfigKey) -> Mapping[str, str]:
    return self.image.config(key)


def _freeze_all(self: Overlay, _: Offset, epoch: Epoch) -> MetadataImage:
    return _freeze(self, self.end_offset, epoch)


BUGS: Final = (
    Bug(
        "batch-blind-to-itself",
        "a decision does not see what was set earlier in its batch",
        (6,),
        (Patch(Overlay, "config", _config_before),),
    ),
    Bug(
        "image-beyond-its-batch",
        "the image of a batch holds the decision that did not fit into it",
        (4,),
        (Patch(Overlay, "freeze", _freeze_all),),
    ),
)
