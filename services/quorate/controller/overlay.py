"""Mutable overlay over the newest image, used by the decisions of one batch.

An image for each decision costs more than the decision itself, since every persistent map copies
the path to each changed entry. An overlay changes the maps in place until the batch ends, and then
makes one image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.image import LogPosition, MetadataDelta
from quorate.controller.replay import replay_record
from quorate.records.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.image import MetadataImage, View
    from quorate.records.ids import Epoch
    from quorate.records.metadata import MetadataRecord

# If a batch ends before the last decision, all records are written again without yielding.
WRITTEN_MAX: Final = 128


class Overlay:
    """An image, and the decisions since. It may be frozen while a decision pauses."""

    def __init__(self, image: MetadataImage) -> None:
        self._delta: MetadataDelta | None = None
        self._written: list[Sequence[MetadataRecord]] = []
        self.reset(image)

    def reset(self, image: MetadataImage) -> None:
        """Restart with this image; the records written since the previous image are dropped."""
        self.image = image
        self.end_offset = image.position.end_offset
        # The metadata with all records written so far.
        self.view: View = image
        self._delta = None
        self._written = []

    def has_room(self, count: int) -> bool:
        """True if `count` more records may be written before it is frozen."""
        return self.end_offset - self.image.position.end_offset + count <= WRITTEN_MAX

    def write(self, records: Sequence[MetadataRecord]) -> None:
        """Apply the records of one decision, or none of them. Raises ReplayError."""
        if self._delta is None:
            self.view = self._delta = MetadataDelta(self.image)
        delta = self._delta
        try:
            for offset, record in enumerate(records, start=self.end_offset):
                replay_record(delta, record, Offset(offset))
        except BaseException:
            written, image = self._written, self.image
            self.reset(image)
            for earlier in written:
                self.write(earlier)
            raise
        self._written.append(records)
        self.end_offset = Offset(self.end_offset + len(records))

    def freeze(self, end_offset: Offset, epoch: Epoch) -> MetadataImage:
        """The image of all decisions below `end_offset`; later ones remain in the overlay."""
        later: list[Sequence[MetadataRecord]] = []
        if end_offset < self.end_offset:
            written, image = self._written, self.image
            self.reset(image)
            for records in written:
                if self.end_offset + len(records) <= end_offset and not later:
                    self.write(records)
                else:
                    later.append(records)
        if self._delta is not None:
            position = LogPosition(self.end_offset, epoch, self.image.position.timestamp_ms)
            self.reset(self._delta.apply(position))
        frozen = self.image
        for records in later:
            self.write(records)
        return frozen
