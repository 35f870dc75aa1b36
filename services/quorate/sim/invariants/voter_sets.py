"""Changes of the voter set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.invariants.invariant import Invariant
from quorate.sim.oracle import Violation

if TYPE_CHECKING:
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
        sets = [e for e in node.log.entries if e.voters is not None]
        before = sets[-2].voters if len(sets) > 1 else node.log.start_voters
        if before is None or not before.voters or before == entry.voters:
            return
        if changed(before, entry.voters) > 1:
            raise Violation(
                f"node {node.node_id} goes from voters {_ids(before)} to {_ids(entry.voters)} at once"
            )
        progress = node.progress
        if progress is None or not progress.is_leader or len(sets) < 2:
            return
        # The first set of a log only repeats what the bootstrap checkpoint said.
        if sets[-2].base >= (progress.high_watermark or 0):
            raise Violation(
                f"leader {node.node_id} changes the voters at {entry.base} while the change at "
                f"{sets[-2].base} is not committed"
            )


def changed(before: VoterSet, after: VoterSet) -> int:
    """How many voters joined or left."""
    joined = sum(1 for voter in after if voter.key not in [v.key for v in before])
    left = sum(1 for voter in before if voter.key not in [v.key for v in after])
    return joined + left


def _ids(voters: VoterSet) -> list[int]:
    return [int(voter.key.node_id) for voter in voters]
