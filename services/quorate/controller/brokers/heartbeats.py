"""Handles broker heartbeats; fences and unfences brokers and completes controlled shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.heartbeat_tracker import (
    BrokerGone,
    BrokerSession,
    BrokersExcused,
    HeartbeatReceived,
    HeartbeatTracker,
)
from quorate.controller.brokers.messages import BrokerHeartbeatReply
from quorate.controller.brokers.registration import sender_problem
from quorate.controller.decision import Context, Outcome, Proposal
from quorate.controller.features.levels import metadata_version
from quorate.controller.partitions.bulk_leader_election import BulkElection
from quorate.controller.partitions.leader_isr_sweep import LeaderIsrSweep, start_sweep
from quorate.controller.partitions.records import NO_LEADER_CHANGE
from quorate.controller.periodic_task import PeriodicTask
from quorate.records.ids import Offset, TopicId
from quorate.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord

if TYPE_CHECKING:
    from quorate.controller.brokers.image import Broker, Brokers
    from quorate.controller.brokers.messages import BrokerHeartbeat
    from quorate.controller.decision import ControllerSettings, VolatileState
    from quorate.controller.image import MetadataImage, View
    from quorate.controller.request_types import Sender

FENCE: Final = 1
UNFENCE: Final = -1
IN_CONTROLLED_SHUTDOWN: Final = 1
# Each takes a record and a new set of brokers, which shares nothing with the previous one.
FENCE_BATCH_MAX: Final = 100
# Number of brokers whose waiting heartbeats are examined in a millisecond.
LOOKED_AT_TOGETHER_MAX: Final = 1000


def hear(soft: VolatileState, view: View, request: BrokerHeartbeat, now_ms: int) -> Sender:
    """Record a heartbeat on arrival: its broker is alive, however long the decision waits.

    Kafka also records it outside of its event queue (trackBrokerHeartbeat).
    """
    broker_id, broker_epoch = request.broker_id, request.broker_epoch
    if sender_problem(view.brokers, broker_id, broker_epoch) is None:
        soft.of(HeartbeatTracker).hear(broker_id, broker_epoch=broker_epoch, now_ms=now_ms)
    return broker_id, broker_epoch


def decide_heartbeat(context: Context, request: BrokerHeartbeat) -> Outcome:
    """Record that a broker is alive and advance its state (Kafka's BrokerControlState)."""
    brokers = context.view.brokers
    problem = sender_problem(brokers, request.broker_id, request.broker_epoch)
    if problem is not None:
        return Outcome(_nothing(context), BrokerHeartbeatReply(*problem))
    broker = brokers.by_id[request.broker_id]
    return _Heartbeat(context, request, broker).decide()


def _nothing(context: Context) -> Proposal:
    return Proposal(metadata_version(context.view.features))


class _Heartbeat:
    """One valid heartbeat in progress."""

    def __init__(self, context: Context, request: BrokerHeartbeat, broker: Broker) -> None:
        self._context = context
        self._request = request
        self._broker = broker
        self._is_caught_up = request.current_metadata_offset >= broker.offset
        # A session that began with this heartbeat starts at its decision.
        sessions, now_ms = context.soft.of(HeartbeatTracker), context.now_ms
        known = sessions.get(request.broker_id)
        is_known = known is not None and known.broker_epoch == request.broker_epoch
        self._contact_ms = known.contact_ms if known is not None and is_known else now_ms
        self._is_fresh = sessions.is_fresh(self._contact_ms, now_ms)

    def decide(self) -> Outcome:
        request, registration = self._request, self._broker.registration
        if registration.fenced:
            if request.want_shut_down:
                return self._shut_down()
            # The partitions of its previous incarnation get other leaders before it may lead.
            is_settled = not self._context.soft.of(LeaderIsrSweep).may_affect(request.broker_id)
            may_be_unfenced = self._is_caught_up and self._is_fresh and not request.want_fence
            if may_be_unfenced and is_settled:
                return self._unfence()
            return self._stay(is_fenced=True)
        if registration.in_controlled_shutdown:
            return self._go_on_shutting_down()
        if request.want_fence:
            return self._shut_down() if request.want_shut_down else self._fence()
        if request.want_shut_down:
            return self._begin_shutting_down()
        return self._stay(is_fenced=False)

    def _reply(self, *, is_fenced: bool, should_shut_down: bool = False) -> BrokerHeartbeatReply:
        return BrokerHeartbeatReply(
            is_caught_up=self._is_caught_up,
            is_fenced=is_fenced,
            should_shut_down=should_shut_down,
        )

    def _heard(self, shutdown_offset: Offset | None = None) -> HeartbeatReceived:
        request = self._request
        session = BrokerSession(
            broker_epoch=request.broker_epoch,
            contact_ms=self._contact_ms,
            metadata_offset=request.current_metadata_offset,
            shutdown_offset=shutdown_offset,
        )
        from_ms = self._context.now_ms if self._is_fresh else self._contact_ms
        return HeartbeatReceived(request.broker_id, session, from_ms)

    def _stay(self, *, is_fenced: bool, shutdown_offset: Offset | None = None) -> Outcome:
        return Outcome(
            _nothing(self._context),
            self._reply(is_fenced=is_fenced),
            (self._heard(shutdown_offset),),
        )

    def _unfence(self) -> Outcome:
        """Unfence it. It may lead, unless the log, written by Kafka, has it in shutdown."""
        broker_id = self._request.broker_id
        brokers = self._context.view.brokers
        active = brokers.active
        if not self._broker.registration.in_controlled_shutdown:
            active |= {broker_id}
        change = _change(brokers, broker_id, fenced=UNFENCE)
        proposal, settling = start_sweep(self._context, (change,), (broker_id,), active)
        return Outcome(proposal, self._reply(is_fenced=False), (settling, self._heard()))

    def _fence(self) -> Outcome:
        proposal, settling = self._without(fenced=FENCE)
        return Outcome(proposal, self._reply(is_fenced=True), (settling, self._heard()))

    def _without(self, **change: int) -> tuple[Proposal, LeaderIsrSweep]:
        """Propose the change after which it may no longer lead."""
        brokers, broker_id = self._context.view.brokers, self._request.broker_id
        record = _change(brokers, broker_id, **change)
        return start_sweep(self._context, (record,), (broker_id,), brokers.active - {broker_id})

    def _shut_down(self) -> Outcome:
        """Permit it to stop, and end its session, so that it can register immediately on return."""
        broker_id = self._request.broker_id
        reply = self._reply(is_fenced=True, should_shut_down=True)
        if self._broker.registration.fenced:
            return Outcome(_nothing(self._context), reply, (BrokerGone(broker_id),))
        proposal, settling = self._without(fenced=FENCE)
        return Outcome(proposal, reply, (settling, BrokerGone(broker_id)))

    def _begin_shutting_down(self) -> Outcome:
        """Begin controlled shutdown; it may stop immediately if it is known to lead nothing."""
        broker_id = self._request.broker_id
        proposal, settling = self._without(in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN)
        shutdown_offset = None
        if not settling.may_affect(broker_id):
            if not _has_led(self._context.freeze(), broker_id, proposal):
                return self._shut_down()
            end = self._context.next_offset + len(proposal.values)
            shutdown_offset = Offset(end - 1)
        reply = self._reply(is_fenced=False)
        return Outcome(proposal, reply, (settling, self._heard(shutdown_offset)))

    def _go_on_shutting_down(self) -> Outcome:
        """Permit it to stop once the others know the new leaders (Kafka: lowest active offset)."""
        broker_id = self._request.broker_id
        sessions = self._context.soft.of(HeartbeatTracker)
        known = sessions.get(broker_id)
        shutdown_offset = None if known is None else known.shutdown_offset
        if shutdown_offset is None:
            if self._context.soft.of(LeaderIsrSweep).may_affect(broker_id):
                return self._stay(is_fenced=False)
            shutdown_offset = Offset(self._context.next_offset - 1)
        lowest = sessions.lowest_active_offset(self._context.view.brokers)
        if lowest is not None and lowest < shutdown_offset:
            return self._stay(is_fenced=False, shutdown_offset=shutdown_offset)
        return self._shut_down()


def decide_expiry(context: Context) -> Outcome | None:
    """Fence the brokers whose sessions have expired, those silent for longest first.

    All are fenced in one decision, so that none of them is elected for a partition of another. A
    broker whose heartbeat waits for its decision is excused once.
    """
    brokers, sessions = context.view.brokers, context.soft.of(HeartbeatTracker)
    ended = sessions.expired(brokers, context.now_ms, LOOKED_AT_TOGETHER_MAX)
    if not ended:
        return None
    excused = sessions.excusable(ended, context.waiting, context.now_ms)
    soft = (BrokersExcused(excused),)
    are_excused = frozenset(excused)
    expired = [each for each in ended if each not in are_excused][:FENCE_BATCH_MAX]
    if not expired:
        return Outcome(_nothing(context), None, soft)
    records = [_change(brokers, broker_id, fenced=FENCE) for broker_id in expired]
    proposal, settling = start_sweep(context, records, expired, brokers.active.difference(expired))
    return Outcome(proposal, None, (settling, *soft))


def _begin(image: MetadataImage, settings: ControllerSettings, now_ms: int) -> HeartbeatTracker:
    sessions = HeartbeatTracker(settings.broker_session_timeout_ms)
    sessions.restart_all(image.brokers, now_ms)
    return sessions


def _wake_at_ms(soft: VolatileState, view: View) -> int | None:
    return soft.of(HeartbeatTracker).first_to_expire(view.brokers)


def _renew(soft: VolatileState, view: View, now_ms: int) -> None:
    soft.of(HeartbeatTracker).restart_all(view.brokers, now_ms)


def _fenced(proposal: Proposal) -> int:
    return sum(isinstance(record, BrokerRegistrationChangeRecord) for record in proposal.records)


SESSION_EXPIRY_TASK: Final = PeriodicTask(
    begin=_begin,
    wake_at_ms=_wake_at_ms,
    expire=decide_expiry,
    renew=_renew,
    counts={"timed_out_broker_heartbeats_total": _fenced},
)
"""Fences brokers whose session has expired."""


def _change(
    brokers: Brokers, broker_id: int, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=brokers.by_id[broker_id].registration.broker_epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )


def _has_led(image: MetadataImage, broker_id: int, proposal: Proposal) -> bool:
    """True if the proposal takes a leadership from the broker."""
    for item in proposal.items:
        if isinstance(item, BulkElection) and item.takes_from(broker_id):
            return True
        if isinstance(item, PartitionChangeRecord) and item.leader != NO_LEADER_CHANGE:
            partition = image.topics.partition(TopicId(item.topic_id), item.partition_id)
            if partition is not None and partition.leader == broker_id:
                return True
    return False
