"""Selects the next voter to add or remove, and reports what blocks it.

Each function yields its steps in the order in which they should be tried; the first that is
possible is done. Only one change is made at a time: the next observation decides what follows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.autojoin.actions import (
    Action,
    AddVoter,
    HandOver,
    RemoveVoter,
    StepCause,
    Wait,
    WaitReason,
)
from quorate.autojoin.quorum_view import View, majority
from quorate.autojoin.state import LOST_MAX, PersistedState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.autojoin.state import Desired, Observation, Pod
    from quorate.raft.messages import DescribeQuorumResponse, ReplicaState


def updated_state(
    desired: Desired, seen: Observation, quorum: DescribeQuorumResponse
) -> PersistedState:
    """Update the memory from this observation.

    If the clock went back, the time of an orphaned voter starts over. A disk that was noted as lost
    and turns out to be the voter's own is not lost.
    """
    view = View(desired, seen, quorum)
    before = seen.persisted_state
    ghosts = {}
    for state in quorum.voters:
        ordinal = view.ordinal_of(state)
        if ordinal is None or ordinal < desired.replicas or view.pod_at(ordinal) is not None:
            continue
        ghosts[state.key] = min(before.orphans.get(state.key, seen.now_ms), seen.now_ms)
    voters = {state.key for state in quorum.voters}
    own = {pod.key for pod in seen.pods if pod.key in voters}
    return PersistedState(ghosts, tuple(key for key in before.lost if key not in own))


def with_replaced_disk(persisted_state: PersistedState, step: Action | Wait) -> PersistedState:
    """The memory to save before this step: a disk that is replaced must never return."""
    if not isinstance(step, RemoveVoter) or step.cause is not StepCause.DISK_REPLACED:
        return persisted_state
    lost = [key for key in persisted_state.lost if key != step.key]
    return replace(persisted_state, lost=(*lost, step.key)[-LOST_MAX:])


def membership_steps(view: View, persisted_state: PersistedState) -> Iterator[Action | Wait]:
    """Replaced disks first, then voters to remove, then voters to add."""
    yield from _replaced_disks(view, persisted_state)
    yield from _departures(view, persisted_state)
    yield from _arrivals(view, persisted_state)


def _removal(view: View, state: ReplicaState, cause: StepCause, text: str) -> RemoveVoter | Wait:
    """The removal, if the remaining voters can continue without this one."""
    left = view.without(state.key)
    if not left:
        return Wait(
            WaitReason.LAST_VOTER,
            f"voter {state.key} is the last one: another has to be added before it can go",
        )
    live, needed = view.count_live(left), majority(len(left))
    if live < needed:
        return Wait(
            WaitReason.NO_LIVE_MAJORITY,
            f"voter {state.key} has to go ({text}), but of the {len(left)} that would be left "
            f"{live} follow the leader and {needed} are needed",
        )
    return RemoveVoter(state.key, cause, text)


def _replaced_disks(view: View, persisted_state: PersistedState) -> Iterator[Action | Wait]:
    for pod in view.pods:
        if pod.key is None or pod.is_deleting or pod.ordinal >= view.desired.replicas:
            continue
        old = view.voter(pod.key.node_id)
        if old is None or old.key == pod.key:
            continue
        if pod.key in persisted_state.lost:
            yield _returned(pod)
        elif view.is_live(old):
            yield Wait(
                WaitReason.TWO_DISKS_ALIVE,
                f"pod {pod.name} says that it is {pod.key}, while voter {old.key} follows the "
                "leader: two processes may have one node id",
            )
        elif (why := _why_behind(view, pod)) is not None:
            yield why
        else:
            text = f"pod {pod.name} has a new disk, {pod.key}"
            yield _removal(view, old, StepCause.DISK_REPLACED, text)


def _returned(pod: Pod) -> Wait:
    return Wait(
        WaitReason.DISK_RETURNED,
        f"pod {pod.name} came back with the disk {pod.key}, which was replaced before and may have "
        "forgotten what it promised: delete its claim and the pod, so that it begins with an "
        "empty disk",
    )


def _why_behind(view: View, pod: Pod) -> Wait | None:
    """The reason for which this pod's log is not ready for a voter, or None."""
    assert pod.key is not None
    observer = view.observer(pod.key)
    if observer is None:
        return Wait(
            WaitReason.OBSERVER_NOT_SEEN,
            f"pod {pod.name} ({pod.key}) does not fetch from the leader",
        )
    if not view.is_caught_up(observer):
        return Wait(WaitReason.OBSERVER_LAGS, f"pod {pod.name} ({pod.key}) has not caught up yet")
    return None


def _departures(view: View, persisted_state: PersistedState) -> Iterator[Action | Wait]:
    """Voters beyond the replicas: from the highest ordinal down, the leader last."""
    going = []
    for state in view.quorum.voters:
        ordinal = view.ordinal_of(state)
        if ordinal is not None and ordinal >= view.desired.replicas:
            going.append((view.leads(state), -ordinal, state))
    for leads, negated, state in sorted(going, key=lambda each: each[:2]):
        pod = view.pod_at(-negated)
        if (
            pod is None
            and view.seen.now_ms - persisted_state.orphans[state.key] < view.desired.ghost_delay_ms
        ):
            yield Wait(
                WaitReason.GHOST_SEEN_ONCE,
                f"voter {state.key} is beyond the {view.desired.replicas} replicas and has no "
                f"pod: it goes when that is still so after {view.desired.ghost_delay_ms // 1000} s",
            )
            continue
        if _should_add_first(view, persisted_state, len(view.quorum.voters) - 1):
            yield Wait(
                WaitReason.ADD_FIRST,
                f"voter {state.key} goes when those that replace it are voters",
            )
            continue
        cause = StepCause.GHOST if pod is None else StepCause.SCALE_DOWN
        removal = _removal(view, state, cause, f"{view.desired.replicas} replicas are wanted")
        # The pod's own hook transfers leadership while it ends; before that, request it here.
        if isinstance(removal, RemoveVoter) and leads and pod is not None and not pod.is_deleting:
            yield _hand_over_from(view, state) or removal
        else:
            yield removal


def _should_add_first(view: View, persisted_state: PersistedState, left: int) -> bool:
    """True if a removal would leave few voters while another one can be added first."""
    if left >= majority(view.desired.replicas):
        return False
    return any(isinstance(step, AddVoter) for step in _arrivals(view, persisted_state))


def _hand_over_from(view: View, leader: ReplicaState) -> HandOver | None:
    def order(state: ReplicaState) -> tuple[int, int]:
        return view.transfer_rank(state.key), state.key.node_id

    for state in sorted(view.quorum.voters, key=order):
        ordinal = view.ordinal_of(state)
        stays = ordinal is None or ordinal < view.desired.replicas
        if state.key != leader.key and stays and view.is_caught_up(state):
            text = f"the leader {leader.key} is beyond the {view.desired.replicas} replicas"
            return HandOver(state.key, StepCause.LEADER_BEFORE_SCALE_DOWN, text)
    return None


def _arrivals(view: View, persisted_state: PersistedState) -> Iterator[Action | Wait]:
    """Pods within the replicas that are not voters yet, from the lowest ordinal up."""
    for ordinal in range(view.desired.replicas):
        pod = view.pod_at(ordinal)
        if pod is None:
            yield Wait(
                WaitReason.POD_MISSING, f"there is no pod {view.desired.stateful_set}-{ordinal}"
            )
        elif pod.is_deleting or view.voter_in(pod) is not None:
            continue
        elif pod.key is None:
            why = f": {pod.describe_error}" if pod.describe_error else ""
            yield Wait(WaitReason.POD_SILENT, f"pod {pod.name} has not said who it is{why}")
        elif any(other.key == pod.key for other in view.pods if other is not pod) or any(
            other.key is not None and other.key.node_id == pod.key.node_id
            for other in view.pods
            if other is not pod
        ):
            yield Wait(
                WaitReason.SAME_NODE_ID, f"pod {pod.name} has the node id of another, {pod.key}"
            )
        else:
            yield _arrival(view, persisted_state, pod)


def _arrival(view: View, persisted_state: PersistedState, pod: Pod) -> Action | Wait:
    assert pod.key is not None
    if pod.key in persisted_state.lost:
        return _returned(pod)
    behind = _why_behind(view, pod)
    if behind is not None:
        return behind
    observer = view.observer(pod.key)
    assert observer is not None
    if observer.obstacle is not None:
        return Wait(
            WaitReason.OBSERVER_REFUSED,
            f"pod {pod.name} ({pod.key}) may not be added: {observer.obstacle.value}, "
            f"{observer.obstacle_text}",
        )
    voters = view.quorum.voters
    live, needed = view.count_live(voters) + 1, majority(len(voters) + 1)
    if live < needed:
        return Wait(
            WaitReason.NO_LIVE_MAJORITY,
            f"pod {pod.name} ({pod.key}) could be added, but {live} of {len(voters) + 1} would "
            f"follow the leader and {needed} are needed",
        )
    text = f"pod {pod.name} has caught up, and {view.desired.replicas} replicas are wanted"
    return AddVoter(pod.key, StepCause.SCALE_UP, text)
