"""Addresses of the nodes, and moves to new ones from a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.engine.node_config import bootstrap_name, endpoint

if TYPE_CHECKING:
    from quorate.raft.api import Peer
    from quorate.records.ids import NodeId
    from quorate.records.voters import Endpoint
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.randomness import RandomStreams


class AddressPool:
    """The node at each address of one cluster."""

    def __init__(self, random_streams: RandomStreams) -> None:
        self._random_streams = random_streams
        self._nodes: dict[tuple[str, int], NodeId] = {}
        self._free: list[tuple[Endpoint, ...]] = []

    def of(self, peer: Peer) -> NodeId | None:
        """The node that answers at this address; None if no node does."""
        return self._nodes.get((peer.host, peer.port))

    def add(self, node: SimulatedNode) -> None:
        """Let a node answer at its endpoints and at its bootstrap name."""
        self._nodes[bootstrap_name(node)] = node.node_id
        self._listen(node)

    def move(self, node: SimulatedNode) -> None:
        """Give a node whose process is down another address, which another node may have had.

        No node answers at the old address until it is assigned again.
        """
        for listener in node.endpoints:
            del self._nodes[listener.host, listener.port]
        node.moves += 1
        free = node.endpoints
        node.endpoints = (endpoint(node.node_id, node.moves),)
        if self._free and self._random_streams.chance(0.3, "addresses"):
            at = int(self._random_streams.stream("addresses").random() * len(self._free))
            node.endpoints = self._free.pop(at)
        self._free.append(free)
        self._listen(node)

    def _listen(self, node: SimulatedNode) -> None:
        for listener in node.endpoints:
            self._nodes[listener.host, listener.port] = node.node_id
