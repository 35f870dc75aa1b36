"""The newest image while it is being changed: what the decisions of one batch look at and write to.

An image for each decision costs more than the decision itself, since every map is copied on the way
to what changes. Here the maps are written in place until the batch is cut; then they are an image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.delta import MetadataDelta
from quorate.controller.image import LogPosition
from quorate.controller.replay import replay_record
from quorate.records.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from immutables import Map, MapMutation

    from quorate.controller.image import Brokers, ConfigKey, MetadataImage, Topic
    from quorate.records.ids import Epoch, TopicId
    from quorate.records.metadata import MetadataRecord

    Names: TypeAlias = Map[str, tuple[str, ...]] | MapMutation[str, tuple[str, ...]]
    Configs: TypeAlias = Map[ConfigKey, Map[str, str]] | MapMutation[ConfigKey, Map[str, str]]

# Where a batch ends before the last decision all that was written is written again, in one turn.
WRITTEN_MAX: Final = 128
_NOTHING: Final[Mapping[str, str]] = {}


class Overlay:
    """A `View` of an image and of what was decided since.

    Records may be written that concern topics, partitions and settings; brokers and features are
    those of the image. A decision that pauses may go on with it when it was frozen meanwhile.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._delta: MetadataDelta | None = None
        self._written: list[Sequence[MetadataRecord]] = []
        self.show(image)

    def show(self, image: MetadataImage) -> None:
        """Begin anew with this image; what was written to the last one is dropped."""
        self.image = image
        self.end_offset = image.position.end_offset
        self._delta = None
        self._written = []
        self.features: Map[str, int] = image.features
        self.brokers: Brokers = image.brokers
        self.topics: Map[TopicId, Topic] | MapMutation[TopicId, Topic] = image.topics
        self.topic_ids: Map[str, TopicId] | MapMutation[str, TopicId] = image.topic_ids
        self.similar_names: Names = image.similar_names
        self._configs: Configs = image.configs

    @property
    def partition_count(self) -> int:
        """How many partitions there are."""
        delta = self._delta
        return self.image.partition_count if delta is None else delta.partition_count

    def config(self, key: ConfigKey) -> Mapping[str, str]:
        """What is set on a resource; empty when nothing is."""
        return self._configs.get(key, _NOTHING)

    def has_room(self, count: int) -> bool:
        """Whether so many records more may be written before it is frozen."""
        return self.end_offset - self.image.position.end_offset + count <= WRITTEN_MAX

    def write(self, records: Sequence[MetadataRecord]) -> None:
        """Work in the records of one decision, or none of them. Raises ReplayError."""
        delta = self._delta or self._begin()
        try:
            for offset, record in enumerate(records, start=self.end_offset):
                replay_record(delta, record, Offset(offset))
        except BaseException:
            written, image = self._written, self.image
            self.show(image)
            for earlier in written:
                self.write(earlier)
            raise
        self._written.append(records)
        self.end_offset = Offset(self.end_offset + len(records))

    def _begin(self) -> MetadataDelta:
        delta = self._delta = MetadataDelta(self.image)
        self.topics, self.topic_ids = delta.topics, delta.topic_ids
        self.similar_names, self._configs = delta.similar_names, delta.configs
        return delta

    def freeze(self, end_offset: Offset, epoch: Epoch) -> MetadataImage:
        """The image of all decisions below `end_offset`; those behind it stay written."""
        later: list[Sequence[MetadataRecord]] = []
        if end_offset < self.end_offset:
            written, image = self._written, self.image
            self.show(image)
            for records in written:
                if self.end_offset + len(records) <= end_offset and not later:
                    self.write(records)
                else:
                    later.append(records)
        if self._delta is not None:
            position = LogPosition(self.end_offset, epoch, self.image.position.timestamp_ms)
            self.show(self._delta.apply(position))
        frozen = self.image
        for records in later:
            self.write(records)
        return frozen
