"""Metadata records about the nodes of a cluster: brokers and controllers."""

from __future__ import annotations

from typing import Annotated

from quorate.records.codec.schema import Tagged, Wire, message, structure
from quorate.records.ids import DirectoryId


@structure
class BrokerEndpoint:
    """A listener of a broker; `security_protocol` is Kafka's number (0 is PLAINTEXT)."""

    name: Annotated[str, Wire("string")]
    host: Annotated[str, Wire("string")]
    port: Annotated[int, Wire("uint16")]
    security_protocol: Annotated[int, Wire("int16")]
    tagged: Tagged = ()


@structure
class BrokerFeature:
    """The range of a feature's levels that a broker supports."""

    name: Annotated[str, Wire("string")]
    min_supported_version: Annotated[int, Wire("int16")]
    max_supported_version: Annotated[int, Wire("int16")]
    tagged: Tagged = ()


@message(api_key=0, versions="0-4")
class RegisterBrokerRecord:
    """A broker was registered; it is fenced until its heartbeats report that it has caught up."""

    broker_id: Annotated[int, Wire("int32")]
    is_migrating_zk_broker: Annotated[bool, Wire("bool", "2+")] = False
    incarnation_id: Annotated[bytes, Wire("uuid")]
    broker_epoch: Annotated[int, Wire("int64")]
    end_points: Annotated[tuple[BrokerEndpoint, ...], Wire("[]BrokerEndpoint")]
    features: Annotated[tuple[BrokerFeature, ...], Wire("[]BrokerFeature")]
    rack: Annotated[str | None, Wire("string", nullable="0+", default="")]
    fenced: Annotated[bool, Wire("bool")] = True
    in_controlled_shutdown: Annotated[bool, Wire("bool", "1+")] = False
    log_dirs: Annotated[tuple[DirectoryId, ...], Wire("[]uuid", "3+", tag=0)] = ()
    cordoned_log_dirs: Annotated[
        tuple[DirectoryId, ...] | None, Wire("[]uuid", "4+", nullable="4+", tag=1)
    ] = None
    tagged: Tagged = ()


@message(api_key=1)
class UnregisterBrokerRecord:
    """A broker was removed from the cluster."""

    broker_id: Annotated[int, Wire("int32")]
    broker_epoch: Annotated[int, Wire("int64")]
    tagged: Tagged = ()


@message(api_key=7)
class FenceBrokerRecord:
    """A broker was fenced; in logs older than BrokerRegistrationChangeRecord."""

    id: Annotated[int, Wire("int32")]
    epoch: Annotated[int, Wire("int64")]
    tagged: Tagged = ()


@message(api_key=8)
class UnfenceBrokerRecord:
    """A broker was unfenced; in logs older than BrokerRegistrationChangeRecord."""

    id: Annotated[int, Wire("int32")]
    epoch: Annotated[int, Wire("int64")]
    tagged: Tagged = ()


@message(api_key=17, versions="0-3")
class BrokerRegistrationChangeRecord:
    """A change of a broker's registration.

    `fenced` is 1 for fenced, -1 for unfenced, 0 for unchanged; `in_controlled_shutdown` is 1 or 0.
    """

    broker_id: Annotated[int, Wire("int32")]
    broker_epoch: Annotated[int, Wire("int64")]
    fenced: Annotated[int, Wire("int8", tag=0)] = 0
    in_controlled_shutdown: Annotated[int, Wire("int8", "1+", tag=1)] = 0
    log_dirs: Annotated[tuple[DirectoryId, ...], Wire("[]uuid", "2+", tag=2)] = ()
    cordoned_log_dirs: Annotated[
        tuple[DirectoryId, ...] | None, Wire("[]uuid", "3+", nullable="3+", tag=3)
    ] = None
    tagged: Tagged = ()


@structure
class ControllerEndpoint:
    """A listener of a controller; `security_protocol` is Kafka's number (0 is PLAINTEXT)."""

    name: Annotated[str, Wire("string")]
    host: Annotated[str, Wire("string")]
    port: Annotated[int, Wire("uint16")]
    security_protocol: Annotated[int, Wire("int16")]
    tagged: Tagged = ()


@structure
class ControllerFeature:
    """The range of a feature's levels that a controller supports."""

    name: Annotated[str, Wire("string")]
    min_supported_version: Annotated[int, Wire("int16")]
    max_supported_version: Annotated[int, Wire("int16")]
    tagged: Tagged = ()


@message(api_key=27)
class RegisterControllerRecord:
    """A controller registered its listeners and features at the active one (KIP-919)."""

    controller_id: Annotated[int, Wire("int32")]
    incarnation_id: Annotated[bytes, Wire("uuid")]
    zk_migration_ready: Annotated[bool, Wire("bool")] = False
    end_points: Annotated[tuple[ControllerEndpoint, ...], Wire("[]ControllerEndpoint")]
    features: Annotated[tuple[ControllerFeature, ...], Wire("[]ControllerFeature")]
    tagged: Tagged = ()
