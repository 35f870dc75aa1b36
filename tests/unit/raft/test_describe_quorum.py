"""DescribeQuorum and the remarks of a replica (KIP-836)."""

from __future__ import annotations

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.describe_quorum import api_versions
from quorate.raft.last_message import Heard
from quorate.raft.trace_events import RoleChangeCause
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores


def test_the_leader_tells_what_every_replica_has_and_when_it_fetched() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    cores.ask(core, cores.fetch(7, 0, 0), now_ms=2002, token=2)
    answer = cores.described(core, now_ms=2002)
    assert answer.error is ErrorCode.NONE
    assert [(v.key.node_id, v.log_end_offset, v.last_fetch_ms) for v in answer.voters] == [
        (1, Offset(3), Millis(2002)),
        (2, Offset(3), Millis(2001)),
        (3, None, None),
    ]
    (observer,) = answer.observers
    assert observer == m.ReplicaState(
        key=cores.key(7),
        log_end_offset=Offset(0),
        last_fetch_ms=Millis(2002),
        last_caught_up_ms=observer.last_caught_up_ms,
        endpoints=cores.endpoints(7),
        obstacle=m.Reason.HIGH_WATERMARK_UNKNOWN,
        obstacle_text=observer.obstacle_text,
    )
    assert "who fetches" in observer.obstacle_text


def test_an_observer_that_may_be_added_has_no_obstacle() -> None:
    core = cores.grown_up_leader()
    cores.ask(core, cores.fetch(7, 3, 1), now_ms=4500, token=2)
    (observer,) = cores.described(core, now_ms=4500).observers
    assert (observer.obstacle, observer.obstacle_text) == (None, "")


def test_a_change_that_is_not_committed_is_told() -> None:
    core = cores.grown_up_leader()
    cores.change(
        core,
        m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(0)
        ),
        now_ms=4500,
    )
    answer = cores.described(core, now_ms=4500)
    (gone,) = [voter for voter in cores.voters(1, 2, 3) if voter.key == cores.key(3)]
    assert answer.uncommitted_voter_change == m.VoterChange(m.ChangeKind.REMOVE, gone)
    assert answer.decommissioned == (cores.key(3),)
    cores.flush(core, now_ms=4501)
    cores.ask(core, cores.fetch(2, 4, 1), now_ms=4501)
    assert cores.described(core, now_ms=4501).uncommitted_voter_change is None


def test_without_a_leader_it_is_told_who_led_and_who_was_heard_when() -> None:
    core = cores.follower(2, 1)
    cores.ask(core, cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True), now_ms=7)
    core.transitions.become_unattached(Epoch(2), RoleChangeCause.HIGHER_EPOCH, "test")
    answer = cores.described(core, now_ms=7)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.leader == m.LeaderInfo(None, Epoch(2))
    assert answer.last_leader == m.LeaderInfo(NodeId(1), Epoch(1), cores.endpoints(1))
    assert answer.heard == (Heard(NodeId(1), Millis(1)), Heard(NodeId(3), Millis(7)))


def test_api_versions_says_who_answers_and_what_it_supports() -> None:
    answer = api_versions(cores.unattached(2).replica)
    assert answer == m.ApiVersionsResponse(
        error=ErrorCode.NONE,
        cluster_id=cores.CLUSTER,
        key=cores.key(2),
        kraft_version_min=0,
        kraft_version_max=1,
    )


def test_healing_and_refused_votes_are_remarked() -> None:
    state = cores.recovered(1, 2, 3, remembered_end=cores.end(9, 2))
    core = cores.started(1, state)
    cores.ask(core, cores.vote(2, 1, 3, cores.end(1, 1)), now_ms=1)
    healing, refused = core.status_warnings()
    assert "once ended at 9@2" in healing
    assert refused.startswith("refused 1 vote(s) to 2: ")


def test_a_replica_that_loads_or_abstains_says_so() -> None:
    core = cores.started(1, cores.recovered(1, 2, 3, abstains=True))
    core.step(api.StateMachineProgress(ready=False), Millis(1))
    assert core.status_warnings() == [
        "abstains from votes: it came up empty at kraft.version 0, and has yet to hear from 2, 3",
        "the state machine is still loading",
    ]


def test_a_removed_leader_that_still_leads_is_shown_as_an_observer() -> None:
    core = cores.grown_up_leader()
    cores.change(
        core,
        m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(1), timeout_ms=Millis(0)
        ),
        now_ms=4500,
        by=(2, 3),
    )
    answer = cores.described(core, now_ms=4500)
    assert answer.error is ErrorCode.NONE
    assert [voter.key.node_id for voter in answer.voters] == [2, 3]
    (own,) = answer.observers
    assert (own.key, own.log_end_offset, own.last_fetch_ms) == (cores.key(1), 4, 4500)


def test_an_unknown_high_watermark_is_absent() -> None:
    core = cores.leader()
    assert cores.described(core, now_ms=2000).high_watermark is None
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    assert cores.described(core, now_ms=2001).high_watermark == 3
