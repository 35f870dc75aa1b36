"""Image part that maps an owner to named values; used by configs and client quotas.

`KeyedValuesDelta` is that part while it changes.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from immutables import Map

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")
_NOTHING: Final[Map[str, Any]] = Map()


@value_type
class KeyedValues(Generic[K, V]):
    """The named values of each owner that has any.

    `replaced` counts the values that were replaced since this process began to replay.
    """

    by_owner: Map[K, Map[str, V]] = field(default_factory=Map)
    replaced: int = field(default=0, compare=False)

    def of(self, owner: K) -> Map[str, V]:
        """The values of one owner; empty if it has none."""
        return self.by_owner.get(owner, _NOTHING)

    def mutate(self) -> KeyedValuesDelta[K, V]:
        """A delta to which changes are written."""
        return KeyedValuesDelta(self)


class KeyedValuesDelta(Generic[K, V]):
    """The changed values; the attributes are those of KeyedValues, unfrozen."""

    def __init__(self, values: KeyedValues[K, V]) -> None:
        self.by_owner = values.by_owner.mutate()
        self.replaced = values.replaced

    def of(self, owner: K) -> Map[str, V]:
        """The current values of one owner; empty if it has none."""
        return self.by_owner.get(owner, _NOTHING)

    def set(self, owner: K, name: str, value: V | None) -> None:
        """Set one value of an owner, or remove it if `value` is None."""
        values = self.by_owner.get(owner, _NOTHING)
        self.replaced += 1
        if value is not None:
            self.by_owner[owner] = values.set(name, value)
        elif name in values:
            left = values.delete(name)
            if left:
                self.by_owner[owner] = left
            else:
                del self.by_owner[owner]

    def remove(self, owner: K) -> None:
        """Remove an owner and all of its values."""
        self.by_owner.pop(owner, None)

    def finish(self) -> KeyedValues[K, V]:
        """All values with the changes; the delta is used up."""
        return KeyedValues(self.by_owner.finish(), self.replaced)
