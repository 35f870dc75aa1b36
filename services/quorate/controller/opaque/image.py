"""Records that nothing here decides on: a part of the image, and that part while it changes."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from immutables import Map

from quorate.records.value import value

if TYPE_CHECKING:
    from quorate.records.metadata import MetadataRecord, UnknownRecord

RowKey: TypeAlias = tuple[int, tuple[int | str | bytes, ...]]


@value
class Opaque:
    """`rows` holds the records of the subjects that are not built yet, by key (rule 22).

    `unknown` are those whose type this release does not know, in the order of the log.
    """

    rows: Map[RowKey, MetadataRecord] = field(default_factory=Map)
    unknown: tuple[UnknownRecord, ...] = ()

    def mutate(self) -> OpaqueDelta:
        """What changes of it are written to."""
        return OpaqueDelta(self)


class OpaqueDelta:
    """What has changed since. `unknown` are those that came since: the others may be many."""

    def __init__(self, opaque: Opaque) -> None:
        self._before = opaque
        self.rows = opaque.rows.mutate()
        self.unknown: list[UnknownRecord] = []

    def finish(self) -> Opaque:
        """The records with all that changed; the delta is used up."""
        before = self._before.unknown
        return Opaque(self.rows.finish(), (*before, *self.unknown) if self.unknown else before)
