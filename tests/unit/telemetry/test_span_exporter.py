"""Spans are exported without waits for a collector, and without growth while it is away."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from quorate.telemetry.logs import RepeatFilter
from quorate.telemetry.span_exporter import BATCH_MAX, BULK, Rejections, SpanQueue
from quorate.telemetry.span_names import KIND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Tracer

WAIT_S = 60.0
NEVER_S = 3600.0


class Collector(SpanExporter):
    """Takes spans when it is let, with the result that a test sets."""

    def __init__(self, *, answers: SpanExportResult = SpanExportResult.SUCCESS) -> None:
        self.answers = answers
        self.error: Exception | None = None
        self.let = threading.Event()
        self.let.set()
        self.asked = threading.Semaphore(0)
        self.batches: list[list[str]] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.batches.append([span.name for span in spans])
        # What a test changes from here on is for the next ones.
        error, answer = self.error, self.answers
        self.asked.release()
        assert self.let.wait(WAIT_S)
        if error is not None:
            raise error
        return answer

    def shutdown(self) -> None:
        self.let.set()


def tracer_into(queue: SpanQueue) -> Tracer:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(queue)
    return provider.get_tracer("test")


def make(tracer: Tracer, count: int) -> None:
    for number in range(count):
        tracer.start_span(f"s{number}").end()


def own(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The lines of this program; pytest sees those that go nowhere, too."""
    return [record for record in caplog.records if record.name.startswith("quorate")]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.let.set()


def test_what_is_left_is_sent_at_the_end_in_order_and_in_batches(collector: Collector) -> None:
    queue = SpanQueue(collector, "c", delay_s=NEVER_S)
    make(tracer_into(queue), BATCH_MAX + 3)
    queue.stop(WAIT_S)
    sent = [name for batch in collector.batches for name in batch]
    assert sent == [f"s{number}" for number in range(BATCH_MAX + 3)]
    assert max(map(len, collector.batches)) <= BATCH_MAX
    assert (queue.exported, queue.dropped, queue.queued) == (BATCH_MAX + 3, 0, 0)


def test_spans_gather_until_somebody_is_in_a_hurry(collector: Collector) -> None:
    queue = SpanQueue(collector, "c", delay_s=NEVER_S)
    make(tracer_into(queue), 3)
    queue.flush_soon()
    assert collector.asked.acquire(timeout=WAIT_S)
    assert collector.batches == [["s0", "s1", "s2"]]
    queue.stop(WAIT_S)


def test_a_hanging_collector_costs_what_the_queue_holds_and_no_more(collector: Collector) -> None:
    collector.let.clear()
    queue = SpanQueue(collector, "c", queue_max=100, delay_s=0.0)
    tracer = tracer_into(queue)
    make(tracer, 1)
    assert collector.asked.acquire(timeout=WAIT_S)
    # The thread has one span in its hands now; each of these returns immediately.
    make(tracer, 1000)
    assert (queue.queued, queue.dropped) == (100, 900)
    # The end comes all the same: the exporter is closed, which ends what hangs.
    queue.stop(0.0)
    assert queue.queued == 0
    # What the thread had in its hands it counts when it comes to that.
    assert queue._thread is not None
    queue._thread.join(WAIT_S)
    assert queue.exported + queue.dropped == 1001


def test_who_takes_a_batch_is_not_disturbed_by_a_stop(collector: Collector) -> None:
    queue = SpanQueue(collector, "c", delay_s=NEVER_S)

    class Stopped(deque[Any]):
        def popleft(self) -> object:
            span = super().popleft()
            # As `stop` does, which waits for the lock before.
            if not queue._lock.locked():
                self.clear()
            return span

    queue._queue = Stopped()
    make(tracer_into(queue), 3)
    queue.stop(WAIT_S)
    assert collector.batches == [["s0", "s1", "s2"]]


@pytest.mark.parametrize("kind", [KIND, "rpc.method"])
@pytest.mark.parametrize("bulk", BULK)
def test_changes_and_fetches_leave_room_for_elections(
    collector: Collector, kind: str, bulk: str
) -> None:
    collector.let.clear()
    queue = SpanQueue(collector, "c", queue_max=100, delay_s=0.0)
    tracer = tracer_into(queue)
    make(tracer, 1)
    assert collector.asked.acquire(timeout=WAIT_S)
    for _ in range(100):
        tracer.start_span("x", attributes={kind: f"{bulk}x"}).end()
    assert (queue.queued, queue.dropped) == (50, 50)
    make(tracer, 100)
    assert (queue.queued, queue.dropped) == (100, 100)
    queue.stop(0.0)


def test_a_dead_collector_is_one_line_a_minute(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.answers = SpanExportResult.FAILURE
    queue = SpanQueue(collector, "http://c:4317", delay_s=0.0)
    tracer = tracer_into(queue)
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            logging.getLogger("opentelemetry.exporter.otlp.proto.grpc").error("no route")
            make(tracer, 1)
            assert collector.asked.acquire(timeout=WAIT_S)
        queue.stop(WAIT_S)
    is_new = RepeatFilter().filter
    said = [record for record in own(caplog) if is_new(record)]
    assert [record.getMessage() for record in said] == [
        "spans are lost on the way to http://c:4317: no route"
    ]
    assert queue.dropped == 5


def test_what_the_exporter_says_of_each_attempt_is_not_in_the_log(
    collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = SpanQueue(collector, "c")
    handler = logging.StreamHandler()
    logging.getLogger().addHandler(handler)
    try:
        logging.getLogger("opentelemetry.exporter.otlp.proto.grpc").error("no route")
    finally:
        logging.getLogger().removeHandler(handler)
        queue.stop(WAIT_S)
    assert capsys.readouterr().err == ""


def test_a_collector_that_is_back_is_told_once(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.error = ValueError("cannot encode")
    queue = SpanQueue(collector, "c", delay_s=0.0)
    tracer = tracer_into(queue)
    with caplog.at_level(logging.INFO):
        make(tracer, 1)
        assert collector.asked.acquire(timeout=WAIT_S)
        collector.error = None
        make(tracer, 1)
        assert collector.asked.acquire(timeout=WAIT_S)
        make(tracer, 1)
        queue.stop(WAIT_S)
    words = [record.getMessage() for record in own(caplog)]
    assert words == ["spans are lost on the way to c: cannot encode", "spans are taken again by c"]
    assert (queue.exported, queue.dropped) == (2, 1)


def test_spans_that_a_collector_rejects_count_as_dropped_and_its_words_are_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rejections = Rejections()
    answers = iter([(2, "attribute too long\x1b"), (9, ""), (0, "soon too many"), (0, "")])

    class Partial(Collector):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = super().export(spans)
            rejections.spans, rejections.words = next(answers)
            return result

    numbers = []
    for count in (3, 2, 1, 1):
        queue = SpanQueue(Partial(), "c", rejections=rejections, delay_s=NEVER_S)
        make(tracer_into(queue), count)
        queue.stop(WAIT_S)
        numbers.append((queue.exported, queue.dropped))
    assert numbers == [(1, 2), (0, 2), (1, 0), (1, 0)]
    assert [record.getMessage() for record in own(caplog)] == [
        "spans are not all taken by c: 2 rejected: attribute too long\\x1b",
        "spans are not all taken by c: 2 rejected: it does not say why",
        "spans are not all taken by c: soon too many",
    ]
    is_new = RepeatFilter().filter
    assert len([record for record in own(caplog) if is_new(record)]) == 1


def test_a_queue_that_gives_up_asks_once_and_says_so_at_the_end(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.answers = SpanExportResult.FAILURE
    queue = SpanQueue(collector, "c", gives_up=True, delay_s=NEVER_S)
    logging.getLogger("opentelemetry.exporter.otlp.proto.grpc").error("no route")
    make(tracer_into(queue), 2 * BATCH_MAX)
    queue.stop(WAIT_S)
    assert len(collector.batches) == 1
    assert queue.dropped == 2 * BATCH_MAX
    assert queue.loss == "the trace is lost on the way to c: no route"
    assert own(caplog) == []


def test_a_queue_that_gives_up_on_a_collector_that_hangs_says_so(collector: Collector) -> None:
    collector.let.clear()
    queue = SpanQueue(collector, "c", gives_up=True, delay_s=0.0)
    make(tracer_into(queue), 1)
    assert collector.asked.acquire(timeout=WAIT_S)
    queue.stop(0.0)
    assert queue.loss == "the trace is lost on the way to c: it does not answer in time"


def test_nothing_is_lost_where_all_is_taken(collector: Collector) -> None:
    queue = SpanQueue(collector, "c", gives_up=True)
    make(tracer_into(queue), 1)
    queue.stop(WAIT_S)
    assert (queue.exported, queue.loss) == (1, "")


def test_after_the_end_spans_are_dropped_and_a_second_end_is_nothing(collector: Collector) -> None:
    queue = SpanQueue(collector, "c")
    tracer = tracer_into(queue)
    queue.stop(WAIT_S)
    make(tracer, 2)
    queue.stop(WAIT_S)
    assert (collector.batches, queue.dropped) == ([], 2)


def test_without_a_thread_to_be_had_spans_wait_for_the_next_one(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = SpanQueue(collector, "c", delay_s=0.0)
    tracer = tracer_into(queue)
    start = threading.Thread.start

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    make(tracer, 1)
    assert queue.queued == 1
    monkeypatch.setattr(threading.Thread, "start", start)
    make(tracer, 1)
    queue.stop(WAIT_S)
    assert queue.exported == 2
