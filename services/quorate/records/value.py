"""Values that are frozen for the type checker and plain for the interpreter.

A frozen dataclass sets each of its fields by a call of `object.__setattr__`: a decision on one
setting, which makes some twenty values, spent an eighth of its time there. What changes a
value is found before anything runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Makes a slotted dataclass that is compared and hashed by what is in it."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def named_value(cls: type[T]) -> type[T]:
    """The same, whose fields are given by name."""
    return dataclass(slots=True, unsafe_hash=True, kw_only=True)(cls)
