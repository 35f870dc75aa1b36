"""Tracing facade that does nothing, and imports nothing, unless tracing is enabled.

Tracing is off unless `start` was given settings. OpenTelemetry is not loaded before that, because
it takes memory and time. So code that makes spans calls `active()` first, and imports OpenTelemetry
only if it returns a tracer; the functions here do so themselves.

The current span is part of OpenTelemetry's context, which is a context variable: a task inherits it
when it is created, and so do the calls that it makes (rpc/call_spans.py). Work that serves many
callers, such as the driver's, therefore names the caller's context for each call:

    tracing = active()
    with nullcontext() if tracing is None else tracing.within(parent):
        transport.send(effect)

In a server's handler the span of its call is current; keep `current()` of it for later.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.process.silenced_logger import silenced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext

    from quorate.settings.tracing import TracingSettings
    from quorate.telemetry.tracer import Attributes, Tracing

log = logging.getLogger(__name__)
# Seconds that a stopping service waits for the collector.
STOP_S: Final = 2.0
# W3C's headers as a program passes them to another one.
_W3C_VARIABLES: Final = ("TRACEPARENT", "TRACESTATE")
_OFF: Final[Mapping[str, float]] = {
    "spans_exported_total": 0.0,
    "spans_dropped_total": 0.0,
    "spans_queued": 0.0,
}
_active: Tracing | None = None


def start(
    settings: TracingSettings | None, service: str, attributes: Attributes | None = None
) -> None:
    """Enable tracing if there are settings. `attributes` tell this process from others.

    `service` is the part of its name after the prefix of the settings: `controller-1`.

    If OpenTelemetry does not start, for instance because of a variable, tracing stays off.
    """
    global _active
    if settings is None:
        return
    try:
        # It logs unreadable variables, which may hold a password. The settings have reported those
        # already (settings/exporter_variables.py).
        with silenced("opentelemetry"):
            from quorate.telemetry.tracer import Tracing

            _active = Tracing.to_collector(settings, settings.name_of(service), attributes or {})
    except Exception as error:
        # For any error: a controller is needed more than its traces.
        log.warning("nothing is traced: %s: %s", type(error).__name__, error)


def use(tracing: Tracing | None) -> None:
    """Use this tracer, or none; for callers that inspect the spans themselves."""
    global _active
    _active = tracing


def stop(limit_s: float = STOP_S) -> str:
    """Send the remaining spans within the time limit; blocks the caller.

    Returns the message about lost spans, which a service has in its log already; else empty.
    """
    global _active
    ending, _active = _active, None
    return "" if ending is None else ending.stop(limit_s)


def active() -> Tracing | None:
    """The tracer of this process; None while tracing is off."""
    return _active


def flush() -> None:
    """Request that all ended spans are sent now: after a role change the process may die soon."""
    if _active is not None:
        _active.flush()


def numbers() -> Mapping[str, float]:
    """Values for a scrape."""
    return _OFF if _active is None else _active.metrics()


def current() -> Context | None:
    """The current context, to be the parent of later spans."""
    return None if _active is None else _active.current()


@contextmanager
def span(name: str, attributes: Attributes | None = None) -> Iterator[None]:
    """Enclose the block in a child of the current span; an exception is its error."""
    if _active is None:
        yield
        return
    with _active.span(name, attributes or {}):
        yield


@contextmanager
def command(name: str, environment: Mapping[str, str]) -> Iterator[None]:
    """The span of a command: a child of the span in TRACEPARENT, else the root of a new trace."""
    if _active is None:
        yield
        return
    headers = {key.lower(): environment.get(key, "") for key in _W3C_VARIABLES}
    with _active.within(_active.extract(headers)), _active.span(name, {}):
        yield


@contextmanager
def root(
    name: str,
    attributes: Attributes,
    *,
    links: Mapping[str, SpanContext | None] | None = None,
    start_ns: int | None = None,
    now_ns: Callable[[], int] | None = None,
) -> Iterator[SpanContext | None]:
    """A trace that starts here, whatever is current, or that started at an earlier wall-clock time.

    `links` are by their purpose; `now_ns` returns the time of its end. The block gets the context
    for links to it; None while tracing is off.
    """
    if _active is None:
        yield None
        return
    with _active.root(name, attributes, links=links, start_ns=start_ns, now_ns=now_ns) as begun:
        yield begun.get_span_context()


def record(name: str, start_ns: int, end_ns: int, error: str = "") -> None:
    """Add a completed child of the current span; `error` is empty after success."""
    if _active is not None:
        _active.record(name, start_ns, end_ns, error)


def annotate(attributes: Attributes) -> None:
    """Add attributes to the current span."""
    if _active is not None:
        _active.annotate(attributes)


def failed(words: str) -> None:
    """Set the error of the current span."""
    if _active is not None:
        _active.set_error(words)


def event(name: str, attributes: Attributes | None = None) -> None:
    """Add an event to the current span."""
    if _active is not None:
        _active.event(name, attributes or {})


def place() -> str:
    """Text for the name of a trace that identifies the quorum."""
    return "" if _active is None else _active.place


def ids() -> tuple[str, str] | None:
    """Trace id and span id of the current span, as logs write them; None outside of any."""
    return None if _active is None else _active.ids()
