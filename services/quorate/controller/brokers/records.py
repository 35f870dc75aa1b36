"""Converts broker records to broker state and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.controller.brokers.image import Broker
from quorate.controller.errors import ReplayError
from quorate.controller.features.levels import (
    CORDONED_DIRECTORIES_LEVEL,
    DIRECTORIES_LEVEL,
    metadata_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.image import MetadataDelta, MetadataImage
    from quorate.records.ids import Offset
    from quorate.records.metadata import (
        BrokerRegistrationChangeRecord,
        FenceBrokerRecord,
        MetadataRecord,
        RegisterBrokerRecord,
        UnfenceBrokerRecord,
        UnregisterBrokerRecord,
    )


def broker_record(broker: Broker, level: int) -> RegisterBrokerRecord:
    """The record with the whole state of a broker that this metadata.version can represent."""
    registration = broker.registration
    return replace(
        registration,
        log_dirs=registration.log_dirs if level >= DIRECTORIES_LEVEL else (),
        cordoned_log_dirs=(
            registration.cordoned_log_dirs if level >= CORDONED_DIRECTORIES_LEVEL else None
        ),
    )


def broker_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """All brokers, in order of their ids."""
    level = metadata_version(image.features)
    for _, broker in sorted(image.brokers.by_id.items()):
        yield broker_record(broker, level)


def replay_register(delta: MetadataDelta, record: RegisterBrokerRecord, offset: Offset) -> None:
    """Add a broker, or replace it by its new registration.

    Listeners and features are sorted by name: their order has no meaning, and Kafka writes them
    into snapshots in the order of a hash map.
    """
    registration = replace(
        record,
        end_points=tuple(sorted(record.end_points, key=lambda point: point.name)),
        features=tuple(sorted(record.features, key=lambda feature: feature.name)),
    )
    delta.brokers = delta.brokers.with_broker(Broker(registration, offset))


def replay_unregister(delta: MetadataDelta, record: UnregisterBrokerRecord) -> None:
    """Remove a broker. Raises ReplayError if it is not registered with that epoch."""
    _registered(delta, record.broker_id, record.broker_epoch)
    delta.brokers = delta.brokers.without(record.broker_id)


def replay_registration_change(
    delta: MetadataDelta, record: BrokerRegistrationChangeRecord
) -> None:
    """Change what the record names. Raises ReplayError for another broker or epoch."""
    broker = _registered(delta, record.broker_id, record.broker_epoch)
    registration = broker.registration
    changed = replace(
        registration,
        fenced=record.fenced > 0 if record.fenced else registration.fenced,
        in_controlled_shutdown=bool(
            record.in_controlled_shutdown or registration.in_controlled_shutdown
        ),
        log_dirs=record.log_dirs or registration.log_dirs,
        cordoned_log_dirs=(
            registration.cordoned_log_dirs
            if record.cordoned_log_dirs is None
            else record.cordoned_log_dirs
        ),
    )
    delta.brokers = delta.brokers.with_broker(Broker(changed, broker.offset))


def replay_fence(delta: MetadataDelta, record: FenceBrokerRecord) -> None:
    """Fence a broker (record of old logs). Raises ReplayError for another broker or epoch."""
    _set_fenced(delta, record.id, record.epoch, is_fenced=True)


def replay_unfence(delta: MetadataDelta, record: UnfenceBrokerRecord) -> None:
    """Unfence a broker (record of old logs). Raises ReplayError for another broker or epoch."""
    _set_fenced(delta, record.id, record.epoch, is_fenced=False)


def _set_fenced(delta: MetadataDelta, broker_id: int, epoch: int, *, is_fenced: bool) -> None:
    broker = _registered(delta, broker_id, epoch)
    changed = replace(broker.registration, fenced=is_fenced)
    delta.brokers = delta.brokers.with_broker(Broker(changed, broker.offset))


def _registered(delta: MetadataDelta, broker_id: int, epoch: int) -> Broker:
    broker = delta.brokers.by_id.get(broker_id)
    if broker is None:
        raise ReplayError(f"broker {broker_id} is not registered")
    if broker.registration.broker_epoch != epoch:
        raise ReplayError(
            f"broker {broker_id} has epoch {broker.registration.broker_epoch}, not {epoch}"
        )
    return broker
