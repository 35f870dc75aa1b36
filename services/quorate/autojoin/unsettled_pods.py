"""Finds the pods that are not yet in step although the voters are.

A member is in step when its pod runs in the current revision and is ready, and deleted pods have
ended. Until then the operator has nothing to do, but the StatefulSet is not in its desired state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.autojoin.actions import Wait, WaitReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.autojoin.state import Desired, Observation


def unsettled(desired: Desired, seen: Observation) -> Iterator[Wait]:
    """Reasons to wait: an unobserved generation first, then each pod that is not in step."""
    if not desired.is_observed:
        yield Wait(
            WaitReason.REVISION_UNKNOWN,
            f"Kubernetes has not looked at the latest form of StatefulSet {desired.stateful_set} "
            "yet, or the StatefulSet is not of the release that this operator is of",
        )
        return
    yield from ending_pods(desired, seen)
    for pod in seen.pods:
        if pod.is_deleting or pod.ordinal >= desired.replicas:
            continue
        if pod.revision != desired.revision:
            yield Wait(
                WaitReason.OLD_REVISION,
                f"pod {pod.name} is of revision {pod.revision}, not {desired.revision}",
            )
        elif not pod.is_running:
            yield Wait(WaitReason.POD_NOT_READY, f"the controller of pod {pod.name} does not run")
        elif not pod.is_ready:
            yield Wait(WaitReason.POD_NOT_READY, f"pod {pod.name} is not ready")


def ending_pods(desired: Desired, seen: Observation) -> Iterator[Wait]:
    """Pods that are terminating and still exist."""
    for pod in seen.pods:
        if pod.is_deleting:
            yield Wait(
                WaitReason.POD_TERMINATING, f"pod {pod.name} is being deleted and has not ended"
            )
        elif pod.ordinal >= desired.replicas:
            text = f"pod {pod.name} is beyond the {desired.replicas} replicas and has not ended"
            yield Wait(WaitReason.POD_TERMINATING, text)
