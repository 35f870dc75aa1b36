"""The shape of a planted bug: a name, what is wrong, and the few methods that it replaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Patch:
    """One method or property of a class, replaced."""

    owner: type
    name: str
    replacement: Any


@dataclass(frozen=True, slots=True)
class Bug:
    """`seeds` are some that catch it, so that proving it takes no search."""

    name: str
    what: str
    seeds: tuple[int, ...]
    patches: tuple[Patch, ...]


def always(value: object) -> Callable[..., object]:
    """A method that answers with `value`, whatever it is asked."""

    def answer(*_: object, **__: object) -> object:
        return value

    return answer
