"""Simulated network: delay, loss, duplication, reordering, partitions, by the seed's options.

It only decides when the copies of a message arrive. The cluster knows which nodes run and which
refuse connections.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quorate.records.ids import CallId, NodeId
    from quorate.sim.randomness import RandomStreams


@keyword_value_type
class NetworkOptions:
    """Delays in microseconds, probabilities per message."""

    delay_us: int = 500
    jitter_us: int = 0
    slow_rate: float = 0.0
    slow_us: int = 0
    loss_rate: float = 0.0
    duplication_rate: float = 0.0


@value_type
class PeerCaller:
    """The caller of a request: one call by one process of a node."""

    node_id: NodeId
    incarnation: int
    call: CallId


class PartitionShape(Enum):
    """The form of a partition: one node from all others, two halves, one link, or one direction."""

    ISOLATE = "one node from the others"
    HALVES = "two halves"
    LINK = "one link"
    DEAF = "one node hears nobody"
    MUTE = "nobody hears one node"
    ONE_WAY_LINK = "one direction of one link"


@dataclass(slots=True, eq=False)
class Hold:
    """Messages of some kinds that a node sends and that are delayed; `left` more will be."""

    source: NodeId
    kinds: tuple[type, ...]
    left: int
    held: list[tuple[NodeId, Callable[[], None]]] = field(default_factory=list)


@dataclass(slots=True)
class Network:
    """Reachability between nodes, and message delays."""

    options: NetworkOptions
    random_streams: RandomStreams
    blocked: dict[tuple[NodeId, NodeId], None] = field(default_factory=dict)
    holds: list[Hold] = field(default_factory=list)
    _were_blocked: dict[tuple[NodeId, NodeId], None] = field(default_factory=dict)

    def can_reach(self, source: NodeId, target: NodeId) -> bool:
        """True if messages from `source` can reach `target`."""
        return (source, target) not in self.blocked

    def is_open(self, one: NodeId, other: NodeId) -> bool:
        """True if both directions work, as a TCP connection needs."""
        return self.can_reach(one, other) and self.can_reach(other, one)

    def delay(self, source: NodeId, target: NodeId) -> int:
        """The delay of one message, in microseconds."""
        options = self.options
        delay = options.delay_us
        if options.jitter_us or options.slow_rate:
            draw = self.random_streams.stream("way", source, target).random
            delay += int(draw() * options.jitter_us)
            if options.slow_rate and draw() < options.slow_rate:
                delay += int(draw() * options.slow_us)
        return delay

    def deliveries(self, source: NodeId, target: NodeId) -> list[int]:
        """The delays of the copies of one message; empty if it is lost."""
        if (source, target) in self.blocked:
            return []
        if self.random_streams.chance(self.options.loss_rate, "loss", source, target):
            return []
        delays = [self.delay(source, target)]
        if self.random_streams.chance(self.options.duplication_rate, "copies", source, target):
            delays.append(self.delay(source, target) + self.delay(source, target))
        return delays

    def holds_back(
        self, source: NodeId, target: NodeId, message: object, arrive: Callable[[], None]
    ) -> bool:
        """Hold the message if a hold applies to it, until its release; True if one does."""
        for hold in self.holds:
            if hold.left and hold.source == source and isinstance(message, hold.kinds):
                hold.left -= 1
                hold.held.append((target, arrive))
                self._were_blocked[source, target] = None
                return True
        return False

    def release(self, hold: Hold) -> None:
        """Deliver all messages that it holds, and remove it."""
        self.holds.remove(hold)
        for target, arrive in hold.held:
            self._were_blocked[hold.source, target] = None
            arrive()

    def heal(self) -> None:
        """Restore all links."""
        self._were_blocked.update(self.blocked)
        self.blocked.clear()

    def take_cut(self) -> dict[tuple[NodeId, NodeId], None]:
        """The links that were cut at any time since the last call."""
        were, self._were_blocked = self._were_blocked, {}
        return were | self.blocked

    def calm_down(self) -> None:
        """Stop all faults: restore the links, and lose, duplicate or delay no message any more."""
        self.heal()
        self.options = NetworkOptions(delay_us=self.options.delay_us)

    def isolate(self, node: NodeId, others: list[NodeId]) -> None:
        """Cut all links between one node and the others, in both directions."""
        for other in others:
            if other != node:
                self.blocked[node, other] = None
                self.blocked[other, node] = None

    def split(self, shape: PartitionShape, those: Sequence[NodeId], nodes: list[NodeId]) -> str:
        """Replace the current partition by one of that shape; returns its description.

        `those` are one half, or the source and the target of a link. The other shapes use only the
        first of them.
        """
        self.heal()
        rest = [node for node in nodes if node not in those]
        first = those[0]
        match shape:
            case PartitionShape.ISOLATE:
                self.isolate(first, nodes)
            case PartitionShape.HALVES:
                for one in those:
                    self.isolate(one, rest)
                return f"{shape.value}: {sorted(those)} | {sorted(rest)}"
            case PartitionShape.LINK:
                self.isolate(first, [those[1]])
                return f"{shape.value}: {first}-{those[1]}"
            case PartitionShape.DEAF:
                self.blocked.update({(other, first): None for other in nodes if other != first})
            case PartitionShape.MUTE:
                self.blocked.update({(first, other): None for other in nodes if other != first})
            case PartitionShape.ONE_WAY_LINK:
                self.blocked[first, those[1]] = None
                return f"{shape.value}: {first} to {those[1]}"
        return f"{shape.value}: {first}"
