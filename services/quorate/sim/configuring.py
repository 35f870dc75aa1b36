"""The settings of a simulated process: what a properties file holds in production."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import RaftConfig
from quorate.records.ids import ClusterId, Millis
from quorate.records.voters import Endpoint

if TYPE_CHECKING:
    from quorate.records.ids import NodeId
    from quorate.sim.node import SimulatedNode

PORT: Final = 9094
CLUSTER_ID: Final = ClusterId("c2ltdWxhdGVkLXF1b3J1bQ")


def endpoint(node_id: NodeId, moves: int = 0) -> Endpoint:
    """Where a node listens after that many moves."""
    return Endpoint("GRPC", f"node-{node_id}", PORT + moves)


def bootstrap_name(node: SimulatedNode) -> tuple[str, int]:
    """A name that is looked up anew each time, so that it holds wherever the node is."""
    return f"bootstrap-{node.node_id}", PORT


def bootstrap_server(node: SimulatedNode) -> tuple[str, int]:
    """What the settings of the others have for a node: its name, or where it was at first."""
    if node.world.options.has_bootstrap_names:
        return bootstrap_name(node)
    first = endpoint(node.node_id)
    return first.host, first.port


def raft_config(node: SimulatedNode) -> RaftConfig:
    """A core's settings, as the seed's options and the addresses of now say."""
    options = node.world.options
    own = node.endpoints[0]
    return RaftConfig(
        node_id=node.node_id,
        directory_id=node.directory_id,
        cluster_id=CLUSTER_ID,
        endpoints=node.endpoints,
        bootstrap_servers=tuple(
            (own.host, own.port) if other is node else bootstrap_server(other)
            for other in node.world.nodes.values()
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
