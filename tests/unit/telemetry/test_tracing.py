"""Tracing as the rest of the program meets it: off, on, and without OpenTelemetry until then."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from quorate.settings.tracing import TracingSettings
from quorate.telemetry import tracing
from tests.recorded_spans import attributes_of, recorded

LAZY = """
import sys
import quorate.admin.service, quorate.autojoin.service, quorate.cli.up
import quorate.cli.metadata_quorum_changes, quorate.server.service
from quorate.rpc.channels import open_channel, server_spans
from quorate.telemetry import tracing
tracing.start(None, "controller-1")
assert server_spans() == ()
with tracing.span("a"), tracing.root("b", {}):
    tracing.event("c")
    tracing.annotate({"d": 1})
    tracing.failed("e")
assert tracing.ids() is None and tracing.current() is None
tracing.flush()
tracing.stop()
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_a_process_without_tracing_loads_nothing_of_opentelemetry() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_spans_of_what_is_done_inside_one_another_are_one_trace() -> None:
    with recorded() as found:
        with tracing.root("outer", {"n": 1}):
            outer = tracing.ids()
            tracing.event("now", {"why": "because"})
            with tracing.span("inner"):
                tracing.annotate({"found": True})
                inner = tracing.ids()
        assert tracing.ids() is None
        assert outer is not None
        assert inner is not None
        assert outer[0] == inner[0] != outer[1]
        span, parent = found.one("inner"), found.one("outer")
        assert span.parent is not None
        assert (span.parent.span_id, parent.parent) == (parent.context.span_id, None)
        assert attributes_of(span) == {"found": True}
        assert [event.name for event in parent.events] == ["now"]


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_command_is_a_child_of_the_span_that_its_caller_names() -> None:
    with recorded() as found:
        caller = {"TRACEPARENT": PARENT, "TRACESTATE": "vendor=1"}
        with tracing.command("child", caller), tracing.span("inner"):
            pass
        assert tracing.ids() is None
        child, inner = found.one("child"), found.one("inner")
        assert child.parent is not None
        assert f"{child.parent.trace_id:032x}" == PARENT[3:35]
        assert f"{child.parent.span_id:016x}" == PARENT[36:52]
        assert child.context.trace_state.to_header() == "vendor=1"
        assert inner.context.trace_id == child.context.trace_id
        with tracing.command("not sampled", {"TRACEPARENT": f"{PARENT[:-2]}00"}):
            pass
        assert "not sampled" not in [span.name for span in found.spans]


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", PARENT[:-1], PARENT.replace("0af7", "0AF7 "), "00-" + "0" * 50, "\udcff"],
)
def test_a_parent_that_cannot_be_read_does_no_harm(text: str) -> None:
    with recorded() as found:
        with tracing.command("root", {"TRACEPARENT": text, "TRACESTATE": f"a=b,{text}=="}):
            pass
        assert found.one("root").parent is None


def test_what_fails_is_an_error_of_its_span() -> None:
    with recorded() as found:
        with pytest.raises(ValueError, match="bad"), tracing.span("raised"):
            raise ValueError("bad")
        with tracing.span("told"):
            tracing.failed("refused")
        assert found.one("raised").status.description == "ValueError: bad"
        assert found.one("raised").events == ()
        assert found.one("told").status.description == "refused"


def test_a_root_is_a_child_of_nobody() -> None:
    with recorded() as found, tracing.span("around"):
        with tracing.root("root", {}):
            pass
        assert found.one("root").parent is None


def test_numbers_are_there_with_and_without_tracing() -> None:
    names = {"spans_exported_total", "spans_dropped_total", "spans_queued"}
    assert set(tracing.numbers()) == names
    tracing.start(TracingSettings(endpoint="http://127.0.0.1:1"), "test")
    try:
        assert set(tracing.numbers()) == names
        assert tracing.numbers()["spans_dropped_total"] == 0
    finally:
        tracing.stop(0.0)


def test_a_variable_that_opentelemetry_cannot_read_is_no_reason_to_stay_down(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")
    tracing.start(TracingSettings(endpoint="http://127.0.0.1:1"), "test")
    assert tracing.active() is None
    assert "nothing is traced: ValueError" in caplog.text


def test_what_opentelemetry_cannot_read_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization Bearer s3cret")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "password s3cret")
    level = logging.getLogger("opentelemetry").level
    tracing.start(TracingSettings(endpoint="http://127.0.0.1:1"), "test")
    try:
        assert tracing.active() is not None
    finally:
        tracing.stop(0.0)
    assert caplog.text == ""
    assert logging.getLogger("opentelemetry").level == level


def test_a_root_links_to_another_and_ends_by_the_clock_that_it_is_given() -> None:
    with recorded() as found:
        with tracing.root("first", {}) as first:
            pass
        links = {"previous": first, "cause": None}
        with tracing.root("next", {}, links=links, start_ns=5, now_ns=lambda: 8):
            pass
        span = found.one("next")
        (link,) = span.links
        assert (link.context, link.attributes) == (first, {"kraft.link": "previous"})
        assert (span.start_time, span.end_time) == (5, 8)


def test_what_is_over_is_a_child_with_its_own_times() -> None:
    with recorded() as found:
        with tracing.root("root", {}) as root:
            tracing.record("done", 5, 8)
            tracing.record("refused", 8, 9, "no room")
        assert root is not None
        done, refused = found.one("done"), found.one("refused")
        assert done.parent is not None
        assert done.parent.span_id == root.span_id
        assert (done.start_time, done.end_time) == (5, 8)
        assert done.status.is_unset
        assert refused.status.description == "no room"
        assert found.one("root").status.is_unset


def test_a_root_that_raises_is_an_error_and_ends() -> None:
    with recorded() as found:
        with pytest.raises(ValueError, match="bad"), tracing.root("root", {}, now_ns=lambda: 8):
            raise ValueError("bad")
        assert found.one("root").status.description == "ValueError: bad"


def test_without_tracing_a_root_has_nothing_to_link_to() -> None:
    with tracing.root("root", {}, links={"previous": None}) as root:
        tracing.record("done", 5, 8)
    assert root is None
