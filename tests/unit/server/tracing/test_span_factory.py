"""The trace, the parent and the links of a span."""

from __future__ import annotations

from opentelemetry.trace import StatusCode, get_current_span, set_span_in_context

from quorate.server.tracing.span_factory import SpanFactory, context_of, end_failed
from quorate.telemetry import tracing
from quorate.telemetry.trace_ids import root_id_of, trace_id_of
from tests.recorded_spans import attributes_of, recorded
from tests.unit.raft import cores
from tests.unit.server.watched import links


def maker() -> SpanFactory:
    active = tracing.active()
    assert active is not None
    return SpanFactory(active, cores.config(1))


def test_the_trace_of_an_epoch_has_the_id_that_can_be_told_beforehand() -> None:
    with recorded() as spans:
        maker().round(7, {}, {}).end()
        maker().election(7, {}, 1_000_000).end()
        maker().start_child(None, "b", {}).end()
    election, part = spans.one("kraft.election"), spans.one("kraft.election.round")
    assert election.context.trace_id == part.context.trace_id == trace_id_of(cores.CLUSTER, 7)
    assert election.context.span_id == root_id_of(cores.CLUSTER, 7)
    assert (election.parent, election.start_time) == (None, 1_000_000)
    # It begins before the span that it is a child of.
    assert part.parent is not None
    assert part.parent.span_id == election.context.span_id
    other = spans.one("b").context
    assert other.trace_id != election.context.trace_id
    assert other.span_id != election.context.span_id


def test_a_root_tells_whose_it_is_and_a_child_does_not_repeat_it() -> None:
    with recorded() as spans:
        root = maker().start_child(None, "root", {"x": 1})
        maker().start_child(root.get_span_context(), "child", {"y": 2}).end()
        maker().start_child(None, "orphan", {}).end()
        root.end()
    ids = {
        "kraft.cluster.id": "cluster",
        "kraft.node.id": 1,
        "kraft.directory.id": "AQEBAQEBAQEBAQEBAQEBAQ",
    }
    assert attributes_of(spans.one("root")) == ids | {"x": 1}
    assert attributes_of(spans.one("child")) == {"y": 2}
    assert attributes_of(spans.one("orphan")) == ids
    parent = spans.one("child").parent
    assert parent is not None
    assert parent.span_id == spans.one("root").context.span_id


def test_what_is_current_is_nobodys_parent() -> None:
    with recorded() as spans:
        making = maker()
        passing = making.start_child(None, "passing", {})
        with making.tracing.within(set_span_in_context(passing)):
            making.start_child(None, "root", {}).end()
            with making.tracing.within(context_of(None)):
                assert not get_current_span().get_span_context().is_valid
        passing.end()
    assert spans.one("root").parent is None


def test_links_say_what_they_are_for_and_those_to_nothing_are_left_out() -> None:
    with recorded() as spans:
        first = maker().start_child(None, "first", {})
        first.end()
        to = {"previous": first.get_span_context(), "why": None}
        maker().start_child(None, "next", {}, to).end()
    assert links(spans.one("next"), spans) == {"previous": "first"}


def test_what_did_not_come_about_ends_as_an_error_with_words() -> None:
    with recorded() as spans:
        end_failed(maker().start_child(None, "a", {}), "leadership was lost")
    status = spans.one("a").status
    assert (status.status_code, status.description) == (StatusCode.ERROR, "leadership was lost")
