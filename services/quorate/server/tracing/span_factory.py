"""Starts the spans of a replica under the right parent and trace id.

The current span does not help while the driver works: it belongs to the call that happened to wake
the loop. These modules are loaded only if tracing is on (telemetry/tracing.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from quorate.raft.api import LogFlushed, RequestReceived
from quorate.raft.messages import FetchRequest
from quorate.raft.roles import Leader
from quorate.records.ids import ReplicaKey, format_uuid
from quorate.telemetry.trace_ids import root_id_of, trace_id_of
from quorate.telemetry.tracer import links_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

    from quorate.raft.api import Event, RaftConfig
    from quorate.raft.replica import Replica
    from quorate.records.ids import NodeId, Offset
    from quorate.telemetry.tracer import Attributes, Tracing


def flush_told_by(event: Event | None, replica: Replica) -> tuple[NodeId, Offset] | None:
    """Return a voter and its flushed end, if the event may have reported them to the leader.

    The event is a flush of the leader's own, or a Fetch, and has been stepped: the leader may have
    rejected it. The end is the one that the leader counts for a commit.
    """
    role = replica.role
    if not isinstance(role, Leader):
        return None
    match event:
        case LogFlushed():
            node_id = replica.config.node_id
        case RequestReceived(request=FetchRequest(replica=ReplicaKey(node_id=node_id))):
            pass
        case _:
            return None
    voter = replica.voters.by_id(node_id)
    return None if voter is None else (node_id, replica.commit_state.flushed_end_of(role, voter))


def record_flush(
    tracing: Tracing, kind: str, parent: Span, node_id: NodeId, since_ns: int, until_ns: int
) -> None:
    """Record a child span for a voter's flush: from the append until its report to the leader."""
    context = set_span_in_context(parent, Context())
    span = tracing.start(kind, {"kraft.voter.id": node_id}, parent=context, start_ns=since_ns)
    span.update_name(f"flush by {node_id}")
    span.end(until_ns)


def context_of(span: SpanContext | None) -> Context:
    """Return a context in which that span is current; an empty one for None."""
    return Context() if span is None else set_span_in_context(NonRecordingSpan(span), Context())


def end_failed(span: Span, words: str) -> None:
    """End a span as failed, with `words` as the description."""
    span.set_status(StatusCode.ERROR, words)
    span.end()


class SpanFactory:
    """Starts the spans of one replica."""

    def __init__(self, tracing: Tracing, config: RaftConfig) -> None:
        self.tracing = tracing
        self._cluster_id = config.cluster_id
        self.node_id = config.node_id
        namespace = tracing.namespace
        own: dict[str, str | int] = {
            "kraft.cluster.id": config.cluster_id,
            "kraft.node.id": config.node_id,
            "kraft.directory.id": format_uuid(config.directory_id),
        }
        if namespace:
            own["k8s.namespace.name"] = namespace
        self._own: Attributes = own

    def start_child(
        self,
        parent: SpanContext | None,
        name: str,
        attributes: Attributes,
        links: Mapping[str, SpanContext | None] | None = None,
    ) -> Span:
        """Start a child span; without a parent, the root of a trace.

        `links` maps the purposes of links to the linked spans.
        """
        made = links_to(links or {})
        if parent is None:
            return self.tracing.start_root(name, {**self._own, **attributes}, links=made)
        return self.tracing.start(name, attributes, parent=context_of(parent), links=made)

    def round(
        self, epoch: int, attributes: Attributes, links: Mapping[str, SpanContext | None]
    ) -> Span:
        """Start the span of an election round, in the trace of the epoch that it seeks.

        Its parent is the root of that trace, which only the winner creates.
        """
        root = self.root_of(epoch)
        told = {**self._own, "kraft.epoch": epoch, **attributes}
        return self.start_child(root, "kraft.election.round", told, links)

    def root_of(self, epoch: int) -> SpanContext:
        """Return the root of the trace of an epoch, created or not."""
        return SpanContext(
            trace_id_of(self._cluster_id, epoch),
            root_id_of(self._cluster_id, epoch),
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )

    def election(self, epoch: int, attributes: Attributes, since_ns: int) -> Span:
        """Start the root of the trace of an epoch, at the winner, from that wall-clock time on."""
        return self.tracing.start_root(
            "kraft.election",
            {**self._own, "kraft.epoch": epoch, **attributes},
            ids=(trace_id_of(self._cluster_id, epoch), root_id_of(self._cluster_id, epoch)),
            start_ns=since_ns,
        )
