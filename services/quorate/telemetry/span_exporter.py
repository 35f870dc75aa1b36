"""Bounded span queue and the exporter thread; drops spans rather than block.

Code that ends a span appends it to the queue and continues. A collector that is dead, hangs or is
slow delays only the thread: the queue fills, spans above its limit are dropped and counted, and one
line per minute reports them (rule `retry_backoff`). A command has no log: it gives up at the first
failed call, and reports that at its end.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import SpanExportResult

from quorate.records.escaping import shown
from quorate.telemetry.span_names import KIND

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger(__name__)
# A span has a few kilobytes at most: attributes and events are bounded (telemetry/tracer.py).
QUEUE_MAX: Final = 2048
# Spans of which there may be thousands per second: half of the queue is kept for others.
BULK: Final = ("kraft.write.", "quorate.controller.", "quorate.raft.v1.Raft/Fetch")
_KINDS: Final = (KIND, "rpc.method")
# Small enough that encoding a batch does not hold the interpreter lock for long.
BATCH_MAX: Final = 64
# Seconds that spans accumulate before they are sent, unless a flush is requested.
DELAY_S: Final = 1.0
# Seconds until the thread has noticed that the exporter was closed.
CLOSING_S: Final = 0.2
# Characters of a collector's message that are repeated.
WORDS_MAX: Final = 300
_EXPORTERS_OWN_LOG: Final = "opentelemetry.exporter.otlp"


@dataclass(slots=True)
class Rejections:
    """The number of spans of a batch that the collector rejected, and its message.

    A warning or a failed call has only a message.
    """

    spans: int = 0
    words: str = ""


class SpanQueue(SpanProcessor):
    """Accepts every span that ends, from any thread, without blocking its caller."""

    def __init__(
        self,
        exporter: SpanExporter,
        where: str,
        *,
        rejections: Rejections | None = None,
        gives_up: bool = False,
        queue_max: int = QUEUE_MAX,
        delay_s: float = DELAY_S,
    ) -> None:
        """`where` names the collector in the log. The thread starts with the first span.

        The exporter stores the outcome of a call in `rejections`. With `gives_up`, the queue ends
        at the first failed call, and logs nothing.
        """
        self._exporter = exporter
        self._where = where
        self._rejections = rejections or Rejections()
        self._gives_up = gives_up
        self._queue_max = queue_max
        self._delay_s = delay_s
        self._queue: deque[ReadableSpan] = deque()
        self._lock = threading.Lock()
        self._has_work = threading.Event()
        self._flush_soon = threading.Event()
        self._is_stopping = False
        self._is_failing = False
        self._complaints = _ExporterLogCapture()
        self._thread: threading.Thread | None = None
        self.exported = 0
        self.dropped = 0
        # The cause of the first loss.
        self._loss = ""

    @property
    def queued(self) -> int:
        """The number of queued spans."""
        return len(self._queue)

    @property
    def loss(self) -> str:
        """The message of a queue that gave up; empty if no span was lost."""
        return f"the trace is lost on the way to {self._where}: {self._loss}" if self._loss else ""

    # --- called by those that make spans ----------------------------------------------------------

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: spans are exported when they end."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the span, or count it as dropped."""
        with self._lock:
            room = self._queue_max // 2 if is_bulk(span) else self._queue_max
            if self._is_stopping or len(self._queue) >= room:
                self.dropped += 1
                return
            self._queue.append(span)
            is_batch = len(self._queue) >= BATCH_MAX
            if self._thread is None:
                self._begin()
        if not self._has_work.is_set():
            self._has_work.set()
        if is_batch and not self._flush_soon.is_set():
            self._flush_soon.set()

    def _begin(self) -> None:
        thread = threading.Thread(target=self._run, name="spans", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The machine has no thread to give: the next span tries again.
            return
        self._thread = thread

    def flush_soon(self) -> None:
        """Request that queued spans are sent now, without waiting."""
        self._flush_soon.set()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Request a flush; does not wait, unlike the SDK's own processors."""
        del timeout_millis
        self.flush_soon()
        return True

    def shutdown(self) -> None:
        """Do nothing; `stop` has been called before the SDK calls this."""
        self.stop(0.0)

    def stop(self, limit_s: float) -> None:
        """Send the remaining spans within the time limit; blocks the caller."""
        with self._lock:
            is_first, self._is_stopping = not self._is_stopping, True
            thread = self._thread
        if not is_first:
            return
        self._flush_soon.set()
        self._has_work.set()
        if thread is not None:
            thread.join(limit_s)
            if thread.is_alive():
                self._loss = self._loss or "it does not answer in time"
        # This also ends a call in flight.
        self._exporter.shutdown()
        if thread is not None:
            thread.join(CLOSING_S)
        self._complaints.close()
        with self._lock:
            self.dropped += len(self._queue)
            self._queue.clear()

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._has_work.wait()
            self._flush_soon.wait(self._delay_s)
            # A span or a stop from here on is seen below, or sets the event again.
            self._has_work.clear()
            self._flush_soon.clear()
            while batch := self._taken():
                self._export(batch)
            if self._is_stopping:
                return

    def _taken(self) -> list[ReadableSpan]:
        """The next batch, empty if nothing is queued; a stop may empty the queue concurrently."""
        with self._lock:
            return [self._queue.popleft() for _ in range(min(BATCH_MAX, self.queued))]

    def _export(self, spans: list[ReadableSpan]) -> None:
        if self._gives_up and self._loss:
            with self._lock:
                self.dropped += len(spans)
            return
        cause: object = ""
        self._rejections.spans, self._rejections.words = 0, ""
        try:
            is_done = self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception as error:
            is_done, cause = False, error
        lost = min(self._rejections.spans, len(spans)) if is_done else len(spans)
        with self._lock:
            self.exported += len(spans) - lost
            self.dropped += lost
        if is_done:
            self._tell_rejections(lost)
            if self._is_failing:
                self._is_failing = False
                log.info("spans are taken again by %s", self._where, extra={"repeats": "spans on"})
            return
        said = shown(self._rejections.words, WORDS_MAX)
        words = cause or said or self._complaints.last or "it does not take them"
        self._loss = self._loss or str(words)
        if not self._is_stopping and not self._gives_up:
            self._is_failing = True
            about = {"dropped": self.dropped, "repeats": "spans off"}
            log.warning("spans are lost on the way to %s: %s", self._where, words, extra=about)

    def _tell_rejections(self, spans: int) -> None:
        said = shown(self._rejections.words, WORDS_MAX)
        if not spans and not said:
            return
        words = f"{spans} rejected: {said or 'it does not say why'}" if spans else said
        if not self._gives_up:
            about = {"dropped": self.dropped, "repeats": "spans rejected"}
            log.warning("spans are not all taken by %s: %s", self._where, words, extra=about)
        elif spans:
            self._loss = self._loss or words


def is_bulk(span: ReadableSpan) -> bool:
    """True if there may be thousands like it in a second."""
    attributes = span.attributes or {}
    return any(str(attributes.get(kind, "")).startswith(BULK) for kind in _KINDS)


class _ExporterLogCapture(logging.Handler):
    """Captures what the exporter logs: it logs every attempt that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        self._logger = logging.getLogger(_EXPORTERS_OWN_LOG)
        self._logger.propagate = False
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()

    def close(self) -> None:
        self._logger.removeHandler(self)
        super().close()
