"""Spans of voter-set changes at the leader: caught up, appended, committed.

`kraft.voter_change` is a child of the call that requested the change, and so of its caller's span.
It ends when the change is committed, which may be after the response to the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.errors import ErrorCode
from quorate.server.tracing.span_factory import end_failed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span, SpanContext

    from quorate.raft.messages import MembershipResponse
    from quorate.raft.trace_events import Value
    from quorate.records.ids import Offset, ReplyToken
    from quorate.server.tracing.span_factory import SpanFactory

    Values = Mapping[str, Value]


class ChangeSpans:
    """The voter change that a leader has in progress."""

    def __init__(self, maker: SpanFactory) -> None:
        self._maker = maker
        self._span: Span | None = None
        self._name = ""
        self._token: ReplyToken | None = None
        self._offset: int | None = None
        # The last change, which is the reason if a removed leader resigns.
        self.newest: SpanContext | None = None

    @property
    def current(self) -> SpanContext | None:
        """The change in progress, or None."""
        return None if self._span is None else self._span.get_span_context()

    def begun(self, about: Values, token: ReplyToken | None, call: SpanContext | None) -> None:
        """A change waits for the voters' fetches; an observer that is to be added has caught up."""
        span = self._begin(about, token, call)
        if about["change"] == "add":
            span.add_event("caught_up")

    def appended(self, about: Values, token: ReplyToken | None, call: SpanContext | None) -> None:
        """The new voter set is in the log, and in effect."""
        offset = about["offset"]
        assert isinstance(offset, int)
        span = self._span
        if span is None or self._offset is not None:
            span = self._begin(about, token, call)
        self._offset = offset
        span.add_event("appended", {"kraft.offset": offset})

    def _begin(self, about: Values, token: ReplyToken | None, call: SpanContext | None) -> Span:
        if self._span is not None:
            self._end("another change began")
        told: dict[str, str | int] = {"kraft.voter_change.type": str(about["change"])}
        for name, attribute in _ATTRIBUTES.items():
            value = about.get(name)
            if isinstance(value, str | int):
                told[attribute] = value
        span = self._maker.start_child(call, "kraft.voter_change", told)
        self._name = _name(about)
        span.update_name(self._name)
        self._span, self._token, self._offset = span, token, None
        self.newest = span.get_span_context()
        return span

    def progressed(self, high_watermark: Offset | None) -> None:
        """End the change when the high watermark passes it, also before the response."""
        offset = self._offset
        if offset is not None and high_watermark is not None and high_watermark > offset:
            self.committed()

    def committed(self) -> None:
        """The change is committed."""
        if self._span is not None:
            self._span.add_event("committed")
            self._span.update_name(f"{self._name}: committed")
            self._end()

    def answered(self, token: ReplyToken, response: MembershipResponse) -> None:
        """The caller got a response; a rejection ends a change that is not appended."""
        if self._span is None or token != self._token or response.error is ErrorCode.NONE:
            return
        reason = response.error.name if response.reason is None else response.reason.value
        if self._offset is not None:
            self._span.add_event("answered", {"kraft.refusal": reason})
            return
        self._span.set_attribute("kraft.refusal", reason)
        self._span.update_name(f"{self._name}: {reason}")
        self._end(response.message)

    def lost(self, words: str = "leadership was lost") -> None:
        """End the span: the next leader decides the outcome of the change."""
        if self._span is not None:
            self._end(words)

    def _end(self, words: str | None = None) -> None:
        assert self._span is not None
        if words is None:
            self._span.end()
        else:
            end_failed(self._span, words)
        self._span = self._token = self._offset = None


def _name(about: Values) -> str:
    """Describe the change: `add voter 4`, `upgrade kraft.version 1`."""
    if "voter_id" in about:
        return f"{about['change']} voter {about['voter_id']}"
    return f"{about['change']} kraft.version {about['kraft_version']}"


_ATTRIBUTES = {
    "voter_id": "kraft.voter.id",
    "directory_id": "kraft.voter.directory_id",
    "kraft_version": "kraft.version",
}
