"""Names of the simulator: those of cases and transcripts, and of its streams of random numbers."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, get_args, get_type_hints

from quorate.sim.actions import KINDS
from quorate.sim.cases.case import Case, format_case
from quorate.sim.cases.field_codec import flat
from quorate.sim.invariants import ALL
from quorate.sim.mutants.registry import MUTANTS
from quorate.sim.randomness import SALTS, RandomSource, RandomStreams
from quorate.sim.sim_options import WorldOptions
from tests.tools.public.syntax import PART, calls, forwarded, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def cases() -> Iterator[str]:
    """Options of worlds, what is done to them, bugs and invariants."""
    for name, default in flat(WorldOptions()):
        yield f"option {name}"
        if isinstance(default, tuple):
            yield from (f"option {name}: {member.name.lower()}" for member in default)
    for word, kind in KINDS.items():
        yield f"action {word}"
        hints = get_type_hints(kind)
        for field in fields(kind):  # type: ignore[arg-type]
            yield f"action {word} {field.name}"
            for hint in (hints[field.name], *get_args(hints[field.name])):
                if isinstance(hint, type) and issubclass(hint, Enum):
                    members = (member.name.lower() for member in hint)
                    yield from (f"action {word} {field.name}={name}" for name in members)
    options = WorldOptions(voters=2)
    for line in format_case(Case(1, options, next(iter(MUTANTS)), ())).splitlines():
        yield f"line {line.split()[0]}"
    yield from (f"bug {name}" for name in MUTANTS)
    yield from (f"invariant {invariant.__name__}" for invariant in ALL)


def streams() -> Iterator[str]:
    """Purposes of random streams, which seed them, as the code writes them in calls.

    What is computed, such as the id of a node, is `{}`.
    """
    yield from (f"seed and {purpose}" for purpose in forwarded(RandomSource.__name__, 1))
    for name, place in ((RandomStreams.stream.__name__, 0), (RandomStreams.chance.__name__, 1)):
        for _, call in calls(name):
            purpose = call.args[place:]
            if purpose and text_of(purpose[0]) is not None:
                yield f"world: {' '.join(text_of(part) or PART for part in purpose)}"
    yield f"salts {SALTS}"
