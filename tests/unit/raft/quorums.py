"""A leader whose followers fetch on command."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from tests.unit.raft import cores
from tests.unit.raft.expecting import log_end

FETCH_TIMEOUT_MS = cores.config().fetch_timeout_ms


SILENCE_MS = FETCH_TIMEOUT_MS // 2


FIVE = (1, 2, 3, 4, 5)


# The leader is elected at 2,000; then it has known for long enough who fetches.
START = 2000 + FETCH_TIMEOUT_MS * 3 // 2


class Quorum:
    """A leader of five, whose followers fetch on command."""

    def __init__(self, *node_ids: int) -> None:
        self.ids = node_ids or FIVE
        self.core = cores.leader(self.ids[0], *self.ids)
        self.now = 2000
        self._token = 100
        self.passes(START - self.now, *self.ids[1:])

    def fetch(self, *node_ids: int) -> list[str]:
        """They fetch all that there is; what the leader says to it."""
        said: list[str] = []
        for node_id in node_ids:
            self._token += 1
            fetch = cores.fetch(node_id, log_end(self.core).offset, 1)
            update = cores.ask(self.core, fetch, now_ms=self.now, token=self._token)
            said += cores.said(update)
        return said

    def passes(self, time_ms: int, *fetching: int) -> None:
        """Time in which these fetch as often as they do."""
        end = self.now + time_ms
        while self.now < end:
            self.now = min(end, self.now + SILENCE_MS // 2)
            self.fetch(*fetching)

    def take_leave(self, node_id: int) -> m.MembershipResponse:
        return self.ask(m.TakeLeaveRequest(cores.CLUSTER, cores.key(node_id)))

    def ask(self, request: m.Request) -> m.MembershipResponse:
        self._token += 1
        update = cores.ask(self.core, request, now_ms=self.now, token=self._token)
        return cores.membership(update)

    def may_stop(self, node_id: int) -> bool:
        return self.take_leave(node_id).error is ErrorCode.NONE
