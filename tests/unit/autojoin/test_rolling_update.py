"""The order and the conditions in which pods are rolled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.autojoin.actions import (
    AddVoter,
    DeletePod,
    HandOver,
    StepCause,
    WaitReason,
)
from quorate.autojoin.decision import decide
from quorate.raft import messages as m
from quorate.records.voters import Voter
from tests.unit.autojoin.looks import (
    LONG_AGO,
    dead,
    desired,
    key,
    look,
    pod,
    pods,
    quorum,
    state,
    summary,
)

if TYPE_CHECKING:
    from quorate.autojoin.state import Observation

ADDING = m.VoterChange(m.ChangeKind.ADD, Voter(key(3)))
UP = StepCause.SCALE_UP
NEW = StepCause.NEW_REVISION
ALL_OLD = tuple(pod(each, revision="old") for each in range(3))

ROLLS = {
    "the highest follower first": (3, look(ALL_OLD, quorum(0, 1, 2)), (DeletePod, "q-2", NEW)),
    "the leader is not the first": (
        3,
        look(ALL_OLD, quorum(0, 1, 2, leader=2)),
        (DeletePod, "q-1", NEW),
    ),
    "the leader hands over to a voter that was rolled": (
        3,
        look(pods(3, pod(0, revision="old")), quorum(0, 1, 2)),
        (HandOver, key(1), StepCause.LEADER_BEFORE_ROLL),
    ),
    "who led is rolled when it follows": (
        3,
        look(pods(3, pod(0, revision="old")), quorum(0, 1, 2, leader=1)),
        (DeletePod, "q-0", NEW),
    ),
    "the unready one goes before the others": (
        3,
        look((*ALL_OLD[:1], pod(1, ready=False, revision="old"), ALL_OLD[2]), quorum(0, 1, 2)),
        (DeletePod, "q-1", StepCause.NOT_READY),
    ),
    "one that does not run needs no quorum": (
        3,
        look((ALL_OLD[0], ALL_OLD[1], pod(2, runs=False, revision="old")), None),
        (DeletePod, "q-2", StepCause.NOT_RUNNING),
    ),
    "a pod that was rolled and is not ready stops the roll": (
        3,
        look((*ALL_OLD[:2], pod(2, ready=False)), quorum(0, 1, 2)),
        (WaitReason.ROLLED_POD_NOT_BACK,),
    ),
    "a pod that was rolled and lags stops the roll": (
        3,
        look((*ALL_OLD[:2], pod(2)), quorum(0, 1, state(2, caught_up=LONG_AGO))),
        (WaitReason.ROLLED_POD_NOT_BACK,),
    ),
    "a pod that is being deleted stops the roll": (
        3,
        look((*ALL_OLD[:2], pod(2, revision="old", deleting=True)), quorum(0, 1, 2)),
        (WaitReason.ROLLED_POD_NOT_BACK,),
    ),
    "no roll without a caught-up majority": (
        3,
        look(ALL_OLD, quorum(0, state(1, caught_up=LONG_AGO), 2)),
        (DeletePod, "q-1", NEW),
    ),
    "no roll of the second of three that follow": (
        3,
        look((ALL_OLD[0], pod(1, runs=False), ALL_OLD[2]), quorum(0, dead(1), 2)),
        (WaitReason.ROLLED_POD_NOT_BACK,),
    ),
    "a single voter is rolled without a hand-over": (
        1,
        look(ALL_OLD[:1], quorum(0)),
        (DeletePod, "q-0", NEW),
    ),
    "of two the one that lags may go": (
        2,
        look(ALL_OLD[:2], quorum(0, state(1, caught_up=LONG_AGO))),
        (DeletePod, "q-1", NEW),
    ),
    "of two the one that leads stays while the other lags": (
        2,
        look((ALL_OLD[0], pod(1)), quorum(0, state(1, caught_up=LONG_AGO))),
        (WaitReason.ROLLED_POD_NOT_BACK,),
    ),
    "an unready leader stays while nobody else has everything": (
        2,
        look(
            (pod(0, ready=False, revision="old"), pod(1)),
            quorum(0, state(1, caught_up=LONG_AGO)),
        ),
        (WaitReason.NO_CAUGHT_UP_MAJORITY,),
    ),
    "of two the leader hands over": (
        2,
        look((ALL_OLD[0], pod(1)), quorum(0, 1)),
        (HandOver, key(1), StepCause.LEADER_BEFORE_ROLL),
    ),
    "an add comes before a roll": (
        3,
        look(ALL_OLD, quorum(0, 1, observers=(2,))),
        (AddVoter, key(2), UP),
    ),
    "nobody is rolled while a change is on its way": (
        3,
        look(ALL_OLD, quorum(0, 1, 2, pending=ADDING)),
        (WaitReason.CHANGE_IN_FLIGHT,),
    ),
    "pods beyond the replicas are not rolled": (
        2,
        look((*pods(2), ALL_OLD[2]), quorum(0, 1)),
        (WaitReason.POD_TERMINATING,),
    ),
    "a silent pod that runs is rolled as the voter that its listeners name": (
        3,
        look((*pods(2), pod(2, disk=None, revision="old")), quorum(0, 1, 2)),
        (DeletePod, "q-2", NEW),
    ),
}


@pytest.mark.parametrize("row", ROLLS.values(), ids=ROLLS)
def test_rolls(row: tuple[int, Observation, tuple[object, ...]]) -> None:
    replicas, seen, expected = row
    assert summary(decide(desired(replicas), seen).step) == expected


def test_a_rolling_update_is_left_to_kubernetes() -> None:
    asked = replace(desired(3), rolls=False)
    assert summary(decide(asked, look(ALL_OLD, quorum(0, 1, 2))).step) == (WaitReason.OLD_REVISION,)


def test_a_deletion_is_bound_to_the_pod_that_was_seen() -> None:
    seen = look((*pods(2), replace(pod(2, revision="old"), uid="u", version="77")), quorum(0, 1, 2))
    step = decide(desired(3), seen).step
    assert isinstance(step, DeletePod)
    assert (step.uid, step.version) == ("u", "77")
