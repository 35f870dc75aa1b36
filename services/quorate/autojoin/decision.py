"""Pure decision function: desired state and observation in, one action or a wait out.

After a crash, the same cluster state gives the same decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.autojoin.actions import Action, Decision, StepCause, Wait, WaitReason, WriteRecord
from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.autojoin.membership_actions import membership_steps, updated_state, with_replaced_disk
from quorate.autojoin.quorum_view import View
from quorate.autojoin.rolling_update import broken_steps, roll_steps
from quorate.autojoin.unsettled_pods import ending_pods, unsettled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.autojoin.state import Desired, Observation, PersistedState
    from quorate.raft.messages import DescribeQuorumResponse


def decide(desired: Desired, seen: Observation) -> Decision:
    """Decide the next step, and collect all reasons to wait."""
    memory = seen.persisted_state
    if seen.quorum is not None:
        memory = updated_state(desired, seen, seen.quorum)
    waits: list[Wait] = []
    for step in _steps(desired, seen, memory):
        if not isinstance(step, Wait):
            return Decision(step, tuple(waits), with_replaced_disk(memory, step))
        if step not in waits:
            waits.append(step)
    if not waits:
        waits = list(unsettled(desired, seen))
    if not waits:
        voters = 0 if seen.quorum is None else len(seen.quorum.voters)
        waits = [Wait(WaitReason.IN_STEP, f"{voters} voters, {desired.replicas} replicas")]
    return Decision(waits[0], tuple(waits), memory)


def _steps(
    desired: Desired, seen: Observation, persisted_state: PersistedState
) -> Iterator[Action | Wait]:
    halt = _why_hands_off(desired)
    if halt is not None:
        yield halt
        if halt.why is WaitReason.NO_REPLICAS:
            yield from ending_pods(desired, seen)
        return
    yield from broken_steps(desired, seen)
    quorum = seen.quorum
    if quorum is None:
        yield Wait(WaitReason.NO_LEADER, seen.describe_error or "nobody leads the quorum")
        return
    unclear = _why_unclear(seen, quorum)
    if unclear is not None:
        yield unclear
        return
    if seen.record is None:
        yield _first_record(seen, quorum)
        return
    view = View(desired, seen, quorum)
    if quorum.kraft_version < 1:
        yield Wait(
            WaitReason.KRAFT_VERSION_TOO_OLD,
            "at kraft.version 0 the voter set is in the settings: raise it to 1 "
            "(quorate features upgrade --feature kraft.version=1)",
        )
    else:
        yield from membership_steps(view, persisted_state)
    yield from roll_steps(view)


def _why_hands_off(desired: Desired) -> Wait | None:
    """The user's request that leaves the operator nothing to do, or None."""
    name = desired.stateful_set
    if desired.is_deleting:
        return Wait(WaitReason.GOING, f"StatefulSet {name} is being deleted: its voters stay")
    if desired.is_paused:
        return Wait(WaitReason.PAUSED, f"StatefulSet {name} says that it is paused")
    if desired.replicas < 1:
        return Wait(
            WaitReason.NO_REPLICAS, f"StatefulSet {name} wants no replicas: its voters stay"
        )
    return None


def _why_unclear(seen: Observation, quorum: DescribeQuorumResponse) -> Wait | None:
    """The reason for which this description of the quorum cannot be used yet, or None."""
    clusters = {pod.cluster_id: pod.name for pod in seen.pods if pod.cluster_id is not None}
    if seen.record is not None:
        clusters.setdefault(seen.record.cluster_id, "the bootstrap record")
    if len(clusters) > 1:
        words = ", ".join(f"{name} says {cluster}" for cluster, name in sorted(clusters.items()))
        return Wait(
            WaitReason.OTHER_CLUSTER, f"there are several cluster ids: {words}; nothing is touched"
        )
    if not clusters:
        reasons = "; ".join(
            f"{pod.name}: {pod.describe_error}" for pod in seen.pods if pod.describe_error
        )
        text = "no pod has said to which cluster it belongs"
        return Wait(WaitReason.POD_SILENT, f"{text}: {reasons}" if reasons else text)
    if quorum.uncommitted_voter_change is not None:
        change = quorum.uncommitted_voter_change
        return Wait(
            WaitReason.CHANGE_IN_FLIGHT,
            f"{change.kind.value} of voter {change.voter.key} is in the log and not committed yet",
        )
    if quorum.high_watermark is None:
        return Wait(
            WaitReason.HIGH_WATERMARK_UNKNOWN, "the leader has committed nothing in its epoch yet"
        )
    return None


def _first_record(seen: Observation, quorum: DescribeQuorumResponse) -> Action | Wait:
    cluster_id = next(pod.cluster_id for pod in seen.pods if pod.cluster_id is not None)
    first = min((state.key for state in quorum.voters), key=lambda key: key.node_id)
    text = f"cluster {cluster_id} exists, and {first} is a voter of it"
    return WriteRecord(BootstrapRecord(cluster_id, first), StepCause.FIRST_VOTER, text)
