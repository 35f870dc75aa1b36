"""Members count as in step only if their pods are in step, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.autojoin.actions import Wait, WaitReason
from quorate.autojoin.decision import decide
from quorate.autojoin.state import Desired, Pod
from tests.unit.autojoin.looks import desired, look, pod, pods, quorum

UNSETTLED = {
    "the last pod of a roll hangs": (pod(2, revision="old", deleting=True), "PodTerminating"),
    "a pod is not ready": (pod(2, ready=False), "PodNotReady"),
    "a pod crashes": (pod(2, runs=False), "PodNotReady"),
    "a pod that was scaled away hangs": (pod(3, deleting=True), "PodTerminating"),
    "a pod beyond the replicas runs": (pod(3), "PodTerminating"),
}


@pytest.mark.parametrize("row", UNSETTLED.values(), ids=UNSETTLED)
def test_a_pod_that_is_not_as_it_is_to_be_is_waited_for(row: tuple[Pod, str]) -> None:
    odd, why = row
    decision = decide(desired(3), look(pods(3, odd), quorum(0, 1, 2)))
    assert isinstance(decision.step, Wait)
    assert decision.step.why.value == why
    assert odd.name in decision.step.text
    assert not decision.is_in_step


def test_the_voters_come_first() -> None:
    seen = look(pods(3, pod(2, ready=False)), quorum(0, 1))
    decision = decide(desired(3), seen)
    assert [each.why for each in decision.waits] == [WaitReason.OBSERVER_NOT_SEEN]


def test_a_spec_that_kubernetes_has_not_observed_has_an_unknown_revision() -> None:
    unseen = replace(desired(3), is_observed=False)
    decision = decide(unseen, look(pods(3), quorum(0, 1, 2)))
    assert [each.why for each in decision.waits] == [WaitReason.REVISION_UNKNOWN]
    assert not decision.is_in_step


def test_all_is_in_step() -> None:
    assert decide(desired(3), look(pods(3), quorum(0, 1, 2))).is_in_step


def test_a_scale_to_zero_is_in_step_once_the_pods_have_ended() -> None:
    none = desired(0)
    going = decide(none, look(pods(2), quorum(0, 1)))
    assert [each.why for each in going.waits] == [
        WaitReason.NO_REPLICAS,
        WaitReason.POD_TERMINATING,
        WaitReason.POD_TERMINATING,
    ]
    assert not going.is_in_step
    assert decide(none, look((), None)).is_in_step


def test_a_paused_stateful_set_is_not_in_step() -> None:
    paused = Desired(stateful_set="q", replicas=3, revision="new", is_paused=True)
    assert not decide(paused, look(pods(3), quorum(0, 1, 2))).is_in_step
