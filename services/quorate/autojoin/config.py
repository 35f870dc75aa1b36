"""Settings of the operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.autojoin.state import FETCH_TIMEOUT_MS, GHOST_DELAY_MS
from quorate.records.value_types import keyword_value_type
from quorate.settings.properties import PORT_MAX, Settings
from quorate.settings.tls import read_service_tls
from quorate.settings.tracing import read_tracing
from quorate.settings.transport import read_transport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.settings.tls import TlsSettings
    from quorate.settings.tracing import TracingSettings
    from quorate.settings.transport import Transport

TEMPLATE: Final = "autojoin.template"
NAMESPACE_FILE: Final = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


@keyword_value_type
class AutojoinConfig:
    """The settings of one operator: its StatefulSet, ports, timeouts, TLS and tracing."""

    namespace: str
    stateful_set: str
    identity: str
    controller_port: int
    admin_port: int
    container: str
    interval_ms: int
    ghost_delay_ms: int
    fetch_timeout_ms: int
    request_timeout_ms: int
    lease_ms: int
    health_port: int
    metrics_port: int
    transport: Transport
    tls: TlsSettings | None
    tracing: TracingSettings | None
    log_level: str
    log_format: str
    effective: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    @property
    def template(self) -> str:
        """The checksum of the pod template for which the operator waits; empty for any template."""
        return self.effective[TEMPLATE]


def own_namespace(path: str = NAMESPACE_FILE) -> str:
    """The namespace of the pod that this process runs in; empty outside of a pod."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def read_config(
    properties: Mapping[str, str], environment: Mapping[str, str], *, namespace: str = ""
) -> AutojoinConfig:
    """Parse the properties. Raises ConfigError that names the key and the remedy."""
    settings = Settings(properties, environment)
    key = "autojoin.namespace"
    if not namespace or settings.has(key):
        namespace = settings.required(key, "name the namespace of the StatefulSet")
    settings.effective[key] = namespace
    key = "autojoin.statefulset"
    tls = read_service_tls(settings)
    settings.text(TEMPLATE, "")
    return AutojoinConfig(
        namespace=namespace,
        stateful_set=settings.required(key, "name the StatefulSet of the controllers"),
        identity=settings.text("autojoin.identity", environment.get("HOSTNAME", "autojoin")),
        controller_port=settings.integer(
            "autojoin.controller.port", 9094, minimum=1, maximum=PORT_MAX
        ),
        admin_port=settings.integer("autojoin.admin.port", 9095, minimum=1, maximum=PORT_MAX),
        container=settings.text("autojoin.container", "controller"),
        interval_ms=settings.integer("autojoin.interval.ms", 5_000, minimum=100),
        ghost_delay_ms=settings.integer("autojoin.ghost.delay.ms", GHOST_DELAY_MS, minimum=0),
        fetch_timeout_ms=settings.integer(
            "controller.quorum.fetch.timeout.ms", FETCH_TIMEOUT_MS, minimum=1
        ),
        request_timeout_ms=settings.integer("admin.request.timeout.ms", 30_000, minimum=1),
        lease_ms=settings.integer("autojoin.lease.ms", 15_000, minimum=1_000),
        health_port=settings.integer("health.port", 9090, minimum=-1, maximum=PORT_MAX),
        metrics_port=settings.integer("metrics.port", 9464, minimum=-1, maximum=PORT_MAX),
        transport=read_transport(settings),
        tls=tls,
        tracing=read_tracing(settings, environment),
        log_level=settings.text("log.level", "INFO"),
        log_format=settings.choice("log.format", ("key-value", "json")),
        effective=settings.effective,
        warnings=settings.warnings(),
    )
