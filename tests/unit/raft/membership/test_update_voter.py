"""UpdateRaftVoter (KIP-853): voters whose entry has drifted say so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.membership.update_voter import JITTER_SHARE, UNKNOWN_FETCH_TIMEOUTS
from quorate.records.control import KRaftVoters
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, Offset, ReplicaKey
from quorate.records.voters import Endpoint, Voter, VoterSet
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import WatchedCore, appended_voters, expect, log_end, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

MOVED = (Endpoint("GRPC", "elsewhere", 9094),)
UPDATE = m.UpdateRaftVoterRequest(
    cluster_id=cores.CLUSTER,
    current_leader_epoch=Epoch(1),
    voter=cores.key(3),
    listeners=MOVED,
    kraft_version_min=0,
    kraft_version_max=1,
)


def moved_follower(
    kraft_version: int = 1,
    *,
    endpoints: tuple[Endpoint, ...] = MOVED,
    voters: VoterSet | None = None,
) -> tuple[RaftCore, api.Update]:
    """Node 2, which listens elsewhere than the set says, after its first Fetch is answered."""
    state = cores.recovered(1, 2, 3)
    if voters is not None:
        state = replace(state, voters=(m.VotersAt(Offset(-1), voters),))
    if kraft_version == 0:
        state = replace(state, kraft_versions=())
    core = WatchedCore(replace(cores.config(2), endpoints=endpoints), state, cores.Midway())
    core.start(Millis(0))
    update = cores.begin(core, 1, 1, now_ms=1)
    (fetch,) = [
        e
        for e in update.effects
        if isinstance(e, api.SendRequest) and isinstance(e.request, m.FetchRequest)
    ]
    leader = m.LeaderInfo(cores.key(1).node_id, Epoch(1), cores.endpoints(1))
    answer = m.FetchResponse(
        error=ErrorCode.NONE, leader=leader, high_watermark=Offset(0), log_start_offset=Offset(0)
    )
    return core, cores.answer(core, fetch.call, answer, now_ms=2)


def updates(update: api.Update) -> list[api.SendRequest]:
    return [
        effect
        for effect in update.effects
        if isinstance(effect, api.SendRequest)
        and isinstance(effect.request, m.UpdateRaftVoterRequest)
    ]


def test_a_voter_that_has_moved_tells_the_leader_once_it_hears_it() -> None:
    core, update = moved_follower()
    (sent,) = updates(update)
    assert sent.to.node_id == 1
    assert sent.request == replace(UPDATE, voter=cores.key(2))
    timeout_ms = cores.config().fetch_timeout_ms
    # Every draw is one half of what is left to chance.
    retry = 2 + timeout_ms - timeout_ms // JITTER_SHARE // 2
    refused = m.MembershipResponse(
        ErrorCode.REQUEST_TIMED_OUT, "later", cores.LEADER, m.Reason.NOT_LEADER
    )
    cores.answer(core, sent.call, refused, now_ms=3)
    assert not any(map(updates, cores.hearing_until(core, retry)))
    assert not updates(core.step(api.TimerFired(), Millis(retry - 1)))
    assert updates(core.step(api.TimerFired(), Millis(retry)))


def test_a_leader_that_does_not_know_the_request_is_seldom_asked_again() -> None:
    """That answer may be damaged: where it ended all asking, no other voter would find this one."""
    core, update = moved_follower()
    (sent,) = updates(update)
    unknown = m.MembershipResponse(ErrorCode.UNSUPPORTED_VERSION, "unknown", cores.LEADER)
    cores.answer(core, sent.call, unknown, now_ms=3)
    wait_ms = UNKNOWN_FETCH_TIMEOUTS * cores.config(2).fetch_timeout_ms
    retry = 3 + wait_ms - wait_ms // JITTER_SHARE // 2
    assert not any(map(updates, cores.hearing_until(core, retry)))
    assert updates(core.step(api.TimerFired(), Millis(retry)))
    assert told(core).role == "follower"


def test_a_leader_that_is_removed_is_still_found_where_its_answers_say() -> None:
    """A follower that restarts knows its leader's address from the set alone, at first."""
    election = m.ElectionState(Epoch(1), cores.key(1).node_id)
    state = cores.recovered(
        1, 2, 3, log_end=cores.end(3, 1), epochs=(m.EpochStart(Epoch(1), Offset(0)),)
    )
    config = replace(cores.config(2), endpoints=MOVED)
    core = WatchedCore(config, replace(state, election=election), cores.Midway())
    (call, _), *_ = cores.calls(core.start(Millis(0))).values()
    leader = m.LeaderInfo(cores.key(1).node_id, Epoch(1), cores.endpoints(1))
    batch = m.BatchInfo(
        base_offset=Offset(3),
        last_offset=Offset(3),
        epoch=Epoch(1),
        control=(KRaftVoters(cores.voters(2, 3)),),
    )
    records = m.FetchedBatches(b"", (batch,))
    answer = m.FetchResponse(
        error=ErrorCode.NONE,
        leader=leader,
        high_watermark=Offset(3),
        log_start_offset=Offset(0),
        records=records,
    )
    cores.answer(core, call, answer, now_ms=1)
    update = cores.flush(core, now_ms=2)
    fetch = traffic.fetch_sent(3, 4, 1, high_watermark=3)
    assert isinstance(fetch.request, m.FetchRequest)
    expect(
        update,
        replace(fetch, request=replace(fetch.request, replica_endpoints=MOVED)),
        wake_at_ms=1 + cores.config().fetch_timeout_ms,
    )


def test_a_voter_that_is_where_the_set_says_is_silent() -> None:
    _core, update = moved_follower(endpoints=cores.endpoints(2))
    assert not updates(update)


def test_listeners_of_other_names_are_kept() -> None:
    both = (Endpoint("CONTROLLER", "node-2", 9093), *cores.endpoints(2))
    known = cores.voters(1, 2, 3).with_voter(Voter(cores.key(2), both))
    _core, update = moved_follower(endpoints=cores.endpoints(2), voters=known)
    assert not updates(update)
    _core, update = moved_follower(voters=known)
    (sent,) = updates(update)
    assert isinstance(sent.request, m.UpdateRaftVoterRequest)
    assert sent.request.listeners == (both[0], *MOVED)


def test_a_listener_that_an_entry_has_twice_is_left_once() -> None:
    other = Endpoint("X", "node-2", 9093)
    twice = Voter(cores.key(2), (*cores.endpoints(2), other, *MOVED))
    known = cores.voters(1, 2, 3).with_voter(twice)
    _core, update = moved_follower(endpoints=cores.endpoints(2), voters=known)
    (sent,) = updates(update)
    assert isinstance(sent.request, m.UpdateRaftVoterRequest)
    assert sent.request.listeners == (*cores.endpoints(2), other)


def test_at_kraft_version_0_each_leader_is_told_once() -> None:
    core, update = moved_follower(kraft_version=0)
    (sent,) = updates(update)
    accepted = m.MembershipResponse(ErrorCode.NONE, "", cores.LEADER)
    cores.answer(core, sent.call, accepted, now_ms=3)
    assert not any(map(updates, cores.hearing_until(core, 50_000)))
    assert told(core).role == "follower"


def test_the_leader_appends_the_new_entry_and_answers_at_once() -> None:
    core = cores.grown_up_leader()
    answer = cores.membership(cores.ask(core, UPDATE, now_ms=4500))
    assert answer.error is ErrorCode.NONE
    entry = Voter(cores.key(3), MOVED, 0, 1)
    assert appended_voters(core) == cores.voters(1, 2, 3).with_voter(entry)
    assert log_end(core).offset == 4


def test_an_entry_that_is_as_it_should_be_is_not_appended_again() -> None:
    core = cores.grown_up_leader()
    same = replace(UPDATE, listeners=cores.endpoints(3))
    assert cores.membership(cores.ask(core, same, now_ms=4500)).error is ErrorCode.NONE
    assert log_end(core).offset == 3


@pytest.mark.parametrize(
    ("request_", "error", "reason"),
    [
        (
            replace(UPDATE, current_leader_epoch=Epoch(0)),
            ErrorCode.FENCED_LEADER_EPOCH,
            m.Reason.STALE_EPOCH,
        ),
        (
            replace(UPDATE, current_leader_epoch=Epoch(2)),
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            m.Reason.STALE_EPOCH,
        ),
        (replace(UPDATE, voter=cores.key(4)), ErrorCode.VOTER_NOT_FOUND, m.Reason.VOTER_NOT_FOUND),
        (
            replace(UPDATE, voter=ReplicaKey(cores.key(3).node_id)),
            ErrorCode.INVALID_REQUEST,
            m.Reason.DIRECTORY_ID_UNKNOWN,
        ),
        (
            replace(UPDATE, kraft_version_max=0),
            ErrorCode.INVALID_REQUEST,
            m.Reason.VOTER_UNSUPPORTED,
        ),
        (
            replace(UPDATE, listeners=(Endpoint("CONTROLLER", "node-3", 9093),)),
            ErrorCode.INVALID_REQUEST,
            m.Reason.INVALID_LISTENERS,
        ),
        (
            replace(UPDATE, listeners=(*cores.endpoints(3), *MOVED)),
            ErrorCode.INVALID_REQUEST,
            m.Reason.INVALID_LISTENERS,
        ),
    ],
)
def test_what_may_not_be_updated_is_refused(
    request_: m.UpdateRaftVoterRequest, error: ErrorCode, reason: m.Reason
) -> None:
    core = cores.grown_up_leader()
    answer = cores.membership(cores.ask(core, request_, now_ms=4500))
    assert (answer.error, answer.reason) == (error, reason)
    assert appended_voters(core) == cores.voters(1, 2, 3)


def test_a_leader_that_has_moved_itself_says_so_as_its_epoch_begins() -> None:
    state = cores.recovered(1, log_end=cores.end(5, 1))
    state = replace(state, voters=(m.VotersAt(Offset(2), cores.voters(1)),))
    core = WatchedCore(replace(cores.config(1), endpoints=MOVED), state, cores.Midway())
    core.start(Millis(0))
    assert told(core).role == "leader"
    assert appended_voters(core) == cores.voters(1).with_voter(Voter(cores.key(1), MOVED))
