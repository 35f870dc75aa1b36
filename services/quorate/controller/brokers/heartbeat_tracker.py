"""Broker sessions: last heartbeat and replayed offset (Kafka's BrokerHeartbeatTracker).

Sessions are not in the log: only the active controller has them. They begin when it becomes active,
and change when a heartbeat arrives and when it is decided.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from quorate.records.ids import Offset
from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from quorate.controller.brokers.image import Brokers
    from quorate.controller.decision import VolatileState
    from quorate.controller.request_types import Sender

_REPLAYED_MIN: Final = 64
_NO_OFFSET: Final = Offset(-1)


@keyword_value_type
class BrokerSession:
    """One broker's session: its last contact, and how far it has replayed the metadata log.

    `shutdown_offset` is set for a broker in controlled shutdown once all its leaderships are moved:
    the other brokers have to replay up to this offset before it may stop.
    """

    broker_epoch: int
    contact_ms: int
    metadata_offset: Offset = _NO_OFFSET
    shutdown_offset: Offset | None = None

    def heard_at(self, now_ms: int) -> BrokerSession:
        """The same session after another contact."""
        return BrokerSession(
            broker_epoch=self.broker_epoch,
            contact_ms=now_ms,
            metadata_offset=self.metadata_offset,
            shutdown_offset=self.shutdown_offset,
        )


@value_type
class HeartbeatReceived:
    """Replaces a broker's session, which counts from that time. A `VolatileChange`."""

    broker_id: int
    broker_session: BrokerSession
    from_ms: int

    def apply(self, soft: VolatileState) -> None:
        soft.of(HeartbeatTracker).set(self.broker_id, self.broker_session, from_ms=self.from_ms)


@value_type
class BrokerGone:
    """Ends a broker session: its next incarnation may register immediately. A `VolatileChange`."""

    broker_id: int

    def apply(self, soft: VolatileState) -> None:
        soft.of(HeartbeatTracker).remove(self.broker_id)


@value_type
class BrokersExcused:
    """Heartbeats of these brokers wait for their decisions. A `VolatileChange`."""

    broker_ids: tuple[int, ...]

    def apply(self, soft: VolatileState) -> None:
        soft.of(HeartbeatTracker).excuse(self.broker_ids)


class HeartbeatTracker:
    """The sessions of all brokers that have been in contact since this controller became active.

    A session starts at the broker's contact, or at the decision on its heartbeat, since a broker
    waits for the answer. An excused session restarts when it would have ended, and so ends two
    timeouts after the broker's contact.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sessions: dict[int, BrokerSession] = {}
        # The start of each session, in ascending order, so that the first entry expires first;
        # some are of brokers that are fenced.
        self._begun: OrderedDict[int, int] = OrderedDict()
        # A heap of the replayed offsets at contacts, the current ones and some earlier ones.
        self._replayed: list[tuple[int, int]] = []

    def get(self, broker_id: int) -> BrokerSession | None:
        return self._sessions.get(broker_id)

    def set(
        self, broker_id: int, broker_session: BrokerSession, *, from_ms: int | None = None
    ) -> None:
        """Set the session of a broker, which starts at its contact or at `from_ms`."""
        self._sessions[broker_id] = broker_session
        self._begin(broker_id, broker_session.contact_ms if from_ms is None else from_ms)
        self._note_replayed(broker_id, broker_session.metadata_offset)

    def hear(self, broker_id: int, *, broker_epoch: int, now_ms: int) -> None:
        """Record a contact; its replayed offset is known once the heartbeat is decided."""
        known = self._sessions.get(broker_id)
        if known is None or known.broker_epoch != broker_epoch:
            self.set(broker_id, BrokerSession(broker_epoch=broker_epoch, contact_ms=now_ms))
            return
        self._sessions[broker_id] = known.heard_at(now_ms)
        self._begin(broker_id, now_ms)

    def _begin(self, broker_id: int, from_ms: int) -> None:
        """Start the session at that time, unless it already starts later."""
        if from_ms > self._begun.get(broker_id, -1):
            self._begun[broker_id] = from_ms
            self._begun.move_to_end(broker_id)

    def remove(self, broker_id: int) -> None:
        """Remove a broker, so that its next incarnation may register immediately."""
        self._sessions.pop(broker_id, None)
        self._begun.pop(broker_id, None)

    def restart_all(self, brokers: Brokers, now_ms: int) -> None:
        """Restart the session of every unfenced broker: no heartbeat could arrive until now."""
        sessions = self._sessions
        for broker_id in sorted(brokers.by_id):
            registration = brokers.by_id[broker_id].registration
            if registration.fenced:
                continue
            known = sessions.get(broker_id)
            if known is None:
                session = BrokerSession(broker_epoch=registration.broker_epoch, contact_ms=now_ms)
            else:
                session = known.heard_at(now_ms)
            sessions[broker_id] = session
            self._begin(broker_id, now_ms)
        self._gather_replayed()

    def is_live(self, broker_id: int, *, broker_epoch: int, now_ms: int) -> bool:
        """True if the broker of that epoch had a contact within the timeout."""
        session = self._sessions.get(broker_id)
        return (
            session is not None
            and session.broker_epoch == broker_epoch
            and now_ms < self._begun.get(broker_id, session.contact_ms) + self.timeout_ms
        )

    def first_to_expire(self, brokers: Brokers) -> int | None:
        """The time in ms at which the next session of an unfenced broker ends, or None."""
        while self._begun:
            broker_id, from_ms = next(iter(self._begun.items()))
            if _is_unfenced(brokers, broker_id):
                return from_ms + self.timeout_ms
            # The broker is fenced: its contact preceded its unfencing.
            del self._begun[broker_id]
        return None

    def expired(self, brokers: Brokers, now_ms: int, at_most: int) -> list[int]:
        """The unfenced brokers whose sessions have expired, in order of expiry."""
        found: list[int] = []
        for broker_id, from_ms in self._begun.items():
            if from_ms + self.timeout_ms > now_ms or len(found) == at_most:
                break
            if _is_unfenced(brokers, broker_id):
                found.append(broker_id)
        return found

    def excusable(
        self, broker_ids: Iterable[int], waiting: Container[Sender], now_ms: int
    ) -> tuple[int, ...]:
        """The brokers whose heartbeats are waiting and arrived less than two timeouts ago."""
        sessions = self._sessions
        return tuple(
            broker_id
            for broker_id in broker_ids
            if (broker_id, sessions[broker_id].broker_epoch) in waiting
            and self.is_fresh(sessions[broker_id].contact_ms, now_ms)
        )

    def is_fresh(self, contact_ms: int, now_ms: int) -> bool:
        """True while a broker with a contact at `contact_ms` may still wait for an answer.

        After two timeouts a live broker without an answer has sent another heartbeat; Kafka's
        brokers do so after half a timeout.
        """
        return now_ms < contact_ms + 2 * self.timeout_ms

    def excuse(self, broker_ids: Iterable[int]) -> None:
        """Extend the expired sessions of these brokers to two timeouts after their contact."""
        begun = self._begun
        last: list[tuple[int, int]] = []
        for broker_id in broker_ids:
            del begun[broker_id]
            last.append((broker_id, self._sessions[broker_id].contact_ms + self.timeout_ms))
        # They may have been examined late: other brokers had a contact after these expired.
        first_ms = min((from_ms for _, from_ms in last), default=0)
        while last and begun and begun[next(reversed(begun))] > first_ms:
            last.append(begun.popitem())
        begun.update(sorted(last, key=itemgetter(1)))

    def lowest_active_offset(self, brokers: Brokers) -> Offset | None:
        """The replayed offset of the slowest active broker; None if no broker is active."""
        while self._replayed:
            offset, broker_id = self._replayed[0]
            session = self._sessions.get(broker_id)
            is_current = session is not None and session.metadata_offset == offset
            if is_current and broker_id in brokers.active:
                return Offset(offset)
            # A later contact replaced it, or the broker is not active yet.
            heappop(self._replayed)
        return None

    def _note_replayed(self, broker_id: int, offset: Offset) -> None:
        if len(self._replayed) > 2 * len(self._sessions) + _REPLAYED_MIN:
            self._gather_replayed()
        heappush(self._replayed, (offset, broker_id))

    def _gather_replayed(self) -> None:
        self._replayed = [(s.metadata_offset, id_) for id_, s in self._sessions.items()]
        heapify(self._replayed)


def _is_unfenced(brokers: Brokers, broker_id: int) -> bool:
    broker = brokers.by_id.get(broker_id)
    return broker is not None and not broker.registration.fenced
