"""Shrinks a failing case: fewer actions, default options, fewer nodes, less time.

A smaller case counts as the same failure if its kind is the same (`Failure.kind`), even if it names
other nodes and offsets.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any, Final

from quorate.sim.action_runner import LEADER, TimedAction
from quorate.sim.actions import KINDS
from quorate.sim.cases.case import Case, case_from_actions
from quorate.sim.cases.delta_debugging import OutOfTime, bisect_min, ddmin, without_groups
from quorate.sim.cases.field_codec import flat, with_fields
from quorate.sim.cluster import Cluster
from quorate.sim.runner import play
from quorate.sim.sim_options import WorldOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from quorate.sim.action_runner import Action
    from quorate.sim.runner import Ran

# The fields of actions that name a node, and those that name several.
_NODES: Final = ("who", "whom", "to", "liar")
_SETS: Final = ("those",)
# Options for the size of a cluster, which are reduced in steps of their own.
_SIZES: Final = ("voters", "duration_ms")
# The maximum number of rounds over all steps: a later round may remove what an earlier one kept.
_ROUNDS: Final = 4
# The fractions of the time between two actions that are tried instead of it.
_SHARES: Final = (0, 1 / 8, 1 / 2)
_GAP_US: Final = 100_000


def shrink_case(case: Case, is_time_up: Callable[[], bool]) -> Case | None:
    """Find a smaller case with the same kind of failure.

    Returns None if the case passes, or if it fails only as drawn and not as recorded actions.

    The search ends with its best result so far when `is_time_up` returns True.
    """
    first = _run(case)
    if first.failure is None:
        return None
    if case.deeds is None:
        case = case_from_actions(case, first.done, str(first.failure))
    reducer = Reducer(first.failure.kind, is_time_up)
    with suppress(OutOfTime):
        if reducer.fails(case):
            reducer.reduce()
    return reducer.best


class Reducer:
    """Searches for smaller cases with one kind of failure, and keeps the smallest one so far."""

    def __init__(self, kind: str, is_time_up: Callable[[], bool]) -> None:
        self.best: Case | None = None
        self._kind = kind
        self._is_time_up = is_time_up

    def fails(self, case: Case) -> bool:
        """True if the case fails the same way; then it becomes the best one. Raises OutOfTime."""
        if self.best is not None and self._is_time_up():
            raise OutOfTime
        ran = _run(case)
        if ran.failure is None or ran.failure.kind != self._kind:
            return False
        self.best = _ended(case, ran.at_us, str(ran.failure))
        return True

    def reduce(self) -> None:
        """Run all steps until none changes the case. Raises OutOfTime."""
        for _ in range(_ROUNDS):
            before = self._case
            self._plain_settings()
            self._fewer_nodes()
            self._fewer_deeds()
            self._plain_deeds()
            self._less_time()
            if self._case == before:
                return

    @property
    def _case(self) -> Case:
        assert self.best is not None, "it failed once"
        return self.best

    # --- what may go ------------------------------------------------------------------------------

    def _fewer_deeds(self) -> None:
        kinds = [_is_of(kind) for kind in KINDS.values()]
        deeds = without_groups(self._deeds, kinds, self._with_deeds)
        ddmin(deeds, self._with_deeds)

    @property
    def _deeds(self) -> Sequence[TimedAction]:
        return self._case.deeds or ()

    def _with_deeds(self, deeds: Sequence[TimedAction]) -> bool:
        return self.fails(replace(self._case, deeds=tuple(deeds)))

    def _plain_deeds(self) -> None:
        """Set the fields of each action to their defaults, action by action."""
        for index, (at_us, deed) in enumerate(self._deeds):
            plain = _plain(deed)
            if plain != deed and index < len(self._deeds):
                deeds = list(self._deeds)
                deeds[index] = TimedAction(at_us, plain)
                self._with_deeds(deeds)

    def _plain_settings(self) -> None:
        """Set all options to their defaults, together or else one after the other."""
        unusual = list(_unusual(self._case.options))
        if self._with_settings(dict(unusual)):
            return
        for name, value in unusual:
            self._with_settings({name: value})

    def _with_settings(self, settings: dict[str, Any]) -> bool:
        options = with_fields(self._case.options, **settings)
        return options != self._case.options and self.fails(replace(self._case, options=options))

    def _fewer_nodes(self) -> None:
        options = self._case.options
        for node_id in range(options.voters + options.observers, 0, -1):
            smaller = _without_node(self._case, node_id)
            if smaller is not None:
                self.fails(smaller)

    def _less_time(self) -> None:
        """Shorten the time between two actions, and the time until faults stop."""
        index = 0
        while index < len(self._deeds):
            before_us = self._deeds[index - 1].at_us if index else 0
            gap_us = self._deeds[index].at_us - before_us
            if gap_us > _GAP_US:
                any(self._with_earlier(index, gap_us - int(share * gap_us)) for share in _SHARES)
            index += 1
        last_ms = self._deeds[-1].at_us // 1000 + 1 if self._deeds else 1
        duration_ms = self._case.options.duration_ms
        bisect_min(duration_ms, self._with_duration, at_least=min(last_ms, duration_ms))

    def _with_earlier(self, index: int, by_us: int) -> bool:
        """Move all actions from `index` on, and the end of faults, forward by `by_us`."""
        case, deeds = self._case, list(self._deeds)
        deeds[index:] = [TimedAction(at_us - by_us, deed) for at_us, deed in deeds[index:]]
        duration_ms = max(1, case.options.duration_ms - by_us // 1000)
        options = replace(case.options, duration_ms=duration_ms)
        return self.fails(replace(case, options=options, deeds=tuple(deeds)))

    def _with_duration(self, duration_ms: int) -> bool:
        return self._with_settings({"duration_ms": duration_ms})


def _run(case: Case) -> Ran:
    return play(case, Cluster(case.seed, case.options, keep=0))


def _ended(case: Case, at_us: int, about: str) -> Case:
    """The case without the actions after its failure."""
    duration_ms = min(case.options.duration_ms, at_us // 1000 + 1)
    deeds = tuple(done for done in case.deeds or () if done.at_us <= at_us)
    options = replace(case.options, duration_ms=duration_ms)
    return replace(case, options=options, deeds=deeds, about=about)


def _is_of(kind: type[Action]) -> Callable[[TimedAction], bool]:
    return lambda done: type(done.action) is kind


def _plain(action: Action) -> Action:
    """The action with default values in all fields that have one, except the node's."""
    usual = {
        field.name: field.default
        for field in fields(action)  # type: ignore[arg-type]
        if field.default is not MISSING and field.name not in _NODES
    }
    return replace(action, **usual)  # type: ignore[type-var]


def _unusual(options: WorldOptions) -> Iterator[tuple[str, Any]]:
    usual = dict(flat(WorldOptions()))
    for name, value in flat(options):
        if name not in _SIZES and value != usual[name]:
            yield name, usual[name]


def _without_node(case: Case, node_id: int) -> Case | None:
    """The case without that node and its actions; nodes with higher ids move down by one.

    Returns None for the single voter.
    """
    options = case.options
    if node_id > options.voters:
        options = replace(options, observers=options.observers - 1)
    elif options.voters > 1:
        options = replace(options, voters=options.voters - 1)
    else:
        return None
    renamed = ((at_us, _renamed(deed, node_id)) for at_us, deed in case.deeds or ())
    deeds = tuple(TimedAction(at_us, deed) for at_us, deed in renamed if deed is not None)
    return replace(case, options=options, deeds=deeds)


def _renamed(action: Action, gone: int) -> Action | None:
    """The action with node ids after the removal of `gone`; None if the action is about it."""
    changes: dict[str, Any] = {}
    for field in fields(action):  # type: ignore[arg-type]
        value = getattr(action, field.name)
        if field.name in _NODES and value != LEADER:
            if value == gone:
                return None
            changes[field.name] = value - (value > gone)
        elif field.name in _SETS:
            those = tuple(node - (node > gone) for node in value if node != gone)
            if not those:
                return None
            changes[field.name] = those
    return replace(action, **changes)  # type: ignore[type-var]
