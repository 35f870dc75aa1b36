"""Results of a decision: an action with its cause, or a reason to wait."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.autojoin.bootstrap_record import BootstrapRecord
    from quorate.autojoin.state import PersistedState
    from quorate.records.ids import ReplicaKey


class StepCause(Enum):
    """The cause of an action."""

    FIRST_VOTER = "FirstVoter"
    SCALE_UP = "ScaleUp"
    SCALE_DOWN = "ScaleDown"
    GHOST = "Ghost"
    DISK_REPLACED = "DiskReplaced"
    LEADER_BEFORE_ROLL = "LeaderBeforeRoll"
    LEADER_BEFORE_SCALE_DOWN = "LeaderBeforeScaleDown"
    NOT_RUNNING = "NotRunning"
    NOT_READY = "NotReady"
    NEW_REVISION = "NewRevision"


class WaitReason(Enum):
    """The reason for which an action is not taken, or not yet."""

    IN_STEP = "InStep"
    PAUSED = "Paused"
    GOING = "StatefulSetGoing"
    NO_REPLICAS = "NoReplicas"
    NO_LEADER = "NoLeader"
    OTHER_CLUSTER = "OtherCluster"
    POD_SILENT = "PodSilent"
    POD_MISSING = "PodMissing"
    SAME_NODE_ID = "SameNodeId"
    CHANGE_IN_FLIGHT = "ChangeInFlight"
    HIGH_WATERMARK_UNKNOWN = "HighWatermarkUnknown"
    KRAFT_VERSION_TOO_OLD = "KRaftVersionTooOld"
    NO_LIVE_MAJORITY = "NoLiveMajority"
    LAST_VOTER = "LastVoter"
    GHOST_SEEN_ONCE = "GhostSeenOnce"
    TWO_DISKS_ALIVE = "TwoDisksAlive"
    DISK_RETURNED = "DiskReturned"
    OBSERVER_NOT_SEEN = "ObserverNotSeen"
    OBSERVER_LAGS = "ObserverLags"
    OBSERVER_REFUSED = "ObserverRefused"
    ADD_FIRST = "AddFirst"
    ROLLED_POD_NOT_BACK = "RolledPodNotBack"
    NO_CAUGHT_UP_MAJORITY = "NoCaughtUpMajority"
    NO_SUCCESSOR = "NoSuccessor"
    REVISION_UNKNOWN = "RevisionUnknown"
    OLD_REVISION = "OldRevision"
    POD_TERMINATING = "PodTerminating"
    POD_NOT_READY = "PodNotReady"


# Nothing is left to do; this includes a scale to zero.
AT_REST = frozenset({WaitReason.IN_STEP, WaitReason.NO_REPLICAS})


@value_type
class WriteRecord:
    """Record permanently that the quorum exists, so that no empty disk bootstraps a second one."""

    record: BootstrapRecord
    cause: StepCause
    text: str


@value_type
class AddVoter:
    """Make a caught-up observer a voter."""

    key: ReplicaKey
    cause: StepCause
    text: str


@value_type
class RemoveVoter:
    """Remove a voter from the voter set."""

    key: ReplicaKey
    cause: StepCause
    text: str


@value_type
class HandOver:
    """Transfer leadership to another voter."""

    to: ReplicaKey
    cause: StepCause
    text: str


@value_type
class DeletePod:
    """Delete a pod, so that its StatefulSet creates it again.

    The API server deletes it only if it still has this `uid` and this resource `version`.
    """

    name: str
    uid: str
    version: str
    cause: StepCause
    text: str


Action: TypeAlias = WriteRecord | AddVoter | RemoveVoter | HandOver | DeletePod


@value_type
class Wait:
    """Nothing to do, or nothing that may be done now; `text` is human-readable."""

    why: WaitReason
    text: str


@value_type
class Decision:
    """One step, all other reasons to wait, and the memory to save before the step."""

    step: Action | Wait
    waits: tuple[Wait, ...]
    persisted_state: PersistedState

    @property
    def is_in_step(self) -> bool:
        """True if voters and pods are as the StatefulSet wants them."""
        return isinstance(self.step, Wait) and all(each.why in AT_REST for each in self.waits)
