"""Value types that are frozen for the type checker and plain for the interpreter.

A frozen dataclass sets each field by a call of `object.__setattr__`: a decision on one config,
which creates some twenty values, spent an eighth of its time there. The type checker finds code
that changes a value.

A dataclass also compiles each method from generated text, and a controller has three hundred value
types: that took a quarter of its start. Here only the constructor is made that way; the methods for
comparison, hash and text read the fields.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value_type(cls: type[T]) -> type[T]:
    """Make a slotted dataclass that is compared and hashed by its fields."""
    return _complete(dataclass(slots=True, eq=False, repr=False)(cls))


@dataclass_transform(frozen_default=True, kw_only_default=True)
def keyword_value_type(cls: type[T]) -> type[T]:
    """The same with keyword-only fields."""
    return _complete(dataclass(slots=True, eq=False, repr=False, kw_only=True)(cls))


def _complete(made: type[T]) -> type[T]:
    """Add the methods for comparison, hash and text, unless the class defines them."""
    every: tuple[Any, ...] = fields(made)  # type: ignore[arg-type]
    content = _reader(tuple(one.name for one in every if one.compare))
    shown = tuple(one.name for one in every if one.repr)

    def __eq__(self: T, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(content(self) == content(other))

    def __hash__(self: T) -> int:
        return hash(content(self))

    def __repr__(self: T) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({inside})"

    for method in (__eq__, __hash__, __repr__):
        if method.__name__ not in vars(made):
            setattr(made, method.__name__, method)
    return made


def _reader(names: tuple[str, ...]) -> Callable[[object], object]:
    """A function that reads these fields of a value, for comparison and hash."""
    return attrgetter(*names) if names else lambda _: ()
