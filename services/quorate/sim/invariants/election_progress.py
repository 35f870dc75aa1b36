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
    """The time since which a node is healthy: in one process, without a fault, with one voter set.

    A node that truncates a voter change needs the votes of another majority from then on.
    """

    incarnation: int
    troubles: int
    voters: VoterSet
    since_us: int


class MajoritiesHaveLeaders(Invariant):
    """A majority that stays healthy and connected has a leader within a bounded time.

    A voter is healthy if its process runs, its disk answers and is intact, and the others look for
    it at its address. The bound follows from the timeouts, the network and the disks of the
    cluster; other nodes that are isolated, receive no messages or crash repeatedly must not delay
    that majority for longer. A leader counts once it has committed in its epoch. Before that it
    counts while its voters still fetch the records of earlier epochs, which may take any time.
    Sources: Raft paper, section 5.2; KIP-595, "Leader Election"; rules `pre_vote_moves_epoch`,
    `early_suspicion`, `unready_voter_waits` and `leader_discovery`.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._well: dict[NodeId, _Well] = {}
        self._open_us: dict[tuple[NodeId, NodeId], int] = {}
        self._led_us = 0
        # Per node: its log end offset and its position in the snapshot that it fetches.
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
        """The nodes whose log end or snapshot position has changed since the last check."""
        fetching = []
        for node in self.world.running():
            fetched = node.log.end.offset, _downloaded(node)
            if self._fetched.get(node.node_id) != fetched:
                self._fetched[node.node_id] = fetched
                fetching.append(node)
        return fetching

    def _is_awaited(self, leader: NodeView, fetching: list[NodeView]) -> bool:
        """True if this leader cannot have committed in its epoch yet, but comes closer to it.

        Too few voters have the first record of its epoch, and one of the others is fetching.
        """
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
        """Note since when each link has been open in both directions."""
        cut = self.world.take_cut_links()
        for link in combinations(self.world.nodes, 2):
            one, other = link
            if link in cut or (other, one) in cut:
                self._open_us[link] = now_us
            else:
                self._open_us.setdefault(link, 0)

    def _groups(self, limit_us: int) -> Iterator[tuple[NodeView, ...]]:
        """Yield the groups that could have elected a leader since `limit_us`, largest first."""
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
        """True if the group is a majority of every voter set in effect on its nodes or in history.

        Each of them must also be at the address where the others look for it.
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
    """True if it leads, has committed in its epoch, and neither disk nor process is blocked."""
    progress = node.progress
    if progress is None or not progress.is_leader or not node.is_stepped or node.is_hanging:
        return False
    return (progress.high_watermark or 0) > (progress.epoch_start or 0)
