"""Cases: a cluster and its actions as editable text.

A case is drawn from its seed, or recorded action by action as text that people can read, edit and
keep:

    # MajoritiesHaveLeaders: nodes [1, 2] are a majority, well and connected since ...
    seed 17
    world voters=2 duration_ms=3000 loss_rate=0.1
    1203.445 kill who=1 down_us=500000
    1300.000 split shape=halves those=1,2 for_us=900000

A line with `#` is a comment. The time of an action, in milliseconds, precedes it; actions are in
order of time. `bug` names a mutant to apply. A field with its default value is left out.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import value_type
from quorate.settings.integers import whole_number
from quorate.sim.action_runner import TimedAction
from quorate.sim.actions import KINDS
from quorate.sim.actions.admin_requests import Add
from quorate.sim.cases.field_codec import flat, read_value, with_fields, write_value
from quorate.sim.mutants.registry import MUTANTS
from quorate.sim.sim_options import FleetOptions, WorldOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.sim.action_runner import Action, ActionRunner

CASE_BYTES_MAX: Final = 1 << 20
NODES_MAX: Final = 15
# Options used only for drawing actions, in addition to the intervals between actions.
_OF_DRAWS: Final = (
    "partition_ms",
    "partition_shapes",
    "survivals",
    "pause_ms",
    "hang_ms",
    "late_ms",
    "moves_together",
    "records_max",
    # The crashes that it causes are among the actions.
    "crash_every_effects",
    "crash_at_vote_rate",
)
# Brokers draw their own actions.
_OF_BROKERS: Final = {field.name for field in fields(FleetOptions)}
_DEFAULTS: Final = dict(flat(WorldOptions()))
_MOMENT: Final = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,3}))?", re.ASCII)
_WORDS: Final = {kind: word for word, kind in KINDS.items()}


class CaseError(ValueError):
    """The text is not a case: the message has the line, the error there, and what is needed."""


@value_type
class Case:
    """A cluster and its actions; if `deeds` is None, the seed draws them."""

    seed: int
    options: WorldOptions
    bug: str | None = None
    deeds: tuple[TimedAction, ...] | None = None
    about: str = ""

    @property
    def grows(self) -> bool:
        """True if voters are added by request."""
        if self.deeds is None:
            membership = self.options.membership
            return membership.voters_every_ms > 0 or membership.bold_voters_every_ms > 0
        return any(isinstance(done.action, Add) for done in self.deeds)

    def play(self, action_runner: ActionRunner) -> None:
        """Schedule each action at its time."""
        for at_us, deed in self.deeds or ():
            action_runner.cluster.schedule(at_us, partial(_do, action_runner, deed))


def _do(action_runner: ActionRunner, action: Action) -> None:
    action_runner.run(action)


def case_from_actions(case: Case, deeds: Iterable[TimedAction], about: str) -> Case:
    """The case with exactly these actions, and without the options that draw actions."""
    unused = {
        name: default
        for name, default in _DEFAULTS.items()
        if name in _OF_DRAWS or (name.endswith("_every_ms") and name not in _OF_BROKERS)
    }
    options = with_fields(case.options, **unused)
    return replace(case, options=options, deeds=tuple(deeds), about=about)


# --- as text --------------------------------------------------------------------------------------


def format_case(case: Case) -> str:
    """The text that `parse_case` accepts."""
    lines = [f"# {line}" for line in case.about.splitlines()]
    lines.append(f"seed {case.seed}")
    if case.bug is not None:
        lines.append(f"bug {case.bug}")
    lines.append(" ".join(["world", *write_value(case.options)]))
    for at_us, deed in case.deeds or ():
        moment = f"{at_us // 1000}.{at_us % 1000:03}"
        lines.append(" ".join([moment, _WORDS[type(deed)], *write_value(deed)]))
    return "\n".join(lines) + "\n"


def parse_case(text: str) -> Case:
    """Parse a case. Raises CaseError."""
    if len(text) > CASE_BYTES_MAX:
        raise CaseError(f"it is longer than {CASE_BYTES_MAX} characters: a case is small text")
    reading = _Reading()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            reading.take(line.strip())
        except ValueError as error:
            raise CaseError(f"line {number}: {error}") from None
    return reading.case()


class _Reading:
    """The contents of the lines read so far."""

    def __init__(self) -> None:
        self._about: list[str] = []
        self._seed: int | None = None
        self._bug: str | None = None
        self._options: WorldOptions | None = None
        self._deeds: list[TimedAction] = []

    def take(self, line: str) -> None:
        """Parse the next line. Raises ValueError."""
        if line.startswith("#"):
            self._about.append(line[1:].strip())
        elif line:
            self._take_words(*shlex.split(line))

    def _take_words(self, first: str, *rest: str) -> None:
        match first, rest:
            case "seed", (text,):
                self._seed = whole_number(text)
            case "bug", (name,):
                if name not in MUTANTS:
                    raise ValueError(f"there is no bug {name!r}, only {', '.join(MUTANTS)}")
                self._bug = name
            case "world", words:
                self._options = _options(words)
            case moment, (word, *words):
                self._deeds.append(TimedAction(_moment_us(moment), _deed(word, words)))
            case _:
                raise ValueError(f"{first!r}: seed, bug, world or a moment and a deed are needed")

    def case(self) -> Case:
        """Build the case from all lines. Raises CaseError."""
        if self._seed is None or self._options is None:
            raise CaseError("a line with the seed and one with the world are needed")
        deeds = tuple(sorted(self._deeds, key=lambda done: done.at_us))
        return Case(self._seed, self._options, self._bug, deeds, "\n".join(self._about))


def _options(words: Iterable[str]) -> WorldOptions:
    options = read_value(WorldOptions, words)
    if options.voters < 1 or options.voters + options.observers > NODES_MAX:
        raise ValueError(f"a voter at least and {NODES_MAX} nodes at most are needed")
    return options


def _moment_us(text: str) -> int:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r}: milliseconds since the beginning are needed, such as 1203.445")
    return int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0"))


def _deed(word: str, words: Iterable[str]) -> Action:
    kind = KINDS.get(word)
    if kind is None:
        raise ValueError(f"there is no deed {word!r}, only {', '.join(KINDS)}")
    return read_value(kind, words)
