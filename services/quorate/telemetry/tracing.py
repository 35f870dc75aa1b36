"""Whether this process makes spans, and the little that code needs that makes them in passing.

Off unless `start` was given settings. Nothing of OpenTelemetry is loaded before that: it takes
memory, and a while. So code that makes spans asks `active()` first, and imports OpenTelemetry
behind it; the functions here do so by themselves, and do nothing where tracing is off.

The span that is current travels in OpenTelemetry's context, which is a context variable: a task
that is created inherits it, and so do the calls that it makes (rpc/call_spans.py). Work that serves
many callers, such as the driver's, therefore says of each call whose it is:

    tracing = active()
    with nullcontext() if tracing is None else tracing.within(parent):
        transport.send(effect)

A server's handler runs with the span of its call as the current one; `current()` is what to keep of
it for later.
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
# What the end of a service waits for the collector.
STOP_S: Final = 2.0
# W3C's headers as a program hands them to another one.
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
    """Trace from now on, if that is asked for. `attributes` tell this process from others.

    `service` is what its name has behind the prefix of the settings: `controller-1`.

    Where OpenTelemetry does not start, for a variable that it cannot read, nothing is traced.
    """
    global _active
    if settings is None:
        return
    try:
        # It logs what it cannot read of a variable, which may be a password. The settings have said
        # what is to be said of those (settings/exporter_variables.py).
        with silenced("opentelemetry"):
            from quorate.telemetry.tracer import Tracing

            _active = Tracing.to_collector(settings, settings.name_of(service), attributes or {})
    except Exception as error:
        # Whatever it is, a controller is needed more than its traces.
        log.warning("nothing is traced: %s: %s", type(error).__name__, error)


def use(tracing: Tracing | None) -> None:
    """Trace with this one, or not at all; it is for callers that look at the spans themselves."""
    global _active
    _active = tracing


def stop(limit_s: float = STOP_S) -> str:
    """Send what is left, for as long at most; the caller stands still meanwhile.

    The sentence for spans that were lost on their way, which a service has in its log; else empty.
    """
    global _active
    ending, _active = _active, None
    return "" if ending is None else ending.stop(limit_s)


def active() -> Tracing | None:
    """What makes the spans of this process; None where tracing is off."""
    return _active


def flush() -> None:
    """Ask for what there is to be sent now: a process that changes its role may be about to die."""
    if _active is not None:
        _active.flush()


def numbers() -> Mapping[str, float]:
    """For a scrape."""
    return _OFF if _active is None else _active.numbers()


def current() -> Context | None:
    """The context of whatever is going on here, to be its parent later."""
    return None if _active is None else _active.current()


@contextmanager
def span(name: str, attributes: Attributes | None = None) -> Iterator[None]:
    """A span for what is done inside, a child of the current one; an exception is its error."""
    if _active is None:
        yield
        return
    with _active.span(name, attributes or {}):
        yield


@contextmanager
def command(name: str, environment: Mapping[str, str]) -> Iterator[None]:
    """The span of a command: a child of the one that TRACEPARENT names, else a trace of its own."""
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
    """A trace that begins here, whatever is current, or that began at a wall-clock time before.

    `links` are by what they are for, `now_ns` tells the time of its end. What is yielded is for
    links to it; None where tracing is off.
    """
    if _active is None:
        yield None
        return
    with _active.root(name, attributes, links=links, start_ns=start_ns, now_ns=now_ns) as begun:
        yield begun.get_span_context()


def record(name: str, start_ns: int, end_ns: int, error: str = "") -> None:
    """A child of the current span for what is over; `error` is empty if it came about."""
    if _active is not None:
        _active.record(name, start_ns, end_ns, error)


def annotate(attributes: Attributes) -> None:
    """Add to the current span."""
    if _active is not None:
        _active.annotate(attributes)


def failed(words: str) -> None:
    """The deed that the current span stands for did not come about."""
    if _active is not None:
        _active.failed(words)


def event(name: str, attributes: Attributes | None = None) -> None:
    """Something happens within the current span, now."""
    if _active is not None:
        _active.event(name, attributes or {})


def place() -> str:
    """Words for the name of a trace, which say of which quorum it is."""
    return "" if _active is None else _active.place


def ids() -> tuple[str, str] | None:
    """Trace id and span id of the current span, as logs write them; None outside of any."""
    return None if _active is None else _active.ids()
