"""The voter set as a value: the voters, their directory ids and endpoints.

It is in the KRaftVotersRecord (KIP-853). Endpoints are a list of (listener name, host, port), so
that a voter can have one listener for gRPC and another for Kafka's own protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.records.ids import NodeId, ReplicaKey


KRAFT_VERSION: Final = "kraft.version"
# The kraft.versions that this release supports: static voters (0), voters in the log (1, KIP-853).
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
        """The listener of that name, or None if this voter does not have it."""
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return endpoint
        return None


@value_type
class VoterSet:
    """All voters, ordered by node id; a node id occurs once (KIP-853 as shipped).

    `decommissioned` has the latest removed voters, oldest first: they must not auto-join again
    (rule `decommissioned_voters`). The list is stored with the voter set in the log and in
    snapshots.
    """

    voters: tuple[Voter, ...] = ()
    decommissioned: tuple[ReplicaKey, ...] = ()

    def __post_init__(self) -> None:
        ids = [voter.key.node_id for voter in self.voters]
        if ids != sorted(set(ids)):
            raise ValueError(f"voters must be ordered by node id, each once: {ids}")

    @classmethod
    def of(cls, voters: Iterable[Voter], decommissioned: tuple[ReplicaKey, ...] = ()) -> VoterSet:
        """The voter set of these voters, which are sorted."""
        return cls(tuple(sorted(voters, key=lambda voter: voter.key.node_id)), decommissioned)

    def __len__(self) -> int:
        return len(self.voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters)

    def __contains__(self, key: ReplicaKey) -> bool:
        return self.voter(key) is not None

    @property
    def ids(self) -> list[int]:
        """The node ids of these voters, for messages."""
        return [int(voter.key.node_id) for voter in self.voters]

    @property
    def majority(self) -> int:
        """The number of voters in a majority of this voter set."""
        return len(self.voters) // 2 + 1

    def by_id(self, node_id: NodeId) -> Voter | None:
        """The voter of that node id, with any directory id."""
        for voter in self.voters:
            if voter.key.node_id == node_id:
                return voter
        return None

    def voter(self, key: ReplicaKey) -> Voter | None:
        """The voter with this key.

        A voter without a directory id matches any (kraft.version 0 has none). A known directory id
        matches only itself, so that a reformatted disk is a different replica.
        """
        voter = self.by_id(key.node_id)
        if voter is None:
            return None
        if voter.key.directory_id is None or voter.key.directory_id == key.directory_id:
            return voter
        return None

    def with_voter(self, voter: Voter) -> VoterSet:
        """This voter set with `voter` added, or replaced if its node id is already in it.

        The added voter is removed from the decommissioned ones.
        """
        others = (v for v in self.voters if v.key.node_id != voter.key.node_id)
        gone = tuple(key for key in self.decommissioned if key != voter.key)
        return VoterSet.of((*others, voter), gone)

    def without(self, key: ReplicaKey, *, decommission: bool = True) -> VoterSet:
        """This voter set without the voter of this key.

        It is listed as decommissioned, unless `decommission` is False: then it may auto-join again.
        """
        if all(voter.key != key for voter in self.voters):
            return self
        left = tuple(v for v in self.voters if v.key != key)
        if not decommission:
            return VoterSet(left, self.decommissioned)
        gone = (*(other for other in self.decommissioned if other != key), key)
        return VoterSet(left, gone[-DECOMMISSIONED_MAX:])
