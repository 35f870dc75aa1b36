"""BeginQuorumEpoch and EndQuorumEpoch (KIP-595)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election import campaign
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, ReplicaKey, ReplyToken
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, saved, told


def test_a_new_leader_announces_itself_to_every_other_voter() -> None:
    core = cores.unattached()
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    asked = cores.calls(cores.answer(core, asked[2][0], cores.granted(0), now_ms=1501))
    begun = cores.calls(cores.answer(core, asked[2][0], cores.granted(1), now_ms=1502))
    assert {node: type(request) for node, (_, request) in begun.items()} == {
        2: m.BeginQuorumEpochRequest,
        3: m.BeginQuorumEpochRequest,
    }


def test_a_voter_that_fetches_is_not_announced_to_again() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2900)
    update = core.step(api.TimerFired(), Millis(3000))
    begun = [
        n for n, (_, r) in cores.calls(update).items() if isinstance(r, m.BeginQuorumEpochRequest)
    ]
    assert 2 not in begun


def begun(update: api.Update) -> list[int]:
    """The voters that an update notifies of the leader."""
    calls = cores.calls(update)
    return sorted(n for n, (_, r) in calls.items() if isinstance(r, m.BeginQuorumEpochRequest))


def test_a_voter_that_did_not_answer_is_announced_to_again_though_it_fetches() -> None:
    core = cores.grown_up_leader()
    told = cores.calls(core.step(api.TimerFired(), Millis(5400)))
    assert begun(core.step(api.TimerFired(), Millis(5400))) == []
    cores.answer(core, told[2][0], api.RequestFailure.DISCONNECTED, now_ms=5401)
    cores.heed(core, 3, now_ms=5401)
    for node_id in (2, 3):
        cores.ask(core, cores.fetch(node_id, 3, 1), now_ms=5402, token=node_id)
    assert begun(core.step(api.TimerFired(), Millis(5651))) == [2]
    cores.heed(core, 2, now_ms=5652)
    for node_id in (2, 3):
        cores.ask(core, cores.fetch(node_id, 3, 1), now_ms=6000, token=node_id)
    assert begun(core.step(api.TimerFired(), Millis(6651))) == []


def test_a_voter_that_says_that_it_moved_is_announced_to_at_once() -> None:
    core = cores.grown_up_leader()
    moved = replace(cores.fetch(2, 3, 1), replica_endpoints=cores.endpoints(9))
    assert begun(cores.ask(core, moved, now_ms=4401)) == [2]


def test_a_refusal_to_follow_is_told_once() -> None:
    core = cores.grown_up_leader()
    said = []
    for now_ms in (5400, 6400, 7400):
        update = core.step(api.TimerFired(), Millis(now_ms))
        refusal = m.BeginQuorumEpochResponse(ErrorCode.INVALID_VOTER_KEY, cores.LEADER)
        said += cores.said(cores.answer(core, cores.calls(update)[2][0], refusal, now_ms=now_ms))
        cores.ask(core, cores.fetch(3, 3, 1), now_ms=now_ms + 1)
    assert said == ["2 answers BeginQuorumEpoch with INVALID_VOTER_KEY"]


def test_begin_quorum_epoch_is_followed_whatever_the_own_set_says() -> None:
    core = cores.unattached(1, 1, 2)
    update = cores.begin(core, 9, 4, now_ms=1)
    assert saved(core) == m.ElectionState(Epoch(4), NodeId(9))
    (answer,) = cores.replies(update)
    assert isinstance(answer, m.BeginQuorumEpochResponse)
    assert answer.error is ErrorCode.NONE


def test_an_older_epoch_and_a_rival_of_the_same_epoch_are_refused() -> None:
    core = cores.follower(2, leader_id=1, epoch=3)
    (old,) = cores.replies(cores.begin(core, 3, 2, now_ms=2))
    (rival,) = cores.replies(cores.begin(core, 3, 3, now_ms=3))
    assert isinstance(old, m.BeginQuorumEpochResponse)
    assert isinstance(rival, m.BeginQuorumEpochResponse)
    assert (old.error, rival.error) == (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_REQUEST)


def test_nobody_else_leads_as_this_replica() -> None:
    """An answer without an error counts as an acknowledgement."""
    core = cores.follower(2, leader_id=1, epoch=3)
    for epoch in (3, 4):
        (begin,) = cores.replies(cores.begin(core, 2, epoch, now_ms=2))
        assert isinstance(begin, m.BeginQuorumEpochResponse)
        assert begin.error is ErrorCode.INVALID_REQUEST
        end = m.EndQuorumEpochRequest(cores.CLUSTER, NodeId(2), Epoch(epoch), ())
        update = cores.ask(core, end, now_ms=3)
        (answer,) = cores.replies(update)
        assert isinstance(answer, m.EndQuorumEpochResponse)
        assert answer.error is ErrorCode.INVALID_REQUEST
        assert cores.said(update) == [f"this replica is said to lead epoch {epoch}: not believed"]
    assert told(core).epoch == 3


def ended(core: object, *preferred: ReplicaKey) -> api.Update:
    request = m.EndQuorumEpochRequest(cores.CLUSTER, NodeId(1), Epoch(1), preferred)
    return cores.ask(core, request, now_ms=10)  # type: ignore[arg-type]


def test_the_first_successor_campaigns_at_once() -> None:
    core = cores.follower()
    ended(core, cores.key(2), cores.key(3))
    core.step(api.TimerFired(), Millis(10))
    assert told(core).role == "prospective"


def test_later_successors_leave_the_first_ones_time_but_grant_them_pre_votes() -> None:
    core = cores.heard()
    update = ended(core, cores.key(3), cores.key(2))
    expect(
        update,
        api.SendReply(ReplyToken(1), m.EndQuorumEpochResponse(ErrorCode.NONE, cores.LEADER)),
        wake_at_ms=510,
        notes=((TraceEventKind.LEADER_RESIGNED, "leader 1 resigned: may campaign after 500 ms"),),
    )
    update = cores.ask(core, cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True), now_ms=11)
    (answer,) = cores.replies(update)
    assert isinstance(answer, m.VoteResponse)
    assert answer.vote_granted


@pytest.mark.parametrize(
    ("preferred", "turn_ms"),
    [((), 25), ((2,), 0), ((1, 3), 1000), ((1, 2), 500), ((3, 1, 2), 500), ((1, 2, 3, 4), 125)],
)
def test_the_turn_doubles_with_the_place_in_the_list(
    preferred: tuple[int, ...], turn_ms: int
) -> None:
    core = cores.follower()
    keys = tuple(cores.key(node_id) for node_id in preferred)
    assert core.epoch_announcements.campaign_delay_ms(keys) == turn_ms


def test_at_kraft_version_0_successors_are_named_by_their_ids_alone() -> None:
    core = cores.follower(2)
    order = (ReplicaKey(NodeId(3)), ReplicaKey(NodeId(2)))
    assert core.epoch_announcements.campaign_delay_ms(order) == 500
    assert core.epoch_announcements.campaign_delay_ms(order[1:]) == 0


def test_a_resigned_leader_tells_every_voter_until_each_has_acknowledged() -> None:
    core = cores.leader()
    update = core.step(api.ResignRequested("the disk is full"), Millis(2001))
    told = cores.calls(update)
    assert sorted(told) == [2, 3]
    info = m.LeaderInfo(NodeId(1), Epoch(1), ())
    cores.answer(core, told[2][0], m.EndQuorumEpochResponse(ErrorCode.NONE, info), now_ms=2002)
    cores.answer(core, told[3][0], api.RequestFailure.TIMED_OUT, now_ms=2003)
    again = cores.calls(core.step(api.TimerFired(), Millis(2103)))
    assert sorted(again) == [3]


def test_a_refusal_is_no_acknowledgement_of_the_end() -> None:
    core = cores.leader()
    update = core.step(api.ResignRequested("the disk is full"), Millis(2001))
    info = m.LeaderInfo(NodeId(1), Epoch(1), ())
    said = []
    for now_ms in (2002, 2203):
        refusal = m.EndQuorumEpochResponse(ErrorCode.INVALID_REQUEST, info)
        said += cores.said(cores.answer(core, cores.calls(update)[2][0], refusal, now_ms=now_ms))
        update = core.step(api.TimerFired(), Millis(now_ms + 100))
        assert 2 in cores.calls(update)
    assert said == ["2 answers EndQuorumEpoch with INVALID_REQUEST"]


def test_a_voter_that_does_not_answer_is_told_once_more_of_the_end() -> None:
    core = cores.leader()
    update = core.step(api.ResignRequested("the disk is full"), Millis(2001))
    expect(
        update,
        traffic.end_sent(8, 2, 2, 3),
        traffic.end_sent(9, 3, 2, 3),
        cores.progress("resigned", 1, leader_id=1),
        wake_at_ms=2251,
        notes=(
            (TraceEventKind.ROLE_TAKEN, "the disk is full: leader becomes resigned in epoch 1"),
        ),
    )
    expect(
        core.step(api.TimerFired(), Millis(2251)),
        traffic.end_sent(10, 2, 2, 3),
        traffic.end_sent(11, 3, 2, 3),
        wake_at_ms=2501,
    )


def test_a_resigned_leader_that_nobody_follows_goes_on_in_the_next_epoch() -> None:
    core = cores.leader()
    core.step(api.ResignRequested("test"), Millis(2001))
    expect(
        core.step(api.TimerFired(), Millis(3501)),
        api.SaveElection(m.ElectionState(Epoch(2)), 1, cores.voters(1, 2, 3)),
        traffic.discovery_sent(10, 3, 1, node_id=1, to=3, epoch=2),
        cores.progress("unattached", 2),
        # It has waited a whole election timeout already.
        wake_at_ms=3501,
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "no successor was heard of: resigned becomes unattached in epoch 2",
            ),
        ),
    )
    core.step(api.TimerFired(), Millis(3501))
    assert told(core).role == "prospective"


HEARD = m.EndQuorumEpochResponse(ErrorCode.NONE, m.LeaderInfo(NodeId(1), Epoch(1), ()))


def orders(update: api.Update) -> dict[int, list[int]]:
    """The order of the successors that each voter receives."""
    return {
        to: [int(key.node_id) for key in request.preferred_candidates]
        for to, (_, request) in cores.calls(update).items()
        if isinstance(request, m.EndQuorumEpochRequest)
    }


def test_a_first_one_that_is_not_reached_gives_its_turn_to_the_next_one() -> None:
    core = cores.leader()
    update = core.step(api.ResignRequested("test"), Millis(2001))
    assert orders(update) == {2: [2, 3], 3: [2, 3]}
    sent = cores.calls(update)
    assert not orders(cores.answer(core, sent[3][0], HEARD, now_ms=2002))
    lost = api.RequestFailure.DISCONNECTED
    update = cores.answer(core, sent[2][0], lost, now_ms=2003)
    assert orders(update) == {3: [3, 2]}
    assert cores.said(update) == ["2 has not heard that it is its turn: names 3"]


def test_a_first_one_that_is_silent_gives_its_turn_to_the_next_one() -> None:
    core = cores.leader()
    sent = cores.calls(core.step(api.ResignRequested("test"), Millis(2001)))
    update = cores.answer(core, sent[3][0], HEARD, now_ms=2002)
    assert update.wake_at_ms == 2251
    assert orders(core.step(api.TimerFired(), Millis(2250))) == {}
    assert orders(core.step(api.TimerFired(), Millis(2251))) == {2: [3, 2], 3: [3, 2]}


def test_a_first_one_that_has_heard_keeps_its_turn() -> None:
    core = cores.leader()
    sent = cores.calls(core.step(api.ResignRequested("test"), Millis(2001)))
    cores.answer(core, sent[2][0], HEARD, now_ms=2002)
    cores.answer(core, sent[3][0], HEARD, now_ms=2003)
    assert orders(core.step(api.TimerFired(), Millis(2251))) == {}


def test_who_is_told_again_takes_an_earlier_turn_and_never_a_later_one() -> None:
    core = cores.follower(2)
    for order, now_ms, turn_ms in (((3, 2), 10, 510), ((3, 2), 300, 510), ((2, 3), 400, 400)):
        preferred = tuple(cores.key(node_id) for node_id in order)
        end = m.EndQuorumEpochRequest(
            cores.CLUSTER, NodeId(1), Epoch(1), preferred, cores.endpoints(1)
        )
        assert cores.ask(core, end, now_ms=now_ms).wake_at_ms == turn_ms


def test_a_nominee_that_is_told_again_of_the_end_goes_on_with_its_round() -> None:
    """A round over a long link takes longer than the time between two of these requests."""
    core = cores.follower()
    end = m.EndQuorumEpochRequest(
        cores.CLUSTER, NodeId(1), Epoch(1), (cores.key(2), cores.key(3)), cores.endpoints(1)
    )
    cores.ask(core, end, now_ms=10)
    core.step(api.TimerFired(), Millis(11))
    assert told(core).role == "prospective"
    expect(
        cores.ask(core, end, now_ms=110),
        api.SendReply(ReplyToken(1), m.EndQuorumEpochResponse(ErrorCode.NONE, cores.LEADER)),
        # Then those that have not answered are asked again.
        wake_at_ms=11 + cores.part_of_election_timeout(campaign.REPEAT_SHARE),
    )
