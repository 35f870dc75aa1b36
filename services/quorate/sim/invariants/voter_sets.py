"""Changes of the voter set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.invariants.invariant import Invariant
from quorate.sim.oracle import Violation

if TYPE_CHECKING:
    from quorate.records.ids import ReplicaKey
    from quorate.records.voters import VoterSet
    from quorate.sim.logview import Entry
    from quorate.sim.node import SimulatedNode


class OneVoterChangeAtATime(Invariant):
    """A log holds one uncommitted change of the voter set at most, and a change is of one voter.

    Source: KIP-853, "Voter Changes"; Ongaro's thesis, section 4.1: only then do the majorities of
    neighbouring sets share a voter.
    """

    def appended(self, node: SimulatedNode, entry: Entry) -> None:
        if entry.voters is None:
            return
        earlier = [e for e in node.log.entries if e.voters is not None and e.end <= entry.base]
        before = node.log.voters_below(entry.base)
        if not before.voters or not changed(before, entry.voters):
            return
        if changed(before, entry.voters) > 1:
            raise Violation(
                f"node {node.node_id} goes from voters {_ids(before)} to {_ids(entry.voters)} "
                f"at once at offset {entry.base}"
            )
        progress = node.progress
        if progress is None or not progress.is_leader or not earlier:
            return
        # The first set of a log only repeats what the bootstrap checkpoint said.
        if earlier[-1].base >= (progress.high_watermark or 0):
            raise Violation(
                f"leader {node.node_id} changes the voters at {entry.base} while the change at "
                f"{earlier[-1].base} is not committed"
            )


def changed(before: VoterSet, after: VoterSet) -> int:
    """How many voters joined or left; one that gets its directory id with an upgrade stays."""
    joined = sum(1 for voter in after if voter.key not in before)
    left = sum(1 for voter in before if not _stays(voter.key, after))
    return joined + left


def _stays(key: ReplicaKey, after: VoterSet) -> bool:
    if key.directory_id is None:
        return after.by_id(key.node_id) is not None
    return key in after


def _ids(voters: VoterSet) -> list[int]:
    return [int(voter.key.node_id) for voter in voters]
