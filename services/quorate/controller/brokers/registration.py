"""RegisterBroker and UnregisterBroker, and fencing of earlier incarnations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.heartbeat_tracker import (
    BrokerGone,
    BrokerSession,
    HeartbeatReceived,
    HeartbeatTracker,
)
from quorate.controller.brokers.messages import RegisterBrokerReply, UnregisterBrokerReply
from quorate.controller.decision import Context, Outcome, Proposal
from quorate.controller.errors import RefusedError
from quorate.controller.features.levels import (
    DIRECTORIES_LEVEL,
    metadata_version,
    registration_problem,
)
from quorate.controller.partitions.leader_isr_sweep import LeaderIsrSweep, start_sweep
from quorate.controller.partitions.partition import is_reserved
from quorate.records.errors import ErrorCode
from quorate.records.escaping import CONTROL
from quorate.records.field_limits import INT16_MAX, string_problem
from quorate.records.ids import UUID_BYTES, ZERO_UUID, DirectoryId, format_uuid
from quorate.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.brokers.image import Broker, Brokers
    from quorate.controller.brokers.messages import RegisterBroker, UnregisterBroker

_PORT_MAX: Final = 65_535
# PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL.
_SECURITY_PROTOCOL_MAX: Final = 3
_SHOWN_MAX: Final = 100
# A hundred times as many as most clusters have. Each takes some kilobytes, in memory and in
# snapshots, and a controller that becomes active gives all of them sessions without yielding.
BROKERS_MAX: Final = 5_000
# Size limit of one encoded record. A hundred listeners with names of usual length fit.
REGISTRATION_BYTES_MAX: Final = 16 * 1024


def decide_register(context: Context, request: RegisterBroker) -> Outcome:
    """Register a broker, fenced; the same incarnation may register again to change it.

    The broker epoch is the log end offset at the first registration of an incarnation. A new
    incarnation ends the leaderships of the old one in the same batch.
    """
    view = context.view
    level = metadata_version(view.features)
    proposal = Proposal(level)
    broker_id = request.broker_id
    existing = view.brokers.by_id.get(broker_id)
    record = _registration(request, level, epoch=context.next_offset)
    outdated: Broker | None = None
    if existing is not None and existing.registration.incarnation_id == request.incarnation_id:
        record = replace(
            record,
            broker_epoch=existing.registration.broker_epoch,
            fenced=existing.registration.fenced,
            in_controlled_shutdown=existing.registration.in_controlled_shutdown,
        )
    elif existing is not None and not existing.registration.fenced:
        outdated = existing
    try:
        _check_request(context, request)
        _check_incarnation(context, request, existing)
        proposal.add_or_reject(record, f"The registration of broker {broker_id}")
        _check_size(proposal)
    except RefusedError as refused:
        # The proposal already contains the registration that is too large.
        return Outcome(Proposal(level), RegisterBrokerReply(refused.error, refused.message))
    session = BrokerSession(broker_epoch=record.broker_epoch, contact_ms=context.now_ms)
    reply = RegisterBrokerReply(broker_epoch=record.broker_epoch)
    heard = HeartbeatReceived(broker_id, session, context.now_ms)
    if outdated is None and existing is not None and _moves_disks(existing, record):
        # Replicas on newly listed disks may lead, and those on disks left out may not any more.
        return Outcome(
            proposal, reply, (context.soft.of(LeaderIsrSweep).with_later((broker_id,)), heard)
        )
    if outdated is None:
        return Outcome(proposal, reply, (heard,))
    active = view.brokers.active - {broker_id}
    proposal, settling = start_sweep(context, (record,), (broker_id,), active)
    return Outcome(proposal, reply, (settling, heard))


def _moves_disks(existing: Broker, record: RegisterBrokerRecord) -> bool:
    """True if a broker that stays active lists other log directories than before."""
    return existing.is_active and set(existing.registration.log_dirs) != set(record.log_dirs)


def sender_problem(
    brokers: Brokers, broker_id: int, broker_epoch: int
) -> tuple[ErrorCode, str] | None:
    """The reason why a request is not that of a registered broker, or None."""
    broker = brokers.by_id.get(broker_id)
    if broker is None:
        message = f"No broker is registered with the id {broker_id}; register it first."
        return ErrorCode.BROKER_ID_NOT_REGISTERED, message
    epoch = broker.registration.broker_epoch
    if epoch == broker_epoch:
        return None
    message = (
        f"Broker {broker_id} is registered with epoch {epoch}, not {broker_epoch}: another process"
        " took its place; register again."
    )
    return ErrorCode.STALE_BROKER_EPOCH, message


def _check_request(context: Context, request: RegisterBroker) -> None:
    cluster_id = context.settings.cluster_id
    if request.cluster_id != cluster_id:
        message = (
            f"The broker belongs to the cluster {request.cluster_id!r} and this is {cluster_id!r};"
            " correct the address or format the broker with this cluster id."
        )
        raise RefusedError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    _check_room(context, request)
    problem = registration_problem(context.view.features, request.features)
    if problem is not None:
        raise RefusedError(ErrorCode.UNSUPPORTED_VERSION, problem)
    problem = _shape_problem(request) or _directories_problem(context, request)
    if problem is not None:
        raise RefusedError(ErrorCode.INVALID_REGISTRATION, problem)


def _check_room(context: Context, request: RegisterBroker) -> None:
    """Reject a broker above the limit. A registered broker may always register again."""
    brokers = context.view.brokers
    if len(brokers.by_id) < BROKERS_MAX or request.broker_id in brokers.by_id:
        return
    message = (
        f"{len(brokers.by_id)} brokers are registered, {brokers.fenced_count} of them fenced, and"
        f" {BROKERS_MAX} may be; unregister those that are gone for good."
    )
    raise RefusedError(ErrorCode.POLICY_VIOLATION, message)


def _check_size(proposal: Proposal) -> None:
    """Reject a registration that would permanently take too much memory of every controller."""
    size = len(proposal.values[-1])
    if size > REGISTRATION_BYTES_MAX:
        message = (
            f"The registration has {size} bytes, and {REGISTRATION_BYTES_MAX} are taken; give"
            " fewer or shorter listeners, features and log directories."
        )
        raise RefusedError(ErrorCode.POLICY_VIOLATION, message)


def _shape_problem(request: RegisterBroker) -> str | None:
    if request.broker_id < 0:
        return f"The broker id {request.broker_id} is below zero; give one from 0 on."
    if len(request.incarnation_id) != UUID_BYTES:
        return (
            f"The incarnation id has {len(request.incarnation_id)} bytes; draw {UUID_BYTES} random"
            " ones at each start."
        )
    if request.incarnation_id == ZERO_UUID:
        return "The incarnation id is all zero; draw a random one at each start."
    return (
        _listeners_problem(request)
        or _features_problem(request)
        or _text_problem("The rack", request.rack or "")
    )


def _listeners_problem(request: RegisterBroker) -> str | None:
    if not request.listeners:
        return "There are no listeners; name at least one."
    for listener in request.listeners:
        problem = _name_problem("The name of a listener", listener.name)
        if problem is not None:
            return problem
        if not listener.host:
            return f"Listener {listener.name} has no host; give the one that clients call."
        problem = _text_problem(f"The host of listener {listener.name}", listener.host)
        if problem is not None:
            return problem
        # Port 0 requests any free port, and no client would know which one was chosen.
        if not 1 <= listener.port <= _PORT_MAX:
            return (
                f"Listener {listener.name} has port {listener.port}; give one from 1 to"
                f" {_PORT_MAX}."
            )
        if not 0 <= listener.security_protocol <= _SECURITY_PROTOCOL_MAX:
            return (
                f"Listener {listener.name} has security protocol {listener.security_protocol}; give"
                f" Kafka's number, from 0 to {_SECURITY_PROTOCOL_MAX}."
            )
    return _twice("listener", [listener.name for listener in request.listeners])


def _features_problem(request: RegisterBroker) -> str | None:
    for feature in request.features:
        problem = _name_problem("The name of a feature", feature.name)
        if problem is not None:
            return problem
        if not 0 <= feature.min_level <= feature.max_level <= INT16_MAX:
            return (
                f"Feature {feature.name} is supported from {feature.min_level} to"
                f" {feature.max_level}; give levels from 0 to {INT16_MAX}, the lower first."
            )
    return _twice("feature", [feature.name for feature in request.features])


def _name_problem(field: str, name: str) -> str | None:
    if not name:
        return f"{field} is empty; give it at least one character."
    return _text_problem(field, name)


def _text_problem(field: str, text: str) -> str | None:
    """The problem with a text that is too long for a record or has control characters, or None."""
    problem = string_problem(text)
    if problem is not None:
        return f"{field} {problem}."
    if CONTROL.search(text):
        return f"{field} is {text[:_SHOWN_MAX]!r}, with control characters; leave them out."
    return None


def _twice(what: str, names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return f"The {what} {name} occurs twice; name it once."
        seen.add(name)
    return None


def _directories_problem(context: Context, request: RegisterBroker) -> str | None:
    log_dirs = frozenset(request.log_dirs)
    for directory in request.log_dirs:
        if len(directory) != UUID_BYTES:
            return (
                f"A log directory id has {len(directory)} bytes; give the {UUID_BYTES} of each"
                " directory's meta.properties."
            )
    if metadata_version(context.view.features) < DIRECTORIES_LEVEL:
        return None
    if not log_dirs:
        return "There are no log directories; name the id of each."
    if len(log_dirs) < len(request.log_dirs):
        return "A log directory occurs twice; name the id of each once."
    for directory in request.log_dirs:
        if is_reserved(directory):
            return f"The log directory id {format_uuid(directory)} is reserved; draw another."
    holders = context.view.brokers.holders
    for directory in request.log_dirs:
        for broker_id in holders.get(DirectoryId(directory), ()):
            if broker_id != request.broker_id:
                return (
                    f"The log directory {format_uuid(directory)} is registered by broker"
                    f" {broker_id}; two brokers may not share one."
                )
    return None


def _check_incarnation(context: Context, request: RegisterBroker, existing: Broker | None) -> None:
    """Reject a second process while the first is alive, unless that one is shutting down."""
    if existing is None or existing.registration.incarnation_id == request.incarnation_id:
        return
    sessions = context.soft.of(HeartbeatTracker)
    is_live = sessions.is_live(
        request.broker_id,
        broker_epoch=existing.registration.broker_epoch,
        now_ms=context.now_ms,
    )
    if is_live and not existing.registration.in_controlled_shutdown:
        message = (
            f"Another process is registered as broker {request.broker_id} and was heard within"
            f" {sessions.timeout_ms} ms; stop it, or wait until its session has run out."
        )
        raise RefusedError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message)


def _registration(request: RegisterBroker, level: int, *, epoch: int) -> RegisterBrokerRecord:
    log_dirs = tuple(DirectoryId(directory) for directory in request.log_dirs)
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            BrokerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ),
        features=tuple(
            BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_level,
                max_supported_version=feature.max_level,
            )
            for feature in request.features
        ),
        rack=request.rack,
        fenced=True,
        log_dirs=log_dirs if level >= DIRECTORIES_LEVEL else (),
    )


def decide_unregister(context: Context, request: UnregisterBroker) -> Outcome:
    """Remove a broker; in-sync replicas take over its leaderships."""
    view = context.view
    existing = view.brokers.by_id.get(request.broker_id)
    if existing is None:
        message = f"No broker is registered with the id {request.broker_id}; list the brokers."
        reply = UnregisterBrokerReply(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
        return Outcome(Proposal(metadata_version(view.features)), reply)
    record = UnregisterBrokerRecord(
        broker_id=request.broker_id, broker_epoch=existing.registration.broker_epoch
    )
    active = view.brokers.active - {request.broker_id}
    proposal, settling = start_sweep(context, (record,), (request.broker_id,), active)
    return Outcome(proposal, UnregisterBrokerReply(), (settling, BrokerGone(request.broker_id)))
