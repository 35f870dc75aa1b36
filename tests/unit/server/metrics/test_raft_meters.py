"""Counts and times of commits and elections, by what a driver performs."""

from __future__ import annotations

from quorate.raft import api
from quorate.raft.messages import FetchedBatches
from quorate.raft.trace_events import RoleChangeCause, TraceEvent, TraceEventKind
from quorate.records.ids import Epoch, NodeId, Offset, OffsetAndEpoch
from quorate.server.metrics.raft_meters import RaftMeters


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def append(
    base: int, end: int, payload: api.ProposedBatch | api.ControlBatch | FetchedBatches
) -> api.AppendToLog:
    return api.AppendToLog(
        Offset(base), OffsetAndEpoch(epoch=Epoch(1), offset=Offset(end)), payload
    )


def proposed(base: int, end: int) -> api.AppendToLog:
    return append(base, end, api.ProposedBatch(b"", end - base))


def progress(
    role: str, epoch: int, leader: int | None, high_watermark: int | None = None
) -> api.PublishProgress:
    return api.PublishProgress(
        role=role,
        epoch=Epoch(epoch),
        leader_id=None if leader is None else NodeId(leader),
        is_leader=role == "leader",
        epoch_start=Offset(0) if role == "leader" else None,
        high_watermark=None if high_watermark is None else Offset(high_watermark),
    )


def test_a_batch_is_one_observation_however_many_records_it_has() -> None:
    clock = Clock()
    meters = RaftMeters(clock)
    meters.appended(append(0, 1, api.ControlBatch(())))
    meters.progressed(progress("leader", 1, 1))
    meters.appended(proposed(1, 1001))
    clock.now_s += 0.25
    meters.appended(proposed(1001, 1002))
    meters.progressed(progress("leader", 1, 1, 1001))
    assert (meters.commits.count, meters.commits.sum) == (2, 0.5)
    clock.now_s += 0.25
    meters.progressed(progress("leader", 1, 1, 1002))
    assert (meters.commits.count, meters.commits.sum) == (3, 0.75)
    assert (meters.appended_records, meters.fetched_records) == (1002, 0)


def test_what_is_fetched_is_not_committed_here() -> None:
    meters = RaftMeters(Clock())
    meters.appended(append(0, 7, FetchedBatches(b"", ())))
    meters.progressed(progress("follower", 1, 2, 7))
    assert (meters.appended_records, meters.fetched_records) == (0, 7)
    assert meters.commits.count == 0


def test_what_a_leader_leaves_behind_is_not_timed() -> None:
    clock = Clock()
    meters = RaftMeters(clock)
    meters.progressed(progress("leader", 1, 1, 0))
    meters.appended(proposed(0, 5))
    meters.progressed(progress("resigned", 1, 1, 0))
    meters.progressed(progress("leader", 3, 1, 5))
    assert meters.commits.count == 0


def test_an_election_lasts_from_the_first_round_to_a_leader() -> None:
    clock = Clock()
    meters = RaftMeters(clock)
    meters.progressed(progress("follower", 1, 3, 0))
    for role, epoch in (("prospective", 1), ("candidate", 2), ("prospective", 2), ("candidate", 3)):
        meters.progressed(progress(role, epoch, None, 0))
        clock.now_s += 0.5
    meters.progressed(progress("leader", 3, 1, 0))
    assert (meters.elections.count, meters.elections.sum) == (1, 2.0)
    assert meters.new_leaders == 2
    meters.progressed(progress("leader", 3, 1, 9))
    assert (meters.elections.count, meters.new_leaders) == (1, 2)


def test_a_rival_that_wins_ends_the_election_too() -> None:
    clock = Clock()
    meters = RaftMeters(clock)
    meters.progressed(progress("candidate", 2, None))
    clock.now_s += 0.25
    meters.progressed(progress("unattached", 3, None))
    clock.now_s += 0.25
    meters.progressed(progress("follower", 3, 2))
    assert (meters.elections.count, meters.elections.sum) == (1, 0.5)


def test_a_leader_that_was_only_missed_is_no_election() -> None:
    clock = Clock()
    meters = RaftMeters(clock)
    meters.progressed(progress("follower", 1, 3))
    meters.progressed(progress("prospective", 1, 3))
    clock.now_s += 60
    meters.progressed(progress("follower", 1, 3))
    assert (meters.elections.count, meters.new_leaders) == (0, 1)
    meters.progressed(progress("prospective", 1, 3))
    clock.now_s += 0.5
    meters.progressed(progress("follower", 2, 2))
    assert (meters.elections.count, meters.elections.sum) == (1, 0.5)


def test_an_only_voter_elects_itself_at_once() -> None:
    meters = RaftMeters(Clock())
    meters.progressed(progress("leader", 1, 1, 0))
    assert (meters.elections.count, meters.elections.sum) == (1, 0.0)


def test_who_votes_for_another_has_held_no_election() -> None:
    meters = RaftMeters(Clock())
    meters.progressed(progress("unattached", 2, None))
    meters.progressed(progress("follower", 2, 3))
    assert (meters.elections.count, meters.new_leaders) == (0, 1)


def taken(role: str, cause: RoleChangeCause) -> api.Update:
    """A step in which a replica takes a role up."""
    values = {"from_role": "any", "to_role": role, "cause": cause.value}
    return api.Update((), None, (TraceEvent(TraceEventKind.ROLE_TAKEN, "words", values),))


def test_an_election_is_known_by_the_cause_that_began_it() -> None:
    clock = Clock()
    meters = RaftMeters(Clock(), wall=clock)
    assert meters.last_won == {}
    meters.stepped(None, taken("prospective", RoleChangeCause.FETCH_TIMEOUT))
    meters.stepped(None, taken("candidate", RoleChangeCause.PRE_VOTES_GRANTED))
    meters.stepped(None, taken("prospective", RoleChangeCause.ELECTION_TIMEOUT))
    meters.stepped(None, taken("candidate", RoleChangeCause.PRE_VOTES_GRANTED))
    assert meters.last_won == {}
    meters.stepped(None, taken("leader", RoleChangeCause.VOTES_GRANTED))
    assert meters.last_won == {"fetch_timeout": 100.0}


def test_the_last_election_replaces_the_one_before() -> None:
    clock = Clock()
    meters = RaftMeters(Clock(), wall=clock)
    for role, cause in (
        ("candidate", RoleChangeCause.STARTUP),
        ("leader", RoleChangeCause.VOTES_GRANTED),
    ):
        meters.stepped(None, taken(role, cause))
    clock.now_s += 50
    # A round that another replica won leaves no cause behind.
    for role, cause in (
        ("resigned", RoleChangeCause.SHUTDOWN),
        ("prospective", RoleChangeCause.ELECTION_TIMEOUT),
        ("follower", RoleChangeCause.LEADER_LEARNED),
        ("prospective", RoleChangeCause.END_QUORUM_EPOCH),
    ):
        meters.stepped(None, taken(role, cause))
    assert meters.last_won == {"startup": 100.0}
    meters.stepped(None, taken("leader", RoleChangeCause.VOTES_GRANTED))
    assert meters.last_won == {"end_quorum_epoch": 150.0}
