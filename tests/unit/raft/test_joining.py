"""Auto-join (KIP-853): an observer asks to vote, in the place of its own disk of before."""

from __future__ import annotations

from dataclasses import replace

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.core import RaftCore
from quorate.records.errors import ErrorCode
from quorate.records.ids import DirectoryId, Epoch, Millis, Offset, ReplicaKey
from quorate.records.voters import Voter, VoterSet
from tests.unit.raft import cores

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
    core = RaftCore(config, state, cores.Midway())
    core.start(Millis(0))
    update = cores.begin(core, 1, 1, now_ms=1)
    call, _ = cores.calls(update)[1]
    leader = m.LeaderInfo(cores.key(1).node_id, Epoch(1), cores.endpoints(1))
    answer = m.FetchResponse(ErrorCode.NONE, leader, Offset(high_watermark), Offset(0))
    return core, cores.answer(core, call, answer, now_ms=2)


def asked(update: api.Update) -> list[m.PeerRequest]:
    return [
        effect.request
        for effect in update.effects
        if isinstance(effect, api.SendRequest)
        and isinstance(effect.request, m.AddRaftVoterRequest | m.RemoveRaftVoterRequest)
    ]


def test_a_new_controller_asks_to_be_added_without_waiting_for_the_commit() -> None:
    core, update = observer(4, cores.voters(1, 2, 3))
    timeout_ms = core.replica.config.request_timeout_ms
    assert asked(update) == [
        m.AddRaftVoterRequest(
            cores.CLUSTER,
            ReplicaKey(cores.key(4).node_id, NEW_DISK),
            cores.endpoints(4),
            timeout_ms,
            ack_when_committed=False,
            auto_join=True,
        )
    ]


def test_its_disk_of_before_goes_first() -> None:
    core, update = observer(3, cores.voters(1, 2, 3))
    timeout_ms = core.replica.config.request_timeout_ms
    assert asked(update) == [
        m.RemoveRaftVoterRequest(cores.CLUSTER, cores.key(3), timeout_ms, auto_join=True)
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
    """An observer that was told to wait: with what, what it did then, and when it asks again."""
    core, update = observer(4, cores.voters(1, 2, 3))
    (call,) = [
        e.call
        for e in update.effects
        if isinstance(e, api.SendRequest) and isinstance(e.request, m.AddRaftVoterRequest)
    ]
    later = m.MembershipResponse(
        ErrorCode.REQUEST_TIMED_OUT,
        "another change is not committed yet",
        core.replica.leader_info,
        m.Reason.PENDING_VOTER_CHANGE,
    )
    update = cores.answer(core, call, later, now_ms=3)
    share = core.replica.config.fetch_timeout_ms // 4
    return core, later, update, Millis(2 + share + share // 2)


def test_a_refusal_is_repeated_after_a_while_and_told_once() -> None:
    core, later, update, again = refused_once()
    assert any("another change" in note.text for note in update.notes)
    assert not asked(core.step(api.TimerFired(), Millis(again - 1)))
    update = core.step(api.TimerFired(), again)
    assert asked(update)
    ((call, _),) = cores.calls(update).values()
    changed = replace(later, message="change 12 at offset 34 is not committed yet")
    assert not cores.answer(core, call, changed, now_ms=again).notes


def test_who_is_told_to_stop_at_the_moment_in_which_it_would_ask_does_not() -> None:
    """Rule 25: the request would leave with the last step, and make a voter of who is gone."""
    core, *_, again = refused_once()
    update = core.step(api.ShutdownRequested(Millis(9000)), again)
    assert not asked(update)
    assert api.ShutdownComplete() in update.effects
