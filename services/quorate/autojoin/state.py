"""Inputs of a decision: desired state, observed pods and quorum, persisted memory.

A decision depends only on these values, so that it can be tested, and repeated by an operator that
has just started.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.autojoin.bootstrap_record import BootstrapRecord
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.records.ids import ClusterId, ReplicaKey

GHOST_DELAY_MS: Final = 60_000
FETCH_TIMEOUT_MS: Final = 2_000
LOST_MAX: Final = 64


@keyword_value_type
class Desired:
    """The state that the StatefulSet requests: `replicas` voters, each pod of `revision`."""

    stateful_set: str
    replicas: int
    revision: str
    # Pods change only after the operator has deleted them (OnDelete).
    rolls: bool = True
    # Kubernetes has observed the latest generation, and the operator's release has written it.
    is_observed: bool = True
    is_paused: bool = False
    is_deleting: bool = False
    fetch_timeout_ms: int = FETCH_TIMEOUT_MS
    ghost_delay_ms: int = GHOST_DELAY_MS
    # The template checksum that its release wrote; empty if it wrote none.
    template: str = ""


@keyword_value_type
class Pod:
    """A pod of the StatefulSet. It reports `key` and `cluster_id`; None if it does not respond.

    `describe_error` is then the reason: its name does not resolve, or the pod has not answered yet.
    `version` is the API's resource version, which shows if the pod has changed since.
    """

    name: str
    ordinal: int
    uid: str
    version: str
    revision: str
    # The controller's container runs; otherwise the pod takes no part in the quorum.
    is_running: bool
    is_ready: bool
    is_deleting: bool
    key: ReplicaKey | None = None
    cluster_id: ClusterId | None = None
    describe_error: str = ""


@value_type
class PersistedState:
    """State that has to outlive the operator: it is kept in the cluster.

    `orphans` are voters beyond the replicas without a pod, each with the time since when. `lost`
    are replaced disks, oldest first: a replica that returns with such an id has lost its votes.
    """

    orphans: Mapping[ReplicaKey, int] = field(default_factory=dict)
    lost: tuple[ReplicaKey, ...] = ()


@keyword_value_type
class Observation:
    """One observation of the cluster. `quorum` is the leader's view, None without a leader."""

    now_ms: int
    pods: tuple[Pod, ...] = ()
    quorum: DescribeQuorumResponse | None = None
    # The reason for which there is no view, human-readable.
    describe_error: str = ""
    record: BootstrapRecord | None = None
    persisted_state: PersistedState = field(default_factory=PersistedState)
    # Voters that did not take over when they were last asked to, the latest last.
    passed_over: tuple[ReplicaKey, ...] = ()
