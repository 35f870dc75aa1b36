"""In-flight requests to peers with timeouts and backoff (Kafka's RequestManager).

The driver only delivers messages. This module decides which responses are still accepted, and when
to retry.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.records.ids import CallId, Epoch, Millis, NodeId
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.api import Peer

_START: Final = Millis(0)


class RequestKind(Enum):
    """Kinds of requests that this replica sends."""

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


# Requests that only the addressed voter answers: its addresses are tried in rotation.
ROTATES_ADDRESSES: Final = (
    RequestKind.VOTE,
    RequestKind.BEGIN_QUORUM_EPOCH,
    RequestKind.END_QUORUM_EPOCH,
)


@value_type
class InFlightRequest:
    """A request in flight; `epoch` is that of this replica when it was sent."""

    call: CallId
    kind: RequestKind
    to: NodeId
    epoch: Epoch
    deadline: Millis
    at: Peer | None = None
    sent_ms: Millis = _START


class RequestManager:
    """All requests in flight, and the end of each peer's backoff after a failure."""

    def __init__(self) -> None:
        self._next = 1
        self._by_id: dict[CallId, InFlightRequest] = {}
        self._not_before: dict[tuple[NodeId, RequestKind], Millis] = {}
        self._failures: dict[tuple[NodeId, RequestKind], int] = {}

    def register(
        self,
        kind: RequestKind,
        to: NodeId,
        epoch: Epoch,
        deadline: Millis,
        at: Peer | None = None,
        sent_ms: Millis = _START,
    ) -> InFlightRequest:
        """Register a request to `to`; the caller has checked `may_send` first."""
        call = InFlightRequest(CallId(self._next), kind, to, epoch, deadline, at, sent_ms)
        self._next += 1
        self._by_id[call.call] = call
        return call

    def complete(self, call: CallId) -> InFlightRequest | None:
        """Remove and return the request of a response; None if it was abandoned."""
        return self._by_id.pop(call, None)

    def abandon(self, *kinds: RequestKind) -> None:
        """Drop the requests of these kinds: their responses will be ignored."""
        for call in [c for c in self._by_id.values() if c.kind in kinds]:
            del self._by_id[call.call]

    def abandon_if_sent_before(
        self, there: Peer, kinds: tuple[RequestKind, ...], asked_by: Millis
    ) -> bool:
        """Permit a new request to a peer whose address has changed.

        It drops requests to another address that were sent until `asked_by` and are unanswered.
        """
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
        """Drop earlier failures, at a change of role or epoch."""
        self._not_before.clear()
        self._failures.clear()

    def back_off(self, kind: RequestKind, to: NodeId, until: Millis) -> None:
        """Do not send requests of this kind to the peer before `until`."""
        self._not_before[to, kind] = until

    def failed(self, kind: RequestKind, to: NodeId) -> int:
        """Count a failure; returns the number of consecutive failures."""
        count = self._failures[to, kind] = self._failures.get((to, kind), 0) + 1
        return count

    def succeeded(self, kind: RequestKind, to: NodeId) -> None:
        """Reset the failure count."""
        if self._failures:
            self._failures.pop((to, kind), None)

    def end_backoff(self, kind: RequestKind, to: NodeId) -> None:
        """End the backoff: the peer may be asked immediately."""
        self._not_before.pop((to, kind), None)

    def in_flight(self, kind: RequestKind, to: NodeId | None = None) -> bool:
        """True if a request of this kind (to that peer) is in flight."""
        for call in self._by_id.values():
            if call.kind is kind and (to is None or call.to == to):
                return True
        return False

    def in_flight_since(self, kind: RequestKind, asked_by: Millis) -> bool:
        """True if a request of this kind is in flight that was sent after that time."""
        return any(call.kind is kind and call.sent_ms > asked_by for call in self._by_id.values())

    def may_send(self, kind: RequestKind, to: NodeId, now_ms: Millis) -> bool:
        """True if this peer may be asked now."""
        return not self._is_backing_off(kind, to, now_ms) and not self.in_flight(kind, to)

    def may_resend(self, kind: RequestKind, to: NodeId, now_ms: Millis, asked_by: Millis) -> bool:
        """True if this peer may be asked again: no request since `asked_by`, no backoff."""
        return not self._is_backing_off(kind, to, now_ms) and all(
            call.sent_ms <= asked_by
            for call in self._by_id.values()
            if call.kind is kind and call.to == to
        )

    def _is_backing_off(self, kind: RequestKind, to: NodeId, now_ms: Millis) -> bool:
        return bool(self._not_before) and self._not_before.get((to, kind), now_ms) > now_ms

    def resend_deadlines(
        self, kind: RequestKind, delay_ms: int, now_ms: Millis
    ) -> Iterator[Millis]:
        """Future times at which peers that have not answered may be asked again."""
        for call in self._by_id.values():
            if call.kind is kind and call.sent_ms + delay_ms > now_ms:
                yield Millis(call.sent_ms + delay_ms)

    def expired(self, now_ms: Millis) -> list[InFlightRequest]:
        """Remove the requests that have timed out."""
        if not self._by_id:
            return []
        late = [call for call in self._by_id.values() if call.deadline <= now_ms]
        for call in late:
            del self._by_id[call.call]
        return late

    def deadlines(self, now_ms: Millis) -> list[Millis]:
        """Deadlines of requests in flight and ends of backoffs."""
        due = [call.deadline for call in self._by_id.values()] if self._by_id else []
        if self._not_before:
            over = [key for key, until in self._not_before.items() if until <= now_ms]
            for key in over:
                del self._not_before[key]
            due += self._not_before.values()
        return due
