"""A healthy connected majority has a leader within a bounded time."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from quorate.raft.roles import Follower
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.time_bounds import election_bound_us

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.records.ids import NodeId, Offset
    from quorate.records.voters import VoterSet
    from quorate.sim.views import ClusterView, NodeView


class _Well(NamedTuple):
    """Since when a node is well: in this life, without a fault, with this voter set in force.

    One that cuts a change off its log needs the votes of another majority from then on.
    """

    incarnation: int
    troubles: int
    voters: VoterSet
    since_us: int


class MajoritiesHaveLeaders(Invariant):
    """A majority that is well and connected, and stays so, has a leader within a bounded time.

    Well is a voter whose process runs, whose disk answers and is whole, and whom the others find
    where they look. The bound follows from the timeouts, the network and the disks of the world;
    all other nodes, cut off or deaf or dying again and again, may not hold up that majority for
    longer. A leader leads once it has committed something, and before that as long as its voters
    fetch what comes before its epoch: that takes as long as there is of it. Sources: Raft paper,
    section 5.2; KIP-595, "Leader Election"; rules 9 to 11, 26.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._well: dict[NodeId, _Well] = {}
        self._open_us: dict[tuple[NodeId, NodeId], int] = {}
        self._led_us = 0
        # How far each is with the log, and with the snapshot that it fetches.
        self._fetched: dict[NodeId, tuple[Offset, int]] = {}

    def on_tick(self) -> None:
        world = self.world
        now_us = world.now_us
        self._note_nodes(now_us)
        self._note_links(now_us)
        fetching = self._note_fetched()
        if any(_leads(node) or self._is_awaited(node, fetching) for node in world.running()):
            self._led_us = now_us
            return
        limit_us = now_us - election_bound_us(world.options)
        if self._led_us > limit_us:
            return
        group = next(self._groups(limit_us), None)
        if group is not None:
            ids = [int(node.node_id) for node in group]
            raise Violation(
                f"nodes {ids} are a majority, well and connected since "
                f"{self._since_us(group) // 1000} ms, and nobody has led since "
                f"{self._led_us // 1000} ms"
            )

    def _note_fetched(self) -> list[NodeView]:
        """Those that have other records, or more of a snapshot, than at the look before."""
        fetching = []
        for node in self.world.running():
            fetched = node.log.end.offset, _downloaded(node)
            if self._fetched.get(node.node_id) != fetched:
                self._fetched[node.node_id] = fetched
                fetching.append(node)
        return fetching

    def _is_awaited(self, leader: NodeView, fetching: list[NodeView]) -> bool:
        """True if too few voters have what its epoch begins with, and one of the others fetches."""
        progress = leader.progress
        if progress is None or not progress.is_leader or not leader.is_stepped or leader.is_hanging:
            return False
        begins, voters = progress.epoch_start or 0, leader.log.voters
        having = [node for node in self.world.nodes.values() if node.log.end.offset > begins]
        return not _has_majority(tuple(having), voters) and any(
            node.progress is not None
            and node.progress.leader_id == leader.node_id
            and any(node.is_voter(voter) for voter in voters)
            for node in fetching
            if node is not leader and node not in having
        )

    def _note_nodes(self, now_us: int) -> None:
        for node in self.world.nodes.values():
            if not node.is_healthy:
                self._well.pop(node.node_id, None)
                continue
            known = self._well.get(node.node_id)
            state = node.incarnation, node.troubles, node.log.voters
            if known is None or known[:3] != state:
                self._well[node.node_id] = _Well(*state, now_us)

    def _note_links(self, now_us: int) -> None:
        """Both directions; a link that was cut since the last look begins anew."""
        cut = self.world.take_cut_links()
        for link in combinations(self.world.nodes, 2):
            one, other = link
            if link in cut or (other, one) in cut:
                self._open_us[link] = now_us
            else:
                self._open_us.setdefault(link, 0)

    def _groups(self, limit_us: int) -> Iterator[tuple[NodeView, ...]]:
        """Those that could have elected somebody since then, the largest first."""
        nodes = self.world.nodes
        there = [nodes[id_] for id_, well in self._well.items() if well.since_us <= limit_us]
        for count in range(len(there), 0, -1):
            for group in combinations(there, count):
                is_open = all(
                    self._open_us[_link(a.node_id, b.node_id)] <= limit_us
                    for a, b in combinations(group, 2)
                )
                if is_open and self._can_elect(group):
                    yield group

    def _can_elect(self, group: tuple[NodeView, ...]) -> bool:
        """True if they are a majority of each set that one of them, or history, has in force.

        They find each other: each is where all of them take it to be.
        """
        history = self.world.oracle
        sets = [node.log.voters for node in group] + [history.voters_at(history.end)]
        return all(_has_majority(group, voters) for voters in sets) and all(
            node.is_found_by(other) for node in group for other in group if node is not other
        )

    def _since_us(self, group: tuple[NodeView, ...]) -> int:
        links = [self._open_us[_link(a.node_id, b.node_id)] for a, b in combinations(group, 2)]
        return max([*links, *(self._well[node.node_id].since_us for node in group)])


def _link(one: NodeId, other: NodeId) -> tuple[NodeId, NodeId]:
    return (one, other) if one < other else (other, one)


def _has_majority(group: tuple[NodeView, ...], voters: VoterSet) -> bool:
    there = sum(1 for voter in voters if any(node.is_voter(voter) for node in group))
    return bool(voters.voters) and there >= voters.majority


def _downloaded(node: NodeView) -> int:
    role = node.core.replica.role
    download = role.download if isinstance(role, Follower) else None
    return download.position if download is not None else 0


def _leads(node: NodeView) -> bool:
    """It has committed something in its epoch, and its disk and its process go on."""
    progress = node.progress
    if progress is None or not progress.is_leader or not node.is_stepped or node.is_hanging:
        return False
    return (progress.high_watermark or 0) > (progress.epoch_start or 0)
