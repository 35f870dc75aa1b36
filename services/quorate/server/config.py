"""Controller settings: Kafka's keys and defaults plus a few of our own, validated at startup.

Keys of Apache Kafka that a controller of this release does not use are named in the warning about
unknown keys, so that an unmodified server.properties loads.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.api.authorization_settings import anonymous_warning, read_access, shared_list_warning
from quorate.records.ids import Millis, NodeId, ReplicaKey
from quorate.records.value_types import keyword_value_type
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.server import timeouts
from quorate.server.timeouts import QuorumSettings
from quorate.settings.integers import INT16_MAX, INT32_MAX, is_whole_number
from quorate.settings.listeners import read_listeners
from quorate.settings.properties import (
    NODE_ID_MAX,
    PORT_MAX,
    ConfigError,
    Settings,
    parse_address,
)
from quorate.settings.property_files import read_properties
from quorate.settings.tracing import read_tracing
from quorate.settings.transport import read_transport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.api.permissions import Access
    from quorate.settings.listeners import ListenerSettings
    from quorate.settings.tracing import TracingSettings
    from quorate.settings.transport import Transport

_MIB: Final = 1024 * 1024


@keyword_value_type
class LogSettings:
    """`metadata.*`: the log directory, segments, retention and snapshots."""

    directory: str
    segment_bytes: int
    retention_bytes: int
    retention_ms: int
    snapshot_bytes: int
    snapshot_interval_ms: int
    free_bytes_min: int


@keyword_value_type
class ControllerConfig:
    """All settings of one controller process. `effective` is for the log."""

    node_id: NodeId
    listeners: tuple[ListenerSettings, ...]
    quorum: QuorumSettings
    log: LogSettings
    health_port: int
    metrics_port: int
    has_reflection: bool
    transport: Transport
    access: Access | None
    broker_session_timeout_ms: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_ms: int
    num_partitions: int
    default_replication_factor: int
    shutdown_timeout_ms: Millis
    tracing: TracingSettings | None
    log_level: str
    log_format: str
    effective: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    @property
    def peers(self) -> ListenerSettings:
        """The listener on which controllers call each other."""
        return self.listeners[0]

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The advertised endpoints of this controller, one for each listener."""
        return tuple(listener.advertised for listener in self.listeners)


def load_config(path: str, environment: Mapping[str, str]) -> ControllerConfig:
    """Read a properties file. Raises ConfigError that names the key and the remedy."""
    return read_config(read_properties(path), environment)


def read_config(properties: Mapping[str, str], environment: Mapping[str, str]) -> ControllerConfig:
    """Parse the properties. Raises ConfigError that names the key and the remedy."""
    settings = Settings(properties, environment)
    remedy = "give each node a number of its own"
    settings.required("node.id", remedy)
    node_id = NodeId(settings.integer("node.id", 0, maximum=NODE_ID_MAX))
    roles = settings.items("process.roles", "controller")
    if "controller" not in roles:
        raise ConfigError(f"process.roles is {','.join(roles)!r}: it must contain controller")
    listeners, unserved = read_listeners(settings, is_controller_alone="broker" not in roles)
    config = ControllerConfig(
        node_id=node_id,
        listeners=listeners,
        quorum=_quorum(settings, listeners[0].name),
        log=_log(settings),
        health_port=settings.integer("health.port", 9090, minimum=-1, maximum=PORT_MAX),
        metrics_port=settings.integer("metrics.port", 9464, minimum=-1, maximum=PORT_MAX),
        has_reflection=settings.flag("grpc.reflection.enable", default=False),
        transport=read_transport(settings),
        access=read_access(settings),
        broker_session_timeout_ms=settings.integer("broker.session.timeout.ms", 9000, minimum=1),
        auto_leader_rebalance_enable=settings.flag("auto.leader.rebalance.enable", default=True),
        leader_imbalance_check_interval_ms=1000
        * settings.integer(
            "leader.imbalance.check.interval.seconds", 300, minimum=1, maximum=INT32_MAX
        ),
        num_partitions=settings.integer("num.partitions", 1, minimum=1, maximum=INT32_MAX),
        default_replication_factor=settings.integer(
            "default.replication.factor", 1, minimum=1, maximum=INT16_MAX
        ),
        shutdown_timeout_ms=Millis(settings.integer("shutdown.timeout.ms", 5000)),
        tracing=read_tracing(settings, environment),
        log_level=settings.text("log.level", "INFO"),
        log_format=settings.choice("log.format", ("key-value", "json")),
        effective=settings.effective,
        warnings=(),
    )
    of_callers = (
        anonymous_warning(config.access, [listener.tls for listener in listeners]),
        shared_list_warning(settings),
    )
    warnings = settings.warnings() + unserved + tuple(each for each in of_callers if each)
    config = replace(config, warnings=warnings)
    if not config.quorum.bootstrap_servers and not config.quorum.voters.voters:
        raise ConfigError(
            "controller.quorum.bootstrap.servers is missing: list the controllers' HOST:PORT"
        )
    timeouts.check_fit(config.quorum, config.broker_session_timeout_ms)
    _check_ports(config)
    return config


def _quorum(settings: Settings, listener_name: str) -> QuorumSettings:
    def millis(name: str, default: int, minimum: int = 0) -> Millis:
        return Millis(settings.integer(f"controller.quorum.{name}", default, minimum=minimum))

    key = "controller.quorum.bootstrap.servers"
    voters_key = "controller.quorum.voters"
    return QuorumSettings(
        bootstrap_servers=tuple(parse_address(key, item) for item in settings.items(key, "")),
        voters=VoterSet.of(
            _voter(voters_key, item, listener_name) for item in settings.items(voters_key, "")
        ),
        election_timeout_ms=millis("election.timeout.ms", 1000, timeouts.ELECTION_TIMEOUT_MIN_MS),
        fetch_timeout_ms=millis("fetch.timeout.ms", 2000, timeouts.FETCH_TIMEOUT_MIN_MS),
        election_backoff_max_ms=millis("election.backoff.max.ms", 1000),
        request_timeout_ms=millis("request.timeout.ms", 2000, timeouts.REQUEST_TIMEOUT_MIN_MS),
        retry_backoff_ms=millis("retry.backoff.ms", 20, 1),
        append_linger_ms=millis("append.linger.ms", 0),
        auto_join=settings.flag("controller.quorum.auto.join.enable", default=False),
        fetch_max_bytes=settings.integer(
            "controller.quorum.fetch.max.bytes", 256 * 1024, minimum=1, maximum=8 * _MIB
        ),
        fetch_snapshot_max_bytes=settings.integer(
            "controller.quorum.fetch.snapshot.max.bytes", 256 * 1024, minimum=1, maximum=8 * _MIB
        ),
    )


def _log(settings: Settings) -> LogSettings:
    log_dirs = settings.items("log.dirs", "")
    directory = settings.text("metadata.log.dir", log_dirs[0] if log_dirs else "")
    if not directory:
        raise ConfigError("metadata.log.dir is missing: name the directory that was formatted")
    return LogSettings(
        directory=str(Path(directory).absolute()),
        segment_bytes=settings.integer("metadata.log.segment.bytes", 1024 * _MIB, minimum=1024),
        retention_bytes=settings.integer("metadata.max.retention.bytes", 100 * _MIB, minimum=-1),
        retention_ms=settings.integer("metadata.max.retention.ms", 604_800_000, minimum=-1),
        snapshot_bytes=settings.integer(
            "metadata.log.max.record.bytes.between.snapshots", 20 * _MIB, minimum=1
        ),
        snapshot_interval_ms=settings.integer("metadata.log.max.snapshot.interval.ms", 3_600_000),
        free_bytes_min=settings.integer("metadata.log.free.bytes.min", 64 * _MIB),
    )


def _voter(key: str, item: str, listener_name: str) -> Voter:
    node_id, at, address = item.partition("@")
    if not at or not is_whole_number(node_id, maximum=NODE_ID_MAX):
        raise ConfigError(f"{key} has {item!r}: write ID@HOST:PORT")
    host, port = parse_address(key, address)
    return Voter(ReplicaKey(NodeId(int(node_id))), (Endpoint(listener_name, host, port),))


def _check_ports(config: ControllerConfig) -> None:
    """Check that each port is used once; the system chooses one for 0, below 0 means none."""
    ports = (
        *{("listeners", listener.bound.port) for listener in config.listeners},
        ("health.port", config.health_port),
        ("metrics.port", config.metrics_port),
    )
    seen: dict[int, str] = {}
    for name, port in ports:
        if port > 0 and port in seen:
            raise ConfigError(
                f"{name} has port {port} and so has {seen[port]}: give each a port of its own"
            )
        seen[port] = name
