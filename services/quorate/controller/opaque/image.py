"""Image part: uninterpreted records, and that part while it changes."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from immutables import Map

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from immutables import MapMutation

    from quorate.records.metadata import MetadataRecord, UnknownRecord

RowKey: TypeAlias = tuple[int | str | bytes, ...]
Rows: TypeAlias = "Map[RowKey, MetadataRecord]"
NONE: Rows = Map()


@value_type
class Opaque:
    """`groups` holds the records of each uninterpreted kind, by key (rule `lossless_replay`).

    `unknown` are those of types that this release does not know, in log order.
    """

    groups: Map[str, Rows] = field(default_factory=Map)
    unknown: tuple[UnknownRecord, ...] = ()

    def group(self, name: str) -> Rows:
        """The records of one kind."""
        return self.groups.get(name, NONE)

    def mutate(self) -> OpaqueDelta:
        """A delta to which changes are written."""
        return OpaqueDelta(self)


class OpaqueDelta:
    """The changed records. `unknown` has only the new ones, because the others may be many."""

    def __init__(self, opaque: Opaque) -> None:
        self._before = opaque
        self._changed: dict[str, MapMutation[RowKey, MetadataRecord]] = {}
        self.unknown: list[UnknownRecord] = []

    def group(self, name: str) -> MapMutation[RowKey, MetadataRecord]:
        """The mutable records of one kind."""
        changed = self._changed.get(name)
        if changed is None:
            changed = self._changed[name] = self._before.group(name).mutate()
        return changed

    def finish(self) -> Opaque:
        """The records with all changes; the delta is used up."""
        groups = self._before.groups.mutate()
        for name, changed in self._changed.items():
            rows = changed.finish()
            if rows:
                groups[name] = rows
            else:
                groups.pop(name, None)
        before = self._before.unknown
        return Opaque(groups.finish(), (*before, *self.unknown) if self.unknown else before)
