"""Spans of metadata writes: decide, accumulate, commit.

They are three children of the span of the call, for the calls that have one
(`tracing.write.ratio`), and are made when each part ends. The commit has a child span for each
voter that had flushed the records by then, so that a trace shows the majority and its last member.
Loaded only if tracing is on (telemetry/tracing.py).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import get_current_span, set_span_in_context

from quorate.server.driver.observers import Observer
from quorate.server.tracing.span_factory import flush_told_by, record_flush

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from opentelemetry.trace import Span

    from quorate.controller.decision import Decision
    from quorate.controller.request_types import WriteReply
    from quorate.raft.api import Event, Update
    from quorate.raft.replica import Replica
    from quorate.records.ids import NodeId
    from quorate.server.metadata.batch_accumulator import CutBatch
    from quorate.server.metadata.decision_queue import QueuedRequest
    from quorate.telemetry.tracer import Tracing

_DECIDE: Final = "kraft.write.decide"
_GATHER: Final = "kraft.write.gather"
_COMMIT: Final = "kraft.write.commit"
_FLUSH: Final = "kraft.write.flush"
_NAMES: Final = {_DECIDE: "decide", _GATHER: "gather", _COMMIT: "commit"}


@dataclass(slots=True)
class _Write:
    """A write in progress: the span of its call, and its current part and its start."""

    call: Span
    since_ns: int
    part: str = _DECIDE
    end_offset: int | None = None
    # Wall-clock time (ns) at which each voter's flush of the records was reported to the leader.
    flushed: dict[NodeId, int] = field(default_factory=dict)


class WriteSpans(Observer):
    """The write spans of one controller; an observer of its driver."""

    def __init__(self, tracing: Tracing, replica: Replica) -> None:
        self._tracing = tracing
        self._replica = replica
        self._writes: dict[asyncio.Future[WriteReply], _Write] = {}

    def asked(self, future: asyncio.Future[WriteReply]) -> None:
        """A request arrived, within the span of its call if that is recorded."""
        call = get_current_span()
        if call.is_recording():
            self._writes[future] = _Write(call, time.time_ns())
            future.add_done_callback(self._over)

    def decided(self, asked: QueuedRequest, decision: Decision) -> None:
        """The request's records are known, and wait for the previous batch."""
        write = self._writes.get(asked.future)
        if write is None:
            return
        name = type(asked.request).__name__
        # The span of a stream's request exists before the request is parsed.
        write.call.update_name(name)
        told: dict[str, str | int] = {
            "kraft.request": name,
            "kraft.records": len(decision.values),
            "kraft.offset": decision.base_offset,
        }
        self._end_part(write, told, _GATHER if decision.values else "")
        write.end_offset = decision.end_offset

    def appended(self, batch: CutBatch) -> None:
        """A batch is in the leader's log, and in flight to the other voters."""
        if not self._writes:
            return
        told = {
            "kraft.batch.base_offset": batch.base_offset,
            "kraft.batch.end_offset": batch.end_offset,
            "kraft.batch.size_bytes": len(batch.data),
        }
        for write in self._writes.values():
            is_in_it = write.end_offset is not None and write.end_offset <= batch.end_offset
            if is_in_it and write.part == _GATHER:
                self._end_part(write, told, _COMMIT)

    def stepped(self, event: Event | None, update: Update) -> None:
        """Note a flush of the leader, or a Fetch, which reports what a voter has flushed."""
        del update
        if not self._writes:
            return
        told = flush_told_by(event, self._replica)
        if told is None:
            return
        node_id, end_offset = told
        now_ns = time.time_ns()
        for write in self._writes.values():
            end = write.end_offset
            if write.part == _COMMIT and end is not None and end <= end_offset:
                write.flushed.setdefault(node_id, now_ns)

    def _over(self, future: asyncio.Future[WriteReply]) -> None:
        """The request was answered or failed."""
        write = self._writes.pop(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            self._end_part(write, {"kraft.refusal": str(error)}, "")
        else:
            self._end_part(write, {}, "")

    def _end_part(self, write: _Write, told: Mapping[str, str | int], following: str) -> None:
        """End the current part, and start `following` if it is not empty."""
        now_ns = time.time_ns()
        if write.part:
            parent = set_span_in_context(write.call)
            span = self._tracing.start(write.part, told, parent=parent, start_ns=write.since_ns)
            span.update_name(_NAMES[write.part])
            for node_id, flushed_ns in write.flushed.items():
                record_flush(self._tracing, _FLUSH, span, node_id, write.since_ns, flushed_ns)
            span.end(now_ns)
        write.since_ns, write.part = now_ns, following
