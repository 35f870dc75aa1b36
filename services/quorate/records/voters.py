"""The voter set as a value: who votes, under which directory id, reachable where.

KRaftVotersRecord carries it (KIP-853); endpoints are a list of (listener name, host, port) so that
a voter can be reached by gRPC under one name and by Kafka's own protocol under another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.records.ids import NodeId, ReplicaKey


KRAFT_VERSION: Final = "kraft.version"
# What this release supports: static voters (0), and voters in the log (1, KIP-853).
KRAFT_VERSION_MIN: Final = 0
KRAFT_VERSION_MAX: Final = 1
DECOMMISSIONED_MAX: Final = 64


@value_type
class Endpoint:
    """One listener of a node: `name` is the listener's, upper case by Kafka's convention."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{self.host}:{self.port}"


@value_type
class Voter:
    """One voter: its key, its listeners in order, and the kraft.versions that it supports."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    kraft_version_min: int = KRAFT_VERSION_MIN
    kraft_version_max: int = KRAFT_VERSION_MAX

    def endpoint(self, listener_name: str) -> Endpoint | None:
        """The listener of that name, or None when this voter does not have it."""
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return endpoint
        return None


@value_type
class VoterSet:
    """All voters, ordered by node id; a node id occurs once (KIP-853 as shipped).

    `decommissioned` are the latest that were removed, oldest first: they must not come back by
    themselves (rule 7). The list travels with the set, through the log and through snapshots.
    """

    voters: tuple[Voter, ...] = ()
    decommissioned: tuple[ReplicaKey, ...] = ()

    def __post_init__(self) -> None:
        ids = [voter.key.node_id for voter in self.voters]
        if ids != sorted(set(ids)):
            raise ValueError(f"voters must be ordered by node id, each once: {ids}")

    @classmethod
    def of(cls, voters: Iterable[Voter], decommissioned: tuple[ReplicaKey, ...] = ()) -> VoterSet:
        """The set of these voters, brought into order."""
        return cls(tuple(sorted(voters, key=lambda voter: voter.key.node_id)), decommissioned)

    def __len__(self) -> int:
        return len(self.voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters)

    def __contains__(self, key: ReplicaKey) -> bool:
        return self.voter(key) is not None

    @property
    def ids(self) -> list[int]:
        """The node ids of these voters, for people."""
        return [int(voter.key.node_id) for voter in self.voters]

    @property
    def majority(self) -> int:
        """Number of voters in a majority of this set."""
        return len(self.voters) // 2 + 1

    def by_id(self, node_id: NodeId) -> Voter | None:
        """The voter of that node id, whatever its directory."""
        for voter in self.voters:
            if voter.key.node_id == node_id:
                return voter
        return None

    def voter(self, key: ReplicaKey) -> Voter | None:
        """The voter that this key names.

        A directory id missing in the set matches any (kraft.version 0 has none); one that is known
        matches only itself, so that a re-formatted disk is somebody else.
        """
        voter = self.by_id(key.node_id)
        if voter is None:
            return None
        if voter.key.directory_id is None or voter.key.directory_id == key.directory_id:
            return voter
        return None

    def with_voter(self, voter: Voter) -> VoterSet:
        """This set with `voter` added, or replaced where its node id is already here.

        A voter that is added is decommissioned no longer.
        """
        others = (v for v in self.voters if v.key.node_id != voter.key.node_id)
        gone = tuple(key for key in self.decommissioned if key != voter.key)
        return VoterSet.of((*others, voter), gone)

    def without(self, key: ReplicaKey, *, decommission: bool = True) -> VoterSet:
        """This set without the voter that `key` names, which is decommissioned from here on.

        Unless it may come back by itself.
        """
        if all(voter.key != key for voter in self.voters):
            return self
        left = tuple(v for v in self.voters if v.key != key)
        if not decommission:
            return VoterSet(left, self.decommissioned)
        gone = (*(other for other in self.decommissioned if other != key), key)
        return VoterSet(left, gone[-DECOMMISSIONED_MAX:])
