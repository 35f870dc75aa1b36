"""Selects the next pod to restart during a rolling update, and checks that it is safe.

A pod whose controller does not run takes no part in the quorum, so it may be restarted any time. Of
the others, pods that are not ready come first, then followers, then the leader after a leadership
transfer. Each waits until a majority without it has caught up, and until restarted pods are back: a
release that does not start ends the update at its first pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.autojoin.actions import Action, DeletePod, HandOver, StepCause, Wait, WaitReason
from quorate.autojoin.quorum_view import View, majority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.autojoin.state import Desired, Observation, Pod
    from quorate.raft.messages import ReplicaState


def stale_pods(desired: Desired, seen: Observation) -> list[Pod]:
    """Pods that should have another revision."""
    if not desired.rolls:
        return []
    return [
        pod
        for pod in seen.pods
        if pod.ordinal < desired.replicas
        and pod.revision != desired.revision
        and not pod.is_deleting
    ]


def broken_steps(desired: Desired, seen: Observation) -> Iterator[Action]:
    """Pods of an old revision that do not run; they need no permission from the quorum."""
    for pod in stale_pods(desired, seen):
        if not pod.is_running:
            yield _deletion(pod, StepCause.NOT_RUNNING, "it does not run, and a new revision may")


def roll_steps(view: View) -> Iterator[Action | Wait]:
    """The pods of an old revision in the order in which they may be restarted."""
    running = [pod for pod in stale_pods(view.desired, view.seen) if pod.is_running]

    def order(pod: Pod) -> tuple[bool, bool, int]:
        return pod.is_ready, _leads(view, pod), -pod.ordinal

    back = list(_not_back(view))
    for pod in sorted(running, key=order):
        if pod.is_ready and back:
            yield from back
            return
        yield _roll(view, pod)


def _leads(view: View, pod: Pod) -> bool:
    voter = view.voter_in(pod)
    return voter is not None and view.leads(voter)


def _not_back(view: View) -> Iterator[Wait]:
    for ordinal in range(view.desired.replicas):
        pod = view.pod_at(ordinal)
        if pod is not None and not pod.is_deleting and pod.revision != view.desired.revision:
            continue
        voter = None if pod is None else view.voter_in(pod)
        if pod is None or voter is None or voter.key != pod.key or not _is_sound(view, voter):
            yield Wait(
                WaitReason.ROLLED_POD_NOT_BACK,
                f"pod {view.desired.stateful_set}-{ordinal} is new and not yet ready as a voter "
                "that has caught up: no other is rolled before",
            )


def _is_sound(view: View, voter: ReplicaState) -> bool:
    """True if the quorum can rely on this voter now.

    The leader reports a voter as caught up for a while after it has exited, so a recently restarted
    pod has to be ready as well. A pod of an old revision does not: its successor may fix that.
    """
    ordinal = view.ordinal_of(voter)
    if ordinal is None:
        return view.is_caught_up(voter)
    pod = view.pod_at(ordinal)
    if pod is None or pod.is_deleting or not pod.is_running or not view.is_caught_up(voter):
        return False
    return pod.is_ready or pod.revision != view.desired.revision


def _deletion(pod: Pod, cause: StepCause, text: str) -> DeletePod:
    return DeletePod(pod.name, pod.uid, pod.version, cause, text)


def _roll(view: View, pod: Pod) -> Action | Wait:
    voter = view.voter_in(pod)
    why = _why_needed(view, voter, pod) if voter is not None else None
    if why is not None:
        return why
    if voter is not None and view.leads(voter) and len(view.quorum.voters) > 1:
        return _hand_over_from(view, voter, pod)
    cause = StepCause.NEW_REVISION if pod.is_ready else StepCause.NOT_READY
    return _deletion(pod, cause, f"its revision is {pod.revision}, not {view.desired.revision}")


def _why_needed(view: View, voter: ReplicaState, pod: Pod) -> Wait | None:
    """The reason for which the quorum needs this voter for now, or None.

    A quorum of one or two voters cannot write while one is stopped. Of two, one may be stopped if
    the other has caught up.
    """
    others = view.without(voter.key)
    caught_up = sum(_is_sound(view, state) for state in others)
    needed = min(len(others), majority(len(others) + 1))
    if caught_up >= needed:
        return None
    return Wait(
        WaitReason.NO_CAUGHT_UP_MAJORITY,
        f"pod {pod.name} has to be rolled, but without it {caught_up} of {len(others) + 1} voters "
        f"have caught up and {needed} are needed",
    )


def _hand_over_from(view: View, leader: ReplicaState, leaving: Pod) -> Action | Wait:
    """Transfer leadership to a caught-up voter; a restarted one need not transfer it again.

    The leader may not reach a voter that just failed to take over: others are asked first.
    """
    successors = []
    for state in view.without(leader.key):
        ordinal = view.ordinal_of(state)
        pod = None if ordinal is None else view.pod_at(ordinal)
        if not _is_sound(view, state):
            continue
        is_fresh = pod is not None and pod.revision == view.desired.revision
        successors.append(
            (view.transfer_rank(state.key), not is_fresh, state.key.node_id, state.key)
        )
    if not successors:
        return Wait(
            WaitReason.NO_SUCCESSOR, f"nobody has caught up who could lead for {leaving.name}"
        )
    text = f"pod {leaving.name} leads and has to be rolled"
    return HandOver(
        min(successors, key=lambda each: each[:3])[3], StepCause.LEADER_BEFORE_ROLL, text
    )
