"""A mutant: name, description, and the methods it replaces."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType


@value_type
class Patch:
    """One method or property of a class replaced, or one function where a module calls it.

    Raises AttributeError if the owner has none of that name: a run would end with an error then,
    which looks like a caught bug.
    """

    owner: type | ModuleType
    name: str
    replacement: Any

    def __post_init__(self) -> None:
        if self.name not in vars(self.owner):
            raise AttributeError(f"{self.owner.__name__} has no {self.name} to replace")


@value_type
class Mutant:
    """The swarm must catch it `within` that many seeds from 1 on.

    `seeds` are some that did when they were last looked for: a test that begins with them is quick.
    `world` are options (`sim/sim_options.py`) that replace the drawn ones: a bug that needs two
    rare faults at one moment would be caught by one drawn mix in hundreds, and by another one after
    each change of the core.
    """

    name: str
    what: str
    seeds: tuple[int, ...]
    patches: tuple[Patch, ...]
    within: int = 200
    world: Mapping[str, Any] = field(default_factory=dict)


# Timeouts that pass often, and what has to fit beside them.
SHORT_TIMEOUTS: Final[Mapping[str, int]] = {
    "election_timeout_ms": 300,
    "fetch_timeout_ms": 600,
    "request_timeout_ms": 0,
    "election_backoff_max_ms": 0,
    "retry_backoff_ms": 20,
    "linger_ms": 0,
}


def constant(*, answer: object) -> Callable[..., object]:
    """A method that gives this answer, whatever it is asked."""

    def method(*_: object, **__: object) -> object:
        return answer

    return method
