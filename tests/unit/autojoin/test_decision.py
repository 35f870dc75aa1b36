"""Everything that a decision holds in addition to its one step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.autojoin.actions import (
    AddVoter,
    Wait,
    WaitReason,
)
from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.autojoin.decision import decide
from quorate.autojoin.state import Desired, PersistedState
from quorate.records.ids import ClusterId
from tests.unit.autojoin.looks import (
    LATELY,
    RECORD,
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

ALL_OLD = tuple(pod(each, revision="old") for each in range(3))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Desired(stateful_set="q", replicas=5, revision="new", is_paused=True), WaitReason.PAUSED),
        (Desired(stateful_set="q", replicas=1, revision="new", is_deleting=True), WaitReason.GOING),
        (Desired(stateful_set="q", replicas=0, revision="new"), WaitReason.NO_REPLICAS),
    ],
)
def test_hands_off(asked: Desired, why: WaitReason) -> None:
    seen = look(pods(3, pod(2, revision="old", runs=False)), quorum(0, 1, 2, observers=(3,)))
    assert summary(decide(asked, seen).step) == (why,)


def test_without_a_leader_nothing_is_forgotten() -> None:
    memory = PersistedState({key(3): 5}, (key(2),))
    assert decide(desired(3), look(pods(3), None, persisted_state=memory)).persisted_state == memory


def test_what_is_waited_for_is_told_beside_the_action() -> None:
    seen = look(pods(3), quorum(0, 1, dead(3), observers=(2,)))
    decision = decide(desired(3), seen)
    assert isinstance(decision.step, AddVoter)
    assert [wait.why for wait in decision.waits] == [WaitReason.GHOST_SEEN_ONCE]


def test_a_record_of_another_cluster_stops_everything() -> None:
    record = BootstrapRecord(ClusterId("before"), RECORD.first)
    seen = look(pods(3), quorum(0, observers=(state(1, fetched=LATELY),)), record=record)
    step = decide(desired(3), seen).step
    assert summary(step) == (WaitReason.OTHER_CLUSTER,)
    assert isinstance(step, Wait)
    assert "before" in step.text


def test_the_wait_for_a_silent_pod_says_what_came_of_asking_it() -> None:
    unresolved = "UNAVAILABLE: q-2.q-headless.ns.svc cannot be resolved: Name or service not known"
    silent = replace(pod(2, disk=None), describe_error=unresolved)
    step = decide(desired(3), look(pods(3, silent), quorum(0, 1, observers=(2,)))).step
    assert step == Wait(WaitReason.POD_SILENT, f"pod q-2 has not said who it is: {unresolved}")
    seen = look((silent,), quorum(2), record=None)
    step = decide(desired(3), seen).step
    told = f"no pod has said to which cluster it belongs: q-2: {unresolved}"
    assert step == Wait(WaitReason.POD_SILENT, told)
