"""Auto-join (KIP-853): an observer asks to vote, in the place of its own previous disk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.errors import ErrorCode
from quorate.records.ids import DirectoryId, Epoch, Millis, Offset, ReplicaKey
from quorate.records.voters import Voter, VoterSet
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

NEW_DISK = DirectoryId(b"n" * 16)


def observer(
    node_id: int, voters: VoterSet, *, auto_join: bool = True, high_watermark: int = 3
) -> tuple[RaftCore, api.Update]:
    """A controller with a new disk, after the first answer to its Fetch."""
    state = cores.recovered(
        1, 2, 3, log_end=cores.end(3, 1), epochs=(m.EpochStart(Epoch(1), Offset(0)),)
    )
    state = replace(state, voters=(m.VotersAt(Offset(2), voters),))
    config = replace(cores.config(node_id), directory_id=NEW_DISK, auto_join=auto_join)
    core = WatchedCore(config, state, cores.Midway())
    core.start(Millis(0))
    update = cores.begin(core, 1, 1, now_ms=1)
    call, _ = cores.calls(update)[1]
    leader = m.LeaderInfo(cores.key(1).node_id, Epoch(1), cores.endpoints(1))
    answer = m.FetchResponse(
        error=ErrorCode.NONE,
        leader=leader,
        high_watermark=Offset(high_watermark),
        log_start_offset=Offset(0),
    )
    return core, cores.answer(core, call, answer, now_ms=2)


def sent(update: api.Update) -> list[api.SendRequest]:
    """The requests for voter changes that it sends."""
    return [
        effect
        for effect in update.effects
        if isinstance(effect, api.SendRequest)
        and isinstance(effect.request, m.AddRaftVoterRequest | m.RemoveRaftVoterRequest)
    ]


def asked(update: api.Update) -> list[m.PeerRequest]:
    return [effect.request for effect in sent(update)]


def test_a_new_controller_asks_to_be_added_without_waiting_for_the_commit() -> None:
    _core, update = observer(4, cores.voters(1, 2, 3))
    # Less than the time of its call: a refusal at the end of it still arrives.
    timeout_ms = Millis(cores.config().request_timeout_ms * 4 // 5)
    assert asked(update) == [
        m.AddRaftVoterRequest(
            cluster_id=cores.CLUSTER,
            voter=ReplicaKey(cores.key(4).node_id, NEW_DISK),
            listeners=cores.endpoints(4),
            timeout_ms=timeout_ms,
            ack_when_committed=False,
            auto_join=True,
        )
    ]


def test_its_disk_of_before_goes_first() -> None:
    _core, update = observer(3, cores.voters(1, 2, 3))
    timeout_ms = Millis(cores.config().request_timeout_ms * 4 // 5)
    assert asked(update) == [
        m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=timeout_ms, auto_join=True
        )
    ]


def test_who_was_decommissioned_is_behind_or_was_not_told_to_does_not_ask() -> None:
    gone = ReplicaKey(cores.key(4).node_id, NEW_DISK)
    removed = replace(cores.voters(1, 2, 3), decommissioned=(gone,))
    assert not asked(observer(4, removed)[1])
    assert not asked(observer(4, cores.voters(1, 2, 3), high_watermark=9)[1])
    assert not asked(observer(4, cores.voters(1, 2, 3), auto_join=False)[1])
    member = VoterSet.of([*cores.voters(1, 2), Voter(gone, cores.endpoints(4))])
    assert not asked(observer(4, member)[1])


def refused_once() -> tuple[RaftCore, m.MembershipResponse, api.Update, Millis]:
    """An observer that had to wait: its request, the refusal, its reaction, and its next time."""
    core, update = observer(4, cores.voters(1, 2, 3))
    (join,) = sent(update)
    assert isinstance(join.request, m.AddRaftVoterRequest)
    later = m.MembershipResponse(
        ErrorCode.REQUEST_TIMED_OUT,
        "another change is not committed yet",
        cores.LEADER,
        m.Reason.PENDING_VOTER_CHANGE,
    )
    update = cores.answer(core, join.call, later, now_ms=3)
    share = cores.config().fetch_timeout_ms // 4
    return core, later, update, Millis(2 + share + share // 2)


def test_a_refusal_is_repeated_after_a_while_and_told_once() -> None:
    core, later, update, again = refused_once()
    assert any("another change" in note.text for note in update.trace)
    assert not asked(core.step(api.TimerFired(), Millis(again - 1)))
    update = core.step(api.TimerFired(), again)
    assert asked(update)
    ((call, _),) = cores.calls(update).values()
    changed = replace(later, message="change 12 at offset 34 is not committed yet")
    assert not cores.answer(core, call, changed, now_ms=again).trace


def test_who_is_told_to_stop_at_the_moment_in_which_it_would_ask_does_not() -> None:
    """The request would leave with the last step, and make a voter of one that is gone.

    See rule `stopping_replica`.
    """
    core, *_, again = refused_once()
    update = core.step(api.ShutdownRequested(Millis(9000)), again)
    assert not asked(update)
    assert api.ShutdownComplete() in update.effects


# --- scaled down ----------------------------------------------------------------------------------


def leader_says(
    core: RaftCore, *batches: m.BatchInfo, high_watermark: int, now_ms: int, epoch: int = 1
) -> api.Update:
    """The leader of that epoch answers the Fetch that is in flight, and the disk flushes."""
    call = cores.under_way(core)
    leader = m.LeaderInfo(cores.key(1).node_id, Epoch(epoch), cores.endpoints(1))
    answer = m.FetchResponse(
        error=ErrorCode.NONE,
        leader=leader,
        high_watermark=Offset(high_watermark),
        log_start_offset=Offset(0),
        records=m.FetchedBatches(b"b", batches),
    )
    update = cores.answer(core, call, answer, now_ms=now_ms)
    if not batches:
        return update
    flushed = cores.flush(core, now_ms=now_ms)
    return replace(
        update,
        effects=(*update.effects, *flushed.effects),
        trace=(*update.trace, *flushed.trace),
    )


def change_at(offset: int, voters: VoterSet, *, is_first: bool = False) -> m.BatchInfo:
    """The batch that puts a voter set into effect; the `first` of an epoch says so."""
    begins = (LeaderChange(cores.key(1).node_id, (), ()),) if is_first else ()
    return m.BatchInfo(
        base_offset=Offset(offset),
        last_offset=Offset(offset + len(begins)),
        epoch=Epoch(1),
        control=(*begins, KRaftVoters(voters)),
    )


def records_at(offset: int) -> m.BatchInfo:
    return m.BatchInfo(base_offset=Offset(offset), last_offset=Offset(offset), epoch=Epoch(1))


def voter_three(*, high_watermark: int) -> RaftCore:
    """Voter 3, whose disk says so, and what its leader's first answer says is committed."""
    state = cores.recovered(
        1, 2, 3, log_end=cores.end(3, 1), epochs=(m.EpochStart(Epoch(1), Offset(0)),)
    )
    state = replace(state, voters=(m.VotersAt(Offset(2), cores.voters(1, 2, 3)),))
    core = WatchedCore(replace(cores.config(3), auto_join=True), state, cores.Midway())
    core.start(Millis(0))
    update = cores.begin(core, 1, 1, now_ms=1)
    assert cores.calls(update)
    leader_says(core, high_watermark=high_watermark, now_ms=2)
    return core


def test_a_process_whose_voter_is_removed_does_not_join_again_and_says_so() -> None:
    core = voter_three(high_watermark=3)
    update = leader_says(core, change_at(3, cores.voters(1, 2)), high_watermark=4, now_ms=3)
    assert not asked(update)
    assert not asked(core.step(api.TimerFired(), Millis(500)))
    assert [line for line in core.status_warnings() if "scaled away" in line]


def test_a_voter_without_directory_ids_was_perhaps_another_disk_and_joins_after_the_upgrade() -> (
    None
):
    """The disk was replaced while the upgrade was running, which names the previous one."""
    state = cores.recovered(
        1, 2, 3, log_end=cores.end(3, 1), epochs=(m.EpochStart(Epoch(1), Offset(0)),)
    )
    nameless = tuple(replace(it, key=ReplicaKey(it.key.node_id)) for it in cores.voters(1, 2, 3))
    state = replace(
        state,
        voters=(m.VotersAt(Offset(-1), VoterSet(nameless)),),
        kraft_versions=(m.KRaftVersionAt(Offset(-1), 0),),
    )
    config = replace(cores.config(3), directory_id=NEW_DISK, auto_join=True)
    core = WatchedCore(config, state, cores.Midway())
    core.start(Millis(0))
    cores.begin(core, 1, 1, now_ms=1)
    assert not asked(leader_says(core, records_at(3), high_watermark=4, now_ms=2))
    upgrade = m.BatchInfo(
        base_offset=Offset(4),
        last_offset=Offset(5),
        epoch=Epoch(1),
        control=(KRaftVersion(1), KRaftVoters(cores.voters(1, 2, 3))),
    )
    (request,) = asked(leader_says(core, upgrade, high_watermark=6, now_ms=3))
    assert isinstance(request, m.RemoveRaftVoterRequest)
    assert (request.voter, request.auto_join) == (cores.key(3), True)
    assert not core.status_warnings()


def test_the_next_process_on_its_disk_joins_though_the_disk_says_that_it_votes() -> None:
    # It ended before it had the record that removed it.
    core = voter_three(high_watermark=5)
    update = leader_says(core, records_at(3), high_watermark=5, now_ms=3)
    assert not asked(update)
    update = leader_says(core, change_at(4, cores.voters(1, 2)), high_watermark=5, now_ms=4)
    (request,) = asked(update)
    assert isinstance(request, m.AddRaftVoterRequest)
    assert (request.voter, request.auto_join) == (cores.key(3), True)
    assert not core.status_warnings()


def test_what_a_leader_before_this_one_had_committed_says_nothing_of_now() -> None:
    """A new leader knows of less than is committed until a record of its own epoch is."""
    state = cores.recovered(
        1, 2, 3, log_end=cores.end(3, 1), epochs=(m.EpochStart(Epoch(1), Offset(0)),)
    )
    state = replace(state, voters=(m.VotersAt(Offset(2), cores.voters(1, 2, 3)),))
    core = WatchedCore(replace(cores.config(3), auto_join=True), state, cores.Midway())
    core.start(Millis(0))
    cores.begin(core, 1, 2, now_ms=1)
    leader_says(core, high_watermark=3, now_ms=2, epoch=2)
    removed = replace(change_at(3, cores.voters(1, 2), is_first=True), epoch=Epoch(2))
    update = leader_says(core, removed, high_watermark=5, now_ms=3, epoch=2)
    # For all that it knows it was removed before it was started, so it joins.
    (request,) = asked(update)
    assert isinstance(request, m.AddRaftVoterRequest)


def test_a_removal_that_is_rolled_back_leaves_a_voter_and_one_by_hand_says_nothing_of_pods() -> (
    None
):
    core = voter_three(high_watermark=3)
    gone = replace(cores.voters(1, 2), decommissioned=(cores.key(3),))
    leader_says(core, change_at(3, gone), high_watermark=4, now_ms=3)
    assert not core.status_warnings()
    core = voter_three(high_watermark=3)
    leader_says(core, change_at(3, cores.voters(1, 2)), high_watermark=3, now_ms=3)
    assert [line for line in core.status_warnings() if "scaled away" in line]
    diverging = cores.fetch_answer(diverging=cores.end(3, 1), high_watermark=Offset(3))
    cores.answer(core, cores.under_way(core), diverging, now_ms=4)
    core.step(api.LogTruncated(cores.end(3, 1), 1), Millis(5))
    assert not core.status_warnings()


def test_an_addition_that_was_rolled_back_is_asked_for_again() -> None:
    """A process votes from the append on; that it did counts only once it is committed."""
    member = VoterSet.of(
        [*cores.voters(1, 2, 3), Voter(ReplicaKey(cores.key(4).node_id, NEW_DISK))]
    )
    for high_watermark in (3, 4):
        core, update = observer(4, cores.voters(1, 2, 3))
        (join,) = sent(update)
        leader_says(core, change_at(3, member), high_watermark=3, now_ms=3)
        accepted = m.MembershipResponse(ErrorCode.NONE, "", cores.LEADER)
        cores.answer(core, join.call, accepted, now_ms=3)
        leader_says(core, high_watermark=high_watermark, now_ms=4)
        removal = change_at(4, cores.voters(1, 2, 3))
        update = leader_says(core, removal, high_watermark=5, now_ms=5)
        later = [update, *cores.hearing_until(core, 60_000)]
        # Once its vote counted it has left, and asks no more.
        assert any(map(asked, later)) == (high_watermark == 3)
