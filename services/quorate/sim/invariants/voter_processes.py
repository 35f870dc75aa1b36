"""Tracks the processes of voters by the requests that one leader gets from them.

See rule `one_process_per_voter`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.raft.identity.cloned_voters import SILENCE_SHARE

if TYPE_CHECKING:
    from quorate.raft.messages import FetchRequest, FetchSnapshotRequest
    from quorate.records.ids import Millis, NodeId

# The difference between the times that a leader and this checker assign to a Fetch.
SLACK_MS: Final = 200


@dataclass(slots=True)
class VoterProcesses:
    """The newest process of each node, and the last request of another process of it.

    Disks are not distinguished: the voters of kraft.version 0 have no directory ids until the
    upgrade to 1.
    """

    newest: dict[NodeId, tuple[int, Millis]] = field(default_factory=dict)
    others_ms: dict[NodeId, Millis] = field(default_factory=dict)

    def may_be_two(
        self,
        request: FetchRequest | FetchSnapshotRequest,
        now_ms: Millis,
        fetch_timeout_ms: int,
    ) -> bool:
        """Note a Fetch or FetchSnapshot; True while the previous process may still be this voter.

        Until then the disk of the previous process counts, and not the reports of the new one.
        """
        assert request.replica is not None
        node_id, number = request.replica.node_id, request.incarnation
        before = self.newest.get(node_id)
        if before is not None and before[0] != number:
            self.others_ms[node_id] = before[1]
        self.newest[node_id] = (number, now_ms)
        other_ms = self.others_ms.get(node_id)
        return other_ms is not None and now_ms - other_ms < (
            fetch_timeout_ms // SILENCE_SHARE + SLACK_MS
        )
