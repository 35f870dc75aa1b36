"""The values of notes on roles and on changes of the voters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.raft.trace_fields import voter_change_fields
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, ReplicaKey
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore

if TYPE_CHECKING:
    from quorate.raft.trace_events import TraceEvent


def taken(update: api.Update) -> list[TraceEvent]:
    return [note for note in update.trace if note.kind is TraceEventKind.ROLE_TAKEN]


def cause(update: api.Update) -> str:
    (note,) = taken(update)
    return str(note.values["cause"])


def test_a_nominee_says_which_epoch_it_seeks_with_how_many_votes_of_how_many() -> None:
    (note,) = taken(cores.unattached().step(api.TimerFired(), Millis(2000)))
    assert note.values == {
        "from_role": "unattached",
        "to_role": "prospective",
        "cause": "election_timeout",
        "epoch": 0,
        "sought": 1,
        "needed": 2,
        "voters": 3,
        "log_end_offset": 0,
        "log_last_epoch": 0,
    }


def test_a_candidate_seeks_its_own_epoch_and_says_how_its_pre_votes_went() -> None:
    core = cores.unattached()
    update = core.step(api.TimerFired(), Millis(2000))
    call, _ = cores.calls(update)[2]
    (note,) = taken(cores.answer(core, call, cores.granted(0), now_ms=2001))
    values = note.values
    assert (values["to_role"], values["cause"]) == ("candidate", "pre_votes_granted")
    assert (values["epoch"], values["sought"]) == (1, 1)
    assert (values["granted"], values["rejected"]) == (2, 0)


def test_an_only_voter_tells_every_role_that_it_takes() -> None:
    update = WatchedCore(cores.config(1), cores.recovered(1), cores.Midway()).start(Millis(0))
    roles = [(note.values["to_role"], note.values["cause"]) for note in taken(update)]
    assert roles == [
        ("prospective", "startup"),
        ("candidate", "pre_votes_granted"),
        ("leader", "votes_granted"),
    ]
    assert taken(update)[-1].values["epoch_start"] == 0


def test_a_resigning_leader_says_why_and_whom_it_prefers() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    request = api.ResignRequested("the disk is full", RoleChangeCause.DISK_FULL)
    (note,) = taken(core.step(request, Millis(4501)))
    assert note.values["cause"] == "disk_full"
    assert note.values["preferred"] == (2, 3)


def test_a_silent_leader_a_resigned_one_and_one_that_left_are_told_apart() -> None:
    silent = cores.follower()
    assert cause(silent.step(api.TimerFired(), Millis(2001))) == "fetch_timeout"
    resigned = cores.follower()
    resignation = m.EndQuorumEpochRequest(
        cores.CLUSTER, NodeId(1), Epoch(1), (cores.key(2), cores.key(3)), cores.endpoints(1)
    )
    cores.ask(resigned, resignation, now_ms=100)
    assert cause(resigned.step(api.TimerFired(), Millis(100))) == "end_quorum_epoch"
    left = cores.started(2, cores.recovered(2, 3))
    cores.begin(left, 1, 1, now_ms=1)
    cores.ask(left, resignation, now_ms=100)
    assert cause(left.step(api.TimerFired(), Millis(100))) == "leader_removed"


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        (cores.vote(3, 2, 1, cores.end(0, 0)), m.VoteRefusal.HAS_LEADER),
        (cores.vote(3, 2, 0, cores.end(0, 0), pre_vote=True), m.VoteRefusal.STALE_EPOCH),
        (cores.vote(3, 1, 1, cores.end(0, 0)), m.VoteRefusal.INVALID_VOTER_KEY),
        (cores.vote(3, 2, 1, cores.end(0, 1)), m.VoteRefusal.INVALID_REQUEST),
    ],
)
def test_a_refused_vote_says_why(request_: m.VoteRequest, refusal: m.VoteRefusal) -> None:
    (reply,) = cores.replies(cores.ask(cores.follower(), request_, now_ms=10))
    assert isinstance(reply, m.VoteResponse)
    assert (reply.vote_granted, reply.refusal) == (False, refusal)


def test_a_granted_vote_has_no_refusal() -> None:
    update = cores.ask(cores.unattached(), cores.vote(3, 1, 1, cores.end(0, 0)), now_ms=10)
    (reply,) = cores.replies(update)
    assert isinstance(reply, m.VoteResponse)
    assert (reply.error, reply.vote_granted, reply.refusal) == (ErrorCode.NONE, True, None)


def test_a_change_names_the_voter_by_id_and_directory() -> None:
    assert voter_change_fields("add", cores.key(3)) == {
        "change": "add",
        "voter_id": 3,
        "directory_id": "AwMDAwMDAwMDAwMDAwMDAw",
    }
    assert voter_change_fields("remove", ReplicaKey(NodeId(3))) == {
        "change": "remove",
        "voter_id": 3,
    }
