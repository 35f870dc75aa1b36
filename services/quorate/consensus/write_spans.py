"""Where the time of a change of metadata went: decided, on its way into the log, committed.

Three spans below that of its call, for the calls that have one (`tracing.write.ratio`); they are
made when a part is over. Loaded only if tracing is on (telemetry/tracing.py).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry.trace import get_current_span, set_span_in_context

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from opentelemetry.trace import Span

    from quorate.consensus.accumulator import CutBatch
    from quorate.consensus.decision_queue import Undecided
    from quorate.controller.decision import Decision
    from quorate.controller.replies import WriteReply
    from quorate.telemetry.spans import Tracing


@dataclass(slots=True)
class _Write:
    """A change under way: the span of its call, and since when it is in which part."""

    call: Span
    since_ns: int
    part: str = "kraft.write.decide"
    end_offset: int | None = None


class WriteSpans:
    """Those of one controller."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._writes: dict[asyncio.Future[WriteReply], _Write] = {}

    def asked(self, future: asyncio.Future[WriteReply]) -> None:
        """A request came, within the span of its call if that is recorded."""
        call = get_current_span()
        if call.is_recording():
            self._writes[future] = _Write(call, time.time_ns())
            future.add_done_callback(self._over)

    def decided(self, asked: Undecided, decision: Decision) -> None:
        """Its records are known, and wait for the batch before theirs."""
        write = self._writes.get(asked.future)
        if write is None:
            return
        told: dict[str, str | int] = {
            "kraft.request": type(asked.request).__name__,
            "kraft.records": len(decision.values),
            "kraft.offset": decision.base_offset,
        }
        self._end_part(write, told, "kraft.write.gather" if decision.values else "")
        write.end_offset = decision.end_offset

    def appended(self, batch: CutBatch) -> None:
        """A batch is in the leader's log, and on its way to the others."""
        if not self._writes:
            return
        told = {
            "kraft.batch.base_offset": batch.base_offset,
            "kraft.batch.end_offset": batch.end_offset,
            "kraft.batch.size_bytes": len(batch.data),
        }
        for write in self._writes.values():
            is_in_it = write.end_offset is not None and write.end_offset <= batch.end_offset
            if is_in_it and write.part == "kraft.write.gather":
                self._end_part(write, told, "kraft.write.commit")

    def _over(self, future: asyncio.Future[WriteReply]) -> None:
        """It is answered, one way or the other."""
        write = self._writes.pop(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            self._end_part(write, {"kraft.refusal": str(error)}, "")
        else:
            self._end_part(write, {}, "")

    def _end_part(self, write: _Write, told: Mapping[str, str | int], following: str) -> None:
        """The part ends now, and another one begins, if any."""
        now_ns = time.time_ns()
        if write.part:
            parent = set_span_in_context(write.call)
            span = self._tracing.start(write.part, told, parent=parent, start_ns=write.since_ns)
            span.end(now_ns)
        write.since_ns, write.part = now_ns, following
