"""Properties files of simulated nodes, read and checked as in production."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from quorate.records.ids import ClusterId
from quorate.records.voters import Endpoint
from quorate.server.config import ControllerConfig, read_config

if TYPE_CHECKING:
    from quorate.records.ids import NodeId
    from quorate.records.voters import VoterSet
    from quorate.sim.sim_options import WorldOptions
    from quorate.sim.views import ClusterView, NodeView

LISTENER: Final = "GRPC"
PORT: Final = 9094
CLUSTER_ID: Final = ClusterId("c2ltdWxhdGVkLXF1b3J1bQ")
DATA_DIR: Final = "/data"
# The bytes of a record in a batch in addition to its value.
_OVERHEAD_BYTES: Final = 40
_NEVER: Final = 1 << 40


def endpoint(node_id: NodeId, moves: int = 0) -> Endpoint:
    """The endpoint of a node after that many moves."""
    return Endpoint(LISTENER, f"node-{node_id}", PORT + moves)


def bootstrap_name(node: NodeView) -> tuple[str, int]:
    """A name that is resolved for each connection, so that it stays valid when the node moves."""
    return f"bootstrap-{node.node_id}", PORT


def is_lost(world: ClusterView, node: NodeView) -> bool:
    """True if this node can discover the others only by its settings, which are outdated.

    No replica calls a node that is not a voter, and a lost log does not name the endpoints of nodes
    that have moved.
    """
    is_voter = any(node.is_voter(voter) for voter in world.oracle.voters_at(world.oracle.end))
    return not world.options.reach.has_bootstrap_names and not (node.is_intact and is_voter)


def bootstrap_server(world: ClusterView, node: NodeView, other: NodeView) -> tuple[str, int]:
    """The bootstrap server that a node's settings name for another: its name or first address.

    An operator who repairs a quorum after all faults writes the current addresses of the others
    into the settings of a lost node.
    """
    if world.options.reach.has_bootstrap_names:
        return bootstrap_name(other)
    at = endpoint(other.node_id)
    if world.is_calm and is_lost(world, node):
        at = other.endpoints[0]
    return at.host, at.port


def controller_config(
    world: ClusterView, node: NodeView, static_voters: VoterSet
) -> ControllerConfig:
    """All settings of a node, from the seed's options and the current addresses."""
    own = node.endpoints[0]
    servers = [
        (own.host, own.port) if other is node else bootstrap_server(world, node, other)
        for other in world.nodes.values()
    ]
    properties = {
        "node.id": str(node.node_id),
        "listeners": f"{LISTENER}://:{own.port}",
        "advertised.listeners": f"{LISTENER}://{own.host}:{own.port}",
        "health.port": "-1",
        "metrics.port": "-1",
        "metadata.log.dir": DATA_DIR,
        "controller.quorum.bootstrap.servers": ",".join(f"{host}:{port}" for host, port in servers),
        "controller.quorum.voters": ",".join(
            f"{voter.key.node_id}@{at.host}:{at.port}"
            for voter in static_voters
            for at in voter.endpoints
        ),
        **settings_of(world.options),
    }
    return _read(tuple(properties.items()))


@lru_cache(maxsize=64)
def _read(properties: tuple[tuple[str, str], ...]) -> ControllerConfig:
    return read_config(dict(properties), {})


def settings_of(options: WorldOptions) -> dict[str, str]:
    """The settings that all nodes of a cluster share."""
    timeouts, log = options.timeouts, options.log
    quorum = {
        "election.timeout.ms": timeouts.election_timeout_ms,
        "fetch.timeout.ms": timeouts.fetch_timeout_ms,
        "request.timeout.ms": timeouts.request_timeout_ms or timeouts.fetch_timeout_ms,
        "election.backoff.max.ms": timeouts.election_backoff_max_ms or timeouts.election_timeout_ms,
        "retry.backoff.ms": timeouts.retry_backoff_ms,
        "append.linger.ms": log.linger_ms,
        "fetch.max.bytes": log.fetch_max_bytes,
        "fetch.snapshot.max.bytes": log.chunk_bytes,
        "auto.join.enable": str(options.auto_join).lower(),
    }
    record_bytes = options.clients.record_bytes + _OVERHEAD_BYTES
    snapshot_bytes = log.snapshot_every_records * record_bytes
    storage = {
        "log.segment.bytes": log.segment_bytes,
        "max.retention.bytes": log.retention_bytes,
        "max.retention.ms": log.retention_ms,
        "log.max.record.bytes.between.snapshots": snapshot_bytes or _NEVER,
        "log.max.snapshot.interval.ms": log.snapshot_interval_ms,
        "log.free.bytes.min": 0,
    }
    return {
        **{f"controller.quorum.{name}": str(value) for name, value in quorum.items()},
        **{f"metadata.{name}": str(value) for name, value in storage.items()},
        "broker.session.timeout.ms": str(timeouts.session_timeout_ms),
    }
