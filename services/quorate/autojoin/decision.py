"""Pure decision function: desired state and observation in, one action or a wait out.

After a crash, the same cluster state gives the same decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.autojoin.actions import Action, NextStep, StepCause, Wait, Waiting, WriteRecord
from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.autojoin.membership_actions import membership_steps, remembered, with_lost
from quorate.autojoin.quorum_view import View
from quorate.autojoin.rolling_update import broken_steps, roll_steps
from quorate.autojoin.unsettled_pods import ending_pods, unsettled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.autojoin.state import Desired, Memory, Observed
    from quorate.raft.messages import DescribeQuorumResponse


def decide(desired: Desired, seen: Observed) -> NextStep:
    """Decide the next step, and collect all reasons to wait."""
    memory = seen.memory
    if seen.quorum is not None:
        memory = remembered(desired, seen, seen.quorum)
    waits: list[Wait] = []
    for step in _steps(desired, seen, memory):
        if not isinstance(step, Wait):
            return NextStep(step, tuple(waits), with_lost(memory, step))
        if step not in waits:
            waits.append(step)
    if not waits:
        waits = list(unsettled(desired, seen))
    if not waits:
        voters = 0 if seen.quorum is None else len(seen.quorum.voters)
        waits = [Wait(Waiting.IN_STEP, f"{voters} voters, {desired.replicas} replicas")]
    return NextStep(waits[0], tuple(waits), memory)


def _steps(desired: Desired, seen: Observed, memory: Memory) -> Iterator[Action | Wait]:
    halt = _why_hands_off(desired)
    if halt is not None:
        yield halt
        if halt.why is Waiting.NO_REPLICAS:
            yield from ending_pods(desired, seen)
        return
    yield from broken_steps(desired, seen)
    quorum = seen.quorum
    if quorum is None:
        yield Wait(Waiting.NO_LEADER, seen.silence or "nobody leads the quorum")
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
            Waiting.KRAFT_VERSION_TOO_OLD,
            "the voters stand in the settings at kraft.version 0: raise it to 1 "
            "(quorate features upgrade --feature kraft.version=1)",
        )
    else:
        yield from membership_steps(view, memory)
    yield from roll_steps(view)


def _why_hands_off(desired: Desired) -> Wait | None:
    """The user's request that leaves the operator nothing to do, or None."""
    name = desired.stateful_set
    if desired.is_going:
        return Wait(Waiting.GOING, f"StatefulSet {name} is being deleted: its voters stay")
    if desired.is_paused:
        return Wait(Waiting.PAUSED, f"StatefulSet {name} says that it is paused")
    if desired.replicas < 1:
        return Wait(Waiting.NO_REPLICAS, f"StatefulSet {name} wants no replicas: its voters stay")
    return None


def _why_unclear(seen: Observed, quorum: DescribeQuorumResponse) -> Wait | None:
    """The condition that must pass before this answer can be used, or None."""
    clusters = {pod.cluster_id: pod.name for pod in seen.pods if pod.cluster_id is not None}
    if seen.record is not None:
        clusters.setdefault(seen.record.cluster_id, "the bootstrap record")
    if len(clusters) > 1:
        words = ", ".join(f"{name} says {cluster}" for cluster, name in sorted(clusters.items()))
        return Wait(
            Waiting.OTHER_CLUSTER, f"there are several cluster ids: {words}; nothing is touched"
        )
    if not clusters:
        reasons = "; ".join(f"{pod.name}: {pod.silence}" for pod in seen.pods if pod.silence)
        text = "no pod has said to which cluster it belongs"
        return Wait(Waiting.POD_SILENT, f"{text}: {reasons}" if reasons else text)
    if quorum.uncommitted_voter_change is not None:
        change = quorum.uncommitted_voter_change
        return Wait(
            Waiting.CHANGE_IN_FLIGHT,
            f"{change.kind.value} of voter {change.voter.key} is in the log and not committed yet",
        )
    if quorum.high_watermark is None:
        return Wait(
            Waiting.HIGH_WATERMARK_UNKNOWN, "the leader has committed nothing in its epoch yet"
        )
    return None


def _first_record(seen: Observed, quorum: DescribeQuorumResponse) -> Action | Wait:
    cluster_id = next(pod.cluster_id for pod in seen.pods if pod.cluster_id is not None)
    first = min((state.key for state in quorum.voters), key=lambda key: key.node_id)
    text = f"cluster {cluster_id} exists, and {first} is a voter of it"
    return WriteRecord(BootstrapRecord(cluster_id, first), StepCause.FIRST_VOTER, text)
