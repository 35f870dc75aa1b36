"""Values by name of each of many owners, as a part of an image, and that part while it changes.

Configurations of resources are such, and quotas of clients.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from immutables import Map

from quorate.records.value_types import value

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")
_NOTHING: Final[Map[str, Any]] = Map()


@value
class NamedValues(Generic[K, V]):
    """What each owner has that has anything.

    `replaced` counts what later values took the place of since this process began to replay.
    """

    by_owner: Map[K, Map[str, V]] = field(default_factory=Map)
    replaced: int = field(default=0, compare=False)

    def of(self, owner: K) -> Map[str, V]:
        """The values of one; empty when it has none."""
        return self.by_owner.get(owner, _NOTHING)

    def mutate(self) -> NamedValuesDelta[K, V]:
        """What changes of it are written to."""
        return NamedValuesDelta(self)


class NamedValuesDelta(Generic[K, V]):
    """What has changed since; the attributes are those of NamedValues, unfrozen."""

    def __init__(self, values: NamedValues[K, V]) -> None:
        self.by_owner = values.by_owner.mutate()
        self.replaced = values.replaced

    def of(self, owner: K) -> Map[str, V]:
        """The values of one by now; empty when it has none."""
        return self.by_owner.get(owner, _NOTHING)

    def set(self, owner: K, name: str, value: V | None) -> None:
        """Set one value of an owner, or remove it where it is None."""
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
        """The owner is gone, with what it had, if it had anything."""
        self.by_owner.pop(owner, None)

    def finish(self) -> NamedValues[K, V]:
        """All values with what changed; the delta is used up."""
        return NamedValues(self.by_owner.finish(), self.replaced)
