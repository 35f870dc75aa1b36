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

    Raises AttributeError if the owner has no attribute of that name: otherwise the run would end
    with an error, as if the mutant had been killed.
    """

    owner: type | ModuleType
    name: str
    replacement: Any

    def __post_init__(self) -> None:
        if self.name not in vars(self.owner):
            raise AttributeError(f"{self.owner.__name__} has no {self.name} to replace")


@value_type
class Mutant:
    """A mutant that one of the seeds from 1 to `within` must kill.

    `seeds` are some that killed it when they were last searched for: a test that starts with them
    is quick. `world` has options (`sim/sim_options.py`) that replace the random ones: only one in
    hundreds of random mixes would kill a mutant that needs two rare faults at the same time, and a
    different one after each change of the core.
    """

    name: str
    what: str
    seeds: tuple[int, ...]
    patches: tuple[Patch, ...]
    within: int = 200
    world: Mapping[str, Any] = field(default_factory=dict)


# Timeouts that expire often, and the settings that must fit them.
SHORT_TIMEOUTS: Final[Mapping[str, int]] = {
    "election_timeout_ms": 300,
    "fetch_timeout_ms": 600,
    "request_timeout_ms": 0,
    "election_backoff_max_ms": 0,
    "retry_backoff_ms": 20,
    "linger_ms": 0,
}


def constant(*, answer: object) -> Callable[..., object]:
    """A method that returns `answer` for any arguments."""

    def method(*_: object, **__: object) -> object:
        return answer

    return method
