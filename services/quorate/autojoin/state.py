"""What the operator is told: how the quorum should be, how it is, and what was noted before.

Everything that a decision rests on is in these values, so that it can be tested, and made again by
an operator that has just started.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import named_value, value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.autojoin.bootstrap_record import BootstrapRecord
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.records.ids import ClusterId, ReplicaKey

GHOST_DELAY_MS: Final = 60_000
FETCH_TIMEOUT_MS: Final = 2_000
LOST_MAX: Final = 64


@named_value
class Desired:
    """What the StatefulSet asks for: `replicas` voters, each pod of `revision`."""

    stateful_set: str
    replicas: int
    revision: str
    # Whether pods wait for somebody to delete them (OnDelete) before they change.
    rolls: bool = True
    # Kubernetes has looked at its latest form, which is the one that the operator came with.
    is_observed: bool = True
    is_paused: bool = False
    is_going: bool = False
    fetch_timeout_ms: int = FETCH_TIMEOUT_MS
    ghost_delay_ms: int = GHOST_DELAY_MS
    # The checksum of the pods that its release wrote; empty where none is written down.
    template: str = ""


@named_value
class Pod:
    """A pod of the StatefulSet. `key` and `cluster_id` are its own words, None while it is silent.

    `silence` is then the reason: a name that does not resolve, or a pod that has not answered yet.
    `version` is the API's resource version: a pod that changed since is not the one that was seen.
    """

    name: str
    ordinal: int
    uid: str
    version: str
    revision: str
    # Whether the controller's container runs: one that does not takes no part in the quorum.
    is_running: bool
    is_ready: bool
    is_deleting: bool
    key: ReplicaKey | None = None
    cluster_id: ClusterId | None = None
    silence: str = ""


@value
class Memory:
    """What has to outlive the operator: it is kept in the cluster.

    `ghosts` says since when voters beyond the replicas have had no pod. `lost` are the disks that
    were replaced, oldest first: what comes back under such an id has forgotten what it promised.
    """

    ghosts: Mapping[ReplicaKey, int] = field(default_factory=dict)
    lost: tuple[ReplicaKey, ...] = ()


@named_value
class Observed:
    """One look at the cluster. `quorum` is the leader's view, None while nobody leads."""

    now_ms: int
    pods: tuple[Pod, ...] = ()
    quorum: DescribeQuorumResponse | None = None
    # Why there is no view, for people.
    silence: str = ""
    record: BootstrapRecord | None = None
    memory: Memory = field(default_factory=Memory)
    # Voters that did not take over when they were last asked to, the latest last.
    passed_over: tuple[ReplicaKey, ...] = ()
