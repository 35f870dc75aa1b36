"""Jaeger tells why an election happened and who voted how, and how a voter was added."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import Operator
from tests.e2e.traces import Jaeger

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release
    from tests.e2e.nodes import Nodes
    from tests.e2e.traces import Span

log = logging.getLogger(__name__)
ELECTED_WITHIN_S = 120.0
ARRIVES_WITHIN_S = 300.0


@pytest.fixture
def traced(cluster: Cluster, request: pytest.FixtureRequest) -> Release:
    """Three controllers with an operator, at rest, that send spans."""
    endpoint = request.config.getoption("--otlp")
    values = ("tracing.enabled=true", f"tracing.endpoint={endpoint}")
    release = cluster.release("q", *values)
    release.install()
    Operator(release).await_rest(0, 1, 2)
    return release


def await_election(release: Release, jaeger: Jaeger) -> list[Span]:
    """The trace of the epoch that is now, once its leader has committed."""
    status = release.status()
    words = ("--cluster-id", status["ClusterId"], "--epoch", str(status["LeaderEpoch"]))
    trace_id = release.execute("quorate", "trace-id", *words).split()[0]
    spans: list[Span] = []

    def look() -> bool | str:
        spans[:] = jaeger.trace(trace_id)
        is_whole = any(span.operation == "kraft.election" for span in spans)
        return is_whole or f"{trace_id} has {sorted(span.name for span in spans)}"

    wait_for("the trace of an election", ARRIVES_WITHIN_S, look)
    log.info(f"epoch {status['LeaderEpoch']}: trace {trace_id} of {len(spans)} spans")
    return spans


def test_an_election_is_told(traced: Release, nodes: Nodes, jaeger: str) -> None:
    killed = traced.leader()
    with Committing(traced) as committing:
        nodes.kill(traced, killed)
        traced.await_other_leader(killed, ELECTED_WITHIN_S)
        committing.await_more()
        spans = await_election(traced, Jaeger(jaeger))

        # A leader asked to transfer leadership notifies the others, whose spans then refer to that.
        Operator(traced).await_rest(0, 1, 2)
        leader = traced.leader()
        traced.let_lead(next(node for node in range(3) if node != leader))
        handed_over = await_election(traced, Jaeger(jaeger))
    committing.judge()

    winners = [span for span in spans if span.tags.get("kraft.election.outcome") == "won"]
    assert len(winners) == 1
    winner = winners[0]
    (root,) = [span for span in spans if span.operation == "kraft.election"]
    leader_id, epoch = root.tags["kraft.leader.id"], root.tags["kraft.epoch"]
    assert root.tags["kraft.leader.previous_id"] == killed
    why, place = root.tags["kraft.election.trigger"], f"in namespace {traced.cluster.namespace}"
    won = f"node {leader_id} won epoch {epoch} from node {killed}"
    assert root.name == f"{won} ({why}) {place}"
    assert (root.service, root.references) == (winner.service, ())
    assert winner.service == f"quorate-controller-{winner.tags['kraft.node.id']}"
    assert len({span.pod for span in spans}) >= 2
    answers = [
        span
        for span in spans
        if span.operation == "quorate.raft.v1.Raft/Vote" and span.tags["span.kind"] == "server"
    ]
    for answer in answers:
        has_reason = "kraft.vote.reject_reason" in answer.tags
        assert answer.tags["kraft.vote.granted"] is not has_reason, answer
    assert [a for a in answers if a.tags["kraft.vote.granted"] and a.pod != winner.pod]
    first = next(span for span in spans if span.operation == "kraft.leader.establish")
    assert first.pod == winner.pod
    assert "high_watermark.established" in first.events

    after = next(s for s in handed_over if s.tags.get("kraft.election.outcome") == "won")
    assert "FOLLOWS_FROM" in after.references, after


def test_a_voter_that_is_added_by_a_scale_is_told(traced: Release, jaeger: str) -> None:
    cluster = traced.cluster
    cluster.kubectl("scale", f"statefulset/{traced.fullname}", "--replicas=4")
    Operator(traced).await_rest(0, 1, 2, 3)
    found: list[list[Span]] = []

    def look() -> bool | str:
        tags = {
            "kraft.span": "kraft.operator.reconcile",
            "kraft.operator.action": "AddVoter",
            "kraft.node.id": "3",
        }
        found[:] = [
            trace
            for trace in Jaeger(jaeger).traces("quorate-autojoin", tags)
            if any(span.process.get("k8s.namespace.name") == cluster.namespace for span in trace)
            and any("committed" in span.events for span in trace)
        ]
        return bool(found) or "no such trace"

    wait_for("the trace of the new voter", ARRIVES_WITHIN_S, look)
    spans = found[0]
    log.info(f"the new voter: {len(spans)} spans of {sorted({s.service for s in spans})}")
    act = next(span for span in spans if span.operation == "kraft.operator.reconcile")
    assert act.name == f"add voter 3 in namespace {cluster.namespace}"
    own = {span.name for span in spans if span.service == act.service}
    assert own >= {"look at StatefulSet", "ask pods", "describe quorum", "post Event"}
    change = next(span for span in spans if span.operation == "kraft.voter_change")
    # One name for each process: the operator, a sidecar, the leader and the new voter.
    by_kind = {re.sub(r"-\d+$", "", span.service) for span in spans}
    assert by_kind == {"quorate-autojoin", "quorate-admin", "quorate-controller"}
    assert change.service == f"quorate-controller-{change.process['kraft.node.id']}"
    assert [
        event for event in change.events if event in ("caught_up", "appended", "committed")
    ] == [
        *("caught_up", "appended", "committed"),
    ]
    assert change.tags["kraft.voter.id"] == 3
