"""How the spans of a replica begin: in the trace and below the parent that is meant.

The span that is current while the driver works is no guide: that is of
whichever call happened to wake the loop.
These modules are loaded only if tracing is on (telemetry/tracing.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, StatusCode, set_span_in_context

from quorate.records.ids import format_uuid
from quorate.telemetry.spans import links_to
from quorate.telemetry.trace_ids import trace_id_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span, SpanContext

    from quorate.raft.api import RaftConfig
    from quorate.telemetry.spans import Attributes, Tracing


def context_of(span: SpanContext | None) -> Context:
    """A context in which that span is current, and nothing without one."""
    return Context() if span is None else set_span_in_context(NonRecordingSpan(span), Context())


def end_in_vain(span: Span, words: str) -> None:
    """End it as something that did not come about."""
    span.set_status(StatusCode.ERROR, words)
    span.end()


class SpanMaker:
    """Begins the spans of one replica."""

    def __init__(self, tracing: Tracing, config: RaftConfig) -> None:
        self.tracing = tracing
        self._cluster_id = config.cluster_id
        self._own: Attributes = {
            "kraft.cluster.id": config.cluster_id,
            "kraft.node.id": config.node_id,
            "kraft.directory.id": format_uuid(config.directory_id),
        }

    def below(self, parent: SpanContext | None, name: str, attributes: Attributes) -> Span:
        """A child; without a parent the root of a trace of its own."""
        if parent is None:
            return self.root(name, attributes)
        return self.tracing.start(name, attributes, parent=context_of(parent))

    def root(
        self,
        name: str,
        attributes: Attributes,
        *,
        epoch: int | None = None,
        links: Mapping[str, SpanContext | None] | None = None,
    ) -> Span:
        """The root of a trace: of the one for `epoch`, or of any. `links` by what they are for."""
        return self.tracing.start_root(
            name,
            {**self._own, **attributes},
            trace_id=0 if epoch is None else trace_id_of(self._cluster_id, epoch),
            links=links_to(links or {}),
        )
