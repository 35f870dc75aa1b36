"""The spans of the operator: a trace for each pass that does something, or waits for something new.

One that finds all as it was the last time has none: the operator looks every few seconds.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.autojoin.notes import words
from quorate.autojoin.steps import AddVoter, DeletePod, HandOver, RemoveVoter, Wait
from quorate.records.ids import format_uuid
from quorate.telemetry import tracing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.autojoin.state import Desired
    from quorate.autojoin.steps import Action, NextStep
    from quorate.records.ids import ReplicaKey
    from quorate.telemetry.spans import Value

SPAN: Final = "kraft.operator.reconcile"


class Story:
    """Remembers what the last pass waited for."""

    def __init__(self) -> None:
        self._waited: frozenset[str] = frozenset()

    @contextmanager
    def span(self, desired: Desired, decision: NextStep, began_ns: int) -> Iterator[None]:
        """Around what a pass does that began at that wall-clock time and has decided."""
        waits = frozenset(wait.why.value for wait in decision.waits)
        is_news, self._waited = waits != self._waited, waits
        if isinstance(decision.step, Wait) and not is_news:
            yield
            return
        with tracing.root(SPAN, _told(desired, decision), start_ns=began_ns):
            for wait in decision.waits:
                tracing.event("kraft.operator.waits", {"reason": wait.why.value, "text": wait.text})
            yield


def _told(desired: Desired, decision: NextStep) -> dict[str, Value]:
    step = decision.step
    told: dict[str, Value] = {
        "k8s.statefulset.name": desired.stateful_set,
        "kraft.operator.replicas": desired.replicas,
        "kraft.operator.action": type(step).__name__,
    }
    if isinstance(step, Wait):
        return told | {"kraft.operator.reason": step.why.value, "kraft.operator.text": step.text}
    told |= {"kraft.operator.reason": step.cause.value, "kraft.operator.text": words(step)}
    return told | dict(_concerned(step))


def _concerned(step: Action) -> Iterator[tuple[str, Value]]:
    match step:
        case AddVoter(key) | RemoveVoter(key) | HandOver(key):
            yield from _of(key)
        case DeletePod(name):
            yield "k8s.pod.name", name


def _of(key: ReplicaKey) -> Iterator[tuple[str, Value]]:
    yield "kraft.node.id", key.node_id
    if key.directory_id is not None:
        yield "kraft.directory.id", format_uuid(key.directory_id)
