"""Metadata records about the cluster as a whole: configs, features, quotas, transactions."""

from __future__ import annotations

from typing import Annotated

from quorate.records.codec.schema import Tagged, Wire, message, structure


@message(api_key=4)
class ConfigRecord:
    """A config of a resource was set, or removed if `value` is None.

    `resource_type` is Kafka's code: 2 for a topic, 4 for a broker (the name "" stands for all).
    """

    resource_type: Annotated[int, Wire("int8")]
    resource_name: Annotated[str, Wire("string")]
    name: Annotated[str, Wire("string")]
    value: Annotated[str | None, Wire("string", nullable="0+", default="")]
    tagged: Tagged = ()


@message(api_key=12)
class FeatureLevelRecord:
    """A feature was finalised at a level; 0 removes it."""

    name: Annotated[str, Wire("string")]
    feature_level: Annotated[int, Wire("int16")]
    tagged: Tagged = ()


@structure
class EntityData:
    """One part of a quota's entity; the name None stands for the default of its type."""

    entity_type: Annotated[str, Wire("string")]
    entity_name: Annotated[str | None, Wire("string", nullable="0+", default="")]
    tagged: Tagged = ()


@message(api_key=14)
class ClientQuotaRecord:
    """A quota was set or removed."""

    entity: Annotated[tuple[EntityData, ...], Wire("[]EntityData")]
    key: Annotated[str, Wire("string")]
    value: Annotated[float, Wire("float64")]
    remove: Annotated[bool, Wire("bool")] = False
    tagged: Tagged = ()


@message(api_key=15)
class ProducerIdsRecord:
    """Producer ids below `next_producer_id` have been allocated to brokers."""

    broker_id: Annotated[int, Wire("int32")]
    broker_epoch: Annotated[int, Wire("int64")] = -1
    next_producer_id: Annotated[int, Wire("int64")]
    tagged: Tagged = ()


@message(api_key=20)
class NoOpRecord:
    """A record without contents, which advances the high watermark."""

    tagged: Tagged = ()


@message(api_key=21)
class ZkMigrationStateRecord:
    """The state of the migration from ZooKeeper, in old logs."""

    zk_migration_state: Annotated[int, Wire("int8")]
    tagged: Tagged = ()


@message(api_key=23)
class BeginTransactionRecord:
    """Records from here on take effect together, at the EndTransactionRecord (KIP-868)."""

    name: Annotated[str | None, Wire("string", nullable="0+", tag=0)] = None
    tagged: Tagged = ()


@message(api_key=24)
class EndTransactionRecord:
    """The records since the BeginTransactionRecord take effect."""

    tagged: Tagged = ()


@message(api_key=25)
class AbortTransactionRecord:
    """The records since the BeginTransactionRecord have no effect."""

    reason: Annotated[str | None, Wire("string", nullable="0+", tag=0)] = None
    tagged: Tagged = ()
