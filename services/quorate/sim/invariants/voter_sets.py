"""Voter sets change by one voter at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.records.ids import ReplicaKey
    from quorate.records.voters import VoterSet
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import NodeView


class OneVoterChangeAtATime(Invariant):
    """A change adds or removes one voter at most, and starts after the previous one is committed.

    The leader must also have committed a record of its own epoch. Source: KIP-853, "Voter Changes";
    Ongaro's thesis, section 4.1, and his correction of it: only then do the majorities of
    neighbouring voter sets share a voter.
    """

    def appended(self, node: NodeView, entry: Entry) -> None:
        if entry.voters is None:
            return
        before = node.log.voters_below(entry.base)
        if not before.voters:
            return
        if changed(before, entry.voters) > 1:
            raise Violation(
                f"node {node.node_id} goes from voters {ids(before)} to {ids(entry.voters)} "
                f"at once at offset {entry.base}"
            )
        if changed(before, entry.voters) and entry.epoch != node.log.epoch_before(entry.base):
            raise Violation(
                f"epoch {entry.epoch} begins at {entry.base} with a change of the voters: "
                f"{ids(before)} to {ids(entry.voters)}"
            )
        progress = node.progress
        if progress is None or not progress.is_leader:
            return
        high_watermark = progress.high_watermark or 0
        if high_watermark <= (progress.epoch_start or 0):
            raise Violation(
                f"leader {node.node_id} changes the voters at {entry.base} while nothing of its "
                f"epoch {progress.epoch} is committed"
            )
        earlier = [e for e in node.log.entries if e.voters is not None and e.end <= entry.base]
        if earlier and earlier[-1].base >= high_watermark:
            raise Violation(
                f"leader {node.node_id} changes the voters at {entry.base} while the change at "
                f"{earlier[-1].base} is not committed"
            )


def changed(before: VoterSet, after: VoterSet) -> int:
    """The number of voters added and removed; a directory id from the upgrade does not count."""
    joined = sum(1 for voter in after if not holds(before, voter.key))
    left = sum(1 for voter in before if not _stays(voter.key, after))
    return joined + left


def holds(voters: VoterSet, key: ReplicaKey) -> bool:
    """True if `key` is a voter; a voter without a directory id matches any disk of its node."""
    voter = voters.by_id(key.node_id)
    return voter is not None and voter.key.directory_id in (None, key.directory_id)


def _stays(key: ReplicaKey, after: VoterSet) -> bool:
    if key.directory_id is None:
        return after.by_id(key.node_id) is not None
    return holds(after, key)


def ids(voters: VoterSet) -> list[int]:
    """The node ids of a voter set, for messages."""
    return [int(voter.key.node_id) for voter in voters]
