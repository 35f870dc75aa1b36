"""The kraft.version upgrade and its voters are one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import ids

if TYPE_CHECKING:
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import NodeView


class UpgradeIsOneBatch(Invariant):
    """No log ever holds kraft.version 1 without voters, nor voters below kraft.version 1.

    Source: KIP-853, "UpdateFeatures": the version and the voter set with directory ids are one
    batch.
    """

    def appended(self, node: NodeView, entry: Entry) -> None:
        if entry.kraft_version is not None and entry.voters is None:
            raise Violation(
                f"node {node.node_id} has kraft.version {entry.kraft_version} at {entry.base} "
                "without its voters"
            )
        if entry.voters is None:
            return
        if any(voter.key.directory_id is None for voter in entry.voters):
            raise Violation(
                f"voters {ids(entry.voters)} at {entry.base} of node {node.node_id} lack "
                "directory ids"
            )
        before = node.log.voters_below(entry.base)
        is_static = any(voter.key.directory_id is None for voter in before)
        if is_static and not entry.kraft_version:
            raise Violation(
                f"node {node.node_id} has voters {ids(entry.voters)} at {entry.base}, "
                "at kraft.version 0"
            )
