"""MetadataImage: all metadata at one offset, immutable; and the delta that builds the next one.

Every metadata kind has a part of its own. A new image shares with the old one all that did not
change (parts, and within them persistent maps and parts of trees), so that keeping both the
committed and the speculative image costs next to nothing. Maps iterate in no useful order: lists
are sorted where they are made.

Old image + delta = new image. Only replay and decisions use a delta; readers never see one.
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

    A part whose changes are written in place has `mutate`, which begins a delta of it, and the
    delta's `finish` makes it a part again; others are values that a change replaces.
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
        """Number of replaced or removed entries: topics, configs and the like.

        It counts since this process began to replay: entries that only earlier images hold. Each
        part that may be very large has a count of its own.
        """
        return sum([part.replaced for part in _counting_of(self)])

    def at(self, position: LogPosition) -> MetadataImage:
        """The same metadata at a later log position, if nothing has changed since."""
        # Once for every commit, and `dataclasses.replace` costs as much as the rest of it.
        return MetadataImage(position, *_parts_of(self))


_NAMES: Final = tuple(each.name for each in fields(MetadataImage) if each.name != "position")
_parts_of: Final[Callable[[MetadataImage], tuple[Any, ...]]] = attrgetter(*_NAMES)
_COUNTING: Final = [name for name in _NAMES if hasattr(getattr(MetadataImage(), name), "replaced")]
_counting_of: Final[Callable[[MetadataImage], tuple[Any, ...]]] = attrgetter(*_COUNTING)


class _DeltaPart(Generic[P, D]):
    """A part of a delta, made from the image's on first access: few change at a time."""

    def __init__(self, begin: Callable[[P], D], finish: Callable[[D], P]) -> None:
        self._begin = begin
        self.finish = finish
        self._name = ""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, delta: MetadataDelta, _: type) -> D:
        # From now on attribute access does not come here.
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

# Input of decisions: an image, or one that is being changed.
View: TypeAlias = MetadataImage | MetadataDelta
