"""MetadataImage: all metadata at one offset, immutable; and the delta that builds the next one.

Every metadata kind has a part of its own. A new image shares all unchanged state with the old one
(parts, and within them persistent maps and parts of trees), so that keeping both the committed and
the speculative image is cheap. The iteration order of maps has no meaning: lists are sorted where
they are made.

A delta is applied to the old image. Only replay and decisions use a delta; readers never see one.
"""

from __future__ import annotations

from dataclasses import field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from immutables import Map

from quorate.controller.brokers.image import Brokers
from quorate.controller.client_quotas.image import ClientQuotas, ClientQuotasDelta
from quorate.controller.configs.image import Configs, ConfigsDelta
from quorate.controller.opaque.image import Opaque, OpaqueDelta
from quorate.controller.topics.image import Topics, TopicsDelta
from quorate.records.ids import Epoch, Offset
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P")
D = TypeVar("D")


@value_type
class LogPosition:
    """The log position of an image, which reflects everything below `end_offset`.

    `epoch` and `timestamp_ms` (wall clock) are those of the last batch below it.
    """

    end_offset: Offset
    epoch: Epoch
    timestamp_ms: int


LOG_BEGIN: Final = LogPosition(Offset(0), Epoch(0), 0)


@value_type
class MetadataImage:
    """All metadata below `position.end_offset`, a part for each metadata kind.

    A part that supports changes in place has `mutate`, which returns a delta of the part, and the
    delta's `finish` returns the new part. Other parts are values that a change replaces.
    """

    position: LogPosition = LOG_BEGIN
    features: Map[str, int] = field(default_factory=Map)
    brokers: Brokers = field(default_factory=Brokers)
    topics: Topics = field(default_factory=Topics)
    configs: Configs = field(default_factory=Configs)
    client_quotas: ClientQuotas = field(default_factory=ClientQuotas)
    opaque: Opaque = field(default_factory=Opaque)

    @property
    def replaced(self) -> int:
        """Number of replaced or removed entries, such as topics and configs.

        It counts since this process began to replay. Only earlier images hold such entries. Each
        part that may be very large has a count of its own.
        """
        return sum([part.replaced for part in _counting_of(self)])

    def at(self, position: LogPosition) -> MetadataImage:
        """The same metadata at a later log position; nothing has changed in between."""
        # Called for every commit; `dataclasses.replace` would double the cost.
        return MetadataImage(position, *_parts_of(self))


_NAMES: Final = tuple(each.name for each in fields(MetadataImage) if each.name != "position")
_parts_of: Final[Callable[[MetadataImage], tuple[Any, ...]]] = attrgetter(*_NAMES)
_COUNTING: Final = [name for name in _NAMES if hasattr(getattr(MetadataImage(), name), "replaced")]
_counting_of: Final[Callable[[MetadataImage], tuple[Any, ...]]] = attrgetter(*_COUNTING)


class _DeltaPart(Generic[P, D]):
    """A part of a delta, created on first access, because few parts change at a time."""

    def __init__(self, begin: Callable[[P], D], finish: Callable[[D], P]) -> None:
        self._begin = begin
        self.finish = finish
        self._name = ""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, delta: MetadataDelta, _: type) -> D:
        # From now on attribute access bypasses this descriptor.
        part: D = self._begin(getattr(delta.image, self._name))
        vars(delta)[self._name] = part
        return part


def _itself(part: P) -> P:
    return part


class MetadataDelta:
    """The changes since `image`: the same parts, as replay changes them and decisions see them."""

    features = _DeltaPart[Map[str, int], Map[str, int]](_itself, _itself)
    brokers = _DeltaPart[Brokers, Brokers](_itself, _itself)
    topics = _DeltaPart(Topics.mutate, TopicsDelta.finish)
    configs = _DeltaPart(Configs.mutate, ConfigsDelta.finish)
    client_quotas = _DeltaPart(ClientQuotas.mutate, ClientQuotasDelta.finish)
    opaque = _DeltaPart(Opaque.mutate, OpaqueDelta.finish)

    def __init__(self, image: MetadataImage) -> None:
        self.image = image

    def apply(self, position: LogPosition) -> MetadataImage:
        """The new image at `position`; the delta is used up."""
        held = vars(self)
        return MetadataImage(
            position,
            *[
                finish(held[name]) if name in held else part
                for (name, finish), part in zip(_FINISH, _parts_of(self.image), strict=True)
            ],
        )


_FINISH: Final = tuple((name, vars(MetadataDelta)[name].finish) for name in _NAMES)

# Input of decisions: an image, or a delta.
View: TypeAlias = MetadataImage | MetadataDelta
