"""The settings of a simulated process: what a properties file holds in production."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import RaftConfig
from quorate.records.ids import ClusterId, Millis
from quorate.records.voters import Endpoint

if TYPE_CHECKING:
    from quorate.records.ids import NodeId
    from quorate.sim.seen import Node, World

PORT: Final = 9094
CLUSTER_ID: Final = ClusterId("c2ltdWxhdGVkLXF1b3J1bQ")


def endpoint(node_id: NodeId, moves: int = 0) -> Endpoint:
    """Where a node listens after that many moves."""
    return Endpoint("GRPC", f"node-{node_id}", PORT + moves)


def bootstrap_name(node: Node) -> tuple[str, int]:
    """A name that is looked up anew each time, so that it holds wherever the node is."""
    return f"bootstrap-{node.node_id}", PORT


def is_lost(world: World, node: Node) -> bool:
    """Whether only its settings can lead this node to the others.

    Nobody calls who is no voter, and a log that is gone names none that have moved.
    """
    is_voter = any(node.is_voter(voter) for voter in world.oracle.voters_at(world.oracle.end))
    return not world.options.has_bootstrap_names and (node.is_healing or not is_voter)


def bootstrap_server(world: World, node: Node, other: Node) -> tuple[str, int]:
    """What the settings of a node have for another: its name, or where it was at first.

    Whoever mends a quorum after all faults writes into the settings of a lost one where the others
    are then.
    """
    if world.options.has_bootstrap_names:
        return bootstrap_name(other)
    at = endpoint(other.node_id)
    if world.is_calm and is_lost(world, node):
        at = other.endpoints[0]
    return at.host, at.port


def raft_config(world: World, node: Node) -> RaftConfig:
    """A core's settings, as the seed's options and the addresses of now say."""
    options = world.options
    own = node.endpoints[0]
    return RaftConfig(
        node_id=node.node_id,
        directory_id=node.directory_id,
        cluster_id=CLUSTER_ID,
        endpoints=node.endpoints,
        bootstrap_servers=tuple(
            (own.host, own.port) if other is node else bootstrap_server(world, node, other)
            for other in world.nodes.values()
        ),
        election_timeout_ms=Millis(options.election_timeout_ms),
        fetch_timeout_ms=Millis(options.fetch_timeout_ms),
        request_timeout_ms=Millis(options.fetch_timeout_ms),
        election_backoff_max_ms=Millis(options.election_timeout_ms),
        fetch_max_wait_ms=Millis(options.fetch_timeout_ms // 4),
        fetch_max_bytes=options.fetch_max_bytes,
        fetch_snapshot_max_bytes=options.chunk_bytes,
        auto_join=options.auto_join,
    )
