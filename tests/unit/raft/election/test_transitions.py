"""Changes of the role: what is saved, kept and forgotten with them."""

from __future__ import annotations

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, log_end, saved, told


def test_a_majority_of_votes_makes_a_leader_that_is_saved_before_it_appends() -> None:
    core = cores.unattached()
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    asked = cores.calls(cores.answer(core, asked[2][0], cores.granted(0), now_ms=1501))
    update = cores.answer(core, asked[2][0], cores.granted(1), now_ms=1502)
    voters = cores.voters(1, 2, 3)
    begins = LeaderChange(NodeId(1), tuple(map(NodeId, (1, 2, 3))), tuple(map(NodeId, (1, 2))))
    expect(
        update,
        api.SaveElection(m.ElectionState(Epoch(1), NodeId(1), cores.key(1)), 1, voters),
        api.AppendToLog(
            Offset(0),
            cores.end(3, 1),
            api.ControlBatch((begins, KRaftVersion(1), KRaftVoters(voters))),
        ),
        traffic.begin_sent(6, 2),
        traffic.begin_sent(7, 3),
        cores.progress("leader", 1, leader_id=1, epoch_start=0),
        # What was asked at the start has its timeout then.
        wake_at_ms=cores.config().request_timeout_ms,
        notes=((TraceEventKind.ROLE_TAKEN, "2 of 3 votes: candidate becomes leader in epoch 1"),),
    )


def test_the_only_voter_leads_at_once() -> None:
    core = cores.unattached(1, 1)
    assert told(core).role == "leader"


def test_rounds_lost_in_an_epoch_say_nothing_of_the_next() -> None:
    core = cores.follower(2, 1)
    begun = [cores.lost_round(core) for _ in range(4)]
    cores.begin(core, 3, 2, now_ms=begun[-1])
    anew = [cores.lost_round(core) for _ in range(2)]
    assert anew[1] - anew[0] == begun[1] - begun[0] < begun[3] - begun[2]


def test_a_vote_is_kept_when_the_leader_of_its_epoch_is_learned() -> None:
    core = cores.unattached()
    cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1)
    cores.begin(core, 2, 1, now_ms=2)
    assert saved(core) == m.ElectionState(Epoch(1), NodeId(2), cores.key(2))


def test_a_transition_outside_the_table_is_a_bug() -> None:
    core = cores.leader()
    with pytest.raises(AssertionError):
        core.transitions.become_prospective(RoleChangeCause.ELECTION_TIMEOUT, "test")


def test_the_first_leader_also_writes_version_and_voters() -> None:
    core = cores.unattached(1, 1)
    assert log_end(core).offset == 3
    leader = cores.started(1, cores.recovered(1))
    assert told(leader).role == "leader"
