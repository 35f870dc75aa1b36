"""Leader responses that conflict with committed state: reported once, then retried.

See rule `leader_contradiction`. Such a response, or one with records that may not be appended, is
ignored. It does not count as contact: the fetch timer continues, so that the voters elect another
leader, and this replica grants pre-votes. It asks the leader again at growing intervals. The
contradiction ends as soon as the leader is consistent with this log again, or a later epoch has
begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.backoff import backoff_ms
from quorate.records.ids import Epoch, Millis, NodeId
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig, Random

# Fraction of the fetch timeout: the longest wait before such a leader is asked again.
RETRY_MAX_SHARE: Final = 2
SECOND_LEADERS_MAX: Final = 8


@value_type
class Contradiction:
    """The latest contradiction of an epoch's leader, and the time of the next retry."""

    leader_id: NodeId
    epoch: Epoch
    reason: str
    count: int
    retry_ms: Millis


class LeaderContradictions:
    """Contradictions of one replica: the unresolved one, and the count since its start."""

    def __init__(self, config: RaftConfig, random: Random) -> None:
        self.total = 0
        self._config = config
        self._random = random
        self._current: Contradiction | None = None
        self._second_epoch = Epoch(0)
        self._second: dict[NodeId, str] = {}

    def unresolved(self, epoch: Epoch) -> Contradiction | None:
        """The unresolved contradiction with the leader of `epoch`, if any."""
        current = self._current
        return current if current is not None and current.epoch == epoch else None

    def record(self, leader_id: NodeId, epoch: Epoch, reason: str, now_ms: Millis) -> str | None:
        """Count a contradiction; returns the text to log if it is new."""
        self.total += 1
        before = self.unresolved(epoch)
        count = 1 if before is None else before.count + 1
        delay = backoff_ms(
            count,
            first_ms=self._config.retry_backoff_ms,
            longest_ms=self._config.fetch_timeout_ms // RETRY_MAX_SHARE,
            random=self._random,
        )
        self._current = Contradiction(leader_id, epoch, reason, count, Millis(now_ms + delay))
        if before is not None:
            return None
        return f"does not believe leader {leader_id}: {reason}; nothing is changed"

    def resolve(self, epoch: Epoch) -> str | None:
        """End it, since the leader agrees with this log; returns the text to log if it is new."""
        before, self._current = self.unresolved(epoch), None
        if before is None:
            return None
        return f"believes leader {before.leader_id} again, after {before.count} contradiction(s)"

    def record_second_leader(self, leader_id: NodeId, known: NodeId, epoch: Epoch) -> str | None:
        """Record another leader of an epoch; returns the text to log if it is new."""
        if epoch != self._second_epoch:
            self._second_epoch = epoch
            self._second.clear()
        if leader_id in self._second or len(self._second) >= SECOND_LEADERS_MAX:
            return None
        self.total += 1
        text = f"{leader_id} is named as leader of epoch {epoch}, which {known} leads"
        self._second[leader_id] = text
        return f"{text}: it is not followed"

    def status_warnings(self, epoch: Epoch) -> list[str]:
        """Status warnings about contradictions, for operators."""
        lines = []
        current = self.unresolved(epoch)
        if current is not None:
            lines.append(
                f"does not believe leader {current.leader_id} of epoch {epoch}, whom this log "
                f"contradicts ({current.count} answer(s), the last: {current.reason})"
            )
        if epoch == self._second_epoch:
            lines += [
                f"{text}: somebody voted twice (a disk was copied or rolled back), or lies"
                for text in self._second.values()
            ]
        return lines
