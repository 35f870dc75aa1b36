"""Majorities of any two voter sets in effect intersect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.records.ids import ReplicaKey
    from quorate.records.voters import VoterSet
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import NodeView


class MajoritiesOverlap(Invariant):
    """Any two majorities of voter sets that may be in effect have a voter in common.

    The newest committed voter set may be in effect, and the latest voter set of every log with all
    committed records: only the owner of such a log can still be elected or commit. Source: Raft
    paper, section 6; Ongaro's thesis, section 4.1.
    """

    def appended(self, node: NodeView, entry: Entry) -> None:
        # A replica that catches up appends many batches together; only the latest set is in effect.
        if entry.voters is None or entry.voters is not node.log.voters or not self._is_whole(node):
            return
        for owner, other in self._others(node):
            if not meet(entry.voters, other):
                raise Violation(
                    f"node {node.node_id} puts voters {ids(entry.voters)} in force, and {owner} "
                    f"has {ids(other)}: both have majorities of their own"
                )

    def _others(self, node: NodeView) -> Iterator[tuple[str, VoterSet]]:
        history = self.world.oracle
        yield "history", history.voters_at(history.end)
        for other in self.world.nodes.values():
            if other is not node and self._is_whole(other) and other.log.voters.voters:
                yield f"node {other.node_id}", other.log.voters

    def _is_whole(self, node: NodeView) -> bool:
        history = self.world.oracle
        return node.log.chain_at(history.end) == history.chains[history.end]


def meet(one: VoterSet, other: VoterSet) -> bool:
    """True if any majority of `one` and any majority of `other` share a voter."""
    keys, others = _keys(one, other), _keys(other, one)
    shared = len(keys & others)
    needed = max(0, one.majority - len(keys - others)) + max(0, other.majority - len(others - keys))
    return needed > shared


def _keys(voters: VoterSet, other: VoterSet) -> set[ReplicaKey | int]:
    """Comparable keys of the voters: only node ids if one of the sets lacks directory ids."""
    has_directories = all(v.key.directory_id is not None for v in (*voters, *other))
    return {voter.key if has_directories else int(voter.key.node_id) for voter in voters}
