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
    """`groups` holds the records of each uninterpreted kind, by key (rule 22).

    `unknown` are those whose type this release does not know, in the order of the log.
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
    """The changed records. `unknown` are the new ones only: the others may be many."""

    def __init__(self, opaque: Opaque) -> None:
        self._before = opaque
        self._changed: dict[str, MapMutation[RowKey, MetadataRecord]] = {}
        self.unknown: list[UnknownRecord] = []

    def group(self, name: str) -> MapMutation[RowKey, MetadataRecord]:
        """The records of one kind, to be changed."""
        changed = self._changed.get(name)
        if changed is None:
            changed = self._changed[name] = self._before.group(name).mutate()
        return changed

    def finish(self) -> Opaque:
        """The records with all that changed; the delta is used up."""
        groups = self._before.groups.mutate()
        for name, changed in self._changed.items():
            rows = changed.finish()
            if rows:
                groups[name] = rows
            else:
                groups.pop(name, None)
        before = self._before.unknown
        return Opaque(groups.finish(), (*before, *self.unknown) if self.unknown else before)
