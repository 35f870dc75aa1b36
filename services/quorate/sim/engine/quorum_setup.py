"""Formats the disks and starts the nodes of a cluster, as the seed's options require."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import DirectoryId, NodeId, Offset, ReplicaKey
from quorate.records.voters import Voter, VoterSet
from quorate.sim.engine.node import SimulatedNode
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.engine.storage import format_disk

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import Random
    from quorate.sim.cluster import Cluster


def build(cluster: Cluster, draws: Callable[[int], Random] | None = None) -> None:
    """Format every disk, then start every node: voters 1..n, observers after them.

    `draws` replaces the random stream of each core, by node id.
    """
    options = cluster.options
    total = options.voters + options.observers
    for number in range(1, total + 1):
        node = SimulatedNode(
            cluster, NodeId(number), DirectoryId(cluster.random_streams.directory_id(number))
        )
        if draws is not None:
            node.random = draws(number)
        if options.processes.drift_ppm:
            draw = cluster.random_streams.stream("clock", number).random
            node.drift_ppm = int((draw() * 2 - 1) * options.processes.drift_ppm)
            node.base_ms = int(draw() * 1_000_000)
        cluster.add_node(node)
    voters = VoterSet.of(
        Voter(node.key if options.kraft_version else ReplicaKey(node.node_id), node.endpoints)
        for node in cluster.nodes.values()
        if node.node_id <= options.voters
    )
    if options.kraft_version == 0:
        cluster.static_voters = voters
    cluster.oracle.voter_sets.append((Offset(0), voters))
    for node in cluster.nodes.values():
        is_first = options.kraft_version == 0
        first = None if is_first or node.key not in voters else voters
        format_node(node, first, is_first_bootstrap=is_first)
        node.start()


def format_node(
    node: SimulatedNode, voters: VoterSet | None, *, is_first_bootstrap: bool = False
) -> None:
    """Format a node's disk, with the first voters or to join as an observer.

    The format is not interrupted: an operator does not start a node whose format has failed.
    """
    disk = node.disk
    disk.aside(
        lambda: format_disk(
            disk,
            cluster_id=CLUSTER_ID,
            node_id=node.node_id,
            directory_id=node.directory_id,
            voters=voters,
            is_first_bootstrap=is_first_bootstrap,
        )
    )
    disk.settle()


def replace_disk(node: SimulatedNode, directory_id: DirectoryId) -> None:
    """Replace the disk by an empty one: the node must join again.

    At kraft.version 0 it is still the same voter, and its disk has no mark of a new quorum.
    """
    node.power_off()
    node.disk_fault = None
    node.replace_disk(directory_id)
    format_node(node, None)
