"""The processes of voters, as one leader hears them (rule 33)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.raft.clones import SILENCE_SHARE

if TYPE_CHECKING:
    from quorate.raft.messages import FetchRequest, FetchSnapshotRequest
    from quorate.records.ids import Millis, ReplicaKey

# Between what a leader and its judge take for the moment of a Fetch.
SLACK_MS: Final = 200


@dataclass(slots=True)
class VoterProcesses:
    """The newest process of each voter, and when another one was heard last."""

    newest: dict[ReplicaKey, tuple[int, Millis]] = field(default_factory=dict)
    others_ms: dict[ReplicaKey, Millis] = field(default_factory=dict)

    def may_be_two(
        self,
        request: FetchRequest | FetchSnapshotRequest,
        now_ms: Millis,
        fetch_timeout_ms: int,
    ) -> bool:
        """Note a Fetch or FetchSnapshot; True while the process before may still be this voter.

        The disk of that one counts then, and nothing that the new one tells.
        """
        key, number = request.replica, request.incarnation
        assert key is not None
        before = self.newest.get(key)
        if before is not None and before[0] != number:
            self.others_ms[key] = before[1]
        self.newest[key] = (number, now_ms)
        other_ms = self.others_ms.get(key)
        return other_ms is not None and now_ms - other_ms < (
            fetch_timeout_ms // SILENCE_SHARE + SLACK_MS
        )
