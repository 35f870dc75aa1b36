"""Driver observer that produces spans and propagates them to peers (docs/tracing.md).

The core knows nothing of spans. They are made from its trace events, from the calls that came in
with a span, identified by their tokens, and from the requests that it sends. A request carries the
span it is sent for, so that the receiver's work becomes a child of it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, get_args

from opentelemetry.trace import get_current_span

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.ids import Millis
from quorate.server.driver.observers import Observer, log_observer_error
from quorate.server.tracing.election_spans import ElectionSpans
from quorate.server.tracing.span_factory import SpanFactory, context_of, end_failed, flush_told_by
from quorate.server.tracing.voter_change_spans import ChangeSpans

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from opentelemetry.trace import Span, SpanContext

    from quorate.raft.replica import Replica
    from quorate.raft.trace_events import TraceEvent
    from quorate.records.ids import ReplyToken
    from quorate.server.driver.interfaces import PeerTransport
    from quorate.telemetry.tracer import Tracing

# Only these requests may cause something that has a span.
_CAUSES: Final = frozenset(
    {
        m.VoteRequest,
        m.BeginQuorumEpochRequest,
        m.EndQuorumEpochRequest,
        *get_args(m.MembershipRequest),
    }
)
# Calls whose callers left during a disk stall are never reported; older ones are dropped.
CALLS_MAX: Final = 256
# Multiple of the election timeout: the longest randomized time of a round.
LONGEST_ROUND: Final = 2


class RaftSpans(Observer):
    """The spans of one replica, from its start to its end."""

    def __init__(self, tracing: Tracing, replica: Replica, now_ms: Callable[[], Millis]) -> None:
        self._tracing = tracing
        self._now_ms = now_ms
        self._replica = replica
        self._maker = SpanFactory(tracing, replica.config)
        longest_ms = replica.config.election_timeout_ms * LONGEST_ROUND
        self._elections = ElectionSpans(self._maker, longest_ms=longest_ms)
        self._changes = ChangeSpans(self._maker)
        self._calls: OrderedDict[ReplyToken, Span] = OrderedDict()
        self._persisting: Span | None = None
        self._saving_ms = Millis(0)
        # The call that the last step handled, and any other span that it belongs to.
        self._call: SpanContext | None = None
        self._about: SpanContext | None = None
        self._hand_over: SpanContext | None = None

    # --- assignment to spans ----------------------------------------------------------------------

    def within_step(self) -> AbstractContextManager[None]:
        """Make the span of the last step current inside, for its log lines."""
        return self._tracing.within(context_of(self._call or self._about))

    def sending(self, effect: api.SendRequest) -> AbstractContextManager[None]:
        """Make requests sent inside belong to the span that they are sent for, or to none."""
        span = None
        try:
            span = self._span_of(effect)
        except Exception as error:
            log_observer_error(self, error)
        return self._tracing.within(context_of(span))

    def _span_of(self, effect: api.SendRequest) -> SpanContext | None:
        match effect.request:
            case m.VoteRequest():
                self._elections.asked(effect.call, effect.to.node_id)
                return self._elections.current
            case m.BeginQuorumEpochRequest() | m.EndQuorumEpochRequest():
                return self._elections.current
            case m.ApiVersionsRequest():
                return self._changes.current
            case _:
                return None

    def carried_by(self, transport: PeerTransport) -> PeerTransport:
        """Wrap the transport so that each request carries the span that it is sent for."""
        return _Carrier(transport, self)

    # --- events and effects -----------------------------------------------------------------------

    def submitted(self, token: ReplyToken, request: m.Request) -> None:
        if type(request) not in _CAUSES:
            return
        span = get_current_span()
        if span.get_span_context().is_valid:
            self._calls[token] = span
            if len(self._calls) > CALLS_MAX:
                self._calls.popitem(last=False)

    def stepped(self, event: api.Event | None, update: api.Update) -> None:
        token: ReplyToken | None = None
        call: Span | None = None
        match event:
            case api.RequestReceived():
                token = event.token
                call = self._calls.get(token)
            case api.ResponseReceived(call=answered, response=response):
                self._elections.answered(answered, response)
            case api.CallerDisconnected(token=gone):
                self._calls.pop(gone, None)
        before = self._going_on
        self._call = None if call is None else call.get_span_context()
        self._about = before
        if before is None and call is None and not update.trace:
            return
        self._elections.expire(self._now_ms())
        if self._elections.is_establishing:
            self._elections.flushed(flush_told_by(event, self._replica))
        for note in update.trace:
            self._noted(note, token, call)
        self._about = before or self._going_on
        for effect in update.effects:
            self._asked_for(effect)

    @property
    def _going_on(self) -> SpanContext | None:
        return self._elections.current or self._changes.current

    def _noted(self, trace_event: TraceEvent, token: ReplyToken | None, call: Span | None) -> None:
        match trace_event.kind:
            case TraceEventKind.ROLE_TAKEN:
                self._role_taken(trace_event, call)
            case TraceEventKind.ELECTION_LOST:
                self._elections.lost()
            case TraceEventKind.LEADER_RESIGNED:
                self._elections.heard_resignation(self._call)
            case TraceEventKind.HAND_OVER_BEGUN:
                self._hand_over = self._call
            case TraceEventKind.CHANGE_BEGUN:
                self._changes.begun(trace_event.values, token, self._call)
            case TraceEventKind.CHANGE_APPENDED:
                self._changes.appended(trace_event.values, token, self._call)
            case TraceEventKind.CHANGE_COMMITTED:
                self._changes.committed()

    def _role_taken(self, trace_event: TraceEvent, call: Span | None) -> None:
        values = trace_event.values
        resigned_for = None
        if values["cause"] == RoleChangeCause.TRANSFER.value:
            resigned_for = self._hand_over
        elif values["cause"] == RoleChangeCause.REMOVED.value:
            resigned_for = self._changes.newest
        self._elections.role_taken(values, self._now_ms(), resigned_for=resigned_for)
        if values["from_role"] == "leader":
            self._changes.lost()
        if values["to_role"] == "follower" and call is not None:
            call.add_event("follower.transitioned", {"from": str(values["from_role"])})
        # Flush now, because a process that changes its role may be about to end.
        self._tracing.flush()

    def _asked_for(self, effect: api.Effect) -> None:
        match effect:
            case api.SendReply(token=token, response=response):
                self._calls.pop(token, None)
                if isinstance(response, m.MembershipResponse):
                    self._changes.answered(token, response)
            case api.PublishProgress(is_leader=True, high_watermark=high_watermark):
                self._elections.progressed(high_watermark)
                self._changes.progressed(high_watermark)

    # --- the disk, and the end --------------------------------------------------------------------

    def saving(self, effect: api.SaveElection) -> None:
        parent = self._call or self._elections.current
        if parent is not None:
            state = effect.state
            epoch = {"kraft.epoch": state.epoch}
            self._persisting = self._maker.start_child(parent, "kraft.quorum_state.persist", epoch)
            what = "epoch" if state.voted is None else "vote"
            self._persisting.update_name(f"flush {what if state.leader_id is None else 'leader'}")
            self._saving_ms = self._now_ms()

    def saved(self) -> None:
        now_ms = self._now_ms()
        if self._persisting is not None:
            took_ms = now_ms - self._saving_ms
            self._persisting.set_attribute("kraft.fsync.duration_ms", took_ms)
            self._persisting.end()
            self._persisting = None
        self._elections.saved(now_ms)

    def ended(self) -> None:
        words = "the controller stopped"
        if self._persisting is not None:
            end_failed(self._persisting, words)
            self._persisting = None
        self._elections.ended()
        self._changes.lost(words)
        self._calls.clear()
        self._tracing.flush()


class _Carrier:
    """A transport whose requests carry the spans that they are sent for."""

    def __init__(self, transport: PeerTransport, spans: RaftSpans) -> None:
        self._transport = transport
        self._spans = spans

    def send(self, effect: api.SendRequest) -> None:
        with self._spans.sending(effect):
            self._transport.send(effect)

    def probe(self, effect: api.ProbeLeader) -> None:
        self._transport.probe(effect)
