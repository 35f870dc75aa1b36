"""In-flight requests to peers with timeouts and backoff (Kafka's RequestManager).

The driver only carries messages. This module decides which request is still wanted, and when to
retry.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.records.ids import CallId, Epoch, Millis, NodeId
from quorate.records.value_types import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.api import Peer

_START: Final = Millis(0)


class CallKind(Enum):
    """What a request of ours asks for."""

    VOTE = "Vote"
    BEGIN_QUORUM_EPOCH = "BeginQuorumEpoch"
    END_QUORUM_EPOCH = "EndQuorumEpoch"
    FETCH = "Fetch"
    DISCOVERY = "discovery Fetch"
    LOOK_AROUND = "looking around"
    FETCH_SNAPSHOT = "FetchSnapshot"
    PROBE = "probe"
    API_VERSIONS = "ApiVersions"
    JOIN = "joining"
    UPDATE_RAFT_VOTER = "UpdateRaftVoter"


# Requests that only the voter that is meant answers: its addresses are tried in turns.
TAKES_TURNS: Final = (CallKind.VOTE, CallKind.BEGIN_QUORUM_EPOCH, CallKind.END_QUORUM_EPOCH)


@value
class Call:
    """A request under way; `epoch` is the one that this replica was in when it was sent."""

    call: CallId
    kind: CallKind
    to: NodeId
    epoch: Epoch
    deadline: Millis
    at: Peer | None = None
    sent_ms: Millis = _START


class Calls:
    """All requests under way, and until when each peer is left alone after a failure."""

    def __init__(self) -> None:
        self._next = 1
        self._by_id: dict[CallId, Call] = {}
        self._not_before: dict[tuple[NodeId, CallKind], Millis] = {}
        self._failures: dict[tuple[NodeId, CallKind], int] = {}

    def open(
        self,
        kind: CallKind,
        to: NodeId,
        epoch: Epoch,
        deadline: Millis,
        at: Peer | None = None,
        sent_ms: Millis = _START,
    ) -> Call:
        """A new request to `to`; the caller has asked `may_call` first."""
        call = Call(CallId(self._next), kind, to, epoch, deadline, at, sent_ms)
        self._next += 1
        self._by_id[call.call] = call
        return call

    def close(self, call: CallId) -> Call | None:
        """The request that an answer belongs to; None when nobody waits for it any more."""
        return self._by_id.pop(call, None)

    def abandon(self, *kinds: CallKind) -> None:
        """Requests of these kinds are no longer wanted: their answers will be ignored."""
        for call in [c for c in self._by_id.values() if c.kind in kinds]:
            del self._by_id[call.call]

    def give_up(self, there: Peer, kinds: tuple[CallKind, ...], asked_by: Millis) -> bool:
        """Ask that peer anew if it was asked elsewhere by then, and has not answered yet."""
        late = [
            call
            for call in self._by_id.values()
            if call.to == there.node_id and call.at != there
            if call.kind in kinds and call.sent_ms <= asked_by
        ]
        for call in late:
            del self._by_id[call.call]
        return bool(late)

    def clear_backoff(self) -> None:
        """A new role or epoch: what failed before says nothing now."""
        self._not_before.clear()
        self._failures.clear()

    def back_off(self, kind: CallKind, to: NodeId, until: Millis) -> None:
        """Leave this peer alone until then."""
        self._not_before[to, kind] = until

    def failed(self, kind: CallKind, to: NodeId) -> int:
        """Count a failure; how many there were in a row."""
        count = self._failures[to, kind] = self._failures.get((to, kind), 0) + 1
        return count

    def succeeded(self, kind: CallKind, to: NodeId) -> None:
        """The next failure is the first."""
        if self._failures:
            self._failures.pop((to, kind), None)

    def end_backoff(self, kind: CallKind, to: NodeId) -> None:
        """This peer may be asked at once."""
        self._not_before.pop((to, kind), None)

    def in_flight(self, kind: CallKind, to: NodeId | None = None) -> bool:
        """Whether a request of this kind (to that peer) is under way."""
        for call in self._by_id.values():
            if call.kind is kind and (to is None or call.to == to):
                return True
        return False

    def in_flight_since(self, kind: CallKind, asked_by: Millis) -> bool:
        """Whether a request of this kind is under way that was asked after that moment."""
        return any(call.kind is kind and call.sent_ms > asked_by for call in self._by_id.values())

    def may_call(self, kind: CallKind, to: NodeId, now_ms: Millis) -> bool:
        """Whether this peer may be asked now."""
        return not self._is_backing_off(kind, to, now_ms) and not self.in_flight(kind, to)

    def may_repeat(self, kind: CallKind, to: NodeId, now_ms: Millis, asked_by: Millis) -> bool:
        """Whether this peer may be asked, for want of an answer to what was asked by then, too."""
        return not self._is_backing_off(kind, to, now_ms) and all(
            call.sent_ms <= asked_by
            for call in self._by_id.values()
            if call.kind is kind and call.to == to
        )

    def _is_backing_off(self, kind: CallKind, to: NodeId, now_ms: Millis) -> bool:
        return bool(self._not_before) and self._not_before.get((to, kind), now_ms) > now_ms

    def repeats(self, kind: CallKind, delay_ms: int, now_ms: Millis) -> Iterator[Millis]:
        """When peers that have not answered may be asked once more; what is past had its chance."""
        for call in self._by_id.values():
            if call.kind is kind and call.sent_ms + delay_ms > now_ms:
                yield Millis(call.sent_ms + delay_ms)

    def expired(self, now_ms: Millis) -> list[Call]:
        """Take out the requests whose time is over."""
        if not self._by_id:
            return []
        late = [call for call in self._by_id.values() if call.deadline <= now_ms]
        for call in late:
            del self._by_id[call.call]
        return late

    def deadlines(self, now_ms: Millis) -> list[Millis]:
        """When to look again: at timeouts of requests and at ends of backoffs."""
        due = [call.deadline for call in self._by_id.values()] if self._by_id else []
        if self._not_before:
            over = [key for key, until in self._not_before.items() if until <= now_ms]
            for key in over:
                del self._not_before[key]
            due += self._not_before.values()
        return due
