"""Elections as spans: each beginning, vote, end and consequence, made of a real core's steps."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import opentelemetry.sdk.trace as sdk_trace
import pytest
from opentelemetry.trace import StatusCode

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.roles import Prospective, Resigned, Unattached
from quorate.raft.trace_events import RoleChangeCause
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId
from quorate.telemetry.trace_ids import root_id_of, trace_id_of
from tests.recorded_spans import attributes_of, recorded
from tests.unit.raft import cores
from tests.unit.server.watched import Watched, begun, events, links, parent_of, tree

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from tests.recorded_spans import Recorded

ROUND = "kraft.election.round"
HOUR_MS = 3_600_000


def lasted_ms(span: ReadableSpan) -> float:
    return ((span.end_time or 0) - (span.start_time or 0)) / 1_000_000


def refused(epoch: int, refusal: m.VoteRefusal) -> m.VoteResponse:
    return m.VoteResponse(ErrorCode.NONE, m.LeaderInfo(None, Epoch(epoch)), refusal=refusal)


def outcomes(spans: Recorded) -> list[object]:
    return [attributes_of(span)["kraft.election.outcome"] for span in spans.named(ROUND)]


def test_an_election_that_is_won_is_one_trace_from_the_pre_vote_to_the_first_commit() -> None:
    with recorded() as spans:
        Watched(cores.recovered(1, 2, 3)).elect()
    assert tree(spans) == [
        ("kraft.election", None),
        (ROUND, "kraft.election"),
        ("kraft.election.pre_vote", ROUND),
        ("kraft.election.vote", ROUND),
        ("kraft.quorum_state.persist", "kraft.election.vote"),
        ("kraft.quorum_state.persist", "kraft.election"),
        ("kraft.leader.establish", "kraft.election"),
        ("kraft.leader.flush", "kraft.leader.establish"),
        ("kraft.leader.flush", "kraft.leader.establish"),
    ]
    named = [span.name for span in begun(spans)]
    assert set(named[7:]) == {"flush by 1", "flush by 2"}
    assert named[:7] == [
        "node 1 won epoch 1 (election_timeout)",
        "round: won",
        "pre-vote: 2 of 3",
        "vote: 2 of 3",
        "flush vote",
        "flush leader",
        "commit LeaderChange",
    ]
    election = spans.one("kraft.election")
    assert election.context.span_id == root_id_of(cores.CLUSTER, 1)
    # The trace has the length of its root, from the first question to the first commit.
    assert (election.start_time or 0) <= min(span.start_time or 0 for span in spans.spans)
    assert election.end_time == max(span.end_time or 0 for span in spans.spans)
    assert attributes_of(election) == {
        "kraft.cluster.id": "cluster",
        "kraft.node.id": 1,
        "kraft.directory.id": "AQEBAQEBAQEBAQEBAQEBAQ",
        "kraft.epoch": 1,
        "kraft.leader.id": 1,
        "kraft.election.trigger": "election_timeout",
    }
    assert {span.context.trace_id for span in spans.spans} == {trace_id_of(cores.CLUSTER, 1)}
    assert all(span.status.status_code is StatusCode.UNSET for span in spans.spans)
    assert attributes_of(spans.one(ROUND)) == {
        "kraft.cluster.id": "cluster",
        "kraft.node.id": 1,
        "kraft.directory.id": "AQEBAQEBAQEBAQEBAQEBAQ",
        "kraft.epoch": 1,
        "kraft.election.trigger": "election_timeout",
        "kraft.voters.size": 3,
        "kraft.log.end_offset": 0,
        "kraft.log.last_epoch": 0,
        "kraft.election.outcome": "won",
    }
    assert [name for name, _ in events(spans.one(ROUND))] == ["role.taken"] * 2
    assert [told["to"] for _, told in events(spans.one(ROUND))] == [
        "candidate",
        "leader",
    ]


def test_its_votes_are_events_of_the_phase_that_they_were_asked_in() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        watched.answer(3, refused(0, m.VoteRefusal.LOG_BEHIND))
        watched.answer(2, cores.granted(0))
        watched.answer(3, api.RequestFailure.DISCONNECTED)
        watched.answer(2, cores.granted(1))
    pre_vote, vote = spans.one("kraft.election.pre_vote"), spans.one("kraft.election.vote")
    assert events(pre_vote) == [
        ("vote.received", {"peer": 3, "granted": False, "reason": "log_behind"}),
        ("vote.received", {"peer": 2, "granted": True}),
    ]
    assert events(vote) == [
        ("peer.unreachable", {"peer": 3, "reason": "disconnected"}),
        ("vote.received", {"peer": 2, "granted": True}),
    ]
    counted = {"kraft.votes.needed": 2, "kraft.votes.granted": 2, "kraft.votes.rejected": 1}
    assert attributes_of(pre_vote) == counted
    assert attributes_of(vote) == counted | {"kraft.votes.rejected": 0}


@pytest.mark.parametrize(
    ("failure", "event"),
    [
        (api.RequestFailure.TIMED_OUT, ("peer.unreachable", {"peer": 3, "reason": "timed_out"})),
        (api.RequestFailure.UNREADABLE, ("vote.failed", {"peer": 3, "reason": "unreadable"})),
    ],
)
def test_a_voter_that_is_away_is_told_apart_from_an_answer_that_is_of_no_use(
    failure: api.RequestFailure, event: tuple[str, dict[str, object]]
) -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        watched.answer(3, failure)
        watched.spans.ended()
    pre_vote = spans.one("kraft.election.pre_vote")
    assert events(pre_vote) == [event]
    assert pre_vote.status.is_unset


def test_an_error_for_a_vote_is_its_reason() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        error = ErrorCode.INVALID_VOTER_KEY
        watched.answer(2, m.VoteResponse(error, m.LeaderInfo(None, Epoch(0))))
        watched.spans.ended()
    told = {"peer": 2, "granted": False, "reason": "invalid_voter_key"}
    assert events(spans.one("kraft.election.pre_vote")) == [("vote.received", told)]


def test_what_is_asked_carries_the_span_that_it_is_asked_for() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        assert not watched.carried[2].is_valid
        watched.wake(2000)
        asked = [watched.carried[2]]
        watched.answer(2, cores.granted(0))
        asked.append(watched.carried[2])
        watched.answer(2, cores.granted(1))
        assert isinstance(watched.calls[3][1], m.BeginQuorumEpochRequest)
        asked.append(watched.carried[3])
        watched.spans.ended()
    names = ["kraft.election.pre_vote", "kraft.election.vote", "kraft.leader.establish"]
    assert [told.span_id for told in asked] == [spans.one(name).context.span_id for name in names]


def test_leadership_is_established_by_the_first_high_watermark_above_its_start() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        watched.answer(2, cores.granted(0))
        watched.answer(2, cores.granted(1))
        watched.flush()
        assert not spans.named("kraft.leader.establish")
        watched.ask(cores.fetch(2, 3, 1))
    establish = spans.one("kraft.leader.establish")
    assert attributes_of(establish) == {"kraft.epoch": 1, "kraft.epoch.start_offset": 0}
    assert events(establish) == [
        ("leader_change.appended", {}),
        ("high_watermark.established", {"kraft.high_watermark": 3}),
    ]


def test_a_rejected_pre_vote_ends_a_round_and_the_next_one_links_to_it() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        for voter in (2, 3):
            watched.answer(voter, refused(0, m.VoteRefusal.HAS_LEADER))
        watched.wake_until(Prospective)
        watched.spans.ended()
    first, second = spans.named(ROUND)
    assert outcomes(spans) == ["pre_vote_rejected", "stopped"]
    assert links(first, spans) == {}
    assert links(second, spans) == {"previous_election": ROUND}
    assert second.links[0].context == first.context
    # No replica has raised the epoch: it is the same one that is sought again.
    assert first.context.trace_id == second.context.trace_id == trace_id_of(cores.CLUSTER, 1)


def test_a_pre_vote_that_nobody_answers_times_out() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        watched.wake_until(Unattached)
    assert outcomes(spans) == ["timed_out"]


def begun_by(leader: int, epoch: int, *, voter: int = 2) -> m.BeginQuorumEpochRequest:
    """The announcement of a leader."""
    return m.BeginQuorumEpochRequest(
        cores.CLUSTER, cores.key(voter), NodeId(leader), Epoch(epoch), cores.endpoints(leader)
    )


def resigned(leader: int) -> m.EndQuorumEpochRequest:
    """That leader of epoch 1 resigns, and prefers node 2."""
    preferred = (cores.key(2), cores.key(3))
    return m.EndQuorumEpochRequest(
        cores.CLUSTER, NodeId(leader), Epoch(1), preferred, cores.endpoints(leader)
    )


def following(leader: int) -> Watched:
    """Node 2, which follows that leader of epoch 1."""
    watched = Watched(cores.recovered(1, 2, 3), node_id=2)
    watched.ask(begun_by(leader, 1), at=10)
    return watched


def candidate() -> Watched:
    watched = Watched(cores.recovered(1, 2, 3))
    watched.wake(2000)
    watched.answer(2, cores.granted(0))
    return watched


def test_a_candidate_that_most_refuse_has_lost_whatever_ends_its_round() -> None:
    with recorded() as spans:
        watched = candidate()
        for voter in (2, 3):
            watched.answer(voter, refused(1, m.VoteRefusal.ALREADY_VOTED))
        assert not spans.named(ROUND)
        watched.wake_until(Prospective)
    assert outcomes(spans) == ["lost"]
    said = attributes_of(spans.one("kraft.election.vote"))
    assert (said["kraft.votes.granted"], said["kraft.votes.rejected"]) == (1, 2)


def test_a_candidate_whose_epoch_another_leads_has_lost() -> None:
    with recorded() as spans:
        watched = candidate()
        watched.ask(begun_by(3, 1, voter=1), called="begin")
    assert outcomes(spans) == ["lost"]
    assert events(spans.one("begin")) == [("follower.transitioned", {"from": "candidate"})]


def test_split_votes_time_out_and_the_next_epoch_is_a_trace_of_its_own_that_links_back() -> None:
    with recorded() as spans:
        watched = candidate()
        watched.answer(3, refused(1, m.VoteRefusal.ALREADY_VOTED))
        watched.wake_until(Prospective)
        watched.answer(2, cores.granted(1))
        watched.answer(2, cores.granted(2))
    first, second = spans.named(ROUND)
    assert outcomes(spans) == ["timed_out", "won"]
    assert attributes_of(second)["kraft.election.trigger"] == "election_timeout"
    assert first.context.trace_id == trace_id_of(cores.CLUSTER, 1)
    assert second.context.trace_id == trace_id_of(cores.CLUSTER, 2)
    assert [link.context for link in second.links] == [first.context]


def test_the_winner_tells_why_there_was_no_leader_whatever_its_last_round_began_with() -> None:
    with recorded() as spans:
        watched = following(1)
        watched.wake_until(Prospective)
        watched.answer(3, cores.granted(1))
        watched.now += HOUR_MS
        watched.wake_until(Prospective)
        watched.answer(3, cores.granted(2))
        watched.answer(3, cores.granted(3))
        watched.spans.ended()
    first, *others = (attributes_of(each) for each in spans.named(ROUND))
    assert first["kraft.election.trigger"] == "fetch_timeout"
    assert {each["kraft.election.trigger"] for each in others} == {"election_timeout"}
    election = spans.one("kraft.election")
    assert election.name == "node 2 won epoch 3 from node 1 (fetch_timeout)"
    # The hour went by for another epoch.
    assert lasted_ms(election) < HOUR_MS


def test_a_leader_that_goes_leaves_no_reason_for_the_next_election() -> None:
    with recorded() as spans:
        watched = following(1)
        watched.wake_until(Prospective)
        watched.answer(3, cores.granted(1))
        watched.answer(3, cores.granted(2))
        watched.flush()
        watched.ask(cores.vote(3, 2, 7, cores.end(0, 0)))
        watched.wake_until(Prospective)
        watched.answer(3, cores.granted(7))
        watched.answer(3, cores.granted(8))
        watched.spans.ended()
    assert [span.name for span in spans.named("kraft.election")] == [
        "node 2 won epoch 2 from node 1 (fetch_timeout)",
        "node 2 won epoch 8 (election_timeout)",
    ]


def test_a_victory_that_never_reached_the_disk_makes_no_root() -> None:
    with recorded() as spans:
        watched = candidate()
        watched.fails_to_save = True
        watched.answer(2, cores.granted(1))
        watched.spans.ended()
        # The disk knows of its own vote alone, with which it wins the epoch once more.
        voted = m.ElectionState(Epoch(1), None, cores.key(1))
        again = Watched(replace(cores.recovered(1, 2, 3), election=voted))
        again.wake(10)
        again.answer(2, cores.granted(1))
        again.spans.ended()
    assert outcomes(spans) == ["won", "won"]
    assert spans.one("kraft.election").name == "node 1 won epoch 1 (startup)"


def test_a_clock_that_is_set_back_makes_no_election_of_negative_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = time.time_ns()
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        for clock in (time, sdk_trace):
            monkeypatch.setattr(clock, "time_ns", lambda: now_ns - HOUR_MS * 1_000_000)
        watched.answer(2, cores.granted(0), 3000)
        watched.answer(2, cores.granted(1))
        watched.flush()
        watched.ask(cores.fetch(2, watched.core.replica.log.end.offset, 1))
        monkeypatch.undo()
    assert lasted_ms(spans.one("kraft.election")) == watched.now - 2000 + 1


def test_all_rounds_that_seek_an_epoch_are_parts_of_the_time_that_it_took() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake_until(Prospective)
        watched.wake_until(Unattached)
        watched.wake_until(Prospective)
        watched.answer(2, cores.granted(0))
        watched.answer(2, cores.granted(1))
        watched.spans.ended()
    first, second = spans.named(ROUND)
    assert outcomes(spans) == ["timed_out", "won"]
    assert first.context.trace_id == second.context.trace_id
    assert (spans.one("kraft.election").start_time or 0) <= (first.start_time or 0)


def test_a_leader_that_is_heard_again_ends_the_reason_and_the_time() -> None:
    with recorded() as spans:
        watched = following(1)
        watched.wake_until(Prospective)
        watched.ask(begun_by(1, 1))
        assert outcomes(spans) == ["superseded"]
        watched.ask(resigned(1), called="end", at=watched.now + HOUR_MS)
        watched.wake(watched.now)
        watched.answer(3, cores.granted(1))
        watched.answer(3, cores.granted(2))
        watched.spans.ended()
    election = spans.one("kraft.election")
    assert election.name == "node 2 won epoch 2 from node 1 (end_quorum_epoch)"
    assert lasted_ms(election) < HOUR_MS


@pytest.mark.parametrize(("namespace", "place"), [("kafka", " in namespace kafka"), ("", "")])
def test_a_trace_names_the_namespace_of_its_quorum(
    monkeypatch: pytest.MonkeyPatch, namespace: str, place: str
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"k8s.namespace.name={namespace}")
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.elect()
        watched.step(api.ResignRequested("the disk is full", RoleChangeCause.DISK_FULL), 2500)
        watched.spans.ended()
    election, resign = spans.one("kraft.election"), spans.one("kraft.resign")
    assert election.name == f"node 1 won epoch 1 (election_timeout){place}"
    assert resign.name == f"node 1 resigned epoch 1 (disk_full){place}"
    for span in (election, resign, spans.one(ROUND)):
        assert attributes_of(span).get("k8s.namespace.name", "") == namespace


def test_a_nominee_is_superseded_by_whoever_turns_out_to_lead() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        watched.ask(cores.vote(3, 1, 5, cores.end(0, 0)))
    assert outcomes(spans) == ["superseded"]


def test_the_end_of_a_leader_triggers_an_election_that_links_to_the_call_that_told_it() -> None:
    with recorded() as spans:
        watched = following(1)
        watched.ask(resigned(1), called="quorate.raft.v1.Raft/EndQuorumEpoch", at=20)
        watched.wake(20)
        watched.spans.ended()
    election = spans.one(ROUND)
    assert attributes_of(election)["kraft.election.trigger"] == "end_quorum_epoch"
    assert links(election, spans) == {"trigger": "quorate.raft.v1.Raft/EndQuorumEpoch"}
    assert election.parent is not None
    assert election.parent.span_id == root_id_of(cores.CLUSTER, 2)
    assert not spans.named("kraft.election")


def test_a_leader_that_lost_its_quorum_resigns_with_a_reason_and_tells_the_voters_of_it() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.elect()
        watched.wake_until(Resigned)
        assert isinstance(watched.calls[3][1], m.EndQuorumEpochRequest)
        carried = watched.carried[3]
        assert not spans.named("kraft.resign")
        watched.wake_until(Unattached)
    resign = spans.one("kraft.resign")
    assert resign.parent is None
    assert resign.context.trace_id != trace_id_of(cores.CLUSTER, 1)
    assert carried == resign.context
    assert links(resign, spans) == {"election": "kraft.election"}
    told = attributes_of(resign)
    assert (told["kraft.epoch"], told["kraft.resign.reason"]) == (1, "check_quorum")
    assert told["kraft.resign.preferred_successors"] == ("2", "3")


def test_a_transfer_of_leadership_resigns_within_the_call_that_asked_for_it() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.elect()
        transfer = m.TransferLeadershipRequest(cores.CLUSTER, cores.key(2))
        watched.ask(transfer, called="quorate.raft.v1.Raft/TransferLeadership", at=2500)
        begun = m.BeginQuorumEpochResponse(ErrorCode.NONE, m.LeaderInfo(NodeId(1), Epoch(1)))
        watched.answer(2, begun)
        watched.spans.ended()
    assert parent_of(spans.one("kraft.resign"), spans) == "quorate.raft.v1.Raft/TransferLeadership"
    assert attributes_of(spans.one("kraft.resign"))["kraft.resign.reason"] == "transfer"


def test_leadership_that_is_lost_before_its_first_commit_was_established_in_vain() -> None:
    with recorded() as spans:
        watched = candidate()
        watched.answer(2, cores.granted(1))
        watched.ask(cores.vote(3, 1, 7, cores.end(9, 6)))
    establish = spans.one("kraft.leader.establish")
    assert establish.status.status_code is StatusCode.ERROR
    assert spans.one("kraft.election").status.status_code is StatusCode.ERROR
    assert [name for name, _ in events(establish)] == ["leader_change.appended"]


def test_a_round_that_goes_on_for_too_long_is_told_in_parts_that_link_to_each_other() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1, 2, 3))
        watched.wake(2000)
        elections = watched.spans._elections
        elections.expire(3999)
        assert not spans.spans
        elections.expire(4000)
        watched.answer(2, cores.granted(0), 3000)
        watched.spans.ended()
    first, second = spans.named(ROUND)
    assert outcomes(spans) == ["timed_out", "stopped"]
    assert [link.context for link in second.links] == [first.context]
    # The answer to what was asked before is not lost.
    assert events(spans.named("kraft.election.pre_vote")[1])[0][0] == "vote.received"


def test_an_only_voter_that_starts_has_its_election_too() -> None:
    with recorded() as spans:
        watched = Watched(cores.recovered(1))
        watched.flush()
    assert attributes_of(spans.one(ROUND))["kraft.election.trigger"] == "startup"
    assert outcomes(spans) == ["won"]
    assert len(spans.named("kraft.leader.establish")) == 1


def test_nothing_stays_open_when_the_core_ends() -> None:
    with recorded() as spans:
        watched = candidate()
        watched.spans.ended()
        leading = Watched(cores.recovered(1))
        leading.spans.ended()
        resigned = Watched(cores.recovered(1, 2, 3))
        resigned.elect()
        resigned.step(api.ResignRequested("the disk is full", RoleChangeCause.DISK_FULL), 2500)
        resigned.spans.ended()
    assert len(spans.named(ROUND)) == 3
    assert attributes_of(spans.one("kraft.resign"))["kraft.resign.reason"] == "disk_full"
    establish = [span.status.status_code for span in spans.named("kraft.leader.establish")]
    assert establish == [StatusCode.ERROR, StatusCode.UNSET]
