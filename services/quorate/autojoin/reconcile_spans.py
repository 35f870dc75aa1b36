"""Spans of reconciliations that act or wait for something new.

A pass that finds everything unchanged has no span, because there is a pass every few seconds. Only
the decision shows if the pass needs a trace, and the calls to observe the cluster come before it.
So the calls of each pass are recorded with their times, and become spans at the end.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.autojoin.actions import (
    AddVoter,
    DeletePod,
    HandOver,
    RemoveVoter,
    Wait,
    WaitReason,
    WriteRecord,
)
from quorate.autojoin.annotations import describe_action
from quorate.records.ids import format_uuid
from quorate.records.value_types import value_type
from quorate.telemetry import tracing
from quorate.telemetry.span_names import KIND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from opentelemetry.trace import SpanContext

    from quorate.autojoin.actions import Action, Decision
    from quorate.autojoin.state import Desired
    from quorate.records.ids import ReplicaKey
    from quorate.telemetry.tracer import Value

T = TypeVar("T")
SPAN: Final = "kraft.operator.reconcile"


@value_type
class PastCall:
    """A completed call of a pass, in wall-clock time; `error` is empty if it succeeded."""

    name: str
    began_ns: int
    ended_ns: int
    error: str


class ReconcileSpans:
    """Times the calls of a pass; keeps what the previous pass waited for, and its span."""

    def __init__(self, wall_ns: Callable[[], int], clock_ns: Callable[[], int]) -> None:
        """`wall_ns` returns wall-clock time, `clock_ns` monotonic time."""
        self._wall_ns = wall_ns
        self._clock_ns = clock_ns
        self.forget()
        self.begin()

    def forget(self) -> None:
        """Treat the next pass as the first one: another operator may have acted since."""
        self._waited: frozenset[str] = frozenset()
        self._previous: SpanContext | None = None

    def begin(self) -> None:
        """Start a pass. Its times are the wall clock now plus monotonic time since."""
        self._calls: list[PastCall] = []
        self._began_ns = self._wall_ns()
        self._ahead_ns = self._began_ns - self._clock_ns()

    def _now_ns(self) -> int:
        return self._clock_ns() + self._ahead_ns

    async def timed(self, name: str, call: Awaitable[T]) -> T:
        """Await and time a call of this pass; it becomes a span if the pass has a trace."""
        if tracing.active() is None:
            return await call
        began_ns, error = self._now_ns(), ""
        try:
            return await call
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            raise
        finally:
            self._calls.append(PastCall(name, began_ns, self._now_ns(), error))

    @contextmanager
    def span(self, desired: Desired, decision: Decision) -> Iterator[None]:
        """Enclose the action of a pass after its decision; the span starts with the pass.

        It links to the span before, until all is in step: together they describe one piece of work.
        """
        waits = frozenset(wait.why.value for wait in decision.waits)
        is_news, self._waited = waits != self._waited, waits
        if isinstance(decision.step, Wait) and not is_news:
            yield
            return
        with tracing.root(
            name_of(decision.step) + tracing.place(),
            _told(desired, decision),
            links={"previous_pass": self._previous},
            start_ns=self._began_ns,
            now_ns=self._now_ns,
        ) as begun:
            self._previous = None if decision.is_in_step else begun
            for wait in decision.waits:
                tracing.event("kraft.operator.waits", {"reason": wait.why.value, "text": wait.text})
            try:
                yield
            finally:
                for call in self._calls:
                    tracing.record(call.name, call.began_ns, call.ended_ns, call.error)


def name_of(step: Action | Wait) -> str:
    """The span name of a pass: its action, from a small fixed list."""
    match step:
        case Wait(WaitReason.IN_STEP):
            return "in step"
        case Wait(why):
            return f"wait: {why.value}"
        case WriteRecord():
            return "write bootstrap record"
        case AddVoter(key):
            return f"add voter {key.node_id}"
        case RemoveVoter(key):
            return f"remove voter {key.node_id}"
        case HandOver(to):
            return f"hand over to {to.node_id}"
        case DeletePod(name):
            return f"delete pod {name}"


def _told(desired: Desired, decision: Decision) -> dict[str, Value]:
    step = decision.step
    told: dict[str, Value] = {
        KIND: SPAN,
        "k8s.statefulset.name": desired.stateful_set,
        "kraft.operator.replicas": desired.replicas,
        "kraft.operator.action": type(step).__name__,
    }
    if isinstance(step, Wait):
        return told | {"kraft.operator.reason": step.why.value, "kraft.operator.text": step.text}
    told |= {
        "kraft.operator.reason": step.cause.value,
        "kraft.operator.text": describe_action(step),
    }
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
