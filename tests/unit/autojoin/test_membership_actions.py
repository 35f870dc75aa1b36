"""Voters are added and removed: one row for each failure that operators of quorums have had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.autojoin.actions import (
    AddVoter,
    HandOver,
    RemoveVoter,
    StepCause,
    WaitReason,
    WriteRecord,
)
from quorate.autojoin.decision import decide
from quorate.autojoin.state import Observation, PersistedState
from quorate.raft import messages as m
from quorate.records.ids import ClusterId
from quorate.records.voters import Voter
from tests.unit.autojoin.looks import (
    CLUSTER,
    LONG_AGO,
    NOW_MS,
    dead,
    desired,
    ghosts,
    key,
    later,
    look,
    pod,
    pods,
    quorum,
    state,
    summary,
)

ADDING = m.VoterChange(m.ChangeKind.ADD, Voter(key(3)))
UP = StepCause.SCALE_UP
DOWN = StepCause.SCALE_DOWN
LOST = StepCause.DISK_REPLACED

MEMBERSHIP = {
    "at rest": (3, look(pods(3), quorum(0, 1, 2)), (WaitReason.IN_STEP,)),
    "the first voter is recorded before anything else": (
        3,
        look(pods(3), quorum(0, observers=(1, 2)), record=None),
        (WriteRecord, CLUSTER, key(0), StepCause.FIRST_VOTER),
    ),
    "scale up adds one, from the lowest ordinal": (
        3,
        look(pods(3), quorum(0, observers=(2, 1))),
        (AddVoter, key(1), UP),
    ),
    "a crash after the add and before any note of it only goes on": (
        3,
        look(pods(3), quorum(0, 1, observers=(2,))),
        (AddVoter, key(2), UP),
    ),
    "one change at a time": (
        5,
        look(pods(5), quorum(0, 1, 2, 3, observers=(4,), pending=ADDING)),
        (WaitReason.CHANGE_IN_FLIGHT,),
    ),
    "no change before the leader has committed": (
        3,
        look(pods(3), quorum(0, 1, observers=(2,), high_watermark=None)),
        (WaitReason.HIGH_WATERMARK_UNKNOWN,),
    ),
    "an observer that lags is waited for": (
        3,
        look(pods(3), quorum(0, 1, observers=(state(2, caught_up=LONG_AGO),))),
        (WaitReason.OBSERVER_LAGS,),
    ),
    "an observer that the leader would refuse is waited for": (
        3,
        look(pods(3), quorum(0, 1, observers=(state(2, obstacle=m.Reason.VOTER_LAGGING),))),
        (WaitReason.OBSERVER_REFUSED,),
    ),
    "an observer that lags does not hold up the next": (
        3,
        look(pods(3), quorum(0, observers=(state(1, caught_up=LONG_AGO), 2))),
        (AddVoter, key(2), UP),
    ),
    "a pod that nobody has seen fetching is waited for": (
        3,
        look(pods(3), quorum(0, 1)),
        (WaitReason.OBSERVER_NOT_SEEN,),
    ),
    "a pod that does not say who it is is waited for": (
        3,
        look(pods(3, pod(2, disk=None)), quorum(0, 1, observers=(2,))),
        (WaitReason.POD_SILENT,),
    ),
    "an observer without a pod is nobody's": (
        2,
        look(pods(2), quorum(0, 1, observers=(7,))),
        (WaitReason.IN_STEP,),
    ),
    "nobody is added where that leaves no live majority": (
        4,
        look(pods(4), quorum(0, dead(1), dead(2), observers=(3,))),
        (WaitReason.NO_LIVE_MAJORITY,),
    ),
    "an add that makes a live majority": (
        3,
        look(pods(3), quorum(0, dead(1), observers=(2,))),
        (AddVoter, key(2), UP),
    ),
    "scale down removes the highest while its pod is there": (
        3,
        look(pods(3, pod(3, deleting=True), pod(4, deleting=True)), quorum(0, 1, 2, 3, 4)),
        (RemoveVoter, key(4), DOWN),
    ),
    "scale up and down before the join leaves an observer": (
        1,
        look(pods(1, pod(1, deleting=True)), quorum(0, observers=(1,))),
        (WaitReason.POD_TERMINATING,),
    ),
    "a removed voter that still runs is not added again": (
        3,
        look(pods(3, pod(3)), quorum(0, 1, 2, observers=(3,))),
        (WaitReason.POD_TERMINATING,),
    ),
    "the leader goes last": (
        3,
        look(pods(3, pod(3), pod(4)), quorum(0, 1, 2, 3, 4, leader=4)),
        (RemoveVoter, key(3), DOWN),
    ),
    "a leader that has to go hands over": (
        3,
        look(pods(3, pod(3)), quorum(0, 1, 2, 3, leader=3)),
        (HandOver, key(0), StepCause.LEADER_BEFORE_SCALE_DOWN),
    ),
    "a leader whose hook is at work is removed": (
        3,
        look(pods(3, pod(3, deleting=True)), quorum(0, 1, 2, 3, leader=3)),
        (RemoveVoter, key(3), DOWN),
    ),
    "a removal that leaves no live majority waits": (
        3,
        look(pods(3, pod(3)), quorum(0, dead(1), dead(2), 3)),
        (WaitReason.NO_LIVE_MAJORITY,),
    ),
    "the last voter stays": (
        1,
        look((pod(1), pod(0, disk=None)), quorum(1, leader=1)),
        (WaitReason.LAST_VOTER,),
    ),
    "who replaces comes before who goes": (
        3,
        look(pods(3, pod(3)), quorum(0, 3, observers=(1,))),
        (AddVoter, key(1), UP),
    ),
    "a ghost is not removed at first sight": (
        3,
        look(pods(3), quorum(0, 1, 2, dead(3))),
        (WaitReason.GHOST_SEEN_ONCE,),
    ),
    "a ghost is not removed a little later": (
        3,
        look(pods(3), quorum(0, 1, 2, dead(3)), persisted_state=ghosts(3, for_ms=59_999)),
        (WaitReason.GHOST_SEEN_ONCE,),
    ),
    "a ghost is removed when it is seen again": (
        3,
        look(pods(3), quorum(0, 1, 2, dead(3)), persisted_state=ghosts(3)),
        (RemoveVoter, key(3), StepCause.GHOST),
    ),
    "a ghost does not hold up an add": (
        3,
        look(pods(3), quorum(0, 1, dead(3), observers=(2,))),
        (AddVoter, key(2), UP),
    ),
    "a pod that is missing is waited for": (
        3,
        look(pods(2), quorum(0, 1, dead(2)), persisted_state=ghosts(2)),
        (WaitReason.POD_MISSING,),
    ),
    "a voter of another set is left alone": (
        3,
        look(
            pods(3),
            quorum(0, 1, 2, state(9, host="elsewhere-9.example")),
            persisted_state=ghosts(9),
        ),
        (WaitReason.IN_STEP,),
    ),
    "a new disk: the old voter goes first": (
        3,
        look(pods(3, pod(2, disk=1)), quorum(0, 1, dead(2), observers=(state(2, 1),))),
        (RemoveVoter, key(2), LOST),
    ),
    "a new disk: a crash between the two steps goes on with the add": (
        3,
        look(
            pods(3, pod(2, disk=1)),
            quorum(0, 1, observers=(state(2, 1), dead(2))),
            persisted_state=PersistedState(lost=(key(2),)),
        ),
        (AddVoter, key(2, 1), UP),
    ),
    "a new disk that fetches nothing yet": (
        3,
        look(pods(3, pod(2, disk=1)), quorum(0, 1, dead(2))),
        (WaitReason.OBSERVER_NOT_SEEN,),
    ),
    "a new disk that lags": (
        3,
        look(
            pods(3, pod(2, disk=1)),
            quorum(0, 1, dead(2), observers=(state(2, 1, caught_up=None),)),
        ),
        (WaitReason.OBSERVER_LAGS,),
    ),
    "a new disk while the old one still follows": (
        3,
        look(pods(3, pod(2, disk=1)), quorum(0, 1, 2, observers=(state(2, 1),))),
        (WaitReason.TWO_DISKS_ALIVE,),
    ),
    "two of five disks are new: one after the other": (
        5,
        look(
            pods(5, pod(3, disk=1), pod(4, disk=1)),
            quorum(0, 1, 2, dead(3), dead(4), observers=(state(3, 1), state(4, 1))),
        ),
        (RemoveVoter, key(3), LOST),
    ),
    "a new disk where no live majority would be left": (
        4,
        look(
            pods(4, pod(3, disk=1), pod(2, runs=False)),
            quorum(0, dead(1), dead(2), dead(3), observers=(state(3, 1),)),
        ),
        (WaitReason.NO_LIVE_MAJORITY,),
    ),
    "a disk that was replaced never comes back": (
        3,
        look(pods(3), quorum(0, 1, observers=(2,)), persisted_state=PersistedState(lost=(key(2),))),
        (WaitReason.DISK_RETURNED,),
    ),
    "a disk that was replaced does not replace its successor": (
        3,
        look(
            pods(3),
            quorum(0, 1, dead(2, 1), observers=(state(2),)),
            persisted_state=PersistedState(lost=(key(2),)),
        ),
        (WaitReason.DISK_RETURNED,),
    ),
    "no leader": (3, look(pods(3), None), (WaitReason.NO_LEADER,)),
    "a second cluster": (
        3,
        look(pods(3, pod(0, cluster_id=ClusterId("other"))), quorum(0)),
        (WaitReason.OTHER_CLUSTER,),
    ),
    "two clusters and no record": (
        3,
        look(pods(3, pod(0, cluster_id=ClusterId("other"))), quorum(0), record=None),
        (WaitReason.OTHER_CLUSTER,),
    ),
    "kraft.version 0 has no voters in the log": (
        3,
        look(pods(3), quorum(0, 1, observers=(2,), kraft_version=0)),
        (WaitReason.KRAFT_VERSION_TOO_OLD,),
    ),
    "two pods with one node id": (
        3,
        look(
            (pod(0), pod(1), replace(pod(2), key=key(7)), replace(pod(3), key=key(7))),
            quorum(0, 1, observers=(7,)),
        ),
        (WaitReason.SAME_NODE_ID,),
    ),
}


@pytest.mark.parametrize("row", MEMBERSHIP.values(), ids=MEMBERSHIP)
def test_membership(row: tuple[int, Observation, tuple[object, ...]]) -> None:
    replicas, seen, expected = row
    assert summary(decide(desired(replicas), seen).step) == expected


def test_a_ghost_is_noted_and_removed_a_minute_later() -> None:
    asked, seen = desired(3), look(pods(3), quorum(0, 1, 2, dead(3)))
    first = decide(asked, seen)
    assert first.persisted_state.orphans == {key(3): NOW_MS}
    second = later(asked, seen, first, 59_000)
    assert summary(second.step) == (WaitReason.GHOST_SEEN_ONCE,)
    third = later(asked, seen, second, 60_000)
    assert summary(third.step) == (RemoveVoter, key(3), StepCause.GHOST)


def test_a_ghost_that_is_wanted_again_is_forgotten() -> None:
    seen = look(pods(3), quorum(0, 1, 2, dead(3)), persisted_state=ghosts(3))
    assert decide(desired(4), seen).persisted_state.orphans == {}
    seen = look(pods(4), quorum(0, 1, 2, 3), persisted_state=ghosts(3))
    assert decide(desired(3), seen).persisted_state.orphans == {}


def test_a_clock_that_went_back_starts_a_ghosts_minute_anew() -> None:
    seen = look(pods(3), quorum(0, 1, 2, dead(3)), persisted_state=ghosts(3, for_ms=-3_600_000))
    assert decide(desired(3), seen).persisted_state.orphans == {key(3): NOW_MS}


def test_a_lost_disk_is_noted_before_its_voter_goes() -> None:
    seen = look(pods(3, pod(2, disk=1)), quorum(0, 1, dead(2), observers=(state(2, 1),)))
    assert decide(desired(3), seen).persisted_state.lost == (key(2),)


def test_a_disk_that_was_never_lost_is_forgotten() -> None:
    seen = look(pods(3), quorum(0, 1, 2), persisted_state=PersistedState(lost=(key(2),)))
    assert decide(desired(3), seen).persisted_state.lost == ()


def test_of_lost_disks_the_latest_are_kept() -> None:
    lost = tuple(key(2, disk) for disk in range(100, 164))
    seen = look(
        pods(3, pod(2, disk=1)),
        quorum(0, 1, dead(2), observers=(state(2, 1),)),
        persisted_state=PersistedState(lost=lost),
    )
    assert decide(desired(3), seen).persisted_state.lost == (*lost[1:], key(2))
