"""Components of the tracer: given ids, headers, contexts, and the resource."""

from __future__ import annotations

import pytest
from opentelemetry.trace import get_current_span

from quorate.telemetry import tracing
from quorate.telemetry.trace_ids import root_id_of, trace_id_of
from quorate.telemetry.tracer import LIMITS, Tracing, resource_of
from tests.recorded_spans import attributes_of, recorded


def active() -> Tracing:
    tracing_now = tracing.active()
    assert tracing_now is not None
    return tracing_now


def test_a_trace_whose_id_is_told_has_that_id_and_the_next_one_has_not() -> None:
    told = trace_id_of("cluster", 7), root_id_of("cluster", 7)
    with recorded() as found:
        active().start_root("a", {}, ids=told).end()
        active().start_root("a", {}).end()
        first, second = found.named("a")
        assert (first.context.trace_id, first.context.span_id) == told
        assert second.context.trace_id not in (0, told[0])
        assert second.context.span_id not in (0, told[1])
        assert first.parent is None


def test_a_span_has_its_kind_whatever_it_is_called_in_the_end() -> None:
    with recorded() as found:
        renamed = active().start_root("kraft.resign", {"x": 1})
        renamed.update_name("node 1 resigned")
        renamed.end()
        active().start_root("a command", {}).end()
        first, second = found.spans
    assert first.name == "node 1 resigned"
    assert dict(first.attributes or {}) == {"kraft.span": "kraft.resign", "x": 1}
    assert not second.attributes


def test_the_namespace_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded():
        assert active().namespace == ""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.namespace.name=kafka,k8s.pod.name=q-0")
    with recorded():
        assert active().namespace == "kafka"


def test_a_span_may_have_begun_before() -> None:
    with recorded() as found:
        active().start_root("a", {}, start_ns=1_000_000).end()
        assert found.one("a").start_time == 1_000_000


def test_headers_carry_a_span_from_process_to_process() -> None:
    with recorded() as found:
        with tracing.root("caller", {}):
            headers = active().inject()
        assert set(headers) == {"traceparent"}
        parent = active().extract(headers)
        assert parent is not None
        active().start("callee", {}, parent=parent).end()
        caller, callee = found.one("caller"), found.one("callee")
        assert callee.parent is not None
        assert callee.parent.span_id == caller.context.span_id
        assert callee.parent.is_remote


@pytest.mark.parametrize(
    "headers",
    [{}, {"traceparent": "nonsense"}, {"traceparent": f"00-{'0' * 32}-{'0' * 16}-01"}],
)
def test_headers_that_say_nothing_are_no_parent(headers: dict[str, str]) -> None:
    with recorded():
        assert active().extract(headers) is None


def test_whoever_is_not_recorded_has_nothing_recorded_elsewhere() -> None:
    with recorded() as found:
        parent = active().extract({"traceparent": f"00-{'1' * 32}-{'2' * 16}-00"})
        assert parent is not None
        active().start("a", {}, parent=parent).end()
        assert found.spans == []


def test_what_begins_within_a_context_belongs_to_it_and_without_one_to_nobody() -> None:
    with recorded() as found:
        with tracing.root("cause", {}):
            cause = tracing.current()
        assert cause is not None
        with tracing.root("elsewhere", {}):
            with active().within(cause), tracing.span("caused"):
                pass
            with active().within(None), tracing.span("by nobody"):
                pass
        caused = found.one("caused")
        assert caused.parent is not None
        assert caused.parent.span_id == found.one("cause").context.span_id
        assert found.one("by nobody").parent is None
        assert not get_current_span().get_span_context().is_valid


def test_what_a_span_holds_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    with recorded() as found:
        with tracing.root("a", {f"k{n}": "x" * 5000 for n in range(100)}):
            for _ in range(1000):
                tracing.event("e")
        span = found.one("a")
        assert len(attributes_of(span)) == LIMITS.max_attributes
        assert {len(str(value)) for value in attributes_of(span).values()} == {1024}
        assert len(span.events) == LIMITS.max_events
        assert caplog.records == []


def test_opentelemetrys_variables_come_before_what_the_program_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = resource_of("quorate-controller-1", {"service.instance.id": "1-abc"})
    assert own.attributes["service.name"] == "quorate-controller-1"
    assert own.attributes["service.instance.id"] == "1-abc"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my-quorum")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=q-0,service.instance.id=q-0")
    theirs = resource_of("quorate-controller-1", {"service.instance.id": "1-abc"})
    assert theirs.attributes["service.name"] == "my-quorum"
    assert theirs.attributes["k8s.pod.name"] == "q-0"
    assert theirs.attributes["service.instance.id"] == "q-0"
