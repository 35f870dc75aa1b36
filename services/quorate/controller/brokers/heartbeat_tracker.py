"""Brokers' sessions: who was heard when, and how far each has replayed the metadata log.

Sessions are the one state that is not in the log. Only the active controller has them, they
begin when it becomes active, and they change when a heartbeat arrives and when it is decided.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from quorate.records.ids import Offset
from quorate.records.value_types import named_value, value

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from quorate.controller.brokers.image import Brokers
    from quorate.controller.decision import SoftState
    from quorate.controller.request_types import Sender

_REPLAYED_MIN: Final = 64
_NO_OFFSET: Final = Offset(-1)


@named_value
class Session:
    """One broker's: when it was last heard, and how far it has replayed the metadata log.

    `shutdown_offset` is known for a broker that asked to shut down once all its leaderships are
    moved: the last offset that the other brokers have to replay before it may go.
    """

    broker_epoch: int
    contact_ms: int
    metadata_offset: Offset = _NO_OFFSET
    shutdown_offset: Offset | None = None

    def heard_at(self, now_ms: int) -> Session:
        """The same, of a broker that was heard again."""
        return Session(
            broker_epoch=self.broker_epoch,
            contact_ms=now_ms,
            metadata_offset=self.metadata_offset,
            shutdown_offset=self.shutdown_offset,
        )


@value
class BrokerHeard:
    """A broker's session is this one now, and counts from that time. A `SoftChange`."""

    broker_id: int
    session: Session
    from_ms: int

    def apply(self, soft: SoftState) -> None:
        soft.of(Sessions).set(self.broker_id, self.session, from_ms=self.from_ms)


@value
class BrokerLeft:
    """A broker went, and its next incarnation may register at once. A `SoftChange`."""

    broker_id: int

    def apply(self, soft: SoftState) -> None:
        soft.of(Sessions).end(self.broker_id)


@value
class BrokersExcused:
    """Heartbeats of these brokers wait for their decisions. A `SoftChange`."""

    broker_ids: tuple[int, ...]

    def apply(self, soft: SoftState) -> None:
        soft.of(Sessions).excuse(self.broker_ids)


class Sessions:
    """The sessions of all brokers that were heard since this controller became active.

    A session counts from when its broker was heard, or from when its heartbeat was decided: a
    broker waits for the answer. One that is excused counts from when it would have ended, and so
    ends for good two timeouts after its broker was heard.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sessions: dict[int, Session] = {}
        # From when each counts, in that order, so that the first to expire is the first; some are
        # of brokers that are fenced.
        self._begun: OrderedDict[int, int] = OrderedDict()
        # A heap of how far each had replayed when it was heard, of late and now and then before.
        self._replayed: list[tuple[int, int]] = []

    def get(self, broker_id: int) -> Session | None:
        return self._sessions.get(broker_id)

    def set(self, broker_id: int, session: Session, *, from_ms: int | None = None) -> None:
        """Set the session of a broker, which counts from its contact or from `from_ms`."""
        self._sessions[broker_id] = session
        self._begin(broker_id, session.contact_ms if from_ms is None else from_ms)
        self._note_replayed(broker_id, session.metadata_offset)

    def hear(self, broker_id: int, *, broker_epoch: int, now_ms: int) -> None:
        """A broker was heard; how far it has replayed is known once that is decided on."""
        known = self._sessions.get(broker_id)
        if known is None or known.broker_epoch != broker_epoch:
            self.set(broker_id, Session(broker_epoch=broker_epoch, contact_ms=now_ms))
            return
        self._sessions[broker_id] = known.heard_at(now_ms)
        self._begin(broker_id, now_ms)

    def _begin(self, broker_id: int, from_ms: int) -> None:
        """It counts from then, unless it counts from later."""
        if from_ms > self._begun.get(broker_id, -1):
            self._begun[broker_id] = from_ms
            self._begun.move_to_end(broker_id)

    def end(self, broker_id: int) -> None:
        """Forget a broker, so that its next incarnation may register at once."""
        self._sessions.pop(broker_id, None)
        self._begun.pop(broker_id, None)

    def renew(self, brokers: Brokers, now_ms: int) -> None:
        """Give every unfenced broker a whole session: nobody could be heard until now."""
        sessions = self._sessions
        for broker_id in sorted(brokers.by_id):
            registration = brokers.by_id[broker_id].registration
            if registration.fenced:
                continue
            known = sessions.get(broker_id)
            if known is None:
                session = Session(broker_epoch=registration.broker_epoch, contact_ms=now_ms)
            else:
                session = known.heard_at(now_ms)
            sessions[broker_id] = session
            self._begin(broker_id, now_ms)
        self._gather_replayed()

    def is_live(self, broker_id: int, *, broker_epoch: int, now_ms: int) -> bool:
        """Whether the broker of that epoch was heard within the timeout."""
        session = self._sessions.get(broker_id)
        return (
            session is not None
            and session.broker_epoch == broker_epoch
            and now_ms < self._begun.get(broker_id, session.contact_ms) + self.timeout_ms
        )

    def first_to_expire(self, brokers: Brokers) -> int | None:
        """When the session of an unfenced broker ends next, in ms."""
        while self._begun:
            broker_id, from_ms = next(iter(self._begun.items()))
            if _is_unfenced(brokers, broker_id):
                return from_ms + self.timeout_ms
            # It is heard from before it is unfenced.
            del self._begun[broker_id]
        return None

    def expired(self, brokers: Brokers, now_ms: int, at_most: int) -> list[int]:
        """The unfenced brokers whose sessions are over, the first to end first."""
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
        """Those of them whose heartbeats wait, and came less than two timeouts ago."""
        sessions = self._sessions
        return tuple(
            broker_id
            for broker_id in broker_ids
            if (broker_id, sessions[broker_id].broker_epoch) in waiting
            and self.is_fresh(sessions[broker_id].contact_ms, now_ms)
        )

    def is_fresh(self, contact_ms: int, now_ms: int) -> bool:
        """True while a broker that was heard at `contact_ms` may still wait for an answer.

        After two timeouts a live one, which hears nothing, has asked again; Kafka's does after half
        of one.
        """
        return now_ms < contact_ms + 2 * self.timeout_ms

    def excuse(self, broker_ids: Iterable[int]) -> None:
        """Give these brokers, whose sessions are over, one more timeout since they were heard."""
        begun = self._begun
        last: list[tuple[int, int]] = []
        for broker_id in broker_ids:
            del begun[broker_id]
            last.append((broker_id, self._sessions[broker_id].contact_ms + self.timeout_ms))
        # They may have been looked at late: others were heard since they would have ended.
        first_ms = min((from_ms for _, from_ms in last), default=0)
        while last and begun and begun[next(reversed(begun))] > first_ms:
            last.append(begun.popitem())
        begun.update(sorted(last, key=itemgetter(1)))

    def lowest_active_offset(self, brokers: Brokers) -> Offset | None:
        """How far the slowest active broker has replayed; None when no broker is active."""
        while self._replayed:
            offset, broker_id = self._replayed[0]
            session = self._sessions.get(broker_id)
            is_current = session is not None and session.metadata_offset == offset
            if is_current and broker_id in brokers.active:
                return Offset(offset)
            # It was heard again since, or it is before it becomes active.
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
