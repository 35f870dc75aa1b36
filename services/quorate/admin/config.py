"""Settings of the admin sidecar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.admin.statefulset import statefulset_at
from quorate.api.authorization_settings import anonymous_warning, read_access
from quorate.records.ids import NodeId
from quorate.records.value_types import keyword_value_type
from quorate.settings.properties import (
    NODE_ID_MAX,
    PORT_MAX,
    Settings,
    parse_address,
)
from quorate.settings.property_files import read_properties
from quorate.settings.tls import read_service_tls
from quorate.settings.tracing import read_tracing
from quorate.settings.transport import read_transport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.admin.statefulset import StatefulSetAddress
    from quorate.api.permissions import Access
    from quorate.settings.tls import TlsSettings
    from quorate.settings.tracing import TracingSettings
    from quorate.settings.transport import Transport

LOCAL_CONTROLLER: Final = "127.0.0.1:9094"


@keyword_value_type
class AdminConfig:
    """The settings of one sidecar. `servers` begins with the controller of the same pod."""

    node_id: NodeId
    host: str
    port: int
    servers: tuple[tuple[str, int], ...]
    statefulset: StatefulSetAddress | None
    request_timeout_ms: int
    shutdown_timeout_ms: int
    health_port: int
    metrics_port: int
    has_reflection: bool
    transport: Transport
    tls: TlsSettings | None
    access: Access | None
    tracing: TracingSettings | None
    log_level: str
    log_format: str
    effective: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def load_config(path: str, environment: Mapping[str, str]) -> AdminConfig:
    """Read a properties file. Raises ConfigError that names the key and the remedy."""
    return read_config(read_properties(path), environment)


def read_config(properties: Mapping[str, str], environment: Mapping[str, str]) -> AdminConfig:
    """Parse the properties. Raises ConfigError that names the key and the remedy."""
    settings = Settings(properties, environment)
    settings.required("node.id", "give that of the controller beside this sidecar")
    host, port = parse_address(
        "admin.listener", settings.text("admin.listener", ":9095"), may_lack_host=True
    )
    own = parse_address("admin.controller", settings.text("admin.controller", LOCAL_CONTROLLER))
    key = "controller.quorum.bootstrap.servers"
    others = (parse_address(key, item) for item in settings.items(key, ""))
    tls = read_service_tls(settings)
    access = read_access(settings, has_peers=False)
    anonymous = anonymous_warning(access, [tls])
    return AdminConfig(
        node_id=NodeId(settings.integer("node.id", 0, maximum=NODE_ID_MAX)),
        host=host,
        port=port,
        servers=tuple(dict.fromkeys((own, *others))),
        statefulset=statefulset_at(settings.text("admin.statefulset", ""), environment),
        request_timeout_ms=settings.integer("admin.request.timeout.ms", 30_000, minimum=1),
        shutdown_timeout_ms=settings.integer("shutdown.timeout.ms", 5000),
        health_port=settings.integer("health.port", 9091, minimum=-1, maximum=PORT_MAX),
        metrics_port=settings.integer("metrics.port", 9465, minimum=-1, maximum=PORT_MAX),
        has_reflection=settings.flag("grpc.reflection.enable", default=False),
        transport=read_transport(settings),
        tls=tls,
        access=access,
        tracing=read_tracing(settings, environment),
        log_level=settings.text("log.level", "INFO"),
        log_format=settings.choice("log.format", ("key-value", "json")),
        effective=settings.effective,
        warnings=settings.warnings() + (() if anonymous is None else (anonymous,)),
    )
