"""An election of real controllers as a collector has it: who voted how and why, what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.topics.messages import NewTopic
from quorate.telemetry.trace_ids import trace_id_of, trace_id_text
from tests.integration.otlp import Received, collecting
from tests.integration.quorum import STEADY, Quorum

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.otlp import Collector

RAFT = "quorate.raft.v1.Raft/"
CLIENT, SERVER = 3, 2
# What a voter does, below what the winner asked of it.
VOTED = [
    *("kraft.quorum_state.persist", RAFT + "Vote", RAFT + "Vote"),
    *("kraft.election.vote", "kraft.election.round", "kraft.election"),
]


class Trace:
    """The spans of one trace, by what they are children of."""

    def __init__(self, spans: list[Received]) -> None:
        self.spans = spans
        self._by_id = {span.span_id: span for span in spans}

    def named(
        self, name: str, node_id: int | None = None, kind: int | None = None
    ) -> list[Received]:
        return [
            span
            for span in self.spans
            if span.operation == name
            and (node_id is None or node_of(span) == node_id)
            and (kind is None or span.kind == kind)
        ]

    def path(self, span: Received) -> list[str]:
        """The names from the span up to its root, as far as they have come."""
        names = [span.operation]
        while span.parent_id in self._by_id:
            span = self._by_id[span.parent_id]
            names.append(span.operation)
        return names


def node_of(span: Received) -> int:
    return int(span.instance.partition("-")[0])


def events(span: Received) -> list[str]:
    return [event.name for event in span.span.events]


def traced(collector: Collector) -> dict[str, str]:
    return STEADY | {"tracing.otlp.endpoint": collector.address}


async def epoch_trace(collector: Collector, quorum: Quorum, epoch: int) -> Trace:
    """The trace of an epoch, once it is known to be established."""
    trace_id = trace_id_text(trace_id_of(quorum.plan.cluster_id, epoch))
    wanted = {"kraft.election", "kraft.leader.establish"}

    def is_there() -> bool:
        trace = Trace(collector.of_trace(trace_id))
        paths = [trace.path(span) for span in trace.named("kraft.quorum_state.persist")]
        return wanted <= {span.operation for span in trace.spans} and VOTED in paths

    await collector.until(f"the trace of epoch {epoch}", is_there)
    return Trace(collector.of_trace(trace_id))


async def test_the_killing_of_a_leader_is_a_trace_of_who_voted_how_and_what_the_winner_did(
    tmp_path: Path,
) -> None:
    async with collecting() as collector, Quorum(tmp_path, traced(collector)) as quorum:
        before = await quorum.leader()
        assert before.leader.leader_id is not None
        await quorum.kill(before.leader.leader_id)
        after = await quorum.leader(above_epoch=before.leader.epoch)
        winner, epoch = after.leader.leader_id, after.leader.epoch
        assert winner is not None
        trace = await epoch_trace(collector, quorum, epoch)
        (election,) = [
            span
            for span in trace.named("kraft.election.round", winner)
            if span.attributes["kraft.election.outcome"] == "won"
        ]
        (root,) = trace.named("kraft.election")
        assert (root.parent_id, root.attributes["kraft.leader.id"]) == ("", winner)
        assert {span.parent_id for span in trace.named("kraft.election.round")} == {root.span_id}
        why = root.attributes["kraft.election.trigger"]
        old = root.attributes["kraft.leader.previous_id"]
        assert root.name == f"node {winner} won epoch {epoch} from node {old} ({why})"
        assert election.attributes["kraft.epoch"] == epoch
        assert election.attributes["kraft.election.trigger"] in (
            "fetch_timeout",
            "leader_process_gone",
            "election_timeout",
        )
        # A long election is reported in parts, of which the last one was won.
        parts = {span.span_id for span in trace.named("kraft.election.round", winner)}
        before_it = trace.named("kraft.election.pre_vote", winner)
        assert any(span.parent_id in parts for span in before_it)
        own = [span for span in trace.spans if span.parent_id == election.span_id]
        (votes,) = [span for span in own if span.operation == "kraft.election.vote"]
        assert "vote.received" in events(votes)
        (establish,) = trace.named("kraft.leader.establish", winner)
        assert establish.parent_id == root.span_id
        assert events(establish) == ["leader_change.appended", "high_watermark.established"]
        # A leader continues to look for the voter that was killed, which is not reported each time.
        begun = [span for span in collector.spans if span.operation == RAFT + "BeginQuorumEpoch"]
        assert begun
        assert all(span.parent_id for span in begun)
        # The other voter's part of it, below what the winner asked.
        persisted = [
            span
            for span in trace.named("kraft.quorum_state.persist")
            if node_of(span) != winner and span.attributes["kraft.epoch"] == epoch
        ]
        assert VOTED in [trace.path(span) for span in persisted]
        voted = trace.named(RAFT + "Vote", kind=SERVER)
        granted = [s for s in voted if s.attributes["rpc.response.status_code"] == "OK"]
        assert any(span.attributes["kraft.vote.granted"] for span in granted)
        for span in granted:
            refused = not span.attributes["kraft.vote.granted"]
            assert refused == ("kraft.vote.reject_reason" in span.attributes)


async def test_a_leader_that_stops_is_the_trigger_of_the_election_that_follows(
    tmp_path: Path,
) -> None:
    async with collecting() as collector, Quorum(tmp_path, traced(collector)) as quorum:
        before = await quorum.leader()
        leader_id = before.leader.leader_id
        assert leader_id is not None
        await quorum.stop(leader_id)
        await quorum.leader(above_epoch=before.leader.epoch)

        def triggers() -> set[str]:
            return {
                link.span_id.hex()
                for span in collector.spans
                if span.attributes.get("kraft.election.trigger") == "end_quorum_epoch"
                for link in span.span.links
                if link.attributes[0].value.string_value == "trigger"
            }

        def told() -> list[Received]:
            return [
                span
                for span in collector.spans
                if span.operation == RAFT + "EndQuorumEpoch" and span.kind == SERVER
            ]

        def resigned() -> list[Received]:
            return [
                span
                for span in collector.spans
                if span.operation == "kraft.resign" and node_of(span) == leader_id
            ]

        await collector.until(
            "an election that a stop triggers",
            lambda: bool(resigned() and triggers() & {span.span_id for span in told()}),
        )
        (resign,) = resigned()
        assert resign.attributes["kraft.resign.reason"] == "shutdown"
        assert {span.trace_id for span in told()} == {resign.trace_id}


async def test_a_voter_that_is_removed_and_added_is_traced_to_the_commits(tmp_path: Path) -> None:
    async with collecting() as collector, Quorum(tmp_path, traced(collector)) as quorum:
        await quorum.register_brokers()
        await quorum.create(NewTopic("a", 1, 1))
        leader_id = await quorum.leader_id()
        other = next(node_id for node_id in quorum.nodes if node_id != leader_id)
        await quorum.cli("metadata-quorum", "remove-controller", "--controller-id", str(other))
        await quorum.cli("metadata-quorum", "add-controller", "--controller-id", str(other))

        def changes() -> list[Received]:
            return [span for span in collector.spans if span.operation == "kraft.voter_change"]

        def calls(change: Received) -> list[Received]:
            return [span for span in collector.spans if span.span_id == change.parent_id]

        await collector.until("both changes", lambda: len(changes()) == 2)
        # A call ends after what it has brought about.
        await collector.until("their calls", lambda: all(calls(change) for change in changes()))
        removed, added = changes()
        assert events(removed) == ["appended", "committed"]
        assert events(added) == ["caught_up", "appended", "committed"]
        for change, kind in ((removed, "remove"), (added, "add")):
            assert change.attributes["kraft.voter_change.type"] == kind
            assert change.attributes["kraft.voter.id"] == other
            assert node_of(change) == leader_id
            (call,) = calls(change)
            assert call.kind == SERVER


async def test_lines_of_an_election_have_the_id_of_its_trace(tmp_path: Path) -> None:
    async with collecting() as collector, Quorum(tmp_path, traced(collector)) as quorum:
        described = await quorum.leader()
        leader_id = described.leader.leader_id
        assert leader_id is not None
        trace_id = trace_id_text(trace_id_of(quorum.plan.cluster_id, described.leader.epoch))

        async def has_said() -> bool:
            lines = quorum.nodes[leader_id].output_path.read_text(encoding="utf-8").splitlines()
            won = [line for line in lines if "candidate becomes leader" in line]
            return any(f"trace_id={trace_id}" in line for line in won)

        await quorum.eventually("the line of the election has its trace", has_said)
