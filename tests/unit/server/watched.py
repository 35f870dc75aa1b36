"""A real core that is looked on at by what makes spans, as its driver would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import get_current_span, set_span_in_context

from quorate.raft import api
from quorate.raft.core import RaftCore
from quorate.records.ids import Millis, ReplyToken
from quorate.server.tracing.raft_spans import RaftSpans
from quorate.telemetry import tracing
from tests.recorded_spans import operation_of
from tests.unit.raft import cores

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

    from quorate.raft import messages as m
    from quorate.records.ids import CallId
    from tests.recorded_spans import Recorded

SAVING_MS = 5


class Watched:
    """Performs effects as far as an observer sees them: what is saved, and what is sent for whom.

    It is to be used in `recorded`, and remembers the newest request to each node.
    """

    def __init__(self, state: api.RecoveredState, *, node_id: int = 1) -> None:
        active = tracing.active()
        assert active is not None
        self.tracing = active
        self.now = 0
        self.fails_to_save = False
        self.core = RaftCore(cores.config(node_id), state, cores.Midway())
        self.spans = RaftSpans(active, self.core.replica, lambda: Millis(self.now))
        self.transport = self.spans.carried_by(self)
        self.calls: dict[int, tuple[CallId, m.PeerRequest]] = {}
        self.carried: dict[int, SpanContext] = {}
        self._tokens = 0
        self._perform(None, self.core.start(Millis(0)))

    def step(self, event: api.Event, at: int | None = None) -> api.Update:
        self.now = self.now if at is None else at
        update = self.core.step(event, Millis(self.now))
        self._perform(event, update)
        return update

    def wake(self, at: int) -> api.Update:
        return self.step(api.TimerFired(), at)

    def wake_until(self, role: type) -> None:
        """Let time pass, during which no peer sends anything."""
        update = self.wake(self.now)
        while not isinstance(self.core.replica.role, role):
            assert update.wake_at_ms is not None
            update = self.wake(max(self.now, update.wake_at_ms))

    def ask(
        self, request: m.Request, *, called: str | None = None, at: int | None = None
    ) -> api.Update:
        """A request; with `called` in the span of a call of that name, which ends with the step."""
        self._tokens += 1
        token = ReplyToken(self._tokens)
        if called is None:
            with self.tracing.within(None):
                self.spans.submitted(token, request)
            return self.step(api.RequestReceived(token, request), at)
        span = self.tracing.start_root(called, {})
        with self.tracing.within(set_span_in_context(span)):
            self.spans.submitted(token, request)
        update = self.step(api.RequestReceived(token, request), at)
        span.end()
        return update

    def answer(
        self, node_id: int, response: m.PeerResponse | api.RequestFailure, at: int | None = None
    ) -> api.Update:
        """The response of a node to the newest request that was sent to it."""
        call, _ = self.calls[node_id]
        return self.step(api.ResponseReceived(call, response), at)

    def flush(self) -> api.Update:
        log = self.core.replica.log
        return self.step(api.LogFlushed(log.end, log.generation))

    def _perform(self, event: api.Event | None, update: api.Update) -> None:
        self.spans.stepped(event, update)
        for effect in update.effects:
            match effect:
                case api.SaveElection():
                    self.spans.saving(effect)
                    self.now += SAVING_MS
                    if self.fails_to_save:
                        return
                    self.spans.saved()
                case api.SendRequest():
                    self.transport.send(effect)

    def send(self, effect: api.SendRequest) -> None:
        """The transport: it sees the span that is current."""
        self.calls[effect.to.node_id] = effect.call, effect.request
        self.carried[effect.to.node_id] = get_current_span().get_span_context()

    def probe(self, effect: api.ProbeLeader) -> None: ...

    def elect(self, at: int = 2000) -> None:
        """Win an election of epoch 1 with the votes of 2, and commit its first records."""
        self.wake(at)
        self.answer(2, cores.granted(0))
        self.answer(2, cores.granted(1))
        self.flush()
        self.ask(cores.fetch(2, self.core.replica.log.end.offset, 1))


def parent_of(span: ReadableSpan, spans: Recorded) -> str | None:
    """The kind of the span that it is a child of."""
    if span.parent is None:
        return None
    (parent,) = [one for one in spans.spans if one.context.span_id == span.parent.span_id]
    return operation_of(parent)


def begun(spans: Recorded) -> list[ReadableSpan]:
    """The spans in the order of their starts; of two with the same start, the longer one first."""
    return sorted(spans.spans, key=lambda span: (span.start_time or 0, -(span.end_time or 0)))


def tree(spans: Recorded) -> list[tuple[str, str | None]]:
    """Every span with its parent, in the order in which they began."""
    return [(operation_of(span), parent_of(span, spans)) for span in begun(spans)]


def events(span: ReadableSpan) -> list[tuple[str, dict[str, object]]]:
    return [(event.name, dict(event.attributes or {})) for event in span.events]


def links(span: ReadableSpan, spans: Recorded) -> dict[str, str]:
    """The kinds of the spans that it links to, by why it does."""
    names = {one.context.span_id: operation_of(one) for one in spans.spans}
    return {
        str((link.attributes or {})["kraft.link"]): names[link.context.span_id]
        for link in span.links
    }
