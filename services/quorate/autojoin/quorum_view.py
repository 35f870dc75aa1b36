"""Interprets an observation: live and caught-up voters, voters of each pod.

A voter belongs to the pod that reports its id, and otherwise to the pod that its listeners name.
An ordinal is never derived from a node id.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.autojoin.state import Desired, Observation, Pod
    from quorate.raft.messages import DescribeQuorumResponse, ReplicaState
    from quorate.records.ids import NodeId, ReplicaKey


def majority(voters: int) -> int:
    """The size of a majority of that many voters."""
    return voters // 2 + 1


class View:
    """The desired state next to a leader's description of the quorum."""

    def __init__(self, desired: Desired, seen: Observation, quorum: DescribeQuorumResponse) -> None:
        self.desired = desired
        self.seen = seen
        self.quorum = quorum
        self.pods = sorted(seen.pods, key=lambda pod: pod.ordinal)
        self._name = re.compile(re.escape(desired.stateful_set) + r"-(\d+)")

    @property
    def leader_id(self) -> NodeId | None:
        """The node that leads."""
        return self.quorum.leader.leader_id

    def transfer_rank(self, key: ReplicaKey) -> int:
        """Rank of this voter for a leadership transfer: those that did not take over come last."""
        passed_over = self.seen.passed_over
        return passed_over.index(key) + 1 if key in passed_over else 0

    def pod_at(self, ordinal: int) -> Pod | None:
        """The pod with that ordinal."""
        return next((pod for pod in self.pods if pod.ordinal == ordinal), None)

    def ordinal_of(self, state: ReplicaState) -> int | None:
        """The ordinal of the pod that this voter runs in; None for another StatefulSet's."""
        for pod in self.pods:
            if pod.key is not None and pod.key.node_id == state.key.node_id:
                return pod.ordinal
        for endpoint in state.endpoints:
            match = self._name.fullmatch(endpoint.host.partition(".")[0])
            if match is not None:
                return int(match[1])
        return None

    def voter_in(self, pod: Pod) -> ReplicaState | None:
        """The voter in this pod, with any directory id."""
        if pod.key is not None:
            return self.voter(pod.key.node_id)
        return next((s for s in self.quorum.voters if self.ordinal_of(s) == pod.ordinal), None)

    def voter(self, node_id: NodeId) -> ReplicaState | None:
        """The voter with that id."""
        return next((s for s in self.quorum.voters if s.key.node_id == node_id), None)

    def observer(self, key: ReplicaKey) -> ReplicaState | None:
        """The observer with exactly that disk."""
        return next((s for s in self.quorum.observers if s.key == key), None)

    def leads(self, state: ReplicaState) -> bool:
        """True if this voter is the leader."""
        return state.key.node_id == self.leader_id

    def is_live(self, state: ReplicaState) -> bool:
        """True if the voter has fetched from the leader recently."""
        return self.leads(state) or self._is_recent(state.last_fetch_ms)

    def is_caught_up(self, state: ReplicaState) -> bool:
        """True if the voter was fully caught up recently."""
        return self.leads(state) or self._is_recent(state.last_caught_up_ms)

    def _is_recent(self, at_ms: int | None) -> bool:
        return at_ms is not None and self.quorum.now_ms - at_ms < self.desired.fetch_timeout_ms

    def without(self, key: ReplicaKey) -> list[ReplicaState]:
        """The voters without this one."""
        return [state for state in self.quorum.voters if state.key != key]

    def count_live(self, states: Iterable[ReplicaState]) -> int:
        """The number of live voters among them."""
        return sum(map(self.is_live, states))
